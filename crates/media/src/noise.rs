//! Noise, reproducible from a seed, and mixing at a stated distance.

use crate::pcm;

/// White noise from a seed: the same seed gives the same noise on every machine.
#[derive(Clone, Debug)]
pub struct WhiteNoise {
    state: u64,
}

impl WhiteNoise {
    /// Noise of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed ^ 0x9e37_79b9_7f4a_7c15 }
    }

    /// The next sample, evenly spread between -1 and 1.
    pub fn sample(&mut self) -> f32 {
        // SplitMix64: any seed will do, zero included.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let unit = ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32;
        2.0 * unit - 1.0
    }

    /// So many samples at a level in dB relative to full scale.
    pub fn samples(&mut self, len: usize, level_dbfs: f32) -> Vec<f32> {
        // Evenly spread noise is 4.77 dB below full scale.
        let gain = pcm::gain(level_dbfs + 4.771);
        (0..len).map(|_| self.sample() * gain).collect()
    }
}

/// Level of the loud parts of some speech in dB relative to full scale: the mean power of those 20 ms frames that lie
/// within 20 dB of the loudest, so that pauses do not make a recording quieter than its voice.
pub fn active_level_dbfs(speech: &[f32], rate: u32) -> f32 {
    let frame = (rate as usize / 50).max(1);
    let powers: Vec<f32> = speech.chunks(frame).map(pcm::power).collect();
    let loudest = powers.iter().copied().fold(0.0, f32::max);
    let active = || powers.iter().filter(|p| **p > 0.0 && **p >= loudest / 100.0);
    pcm::power_dbfs(active().sum::<f32>() / active().count().max(1) as f32)
}

/// Adds noise to speech so that the speech's active level lies `snr_db` above the noise's; the noise is repeated if it
/// is shorter, and left as it is if it is silent.
pub fn mix_at_snr(speech: &mut [f32], noise: &[f32], rate: u32, snr_db: f32) {
    let noise_level = pcm::level_dbfs(noise);
    if noise.is_empty() || noise_level <= pcm::SILENCE_DBFS {
        return;
    }
    let gain = pcm::gain(active_level_dbfs(speech, rate) - snr_db - noise_level);
    for (sample, noise) in speech.iter_mut().zip(noise.iter().cycle()) {
        *sample += noise * gain;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_the_same_for_a_seed_and_at_the_level_asked_for() {
        let noise = WhiteNoise::new(7).samples(48_000, -30.0);
        assert_eq!(noise, WhiteNoise::new(7).samples(48_000, -30.0));
        assert_ne!(noise, WhiteNoise::new(8).samples(48_000, -30.0));
        assert!((pcm::level_dbfs(&noise) + 30.0).abs() < 0.2);
    }

    #[test]
    fn mixing_keeps_the_stated_distance_however_much_pause_there_is() {
        let tone = |n: usize| if n < 8_000 { (n as f32 * 0.3).sin() * 0.1 } else { 0.0 };
        let clean: Vec<f32> = (0..64_000).map(tone).collect();
        let mut mixed = clean.clone();
        mix_at_snr(&mut mixed, &WhiteNoise::new(1).samples(10_000, -6.0), 16_000, 20.0);
        let added: Vec<f32> = mixed.iter().zip(&clean).map(|(m, c)| m - c).collect();
        let snr = active_level_dbfs(&clean, 16_000) - pcm::level_dbfs(&added);
        assert!((snr - 20.0).abs() < 0.3, "{snr}");
    }
}
