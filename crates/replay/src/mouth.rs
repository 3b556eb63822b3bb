//! The far end's loudspeaker on a virtual clock: what sounds when, and what is said of it.

use std::collections::VecDeque;
use std::time::Duration;

use sayback_core::{
    EvidenceClass, LoopDelay, PlayoutEvent, PlayoutFailure, Speak, Time, UtteranceId, UtteranceKind,
};

use crate::scenario::{AckFault, AfterClear, LinePath, Target, Transport, TtsFault, length_of_speech};

/// One piece of speech, ready to sound.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) utterance: UtteranceId,
    pub(crate) kind: UtteranceKind,
    /// Whole length, trailing silence included.
    pub(crate) length: Duration,
    pub(crate) audible_from: Duration,
    pub(crate) audible_to: Duration,
    /// Its samples at 16 kHz, in audio mode.
    pub(crate) samples: Vec<f32>,
}

impl Piece {
    /// Speech without sound, as long as its text would take.
    pub(crate) fn of_text(speak: &Speak) -> Self {
        let length = length_of_speech(&speak.text);
        Self {
            utterance: speak.utterance,
            kind: speak.kind,
            length,
            audible_from: Duration::ZERO,
            audible_to: length,
            samples: Vec::new(),
        }
    }
}

/// A stretch in which a piece sounded: where it lies on the clock and in the piece.
#[derive(Clone, Debug)]
pub(crate) struct Sounded {
    pub(crate) from: Time,
    pub(crate) piece_from: Duration,
    pub(crate) length: Duration,
    pub(crate) utterance: UtteranceId,
}

#[derive(Clone, Debug)]
struct Playing {
    piece: Queued,
    /// How much had sounded before the present run.
    before: Duration,
    /// Since when it sounds; `None` while paused.
    since: Option<Time>,
    finished: bool,
}

#[derive(Clone, Debug)]
struct Queued {
    piece: Piece,
    ready: Time,
    fail_at: Option<Duration>,
    gap: Option<(Duration, Duration)>,
    lost: Duration,
    ack: AckFault,
}

/// What the mouth wants done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Begin,
    Gap,
    Fail,
    Finish,
    End,
}

/// A queue of speech that plays on the virtual clock.
#[derive(Debug)]
pub(crate) struct Mouth {
    queue: VecDeque<Queued>,
    playing: Option<Playing>,
    paused: bool,
    line: LineRule,
    tts_faults: Vec<TtsFault>,
    ack_faults: Vec<AckFault>,
    counts: [u32; 2],
    /// What is said about playout, when it arrives.
    said: Vec<(Time, PlayoutEvent)>,
    /// Words on what was played that come behind the next such word.
    held_back: Vec<PlayoutEvent>,
    /// The piece that began last.
    last_begun: Option<Queued>,
    /// Where every sample went.
    pub(crate) sounded: Vec<Sounded>,
    /// Every piece, for the recording.
    pub(crate) pieces: Vec<Piece>,
}

/// The loop of a line and how it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineRule {
    pub(crate) delay: LoopDelay,
    pub(crate) evidence: EvidenceClass,
    /// How long the loop really is, where the file says so.
    pub(crate) whole: Option<Duration>,
}

impl LineRule {
    /// The rule of each class of evidence for a line of this length.
    pub(crate) fn of(path: &LinePath, assumed: Duration) -> Self {
        let measured = match path.transport {
            // There is no line to measure.
            Transport::Local | Transport::Chat => Some(path.round_trip.unwrap_or(Duration::ZERO)),
            Transport::Sip | Transport::WebRtc | Transport::MediaStream => path.round_trip,
        };
        let whole = measured.unwrap_or(Duration::ZERO) + path.output_buffer;
        let around = |ms: u64| LoopDelay {
            at_least: whole.saturating_sub(Duration::from_millis(ms)),
            at_most: whole + Duration::from_millis(ms),
        };
        let delay = match path.evidence {
            EvidenceClass::Virtual | EvidenceClass::Page => LoopDelay::exact(whole),
            EvidenceClass::Device | EvidenceClass::Echo => around(20),
            EvidenceClass::Xr => around(30),
            EvidenceClass::Rtcp => LoopDelay { at_least: whole, at_most: whole + Duration::from_millis(120) },
            EvidenceClass::Mark | EvidenceClass::Assumed | EvidenceClass::Unproven => {
                LoopDelay { at_least: whole.min(assumed), at_most: whole.max(assumed) }
            }
        };
        if path.transport == Transport::Chat {
            return Self {
                delay: LoopDelay::default(),
                evidence: path.evidence,
                whole: Some(Duration::ZERO),
            };
        }
        Self { delay, evidence: path.evidence, whole: measured.map(|_| whole) }
    }
}

fn strikes(on: Target, kind: UtteranceKind, nth: u32) -> bool {
    on.kind.is_none_or(|wanted| wanted == kind) && on.occurrence.is_none_or(|wanted| wanted == nth)
}

impl Mouth {
    pub(crate) fn new(line: LineRule, tts_faults: Vec<TtsFault>, ack_faults: Vec<AckFault>) -> Self {
        Self {
            queue: VecDeque::new(),
            playing: None,
            paused: false,
            line,
            tts_faults,
            ack_faults,
            counts: [0; 2],
            said: Vec::new(),
            held_back: Vec::new(),
            last_begun: None,
            sounded: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Queues a piece. Its faults are decided here.
    pub(crate) fn speak(&mut self, mut piece: Piece, now: Time) {
        let index = usize::from(piece.kind == UtteranceKind::Question);
        self.counts[index] += 1;
        let nth = self.counts[index];
        let mut queued = Queued {
            piece: piece.clone(),
            ready: now,
            fail_at: None,
            gap: None,
            lost: Duration::ZERO,
            ack: no_fault(piece.kind),
        };
        for fault in self.tts_faults.iter().filter(|f| strikes(f.on, piece.kind, nth)) {
            let length = piece.length;
            queued.fail_at = fault.fail_at.map(|at| at.within(length)).or(queued.fail_at);
            queued.gap = fault.gap.map(|(at, long)| (at.within(length), long)).or(queued.gap);
            queued.lost += fault.lost;
            queued.ready = queued.ready + fault.delay;
            piece.length += fault.silence_tail;
        }
        // The audible end carries a margin that may lie past the last sample: the sound ends no earlier.
        queued.piece.length = piece.length.max(piece.audible_to);
        if let Some(ack) = self.ack_faults.iter().rev().find(|f| strikes(f.on, piece.kind, nth)) {
            queued.ack = ack.clone();
        }
        self.pieces.push(queued.piece.clone());
        if queued.fail_at.is_none() {
            let Piece { utterance, audible_from, audible_to, .. } = queued.piece;
            self.say(now, PlayoutEvent::Synthesised { utterance, audible_from, audible_to });
        }
        self.queue.push_back(queued);
    }

    pub(crate) fn pause(&mut self, now: Time) {
        if self.paused {
            return;
        }
        self.stop_run(now);
        self.paused = true;
        self.say(now, PlayoutEvent::Paused { at: now });
    }

    pub(crate) fn resume(&mut self, now: Time) {
        self.paused = false;
        if let Some(playing) = self.playing.as_mut() {
            playing.since.get_or_insert(now);
        }
        self.say(now, PlayoutEvent::Resumed { at: now });
    }

    pub(crate) fn clear(&mut self, now: Time) {
        self.stop_run(now);
        self.paused = false;
        if let Some(playing) = self.playing.take() {
            self.cleared(now, &playing.piece, playing.before, !playing.finished);
        }
        for queued in std::mem::take(&mut self.queue) {
            self.cleared(now, &queued, Duration::ZERO, true);
        }
    }

    fn cleared(&mut self, now: Time, queued: &Queued, played: Duration, unfinished: bool) {
        let Piece { utterance, audible_from, audible_to, .. } = queued.piece;
        if unfinished {
            let event =
                PlayoutEvent::Cleared { utterance, played, audible_from, audible_to: Some(audible_to) };
            self.say(now, event);
        }
        if queued.ack.after_clear == AfterClear::Echo {
            self.say_finished(now, queued, now);
        }
    }

    /// The present run of sound ends here.
    fn stop_run(&mut self, now: Time) {
        let Some(playing) = self.playing.as_mut() else { return };
        let Some(since) = playing.since.take().filter(|since| *since <= now) else { return };
        let left = playing.piece.piece.length.saturating_sub(playing.before);
        let length = now.since(since).min(left);
        let utterance = playing.piece.piece.utterance;
        self.sounded.push(Sounded { from: since, piece_from: playing.before, length, utterance });
        playing.before += length;
    }

    fn say(&mut self, at: Time, event: PlayoutEvent) {
        self.said.push((at, event));
    }

    fn say_finished(&mut self, at: Time, queued: &Queued, last_audible: Time) {
        if queued.ack.lose {
            return;
        }
        let event = self.finished(queued, last_audible);
        if queued.ack.reorder {
            self.held_back.push(event);
            return;
        }
        let at = at + queued.ack.delay;
        let again = queued.ack.duplicate.then(|| event.clone());
        let behind = std::mem::take(&mut self.held_back);
        for event in std::iter::once(event).chain(again).chain(behind) {
            self.say(at, event);
        }
    }

    fn finished(&self, queued: &Queued, last_audible: Time) -> PlayoutEvent {
        PlayoutEvent::Finished {
            utterance: queued.piece.utterance,
            last_audible,
            delay: self.line.delay,
            evidence: self.line.evidence,
            lost: queued.lost,
        }
    }

    /// When the question that sounds will have been heard, if nothing stops it.
    pub(crate) fn planned_horizon(&self) -> Option<(Time, UtteranceKind)> {
        let playing = self.playing.as_ref().filter(|p| !p.finished)?;
        let gap = playing.piece.gap.map_or(Duration::ZERO, |(_, gap)| gap);
        let left = playing.piece.piece.audible_to.saturating_sub(playing.before) + gap;
        Some((playing.since? + left + self.line.delay.at_most, playing.piece.piece.kind))
    }

    /// When it wants to be asked again.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let said = self.said.iter().map(|(at, _)| *at).min();
        [said, self.next_step().map(|(at, _)| at)].into_iter().flatten().min()
    }

    fn next_step(&self) -> Option<(Time, Next)> {
        if self.paused {
            return None;
        }
        let Some(playing) = &self.playing else {
            return self.queue.front().map(|queued| (queued.ready, Next::Begin));
        };
        let since = playing.since?;
        let reach = |point: Duration| since + point.saturating_sub(playing.before);
        let steps = [
            playing.piece.gap.map(|(at, _)| (reach(at), Next::Gap)),
            playing.piece.fail_at.map(|at| (reach(at), Next::Fail)),
            (!playing.finished).then(|| (reach(playing.piece.piece.audible_to), Next::Finish)),
            Some((reach(playing.piece.piece.length), Next::End)),
        ];
        steps.into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// What is said by now, in order of time.
    pub(crate) fn poll(&mut self, now: Time) -> Vec<PlayoutEvent> {
        while let Some((at, next)) = self.next_step().filter(|(at, _)| *at <= now) {
            self.step(at, next, now);
        }
        self.said.sort_by_key(|(at, _)| *at);
        let later = self.said.split_off(self.said.partition_point(|(at, _)| *at <= now));
        std::mem::replace(&mut self.said, later).into_iter().map(|(_, event)| event).collect()
    }

    fn step(&mut self, at: Time, next: Next, now: Time) {
        match next {
            Next::Begin => self.begin(now),
            Next::Gap => {
                self.stop_run(at);
                if let Some(playing) = self.playing.as_mut()
                    && let Some((_, gap)) = playing.piece.gap.take()
                {
                    playing.since = Some(at + gap);
                }
            }
            Next::Fail => self.fail(at),
            Next::Finish => {
                if let Some(playing) = self.playing.as_mut() {
                    playing.finished = true;
                    let piece = playing.piece.clone();
                    self.say_finished(at, &piece, at);
                }
            }
            Next::End => {
                self.stop_run(at);
                self.playing = None;
            }
        }
    }

    fn begin(&mut self, now: Time) {
        let Some(piece) = self.queue.pop_front() else { return };
        if piece.fail_at == Some(Duration::ZERO) {
            let utterance = piece.piece.utterance;
            let failure = PlayoutFailure::NoSamples;
            self.say(now, PlayoutEvent::Failed { utterance, failure, played: Duration::ZERO });
            return;
        }
        self.say(now, PlayoutEvent::Started { utterance: piece.piece.utterance, at: now });
        let before = self.last_begun.replace(piece.clone());
        if let Some(before) = before.filter(|_| piece.ack.earlier) {
            let event = self.finished(&before, now);
            self.say(now + piece.ack.delay, event);
        }
        self.playing = Some(Playing { piece, before: Duration::ZERO, since: Some(now), finished: false });
    }

    fn fail(&mut self, at: Time) {
        self.stop_run(at);
        if let Some(playing) = self.playing.take() {
            let utterance = playing.piece.piece.utterance;
            let failure = PlayoutFailure::TtsFailed;
            self.say(at, PlayoutEvent::Failed { utterance, failure, played: playing.before });
        }
    }
}

fn no_fault(kind: UtteranceKind) -> AckFault {
    AckFault {
        line: 0,
        on: Target { kind: Some(kind), occurrence: None },
        delay: Duration::ZERO,
        lose: false,
        duplicate: false,
        after_clear: AfterClear::Silent,
        reorder: false,
        earlier: false,
    }
}
