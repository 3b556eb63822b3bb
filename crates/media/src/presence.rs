//! Whether the agent's own voice reaches the microphone at all.

use crate::echo::EchoDetector;
use crate::pcm;

/// Samples of one look, at 16,000 Hz: half a second.
const LOOK: usize = 8_000;
/// Below this level, in dBFS, nothing was played that could come back.
const AUDIBLE_DBFS: f32 = -50.0;
/// From this likeness on it is heard. Two voices reach 0.3 by chance.
const HEARD: f32 = 0.3;
/// Below this likeness it is not. What lies between says nothing.
const NOT_HEARD: f32 = 0.2;
/// How many looks in a row must say so.
const LOOKS: u8 = 2;

/// Tells a headset from a loudspeaker while the agent speaks.
///
/// An echo canceller that has no echo to cancel takes the caller instead: 27 to 41 dB of a voice over the agent's were
/// measured to be gone, and with them the interruption. So it is left out while nothing comes back. Until the agent has
/// spoken for a second nothing is known, and echo is assumed; one look that finds it is enough to assume it again.
#[derive(Debug)]
pub struct EchoPresence {
    detector: EchoDetector,
    pushed: u64,
    look: usize,
    audible: usize,
    misses: u8,
    assumed: bool,
}

impl Default for EchoPresence {
    fn default() -> Self {
        Self::new()
    }
}

impl EchoPresence {
    /// Nothing was played yet.
    pub fn new() -> Self {
        Self { detector: EchoDetector::new(), pushed: 0, look: 0, audible: 0, misses: 0, assumed: true }
    }

    /// Takes what was played and what the microphone heard in the same stretch, at 16,000 Hz; the shorter one counts.
    pub fn push(&mut self, played: &[f32], heard: &[f32]) {
        let len = played.len().min(heard.len());
        self.detector.played(&played[..len]);
        self.detector.heard(&heard[..len]);
        self.pushed += len as u64;
        self.look += len;
        if len > 0 && pcm::level_dbfs(&played[..len]) > AUDIBLE_DBFS {
            self.audible += len;
        }
        if self.look >= LOOK {
            if self.audible * 3 >= self.look {
                self.judge();
            }
            self.look = 0;
            self.audible = 0;
        }
    }

    /// Whether echo has to be reckoned with.
    pub fn is_assumed(&self) -> bool {
        self.assumed
    }

    fn judge(&mut self) {
        let found = self.detector.find(self.pushed - self.look as u64, self.pushed);
        let strength = found.map_or(0.0, |found| found.strength);
        if strength >= HEARD {
            self.assumed = true;
            self.misses = 0;
        } else if strength < NOT_HEARD {
            self.misses = self.misses.saturating_add(1);
            self.assumed &= self.misses < LOOKS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Cascade;
    use crate::noise::WhiteNoise;

    const SECOND: usize = 16_000;

    fn voice(seed: u64, len: usize) -> Vec<f32> {
        let mut sound = WhiteNoise::new(seed).samples(len, -10.0);
        Cascade::band_pass(16_000, 200.0, 2_500.0).process(&mut sound);
        let rhythm = 0.0011 + seed as f32 * 0.0001;
        sound.iter().enumerate().map(|(n, s)| s * (n as f32 * rhythm).sin().max(0.0)).collect()
    }

    fn after(played: &[f32], heard: &[f32]) -> bool {
        let mut presence = EchoPresence::new();
        for (played, heard) in played.chunks(160).zip(heard.chunks(160)) {
            presence.push(played, heard);
        }
        presence.is_assumed()
    }

    fn room(played: &[f32], delay: usize, gain: f32) -> Vec<f32> {
        let noise = WhiteNoise::new(77).samples(played.len(), -60.0);
        (0..played.len()).map(|n| noise[n] + gain * n.checked_sub(delay).map_or(0.0, |n| played[n])).collect()
    }

    #[test]
    fn echo_is_assumed_until_the_agent_was_heard_to_be_elsewhere() {
        let played = voice(1, 4 * SECOND);
        let quiet = WhiteNoise::new(3).samples(played.len(), -60.0);
        assert!(after(&played[..SECOND / 2], &quiet[..SECOND / 2]), "too early to tell");
        assert!(!after(&played, &quiet));
        assert!(after(&vec![0.0; 4 * SECOND], &quiet), "nothing was played");
    }

    #[test]
    fn a_caller_over_a_headset_is_no_echo() {
        let played = voice(1, 6 * SECOND);
        let mut heard = WhiteNoise::new(3).samples(played.len(), -60.0);
        heard[3 * SECOND..].iter_mut().zip(voice(5, 3 * SECOND)).for_each(|(h, c)| *h += c);
        assert!(!after(&played, &heard));
    }

    #[test]
    fn a_loudspeaker_is_heard_with_any_delay_and_when_it_is_turned_up_late() {
        let played = voice(1, 6 * SECOND);
        for delay in [0, 400, 1_600, 5_600] {
            for gain in [0.02, 0.2, 0.7] {
                assert!(after(&played, &room(&played, delay, gain)), "{delay} samples, {gain}");
            }
        }
        let mut late = room(&played, 1_600, 0.0);
        late[4 * SECOND..].copy_from_slice(&room(&played, 1_600, 0.2)[4 * SECOND..]);
        assert!(!after(&played[..4 * SECOND], &late[..4 * SECOND]));
        assert!(after(&played, &late));
    }
}
