//! Recursive filters of second order, in cascade.

use std::f64::consts::PI;

/// One second-order section, transposed direct form II.
#[derive(Clone, Copy, Debug)]
struct Section {
    b: [f64; 3],
    a: [f64; 2],
    state: [f64; 2],
}

impl Section {
    fn high_pass(rate: u32, hz: f64, q: f64) -> Self {
        let (cos, alpha) = Self::angle(rate, hz, q);
        let b = (1.0 + cos) / 2.0;
        Self::normalised([b, -(1.0 + cos), b], cos, alpha)
    }

    fn low_pass(rate: u32, hz: f64, q: f64) -> Self {
        let (cos, alpha) = Self::angle(rate, hz, q);
        let b = (1.0 - cos) / 2.0;
        Self::normalised([b, 1.0 - cos, b], cos, alpha)
    }

    fn angle(rate: u32, hz: f64, q: f64) -> (f64, f64) {
        let w = 2.0 * PI * hz / f64::from(rate);
        (w.cos(), w.sin() / (2.0 * q))
    }

    fn normalised(b: [f64; 3], cos: f64, alpha: f64) -> Self {
        let a0 = 1.0 + alpha;
        Self { b: b.map(|b| b / a0), a: [-2.0 * cos / a0, (1.0 - alpha) / a0], state: [0.0; 2] }
    }

    fn step(&mut self, x: f64) -> f64 {
        let y = self.b[0] * x + self.state[0];
        self.state[0] = self.b[1] * x - self.a[0] * y + self.state[1];
        self.state[1] = self.b[2] * x - self.a[1] * y;
        y
    }
}

/// What is left of sound in a filter that is taken for nothing: a thousandth of the last of 24 bits.
const REST: f64 = 1e-10;

/// The two quality factors of a Butterworth filter of order four.
const BUTTERWORTH_4: [f64; 2] = [0.541_196_1, 1.306_563];

/// A cascade of second-order sections; keeps its state from call to call, so chunks join without a click.
#[derive(Clone, Debug)]
pub struct Cascade {
    sections: Vec<Section>,
}

impl Cascade {
    /// Lets through what lies between two frequencies in Hz, 24 dB per octave outside.
    ///
    /// A corner at or above half the rate is left away: there is nothing to remove.
    pub fn band_pass(rate: u32, low: f64, high: f64) -> Self {
        let mut sections: Vec<Section> = BUTTERWORTH_4.map(|q| Section::high_pass(rate, low, q)).to_vec();
        if high < 0.45 * f64::from(rate) {
            sections.extend(BUTTERWORTH_4.map(|q| Section::low_pass(rate, high, q)));
        }
        Self { sections }
    }

    /// Removes what lies below a frequency in Hz: mains hum, wind, a microphone's offset.
    pub fn high_pass(rate: u32, hz: f64) -> Self {
        Self { sections: BUTTERWORTH_4.map(|q| Section::high_pass(rate, hz, q)).to_vec() }
    }

    /// Whether nothing but silence, by any measure of sound, comes out as long as only zeros go in.
    pub fn is_at_rest(&self) -> bool {
        self.sections.iter().all(|section| section.state.iter().all(|state| state.abs() < REST))
    }

    /// The next sample.
    pub fn step(&mut self, sample: f32) -> f32 {
        let sample = if sample.is_finite() { f64::from(sample) } else { 0.0 };
        self.sections.iter_mut().fold(sample, |x, section| section.step(x)) as f32
    }

    /// Filters samples in place.
    pub fn process(&mut self, samples: &mut [f32]) {
        for sample in samples {
            *sample = self.step(*sample);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcm;

    fn gain_at(hz: f32) -> f32 {
        let mut sine: Vec<f32> =
            (0..16_000).map(|n| (n as f32 * hz * 2.0 * std::f32::consts::PI / 16_000.0).sin()).collect();
        Cascade::band_pass(16_000, 300.0, 3_400.0).process(&mut sine);
        pcm::level_dbfs(&sine[8_000..]) + 3.01
    }

    #[test]
    fn the_band_passes_and_its_sides_fall() {
        assert!(gain_at(1_000.0).abs() < 0.1);
        assert!((gain_at(300.0) + 3.0).abs() < 0.3);
        assert!((gain_at(3_400.0) + 3.0).abs() < 0.3);
        assert!(gain_at(100.0) < -30.0 && gain_at(7_000.0) < -30.0);
    }

    #[test]
    fn a_filter_comes_to_rest_in_silence_and_is_woken_by_sound() {
        let mut filter = Cascade::band_pass(16_000, 300.0, 1_700.0);
        assert!(filter.is_at_rest());
        filter.process(&mut [0.9; 320]);
        assert!(!filter.is_at_rest());
        let mut silence = vec![0.0; 16_000];
        filter.process(&mut silence);
        assert!(filter.is_at_rest() && silence[8_000..].iter().all(|sample| sample.abs() < 1e-6));
    }

    #[test]
    fn pieces_give_what_the_whole_gives() {
        let whole: Vec<f32> = (0..1_000).map(|n| ((n * n) as f32 * 0.01).sin()).collect();
        let (mut once, mut pieces) = (whole.clone(), whole);
        Cascade::band_pass(8_000, 300.0, 3_400.0).process(&mut once);
        let mut filter = Cascade::band_pass(8_000, 300.0, 3_400.0);
        pieces.chunks_mut(37).for_each(|piece| filter.process(piece));
        assert_eq!(once, pieces);
    }

    #[test]
    fn not_a_number_does_not_stay_in_the_filter() {
        let mut filter = Cascade::high_pass(16_000, 80.0);
        filter.step(f32::NAN);
        assert!(filter.step(0.5).is_finite());
    }
}
