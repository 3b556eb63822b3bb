//! What is to be said, what of it the device has, and what that means.
//!
//! Pure: it is told what the callback handed over and when that sounds, and answers with [`PlayoutEvent`]s. Positions
//! are samples at the device's rate since the stream was opened; an utterance keeps its own place among them.
//!
//! ```text
//! begun ── first sample handed ──> Started
//!   └─ voice done, end of sound known ──> Synthesised
//!        └─ that end handed over ── the device says it is played ──> Finished
//! any ── clear ── the callback skipped the rest ──> Cleared    any ── device gone ──> Failed
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use sayback_core::{EvidenceClass, LoopDelay, PlayoutEvent, PlayoutFailure, Time, UtteranceId};

use super::error::MicError;
use super::stamp::span;
use super::utterance::Utterance;

/// One buffer that was handed to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handed {
    /// Number of its first frame since the stream was opened, silence included.
    pub(crate) frame: u64,
    /// Its length in frames.
    pub(crate) frames: u32,
    /// Position of its first sample of speech: what was skipped before it is not counted in.
    pub(crate) from: u64,
    /// How many samples of speech it begins with; silence follows.
    pub(crate) taken: u32,
    /// How many samples were thrown away before it, as asked by a clear.
    pub(crate) skipped: u64,
    /// When it was asked for.
    pub(crate) callback: Time,
    /// When its first frame sounds.
    pub(crate) playback: Time,
    /// Whether it is silent because of a pause.
    pub(crate) paused: bool,
    /// How often the device had run dry by then, in all.
    pub(crate) xruns: u32,
}

impl Handed {
    fn end(&self) -> u64 {
        self.from + u64::from(self.taken)
    }
}

/// An utterance whose last audible sample the device has, and has not yet played for sure.
#[derive(Debug)]
struct Finishing {
    id: UtteranceId,
    /// Its last audible sample ends before this frame.
    frame: u64,
    /// As foretold when it was handed over.
    foretold: Time,
    /// Samples of it that never sounded.
    lost: u64,
    length: Duration,
}

/// The queue of one stream.
#[derive(Debug)]
pub(crate) struct Playout {
    rate: u32,
    delay: LoopDelay,
    queue: VecDeque<Utterance>,
    finishing: VecDeque<Finishing>,
    /// Thrown away up to a position that the callback has yet to reach.
    clearing: VecDeque<(Utterance, u64)>,
    written: u64,
    handed: VecDeque<Handed>,
    last: Option<Handed>,
    /// Pauses and resumes that the callback has yet to obey, oldest first.
    asked: VecDeque<bool>,
    paused: bool,
    gone: bool,
    events: VecDeque<PlayoutEvent>,
}

impl Playout {
    pub(crate) fn new(rate: u32, delay: LoopDelay) -> Self {
        Self {
            rate,
            delay,
            queue: VecDeque::new(),
            finishing: VecDeque::new(),
            clearing: VecDeque::new(),
            written: 0,
            handed: VecDeque::new(),
            last: None,
            asked: VecDeque::new(),
            paused: false,
            gone: false,
            events: VecDeque::new(),
        }
    }

    /// Puts an utterance behind what is queued. Its voice gives `rate` samples a second.
    pub(crate) fn begin(&mut self, id: UtteranceId, rate: u32) -> Result<(), MicError> {
        let utterance = Utterance::new(id, rate, self.rate)?;
        if self.gone {
            self.fail_now(id, PlayoutFailure::DeviceLost, Duration::ZERO);
        } else {
            self.queue.push_back(utterance);
        }
        Ok(())
    }

    /// More of an utterance. False if nobody wants it any more.
    pub(crate) fn push(&mut self, id: UtteranceId, samples: &[i16]) -> bool {
        let Some(place) = self.open_place(id) else { return false };
        if self.queue[place].push(samples) {
            return true;
        }
        self.fail(id, PlayoutFailure::NotPlayed);
        false
    }

    /// The voice has given all of an utterance.
    pub(crate) fn finish(&mut self, id: UtteranceId) {
        let Some(place) = self.open_place(id) else { return };
        match self.queue[place].close() {
            Some((audible_from, audible_to)) => {
                self.events.push_back(PlayoutEvent::Synthesised { utterance: id, audible_from, audible_to });
            }
            None => self.fail(id, PlayoutFailure::NoSamples),
        }
    }

    /// The rest of an utterance will not come. What of it is with the device sounds.
    pub(crate) fn fail(&mut self, id: UtteranceId, failure: PlayoutFailure) {
        let Some(place) = self.queue.iter().position(|u| u.id == id && !u.concluded) else { return };
        let played = self.queue[place].played_until(self.consumed(), self.rate);
        self.queue[place].abandon();
        self.fail_now(id, failure, played);
    }

    /// Silence from the next buffer on. False if it is silent already.
    pub(crate) fn pause(&mut self, paused: bool) -> bool {
        let changed = self.paused != paused;
        if changed {
            self.paused = paused;
            self.asked.push_back(paused);
        }
        changed
    }

    /// Throws everything away that the device does not have, and ends a pause. Gives the position up to which the
    /// callback is to skip.
    pub(crate) fn clear(&mut self) -> u64 {
        let to = self.written;
        for mut utterance in std::mem::take(&mut self.queue) {
            if !utterance.concluded {
                utterance.cut();
                self.clearing.push_back((utterance, to));
            }
        }
        self.paused = false;
        self.asked.clear();
        to
    }

    /// Up to `room` samples at the device's rate to be written next.
    pub(crate) fn fill(&mut self, room: usize, out: &mut Vec<f32>) {
        let before = out.len();
        for utterance in &mut self.queue {
            let written = out.len() - before;
            if written >= room {
                break;
            }
            utterance.take(self.written + written as u64, room - written, out);
            if !utterance.is_written() {
                break;
            }
        }
        self.written += (out.len() - before) as u64;
        while self.queue.front().is_some_and(|u| u.concluded && u.is_written()) {
            self.queue.pop_front();
        }
    }

    /// Takes note of a buffer.
    pub(crate) fn on_handed(&mut self, handed: Handed) {
        self.note_losses(handed);
        if !self.asked.is_empty() && handed.paused == self.paused {
            for paused in self.asked.drain(..) {
                let at = handed.playback;
                self.events.push_back(if paused {
                    PlayoutEvent::Paused { at }
                } else {
                    PlayoutEvent::Resumed { at }
                });
            }
        }
        self.note_starts(handed);
        self.settle_cleared(handed);
        if handed.taken > 0 {
            self.handed.push_back(handed);
        }
        self.last = Some(handed);
        self.conclude();
        self.confirm(handed);
        self.forget();
    }

    /// The device is gone: nothing that waits for it will be heard.
    pub(crate) fn lose_device(&mut self, now: Time) {
        self.gone = true;
        let sounded = self.sounded();
        for (utterance, _) in std::mem::take(&mut self.clearing) {
            self.report_cleared(&utterance, sounded);
        }
        for finishing in std::mem::take(&mut self.finishing) {
            // Handed over is not played: the device says nothing any more.
            let missing = span(self.frames_ahead(finishing.frame), self.rate);
            let played = finishing.length.saturating_sub(missing);
            self.fail_now(finishing.id, PlayoutFailure::DeviceLost, played);
        }
        for utterance in std::mem::take(&mut self.queue) {
            if !utterance.concluded {
                let played = utterance.played_until(sounded, self.rate);
                self.fail_now(utterance.id, PlayoutFailure::DeviceLost, played);
            }
        }
        for paused in self.asked.drain(..) {
            let event =
                if paused { PlayoutEvent::Paused { at: now } } else { PlayoutEvent::Resumed { at: now } };
            self.events.push_back(event);
        }
    }

    /// A device is there again, with an empty buffer and perhaps another rate.
    pub(crate) fn device_back(&mut self, rate: u32) {
        self.rate = rate;
        self.written = 0;
        self.handed.clear();
        self.last = None;
        self.gone = false;
    }

    /// The next thing to report.
    pub(crate) fn poll_event(&mut self) -> Option<PlayoutEvent> {
        self.events.pop_front()
    }

    /// The loop that reports speak of.
    pub(crate) fn delay(&self) -> LoopDelay {
        self.delay
    }

    /// Whether the callback is to be silent.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Whether speech is on its way to the device or sounds.
    pub(crate) fn is_sounding(&self) -> bool {
        let on_its_way = self.queue.iter().any(|utterance| utterance.start.is_some() && !utterance.concluded);
        !self.paused && (on_its_way || !self.finishing.is_empty())
    }

    fn open_place(&self, id: UtteranceId) -> Option<usize> {
        self.queue.iter().position(|u| u.id == id && u.is_open())
    }

    fn fail_now(&mut self, utterance: UtteranceId, failure: PlayoutFailure, played: Duration) {
        self.events.push_back(PlayoutEvent::Failed { utterance, failure, played });
    }

    /// Up to which position the device has samples.
    fn consumed(&self) -> u64 {
        self.last.map_or(0, |last| last.end())
    }

    /// Up to which position they have sounded for sure.
    fn sounded(&self) -> u64 {
        let Some(last) = self.last else { return 0 };
        last.from.saturating_sub(self.samples_in(last.playback.since(last.callback)))
    }

    /// How many frames of what was handed over before `frame` had not sounded when the device was last heard of.
    fn frames_ahead(&self, frame: u64) -> u64 {
        let Some(last) = self.last else { return frame };
        let played = last.frame.saturating_sub(self.samples_in(last.playback.since(last.callback)));
        frame.saturating_sub(played)
    }

    fn samples_in(&self, duration: Duration) -> u64 {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX / u64::from(u32::MAX));
        micros.saturating_mul(u64::from(self.rate)) / 1_000_000
    }

    /// A device that ran dry may have dropped the buffer that it was given last, and a buffer that we were not told
    /// of was heard by nobody that we know of: both count as lost.
    fn note_losses(&mut self, handed: Handed) {
        let Some(last) = self.last else { return };
        let expected = last.end() + handed.skipped;
        let mut lost = Vec::with_capacity(2);
        if handed.xruns != last.xruns {
            lost.push((last.from, last.end()));
        }
        if handed.from > expected {
            lost.push((expected, handed.from));
        }
        for (from, to) in lost {
            for utterance in &mut self.queue {
                utterance.lose(from, to);
            }
            for finishing in &mut self.finishing {
                // Where in it no longer matters: all of the buffer counts.
                if handed.xruns != last.xruns && finishing.frame > last.frame {
                    finishing.lost += to - from;
                }
            }
        }
    }

    fn note_starts(&mut self, handed: Handed) {
        let rate = self.rate;
        for utterance in &mut self.queue {
            let Some(start) = utterance.start else { break };
            if !utterance.started && handed.taken > 0 && start < handed.end() {
                utterance.started = true;
                // A start whose own buffer we were not told of is stamped with the next: late, never early.
                let at = handed.playback + span(start.saturating_sub(handed.from), rate);
                self.events.push_back(PlayoutEvent::Started { utterance: utterance.id, at });
            }
        }
    }

    fn settle_cleared(&mut self, handed: Handed) {
        let before = handed.from - handed.skipped.min(handed.from);
        while let Some((utterance, to)) = self.clearing.pop_front() {
            if handed.from < to {
                self.clearing.push_front((utterance, to));
                return;
            }
            // All of it may have been with the device before the clear came: then it is heard whole.
            match utterance.end_within(before) {
                Some(end) => self.finish_at(&utterance, end),
                None => self.report_cleared(&utterance, before),
            }
        }
    }

    fn report_cleared(&mut self, utterance: &Utterance, until: u64) {
        let (audible_from, audible_to) = utterance.audible();
        self.events.push_back(PlayoutEvent::Cleared {
            utterance: utterance.id,
            played: utterance.played_until(until, self.rate),
            audible_to,
            audible_from,
        });
    }

    /// Finds those whose last audible sample the device has.
    fn conclude(&mut self) {
        let consumed = self.consumed();
        let mut queue = std::mem::take(&mut self.queue);
        for utterance in queue.iter_mut().filter(|u| !u.concluded) {
            let Some(end) = utterance.end_within(consumed) else { break };
            utterance.concluded = true;
            self.finish_at(utterance, end);
        }
        self.queue = queue;
    }

    fn finish_at(&mut self, utterance: &Utterance, end: u64) {
        // The buffer that holds the end or, if that lies in the silence behind, the last one before it.
        let holds = |h: &&Handed| end <= h.end();
        let Some(buffer) = self.handed.iter().find(holds).or(self.handed.back()).or(self.last.as_ref())
        else {
            return;
        };
        let inside = end.saturating_sub(buffer.from);
        self.finishing.push_back(Finishing {
            id: utterance.id,
            frame: buffer.frame + inside,
            foretold: buffer.playback + span(inside, self.rate),
            lost: utterance.lost,
            length: utterance.audible().1.unwrap_or_default(),
        });
    }

    /// Reports those that the device has played: its own count says so, not our forecast.
    fn confirm(&mut self, handed: Handed) {
        while let Some(first) = self.finishing.front() {
            let ahead = span(handed.frame.saturating_sub(first.frame), self.rate);
            let seen = handed.playback - ahead;
            if handed.frame < first.frame || handed.callback < seen {
                return;
            }
            // A device that stood still in between played it later than foretold.
            let last_audible = first.foretold.max(seen);
            self.events.push_back(PlayoutEvent::Finished {
                utterance: first.id,
                last_audible,
                delay: self.delay,
                evidence: EvidenceClass::Device,
                lost: span(first.lost, self.rate),
            });
            self.finishing.pop_front();
        }
    }

    /// Keeps what can still be asked for: buffers from the start of the oldest unfinished utterance on.
    fn forget(&mut self) {
        let cleared = self.clearing.iter().map(|(utterance, _)| utterance);
        let oldest = self.queue.iter().filter(|u| !u.concluded).chain(cleared).find_map(|u| u.start);
        let needed = oldest.unwrap_or_else(|| self.consumed());
        while self.handed.front().is_some_and(|handed| handed.end() <= needed) {
            self.handed.pop_front();
        }
    }
}

#[cfg(test)]
#[expect(clippy::wildcard_enum_match_arm, reason = "each test picks the one event that it is about")]
mod tests {
    use super::*;
    use sayback_core::PlayoutEvent as E;

    const RATE: u32 = 48_000;
    const BUFFER: u32 = 480;
    const U: UtteranceId = UtteranceId(1);

    /// A device that plays a buffer of 10 ms two buffers after it was given, and a callback that obeys.
    struct Device {
        playout: Playout,
        waiting: u64,
        position: u64,
        skip_to: u64,
        buffers: u64,
        /// How much later than in step the device is, in ms.
        late: u64,
        xruns: u32,
        events: Vec<E>,
    }

    impl Device {
        fn new() -> Self {
            let playout = Playout::new(RATE, LoopDelay::default());
            Self {
                playout,
                waiting: 0,
                position: 0,
                skip_to: 0,
                buffers: 0,
                late: 0,
                xruns: 0,
                events: Vec::new(),
            }
        }

        /// Feeds and hands over buffers. Buffer number n sounds at 20 + 10 n ms.
        fn run(&mut self, buffers: u32) {
            for _ in 0..buffers {
                let mut out = Vec::new();
                self.playout.fill(4_800 - self.waiting as usize, &mut out);
                self.waiting += out.len() as u64;
                let skipped = self.skip_to.saturating_sub(self.position).min(self.waiting);
                self.position += skipped;
                self.waiting -= skipped;
                let paused = self.playout.is_paused();
                let taken = if paused { 0 } else { self.waiting.min(u64::from(BUFFER)) };
                let now = self.buffers * 10 + self.late;
                self.playout.on_handed(Handed {
                    frame: self.buffers * u64::from(BUFFER),
                    frames: BUFFER,
                    from: self.position,
                    taken: taken as u32,
                    skipped,
                    callback: Time::from_millis(now),
                    playback: Time::from_millis(now + 20),
                    paused,
                    xruns: self.xruns,
                });
                self.position += taken;
                self.waiting -= taken;
                self.buffers += 1;
                while let Some(event) = self.playout.poll_event() {
                    self.events.push(event);
                }
            }
        }

        fn say(&mut self, utterance: UtteranceId, millis: u32) {
            self.playout.begin(utterance, 16_000).unwrap();
            assert!(self.playout.push(utterance, &vec![8_000; 16 * millis as usize]));
            self.playout.finish(utterance);
        }

        fn finished(&self) -> Option<(u64, u64)> {
            self.events.iter().find_map(|event| match event {
                E::Finished { last_audible, lost, .. } => {
                    Some((last_audible.as_micros(), lost.as_millis() as u64))
                }
                _ => None,
            })
        }
    }

    #[test]
    fn an_end_is_reported_once_the_device_has_played_it() {
        let mut device = Device::new();
        device.run(3);
        device.say(U, 95);
        device.run(14);
        assert_eq!(device.events[1], E::Started { utterance: U, at: Time::from_millis(50) });
        assert_eq!(device.finished(), None, "told before it was played");
        device.run(1);
        // It begins at 50 ms, lasts 95, and fades for 20; its level is measured in whole frames of 10 ms.
        assert_eq!(device.finished(), Some((170_000, 0)));
    }

    #[test]
    fn a_slow_voice_moves_the_end_and_loses_nothing() {
        let mut device = Device::new();
        device.playout.begin(U, 16_000).unwrap();
        device.playout.push(U, &[8_000; 1_600]);
        device.run(30);
        device.playout.push(U, &[8_000; 1_600]);
        device.playout.finish(U);
        device.run(20);
        // It goes on with buffer 30, which sounds at 320 ms; the few samples that the converter held back of the first
        // piece come with the second.
        let (end, lost) = device.finished().unwrap();
        assert!((440_000..=445_000).contains(&end) && lost == 0, "{end}");
    }

    #[test]
    fn a_device_that_ran_dry_counts_its_last_buffer_as_lost() {
        let mut device = Device::new();
        device.say(U, 100);
        device.run(4);
        device.xruns = 1;
        device.run(20);
        assert_eq!(device.finished().map(|(_, lost)| lost), Some(10));
    }

    #[test]
    fn a_device_that_stood_still_has_played_the_end_later_than_foretold() {
        let mut device = Device::new();
        device.say(U, 100);
        device.run(11);
        device.late = 500;
        device.run(10);
        assert_eq!(device.finished(), Some((640_000, 0)));
    }

    #[test]
    fn a_clear_tells_what_was_played_and_what_never_began() {
        let mut device = Device::new();
        device.say(U, 1_000);
        device.say(UtteranceId(2), 100);
        device.run(30);
        device.skip_to = device.playout.clear();
        assert!(!device.playout.push(U, &[1]));
        device.run(3);
        let cleared: Vec<_> = device
            .events
            .iter()
            .filter_map(|event| match event {
                E::Cleared { utterance, played, audible_to, .. } => {
                    Some((utterance.0, played.as_millis(), *audible_to))
                }
                _ => None,
            })
            .collect();
        let to = |millis| Some(Duration::from_millis(millis));
        assert_eq!(cleared, [(1, 300, to(1_020)), (2, 0, to(120))]);
    }

    #[test]
    fn a_clear_that_comes_too_late_leaves_it_heard() {
        let mut device = Device::new();
        device.say(U, 100);
        device.run(10);
        device.skip_to = device.playout.clear();
        device.run(10);
        assert_eq!(device.finished(), Some((140_000, 0)));
        assert!(!device.events.iter().any(|event| matches!(event, E::Cleared { .. })));
    }

    #[test]
    fn a_pause_and_a_resume_are_reported_where_they_sound() {
        let mut device = Device::new();
        device.say(U, 100);
        device.run(5);
        assert!(device.playout.pause(true) && !device.playout.pause(true));
        device.run(20);
        device.playout.pause(false);
        device.run(20);
        assert!(device.events.contains(&E::Paused { at: Time::from_millis(70) }));
        assert!(device.events.contains(&E::Resumed { at: Time::from_millis(270) }));
        assert_eq!(device.finished(), Some((340_000, 0)));
    }

    #[test]
    fn a_lost_device_fails_what_it_had_not_played() {
        let mut device = Device::new();
        device.say(U, 100);
        device.say(UtteranceId(2), 100);
        device.run(11);
        device.playout.lose_device(Time::from_millis(3_000));
        device.playout.begin(UtteranceId(3), 16_000).unwrap();
        let failed: Vec<_> = std::iter::from_fn(|| device.playout.poll_event())
            .filter_map(|event| match event {
                E::Failed { utterance, failure: PlayoutFailure::DeviceLost, played } => {
                    Some((utterance.0, played.as_millis()))
                }
                _ => None,
            })
            .collect();
        // The last buffer was asked for at 100 ms, when 80 ms had sounded; 20 ms of fade are no sound.
        assert_eq!(failed, [(1, 80), (2, 0), (3, 0)]);
    }

    #[test]
    fn an_utterance_without_sound_has_failed() {
        let mut device = Device::new();
        device.playout.begin(U, 16_000).unwrap();
        device.playout.push(U, &[0; 1_600]);
        device.playout.finish(U);
        device.run(1);
        let failed = E::Failed { utterance: U, failure: PlayoutFailure::NoSamples, played: Duration::ZERO };
        assert_eq!(device.events, [failed]);
    }

    #[test]
    fn a_voice_that_fails_ends_its_utterance_and_the_next_is_said() {
        let mut device = Device::new();
        device.playout.begin(U, 16_000).unwrap();
        device.playout.push(U, &[8_000; 1_600]);
        device.run(3);
        device.playout.fail(U, PlayoutFailure::TtsFailed);
        device.say(UtteranceId(2), 50);
        device.run(30);
        assert!(
            device.events.iter().any(|e| matches!(e, E::Failed { failure: PlayoutFailure::TtsFailed, .. }))
        );
        assert!(device.finished().is_some());
    }
}
