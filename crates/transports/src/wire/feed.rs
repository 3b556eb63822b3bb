//! The way from a wire to a call's ears.

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use sayback_core::Time;
use sayback_runtime::ears::{Ears, Heard};

use super::inbound::InboundFact;

/// Blocks that may wait: four seconds of sound. What finds no room is lost, and said to be lost.
const WAITING: usize = 200;

#[derive(Debug)]
enum Fact {
    Heard { start: Time, samples: Vec<f32>, played: Vec<f32> },
    Lost { from: Time, to: Time },
}

/// Feeds a call's ears on a thread of their own: voice activity must not hold up the network, and recognition may hold
/// up voice activity.
#[derive(Debug)]
pub struct EarFeed {
    sender: SyncSender<Fact>,
    /// Since when sound found no room.
    missing: Option<(Time, Time)>,
}

impl EarFeed {
    /// Starts the thread; it ends when this is dropped.
    pub fn start(mut ears: Ears) -> Self {
        let (sender, facts) = sync_channel::<Fact>(WAITING);
        let work = move || {
            while let Ok(fact) = facts.recv() {
                match fact {
                    Fact::Heard { start, samples, played } => ears.hear(Heard {
                        start,
                        samples: &samples,
                        raw: &samples,
                        played: &played,
                        gated: false,
                    }),
                    Fact::Lost { from, to } => ears.lost(from, to),
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name("ears".to_owned()).spawn(work) {
            tracing::error!("cannot start the ears' thread: {error}");
        }
        Self { sender, missing: None }
    }

    /// Hands on what came in; `played` is what was sent meanwhile. Never waits.
    pub fn put(&mut self, fact: InboundFact, played: Vec<f32>) {
        let fact = match fact {
            InboundFact::Heard { start, samples } => Fact::Heard { start, samples, played },
            InboundFact::Lost { from, to } => Fact::Lost { from, to },
        };
        if let Some((from, to)) = self.missing {
            if self.sender.try_send(Fact::Lost { from, to }).is_err() {
                self.miss(&fact);
                return;
            }
            self.missing = None;
        }
        if let Err(TrySendError::Full(fact)) = self.sender.try_send(fact) {
            self.miss(&fact);
        }
    }

    fn miss(&mut self, fact: &Fact) {
        let (from, to) = match fact {
            Fact::Heard { start, samples, .. } => {
                let micros = samples.len() as u64 * 1_000_000 / u64::from(sayback_runtime::ears::RATE);
                (*start, *start + std::time::Duration::from_micros(micros))
            }
            Fact::Lost { from, to } => (*from, *to),
        };
        let missing = self.missing.get_or_insert((from, to));
        missing.0 = missing.0.min(from);
        missing.1 = missing.1.max(to);
    }
}
