//! Telephone codecs behind one trait: G.711 of both laws, G.722 and Opus.
//!
//! Sound goes in and comes out mono, full scale at 1.0, at the codec's own rate ([`CodecKind::sample_rate`]). Any
//! bytes may be decoded: what is damaged gives an error or noise.

use audio_codec::g722::{G722Decoder, G722Encoder};
use audio_codec::{Decoder as _, Encoder as _};

use crate::pcm;
use crate::telephone::{alaw_decode, alaw_encode, mulaw_decode, mulaw_encode};

/// The longest that one packet may sound: what Opus allows. More is damage or an attack.
const LONGEST_MS: usize = 120;
/// Bytes of an Opus packet: what fits into a datagram.
const OPUS_BYTES: usize = 1_275;
/// Concealment fades to silence within this.
const FADE_MS: usize = 60;

/// Which codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodecKind {
    /// G.711 μ-law.
    Pcmu,
    /// G.711 A-law.
    Pcma,
    /// G.722 at 64 kbit/s.
    G722,
    /// Opus, mono.
    Opus,
}

impl CodecKind {
    /// All of them, the one we like best first: wide sound is understood better.
    pub const ALL: [Self; 4] = [Self::Opus, Self::G722, Self::Pcmu, Self::Pcma];

    /// Its name in SDP (`a=rtpmap`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Pcmu => "PCMU",
            Self::Pcma => "PCMA",
            Self::G722 => "G722",
            Self::Opus => "opus",
        }
    }

    /// By its name in SDP, in whatever case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }

    /// By a payload type that needs no `a=rtpmap` (RFC 3551).
    pub fn from_static(payload_type: u8) -> Option<Self> {
        match payload_type {
            0 => Some(Self::Pcmu),
            8 => Some(Self::Pcma),
            9 => Some(Self::G722),
            _ => None,
        }
    }

    /// The payload type that we offer it as.
    pub fn payload_type(self) -> u8 {
        match self {
            Self::Pcmu => 0,
            Self::Pcma => 8,
            Self::G722 => 9,
            Self::Opus => 111,
        }
    }

    /// Ticks of its RTP clock a second. G.722 has 16,000 samples and, by an old mistake of RFC 1890, 8,000 ticks.
    pub fn clock_rate(self) -> u32 {
        match self {
            Self::Pcmu | Self::Pcma | Self::G722 => 8_000,
            Self::Opus => 48_000,
        }
    }

    /// Samples a second that go in and come out. Opus does its own conversion and loses nothing that we need at 16,000.
    pub fn sample_rate(self) -> u32 {
        match self {
            Self::Pcmu | Self::Pcma => 8_000,
            Self::G722 | Self::Opus => 16_000,
        }
    }

    /// RTP ticks for so many samples.
    pub fn ticks(self, samples: usize) -> u64 {
        samples as u64 * u64::from(self.clock_rate()) / u64::from(self.sample_rate())
    }

    /// Samples for so many RTP ticks, rounded down.
    pub fn samples(self, ticks: u64) -> u64 {
        ticks * u64::from(self.sample_rate()) / u64::from(self.clock_rate())
    }

    /// One of it, for one call and one direction each.
    ///
    /// # Errors
    /// If libopus has no memory for it.
    pub fn open(self) -> Result<Box<dyn Codec>, CodecError> {
        Ok(match self {
            Self::Pcmu => Box::new(G711::new(self, mulaw_encode, mulaw_decode)),
            Self::Pcma => Box::new(G711::new(self, alaw_encode, alaw_decode)),
            Self::G722 => Box::new(G722::new()),
            Self::Opus => Box::new(Opus::new()?),
        })
    }
}

/// A payload that the codec does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{codec}: {reason}")]
pub struct CodecError {
    /// Which codec.
    pub codec: &'static str,
    /// What it said.
    pub reason: String,
}

/// A coder and a decoder with their memories.
pub trait Codec: std::fmt::Debug + Send {
    /// Which one it is.
    fn kind(&self) -> CodecKind;

    /// Appends the bytes for some samples. Opus takes frames of 10, 20, 40 or 60 ms only.
    ///
    /// # Errors
    /// If the samples are no whole frame.
    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<(), CodecError>;

    /// How many samples a payload holds, without decoding it.
    fn samples_in(&self, payload: &[u8]) -> usize;

    /// Appends the samples of a payload.
    ///
    /// # Errors
    /// If it is damaged; nothing was appended then.
    fn decode(&mut self, payload: &[u8], out: &mut Vec<f32>) -> Result<(), CodecError>;

    /// Appends samples in place of lost ones. `next` is the payload behind the loss if it is there already: Opus may
    /// have put a copy into it.
    fn conceal(&mut self, samples: usize, next: Option<&[u8]>, out: &mut Vec<f32>);
}

/// Repeats the last 20 ms and fades them out: enough for a recogniser not to hear a click.
#[derive(Debug)]
struct Repeat {
    last: Vec<f32>,
    /// Samples that were made up since the last true one.
    made_up: usize,
    rate: usize,
}

impl Repeat {
    fn new(rate: u32) -> Self {
        let rate = rate as usize;
        Self { last: Vec::with_capacity(rate / 50), made_up: 0, rate }
    }

    fn note(&mut self, samples: &[f32]) {
        let keep = self.rate / 50;
        self.made_up = 0;
        if samples.len() >= keep {
            self.last.clear();
            self.last.extend_from_slice(&samples[samples.len() - keep..]);
        }
    }

    fn conceal(&mut self, samples: usize, out: &mut Vec<f32>) {
        let fade = (self.rate * FADE_MS / 1_000) as f32;
        for _ in 0..samples {
            let gain = 1.0 - (self.made_up as f32 / fade).min(1.0);
            let place = self.made_up.checked_rem(self.last.len()).unwrap_or(0);
            out.push(self.last.get(place).copied().unwrap_or(0.0) * gain);
            self.made_up += 1;
        }
    }
}

#[derive(Debug)]
struct G711 {
    kind: CodecKind,
    encode: fn(i16) -> u8,
    decode: fn(u8) -> i16,
    repeat: Repeat,
}

impl G711 {
    fn new(kind: CodecKind, encode: fn(i16) -> u8, decode: fn(u8) -> i16) -> Self {
        Self { kind, encode, decode, repeat: Repeat::new(kind.sample_rate()) }
    }
}

impl Codec for G711 {
    fn kind(&self) -> CodecKind {
        self.kind
    }

    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<(), CodecError> {
        out.extend(samples.iter().map(|sample| (self.encode)(pcm::to_i16(*sample))));
        Ok(())
    }

    fn samples_in(&self, payload: &[u8]) -> usize {
        payload.len()
    }

    fn decode(&mut self, payload: &[u8], out: &mut Vec<f32>) -> Result<(), CodecError> {
        check_length(self.kind, payload.len())?;
        let before = out.len();
        out.extend(payload.iter().map(|byte| pcm::to_f32((self.decode)(*byte))));
        self.repeat.note(&out[before..]);
        Ok(())
    }

    fn conceal(&mut self, samples: usize, _next: Option<&[u8]>, out: &mut Vec<f32>) {
        self.repeat.conceal(samples, out);
    }
}

fn check_length(kind: CodecKind, samples: usize) -> Result<(), CodecError> {
    if samples > kind.sample_rate() as usize * LONGEST_MS / 1_000 {
        let reason = format!("a packet of {samples} samples, and at most {LONGEST_MS} ms are taken");
        return Err(CodecError { codec: kind.name(), reason });
    }
    Ok(())
}

struct G722 {
    encoder: G722Encoder,
    decoder: G722Decoder,
    repeat: Repeat,
    samples: Vec<i16>,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for G722 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("G722")
    }
}

impl G722 {
    fn new() -> Self {
        Self {
            encoder: G722Encoder::new(),
            decoder: G722Decoder::new(),
            repeat: Repeat::new(CodecKind::G722.sample_rate()),
            samples: Vec::new(),
            bytes: Vec::new(),
        }
    }
}

impl Codec for G722 {
    fn kind(&self) -> CodecKind {
        CodecKind::G722
    }

    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<(), CodecError> {
        self.samples.clear();
        pcm::extend_i16(&mut self.samples, samples);
        self.bytes.resize(self.encoder.max_encode_bytes(samples.len()), 0);
        let written = self.encoder.encode_into(&self.samples, &mut self.bytes);
        let written = written.map_err(|error| failed(CodecKind::G722, &error))?;
        out.extend_from_slice(&self.bytes[..written]);
        Ok(())
    }

    fn samples_in(&self, payload: &[u8]) -> usize {
        payload.len() * 2
    }

    fn decode(&mut self, payload: &[u8], out: &mut Vec<f32>) -> Result<(), CodecError> {
        check_length(CodecKind::G722, payload.len() * 2)?;
        self.samples.resize(payload.len() * 2, 0);
        let written = self.decoder.decode_into(payload, &mut self.samples);
        let written = written.map_err(|error| failed(CodecKind::G722, &error))?;
        let before = out.len();
        pcm::extend_f32(out, &self.samples[..written]);
        self.repeat.note(&out[before..]);
        Ok(())
    }

    fn conceal(&mut self, samples: usize, _next: Option<&[u8]>, out: &mut Vec<f32>) {
        self.repeat.conceal(samples, out);
    }
}

fn failed(kind: CodecKind, error: &impl std::fmt::Debug) -> CodecError {
    CodecError { codec: kind.name(), reason: format!("{error:?}") }
}

/// 20 ms of nothing, as Opus writes it: full band, mono, and the flag that all of it is silent.
const OPUS_SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];
/// Silent frames that are coded, so that what sounded before them can fade away.
const OPUS_FADE: u32 = 5;
/// Less than this is silence: half a step of 16 bits.
const SILENT: f32 = 1.0 / 65_536.0;

#[derive(Debug)]
struct Opus {
    encoder: opus::Encoder,
    decoder: opus::Decoder,
    bytes: Vec<u8>,
    /// Silent frames in a row.
    silent: u32,
}

impl Opus {
    fn new() -> Result<Self, CodecError> {
        let rate = CodecKind::Opus.sample_rate();
        let told = |error: opus::Error| failed(CodecKind::Opus, &error);
        let mut encoder =
            opus::Encoder::new(rate, opus::Channels::Mono, opus::Application::Voip).map_err(told)?;
        // A voice at 24 kbit/s with a copy of each packet in the next: most single losses are then made good.
        encoder.set_bitrate(opus::Bitrate::Bits(24_000)).map_err(told)?;
        encoder.set_inband_fec(true).map_err(told)?;
        encoder.set_packet_loss_perc(5).map_err(told)?;
        encoder.set_complexity(5).map_err(told)?;
        let decoder = opus::Decoder::new(rate, opus::Channels::Mono).map_err(told)?;
        Ok(Self { encoder, decoder, bytes: vec![0; OPUS_BYTES], silent: 0 })
    }

    /// Whether a frame needs no coding. An agent is silent most of a call, and coding silence costs as much as coding
    /// speech. The decoder begins anew behind such packets, and so does the coder.
    fn rests(&mut self, samples: &[f32]) -> Result<bool, CodecError> {
        let whole = CodecKind::Opus.sample_rate() as usize / 50;
        if samples.len() != whole || samples.iter().any(|sample| sample.abs() >= SILENT) {
            self.silent = 0;
            return Ok(false);
        }
        self.silent = self.silent.saturating_add(1);
        if self.silent == OPUS_FADE + 1 {
            self.encoder.reset_state().map_err(|error| failed(CodecKind::Opus, &error))?;
        }
        Ok(self.silent > OPUS_FADE)
    }
}

impl Codec for Opus {
    fn kind(&self) -> CodecKind {
        CodecKind::Opus
    }

    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<(), CodecError> {
        if self.rests(samples)? {
            out.extend_from_slice(&OPUS_SILENCE);
            return Ok(());
        }
        let written = self.encoder.encode_float(samples, &mut self.bytes);
        let written = written.map_err(|error| failed(CodecKind::Opus, &error))?;
        out.extend_from_slice(&self.bytes[..written]);
        Ok(())
    }

    fn samples_in(&self, payload: &[u8]) -> usize {
        opus::packet::get_nb_samples(payload, CodecKind::Opus.sample_rate()).unwrap_or(0)
    }

    fn decode(&mut self, payload: &[u8], out: &mut Vec<f32>) -> Result<(), CodecError> {
        if payload.is_empty() {
            // To libopus no payload means a lost one.
            return Err(CodecError { codec: "opus", reason: "an empty packet".to_owned() });
        }
        let before = out.len();
        out.resize(before + CodecKind::Opus.sample_rate() as usize * LONGEST_MS / 1_000, 0.0);
        match self.decoder.decode_float(payload, &mut out[before..], false) {
            Ok(written) => {
                out.truncate(before + written);
                Ok(())
            }
            Err(error) => {
                out.truncate(before);
                Err(failed(CodecKind::Opus, &error))
            }
        }
    }

    fn conceal(&mut self, samples: usize, next: Option<&[u8]>, out: &mut Vec<f32>) {
        let (payload, copy) = match next {
            Some(next) if !next.is_empty() => (next, true),
            Some(_) | None => (&[][..], false),
        };
        let before = out.len();
        out.resize(before + samples, 0.0);
        // It conceals in steps of 2.5 ms; what it will not do stays silent.
        let step = CodecKind::Opus.sample_rate() as usize / 400;
        let whole = samples / step * step;
        if whole > 0 && self.decoder.decode_float(payload, &mut out[before..before + whole], copy).is_err() {
            out[before..].fill(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tone(rate: u32, ms: usize) -> Vec<f32> {
        let step = 440.0 * std::f32::consts::TAU / rate as f32;
        (0..rate as usize * ms / 1_000).map(|n| (n as f32 * step).sin() * 0.3).collect()
    }

    /// Level of what is left when the best match within 30 ms is taken out, against the sound's own level.
    fn distortion_db(sound: &[f32], decoded: &[f32], rate: u32) -> f32 {
        let room = rate as usize * 30 / 1_000;
        let len = sound.len().min(decoded.len()) - room - 800;
        let left = |shift: usize| -> f32 {
            (0..len).map(|n| (sound[800 + n] - decoded[800 + n + shift]).powi(2)).sum::<f32>() / len as f32
        };
        let least = (0..room).map(left).fold(f32::INFINITY, f32::min);
        pcm::power_dbfs(least) - pcm::level_dbfs(&sound[800..800 + len])
    }

    #[test]
    fn every_codec_gives_back_a_tone() {
        for kind in CodecKind::ALL {
            let (mut codec, rate) = (kind.open().unwrap(), kind.sample_rate());
            let sound = tone(rate, 1_000);
            let mut decoded = Vec::new();
            for frame in sound.chunks(rate as usize / 50) {
                let mut bytes = Vec::new();
                codec.encode(frame, &mut bytes).unwrap();
                assert_eq!(codec.samples_in(&bytes), frame.len(), "{kind:?}");
                codec.decode(&bytes, &mut decoded).unwrap();
            }
            assert_eq!(decoded.len(), sound.len());
            let distortion = distortion_db(&sound, &decoded, rate);
            assert!(distortion < -18.0, "{kind:?}: {distortion} dB");
        }
    }

    #[test]
    fn names_and_numbers_are_those_of_the_standards() {
        for kind in CodecKind::ALL {
            assert_eq!(CodecKind::from_name(&kind.name().to_lowercase()), Some(kind));
            let number = kind.payload_type();
            assert_eq!(CodecKind::from_static(number), (number < 96).then_some(kind));
            assert_eq!(kind.samples(kind.ticks(320)), 320);
        }
        assert_eq!(CodecKind::G722.ticks(320), 160);
    }

    #[test]
    fn a_loss_fades_into_silence() {
        for kind in CodecKind::ALL {
            let (mut codec, rate) = (kind.open().unwrap(), kind.sample_rate());
            let (mut bytes, mut decoded) = (Vec::new(), Vec::new());
            for frame in tone(rate, 200).chunks(rate as usize / 50) {
                bytes.clear();
                codec.encode(frame, &mut bytes).unwrap();
                codec.decode(&bytes, &mut decoded).unwrap();
            }
            let mut made_up = Vec::new();
            for _ in 0..10 {
                codec.conceal(rate as usize / 50, None, &mut made_up);
            }
            assert_eq!(made_up.len(), rate as usize / 5);
            let level = |from: usize, to: usize| {
                pcm::level_dbfs(&made_up[rate as usize * from / 1_000..rate as usize * to / 1_000])
            };
            assert!(level(0, 20) > -25.0 && level(180, 200) < level(0, 20) - 20.0, "{kind:?}");
        }
    }

    #[test]
    fn opus_makes_a_single_loss_good_from_the_next_packet() {
        let mut codec = CodecKind::Opus.open().unwrap();
        let sound = tone(16_000, 1_000);
        let frames: Vec<Vec<u8>> = sound
            .chunks(320)
            .map(|frame| {
                let mut bytes = Vec::new();
                codec.encode(frame, &mut bytes).unwrap();
                bytes
            })
            .collect();
        let mut decoded = Vec::new();
        for (n, frame) in frames.iter().enumerate() {
            if n == 30 {
                codec.conceal(320, Some(&frames[31]), &mut decoded);
            } else {
                codec.decode(frame, &mut decoded).unwrap();
            }
        }
        assert!(distortion_db(&sound, &decoded, 16_000) < -12.0);
    }

    #[test]
    fn silence_in_opus_is_not_coded_and_what_follows_sounds_as_before() {
        let mut codec = CodecKind::Opus.open().unwrap();
        let speech = tone(16_000, 500);
        let sound = [&speech[..], &[0.0; 16_000], &speech].concat();
        let (mut sizes, mut decoded) = (Vec::new(), Vec::new());
        for frame in sound.chunks(320) {
            let mut bytes = Vec::new();
            codec.encode(frame, &mut bytes).unwrap();
            sizes.push(bytes.len());
            codec.decode(&bytes, &mut decoded).unwrap();
        }
        assert_eq!(decoded.len(), sound.len());
        assert!(
            sizes[30..75].iter().all(|size| *size == 3) && sizes[75..].iter().all(|size| *size > 3),
            "{sizes:?}"
        );
        assert!(pcm::level_dbfs(&decoded[12_000..23_900]) < -80.0);
        // As well as from the very beginning.
        let first = distortion_db(&speech, &decoded[..8_000], 16_000);
        let second = distortion_db(&speech, &decoded[24_000..], 16_000);
        assert!(second < first + 1.0, "{first} {second}");
    }

    #[test]
    fn a_packet_longer_than_any_is_refused() {
        for kind in [CodecKind::Pcmu, CodecKind::Pcma, CodecKind::G722] {
            let mut out = Vec::new();
            assert!(kind.open().unwrap().decode(&[0; 1_400], &mut out).is_err());
            assert!(out.is_empty());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 1..12), lost in 0usize..2_000,
        ) {
            for kind in CodecKind::ALL {
                let mut codec = kind.open().unwrap();
                let mut out = Vec::new();
                for packet in &packets {
                    let before = out.len();
                    let holds = codec.samples_in(packet);
                    if codec.decode(packet, &mut out).is_ok() {
                        prop_assert_eq!(out.len() - before, holds);
                    }
                }
                codec.conceal(lost, packets.first().map(Vec::as_slice), &mut out);
                prop_assert!(out.iter().all(|sample| sample.is_finite()));
            }
        }
    }
}
