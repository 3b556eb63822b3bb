//! The runtime's line over a wire, and the transport's side of it.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sayback_core::{
    CallId, Event, EvidenceClass, Interval, LoopDelay, PlayoutFailure, SegmentId, Speak, Time, UtteranceId,
};
use sayback_runtime::calls::{LineControl, NotOnThisLine};
use sayback_runtime::clock::Clock;
use sayback_runtime::ears::{Ears, Listener, RATE};
use sayback_runtime::line::Line;
use sayback_runtime::tts::Synthesize;
use sayback_runtime::voice::{Player, Voice};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::mpsc::Sender;

use super::feed::EarFeed;
use super::inbound::InboundFact;
use super::mouth::{Counts, Mouth, Out, WireOptions};

#[derive(Debug)]
struct Shared {
    mouth: Mutex<Mouth>,
    clock: Clock,
    /// Something is to be sent earlier than the mouth said before.
    wake: Notify,
    closed: AtomicBool,
}

impl Shared {
    fn mouth(&self) -> MutexGuard<'_, Mouth> {
        self.mouth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with(&self, work: impl FnOnce(&mut Mouth)) {
        work(&mut self.mouth());
        self.wake.notify_one();
    }
}

/// A line that speaks through `tts`, and the transport's side of it. To be called on the executor that runs the call.
pub fn open(options: WireOptions, clock: Clock, tts: Arc<dyn Synthesize>) -> (WireLine, WireEnd) {
    let shared = Arc::new(Shared {
        mouth: Mutex::new(Mouth::new(options, clock.now())),
        clock,
        wake: Notify::new(),
        closed: AtomicBool::new(false),
    });
    let player = WirePlayer { shared: Arc::clone(&shared) };
    let voice = Voice::new(tts, Arc::new(player));
    let line = WireLine { shared: Arc::clone(&shared), voice, ears: None, signalling: None };
    (line, WireEnd { shared })
}

/// What the voice speaks into.
#[derive(Debug)]
pub struct WirePlayer {
    shared: Arc<Shared>,
}

impl Player for WirePlayer {
    fn begin(&self, utterance: UtteranceId, rate: u32) {
        self.shared.with(|mouth| {
            if let Err(error) = mouth.begin(utterance, rate) {
                tracing::error!("{error}");
                mouth.fail(utterance, PlayoutFailure::TtsFailed);
            }
        });
    }

    fn push(&self, utterance: UtteranceId, samples: &[i16]) -> ControlFlow<()> {
        let wanted = self.shared.mouth().push(utterance, samples);
        self.shared.wake.notify_one();
        if wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn finish(&self, utterance: UtteranceId) {
        self.shared.with(|mouth| mouth.finish(utterance));
    }

    fn fail(&self, utterance: UtteranceId) {
        self.shared.with(|mouth| mouth.fail(utterance, PlayoutFailure::TtsFailed));
    }

    fn clear(&self) {
        let now = self.shared.clock.now();
        self.shared.with(|mouth| mouth.clear(now));
    }
}

/// What a transport does for its call beside the sound. Nothing in here waits.
pub trait Signalling: std::fmt::Debug + Send + Sync {
    /// As [`Line::transfers`].
    fn transfers(&self) -> Vec<String> {
        Vec::new()
    }
    /// As [`Line::transfer`].
    fn transfer(&mut self, _call: &CallId, _input: &str, _dropped: Option<&str>) -> bool {
        false
    }
    /// As [`Line::on_event`].
    fn on_event(&mut self, _line: &Value) {}
}

/// The runtime's line over a wire.
#[derive(Debug)]
pub struct WireLine {
    shared: Arc<Shared>,
    voice: Voice,
    ears: Option<Listener>,
    signalling: Option<Box<dyn Signalling>>,
}

impl WireLine {
    /// The same with what its transport does beside the sound.
    pub fn with(self, signalling: impl Signalling + 'static) -> Self {
        Self { signalling: Some(Box::new(signalling)), ..self }
    }
}

impl Line for WireLine {
    fn speak(&mut self, speak: Speak) {
        self.voice.speak(speak);
    }

    fn pause(&mut self) {
        self.shared.with(Mouth::pause);
    }

    fn resume(&mut self) {
        self.shared.with(Mouth::resume);
    }

    fn clear(&mut self) {
        self.voice.clear();
    }

    fn open_segment(&mut self, segment: SegmentId, onset: Interval) {
        if let Some(ears) = &self.ears {
            ears.open(segment, onset);
        }
    }

    fn close_segment(&mut self, segment: SegmentId, offset: Time) {
        if let Some(ears) = &self.ears {
            ears.close(segment, offset);
        }
    }

    fn listen(&mut self, listener: Listener) {
        self.ears = Some(listener);
    }

    fn end(&mut self) {
        self.shared.with(Mouth::end);
    }

    fn transfers(&self) -> Vec<String> {
        self.signalling.as_ref().map_or_else(Vec::new, |signalling| signalling.transfers())
    }

    fn transfer(&mut self, call: &CallId, input: &str, dropped: Option<&str>) -> bool {
        self.signalling.as_mut().is_some_and(|signalling| signalling.transfer(call, input, dropped))
    }

    fn on_event(&mut self, line: &Value) {
        if let Some(signalling) = &mut self.signalling {
            signalling.on_event(line);
        }
    }

    fn close(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        // A transport that is not waiting just now must find it when it does.
        self.shared.wake.notify_one();
    }
}

/// The transport's side of a line before there is a call: the call is made with the line, and this needs the call.
#[derive(Debug)]
pub struct WireEnd {
    shared: Arc<Shared>,
}

impl WireEnd {
    /// What can be done to the line from outside: being muted and, if it has `keys`, pressing them. `transport` is its
    /// name in what it says.
    pub fn control(&self, transport: &'static str, keys: bool) -> Arc<dyn LineControl> {
        Arc::new(WireControl { shared: Arc::clone(&self.shared), transport, keys })
    }

    /// Joins it to somebody who only hears what came of what was sent: nobody listens to what comes in.
    pub fn join_deaf(self, call: Sender<Event>) -> Wire {
        Wire { shared: self.shared, call, feed: None }
    }

    /// Joins it to its call.
    pub fn join(self, call: Sender<Event>, ears: Ears) -> Wire {
        let shared = Arc::downgrade(&self.shared);
        let feed = EarFeed::start(
            ears,
            Box::new(move |back| {
                if let Some(shared) = shared.upgrade() {
                    let now = shared.clock.now();
                    shared.mouth().hear_echo(back, now);
                }
            }),
        );
        Wire { shared: self.shared, call, feed: Some(feed) }
    }
}

#[derive(Debug)]
struct WireControl {
    shared: Arc<Shared>,
    transport: &'static str,
    keys: bool,
}

impl LineControl for WireControl {
    fn press(&self, digits: &str) -> Result<(), NotOnThisLine> {
        if !self.keys {
            return Err(NotOnThisLine { transport: self.transport, what: "press keys" });
        }
        self.shared.with(|mouth| mouth.press(digits.to_owned()));
        Ok(())
    }

    fn mute(&self, muted: bool) -> Result<(), NotOnThisLine> {
        self.shared.with(|mouth| mouth.set_muted(muted));
        Ok(())
    }

    fn transfer(&self, _to: &str) -> Result<(), NotOnThisLine> {
        Err(NotOnThisLine { transport: self.transport, what: "be transferred" })
    }
}

/// The transport's side of a line: what is to be sent, what came of it, and what came in.
#[derive(Debug)]
pub struct Wire {
    shared: Arc<Shared>,
    call: Sender<Event>,
    /// The way to the ears, if anybody listens.
    feed: Option<EarFeed>,
}

impl Wire {
    /// The call clock.
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// Samples in a frame.
    pub fn frame_len(&self) -> usize {
        self.shared.mouth().frame_len()
    }

    /// Waits until something is to be sent; a frame's samples are put into `frame`. `None`: the call is over, nothing
    /// more comes. Meanwhile the call is told what came of what was sent. May be dropped while it waits.
    pub async fn next(&self, frame: &mut Vec<f32>) -> Option<Out> {
        loop {
            let woken = self.shared.wake.notified();
            self.report().await;
            let now = self.shared.clock.now();
            let at = {
                let mut mouth = self.shared.mouth();
                if let Some(out) = mouth.poll(now, frame) {
                    return Some(out);
                }
                mouth.poll_timeout()
            };
            if self.shared.closed.load(Ordering::Acquire) {
                return None;
            }
            let due = at.map(|at| self.shared.clock.instant(at));
            tokio::select! {
                () = woken => {}
                () = until(due) => {}
            }
        }
    }

    /// Tells the call what came of what was sent. An event is taken only when there is room for it, so none is lost if
    /// this is dropped while it waits.
    async fn report(&self) {
        while self.shared.mouth().has_event() {
            // A call that is over needs no more news.
            let Ok(room) = self.call.reserve().await else { return };
            if let Some(event) = self.shared.mouth().poll_event() {
                room.send(Event::Playout(event));
            }
        }
    }

    /// Tells the call something else that happened on the line: a key, a hold, a hang-up.
    pub async fn tell(&self, event: Event) {
        // A call that is over needs no more news.
        let _ = self.call.send(event).await;
    }

    /// The frame that came last has been handed to the network.
    pub fn sent(&self) {
        let now = self.shared.clock.now();
        self.shared.mouth().sent(now);
    }

    /// A mark came back; `place` is the end of the sound that came before it.
    pub fn on_mark(&self, name: &str, place: Time) {
        self.shared.with(|mouth| mouth.on_mark(name, place));
    }

    /// What is known of the way behind the wire has changed.
    pub fn set_loop(&self, delay: LoopDelay, evidence: EvidenceClass) {
        self.shared.mouth().set_loop(delay, evidence);
    }

    /// Whether the far end gets nothing of what is sent.
    pub fn set_muted(&self, muted: bool) {
        self.shared.mouth().set_muted(muted);
    }

    /// So much of what sounds now did not reach the far end.
    pub fn lose(&self, length: Duration) {
        self.shared.mouth().lose(length);
    }

    /// Nothing of what sounds now, or still waits for its mark, is known to have reached the far end.
    pub fn lose_all(&self) {
        self.shared.mouth().lose_all();
    }

    /// A mark will not come back: what it stands behind was not heard.
    pub fn miss_mark(&self, name: &str) {
        let now = self.shared.clock.now();
        self.shared.with(|mouth| mouth.miss_mark(name, now));
    }

    /// The way to the far end is another from now on.
    pub fn change_path(&self) {
        let now = self.shared.clock.now();
        self.shared.with(|mouth| mouth.change_path(now));
    }

    /// So long the packets to the far end and back take at least.
    pub fn set_trip(&self, least: Duration) {
        self.shared.mouth().set_trip(least);
    }

    /// The network is gone: what was to be said has failed.
    pub fn lose_line(&self) {
        let now = self.shared.clock.now();
        self.shared.with(|mouth| mouth.lose_line(now));
    }

    /// Presses keys at the far end.
    pub fn press(&self, digits: String) {
        self.shared.with(|mouth| mouth.press(digits));
    }

    /// What the wire has gone through so far.
    pub fn counts(&self) -> Counts {
        self.shared.mouth().counts()
    }

    /// Hands what came in to the ears, together with what was sent at the same time. Never waits.
    pub fn hear(&mut self, fact: InboundFact) {
        let Some(feed) = &mut self.feed else { return };
        let played = match &fact {
            InboundFact::Heard { start, samples } => {
                let mut played = vec![0.0; samples.len()];
                self.shared.mouth().sent_between(*start, RATE, &mut played);
                played
            }
            InboundFact::Lost { .. } => Vec::new(),
        };
        feed.put(fact, played);
    }
}

async fn until(deadline: Option<std::time::Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
