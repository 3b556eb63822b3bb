//! The silence follow-up: it is never an answer, never closes a question, and while a question is open it *is* the
//! question again by default (VC-56, decision 6).

use alloc::string::String;

use crate::command::Report;
use crate::session::Session;
use crate::session::gate::Stage;
use crate::time::Time;

impl Session {
    pub(crate) fn silence_at(&self) -> Option<Time> {
        let line = &self.line;
        let listening = line.up && !line.chat && !line.held && line.hung_up.is_none() && !line.ended;
        let calm = self.step.is_none()
            && !self.turn.wanted
            && !self.mouth.active()
            && self.tools.idle()
            && line.ending.is_none()
            && !self.segments.any_unresolved()
            && self.pending_turn().is_empty();
        if !listening || !calm {
            return None;
        }
        match &self.gate.hold {
            None => self.plain_silence_at(),
            Some(hold) if hold.stage == Stage::Heard => self.question_silence_at(),
            Some(_) => None,
        }
    }

    fn plain_silence_at(&self) -> Option<Time> {
        let wait = self.policy.turn.silence_followup?;
        let since = self.mouth.last_over.unwrap_or(Time::ZERO).max(self.turn.quiet_since);
        (self.turn.followups < self.policy.turn.silence_limit).then(|| since + wait)
    }

    fn question_silence_at(&self) -> Option<Time> {
        let hold = self.gate.heard()?;
        let quiet = hold.answer.segments.is_empty() && hold.answer.digit.is_none();
        let waits = hold.rounds.wait_since.is_some();
        let first = self.policy.confirm.silence_followup?;
        let wait = if hold.rounds.silent == 0 { first } else { self.policy.confirm.silence_again };
        let since = hold.asking.horizon()?.max(self.mouth.last_over.unwrap_or(Time::ZERO));
        (quiet && !waits && hold.rounds.silent < self.policy.turn.silence_limit).then(|| since + wait)
    }

    pub(crate) fn on_silence(&mut self) {
        if self.gate.heard().is_some() {
            self.on_question_silence();
            return;
        }
        self.turn.followups = self.turn.followups.saturating_add(1);
        let waits = self.approvals.any();
        let texts = (&self.policy.confirm.approval_text, &self.policy.turn.silence_text);
        let text = if waits { texts.0.clone() } else { texts.1.clone() };
        self.report(Report::SilenceFollowup { n: self.turn.followups, text: text.clone() });
        self.say_own(text);
        self.turn.quiet_since = self.now;
    }

    fn on_question_silence(&mut self) {
        let own_text = self.policy.confirm.silence_text.clone();
        let Some(hold) = self.gate.open_mut() else { return };
        hold.rounds.silent = hold.rounds.silent.saturating_add(1);
        let (n, question) = (hold.rounds.silent, hold.question.clone());
        let text: String = own_text.clone().unwrap_or(question);
        self.report(Report::SilenceFollowup { n, text });
        match own_text {
            Some(text) => self.say_own(text),
            None => self.ask_again(),
        }
    }
}
