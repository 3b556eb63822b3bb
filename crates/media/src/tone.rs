//! Steady tones: the beep behind which an answering machine records.
//!
//! A tone is sound whose energy lies at one frequency that does not move. Of each 20 ms the strength at steps of 50 Hz is
//! measured; if the strongest step and its two neighbours hold nearly all of it, these 20 ms are part of a tone. A vowel
//! has overtones and glides; a chord has several frequencies.

use std::time::Duration;

use sayback_core::Time;

/// Samples a second of what is looked at.
const RATE: u32 = 16_000;
/// Samples of 20 ms.
const BLOCK: usize = 320;
/// Between two frequencies that are measured: what a block of 20 ms tells apart.
const STEP: u32 = 50;
/// The lowest and the highest step: beeps lie between 350 and 2,300 Hz.
const STEPS: std::ops::RangeInclusive<usize> = 7..=46;
/// Quieter than this is no tone, in dB below full scale.
const QUIETEST: f32 = -45.0;
/// At least this part of the energy lies at the tone.
const PURE: f32 = 0.8;
/// Shorter than this is a click or a piece of a word.
const SHORTEST: Duration = Duration::from_millis(160);

/// A tone that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tone {
    /// When it began, to 20 ms.
    pub start: Time,
    /// When it was over.
    pub end: Time,
    /// Its frequency, to 50 Hz.
    pub hertz: u32,
}

impl Tone {
    /// How long it lasted.
    pub fn length(&self) -> Duration {
        self.end.since(self.start)
    }
}

/// Finds tones in sound at 16 kHz.
#[derive(Clone, Debug, Default)]
pub struct ToneDetector {
    pending: Vec<f32>,
    /// When the first of them was.
    since: Option<Time>,
    /// The tone that sounds.
    now: Option<Tone>,
}

impl ToneDetector {
    /// Takes sound that began at `start`; each tone is told once it is over.
    pub fn push(&mut self, samples: &[f32], start: Time, mut on: impl FnMut(Tone)) {
        if self.pending.is_empty() {
            self.since = Some(start);
        }
        self.pending.extend_from_slice(samples);
        let mut used = 0;
        while let Some(block) = self.pending.get(used..used + BLOCK) {
            let at = self.since.unwrap_or(start) + length(used);
            let found = frequency(block);
            self.follow(found, at, &mut on);
            used += BLOCK;
        }
        self.pending.drain(..used);
        self.since = self.since.map(|since| since + length(used));
    }

    fn follow(&mut self, found: Option<u32>, at: Time, on: &mut impl FnMut(Tone)) {
        let end = at + length(BLOCK);
        if let (Some(tone), Some(hertz)) = (&mut self.now, found)
            && hertz.abs_diff(tone.hertz) <= STEP
        {
            tone.end = end;
            return;
        }
        if let Some(tone) = self.now.take()
            && tone.length() >= SHORTEST
        {
            on(tone);
        }
        self.now = found.map(|hertz| Tone { start: at, end, hertz });
    }
}

fn length(samples: usize) -> Duration {
    Duration::from_micros(samples as u64 * 1_000_000 / u64::from(RATE))
}

/// The frequency of a block that is a tone.
fn frequency(block: &[f32]) -> Option<u32> {
    let energy: f32 = block.iter().map(|sample| sample * sample).sum();
    let count = block.len() as f32;
    if energy / count < 10f32.powf(QUIETEST / 10.0) {
        return None;
    }
    let first = *STEPS.start();
    let strengths: Vec<f32> = (first - 1..=STEPS.end() + 1).map(|step| strength(block, step)).collect();
    let (place, _) = strengths
        .iter()
        .enumerate()
        .skip(1)
        .take(strengths.len() - 2)
        .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let at_tone: f32 = strengths.get(place - 1..=place + 1)?.iter().sum();
    // Parseval: a real tone has half of its energy at the negative frequency.
    let part = 2.0 * at_tone / count / energy;
    let step = u32::try_from(first - 1 + place).ok()?;
    (part >= PURE).then_some(step * STEP)
}

/// The squared strength at a step (Goertzel's way).
fn strength(block: &[f32], step: usize) -> f32 {
    let turn = std::f32::consts::TAU * step as f32 * STEP as f32 / RATE as f32;
    let twice = 2.0 * turn.cos();
    let (mut last, mut before) = (0.0f32, 0.0f32);
    for sample in block {
        (last, before) = (sample + twice * last - before, last);
    }
    last * last + before * before - twice * last * before
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stretches of (milliseconds, frequency, loudness), and the tones in them.
    fn tones(stretches: &[(u64, f32, f32)]) -> Vec<Tone> {
        let mut sound = Vec::new();
        for (ms, hertz, gain) in stretches {
            let step = std::f32::consts::TAU * hertz / RATE as f32;
            sound.extend((0..ms * 16).map(|n| (n as f32 * step).sin() * gain));
        }
        heard(&sound)
    }

    fn heard(sound: &[f32]) -> Vec<Tone> {
        let (mut detector, mut found) = (ToneDetector::default(), Vec::new());
        for (n, block) in sound.chunks(160).enumerate() {
            detector.push(block, Time::from_millis(n as u64 * 10), |tone| found.push(tone));
        }
        found
    }

    #[test]
    fn beeps_of_every_height_are_found_with_their_beginning_and_end() {
        for hertz in [400.0, 440.0, 877.0, 1_000.0, 1_025.0, 1_400.0, 2_100.0] {
            let found = tones(&[(500, 0.0, 0.0), (400, hertz, 0.3), (300, 0.0, 0.0)]);
            assert_eq!(found.len(), 1, "{hertz}: {found:?}");
            assert!(found[0].hertz.abs_diff(hertz as u32) <= 50, "{hertz}: {found:?}");
            let (start, end) = (found[0].start.as_micros() / 1_000, found[0].end.as_micros() / 1_000);
            assert!(start.abs_diff(500) <= 20 && end.abs_diff(900) <= 20, "{hertz}: {found:?}");
        }
    }

    #[test]
    fn what_is_short_quiet_gliding_or_a_chord_is_none() {
        assert_eq!(tones(&[(120, 1_000.0, 0.3), (300, 0.0, 0.0)]), []);
        assert_eq!(tones(&[(500, 1_000.0, 0.002), (300, 0.0, 0.0)]), []);
        let glide: Vec<f32> = (0..16_000)
            .map(|n| {
                let t = n as f32 / 16_000.0;
                (std::f32::consts::TAU * (400.0 * t + 800.0 * t * t)).sin() * 0.3
            })
            .collect();
        assert_eq!(heard(&glide), []);
        let chord: Vec<f32> =
            (0..16_000).map(|n| ((n as f32 * 0.17).sin() + (n as f32 * 0.27).sin()) * 0.2).collect();
        assert_eq!(heard(&chord), []);
    }

    #[test]
    fn two_beeps_are_two() {
        let found = tones(&[(300, 800.0, 0.3), (200, 0.0, 0.0), (300, 800.0, 0.3), (200, 0.0, 0.0)]);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn no_word_that_was_recorded_is_a_tone() {
        let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/audio"));
        let mut judged = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if !name.ends_with(".wav") || name.contains("music") {
                continue;
            }
            let sound = crate::clip::read_audio(&path).unwrap().mono_at(RATE).unwrap();
            assert_eq!(heard(&sound), [], "{name}");
            judged += 1;
        }
        assert!(judged > 20, "{judged}");
    }
}
