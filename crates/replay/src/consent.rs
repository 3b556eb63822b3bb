//! A caller with a mouth and an ear, at the far end of a line of a length of their own, in virtual time.
//!
//! What the runtime knows of the line is what a line of that kind tells it. What is true is known here alone: when the
//! last audible sample of the question reached the ear, and when the mouth opened. Every run is judged by that. So
//! this finds what a scenario cannot: a horizon that is stated too early, an onset that is stated too late.
//!
//! ```text
//! our clock    sent(qE) ───────── stated loop, at most ──────────▶ H      an answer counts from here
//!                  \                                                ▲
//! truth             \ out                                          / in
//!                    ▼ ear: the end ── gap ──▶ mouth: the yes ────/
//! ```
//!
//! Yeses are real recordings as real voice activity detection and the real walk back to their onset see them
//! ([`Sounds`]); the check, its vetoes and the gate are the product's own. Only the model is scripted: it calls the tool
//! again when it is told to.

use std::time::Duration;

use sayback_core::Policy;

mod call;
mod kinds;
mod random;
mod sounds;
mod tally;

pub use kinds::{Hides, LineKind, Loop};
pub use random::Random;
pub use sounds::{Sounds, SoundsError, Take};
pub use tally::{Kind, Safe, Share, Span, honest, unheard};

/// How a caller answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum People {
    /// As people answer people: 200 ms after the end, 300 ms more or less.
    Quick,
    /// As people answer machines: 700 ms after the end, 350 ms more or less.
    Slow,
}

impl People {
    /// From the end of the question at the ear to the yes, in microseconds; negative: before it.
    pub fn gap(self, random: &mut Random) -> i64 {
        let (mean, spread) = match self {
            Self::Quick => (200.0, 300.0),
            Self::Slow => (700.0, 350.0),
        };
        ((mean + spread * random.normal()) * 1_000.0) as i64
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The line, as it is and as it is known.
    pub line: Loop,
    /// How the agent wants its calls run.
    pub policy: Policy,
    /// How the caller answers the first asking.
    pub answer: Answer,
    /// How they answer any further one; `None`: they say nothing more.
    pub later: Option<People>,
    /// How often in a hundred a question hears an "mm-hm" within it.
    pub backchannels: u64,
    /// Where this call's draws begin.
    pub seed: u64,
}

/// The yes to the first asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// From the end of the question at the ear to its first sound at the mouth, in microseconds.
    pub gap_micros: i64,
    /// Its sound is held up on the way and comes this much late, in a burst. Its stamps are right.
    pub held_up: Duration,
    /// Its words come this much later than a recogniser needs.
    pub words_late: Duration,
}

/// What came of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// How often the question was begun.
    pub askings: u32,
    /// How many of the askings the caller spoke into before their end at the ear: the plain reading drops each of them,
    /// however well the end is known.
    pub spoken_into: u32,
    /// The tool ran.
    pub ran: bool,
    /// It ran on a yes whose first sound lies before the end of its question at the caller's ear.
    pub unheard: bool,
    /// It ran on the yes to the first asking.
    pub at_once: bool,
    /// The stated onset of the first yes lies behind the stated horizon.
    pub behind: bool,
    /// The true end at the ear lies within the stated interval.
    pub contained: bool,
    /// From the end of the yes to the run, in microseconds, if it ran.
    pub to_run_micros: Option<i64>,
}

impl Trial {
    /// Makes the call.
    pub fn run(&self, sounds: &Sounds) -> Judged {
        call::Call::new(self, sounds).run()
    }
}
