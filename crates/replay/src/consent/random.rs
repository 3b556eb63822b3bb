//! Numbers that look random and are the same everywhere.

/// SplitMix64.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// The same seed, the same numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A whole number from `from` up to, but not with, `to`; `from` if there is none.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        let width = to.saturating_sub(from).max(1).unsigned_abs();
        from.saturating_add((self.bits() % width) as i64)
    }

    /// True so often in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.bits() % 100 < percent
    }

    /// Normally distributed, mean 0, variance 1.
    pub fn normal(&mut self) -> f64 {
        let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let (a, b) = (unit(self.bits()), unit(self.bits()));
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_and_the_spread_that_they_should() {
        let mut random = Random::new(7);
        let draws: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
        assert!((0..1_000).all(|_| (-5..5).contains(&random.between(-5, 5))));
        assert_eq!(random.between(4, 4), 4);
    }
}
