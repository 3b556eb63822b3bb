//! How the caller's answer sounded: what the vetoes on sound go by.

use alloc::vec::Vec;

use crate::command::Sounded;
use crate::ids::SegmentId;
use crate::segment::Segment;
use crate::session::Session;
use crate::session::gate::Hold;

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

    /// The median level of what the caller said so far, this answer apart. Of an even number the lower one of the middle
    /// two, so that a caller who has moved away from the telephone is heard again after one more asking.
    fn median_level(&self, hold: &Hold) -> Option<i16> {
        let earlier = |s: &&Segment| s.text().is_some() && !hold.answer.segments.contains(&s.id);
        let mut levels: Vec<i16> = self.segments.iter().filter(earlier).filter_map(|s| s.level_db).collect();
        levels.sort_unstable();
        levels.get(levels.len().checked_sub(1)? / 2).copied()
    }
}
