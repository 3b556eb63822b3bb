//! What whisper.cpp found, as the runtime reads it.

use super::{LEAD, SAMPLE_RATE};
use sayback_runtime::stt::{Transcription, Word};
use whisper_rs::{WhisperContext, WhisperState, WhisperToken};

/// Joins the segments of a finished run over `samples` samples of real sound; `timed` runs know the words' places.
pub(super) fn read(
    state: &WhisperState,
    context: &WhisperContext,
    samples: usize,
    timed: bool,
) -> Transcription {
    #[expect(clippy::cast_precision_loss, reason = "a length in samples fits well enough")]
    let end = samples as f32 / SAMPLE_RATE as f32;
    let mut text = Vec::new();
    let mut words: Vec<Bytes> = Vec::new();
    let (mut logprob, mut tokens, mut no_speech) = (0.0, 0_u16, 0.0_f32);
    for segment in state.as_iter() {
        text.extend_from_slice(segment.to_bytes().unwrap_or_default());
        no_speech = no_speech.max(segment.no_speech_probability());
        for token in (0..segment.n_tokens()).filter_map(|index| segment.get_token(index)) {
            // Special tokens have ids from the end-of-text token on.
            if token.token_id() >= context.token_eot() {
                continue;
            }
            logprob += token.token_probability().max(f32::MIN_POSITIVE).ln();
            tokens = tokens.saturating_add(1);
            if timed {
                add(&mut words, &token, end);
            }
        }
    }
    Transcription {
        // The arrows mark a change of speaker in subtitles.
        text: String::from_utf8_lossy(&text).replace(">>", "").trim().to_owned(),
        words: words.into_iter().filter_map(Bytes::into_word).collect(),
        avg_logprob: if tokens == 0 { 0.0 } else { logprob / f32::from(tokens) },
        no_speech,
        phantom: None,
    }
}

/// A word whose letters may still be spread over tokens.
struct Bytes {
    text: Vec<u8>,
    from: f32,
    to: f32,
}

impl Bytes {
    fn into_word(self) -> Option<Word> {
        let text = String::from_utf8_lossy(&self.text).trim().to_owned();
        (!text.is_empty()).then_some(Word { text, from: self.from, to: self.to })
    }
}

/// A token that begins with a space begins a word. Places are kept inside the sound: whisper.cpp sometimes puts the
/// last word into the padding.
fn add(words: &mut Vec<Bytes>, token: &WhisperToken<'_, '_>, end: f32) {
    let bytes = token.to_bytes().unwrap_or_default();
    let data = token.token_data();
    #[expect(clippy::cast_precision_loss, reason = "a constant")]
    let lead = LEAD as f32 / SAMPLE_RATE as f32;
    #[expect(clippy::cast_precision_loss, reason = "centiseconds of a minute fit")]
    let seconds = |centiseconds: i64| (centiseconds as f32 / 100.0 - lead).clamp(0.0, end);
    let (from, to) = (seconds(data.t0), seconds(data.t1));
    match words.last_mut() {
        Some(word) if !bytes.starts_with(b" ") => {
            word.text.extend_from_slice(bytes);
            word.to = to.max(word.to);
        }
        _ => words.push(Bytes { text: bytes.to_vec(), from, to: to.max(from) }),
    }
}
