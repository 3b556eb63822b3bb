//! How loud somebody speaks.

/// Samples in one frame, 10 ms at 16,000 Hz.
const FRAME: usize = 160;
/// Frames this much quieter than the loudest are pauses and breath, not voice: a factor on power, 15 dB.
const VOICED: f64 = 0.031_6;
/// Below this a level says nothing: digital silence, or a closed gate.
const SILENCE_DB: f64 = -90.0;

/// The level of the voiced part of some speech at 16,000 Hz, in dB of full scale; `None` for silence, or for less than
/// one frame of 10 ms.
///
/// Only voiced frames count, so that a long pause in it does not make a voice seem far away.
pub fn voiced_db(samples: &[f32]) -> Option<i16> {
    let power =
        |frame: &[f32]| frame.iter().map(|s| f64::from(*s) * f64::from(*s)).sum::<f64>() / FRAME as f64;
    let powers: Vec<f64> = samples.chunks_exact(FRAME).map(power).filter(|power| power.is_finite()).collect();
    let loudest = powers.iter().copied().fold(0.0, f64::max);
    let voiced: Vec<f64> = powers.into_iter().filter(|power| *power >= loudest * VOICED).collect();
    let mean = voiced.iter().sum::<f64>() / voiced.len().max(1) as f64;
    let db = 10.0 * mean.max(1e-12).log10();
    (loudest > 0.0 && db > SILENCE_DB).then_some(db.round() as i16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::WhiteNoise;

    #[test]
    fn a_level_is_that_of_the_voice_and_not_of_the_pauses() {
        let loud = WhiteNoise::new(1).samples(8_000, -20.0);
        let level = voiced_db(&loud).unwrap();
        let mut paused = loud.clone();
        paused.resize(40_000, 0.0);
        assert_eq!(voiced_db(&paused), Some(level));
        let quiet: Vec<f32> = loud.iter().map(|s| s * 0.1).collect();
        assert_eq!(voiced_db(&quiet), Some(level - 20));
    }

    #[test]
    fn silence_and_rubbish_have_no_level() {
        assert_eq!(voiced_db(&[]), None);
        assert_eq!(voiced_db(&[0.0; 1_600]), None);
        assert_eq!(voiced_db(&[f32::NAN; 1_600]), None);
        assert_eq!(voiced_db(&[1.0; 100]), None);
    }
}
