//! FLAC files: reading through symphonia, writing through flacenc.

use std::io::Cursor;

use flacenc::component::BitRepr;
use flacenc::error::Verify;
use symphonia::core::audio::GenericAudioBufferRef;
use symphonia::core::codecs::audio::AudioDecoderOptions;
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, TrackType};
use symphonia::core::io::MediaSourceStream;
use symphonia::core::meta::MetadataOptions;

use crate::clip::{Clip, MAX_SAMPLES, RATES};
use crate::pcm;

mod stream;

pub use stream::{BLOCK, FlacStream};

/// What is wrong with a FLAC file, or with sound that should become one.
#[derive(Debug, thiserror::Error)]
pub enum FlacError {
    /// Not FLAC, or broken.
    #[error("broken FLAC after {samples} samples: {reason}; copy or write the file again")]
    Broken {
        /// How many samples of a channel were read before.
        samples: usize,
        /// What the decoder said.
        reason: String,
    },
    /// A rate that no sound has.
    #[error("a sample rate of {0} Hz; between 4000 and 384000 are read")]
    Rate(u32),
    /// More samples than are read into memory.
    #[error("more than {MAX_SAMPLES} samples: cut the file into pieces")]
    TooLong,
    /// The encoder refused the sound.
    #[error("cannot be written as FLAC: {0}")]
    Encode(String),
}

/// Sound from the bytes of a FLAC file.
///
/// # Errors
/// What is wrong with it; a file that breaks off in the middle is an error too.
pub fn decode(bytes: Vec<u8>) -> Result<Clip, FlacError> {
    let broken = |error: Error| FlacError::Broken { samples: 0, reason: error.to_string() };
    let missing = |what: &str| FlacError::Broken { samples: 0, reason: what.to_owned() };
    let source = MediaSourceStream::new(Box::new(Cursor::new(bytes)), Default::default());
    let mut hint = Hint::new();
    hint.with_extension("flac");
    let mut format = symphonia::default::get_probe()
        .probe(&hint, source, FormatOptions::default(), MetadataOptions::default())
        .map_err(broken)?;
    let track = format.default_track(TrackType::Audio).ok_or_else(|| missing("no sound in it"))?;
    let track_id = track.id;
    let expected = track.num_frames.filter(|frames| *frames > 0);
    let params =
        track.codec_params.as_ref().and_then(|p| p.audio()).ok_or_else(|| missing("no format in it"))?;
    let mut decoder = symphonia::default::get_codecs()
        .make_audio_decoder(params, &AudioDecoderOptions::default())
        .map_err(broken)?;
    let mut clip = Clip { rate: params.sample_rate.unwrap_or(0), channels: Vec::new() };
    if !RATES.contains(&clip.rate) {
        return Err(FlacError::Rate(clip.rate));
    }
    let mut block = Vec::new();
    loop {
        let at = clip.len();
        let broken = |error: Error| FlacError::Broken { samples: at, reason: error.to_string() };
        let Some(packet) = format.next_packet().map_err(broken)? else { break };
        if packet.track_id == track_id {
            append(&mut clip, decoder.decode(&packet).map_err(broken)?, &mut block)?;
        }
    }
    match expected {
        Some(frames) if (clip.len() as u64) < frames => Err(FlacError::Broken {
            samples: clip.len(),
            reason: format!("cut off: it should have {frames} samples"),
        }),
        _ => Ok(clip),
    }
}

fn append(
    clip: &mut Clip,
    decoded: GenericAudioBufferRef<'_>,
    block: &mut Vec<Vec<f32>>,
) -> Result<(), FlacError> {
    decoded.copy_to_vecs_planar(block);
    clip.channels.resize_with(block.len(), Vec::new);
    if (clip.len() + decoded.frames()) * clip.channels.len() > MAX_SAMPLES {
        return Err(FlacError::TooLong);
    }
    for (channel, block) in clip.channels.iter_mut().zip(block) {
        channel.extend_from_slice(block);
    }
    Ok(())
}

/// The bytes of a 16-bit FLAC file.
///
/// Channels shorter than the longest are filled up with silence. A recording of a call has the caller left and the
/// agent right.
///
/// # Errors
/// If there is no channel, more than eight, or a rate above 96,000 Hz: FLAC's own limits as far as they are used here.
pub fn encode(clip: &Clip) -> Result<Vec<u8>, FlacError> {
    let refuse = |what: &str| FlacError::Encode(what.to_owned());
    if !(1..=8).contains(&clip.channels.len()) {
        return Err(refuse("it takes 1 to 8 channels"));
    }
    if !(4_000..=96_000).contains(&clip.rate) {
        return Err(refuse("it takes rates of 4000 to 96000 Hz"));
    }
    let frames = clip.channels.iter().map(Vec::len).max().unwrap_or(0);
    let sample =
        |frame: usize, channel: &Vec<f32>| i32::from(pcm::to_i16(channel.get(frame).copied().unwrap_or(0.0)));
    let samples: Vec<i32> = (0..frames)
        .flat_map(|frame| clip.channels.iter().map(move |channel| sample(frame, channel)))
        .collect();
    let config =
        flacenc::config::Encoder::default().into_verified().map_err(|(_, e)| refuse(&e.to_string()))?;
    let source =
        flacenc::source::MemSource::from_samples(&samples, clip.channels.len(), 16, clip.rate as usize);
    let mut stream = flacenc::encode_with_fixed_block_size(&config, source, config.block_size)
        .map_err(|e| refuse(&e.to_string()))?;
    // The least block length is that of all blocks but the last (RFC 9639, 8.2); the encoder counts the last one in,
    // and readers refuse the file if that is a short one.
    stream
        .stream_info_mut()
        .set_block_sizes(config.block_size, config.block_size)
        .map_err(|e| refuse(&e.to_string()))?;
    let mut sink = flacenc::bitsink::ByteSink::new();
    stream.write(&mut sink).map_err(|e| refuse(&e.to_string()))?;
    Ok(sink.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call(len: usize) -> Clip {
        let tone =
            |step: f32| (0..len).map(|n| pcm::to_f32(pcm::to_i16((n as f32 * step).sin() * 0.4))).collect();
        Clip { rate: 16_000, channels: vec![tone(0.05), tone(0.11)] }
    }

    #[test]
    fn a_call_comes_back_bit_for_bit_with_its_sides_in_place() {
        for len in [1, 15, 16, 4_096, 4_097, 10_000] {
            let clip = call(len);
            assert_eq!(decode(encode(&clip).unwrap()).unwrap(), clip, "{len} samples");
        }
    }

    #[test]
    fn a_file_cut_in_the_middle_is_an_error() {
        let mut bytes = encode(&call(40_000)).unwrap();
        bytes.truncate(bytes.len() / 2);
        assert!(matches!(decode(bytes), Err(FlacError::Broken { .. })));
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        assert!(encode(&Clip { rate: 16_000, channels: Vec::new() }).is_err());
        assert!(encode(&Clip::mono(0, vec![0.0])).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn broken_bytes_never_panic(at in 0usize..2_000, byte: u8) {
            let mut bytes = encode(&call(1_000)).unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = decode(bytes);
        }
    }
}
