//! Lines: how long they are, and what is known of that.

use std::time::Duration;

use sayback_core::{EvidenceClass, LoopDelay};

use super::Random;

/// A kind of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Microphone and speaker with a calibrated loop and echo cancellation.
    Device,
    /// The same without calibration: 0 to 120 ms.
    DeviceUncalibrated,
    /// The same with a gate instead of echo cancellation.
    DeviceHalfDuplex,
    /// A wireless headset: 0 to 350 ms.
    Bluetooth,
    /// A browser that reports both directions.
    Page,
    /// A telephone trunk whose loop is measured on our own voice coming back.
    Echo,
    /// A peer with RTCP extended reports.
    Xr,
    /// A peer declared as the caller's own device, with plain RTCP.
    Rtcp,
    /// A telephone trunk: the measured round trip ends at its border.
    Trunk,
    /// A provider's media stream, by marks.
    Mark,
}

impl LineKind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Device,
        Self::DeviceUncalibrated,
        Self::DeviceHalfDuplex,
        Self::Bluetooth,
        Self::Page,
        Self::Echo,
        Self::Xr,
        Self::Rtcp,
        Self::Trunk,
        Self::Mark,
    ];

    /// For tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device, calibrated",
            Self::DeviceUncalibrated => "device, uncalibrated",
            Self::DeviceHalfDuplex => "device, half-duplex",
            Self::Bluetooth => "device, wireless",
            Self::Page => "page",
            Self::Echo => "trunk, echo",
            Self::Xr => "peer, xr",
            Self::Rtcp => "peer, rtcp",
            Self::Trunk => "trunk, assumed",
            Self::Mark => "stream, mark",
        }
    }

    /// How it is known what was heard.
    pub const fn evidence(self) -> EvidenceClass {
        match self {
            Self::Device | Self::DeviceUncalibrated | Self::DeviceHalfDuplex | Self::Bluetooth => {
                EvidenceClass::Device
            }
            Self::Page => EvidenceClass::Page,
            Self::Echo => EvidenceClass::Echo,
            Self::Xr => EvidenceClass::Xr,
            Self::Rtcp => EvidenceClass::Rtcp,
            Self::Trunk => EvidenceClass::Assumed,
            Self::Mark => EvidenceClass::Mark,
        }
    }
}

/// One line: the truth, and what is stated of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// What kind it is.
    pub kind: LineKind,
    /// From handing a sample over until it reaches the ear.
    pub out: Duration,
    /// From the mouth to the stamp of our input.
    pub back: Duration,
    /// What is stated of the two together.
    pub stated: LoopDelay,
    /// How late word of what was played comes.
    pub word: Duration,
    /// How late sound comes behind its stamp.
    pub arrival: Duration,
    /// What hides the beginning of a sound.
    pub hides: Hides,
}

/// What hides the beginning of a sound (VC-81).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hides {
    /// Nothing.
    Nothing,
    /// The gate of a half-duplex line: closed from the question's first sample until it counts as heard.
    Gate,
    /// A speakerphone at the far end: its echo is suppressed as long as it lasts, and what it covers with it.
    Echo,
    /// The far end sends nothing while nobody speaks: the stretch since its last sign of silence, and the first moments
    /// of the word.
    Dtx {
        /// How long before the word the last sign of silence was.
        since: Duration,
        /// How much of the word is lost.
        clipped: Duration,
    },
}

fn ms(ms: i64) -> Duration {
    Duration::from_millis(ms.unsigned_abs())
}

impl Loop {
    /// Draws a line of a kind. `assumed` is the loop that the agent assumes where nothing is measured.
    pub fn draw(kind: LineKind, assumed: Duration, random: &mut Random) -> Self {
        let micros = |random: &mut Random, from: i64, to: i64| {
            Duration::from_micros(random.between(from * 1_000, to * 1_000).unsigned_abs())
        };
        let (whole, stated) = match kind {
            LineKind::Device | LineKind::DeviceHalfDuplex => near(micros(random, 25, 140), 20, random),
            LineKind::DeviceUncalibrated => within(micros(random, 5, 120), 120),
            LineKind::Bluetooth => within(micros(random, 100, 350), 350),
            LineKind::Page => near(micros(random, 30, 160), 10, random),
            LineKind::Echo => {
                let trip = micros(random, 20, 150) + micros(random, 0, 350);
                near(trip, 20, random)
            }
            LineKind::Xr => near(micros(random, 60, 400), 30, random),
            LineKind::Rtcp => {
                let (trip, device) = (micros(random, 20, 250), micros(random, 20, 120));
                let spread = micros(random, 0, 40);
                // The round trip that was measured lies within half its spread of the one in force.
                let off = random.between(-(spread.as_micros() as i64) / 2, spread.as_micros() as i64 / 2 + 1);
                let measured = shifted(trip, off);
                let at_most = measured + spread / 2 + ms(120);
                (trip + device, LoopDelay { at_least: measured.saturating_sub(spread / 2), at_most })
            }
            LineKind::Trunk => {
                // The measured trip ends at the border. What lies behind it is only assumed.
                let (border, leg) = (micros(random, 10, 80), micros(random, 0, 350));
                (border + leg, LoopDelay { at_least: border, at_most: border + assumed })
            }
            LineKind::Mark => {
                // A mark comes back in the order of the sound, so the way to the provider cancels.
                let leg = micros(random, 0, 350);
                (leg, LoopDelay { at_least: Duration::ZERO, at_most: assumed.max(ms(350)) })
            }
        };
        // The two ways are as unequal as they like: nobody can measure that.
        let share = random.between(0, 1_001) as u32;
        let out = whole * share / 1_000;
        let word = if kind == LineKind::Mark { micros(random, 20, 120) } else { Duration::ZERO };
        let arrival = micros(random, 0, 60);
        Self { kind, out, back: whole - out, stated, word, arrival, hides: hides(kind, random) }
    }
}

fn hides(kind: LineKind, random: &mut Random) -> Hides {
    match kind {
        LineKind::DeviceHalfDuplex => Hides::Gate,
        LineKind::Device | LineKind::DeviceUncalibrated | LineKind::Bluetooth | LineKind::Page => {
            Hides::Nothing
        }
        // Our own voice comes back: that is how the loop is known, and why it has to be suppressed.
        LineKind::Echo if random.percent(50) => Hides::Echo,
        LineKind::Echo | LineKind::Xr | LineKind::Rtcp | LineKind::Trunk | LineKind::Mark => {
            match random.between(0, 100) {
                0..10 => Hides::Echo,
                10..20 => {
                    Hides::Dtx { since: ms(random.between(0, 200)), clipped: ms(random.between(0, 20)) }
                }
                _ => Hides::Nothing,
            }
        }
    }
}

fn shifted(span: Duration, micros: i64) -> Duration {
    let by = Duration::from_micros(micros.unsigned_abs());
    if micros < 0 { span.saturating_sub(by) } else { span + by }
}

/// A loop that is measured with an error of at most so much, and stated with that to either side.
fn near(whole: Duration, within: i64, random: &mut Random) -> (Duration, LoopDelay) {
    let measured = shifted(whole, random.between(-within * 1_000, within * 1_000 + 1));
    (whole, LoopDelay { at_least: measured.saturating_sub(ms(within)), at_most: measured + ms(within) })
}

/// A loop of which only the longest is known.
fn within(whole: Duration, most: i64) -> (Duration, LoopDelay) {
    (whole, LoopDelay { at_least: Duration::ZERO, at_most: ms(most) })
}
