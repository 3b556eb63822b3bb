//! A second engine that takes over in the middle of a call when the first one fails, closes or is slow.
//!
//! It takes over only where nothing is lost and nothing is done twice:
//!
//! - recognition: the sound of every segment that still waits is handed over again, from the segment's beginning;
//! - voice: only while no sound of the utterance was handed out. Half of one voice and half of another, or the beginning
//!   twice, is not what was to be said, so after that the utterance has failed;
//! - language model: only while nothing of the step was handed out.
//!
//! The engine that worked last is asked first; when it fails, the one after it, in a ring. A cancelled request is no
//! failure. Nothing here counts time: each engine says itself that it is slow, by its own limits.

mod llm;
mod stt;
mod tts;
mod whole;

use std::sync::atomic::{AtomicUsize, Ordering};

pub use llm::FailoverLlm;
pub use stt::FailoverStt;
pub use tts::FailoverTts;

/// Engines in a ring, the one that worked last in front.
#[derive(Debug)]
struct Ring<T> {
    engines: Vec<T>,
    first: AtomicUsize,
}

impl<T> Ring<T> {
    fn new(first: T, others: Vec<T>) -> Self {
        let mut engines = vec![first];
        engines.extend(others);
        Self { engines, first: AtomicUsize::new(0) }
    }

    /// Each engine once, with its place; the one that worked last first.
    fn round(&self) -> impl Iterator<Item = (usize, &T)> {
        let first = self.front();
        let places = (0..self.engines.len()).map(move |n| (first + n) % self.engines.len());
        places.filter_map(|at| Some((at, self.engines.get(at)?)))
    }

    fn front(&self) -> usize {
        self.first.load(Ordering::Relaxed) % self.engines.len().max(1)
    }

    /// This one works.
    fn works(&self, at: usize) {
        self.first.store(at, Ordering::Relaxed);
    }

    /// All names: `deepgram/nova-3, else whisper/tiny.en`.
    fn names(&self, name: impl Fn(&T) -> String) -> String {
        self.engines.iter().map(name).collect::<Vec<_>>().join(", else ")
    }
}
