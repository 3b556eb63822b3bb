//! Local engines for tests and benches, loaded once per process.

use sayback_providers::models::Manifest;
use sayback_providers::piper::{Piper, PiperOptions};
use sayback_providers::whisper::{SAMPLE_RATE, Whisper, WhisperOptions};
use sayback_rig::{models, skip};
use sayback_runtime::tts::Synthesize;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// The file of a model, or `None` after a loud line if it is not here. On a build server that is a failure.
pub(crate) fn model(name: &str) -> Option<PathBuf> {
    let manifest = Manifest::in_folder(models()).expect("the manifest is sound");
    if manifest.is_present(name).expect("the model is in the manifest") {
        return Some(manifest.path(name).expect("the model is in the manifest"));
    }
    skip(&format!("model {name} is not here; get it with: sayback models fetch {name}"));
    None
}

/// Whisper tiny.en with `threads` of its own choice if `None`.
pub(crate) fn whisper(threads: Option<usize>) -> Option<Whisper> {
    let options = WhisperOptions { threads, ..WhisperOptions::default() };
    Some(Whisper::load(&model("whisper-tiny.en")?, options).expect("the model loads"))
}

/// The English voice, without a cache.
pub(crate) fn piper(threads: Option<usize>) -> Option<Piper> {
    let options = PiperOptions { threads, cache_bytes: 0, ..PiperOptions::default() };
    Some(Piper::load(&model("piper-en_US-joe-medium")?, options).expect("the voice loads"))
}

/// All samples of a text.
pub(crate) fn speak(piper: &Piper, text: &str) -> Vec<i16> {
    let mut samples = Vec::new();
    piper
        .synthesize(text, "en", &mut |piece| {
            samples.extend_from_slice(piece);
            ControlFlow::Continue(())
        })
        .expect("the voice speaks");
    samples
}

/// A text as a recogniser hears it: 16 kHz, in [-1, 1], by straight lines between samples, which is good enough here.
pub(crate) fn hear(piper: &Piper, text: &str) -> Vec<f32> {
    let samples = speak(piper, text);
    let step = f64::from(piper.sample_rate()) / SAMPLE_RATE as f64;
    let at = |index: usize| f32::from(samples.get(index).copied().unwrap_or(0)) / 32_768.0;
    (0..(samples.len() as f64 / step) as usize)
        .map(|index| {
            let place = index as f64 * step;
            let part = place.fract() as f32;
            at(place as usize) * (1.0 - part) + at(place as usize + 1) * part
        })
        .collect()
}
