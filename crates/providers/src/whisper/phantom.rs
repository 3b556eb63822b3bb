//! Words that nobody said.
//!
//! Whisper was trained on subtitles and writes some for anything: a closing phrase for music, a loop for a hum, an
//! English sentence for Japanese. No single number tells these from real short answers (a real "yes" on the telephone
//! has a worse mean log-probability than a loop has), so each reason below needs two signs that agree.

use super::SAMPLE_RATE;
use sayback_runtime::stt::Transcription;

/// Peak level of a 20 ms frame below which there is nothing to recognise (-66 dB of full scale).
const SILENCE: f32 = 0.0005;
const FRAME: usize = SAMPLE_RATE / 50;

/// Whether no 20 ms of the sound are loud enough to hold speech.
pub(super) fn is_silent(pcm: &[f32]) -> bool {
    let loud = |frame: &[f32]| {
        let energy: f32 =
            frame.iter().filter(|sample| sample.is_finite()).map(|sample| sample * sample).sum();
        #[expect(clippy::cast_precision_loss, reason = "at most 320")]
        let length = frame.len() as f32;
        (energy / length).sqrt() > SILENCE
    };
    !pcm.chunks(FRAME).any(loud)
}

/// Why the words of a transcription are not taken for the caller's, or `None` if they are. `pcm` is the sound that
/// was recognised, 16 kHz; `language` is the one that was expected.
pub(super) fn reason(heard: &Transcription, pcm: &[f32], language: &str) -> Option<&'static str> {
    if heard.text.is_empty() {
        return None;
    }
    let words = words(&heard.text);
    if words.is_empty() {
        return Some("sound");
    }
    if is_credit(&words) {
        return Some("credit");
    }
    if is_loop(&words) {
        return Some("loop");
    }
    if is_too_fast(words.len(), loud_seconds(pcm)) {
        return Some("too_fast");
    }
    let doubt = heard.no_speech - heard.avg_logprob / 2.0;
    let (confident, speech) = (heard.avg_logprob > CONFIDENT, heard.no_speech < 0.4);
    if is_closing(&words, language) && !(confident && speech) {
        return Some("closing");
    }
    if heard.no_speech > 0.6 && doubt > DOUBTFUL {
        return Some("no_speech");
    }
    (heard.avg_logprob < least_logprob(words.len())).then_some("foreign")
}

/// A stock phrase must be this likely to be believed.
const CONFIDENT: f32 = -0.6;
/// Sum of no-speech probability and half the negated log-probability above which it was no speech. A faint real
/// "yeah" in a room reaches 1.24.
const DOUBTFUL: f32 = 1.3;

/// Speech in another language comes out as fluent nonsense of low probability. Single words of a real caller are
/// unlikely too, so they get more room.
fn least_logprob(words: usize) -> f32 {
    match words {
        0 | 1 => -1.5,
        2 | 3 => -1.13,
        _ => -1.0,
    }
}

/// Lower-case words without punctuation and without what stands in brackets or between asterisks, which is how
/// Whisper writes sounds: `[music]`, `*coughs*`.
fn words(text: &str) -> Vec<String> {
    let (mut depth, mut starred) = (0_u32, false);
    let mut spoken = String::new();
    for letter in text.chars() {
        match letter {
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth = depth.saturating_sub(1),
            '*' => starred = !starred,
            _ if depth > 0 || starred => {}
            letter if letter.is_alphanumeric() || letter == '\'' => spoken.extend(letter.to_lowercase()),
            _ => spoken.push(' '),
        }
    }
    spoken.split_whitespace().map(str::to_owned).collect()
}

/// One word eight times over, or a phrase three times over, in a row. A caller does say "no, no, no, no".
fn is_loop(words: &[String]) -> bool {
    (1..=words.len() / 3).any(|length| {
        let times = if length == 1 { 8 } else { 3 };
        words.windows(length * times).any(|run| run.chunks(length).all(|phrase| phrase == &run[..length]))
    })
}

fn is_too_fast(words: usize, seconds: f32) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "a count of words")]
    let words = words as f32;
    words > 7.0 * seconds + 0.5
}

/// Seconds within 35 dB of the loudest frame.
fn loud_seconds(pcm: &[f32]) -> f32 {
    let energies: Vec<f32> =
        pcm.chunks(FRAME).map(|frame| frame.iter().map(|sample| sample * sample).sum()).collect();
    let loudest = energies.iter().copied().fold(0.0, f32::max);
    #[expect(clippy::cast_precision_loss, reason = "frames of a minute")]
    let loud = energies.iter().filter(|&&energy| energy * 3162.0 > loudest).count() as f32;
    loud * 0.02
}

/// Subtitle credits: nobody says them on the telephone.
fn is_credit(words: &[String]) -> bool {
    const CREDITS: [&str; 12] = [
        "amara org",
        "for watching",
        "fürs zuschauen",
        "für die aufmerksamkeit",
        "d'avoir regardé",
        "por ver el vídeo",
        "por ver el video",
        "per aver guardato",
        "like and subscribe",
        "please subscribe",
        "subtitles by",
        "untertitel von",
    ];
    let text = words.join(" ");
    CREDITS.iter().any(|credit| text.contains(credit))
}

/// The phrases that end films, which Whisper writes for music and for nothing.
fn is_closing(words: &[String], language: &str) -> bool {
    let closings: &[&str] = match language {
        "en" => &["thank you", "thank you very much", "thanks", "thank you so much", "bye", "you", "bye bye"],
        "de" => &["vielen dank", "danke", "danke schön", "tschüss", "bis zum nächsten mal"],
        "fr" => &["merci", "merci beaucoup", "au revoir"],
        "es" => &["gracias", "muchas gracias", "adiós"],
        "it" => &["grazie", "grazie mille", "ciao"],
        "pt" => &["obrigado", "obrigada", "tchau"],
        "nl" => &["bedankt", "dank u wel", "tot ziens"],
        _ => &[],
    };
    closings.contains(&words.join(" ").as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(text: &str, avg_logprob: f32, no_speech: f32, seconds: f32) -> Option<&'static str> {
        let heard =
            Transcription { text: text.to_owned(), avg_logprob, no_speech, ..Transcription::default() };
        let count = (seconds * SAMPLE_RATE as f32) as usize;
        reason(&heard, &vec![0.1; count], "en")
    }

    #[test]
    fn short_answers_of_real_callers_are_believed() {
        for (text, logprob, no_speech) in [
            ("Yes.", -0.82, 0.23),
            ("Yeah.", -0.68, 0.71),
            ("zero.", -1.12, 0.07),
            ("Quit.", -1.01, 0.25),
            ("five.", -0.88, 0.47),
            ("Yeah.", -1.0, 0.74),
        ] {
            assert_eq!(judge(text, logprob, no_speech, 0.4), None, "{text}");
        }
        assert_eq!(judge("No, no, no, no.", -0.3, 0.1, 1.5), None);
        assert_eq!(judge("I don't know, I'm not so sure.", -0.52, 0.23, 2.0), None);
    }

    #[test]
    fn music_loops_and_credits_are_phantoms() {
        assert_eq!(judge("Thank you.", -0.95, 0.7, 5.0), Some("closing"));
        assert_eq!(judge("Thank you.", -1.27, 0.21, 5.0), Some("closing"));
        assert_eq!(
            judge("Thank you for watching and I hope you enjoyed this.", -0.5, 0.1, 5.0),
            Some("credit")
        );
        assert_eq!(judge(&"No, ".repeat(25), -0.14, 0.1, 6.0), Some("loop"));
        assert_eq!(judge("and the house and the house and the house", -0.5, 0.1, 6.0), Some("loop"));
        assert_eq!(judge("Whoo!", -1.03, 0.89, 3.0), Some("no_speech"));
        for sound in ["(upbeat music)", "*coughs*", "[BLANK_AUDIO]", "( [", "..."] {
            assert_eq!(judge(sound, -0.3, 0.1, 3.0), Some("sound"), "{sound}");
        }
        assert_eq!(judge("I will show you how to do this.", -1.66, 0.21, 3.0), Some("foreign"));
    }

    #[test]
    fn more_words_than_fit_into_the_sound_are_phantoms() {
        assert_eq!(judge("Thank you so kindly", -0.3, 0.1, 0.03), Some("too_fast"));
        assert_eq!(judge("Yes.", -0.6, 0.1, 0.1), None);
    }

    #[test]
    fn a_polite_thank_you_is_believed_when_it_is_clear() {
        assert_eq!(judge("Thank you.", -0.4, 0.1, 0.7), None);
    }

    #[test]
    fn silence_is_told_from_the_faintest_voice() {
        assert!(is_silent(&[]) && is_silent(&[0.0; 3200]) && is_silent(&[f32::NAN; 320]));
        assert!(!is_silent(&[0.002; 3200]));
    }
}
