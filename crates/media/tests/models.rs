//! The neural models as they are shipped: loaded from `SAYBACK_MODELS`, or from `models/` beside the workspace.
//!
//! Where a model is not there, its test says so loudly and fails in CI.

use std::path::{Path, PathBuf};

use sayback_core::{Time, VoiceFrame};
use sayback_media::noise::WhiteNoise;
use sayback_media::silero::SileroError;
use sayback_media::{EndOfTurn, Silero, SileroModel, VoiceDetector};

/// Path of a model, or `None` (and a loud line) if it is not on this machine.
fn model(name: &str) -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").into_os_string();
    let path = PathBuf::from(std::env::var_os("SAYBACK_MODELS").unwrap_or_else(default)).join(name);
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is missing: run scripts/fetch-models", path.display());
    eprintln!("SKIPPED, NOT TESTED: {} is missing: run scripts/fetch-models", path.display());
    None
}

fn frames(mut detector: VoiceDetector, sound: &[f32]) -> Vec<VoiceFrame> {
    let mut frames = Vec::new();
    for (n, piece) in sound.chunks(320).enumerate() {
        detector
            .push(piece, Time::from_millis(n as u64 * 20), |frame| frames.push(frame))
            .expect("the model works");
    }
    frames
}

/// Vowels of a sort: a pulse train through two resonances, three syllables a second, in faint noise.
fn babble(seconds: usize) -> Vec<f32> {
    let mut sound = WhiteNoise::new(4).samples(16_000 * seconds, -65.0);
    for (formant, gain) in [(700.0f32, 0.25f32), (1_200.0, 0.15)] {
        for (n, sample) in sound.iter_mut().enumerate().skip(16_000 * 2) {
            let pitch = 120.0 + 15.0 * (n as f32 / 9_000.0).sin();
            let phase = (n as f32 * pitch / 16_000.0).fract() / pitch;
            let syllable = (n as f32 * 3.0 * std::f32::consts::TAU / 16_000.0).sin().max(0.0).sqrt();
            *sample +=
                gain * syllable * (-phase * 400.0).exp() * (phase * formant * std::f32::consts::TAU).sin();
        }
    }
    sound
}

#[test]
fn silero_computed_directly_says_what_a_general_engine_says() {
    let Some(path) = model("silero_vad.onnx") else { return };
    let (own, general) = (SileroModel::load(&path, 1).unwrap(), SileroModel::load_general(&path, 1).unwrap());
    assert!(own.is_computed_directly() && !general.is_computed_directly());
    let judged = |model| frames(VoiceDetector::new(Box::new(Silero::new(model))).ungated(), &babble(8));
    let (own, general) = (judged(&own), judged(&general));
    let off = |pair: (&VoiceFrame, &VoiceFrame)| pair.0.speech.abs_diff(pair.1.speech);
    let most = own.iter().zip(&general).map(off).max().unwrap();
    assert!(most <= 1, "{most} percent apart");
    assert!(own.iter().any(|frame| frame.speech > 50) && own.iter().any(|frame| frame.speech < 10));
}

#[test]
fn silero_hears_nothing_in_noise_and_the_gate_changes_no_speech() {
    let Some(path) = model("silero_vad.onnx") else { return };
    let silero = SileroModel::load(&path, 1).unwrap();
    let detector = || VoiceDetector::new(Box::new(Silero::new(&silero)));
    let noise = WhiteNoise::new(1).samples(16_000 * 3, -50.0);
    assert!(frames(detector().ungated(), &noise).iter().skip(3).all(|frame| frame.speech < 30));
    let sound = babble(5);
    let (gated, all) = (frames(detector(), &sound), frames(detector().ungated(), &sound));
    assert_eq!(gated.len(), all.len());
    let onset = |frames: &[VoiceFrame]| frames.iter().find(|frame| frame.speech >= 50).copied();
    assert!(onset(&all).is_some(), "the babble is speech to it");
    assert_eq!(onset(&gated).map(|f| (f.start, f.rise)), onset(&all).map(|f| (f.start, f.rise)));
}

#[test]
fn the_end_of_turn_model_answers_with_a_probability() {
    let Some(path) = model("smart-turn-v3.2-cpu.onnx") else { return };
    let endpoint = EndOfTurn::load(&path, 1).unwrap();
    for sound in [vec![], babble(3), babble(10)] {
        let probability = endpoint.probability(&sound).unwrap();
        assert!((0.0..=1.0).contains(&probability), "{probability}");
    }
}

#[test]
fn another_model_is_refused_by_name() {
    let Some(path) = model("smart-turn-v3.2-cpu.onnx") else { return };
    let error = SileroModel::load(&path, 1).unwrap_err();
    assert!(matches!(error, SileroError::Other { .. }), "{error}");
}
