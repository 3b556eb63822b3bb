//! How the caller's answer sounded: what the vetoes on sound go by.

use alloc::vec::Vec;
use core::time::Duration;

use crate::command::Sounded;
use crate::ids::SegmentId;
use crate::segment::Segment;
use crate::session::Session;
use crate::session::gate::Hold;

/// How much quiet may lie between an answer and a sound that counts as beside it.
const BESIDE: Duration = Duration::from_millis(1_000);

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
            confidence: answer.iter().filter_map(|s| s.confidence).min(),
            under_median_db: under.map(|db| u16::try_from(db).unwrap_or(0)),
            speakers: answer.iter().filter_map(|s| s.speakers).max(),
            over_agent: answer.iter().any(over),
        }
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
        let phantom = |s: &&Segment| s.phantom && answer.iter().any(|answer| near(s, answer));
        self.segments.iter().any(|s| phantom(&s)).then_some("phantom_beside")
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
