//! Two calls of one server whose callers hear each other.
//!
//! ```text
//! caller ═ packets ═ Media ── Passed ──▶ Media ═ packets ═ whoever was called
//!                      ◀────── Passed ──
//! ```
//!
//! Sound is decoded and encoded again, so the two may have codecs, keys and paces of their own. A side that is slow
//! loses sound and keeps nobody waiting; a side that goes ends the other.

use sayback_media::resample::{ResampleError, Resampler};
use sayback_runtime::ears::RATE;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Blocks that may wait on the way: a second of sound.
const WAITING: usize = 50;

/// What one side gives the other.
#[derive(Debug)]
pub(super) enum Passed {
    /// Sound at [`RATE`].
    Sound(Vec<f32>),
    /// A key.
    Digit(char),
}

/// One side's end.
#[derive(Debug)]
pub(super) struct Joint {
    to: Sender<Passed>,
    from: Receiver<Passed>,
    converter: Option<(u32, Resampler)>,
}

/// The two ends.
pub(super) fn joints() -> (Joint, Joint) {
    let ((to, there), (back, from)) = (channel(WAITING), channel(WAITING));
    let joint = |to, from| Joint { to, from, converter: None };
    (joint(to, from), joint(back, there))
}

impl Joint {
    /// Gives something to the other side; without room it is lost.
    pub(super) fn give(&self, passed: Passed) {
        let _ = self.to.try_send(passed);
    }

    /// What the other side gives; `None`: it is gone. May be dropped while it waits.
    pub(super) async fn take(&mut self) -> Option<Passed> {
        self.from.recv().await
    }

    /// The other side's sound at this side's rate.
    ///
    /// # Errors
    /// If the rate is none that is converted.
    pub(super) fn fit(&mut self, samples: &[f32], rate: u32) -> Result<&[f32], ResampleError> {
        let (known, converter) = match self.converter.take() {
            Some((known, converter)) if known == rate => (known, converter),
            Some(_) | None => (rate, Resampler::new(RATE, rate)?),
        };
        let (_, converter) = self.converter.insert((known, converter));
        Ok(converter.push(samples))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_one_side_gives_the_other_takes_and_whoever_goes_is_noticed() {
        let (here, mut there) = joints();
        here.give(Passed::Digit('5'));
        assert!(matches!(there.take().await, Some(Passed::Digit('5'))));
        drop(here);
        assert!(there.take().await.is_none());
    }

    #[tokio::test]
    async fn a_slow_side_keeps_nobody_waiting() {
        let (here, _there) = joints();
        for _ in 0..WAITING * 2 {
            here.give(Passed::Sound(vec![0.0; 160]));
        }
    }

    #[test]
    fn sound_comes_at_the_rate_of_whoever_takes_it() {
        let (mut joint, _other) = joints();
        let got: usize = (0..100).map(|_| joint.fit(&[0.1; 320], 8_000).unwrap().len()).sum();
        assert!((15_500..=16_000).contains(&got), "{got}");
        assert_eq!(joint.fit(&[0.1; 320], RATE).unwrap().len(), 320, "another codec, the same sound");
    }
}
