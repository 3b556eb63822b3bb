//! The agent's voice: what was handed over, what sounds, what was heard.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::command::UtteranceKind;
use crate::event::EvidenceClass;
use crate::ids::{GenerationId, SegmentId, UtteranceId};
use crate::time::{Interval, Time};

/// How far an utterance has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sound {
    /// Handed over, not sounding yet.
    Queued,
    /// Sounds since.
    Sounding(Time),
    /// All of it is on its way; heard at the end of the interval.
    Leaving(Time, Interval, EvidenceClass),
    /// Heard to its end.
    Heard(Time, Interval),
    /// Thrown away while it sounded, or before.
    Cut(Option<Time>, Time),
}

/// One piece of agent speech.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Utterance {
    pub(crate) id: UtteranceId,
    pub(crate) text: String,
    pub(crate) kind: UtteranceKind,
    pub(crate) generation: Option<GenerationId>,
    pub(crate) sound: Sound,
    /// From its first sample to the end of its last audible one, once known.
    pub(crate) audible_to: Option<Duration>,
    /// How long it was paused.
    pub(crate) paused: Duration,
    /// Its item in the conversation, once it sounded.
    pub(crate) item: Option<usize>,
}

impl Utterance {
    /// Still to be heard.
    pub(crate) fn active(&self) -> bool {
        matches!(self.sound, Sound::Queued | Sound::Sounding(_) | Sound::Leaving(..))
    }

    pub(crate) fn began(&self) -> Option<Time> {
        match self.sound {
            Sound::Queued => None,
            Sound::Sounding(at) | Sound::Leaving(at, ..) | Sound::Heard(at, _) => Some(at),
            Sound::Cut(at, _) => at,
        }
    }

    /// When it was over at the caller's ear at the latest; `None` while it is not.
    fn over(&self) -> Option<Time> {
        match self.sound {
            Sound::Queued | Sound::Sounding(_) | Sound::Leaving(..) => None,
            Sound::Heard(_, end) => Some(end.latest),
            Sound::Cut(_, at) => Some(at),
        }
    }

    /// When its last audible sample will sound, as far as can be told while it sounds.
    pub(crate) fn projected_end(&self) -> Option<Time> {
        match (self.sound, self.audible_to) {
            (Sound::Sounding(at), Some(length)) => Some(at + length + self.paused),
            (Sound::Leaving(_, end, _), _) => Some(end.earliest),
            _ => None,
        }
    }

    /// Whether it sounded at any time in the given stretch.
    fn overlaps(&self, from: Time, to: Option<Time>) -> bool {
        let Some(began) = self.began() else { return false };
        self.over().is_none_or(|over| over > from) && to.is_none_or(|to| began < to)
    }
}

/// A pause asked for because the caller seems to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pause {
    pub(crate) since: Time,
    pub(crate) segment: SegmentId,
}

/// The agent's voice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Mouth {
    list: Vec<Utterance>,
    pub(crate) paused: Option<Pause>,
    /// The agent went on in spite of this segment: it does not pause it again.
    pub(crate) spoken_through: Option<SegmentId>,
    /// When agent speech was last over.
    pub(crate) last_over: Option<Time>,
}

/// Utterances over and done with that are still kept, to tell what a late segment overlapped.
const KEEP: usize = 32;

impl Mouth {
    pub(crate) fn add(&mut self, utterance: Utterance) {
        if self.list.len() >= KEEP
            && let Some(at) = self.list.iter().position(|u| !u.active())
        {
            self.list.remove(at);
        }
        self.list.push(utterance);
    }

    pub(crate) fn get(&self, id: UtteranceId) -> Option<&Utterance> {
        self.list.iter().find(|u| u.id == id)
    }

    pub(crate) fn get_mut(&mut self, id: UtteranceId) -> Option<&mut Utterance> {
        self.list.iter_mut().find(|u| u.id == id)
    }

    /// Whether anything sounds or is still to sound.
    pub(crate) fn active(&self) -> bool {
        self.list.iter().any(Utterance::active)
    }

    /// When the utterance that sounds should be over, as far as that can be told.
    pub(crate) fn overdue_from(&self) -> Option<(Time, UtteranceId)> {
        let sounding = self.list.iter().filter(|u| matches!(u.sound, Sound::Sounding(_)));
        sounding.filter_map(|u| u.projected_end().map(|end| (end, u.id))).min()
    }

    pub(crate) fn active_ids(&self) -> Vec<UtteranceId> {
        self.list.iter().filter(|u| u.active()).map(|u| u.id).collect()
    }

    /// The next utterance to count as heard, and when.
    pub(crate) fn next_heard(&self) -> Option<(Time, UtteranceId)> {
        self.list
            .iter()
            .filter_map(|u| match u.sound {
                Sound::Leaving(_, end, _) => Some((end.latest, u.id)),
                Sound::Queued | Sound::Sounding(_) | Sound::Heard(..) | Sound::Cut(..) => None,
            })
            .min()
    }

    /// Whether speech sounded in the stretch; if `generation` is given, only that step's own.
    pub(crate) fn spoke_during(
        &self,
        from: Time,
        to: Option<Time>,
        generation: Option<GenerationId>,
    ) -> bool {
        self.list
            .iter()
            .filter(|u| u.kind == UtteranceKind::Speech)
            .filter(|u| generation.is_none() || u.generation == generation)
            .any(|u| u.overlaps(from, to))
    }

    /// The conversation was cut: what was said after the cut has no item any more.
    pub(crate) fn forget_items_from(&mut self, keep: usize) {
        for utterance in &mut self.list {
            utterance.item = utterance.item.filter(|item| *item < keep);
        }
    }

    /// A pause since `since` ended at `now`: whatever sounds was delayed by the part of it that it had begun by.
    pub(crate) fn add_pause(&mut self, since: Time, now: Time) {
        for utterance in &mut self.list {
            if let Sound::Sounding(began) = utterance.sound {
                utterance.paused += now.since(since.max(began).min(now));
            }
        }
    }
}

/// The part of a text that was heard when `played` of its `audible` length had sounded, cut back to whole words.
///
/// Without a length, people's speech rate stands in: 65 ms a letter.
pub(crate) fn heard_prefix(text: &str, played: Duration, from: Duration, to: Option<Duration>) -> &str {
    let letters = text.chars().count() as u64;
    let played = played.saturating_sub(from).as_micros() as u64;
    let whole = to.map_or(letters * 65_000, |to| to.saturating_sub(from).as_micros() as u64).max(1);
    if played >= whole {
        return text;
    }
    let reached = (letters * played / whole) as usize;
    let cut = text.char_indices().nth(reached).map_or(text.len(), |(at, _)| at);
    let at_border = text[cut..].starts_with(char::is_whitespace);
    let head = &text[..cut];
    let end = if at_border { head.len() } else { head.rfind(char::is_whitespace).unwrap_or(0) };
    head[..end].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn only_whole_heard_words_count() {
        let text = "Your refund of 40 euros arrives Monday.";
        assert_eq!(heard_prefix(text, SECOND, Duration::ZERO, Some(SECOND * 2)), "Your refund of 40");
        assert_eq!(heard_prefix(text, SECOND * 2, Duration::ZERO, Some(SECOND * 2)), text);
        assert_eq!(heard_prefix(text, Duration::ZERO, Duration::ZERO, Some(SECOND)), "");
    }

    #[test]
    fn leading_silence_is_not_speech() {
        let from = Duration::from_millis(400);
        assert_eq!(heard_prefix("Let me check that", Duration::from_millis(300), from, Some(SECOND)), "");
        assert_eq!(heard_prefix("Let me check that", Duration::from_millis(300), from, None), "");
    }
}
