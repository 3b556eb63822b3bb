//! Time as the core knows it: microseconds since the call began, handed in by whoever drives the core.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A point on the call clock, in microseconds since the call began.
///
/// The core never reads a clock: the live driver and the virtual one both hand the time in, so a recorded call
/// can be decided again to the last microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(u64);

impl Time {
    /// The beginning of the call.
    pub const ZERO: Self = Self(0);

    /// From microseconds since the call began.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// From milliseconds since the call began.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000)
    }

    /// Microseconds since the call began.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Milliseconds since the call began, for logs and pages. Never compared.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1_000.0
    }

    /// How much later `self` is than `earlier`; zero if it is not later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// Signed difference in microseconds, `self - other`.
    pub const fn diff_micros(self, other: Self) -> i64 {
        self.0 as i64 - other.0 as i64
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    /// Saturates: a deadline that far away never comes.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    /// Saturates at the beginning of the call.
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}ms", self.0 / 1_000, self.0 % 1_000)
    }
}

/// An event in time that is known only to lie between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Interval {
    /// It did not happen before this.
    pub earliest: Time,
    /// It did not happen after this.
    pub latest: Time,
}

impl Interval {
    /// An exactly known point.
    pub const fn exact(at: Time) -> Self {
        Self { earliest: at, latest: at }
    }

    /// From two points, in whichever order they come.
    pub fn new(a: Time, b: Time) -> Self {
        Self { earliest: a.min(b), latest: a.max(b) }
    }
}

/// How long sound takes around the loop: from handing a sample to the line until a sound made at the caller's
/// mouth, at the moment that sample reaches their ear, would be stamped in our input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LoopDelay {
    /// At least this long.
    pub at_least: Duration,
    /// At most this long; what the horizon is computed from.
    pub at_most: Duration,
}

impl LoopDelay {
    /// A loop whose length is known exactly.
    pub const fn exact(delay: Duration) -> Self {
        Self { at_least: delay, at_most: delay }
    }
}
