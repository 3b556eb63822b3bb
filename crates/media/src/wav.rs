//! WAV files: reading of any PCM width, floating point and G.711, writing of 16 bits.
//!
//! The reader believes no header: it never takes memory for more than the file really holds, and says what is wrong
//! and where. Lengths that recorders leave open while they stream (zero, or all ones) mean "to the end".

use crate::clip::{Clip, MAX_SAMPLES, RATES};
use crate::pcm;
use crate::telephone::{alaw_decode, mulaw_decode};

/// Most channels that are read.
const MAX_CHANNELS: u16 = 64;

/// What is wrong with a WAV file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WavError {
    /// No RIFF, RIFX or RF64 header.
    #[error(
        "not a WAV file: it does not begin with RIFF and WAVE; convert it, for example with `sox IN out.wav`"
    )]
    NotWav,
    /// The `fmt ` chunk is not there, or comes after the sound.
    #[error("no `fmt ` chunk before the sound: rate and width are unknown; write the file anew")]
    NoFormat,
    /// The `fmt ` chunk is shorter than its fields.
    #[error("the `fmt ` chunk at byte {at} has {len} bytes, 16 are needed; write the file anew")]
    ShortFormat {
        /// Where the chunk begins.
        at: usize,
        /// How many bytes it has.
        len: usize,
    },
    /// No `data` chunk.
    #[error("no `data` chunk: the file holds no sound; write it anew")]
    NoData,
    /// The `data` chunk claims more than there is.
    #[error("cut off: the sound should have {claimed} bytes and has {present}; copy or write the file again")]
    CutOff {
        /// By the header.
        claimed: u64,
        /// Really there.
        present: usize,
    },
    /// A chunk before the sound runs past the end of the file.
    #[error("the chunk `{name}` at byte {at} runs past the end of the file; write the file anew")]
    BadChunk {
        /// The chunk's name.
        name: String,
        /// Where it begins.
        at: usize,
    },
    /// A rate that no sound has.
    #[error("a sample rate of {0} Hz; between 4000 and 384000 are read")]
    Rate(u32),
    /// No channel, or too many.
    #[error("{0} channels; 1 to 64 are read")]
    Channels(u16),
    /// A compression or width that is not read.
    #[error(
        "samples of format {tag:#06x} with {bits} bits; PCM of 8, 16, 24 or 32 bits, float of 32 or 64 and G.711 are \
         read: convert it, for example with `sox IN -b 16 -e signed out.wav`"
    )]
    Unsupported {
        /// The format tag.
        tag: u16,
        /// Bits per sample.
        bits: u16,
    },
    /// More samples than are read into memory.
    #[error("{0} samples; at most {MAX_SAMPLES} are read: cut the file into pieces")]
    TooLong(usize),
}

/// How the samples of a file are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    U8,
    I16,
    I24,
    I32,
    F32,
    F64,
    Mulaw,
    Alaw,
}

impl Coding {
    /// By format tag and the bytes that one sample takes.
    fn of(tag: u16, bytes: usize) -> Option<Self> {
        match (tag, bytes) {
            (1, 1) => Some(Self::U8),
            (1, 2) => Some(Self::I16),
            (1, 3) => Some(Self::I24),
            (1, 4) => Some(Self::I32),
            (3, 4) => Some(Self::F32),
            (3, 8) => Some(Self::F64),
            (6, 1) => Some(Self::Alaw),
            (7, 1) => Some(Self::Mulaw),
            _ => None,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::Mulaw | Self::Alaw => 1,
            Self::I16 => 2,
            Self::I24 => 3,
            Self::I32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// One sample from its bytes, least significant first.
    fn sample(self, b: &[u8]) -> f32 {
        let sample = match (self, b) {
            (Self::U8, &[a]) => (f32::from(a) - 128.0) / 128.0,
            (Self::Mulaw, &[a]) => pcm::to_f32(mulaw_decode(a)),
            (Self::Alaw, &[a]) => pcm::to_f32(alaw_decode(a)),
            (Self::I16, &[a, b]) => pcm::to_f32(i16::from_le_bytes([a, b])),
            (Self::I24, &[a, b, c]) => (i32::from_le_bytes([0, a, b, c]) >> 8) as f32 / 8_388_608.0,
            (Self::I32, &[a, b, c, d]) => {
                (f64::from(i32::from_le_bytes([a, b, c, d])) / 2_147_483_648.0) as f32
            }
            (Self::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
            (Self::F64, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]) as f32,
            _ => 0.0,
        };
        // A broken float must not poison every filter behind it.
        if sample.is_finite() { sample } else { 0.0 }
    }
}

/// What the `fmt ` chunk says.
#[derive(Clone, Copy, Debug)]
struct Format {
    rate: u32,
    channels: u16,
    coding: Coding,
}

/// The bytes of a file and in which order its numbers are written.
#[derive(Clone, Copy)]
struct Riff<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl Riff<'_> {
    fn u16(&self, at: usize) -> Option<u16> {
        let b: [u8; 2] = self.bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if self.big_endian { u16::from_be_bytes(b) } else { u16::from_le_bytes(b) })
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let b: [u8; 4] = self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.big_endian { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) })
    }
}

/// Sound from the bytes of a WAV file (RIFF, RIFX or RF64).
///
/// # Errors
/// What is wrong with it.
pub fn decode(bytes: &[u8]) -> Result<Clip, WavError> {
    let big_endian = match (bytes.get(..4), bytes.get(8..12)) {
        (Some(b"RIFF" | b"RF64"), Some(b"WAVE")) => false,
        (Some(b"RIFX"), Some(b"WAVE")) => true,
        _ => return Err(WavError::NotWav),
    };
    let riff = Riff { bytes, big_endian };
    let mut format = None;
    let mut at = 12;
    while let (Some(name), Some(len)) = (bytes.get(at..at + 4), riff.u32(at + 4)) {
        let body = at + 8;
        if name == b"data" {
            let format = format.ok_or(WavError::NoFormat)?;
            return samples(&riff, format, body, len);
        }
        let end = body.checked_add(len as usize).filter(|end| *end <= bytes.len());
        let end = end.ok_or_else(|| bad_chunk(name, at))?;
        if name == b"fmt " {
            format = Some(read_format(&riff, at, len as usize)?);
        }
        // Chunks begin at even bytes.
        at = end + (end & 1);
    }
    Err(if format.is_some() { WavError::NoData } else { WavError::NoFormat })
}

fn bad_chunk(name: &[u8], at: usize) -> WavError {
    WavError::BadChunk { name: name.escape_ascii().to_string(), at }
}

fn read_format(riff: &Riff<'_>, at: usize, len: usize) -> Result<Format, WavError> {
    let short = WavError::ShortFormat { at, len };
    if len < 16 {
        return Err(short);
    }
    let body = at + 8;
    let field = |offset| riff.u16(body + offset);
    let (Some(mut tag), Some(channels), Some(rate), Some(align), Some(bits)) =
        (field(0), field(2), riff.u32(body + 4), field(12), field(14))
    else {
        return Err(short);
    };
    if tag == 0xfffe && len >= 26 {
        // The extensible form keeps the tag in the first bytes of a longer id.
        tag = field(24).unwrap_or(tag);
    }
    if !RATES.contains(&rate) {
        return Err(WavError::Rate(rate));
    }
    if channels == 0 || channels > MAX_CHANNELS {
        return Err(WavError::Channels(channels));
    }
    // A sample may sit in a wider container (20 bits in three bytes): the block says how wide.
    let bytes = usize::from(align / channels);
    let fits = align % channels == 0 && usize::from(bits) <= bytes * 8;
    let coding = Coding::of(tag, bytes).filter(|_| fits).ok_or(WavError::Unsupported { tag, bits })?;
    Ok(Format { rate, channels, coding })
}

fn samples(riff: &Riff<'_>, format: Format, body: usize, claimed: u32) -> Result<Clip, WavError> {
    let present = riff.bytes.get(body..).unwrap_or_default();
    let open = claimed >= 0x7fff_f000 || (claimed == 0 && !present.is_empty());
    let data = match present.get(..claimed as usize) {
        _ if open => present,
        Some(data) => data,
        None => return Err(WavError::CutOff { claimed: claimed.into(), present: present.len() }),
    };
    let width = format.coding.bytes();
    let channels = usize::from(format.channels);
    let frames = data.len() / (width * channels);
    if frames.saturating_mul(channels) > MAX_SAMPLES {
        return Err(WavError::TooLong(frames.saturating_mul(channels)));
    }
    let channel = |channel: usize| {
        let first = data.get(channel * width..).unwrap_or_default();
        let frames = first.chunks(width * channels).take(frames);
        frames.map(|frame| read_sample(format.coding, &frame[..width], riff.big_endian)).collect()
    };
    Ok(Clip { rate: format.rate, channels: (0..channels).map(channel).collect() })
}

fn read_sample(coding: Coding, bytes: &[u8], big_endian: bool) -> f32 {
    if !big_endian {
        return coding.sample(bytes);
    }
    let mut swapped = [0; 8];
    swapped[..bytes.len()].copy_from_slice(bytes);
    swapped[..bytes.len()].reverse();
    coding.sample(&swapped[..bytes.len()])
}

/// The bytes of a 16-bit WAV file.
///
/// Channels shorter than the longest are filled up with silence.
pub fn encode(clip: &Clip) -> Vec<u8> {
    let channels = clip.channels.len().max(1) as u32;
    let frames = clip.channels.iter().map(Vec::len).max().unwrap_or(0);
    let data_len = frames as u32 * channels * 2;
    let mut out = Vec::with_capacity(44 + data_len as usize);
    out.extend_from_slice(b"RIFF");
    out.extend_from_slice(&data_len.saturating_add(36).to_le_bytes());
    out.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0");
    out.extend_from_slice(&(channels as u16).to_le_bytes());
    out.extend_from_slice(&clip.rate.to_le_bytes());
    out.extend_from_slice(&(clip.rate * channels * 2).to_le_bytes());
    out.extend_from_slice(&(channels as u16 * 2).to_le_bytes());
    out.extend_from_slice(&16u16.to_le_bytes());
    out.extend_from_slice(b"data");
    out.extend_from_slice(&data_len.to_le_bytes());
    for frame in 0..frames {
        for channel in &clip.channels {
            let sample = channel.get(frame).copied().unwrap_or(0.0);
            out.extend_from_slice(&pcm::to_i16(sample).to_le_bytes());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file by hand: header fields as given, then the bytes of the sound.
    fn file(tag: u16, channels: u16, bits: u16, data: &[u8]) -> Vec<u8> {
        let align = channels * bits / 8;
        let mut out = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0".to_vec();
        out.extend(tag.to_le_bytes());
        out.extend(channels.to_le_bytes());
        out.extend(8_000u32.to_le_bytes());
        out.extend((8_000 * u32::from(align)).to_le_bytes());
        out.extend(align.to_le_bytes());
        out.extend(bits.to_le_bytes());
        out.extend(b"data");
        out.extend((data.len() as u32).to_le_bytes());
        out.extend(data);
        out
    }

    fn first(tag: u16, bits: u16, data: &[u8]) -> f32 {
        decode(&file(tag, 1, bits, data)).unwrap().channels[0][0]
    }

    #[test]
    fn every_width_is_read() {
        assert_eq!(first(1, 8, &[192]), 0.5);
        assert_eq!(first(1, 16, &[0, 0xc0]), -0.5);
        assert_eq!(first(1, 24, &[0, 0, 0x40]), 0.5);
        assert_eq!(first(1, 32, &[0, 0, 0, 0xc0]), -0.5);
        assert_eq!(first(3, 32, &0.25f32.to_le_bytes()), 0.25);
        assert_eq!(first(3, 64, &0.25f64.to_le_bytes()), 0.25);
        assert_eq!(first(7, 8, &[0x80]), 32_124.0 / 32_768.0);
        assert_eq!(first(6, 8, &[0x2a]), -32_256.0 / 32_768.0);
    }

    #[test]
    fn a_float_that_is_none_is_silence() {
        assert_eq!(first(3, 32, &f32::NAN.to_le_bytes()), 0.0);
        assert_eq!(first(3, 32, &f32::INFINITY.to_le_bytes()), 0.0);
    }

    #[test]
    fn big_endian_files_are_read() {
        let bytes = b"RIFX\0\0\0\x28WAVEfmt \0\0\0\x10\0\x01\0\x01\0\0\x1f\x40\0\0\x3e\x80\0\x02\0\x10data\0\0\0\x02\x40\0";
        assert_eq!(decode(bytes).unwrap(), Clip::mono(8_000, vec![0.5]));
    }

    #[test]
    fn a_header_that_claims_too_much_is_an_error_and_takes_no_memory() {
        let mut bytes = file(1, 1, 16, &[1, 2, 3, 4]);
        bytes[40..44].copy_from_slice(&0x7000_0000u32.to_le_bytes());
        assert_eq!(decode(&bytes), Err(WavError::CutOff { claimed: 0x7000_0000, present: 4 }));
    }

    #[test]
    fn a_length_left_open_means_to_the_end() {
        for open in [0u32, 0x7fff_ffff, u32::MAX] {
            let mut bytes = file(1, 1, 16, &[0, 0x40]);
            bytes[40..44].copy_from_slice(&open.to_le_bytes());
            assert_eq!(decode(&bytes).unwrap().channels, [vec![0.5]]);
        }
    }

    #[test]
    fn broken_headers_are_named() {
        let good = file(1, 1, 16, &[0, 0]);
        let with = |at: usize, bytes: &[u8]| {
            let mut broken = good.clone();
            broken[at..at + bytes.len()].copy_from_slice(bytes);
            decode(&broken).unwrap_err()
        };
        assert_eq!(with(8, b"AVI "), WavError::NotWav);
        assert_eq!(with(12, b"junk"), WavError::NoFormat);
        assert_eq!(with(22, &[0, 0]), WavError::Channels(0));
        assert_eq!(with(24, &1_092_676u32.to_le_bytes()), WavError::Rate(1_092_676));
        assert_eq!(with(20, &[0x55, 0]), WavError::Unsupported { tag: 0x55, bits: 16 });
        assert_eq!(with(36, b"none"), WavError::NoData);
        assert_eq!(with(16, &[255, 0, 0, 0]), WavError::BadChunk { name: "fmt ".into(), at: 12 });
        assert_eq!(with(16, &[4, 0, 0, 0]), WavError::ShortFormat { at: 12, len: 4 });
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(left in prop::collection::vec(any::<i16>(), 0..200), stereo: bool) {
            let samples: Vec<f32> = left.into_iter().map(pcm::to_f32).collect();
            let channels = if stereo { vec![samples.clone(), samples] } else { vec![samples] };
            let clip = Clip { rate: 16_000, channels };
            prop_assert_eq!(decode(&encode(&clip)).unwrap(), clip);
        }

        #[test]
        fn no_bytes_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120), at in 0usize..60, good: bool) {
            if good {
                let mut file = file(1, 2, 16, &[0; 32]);
                let at = at.min(file.len() - 1);
                file[at] = bytes.first().copied().unwrap_or(0xff);
                bytes = file;
            }
            let _ = decode(&bytes);
        }
    }
}
