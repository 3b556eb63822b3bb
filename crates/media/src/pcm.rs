//! Samples as numbers: 16-bit and floating point, and their level.
//!
//! Inside the product sound is `f32` with full scale at 1.0; 16-bit exists at the edges (devices, RTP, files).

/// The level that stands for silence, in dB below full scale: quieter than the last bit of 16-bit sound.
pub const SILENCE_DBFS: f32 = -100.0;

/// One 16-bit sample as floating point.
pub fn to_f32(sample: i16) -> f32 {
    f32::from(sample) / 32_768.0
}

/// One floating point sample as 16 bits, rounded; what is beyond full scale is clipped, not-a-number is silence.
pub fn to_i16(sample: f32) -> i16 {
    // `as` saturates and takes not-a-number to zero: exactly what a line wants.
    (sample * 32_768.0).round() as i16
}

/// Appends 16-bit samples to a floating point buffer.
///
/// Allocates only if the buffer is too small: keep it between calls.
pub fn extend_f32(out: &mut Vec<f32>, samples: &[i16]) {
    out.extend(samples.iter().copied().map(to_f32));
}

/// Appends floating point samples to a 16-bit buffer.
///
/// Allocates only if the buffer is too small: keep it between calls.
pub fn extend_i16(out: &mut Vec<i16>, samples: &[f32]) {
    out.extend(samples.iter().copied().map(to_i16));
}

/// Mean power of some samples; full scale square wave is 1.0, nothing is 0.0.
pub fn power(samples: &[f32]) -> f32 {
    if samples.is_empty() {
        return 0.0;
    }
    samples.iter().map(|s| s * s).sum::<f32>() / samples.len() as f32
}

/// A power as a level in dB relative to full scale, at least [`SILENCE_DBFS`].
pub fn power_dbfs(power: f32) -> f32 {
    // Not-a-number compares false, so it too ends up as silence.
    if power > 1e-10 { 10.0 * power.log10() } else { SILENCE_DBFS }
}

/// Root-mean-square level of some samples in dB relative to full scale.
pub fn level_dbfs(samples: &[f32]) -> f32 {
    power_dbfs(power(samples))
}

/// The largest magnitude among some samples.
pub fn peak(samples: &[f32]) -> f32 {
    samples.iter().fold(0.0, |peak, s| f32::max(peak, s.abs()))
}

/// The factor that changes a level by `db`.
pub fn gain(db: f32) -> f32 {
    10f32.powf(db / 20.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_16_bit_sample_survives_the_way_through_float() {
        for sample in i16::MIN..=i16::MAX {
            assert_eq!(to_i16(to_f32(sample)), sample);
        }
    }

    #[test]
    fn beyond_full_scale_is_clipped_and_not_a_number_is_silence() {
        assert_eq!(to_i16(1.5), i16::MAX);
        assert_eq!(to_i16(-1.5), i16::MIN);
        assert_eq!(to_i16(f32::NAN), 0);
        assert_eq!(level_dbfs(&[f32::NAN]), SILENCE_DBFS);
    }

    #[test]
    fn a_full_scale_sine_is_three_db_below_full_scale() {
        let sine: Vec<f32> = (0..16_000).map(|n| (n as f32 * 0.1).sin()).collect();
        assert!((level_dbfs(&sine) + 3.01).abs() < 0.01);
        assert_eq!(level_dbfs(&[]), SILENCE_DBFS);
    }
}
