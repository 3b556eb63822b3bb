//! FLAC written while the sound comes in: what has been written can be read, even if nothing comes after it.

use flacenc::bitsink::ByteSink;
use flacenc::component::{BitRepr, Stream, StreamInfo};
use flacenc::config::Encoder;
use flacenc::error::{Verified, Verify};
use flacenc::source::{Fill, FrameBuf};

use super::FlacError;

/// Samples of a channel in a block: a tenth of a second at 16 kHz, which is what a crash can lose.
pub const BLOCK: usize = 1_600;

/// Turns 16-bit sound into the bytes of a FLAC file, block by block.
///
/// The bytes are to be appended to a file that begins with [`header`](Self::header). The header says that the length is
/// unknown; once the sound is over, it may be replaced by that of [`finish`](Self::finish), which is as long.
pub struct FlacStream {
    encoder: Verified<Encoder>,
    info: StreamInfo,
    channels: usize,
    waiting: Vec<i32>,
    blocks: usize,
    samples: usize,
}

impl std::fmt::Debug for FlacStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlacStream").field("samples", &self.samples).finish_non_exhaustive()
    }
}

fn refused(error: impl std::fmt::Display) -> FlacError {
    FlacError::Encode(error.to_string())
}

impl FlacStream {
    /// A file of `channels` channels at `rate` samples per second.
    ///
    /// # Errors
    /// If there are not 1 to 8 channels, or the rate is above 96,000 Hz.
    pub fn new(rate: u32, channels: usize) -> Result<Self, FlacError> {
        let encoder = Encoder::default().into_verified().map_err(|(_, error)| refused(error))?;
        let mut info = StreamInfo::new(rate as usize, channels, 16).map_err(refused)?;
        info.set_block_sizes(BLOCK, BLOCK).map_err(refused)?;
        Ok(Self { encoder, info, channels, waiting: Vec::new(), blocks: 0, samples: 0 })
    }

    /// The bytes that the file begins with.
    ///
    /// # Errors
    /// If the encoder refuses; with what [`new`](Self::new) has accepted it does not.
    pub fn header(&self) -> Result<Vec<u8>, FlacError> {
        let mut sink = ByteSink::new();
        Stream::with_stream_info(self.info.clone()).write(&mut sink).map_err(refused)?;
        Ok(sink.into_inner())
    }

    /// Takes interleaved samples; gives the bytes of the blocks that they complete, which may be none.
    ///
    /// # Errors
    /// If the encoder refuses them.
    pub fn push(&mut self, interleaved: &[i16]) -> Result<Vec<u8>, FlacError> {
        self.waiting.extend(interleaved.iter().map(|sample| i32::from(*sample)));
        let mut bytes = Vec::new();
        while self.waiting.len() >= BLOCK * self.channels {
            let rest = self.waiting.split_off(BLOCK * self.channels);
            let block = std::mem::replace(&mut self.waiting, rest);
            self.encode(&block, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// The bytes of what is left, and the header of the finished file.
    ///
    /// # Errors
    /// If the encoder refuses.
    pub fn finish(mut self) -> Result<(Vec<u8>, Vec<u8>), FlacError> {
        let mut bytes = Vec::new();
        let rest = std::mem::take(&mut self.waiting);
        if rest.len() >= self.channels {
            self.encode(&rest, &mut bytes)?;
        }
        self.info.set_total_samples(self.samples);
        let header = self.header()?;
        Ok((bytes, header))
    }

    fn encode(&mut self, block: &[i32], bytes: &mut Vec<u8>) -> Result<(), FlacError> {
        let size = block.len() / self.channels;
        let mut buffer = FrameBuf::with_size(self.channels, BLOCK).map_err(refused)?;
        buffer.fill_interleaved(block).map_err(refused)?;
        let frame = flacenc::encode_fixed_size_frame(&self.encoder, &buffer, self.blocks, &self.info);
        let mut sink = ByteSink::new();
        frame.map_err(refused)?.write(&mut sink).map_err(refused)?;
        bytes.extend_from_slice(sink.as_slice());
        self.blocks += 1;
        self.samples += size;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flac::decode;
    use crate::pcm;

    fn tones(len: usize) -> Vec<i16> {
        let tone = |n: usize, step: f32| pcm::to_i16((n as f32 * step).sin() * 0.4);
        (0..len).flat_map(|n| [tone(n, 0.05), tone(n, 0.11)]).collect()
    }

    fn interleaved(bytes: Vec<u8>) -> Vec<i16> {
        let clip = decode(bytes).unwrap();
        let side = |n: usize, channel: &Vec<f32>| pcm::to_i16(channel[n]);
        (0..clip.len()).flat_map(|n| clip.channels.iter().map(move |c| side(n, c))).collect()
    }

    #[test]
    fn sound_in_pieces_comes_back_bit_for_bit() {
        for len in [1, 1_599, 1_600, 1_601, 16_000, 23_457] {
            let samples = tones(len);
            let mut stream = FlacStream::new(16_000, 2).unwrap();
            let unknown = stream.header().unwrap();
            let mut body = Vec::new();
            for piece in samples.chunks(320) {
                body.extend(stream.push(piece).unwrap());
            }
            let (rest, header) = stream.finish().unwrap();
            body.extend(rest);
            assert_eq!(header.len(), unknown.len());
            assert_eq!(interleaved([header, body].concat()), samples, "{len} samples");
        }
    }

    #[test]
    fn a_file_that_was_never_finished_is_read_as_far_as_it_goes() {
        let samples = tones(5_000);
        let mut stream = FlacStream::new(16_000, 2).unwrap();
        let mut bytes = stream.header().unwrap();
        bytes.extend(stream.push(&samples).unwrap());
        let heard = interleaved(bytes);
        assert_eq!(heard, samples[..3 * BLOCK * 2]);
    }
}
