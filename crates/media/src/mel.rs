//! Log-mel features: what speech models that descend from Whisper see of sound.
//!
//! 80 bands over windows of 25 ms each 10 ms at 16,000 Hz; bands on Slaney's mel scale, each of equal area.

use std::f64::consts::PI;
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

/// Bands.
pub const BANDS: usize = 80;
/// Samples from one frame to the next.
pub const HOP: usize = 160;
/// Samples in a window.
const WINDOW: usize = 400;
/// Numbers in a spectrum.
const BINS: usize = WINDOW / 2 + 1;
const RATE: f64 = 16_000.0;

/// One band: its first bin, and the weight of each bin from there.
#[derive(Debug)]
struct Band {
    first: usize,
    weights: Vec<f32>,
}

/// Computes the features; holds its tables and its working memory.
pub struct LogMel {
    fft: Arc<dyn RealToComplex<f32>>,
    window: Vec<f32>,
    bands: Vec<Band>,
    frame: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
}

impl std::fmt::Debug for LogMel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogMel").finish_non_exhaustive()
    }
}

impl Default for LogMel {
    fn default() -> Self {
        Self::new()
    }
}

impl LogMel {
    /// Computes the tables.
    pub fn new() -> Self {
        let fft = RealFftPlanner::new().plan_fft_forward(WINDOW);
        let hann = |n: usize| (0.5 - 0.5 * (2.0 * PI * n as f64 / WINDOW as f64).cos()) as f32;
        Self {
            window: (0..WINDOW).map(hann).collect(),
            bands: bands(),
            frame: fft.make_input_vec(),
            spectrum: fft.make_output_vec(),
            scratch: fft.make_scratch_vec(),
            fft,
        }
    }

    /// Features of some sound: band by band, one number for each whole hop. The sound is mirrored at both ends; the
    /// numbers are decades of power, cut off eight decades below the loudest, shifted and scaled to lie around zero.
    pub fn features(&mut self, sound: &[f32]) -> Vec<f32> {
        let frames = sound.len() / HOP;
        let mut features = vec![0.0; BANDS * frames];
        for frame in 0..frames {
            self.spectrum_at(sound, frame * HOP);
            for (band, Band { first, weights }) in self.bands.iter().enumerate() {
                let bins = &self.spectrum[*first..first + weights.len()];
                let power: f32 = bins.iter().zip(weights).map(|(bin, weight)| bin.norm_sqr() * weight).sum();
                features[band * frames + frame] = power.max(1e-10).log10();
            }
        }
        let loudest = features.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for feature in &mut features {
            *feature = (feature.max(loudest - 8.0) + 4.0) / 4.0;
        }
        features
    }

    /// The spectrum of the window whose middle lies at a sample.
    fn spectrum_at(&mut self, sound: &[f32], middle: usize) {
        let from = middle as i64 - WINDOW as i64 / 2;
        for (n, (to, weight)) in self.frame.iter_mut().zip(&self.window).enumerate() {
            *to = mirrored(sound, from + n as i64) * weight;
        }
        // The lengths come from the transform itself, so it cannot refuse them.
        let _ = self.fft.process_with_scratch(&mut self.frame, &mut self.spectrum, &mut self.scratch);
    }
}

/// A sample by its place; places before the first and behind the last are mirrored there.
fn mirrored(sound: &[f32], at: i64) -> f32 {
    let last = sound.len() as i64 - 1;
    let at = if at < 0 {
        -at
    } else if at > last {
        2 * last - at
    } else {
        at
    };
    usize::try_from(at).ok().and_then(|at| sound.get(at)).copied().unwrap_or(0.0)
}

fn hertz_to_mel(hertz: f64) -> f64 {
    // Linear up to 1,000 Hz, logarithmic above.
    if hertz < 1_000.0 { 3.0 * hertz / 200.0 } else { 15.0 + (hertz / 1_000.0).ln() * 27.0 / 6.4f64.ln() }
}

fn mel_to_hertz(mel: f64) -> f64 {
    if mel < 15.0 { 200.0 * mel / 3.0 } else { 1_000.0 * ((mel - 15.0) * 6.4f64.ln() / 27.0).exp() }
}

fn bands() -> Vec<Band> {
    let highest = hertz_to_mel(RATE / 2.0);
    let corner = |n: usize| mel_to_hertz(highest * n as f64 / (BANDS + 1) as f64);
    let band = |n: usize| {
        let (low, middle, high) = (corner(n), corner(n + 1), corner(n + 2));
        let weight = |bin: usize| {
            let hertz = bin as f64 * RATE / WINDOW as f64;
            let rise = (hertz - low) / (middle - low);
            let fall = (high - hertz) / (high - middle);
            (rise.min(fall).max(0.0) * 2.0 / (high - low)) as f32
        };
        let first = (0..BINS).find(|bin| weight(*bin) > 0.0).unwrap_or(0);
        let weights = (first..BINS).map(weight).take_while(|weight| *weight > 0.0).collect();
        Band { first, weights }
    };
    (0..BANDS).map(band).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_lights_its_own_band() {
        let tone: Vec<f32> =
            (0..16_000).map(|n| (n as f32 * 1_000.0 * std::f32::consts::TAU / 16_000.0).sin()).collect();
        let features = LogMel::new().features(&tone);
        assert_eq!(features.len(), BANDS * 100);
        let at = |band: usize| features[band * 100 + 50];
        let loudest = (0..BANDS).max_by(|a, b| at(*a).total_cmp(&at(*b))).unwrap();
        let band = 15.0 / hertz_to_mel(8_000.0) * (BANDS + 1) as f64 - 1.0;
        assert!((loudest as f64 - band).abs() <= 1.0, "band {loudest}, expected {band}");
    }

    #[test]
    fn silence_and_nothing_are_taken() {
        assert!(LogMel::new().features(&[]).is_empty());
        assert!(LogMel::new().features(&[0.0; 1_600]).iter().all(|f| f.is_finite()));
    }

    #[test]
    fn the_mel_scale_turns_back() {
        for hertz in [0.0, 440.0, 999.0, 1_000.0, 3_400.0, 8_000.0] {
            assert!((mel_to_hertz(hertz_to_mel(hertz)) - hertz).abs() < 1e-6);
        }
    }
}
