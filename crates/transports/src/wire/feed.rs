//! The way from a wire to a call's ears.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sayback_core::Time;
use sayback_runtime::ears::{Ears, Heard};

use super::inbound::InboundFact;
use super::own_voice::OwnVoice;

/// Blocks that may wait: four seconds of sound. What finds no room is lost, and said to be lost.
const WAITING: usize = 200;

#[derive(Debug)]
enum Fact {
    Heard { start: Time, samples: Vec<f32>, played: Vec<f32> },
    Lost { from: Time, to: Time },
}

/// Is told how long our own voice took to come back.
pub type OnEcho = Box<dyn Fn(Duration) + Send>;

/// A call on its thread.
struct Fed {
    ears: Box<Ears>,
    waiting: Arc<AtomicUsize>,
    own_voice: OwnVoice,
    on_echo: OnEcho,
}

enum Message {
    Joined { call: u64, fed: Fed },
    Came { call: u64, fact: Fact },
    Left { call: u64 },
}

/// Feeds a call's ears on a thread that some calls share: voice activity must not hold up the network, and recognition
/// may hold up voice activity.
///
/// There is one such thread for each core. A call stays with its thread, so its sound stays in order.
#[derive(Debug)]
pub struct EarFeed {
    thread: Sender<Message>,
    call: u64,
    /// Blocks of this call that wait. The thread's queue itself has no bound; this is it.
    waiting: Arc<AtomicUsize>,
    /// Since when sound found no room.
    missing: Option<(Time, Time)>,
}

impl EarFeed {
    /// Takes up a call; it is let go of when this is dropped.
    pub fn start(ears: Ears, on_echo: OnEcho) -> Self {
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let threads = threads();
        let thread = threads[usize::try_from(call).unwrap_or(0) % threads.len()].clone();
        let waiting = Arc::new(AtomicUsize::new(0));
        let feed = Self { thread, call, waiting, missing: None };
        let (ears, waiting) = (Box::new(ears), Arc::clone(&feed.waiting));
        let fed = Fed { ears, waiting, own_voice: OwnVoice::default(), on_echo };
        feed.send(Message::Joined { call, fed });
        feed
    }

    /// Hands on what came in; `played` is what was sent meanwhile. Never waits.
    pub fn put(&mut self, fact: InboundFact, played: Vec<f32>) {
        let fact = match fact {
            InboundFact::Heard { start, samples } => Fact::Heard { start, samples, played },
            InboundFact::Lost { from, to } => Fact::Lost { from, to },
        };
        if self.waiting.load(Ordering::Acquire) >= WAITING {
            self.miss(&fact);
            return;
        }
        if let Some((from, to)) = self.missing.take() {
            self.hand(Fact::Lost { from, to });
        }
        self.hand(fact);
    }

    fn hand(&self, fact: Fact) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        self.send(Message::Came { call: self.call, fact });
    }

    fn send(&self, message: Message) {
        if self.thread.send(message).is_err() {
            tracing::error!("the ears' thread has stopped");
        }
    }

    fn miss(&mut self, fact: &Fact) {
        let (from, to) = match fact {
            Fact::Heard { start, samples, .. } => {
                let micros = samples.len() as u64 * 1_000_000 / u64::from(sayback_runtime::ears::RATE);
                (*start, *start + Duration::from_micros(micros))
            }
            Fact::Lost { from, to } => (*from, *to),
        };
        let missing = self.missing.get_or_insert((from, to));
        missing.0 = missing.0.min(from);
        missing.1 = missing.1.max(to);
    }
}

impl Drop for EarFeed {
    fn drop(&mut self) {
        self.send(Message::Left { call: self.call });
    }
}

/// The threads, started with the first call of the process; they live as long as it.
fn threads() -> &'static [Sender<Message>] {
    static THREADS: OnceLock<Vec<Sender<Message>>> = OnceLock::new();
    THREADS.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (0..cores).map(|_| start_thread()).collect()
    })
}

fn start_thread() -> Sender<Message> {
    let (sender, messages) = channel();
    let work = move || feed(&messages);
    if let Err(error) = std::thread::Builder::new().name("ears".to_owned()).spawn(work) {
        tracing::error!("cannot start the ears' thread: {error}");
    }
    sender
}

fn feed(messages: &Receiver<Message>) {
    let mut calls: BTreeMap<u64, Fed> = BTreeMap::new();
    while let Ok(message) = messages.recv() {
        match message {
            Message::Joined { call, fed } => {
                calls.insert(call, fed);
            }
            Message::Left { call } => {
                calls.remove(&call);
            }
            Message::Came { call, fact } => {
                let Some(fed) = calls.get_mut(&call) else { continue };
                fed.waiting.fetch_sub(1, Ordering::AcqRel);
                // What breaks one call must not end the ears of the others.
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fed.hear(fact)));
                if done.is_err() {
                    tracing::error!("the ears of a call broke; it hears nothing more");
                    calls.remove(&call);
                }
            }
        }
    }
}

impl Fed {
    fn hear(&mut self, fact: Fact) {
        match fact {
            Fact::Heard { start, samples, played } => {
                let block = Heard { start, samples: &samples, raw: &samples, played: &played, gated: false };
                self.ears.hear(block);
                if let Some(back) = self.own_voice.push(&played, &self.ears) {
                    (self.on_echo)(back);
                }
            }
            Fact::Lost { from, to } => self.ears.lost(from, to),
        }
    }
}
