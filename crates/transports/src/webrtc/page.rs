//! What our own page tells: which of our samples was heard when.
//!
//! Pure. The page names a moment of its clock with everything that it says, and the least distance between that and the
//! arrival here turns its moments into ours. What the caller says is stamped by the same rule and comes the same way, so
//! a question's end and an answer's beginning are on one scale, whatever the way costs; no round trip is halved.

use std::time::Duration;

use sayback_core::{LoopDelay, Time};
use serde::Deserialize;

use crate::wire::Envelope;

/// What a browser holds back between the microphone and the packet, beside what it tells of: its echo cancellation and
/// its encoder.
const HANDLING: Duration = Duration::from_millis(60);
/// What Opus holds back in coder and decoder together.
const OPUS: Duration = Duration::from_micros(6_500);
/// A report that comes so much later than the quickest is a late one: it is not used.
const LATE: Duration = Duration::from_millis(1_500);
/// A report speaks of so much before it, and no more.
const REACH: Duration = Duration::from_secs(1);
/// Larger figures are nonsense, in milliseconds.
const MOST: f64 = 1e10;

/// A message of the page.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Message {
    /// It is there.
    Hello {
        /// It can tell what is played.
        reports: bool,
    },
    /// What is played.
    Played(Played),
}

/// A report. Moments are milliseconds of the page's clock.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Played {
    /// Now.
    at: f64,
    /// The timestamp of a packet of ours.
    rtp: u32,
    /// When its first sample left the loudspeaker, at the earliest.
    heard: f64,
    /// How much later it may have been.
    spread: f64,
    /// How long the microphone takes.
    microphone: f64,
    /// How much sound was made up in all, because ours was missing.
    concealed: f64,
}

/// Something that the page told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageFact {
    /// It is there, and says whether it will report.
    Hello {
        /// It will.
        reports: bool,
    },
    /// More is known of what was heard. So much of our sound was made up since the report before.
    Heard {
        /// Lost on the way.
        lost: Duration,
    },
}

/// When something was heard, on the input clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) at: Time,
    /// From there to a sound of the caller's at that moment, as it is stamped here.
    pub(super) delay: LoopDelay,
}

/// A page, as far as it has told of itself.
#[derive(Debug, Default)]
pub(super) struct Page {
    envelope: Envelope,
    /// Ticks a second.
    rate: u32,
    opus: bool,
    last: Option<Played>,
}

impl Page {
    pub(super) fn new(rate: u32) -> Self {
        Self { rate: rate.max(1), opus: rate == 48_000, ..Self::default() }
    }

    /// Takes a message; what makes no sense tells nothing.
    pub(super) fn handle(&mut self, text: &str, arrival: Time) -> Option<PageFact> {
        let message: Message = serde_json::from_str(text).ok()?;
        match message {
            Message::Hello { reports } => Some(PageFact::Hello { reports }),
            Message::Played(played) => self.on_played(played, arrival),
        }
    }

    fn on_played(&mut self, played: Played, arrival: Time) -> Option<PageFact> {
        let Played { at, heard, spread, microphone, concealed, .. } = played;
        let sane = [at, heard, spread, microphone, concealed].iter().all(|ms| (0.0..MOST).contains(ms));
        // Nobody has heard what is seconds ahead, and nothing takes seconds in a page that can be talked through.
        if !sane || heard > at + 2_000.0 || spread > 1_000.0 || microphone > 1_000.0 {
            return None;
        }
        self.envelope.observe(ms(at), arrival);
        if arrival.since(self.envelope.stamp(ms(at))?) > LATE {
            return None;
        }
        let before = self.last.replace(played);
        if before.is_some_and(|before| ahead(played.rtp, before.rtp) < 0) {
            // Told out of order: what is newer stays.
            self.last = before;
            return None;
        }
        let lost = before.map_or(0.0, |before| (concealed - before.concealed).max(0.0));
        Some(PageFact::Heard { lost: ms(lost) })
    }

    /// When the sample with this timestamp was heard; `None`: not yet, as far as is known, or nobody knows any more.
    pub(super) fn place(&self, rtp: u32) -> Option<Place> {
        let last = self.last?;
        let ticks = u64::try_from(ahead(last.rtp, rtp)).ok()?;
        let back = Duration::from_micros(ticks * 1_000_000 / u64::from(self.rate));
        if back > REACH {
            return None;
        }
        let codec = if self.opus { OPUS } else { Duration::ZERO };
        let at = self.envelope.stamp_before(ms(last.heard) + codec, back)?;
        let at_most = ms(last.spread) + ms(last.microphone) + HANDLING;
        Some(Place { at, delay: LoopDelay { at_least: Duration::ZERO, at_most } })
    }

    /// Whether the page has told of so much later sound that this sample can no longer be placed.
    pub(super) fn has_passed(&self, rtp: u32) -> bool {
        let ticks = self.last.map_or(0, |last| ahead(last.rtp, rtp));
        ticks > i64::from(self.rate) * i64::try_from(REACH.as_secs()).unwrap_or(i64::MAX)
    }

    /// The way is another: what was known of it is forgotten.
    pub(super) fn forget_path(&mut self) {
        self.envelope.reset();
    }
}

/// How many ticks `later` is ahead of `earlier`, around the end of the count.
fn ahead(later: u32, earlier: u32) -> i64 {
    i64::from(later.wrapping_sub(earlier).cast_signed())
}

fn ms(ms: f64) -> Duration {
    Duration::from_micros((ms * 1_000.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(at: f64, rtp: u32, heard: f64, concealed: f64) -> String {
        format!(
            r#"{{"type":"played","at":{at},"rtp":{rtp},"heard":{heard},"spread":10,"output":20,
                "microphone":10,"concealed":{concealed}}}"#
        )
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn a_sample_is_placed_where_an_answer_to_it_would_be() {
        let mut page = Page::new(48_000);
        // The page is 5 s older than the call, and the way to us takes 40 ms.
        assert_eq!(page.handle(&report(6_000.0, 48_000, 5_990.0, 0.0), at(1_040)), heard(0));
        // A report that was held up is placed as if it had not been.
        assert_eq!(page.handle(&report(6_100.0, 52_800, 6_090.0, 0.0), at(1_900)), heard(0));
        let place = page.place(48_000).unwrap();
        assert_eq!(place.at.as_micros() / 1_000, 1_036);
        assert_eq!(place.delay.at_most, Duration::from_millis(80));
    }

    fn heard(lost: u64) -> Option<PageFact> {
        Some(PageFact::Heard { lost: Duration::from_millis(lost) })
    }

    #[test]
    fn what_was_not_reported_is_not_placed() {
        let mut page = Page::new(48_000);
        assert_eq!(page.place(0), None);
        page.handle(&report(6_000.0, 48_000, 5_990.0, 0.0), at(1_040));
        assert_eq!(page.place(48_001), None, "not played yet");
        page.handle(&report(8_000.0, 144_000, 7_990.0, 0.0), at(3_040));
        assert_eq!(page.place(48_001), None, "too long ago: nobody knows what happened in between");
        assert!(page.place(140_000).is_some());
        assert!(page.has_passed(48_001) && !page.has_passed(140_000) && !page.has_passed(200_000));
        assert!(!Page::new(48_000).has_passed(0));
    }

    #[test]
    fn a_late_report_tells_nothing() {
        let mut page = Page::new(48_000);
        page.handle(&report(6_000.0, 48_000, 5_990.0, 0.0), at(1_040));
        assert_eq!(page.handle(&report(6_100.0, 52_800, 6_090.0, 0.0), at(2_700)), None);
        assert_eq!(page.place(52_000), None);
    }

    #[test]
    fn sound_that_was_made_up_is_lost() {
        let mut page = Page::new(48_000);
        assert_eq!(page.handle(&report(6_000.0, 48_000, 5_990.0, 500.0), at(1_040)), heard(0));
        assert_eq!(page.handle(&report(6_100.0, 52_800, 6_090.0, 740.0), at(1_140)), heard(240));
    }

    #[test]
    fn the_count_goes_round() {
        let mut page = Page::new(8_000);
        page.handle(&report(6_000.0, u32::MAX - 79, 5_990.0, 0.0), at(1_040));
        page.handle(&report(6_020.0, 80, 6_010.0, 0.0), at(1_060));
        assert_eq!(page.place(u32::MAX - 79).unwrap().at.as_micros() / 1_000, 1_030);
    }

    #[test]
    fn nonsense_tells_nothing() {
        let mut page = Page::new(48_000);
        for text in [
            "",
            "null",
            r#"{"type":"played"}"#,
            r#"{"type":"other"}"#,
            &report(-1.0, 1, 1.0, 0.0),
            &report(1e300, 1, 1.0, 0.0),
            &report(10.0, 1, 9_999.0, 0.0),
        ] {
            assert_eq!(page.handle(text, at(1)), None, "{text}");
        }
        let hello = page.handle(r#"{"type":"hello","version":1,"reports":true}"#, at(1));
        assert_eq!(hello, Some(PageFact::Hello { reports: true }));
    }
}
