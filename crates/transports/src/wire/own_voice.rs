//! Looks for our own voice in what comes in: it tells how long the way to the ear and back is.

use std::time::Duration;

use sayback_media::pcm::level_dbfs;
use sayback_runtime::ears::{Ears, RATE};

/// How much is looked at, and how often: two seconds of sound, of which we spoke a third.
const LOOK: usize = 2 * RATE as usize;
const LOOKED_AT: Duration = Duration::from_millis(1_500);
/// Below this level, in dBFS, nothing was sent that could come back.
const AUDIBLE_DBFS: f32 = -50.0;
/// Two looks must agree within this: one alone may be a chance.
const AGREES: Duration = Duration::from_millis(10);

/// One call's search.
#[derive(Debug, Default)]
pub(super) struct OwnVoice {
    heard: usize,
    audible: usize,
    last: Option<Duration>,
}

impl OwnVoice {
    /// So much was heard while `played` was sent; says how long our voice took to come back, once two looks agree.
    pub(super) fn push(&mut self, played: &[f32], ears: &Ears) -> Option<Duration> {
        self.heard += played.len();
        if !played.is_empty() && level_dbfs(played) > AUDIBLE_DBFS {
            self.audible += played.len();
        }
        if self.heard < LOOK {
            return None;
        }
        let spoke = self.audible * 3 >= self.heard;
        (self.heard, self.audible) = (0, 0);
        if !spoke {
            return None;
        }
        let found = ears.own_voice(LOOKED_AT);
        let agrees = found.zip(self.last).filter(|(now, before)| now.abs_diff(*before) <= AGREES);
        self.last = found;
        agrees.map(|(now, _)| now)
    }
}
