//! A call's ears: voice activity on every frame, and recognition of the segments that the core cuts.
//!
//! Sound comes in from the line's own thread; recognition and the end-of-turn model run on threads of their own while
//! they have something to do, so that neither holds up the frames. A final is begun as soon as the caller seems to pause, before the core is sure:
//! if the pause was the end, its words are there when they are asked for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sayback_core::{Event, Interval, SegmentId, Time, Transcript, VoiceFrame};
use sayback_media::tone::ToneDetector;
use sayback_media::{EchoDetector, EndOfTurn, SpeechProbability, VoiceDetector};
use tokio::sync::mpsc::Sender;

use crate::answering::Answering;
use crate::on_demand::OnDemand;
use crate::record::Recorder;
use crate::stt::{Cancel, SttError, Transcribe, Transcription};

mod along;
mod sound;

use along::Along;

use sound::Sound;

/// Samples per second.
pub const RATE: u32 = 16_000;
/// Sound before a segment's earliest onset that recognition hears too.
const BEFORE: Duration = Duration::from_millis(200);
/// Sound behind a segment's end that recognition hears too.
const BEHIND: Duration = Duration::from_millis(100);
/// A frame below this percentage is a pause in which a final may be begun.
const PAUSE_PERCENT: u8 = 35;
/// Frames of pause after which it is.
const PAUSE_FRAMES: u8 = 2;
/// Between two partial results of a segment.
const PARTIAL_EVERY: Duration = Duration::from_millis(600);
/// Work that may wait: partials beyond it are dropped, finals wait.
const JOBS: usize = 16;

/// Engines of a call's ears.
pub struct EarEngines {
    /// Voice activity, for this call alone.
    pub vad: Box<dyn SpeechProbability>,
    /// Recognition, shared by all calls.
    pub stt: Arc<dyn Transcribe>,
    /// The end-of-turn model, shared by all calls, where there is one.
    pub end_of_turn: Option<Arc<EndOfTurn>>,
}

impl std::fmt::Debug for EarEngines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EarEngines").field("stt", &self.stt).finish_non_exhaustive()
    }
}

/// One block of caller sound.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// When its first sample sounded, on the input clock.
    pub start: Time,
    /// Samples at [`RATE`], cleaned of the agent's own sound as far as the line does that.
    pub samples: &'a [f32],
    /// The same as the microphone gave it.
    pub raw: &'a [f32],
    /// What the speaker played meanwhile.
    pub played: &'a [f32],
    /// Recognition must not hear it (half-duplex); voice activity must.
    pub gated: bool,
}

/// The side that the line's thread feeds.
#[derive(Debug)]
pub struct Ears {
    recorder: Option<Recorder>,
    answering: Option<Answering>,
    /// Tones, while it matters who has answered.
    tones: ToneDetector,
    detector: VoiceDetector,
    shared: Arc<Shared>,
    pauses: u8,
}

/// The side that the driver asks.
#[derive(Clone, Debug)]
pub struct Listener {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    words: OnDemand<Job>,
    /// Recognition that hears along, where the engine can.
    along: Option<Mutex<Along>>,
    judge: Option<OnDemand<(SegmentId, Vec<f32>)>>,
    events: Sender<Event>,
}

#[derive(Debug)]
struct State {
    sound: Sound,
    echo: EchoDetector,
    /// Samples that the echo detector has heard, and when the first of them sounded.
    echo_from: Option<Time>,
    open: Vec<Open>,
    running: Option<Running>,
    /// What is heard is nobody's turn: a machine has answered.
    machine: bool,
}

/// What recognition works at.
#[derive(Debug)]
struct Running {
    segment: SegmentId,
    partial: bool,
    cancel: Cancel,
}

/// A segment whose words are still wanted.
#[derive(Debug)]
struct Open {
    id: SegmentId,
    onset: Interval,
    last_partial: Time,
    /// A final begun in a pause: how far its sound reaches, and its result once there.
    early: Option<(Time, Option<Transcription>)>,
    /// The segment is over; its end.
    closed: Option<Time>,
    /// The sound that an engine which hears along was given: up to where.
    heard: Option<Time>,
}

#[derive(Debug)]
struct Job {
    segment: SegmentId,
    sound: Vec<f32>,
    upto: Time,
    partial: bool,
}

fn recognition(stt: Arc<dyn Transcribe>, shared: Weak<Shared>) -> OnDemand<Job> {
    OnDemand::new("recognition", move |job: Job| {
        if let Some(shared) = shared.upgrade() {
            shared.recognise(&stt, &job);
        }
    })
}

/// Ears for one call: the side for its line, and the side for its driver.
pub fn ears(engines: EarEngines, events: Sender<Event>) -> (Ears, Listener) {
    let judge = engines.end_of_turn.map(|model| {
        let events = events.clone();
        OnDemand::new("end-of-turn", move |(segment, sound): (SegmentId, Vec<f32>)| {
            judge_end(&model, segment, &sound, &events);
        })
    });
    let state = State {
        sound: Sound::new(judge.is_some()),
        echo: EchoDetector::new(),
        echo_from: None,
        open: Vec::new(),
        running: None,
        machine: false,
    };
    let shared = Arc::new_cyclic(|shared: &Weak<Shared>| Shared {
        state: Mutex::new(state),
        along: Along::begin(&engines.stt, shared).map(Mutex::new),
        words: recognition(engines.stt, Weak::clone(shared)),
        judge,
        events,
    });
    let listener = Listener { shared: Arc::clone(&shared) };
    (
        Ears {
            recorder: None,
            answering: None,
            tones: ToneDetector::default(),
            detector: VoiceDetector::new(engines.vad),
            shared,
            pauses: 0,
        },
        listener,
    )
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    if let Err(error) = started {
        tracing::error!("cannot start the {name} thread: {error}");
    }
}

impl Ears {
    /// Whatever is heard is recorded too, before it is judged.
    pub fn record(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    /// The call is one that we made: who has answered it is not known yet.
    pub fn expect_answer(&mut self, answering: Answering) {
        self.answering = Some(answering);
    }

    /// Takes a block of caller sound; judged frames go to the call.
    pub fn hear(&mut self, block: Heard<'_>) {
        if let Some(recorder) = &self.recorder {
            recorder.hear(block.start, block.raw, block.played);
        }
        self.shared.state().note(&block);
        self.shared.hear_along(None);
        let mut frames: Vec<VoiceFrame> = Vec::new();
        if let Err(error) = self.detector.push(block.samples, block.start, |frame| frames.push(frame)) {
            tracing::error!("voice activity detection failed: {error}");
        }
        self.judge_tones(&block);
        for mut frame in frames {
            self.judge_answer(&mut frame);
            // A call that is over needs no more frames.
            let _ = self.shared.events.blocking_send(Event::Voice(frame));
            self.follow(&frame);
        }
    }

    /// Whether the agent's own voice is in the last sound heard, as long as `recent`; how long it took to come back.
    pub fn own_voice(&self, recent: Duration) -> Option<Duration> {
        let found = self.shared.state().echo.find_recent(recent)?;
        found.is_echo().then_some(found.delay)
    }

    /// A stretch of sound that nothing is known of: onsets behind it may lie in it.
    pub fn lost(&mut self, from: Time, to: Time) {
        self.detector.censor().lost(from, to);
    }

    /// Whether a machine has beeped.
    fn judge_tones(&mut self, block: &Heard<'_>) {
        let Some(answering) = &mut self.answering else { return };
        let events = &self.shared.events;
        self.tones.push(block.samples, block.start, |tone| {
            answering.on_tone(&tone, &mut |event| {
                let _ = events.blocking_send(event);
            });
        });
    }

    /// Whether it is a person who has answered; a machine's voice counts as quiet.
    fn judge_answer(&mut self, frame: &mut VoiceFrame) {
        let Some(answering) = &mut self.answering else { return };
        let events = &self.shared.events;
        answering.push(frame, &mut |event| {
            let _ = events.blocking_send(event);
        });
        if answering.is_machine() {
            frame.speech = 0;
            self.shared.state().machine = true;
        }
    }

    /// Begins a final in a pause, and partials while the caller speaks.
    fn follow(&mut self, frame: &VoiceFrame) {
        self.pauses = if frame.speech < PAUSE_PERCENT { self.pauses.saturating_add(1) } else { 0 };
        let mut state = self.shared.state();
        let Some(at) = state.open.iter().position(|open| open.closed.is_none()) else { return };
        let from = state.open[at].onset.earliest - BEFORE;
        let id = state.open[at].id;
        if self.shared.along.is_some() {
            let judged = state.sound.slice(frame.end - Duration::from_secs(8), frame.end);
            drop(state);
            if self.pauses == PAUSE_FRAMES {
                self.shared.judge(id, judged);
            }
            if self.pauses == along::PAUSE_FRAMES && self.shared.may_flush_early(id) {
                self.shared.hear_along(Some(id));
            }
        } else if self.pauses == PAUSE_FRAMES {
            state.open[at].early = Some((frame.end, None));
            let sound = state.sound.slice(from, frame.end);
            let judged = state.sound.slice(frame.end - Duration::from_secs(8), frame.end);
            drop(state);
            self.shared.put(Job { segment: id, sound, upto: frame.end, partial: false });
            self.shared.judge(id, judged);
        } else if self.pauses == 0 && frame.end.since(state.open[at].last_partial) >= PARTIAL_EVERY {
            state.open[at].last_partial = frame.end;
            if state.running.is_some() {
                // It is behind already: these words come with the next partial, or with the final.
                return;
            }
            let sound = state.sound.slice(from, frame.end);
            drop(state);
            // A partial that finds the queue full is not worth waiting for.
            let job = Job { segment: id, sound, upto: frame.end, partial: true };
            let _ = self.shared.words.try_put(job, JOBS);
        }
    }
}

impl Listener {
    /// A segment began.
    pub fn open(&self, id: SegmentId, onset: Interval) {
        self.shared.forget_unanswered(onset.latest);
        let mut state = self.shared.state();
        let last_partial = onset.latest;
        state.open.push(Open { id, onset, last_partial, early: None, closed: None, heard: None });
    }

    /// A segment is over: its words are sent once they are there.
    pub fn close(&self, id: SegmentId, offset: Time) {
        let mut state = self.shared.state();
        if state.is_echo(id, offset) {
            state.open.retain(|open| open.id != id);
            drop(state);
            self.shared.forget(id);
            self.shared.send(Event::Echo { segment: id });
            return;
        }
        let Some(onset) = state.open.iter().find(|open| open.id == id).map(|open| open.onset) else { return };
        if state.machine {
            state.open.retain(|open| open.id != id);
            drop(state);
            self.shared.forget(id);
            self.shared.send(final_event(id, Transcription::default()));
            return;
        }
        let level_db = sayback_media::level::voiced_db(&state.sound.slice(onset.latest, offset));
        if level_db.is_some() {
            self.shared.send(Event::Measured { segment: id, level_db, speakers: None });
        }
        let Some(open) = state.open.iter_mut().find(|open| open.id == id) else { return };
        open.closed = Some(offset);
        let from = open.onset.earliest - BEFORE;
        match open.early.take() {
            Some((upto, Some(found))) if upto >= offset => {
                state.open.retain(|open| open.id != id);
                drop(state);
                self.shared.forget(id);
                self.shared.send(final_event(id, found));
            }
            Some((upto, None)) if upto >= offset => open.early = Some((upto, None)),
            _ if self.shared.along.is_some() => {
                drop(state);
                self.shared.hear_along(Some(id));
            }
            _ => {
                let sound = state.sound.slice(from, offset + BEHIND);
                drop(state);
                self.shared.put(Job { segment: id, sound, upto: offset, partial: false });
            }
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, job: Job) {
        self.state().make_way(job.segment);
        // A final is never dropped; there are no more of them than segments that wait for their words.
        self.words.put(job);
    }

    fn judge(&self, id: SegmentId, sound: Vec<f32>) {
        if let Some(judge) = &self.judge {
            // One that finds the queue full would come too late.
            let _ = judge.try_put((id, sound), JOBS);
        }
    }

    /// From any thread, the driver's among them: sending must not wait there.
    fn send(&self, event: Event) {
        let sender = self.events.clone();
        if let Err(tokio::sync::mpsc::error::TrySendError::Full(event)) = sender.try_send(event) {
            spawn("late event", move || {
                let _ = sender.blocking_send(event);
            });
        }
    }

    fn recognise(&self, stt: &Arc<dyn Transcribe>, job: &Job) {
        let cancel = Cancel::new();
        {
            let mut state = self.state();
            if !state.wants(job) {
                return;
            }
            let (segment, partial) = (job.segment, job.partial);
            state.running = Some(Running { segment, partial, cancel: cancel.clone() });
        }
        let found = stt.transcribe(&job.sound, job.partial, &cancel);
        self.state().running = None;
        let found = match found {
            Ok(found) => found,
            Err(SttError::Cancelled) => return,
            Err(error) => {
                // Nothing is sent: what was said there is not known, and the core's limit says so. An empty result
                // would say that nothing was said.
                tracing::error!("{error}");
                self.state().open.retain(|open| open.id != job.segment || open.closed.is_none());
                return;
            }
        };
        let mut state = self.state();
        let Some(open) = state.open.iter_mut().find(|open| open.id == job.segment) else { return };
        if job.partial {
            let wanted = open.closed.is_none();
            drop(state);
            if wanted && found.phantom.is_none() {
                self.send(Event::Partial { segment: job.segment, text: found.text });
            }
            return;
        }
        match open.closed {
            Some(offset) if job.upto >= offset => {
                state.open.retain(|open| open.id != job.segment);
                drop(state);
                self.send(final_event(job.segment, found));
            }
            _ => {
                if let Some((upto, result)) = open.early.as_mut().filter(|(upto, _)| *upto == job.upto) {
                    let _ = upto;
                    *result = Some(found);
                }
            }
        }
    }
}

impl State {
    fn note(&mut self, block: &Heard<'_>) {
        let needed = self.open.iter().map(|open| open.onset.earliest - BEFORE).min();
        self.sound.add(block.start, block.samples, block.gated);
        self.sound.forget_before(needed);
        self.echo_from.get_or_insert(block.start);
        self.echo.played(block.played);
        self.echo.heard(block.raw);
    }

    /// Whether the result of this work would still be of use.
    fn wants(&self, job: &Job) -> bool {
        let Some(open) = self.open.iter().find(|open| open.id == job.segment) else { return false };
        match open.closed {
            Some(offset) => !job.partial && job.upto >= offset,
            None if job.partial => open.last_partial == job.upto,
            None => open.early.as_ref().is_some_and(|(upto, _)| *upto == job.upto),
        }
    }

    /// A final comes: a partial would only hold it up, and an earlier final of its segment has less of the sound.
    fn make_way(&self, segment: SegmentId) {
        if let Some(running) = self.running.as_ref().filter(|r| r.partial || r.segment == segment) {
            running.cancel.cancel();
        }
    }

    /// Whether a segment is the agent's own voice coming back.
    fn is_echo(&self, id: SegmentId, offset: Time) -> bool {
        let Some(open) = self.open.iter().find(|open| open.id == id) else { return false };
        let Some(origin) = self.echo_from else { return false };
        let (from, to) = (sound::count(open.onset.latest.since(origin)), sound::count(offset.since(origin)));
        self.echo.find(from, to).is_some_and(|found| found.is_echo())
    }
}

fn final_event(segment: SegmentId, found: Transcription) -> Event {
    let confidence =
        (found.avg_logprob != 0.0).then(|| (found.avg_logprob.exp() * 100.0).clamp(0.0, 100.0) as u8);
    Event::Transcript(Transcript {
        segments: vec![segment],
        span: None,
        text: found.text,
        confidence,
        phantom: found.phantom,
    })
}

fn judge_end(model: &EndOfTurn, segment: SegmentId, sound: &[f32], events: &Sender<Event>) {
    match model.probability(sound) {
        Ok(probability) => {
            let percent = (probability * 100.0).clamp(0.0, 100.0) as u8;
            let _ = events.blocking_send(Event::EndOfTurn { segment, percent });
        }
        Err(error) => tracing::error!("the end-of-turn model failed: {error}"),
    }
}
