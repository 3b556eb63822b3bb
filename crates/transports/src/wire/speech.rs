//! One utterance on its way from the voice's rate to the wire's.

use sayback_core::UtteranceId;
use sayback_media::Resampler;
use sayback_media::pcm;
use sayback_media::resample::ResampleError;

/// Longest utterance in seconds: a voice that does not stop must not fill the memory.
const LONGEST: u64 = 600;
/// Samples that are converted at a time.
const PIECE: usize = 512;

/// Converts an utterance; what comes out begins with its first sample and is exactly as long as it.
#[derive(Debug)]
pub(super) struct Speech {
    pub(super) id: UtteranceId,
    converter: Resampler,
    /// Samples of the converter's delay still to be dropped.
    skip: usize,
    rates: (u64, u64),
    pushed: u64,
    given: u64,
}

impl Speech {
    pub(super) fn new(id: UtteranceId, voice: u32, wire: u32) -> Result<Self, ResampleError> {
        let converter = Resampler::new(voice, wire)?;
        let skip = converter.output_delay();
        let rates = (u64::from(voice), u64::from(wire));
        Ok(Self { id, converter, skip, rates, pushed: 0, given: 0 })
    }

    /// Whether more can be taken.
    pub(super) fn has_room(&self, samples: usize) -> bool {
        self.pushed + samples as u64 <= LONGEST * self.rates.0
    }

    /// Converts more of it and appends what is ready.
    pub(super) fn push(&mut self, samples: &[i16], out: &mut Vec<f32>) {
        self.pushed += samples.len() as u64;
        let mut sound = [0.0; PIECE];
        for piece in samples.chunks(PIECE) {
            for (to, from) in sound.iter_mut().zip(piece) {
                *to = pcm::to_f32(*from);
            }
            self.convert(&sound[..piece.len()], u64::MAX, out);
        }
    }

    /// Pushes the rest out of the converter.
    pub(super) fn finish(&mut self, out: &mut Vec<f32>) {
        let whole = (self.pushed * self.rates.1).div_ceil(self.rates.0);
        while self.given < whole {
            self.convert(&[0.0; PIECE], whole, out);
        }
    }

    fn convert(&mut self, samples: &[f32], whole: u64, out: &mut Vec<f32>) {
        let ready = self.converter.push(samples);
        let skipped = self.skip.min(ready.len());
        self.skip -= skipped;
        let ready = &ready[skipped..];
        let wanted = usize::try_from(whole - self.given).unwrap_or(usize::MAX).min(ready.len());
        out.extend_from_slice(&ready[..wanted]);
        self.given += wanted as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_is_as_long_as_what_went_in() {
        for (voice, wire) in [(22_050, 8_000), (16_000, 8_000), (24_000, 16_000), (8_000, 8_000)] {
            let mut speech = Speech::new(UtteranceId(1), voice, wire).unwrap();
            let mut out = Vec::new();
            for piece in vec![1_000_i16; voice as usize].chunks(333) {
                speech.push(piece, &mut out);
            }
            speech.finish(&mut out);
            assert_eq!(out.len(), wire as usize, "{voice} to {wire}");
        }
    }
}
