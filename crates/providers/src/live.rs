//! Recognisers that hear along over a socket: what their vendors have in common.
//!
//! One task per call owns the connection. Sound goes out as it comes and nothing goes out between two stretches, so
//! the vendor's clock counts only what was sent; [`stretches`] knows which stretch lies where on that clock, and puts
//! each word where it was said, however late it comes. A vendor that gives no times says which request it answers.
//!
//! Absent on purpose: connecting again. A connection that fails says so once; whoever holds it knows what is still
//! waited for. Proxies are not used for sockets.

mod connection;
mod once;
mod stretches;

use std::time::Duration;

use sayback_runtime::stt::{Live, LiveEvent, OnHeard};
use tokio::sync::mpsc::{Sender, channel};

use crate::hosted::socket::{Door, Received};
use crate::hosted::{Fault, spawn};

pub(crate) use once::{once, pcm16};

/// Samples per second of what is heard.
pub(crate) const RATE: u32 = 16_000;
/// Commands that may wait for the connection, a minute of sound and more: with more than that it is no live call.
const COMMANDS: usize = 8_192;

/// How one vendor speaks over its socket.
pub(crate) trait Dialect: Send + 'static {
    /// What is said first, if anything.
    fn hello(&mut self) -> Option<String> {
        None
    }
    /// Sound.
    fn sound(&mut self, pcm: &[f32]) -> Vec<Sent>;
    /// A wish for the words of everything sent so far.
    fn flush(&mut self) -> Vec<Sent>;
    /// Whether each flush is answered for sure, and in order.
    fn answers_every_flush(&self) -> bool {
        true
    }
    /// Keeps the connection open while nobody speaks; how often, and with what.
    fn keep_alive(&self) -> Option<(Duration, String)>;
    /// Ends the session in good order.
    fn goodbye(&self) -> Option<String>;
    /// Takes a message.
    fn read(&mut self, message: &Received) -> Result<Vec<Heard>, Fault>;
}

/// Makes a recogniser of what opens a [`Line`] with `line`, and has a `VENDOR` and a `service`.
macro_rules! transcribe_along {
    ($recogniser:ident) => {
        impl sayback_runtime::stt::Transcribe for $recogniser {
            fn name(&self) -> String {
                format!("{VENDOR}/{}", self.service.model)
            }

            fn transcribe(
                &self,
                pcm: &[f32],
                _partial: bool,
                cancel: &sayback_runtime::stt::Cancel,
            ) -> Result<sayback_runtime::stt::Transcription, sayback_runtime::stt::SttError> {
                $crate::live::once(|heard| self.line(heard), pcm, cancel)
            }

            fn live(
                &self,
                heard: sayback_runtime::stt::OnHeard,
            ) -> Option<Box<dyn sayback_runtime::stt::Live>> {
                Some(self.line(heard))
            }

            fn hears_along(&self) -> bool {
                true
            }
        }
    };
}

pub(crate) use transcribe_along;

/// A message to the vendor.
#[derive(Debug, PartialEq)]
pub(crate) enum Sent {
    Text(String),
    Bytes(Vec<u8>),
}

/// What a vendor's message says. Times in seconds of sound since the connection began.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    /// Words that may still change.
    Partial { text: String, at: Option<(f64, f64)> },
    /// Words that do not change any more; each with its own leading space where it has one.
    Words(Vec<Timed>),
    /// Text that does not change any more, without times for its words.
    Text { text: String, at: Option<(f64, f64)> },
    /// All words up to here have been said.
    Upto(f64),
    /// The oldest flush is answered.
    Flushed,
    /// All the words between flush number `flush` (from 0) and the one before it.
    Part { flush: u64, text: String },
    /// Words so far behind the last flush that was sent before them.
    PartSoFar { flush: u64, text: String },
}

/// A word and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Timed {
    pub(crate) text: String,
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// 0 to 1; 0 if not given.
    pub(crate) confidence: f32,
}

#[derive(Debug)]
enum Wish {
    Push { stretch: u32, pcm: Vec<f32> },
    Flush { stretch: u32 },
    Forget { stretch: u32 },
}

/// A call's connection, or the way to one.
#[derive(Debug)]
pub(crate) struct Line {
    vendor: &'static str,
    wishes: Option<Sender<Wish>>,
}

impl Line {
    /// Begins to connect.
    pub(crate) fn open(
        vendor: &'static str,
        door: Door,
        answer_within: Duration,
        dialect: impl Dialect,
        mut heard: OnHeard,
    ) -> Self {
        let (wishes, wished) = channel(COMMANDS);
        let talk = async move {
            let talk = connection::Connection::new(door, answer_within, dialect, wished);
            if let Err(fault) = talk.run(&mut heard).await {
                heard(LiveEvent::Failed { error: fault.stt(vendor) });
            }
        };
        match spawn(talk) {
            Ok(()) => Self { vendor, wishes: Some(wishes) },
            Err(fault) => {
                tracing::error!("{vendor} {fault}");
                Self { vendor, wishes: None }
            }
        }
    }

    fn wish(&mut self, wish: Wish) {
        let Some(wishes) = &self.wishes else { return };
        if let Err(tokio::sync::mpsc::error::TrySendError::Full(_)) = wishes.try_send(wish) {
            // The task learns it from the closed channel, and says that it failed.
            tracing::error!("{} takes no sound any more", self.vendor);
            self.wishes = None;
        }
    }
}

impl Live for Line {
    fn push(&mut self, stretch: u32, pcm: &[f32]) {
        self.wish(Wish::Push { stretch, pcm: pcm.to_vec() });
    }

    fn flush(&mut self, stretch: u32) {
        self.wish(Wish::Flush { stretch });
    }

    fn forget(&mut self, stretch: u32) {
        self.wish(Wish::Forget { stretch });
    }
}
