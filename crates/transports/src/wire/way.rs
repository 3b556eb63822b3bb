//! The way from the wire to the caller's ear and back: how long it is, how that is known, and what is still on it.

use std::collections::VecDeque;
use std::time::Duration;

use sayback_core::{EvidenceClass, LoopDelay, Time, UtteranceId};

/// How exactly our own voice tells how long it was on its way.
const ECHO_MARGIN: Duration = Duration::from_millis(20);
/// For so long what our own voice told is believed.
const ECHO_HOLDS: Duration = Duration::from_secs(30);
/// Utterances whose end may be on its way; a loop is far shorter than that many can be said in.
const TRAVELLING: usize = 64;

/// An utterance whose last audible sample is on its way to the ear.
#[derive(Clone, Copy, Debug)]
struct Travelling {
    id: UtteranceId,
    started: Time,
    /// When it must have arrived.
    until: Time,
}

/// The way behind the wire.
#[derive(Debug)]
pub(super) struct Way {
    delay: LoopDelay,
    evidence: EvidenceClass,
    /// No echo comes back sooner: the measured way to the far end's packets and back.
    floor: Duration,
    /// The loop that our own voice took, and until when that is believed.
    echo: Option<(Duration, Time)>,
    travelling: VecDeque<Travelling>,
}

impl Way {
    pub(super) fn new(delay: LoopDelay, evidence: EvidenceClass) -> Self {
        Self { delay, evidence, floor: Duration::ZERO, echo: None, travelling: VecDeque::new() }
    }

    /// What is known of it has changed.
    pub(super) fn set(&mut self, delay: LoopDelay, evidence: EvidenceClass) {
        self.delay = delay;
        self.evidence = evidence;
    }

    /// The far end itself is that far away.
    pub(super) fn set_floor(&mut self, floor: Duration) {
        self.floor = floor;
    }

    /// Our own voice came back so long after it was sent.
    pub(super) fn hear_echo(&mut self, back: Duration, now: Time) {
        self.echo = Some((back, now + ECHO_HOLDS));
    }

    /// The loop behind what leaves now, and how it is known. An echo that is back before a packet can be comes from
    /// somewhere on the way, and says nothing of the ear.
    pub(super) fn at(&self, now: Time) -> (LoopDelay, EvidenceClass) {
        let echo = self.echo.filter(|(back, until)| now <= *until && *back >= self.floor);
        match echo {
            Some((back, _)) if self.evidence != EvidenceClass::Unproven => {
                let at_least = back.saturating_sub(ECHO_MARGIN);
                (LoopDelay { at_least, at_most: back + ECHO_MARGIN }, EvidenceClass::Echo)
            }
            Some(_) | None => (self.delay, self.evidence),
        }
    }

    /// The last audible sample of an utterance has left; gives the loop behind it.
    pub(super) fn leave(
        &mut self,
        id: UtteranceId,
        started: Time,
        last_audible: Time,
    ) -> (LoopDelay, EvidenceClass) {
        let known = self.at(last_audible);
        if self.travelling.len() == TRAVELLING {
            self.travelling.pop_front();
        }
        self.travelling.push_back(Travelling { id, started, until: last_audible + known.0.at_most });
        known
    }

    /// It is another one from now on. Gives what was on it and may not arrive (VC-42), with how long it has sounded.
    pub(super) fn change(&mut self, now: Time) -> Vec<(UtteranceId, Duration)> {
        self.echo = None;
        self.floor = Duration::ZERO;
        let travelling = std::mem::take(&mut self.travelling);
        let lost = travelling.into_iter().filter(|t| now < t.until);
        lost.map(|t| (t.id, now.since(t.started))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn way() -> Way {
        Way::new(LoopDelay { at_least: ms(0), at_most: ms(350) }, EvidenceClass::Assumed)
    }

    #[test]
    fn our_own_voice_tells_the_loop_for_a_while() {
        let mut way = way();
        way.hear_echo(ms(240), Time::from_millis(1_000));
        let (delay, class) = way.at(Time::from_millis(5_000));
        assert_eq!((delay.at_least, delay.at_most, class), (ms(220), ms(260), EvidenceClass::Echo));
        assert_eq!(way.at(Time::from_millis(40_000)).1, EvidenceClass::Assumed);
    }

    #[test]
    fn an_echo_from_this_side_of_the_far_end_tells_nothing() {
        let mut way = way();
        way.set_floor(ms(80));
        way.hear_echo(ms(30), Time::ZERO);
        assert_eq!(way.at(Time::from_millis(1)).1, EvidenceClass::Assumed);
        way.set(LoopDelay::default(), EvidenceClass::Unproven);
        way.hear_echo(ms(200), Time::ZERO);
        assert_eq!(way.at(Time::from_millis(1)).1, EvidenceClass::Unproven);
    }

    #[test]
    fn vc_42_what_was_on_its_way_when_it_changed_may_not_arrive() {
        let mut way = way();
        way.leave(UtteranceId(1), Time::from_millis(100), Time::from_millis(1_000));
        way.leave(UtteranceId(2), Time::from_millis(1_000), Time::from_millis(2_000));
        way.hear_echo(ms(10), Time::ZERO);
        assert_eq!(way.change(Time::from_millis(2_200)), [(UtteranceId(2), ms(1_200))]);
        assert_eq!(way.change(Time::from_millis(2_210)), []);
        assert_eq!(way.at(Time::from_millis(2_300)).1, EvidenceClass::Assumed);
    }
}
