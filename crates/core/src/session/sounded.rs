//! How the caller's answer sounded: what the vetoes on sound go by.

use alloc::vec::Vec;
use core::time::Duration;

use crate::check;
use crate::command::Sounded;
use crate::ids::SegmentId;
use crate::segment::Segment;
use crate::session::Session;
use crate::session::gate::Hold;

/// How much quiet may lie between an answer and a sound that counts as beside it.
const BESIDE: Duration = Duration::from_millis(1_000);

/// How late the agent's own voice may come back. A satellite's echo takes half a second, a wireless loudspeaker's less.
const ECHO: Duration = Duration::from_millis(2_000);

impl Session {
    pub(crate) fn on_measured(&mut self, id: SegmentId, level_db: Option<i16>, speakers: Option<u8>) {
        if let Some(segment) = self.segments.get_mut(id) {
            segment.level_db = level_db.or(segment.level_db);
            segment.speakers = speakers.or(segment.speakers);
        }
    }

    /// What is known of the sound of the answer so far.
    pub(crate) fn sounded(&self, hold: &Hold) -> Sounded {
        let answer: Vec<&Segment> = self.answer_segments(hold).filter(|s| s.text().is_some()).collect();
        let quietest = answer.iter().filter_map(|s| s.level_db).min();
        let under = quietest.zip(self.median_level(hold)).map(|(level, median)| median.saturating_sub(level));
        let over = |s: &&Segment| self.mouth.spoke_during(s.onset.earliest, s.offset, None);
        Sounded {
            confidence: self.confidence(&hold.language, &answer),
            under_median_db: under.map(|db| u16::try_from(db).unwrap_or(0)),
            speakers: answer.iter().filter_map(|s| s.speakers).max(),
            over_agent: answer.iter().any(over),
        }
    }

    /// How sure the recogniser is of the answer, in percent.
    ///
    /// One breath may be cut in two, "Yes." and "Please.", and a recogniser is unsure of half a breath. So a piece of
    /// politeness is judged together with the words it belongs to, by length. A piece that says something stands by itself:
    /// nothing beside it makes a doubtful yes a sure one.
    fn confidence(&self, language: &str, answer: &[&Segment]) -> Option<u8> {
        let pause = self.policy.turn.endpoint;
        let one_breath =
            |a: &&Segment, b: &&Segment| a.offset.is_some_and(|offset| b.onset.latest.since(offset) < pause);
        answer.chunk_by(one_breath).filter_map(|breath| confidence_of_breath(language, breath)).min()
    }

    /// Why a yes to this hold does not count because of what else was heard around it, if it does not. Asked when the
    /// verdict is used and not when the check starts: what follows the words tells as much as what came before them.
    ///
    /// A recogniser that writes "[music]" or fluent nonsense for one stretch of sound is not to be believed when it
    /// writes "okay" for the next one: that was music or another language too.
    pub(crate) fn veto_beside(&self, hold: &Hold) -> Option<&'static str> {
        let near = |a: &Segment, b: &Segment| {
            let (first, second) = if a.onset.latest <= b.onset.latest { (a, b) } else { (b, a) };
            first.offset.is_none_or(|offset| second.onset.latest.since(offset) <= BESIDE)
        };
        let answer: Vec<&Segment> = self.answer_segments(hold).filter(|s| s.text().is_some()).collect();
        if self.is_own_echo(hold, &answer) {
            return Some("own_echo");
        }
        let phantom = |s: &&Segment| s.phantom && answer.iter().any(|answer| near(s, answer));
        self.segments.iter().any(|s| phantom(&s)).then_some("phantom_beside")
    }

    /// Whether the answer is what the question ended with, so soon behind it that it may be the question coming back: of
    /// "… Okay?" the last word may return behind the horizon, by a loudspeaker or a far end's echo.
    fn is_own_echo(&self, hold: &Hold, answer: &[&Segment]) -> bool {
        let Some(horizon) = hold.asking.horizon().filter(|_| !self.line.chat) else { return false };
        let soon = answer.iter().all(|s| s.onset.earliest.since(horizon) <= ECHO);
        let words: Vec<&str> = answer.iter().filter_map(|s| s.text()).collect();
        !answer.is_empty() && soon && check::ends_with(&hold.question, &words.join(" "))
    }

    /// The median level of what the caller said so far, this answer apart. Of an even number the lower one of the middle
    /// two, so that a caller who has moved away from the telephone is heard again after one more asking.
    fn median_level(&self, hold: &Hold) -> Option<i16> {
        let earlier = |s: &&Segment| s.text().is_some() && !hold.answer.segments.contains(&s.id);
        let mut levels: Vec<i16> = self.segments.iter().filter(earlier).filter_map(|s| s.level_db).collect();
        levels.sort_unstable();
        levels.get(levels.len().checked_sub(1)? / 2).copied()
    }
}

fn confidence_of_breath(language: &str, breath: &[&Segment]) -> Option<u8> {
    let sure: Vec<(&Segment, u64)> =
        breath.iter().filter_map(|s| Some((*s, u64::from(s.confidence?)))).collect();
    let least = sure.iter().map(|(_, percent)| *percent).min()?;
    let says = |s: &Segment| !s.text().is_some_and(|text| check::is_politeness(language, text));
    let said = sure.iter().filter(|(s, _)| says(s)).map(|(_, percent)| *percent).min();
    let length =
        |s: &Segment| s.offset.map_or(1, |offset| offset.since(s.onset.latest).as_micros() as u64).max(1);
    let whole: u64 = sure.iter().map(|(s, _)| length(s)).sum();
    let mean = sure.iter().map(|(s, percent)| percent * length(s)).sum::<u64>() / whole;
    let percent = said.map_or(least, |said| said.min(mean));
    Some(u8::try_from(percent).unwrap_or(u8::MAX))
}
