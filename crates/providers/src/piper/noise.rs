//! Gaussian noise that is the same for the same seed on every machine.

/// A xorshift generator with Box and Muller's transform.
#[derive(Debug)]
pub(super) struct Noise {
    state: u64,
}

impl Noise {
    /// Noise for a sequence of phoneme ids: the same text sounds the same.
    pub(super) fn seeded(ids: &[i32]) -> Self {
        // FNV-1a over the ids; never zero, which xorshift could not leave.
        let hash = ids.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &id| {
            (hash ^ u64::from(id.unsigned_abs())).wrapping_mul(0x0100_0000_01b3)
        });
        Self { state: hash | 1 }
    }

    /// `count` samples with mean 0 and variance 1.
    pub(super) fn take(&mut self, count: usize) -> Vec<f32> {
        let mut samples = Vec::with_capacity(count + 1);
        while samples.len() < count {
            let radius = (-2.0 * self.uniform().ln()).sqrt();
            let (sine, cosine) = (std::f32::consts::TAU * self.uniform()).sin_cos();
            samples.extend([radius * cosine, radius * sine]);
        }
        samples.truncate(count);
        samples
    }

    /// In (0, 1], in steps of 2^-24.
    fn uniform(&mut self) -> f32 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        #[expect(clippy::cast_precision_loss, reason = "24 bits fit")]
        let numerator = ((self.state >> 40) + 1) as f32;
        numerator / 16_777_216.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_normal_and_follows_its_seed() {
        let samples = Noise::seeded(&[1, 2, 3]).take(20_001);
        assert_eq!(samples, Noise::seeded(&[1, 2, 3]).take(20_001));
        assert_ne!(samples, Noise::seeded(&[1, 2, 4]).take(20_001));
        let mean = samples.iter().sum::<f32>() / 20_001.0;
        let variance = samples.iter().map(|sample| sample * sample).sum::<f32>() / 20_001.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
