//! Many calls, counted.

use std::time::Duration;

use sayback_core::Policy;

use super::{Answer, Judged, LineKind, Loop, People, Random, Trial};

/// A yes that must never run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is over before the question is.
    Before,
    /// It begins in the last moments of the question and ends behind it.
    Straddling,
    /// It begins in the very last moments, 60 ms.
    Last,
    /// Its sound is held up on the way and arrives, rightly stamped, when the question is over.
    HeldUp,
    /// Its words arrive when the question is over.
    WordsLate,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Before, Self::Straddling, Self::Last, Self::HeldUp, Self::WordsLate];

    fn answer(self, random: &mut Random) -> Answer {
        let late = Duration::from_millis(random.between(400, 4_500).unsigned_abs());
        let (gap, held_up, words_late) = match self {
            Self::Before => (random.between(-3_900_000, -700_000), Duration::ZERO, Duration::ZERO),
            Self::Straddling => (random.between(-700_000, 0), Duration::ZERO, Duration::ZERO),
            Self::Last => (random.between(-60_000, 0), Duration::ZERO, Duration::ZERO),
            Self::HeldUp => (random.between(-2_500_000, 0), late, Duration::ZERO),
            Self::WordsLate => (random.between(-2_500_000, 0), Duration::ZERO, late),
        };
        Answer { gap_micros: gap, held_up, words_late }
    }
}

/// A call with a yes that must not run; silence after it.
pub fn unheard(line: LineKind, kind: Kind, policy: &Policy, assumed: Duration, seed: u64) -> Trial {
    let mut random = Random::new(seed);
    Trial {
        line: Loop::draw(line, assumed, &mut random),
        policy: policy.clone(),
        answer: kind.answer(&mut random),
        later: None,
        backchannels: 0,
        seed: random.bits(),
    }
}

/// A call with a caller who wants it, and answers until it is done.
pub fn honest(
    line: LineKind,
    people: People,
    backchannels: u64,
    (policy, assumed): (&Policy, Duration),
    seed: u64,
) -> Trial {
    let mut random = Random::new(seed);
    Trial {
        line: Loop::draw(line, assumed, &mut random),
        policy: policy.clone(),
        answer: Answer { gap_micros: people.gap(&mut random), ..Answer::default() },
        later: Some(people),
        backchannels,
        seed: random.bits(),
    }
}

/// Row (f): nothing runs unheard, and whatever begins behind the horizon runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Safe {
    /// Yeses that must not run.
    pub yeses: u64,
    /// Those that ran all the same.
    pub ran: u64,
    /// Calls in which the stated interval holds the true loop.
    pub contained: u64,
    /// First yeses, of any call, whose stated onset lies behind the stated horizon.
    pub behind: u64,
    /// Those of them that did not run.
    pub behind_lost: u64,
}

impl Safe {
    /// Counts a call of [`unheard`].
    pub fn note(&mut self, judged: &Judged) {
        self.yeses += 1;
        self.ran += u64::from(judged.ran);
        self.contained += u64::from(judged.contained);
    }

    /// Counts a call of [`honest`].
    pub fn note_honest(&mut self, judged: &Judged) {
        self.ran += u64::from(judged.unheard);
        self.behind += u64::from(judged.behind);
        self.behind_lost += u64::from(judged.behind && !judged.at_once);
    }
}

/// Row (f2): how often an honest yes is asked for again, and how often a question is asked for each confirmed action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Yeses begun 200 ms or more after the heard end, nothing else said.
    pub honest: u64,
    /// Those that did not run.
    pub again: u64,
    /// Askings in all.
    pub askings: u64,
    /// Those that the caller spoke into.
    pub spoken_into: u64,
    /// Actions confirmed in the end.
    pub confirmed: u64,
    /// Calls.
    pub calls: u64,
}

impl Share {
    /// From when a yes counts as honest.
    pub const FROM_MICROS: i64 = 200_000;

    /// Counts a call of [`honest`].
    pub fn note(&mut self, trial: &Trial, judged: &Judged) {
        self.calls += 1;
        self.askings += u64::from(judged.askings);
        self.spoken_into += u64::from(judged.spoken_into);
        self.confirmed += u64::from(judged.ran);
        if trial.answer.gap_micros >= Self::FROM_MICROS && trial.backchannels == 0 {
            self.honest += 1;
            self.again += u64::from(!judged.at_once);
        }
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.honest += other.honest;
        self.again += other.again;
        self.askings += other.askings;
        self.spoken_into += other.spoken_into;
        self.confirmed += other.confirmed;
        self.calls += other.calls;
    }

    /// Share of honest yeses that are asked for again, in percent.
    pub fn again_percent(&self) -> f64 {
        100.0 * self.again as f64 / self.honest.max(1) as f64
    }

    /// Askings per confirmed action.
    pub fn askings_each(&self) -> f64 {
        self.askings as f64 / self.confirmed.max(1) as f64
    }

    /// Askings per confirmed action that the caller spoke into: so many more than one are needed by a gate that knows
    /// the true end.
    pub fn spoken_into_each(&self) -> f64 {
        self.spoken_into as f64 / self.confirmed.max(1) as f64
    }
}

/// Row (f3): from the end of the yes to the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    micros: Vec<i64>,
}

impl Span {
    /// Counts a call of [`honest`].
    pub fn note(&mut self, judged: &Judged) {
        self.micros.extend(judged.to_run_micros);
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        self.micros.extend_from_slice(&other.micros);
    }

    /// So many percent take at most this long, in milliseconds.
    pub fn percentile_ms(&self, percent: usize) -> f64 {
        let mut sorted = self.micros.clone();
        sorted.sort_unstable();
        let at = sorted.len().saturating_sub(1) * percent.min(100) / 100;
        sorted.get(at).map_or(0.0, |micros| *micros as f64 / 1_000.0)
    }
}
