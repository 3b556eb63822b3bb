//! Deadlines, all of them derived from the state: none is ever stored, so none can be forgotten.

use crate::session::gate::Stage;
use crate::session::{Session, gate::Hold};
use crate::time::Time;

/// What is due at a deadline. The order is the order of firing at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// An utterance counts as heard; for a question, its horizon.
    Heard,
    /// The caller has spoken long enough to pause the agent.
    BargeIn,
    /// No words came: the agent goes on.
    Resume,
    /// The recogniser took too long.
    TranscriptLimit,
    /// The check may start before the turn is complete.
    EarlyCheck,
    /// The caller's turn is complete.
    TurnComplete,
    /// The check took too long.
    CheckLimit,
    /// The confirmed tool may run.
    GraceOver,
    /// The question's time is over.
    Expired,
    /// The caller asked to wait and has not come back.
    WaitOver,
    /// The caller is silent.
    Silence,
    /// Nothing shows that an utterance was played, long after it should have been.
    PlayoutLimit,
    /// The model took too long.
    ModelLimit,
    /// A tool took too long.
    ToolLimit,
    /// No operator answered while the caller waits.
    ApprovalLimit,
}

impl Session {
    pub(crate) fn next_deadline(&self) -> Option<(Time, Timer)> {
        let heard = self.mouth.next_heard().map(|(at, _)| at);
        [
            (heard, Timer::Heard),
            (self.barge_in_at(), Timer::BargeIn),
            (self.resume_at(), Timer::Resume),
            (self.transcript_limit_at().map(|(at, _)| at), Timer::TranscriptLimit),
            (self.early_check_at(), Timer::EarlyCheck),
            (self.turn_complete_at(), Timer::TurnComplete),
            (self.check_limit_at(), Timer::CheckLimit),
            (self.grace_over_at(), Timer::GraceOver),
            (self.expired_at(), Timer::Expired),
            (self.wait_over_at(), Timer::WaitOver),
            (self.silence_at(), Timer::Silence),
            (self.playout_limit_at().map(|(at, _)| at), Timer::PlayoutLimit),
            (self.model_limit_at(), Timer::ModelLimit),
            (self.tools.limit_at().map(|(at, _)| at), Timer::ToolLimit),
            (self.approval_limit_at(), Timer::ApprovalLimit),
        ]
        .into_iter()
        .filter_map(|(at, timer)| at.map(|at| (at, timer)))
        .min()
    }

    pub(crate) fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Heard => self.on_heard_due(),
            Timer::BargeIn => self.on_barge_in(),
            Timer::Resume => self.resume_mouth(),
            Timer::TranscriptLimit => self.on_transcript_limit(),
            Timer::EarlyCheck => self.start_check(),
            Timer::TurnComplete => self.on_turn_complete(),
            Timer::CheckLimit => self.on_check_limit(),
            Timer::GraceOver => self.on_grace_over(),
            Timer::Expired => self.on_expired(),
            Timer::WaitOver => self.ask_again(),
            Timer::Silence => self.on_silence(),
            Timer::PlayoutLimit => self.on_playout_limit(),
            Timer::ModelLimit => self.on_model_limit(),
            Timer::ToolLimit => self.on_tool_limit(),
            Timer::ApprovalLimit => self.on_approval_limit(),
        }
    }

    fn expired_at(&self) -> Option<Time> {
        let hold = self.gate.heard()?;
        let open =
            hold.answer.segments.is_empty() && hold.answer.digit.is_none() && self.line.hung_up.is_none();
        let at = Self::expiry(hold, self.policy.confirm.ttl?)?;
        // Speech that began in time may be noticed a little later: the onset decides.
        (open && !self.segments.any_unresolved()).then(|| Self::after(at, Self::NOTICE))
    }

    /// The end of the question's time: from the horizon of its latest asking.
    pub(crate) fn expiry(hold: &Hold, ttl: core::time::Duration) -> Option<Time> {
        hold.asking.horizon().map(|horizon| horizon + ttl)
    }

    fn wait_over_at(&self) -> Option<Time> {
        let hold = self.gate.heard()?;
        let free = hold.answer.segments.is_empty() && self.line.hung_up.is_none() && !self.mouth.active();
        hold.rounds.wait_since.filter(|_| free).map(|since| since + self.policy.confirm.hold_wait)
    }

    fn on_expired(&mut self) {
        if self.gate.hold.as_ref().is_some_and(|hold| hold.stage == Stage::Heard) {
            self.close_hold(crate::command::DropReason::Expired);
        }
    }

    /// How late speech may be noticed after it began.
    const NOTICE: core::time::Duration = core::time::Duration::from_millis(300);
}
