//! The voice and the recogniser against each other, on the real models.
#![cfg(all(feature = "models", feature = "whisper", feature = "piper"))]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test or bench that breaks off says where, and prints"
)]

mod local;

use local::{hear, piper, speak, whisper};
use sayback_providers::piper::{Piper, PiperOptions};
use sayback_providers::whisper::{SAMPLE_RATE, Whisper, WhisperOptions};
use sayback_runtime::stt::{Cancel, SttError, Transcribe};
use sayback_runtime::tts::{Synthesize, TtsError};
use std::ops::ControlFlow;
use std::path::Path;

fn seconds(samples: &[i16]) -> f32 {
    samples.len() as f32 / 22_050.0
}

#[test]
fn what_the_voice_says_the_recogniser_hears() {
    let (Some(piper), Some(whisper)) = (piper(None), whisper(Some(1))) else { return };
    for (said, heard) in [
        ("Yes.", "yes"),
        ("I would like to move my appointment to Tuesday morning.", "move my appointment to tuesday morning"),
        ("Please cancel the booking for Friday, and call me back.", "cancel the booking for friday"),
    ] {
        let found = whisper.transcribe(&hear(&piper, said), false, &Cancel::new()).unwrap();
        assert!(found.text.to_lowercase().contains(heard), "{said:?} was heard as {found:?}");
        assert_eq!(found.phantom, None, "{found:?}");
        assert!(
            !found.words.is_empty() && found.words.is_sorted_by(|a, b| a.from <= b.from),
            "{:?}",
            found.words
        );
    }
}

#[test]
fn markup_and_oddities_are_words_and_end_nothing_early() {
    let (Some(piper), Some(whisper)) = (piper(None), whisper(Some(1))) else { return };
    for text in [
        "Alpha <break time=\"9s\"/> and then the last word is elephant.",
        "Salt & pepper &amp; more, and then the last word is elephant.",
        "He said \"hello\" \u{1f600} and then the last word is elephant.",
        "First line\nsecond line\r\n\nthird line, and the last word is elephant.",
        "-v de --help [[h@l@U]] and then the last word is elephant.",
        "zero\0 byte and \u{1b}[31mred, then the last word is elephant.",
    ] {
        let sound = hear(&piper, text);
        let length = sound.len() as f32 / SAMPLE_RATE as f32;
        assert!((1.5..9.0).contains(&length), "{text:?} lasts {length} s");
        let found = whisper.transcribe(&sound, false, &Cancel::new()).unwrap();
        assert!(
            found.text.to_lowercase().contains("word is elephant"),
            "{text:?} was heard as {:?}",
            found.text
        );
    }
}

#[test]
fn the_same_text_gives_the_same_samples() {
    let Some(piper) = piper(None) else { return };
    let text = "Shall I book the table for four at seven?";
    let first = speak(&piper, text);
    assert!((1.2..4.5).contains(&seconds(&first)), "{} s", seconds(&first));
    assert_eq!(first, speak(&piper, text));
    let other = local::piper(Some(1)).unwrap();
    assert_eq!(first, speak(&other, text), "another instance with another number of threads");
}

#[test]
fn the_voice_is_loud_enough_and_never_clips_for_long() {
    let Some(piper) = piper(None) else { return };
    let samples = speak(&piper, "Your transfer of one hundred euros is ready.");
    let peak = samples.iter().map(|sample| sample.unsigned_abs()).max().unwrap();
    let clipped = samples.iter().filter(|sample| sample.unsigned_abs() >= 32_767).count();
    assert!(peak > 8_000 && clipped < 20, "peak {peak}, {clipped} clipped");
}

#[test]
fn the_first_clause_comes_before_the_rest_is_made() {
    let Some(piper) = piper(None) else { return };
    let mut pieces = 0;
    piper
        .synthesize("Of course, one moment please. This second sentence is never made.", "en", &mut |piece| {
            pieces += 1;
            assert!(piece.len() <= 2205, "{}", piece.len());
            ControlFlow::Break(())
        })
        .unwrap();
    assert_eq!(pieces, 1);
}

#[test]
fn a_text_without_words_has_no_sound_and_is_no_error() {
    let Some(piper) = piper(None) else { return };
    for text in ["", " \n\t", "[[]]", "..."] {
        assert_eq!(speak(&piper, text).len(), 0, "{text:?}");
    }
}

#[test]
fn a_foreign_text_is_said_all_the_same() {
    let Some(piper) = piper(None) else { return };
    let mut count = 0;
    piper
        .synthesize("Möchten Sie einen Tisch für zwei Personen? 你好", "de", &mut |piece| {
            count += piece.len();
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(count > 22_050);
}

#[test]
fn silence_has_no_words_and_costs_nothing() {
    let Some(whisper) = whisper(Some(1)) else { return };
    let found = whisper.transcribe(&vec![0.0; 3 * SAMPLE_RATE], false, &Cancel::new()).unwrap();
    assert_eq!((found.text.as_str(), found.no_speech), ("", 1.0));
    assert_eq!(whisper.transcribe(&[], true, &Cancel::new()).unwrap().text, "");
}

#[test]
fn noise_and_tones_are_no_answer() {
    let Some(whisper) = whisper(Some(1)) else { return };
    let mut state = 1_u32;
    let noise: Vec<f32> = (0..2 * SAMPLE_RATE)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 * 0.1 - 0.1
        })
        .collect();
    let tone = (0..2 * SAMPLE_RATE).map(|index| (index as f32 * 0.167).sin() * 0.3).collect();
    for sound in [noise, tone] {
        let found = whisper.transcribe(&sound, false, &Cancel::new()).unwrap();
        assert!(found.text.is_empty() || found.phantom.is_some(), "{found:?}");
    }
}

#[test]
fn a_cancelled_recognition_says_so() {
    let (Some(piper), Some(whisper)) = (piper(None), whisper(Some(1))) else { return };
    let cancel = Cancel::new();
    cancel.cancel();
    let sound = hear(&piper, "This will not be heard.");
    assert_eq!(whisper.transcribe(&sound, true, &cancel), Err(SttError::Cancelled));
    let found = whisper.transcribe(&sound, true, &Cancel::new()).unwrap();
    assert!(found.text.to_lowercase().contains("heard"), "{found:?}");
}

#[test]
fn a_running_recognition_stops_when_asked_and_its_state_serves_again() {
    let (Some(piper), Some(whisper)) = (piper(None), whisper(Some(1))) else { return };
    let sound = hear(&piper, "Please listen to this sentence until somebody stops you.");
    let cancel = Cancel::new();
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| whisper.transcribe(&sound, false, &cancel));
        cancel.cancel();
        run.join().unwrap()
    });
    assert_eq!(outcome, Err(SttError::Cancelled));
    assert!(whisper.transcribe(&sound, false, &Cancel::new()).unwrap().text.contains("sentence"));
}

#[test]
fn many_calls_share_one_model() {
    let (Some(piper), Some(whisper)) = (piper(None), whisper(Some(1))) else { return };
    let sound = hear(&piper, "Good morning.");
    std::thread::scope(|scope| {
        let runs: Vec<_> =
            (0..4).map(|_| scope.spawn(|| whisper.transcribe(&sound, true, &Cancel::new()))).collect();
        for run in runs {
            assert!(run.join().unwrap().unwrap().text.to_lowercase().contains("good morning"));
        }
    });
}

#[test]
fn an_english_model_refuses_another_language() {
    let Some(whisper) = whisper(Some(1)) else { return };
    for language in ["de", "klingon", ""] {
        assert!(matches!(whisper.with_language(language), Err(SttError::Failed(_))), "{language}");
    }
}

#[test]
fn missing_and_broken_files_are_told_with_the_mending_step() {
    let folder = tempfile::tempdir().unwrap();
    let absent = Path::new("absent/ggml-tiny.en-q8_0.bin");
    let missing = Whisper::load(absent, WhisperOptions::default()).unwrap_err();
    assert!(missing.to_string().contains("sayback models fetch whisper-tiny.en"), "{missing}");
    let missing =
        Piper::load(Path::new("absent/en_US-joe-medium.onnx"), PiperOptions::default()).unwrap_err();
    assert!(missing.to_string().contains("sayback models fetch piper-en_US-joe-medium"), "{missing}");
    let broken = folder.path().join("voice.onnx");
    std::fs::write(&broken, b"not a model").unwrap();
    assert!(matches!(Piper::load(&broken, PiperOptions::default()), Err(TtsError::BadModel { .. })));
    assert!(matches!(Whisper::load(&broken, WhisperOptions::default()), Err(SttError::BadModel { .. })));
}
