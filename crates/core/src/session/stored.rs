//! Conversations that were stored: what is kept of one, and how it goes on.

use alloc::format;
use alloc::string::{String, ToString};

use crate::command::Report;
use crate::context::Item;
use crate::event::{EvidenceClass, OpenQuestion, PastRun, Reopened, ToolOutcome};
use crate::ids::CallId;
use crate::session::Session;
use crate::session::gate::{Answer, Asking, Hold, Rounds, Stage};
use crate::session::run::describe;
use crate::time::LoopDelay;

impl Session {
    /// What is to be stored of the conversation: its items, and the question it ends with if that was heard.
    pub fn to_store(&self) -> Reopened {
        let open = self.gate.heard().map(open_question);
        Reopened {
            items: self.items.clone(),
            open: open.or_else(|| self.left_open.clone()),
            holds: self.ids.hold,
            runs: self.gate.ledger.runs().to_vec(),
            unsettled: self.unsettled.clone(),
            asked: self.gate.asked.clone(),
            approvals: self.approvals.to_store(),
            approval_ids: Some(self.ids.approval),
        }
    }

    pub(crate) fn on_reopened(&mut self, reopened: Reopened) {
        if self.line.up {
            return;
        }
        let Reopened { items, open, holds, runs, unsettled, asked, approvals, approval_ids } = reopened;
        // Each approval was for a call, which is an item: there were no more than items.
        let before = approval_ids.unwrap_or_else(|| u32::try_from(items.len()).unwrap_or(u32::MAX));
        self.ids.approval = self.ids.approval.max(before);
        self.reopen_approvals(approvals);
        self.restored = items.len();
        self.items = items;
        let ran = runs.iter().chain(unsettled.iter().map(|run| &run.hold)).map(|hold| hold.0);
        let heard = asked.iter().map(|asked| asked.question.hold.0);
        self.ids.hold = ran.chain(heard).max().unwrap_or(0).max(self.ids.hold).max(holds);
        self.gate.asked = asked;
        self.gate.ledger.ran_before(runs);
        self.unsettled = unsettled;
        let Some(open) = open else { return };
        self.ids.hold = self.ids.hold.max(open.hold.0);
        self.gate.hold = Some(reopened_hold(open));
    }

    /// In chat a reopened question is open at once; on a call it is said again first (VC-74).
    pub(crate) fn resume_reopened(&mut self) {
        let (chat, now) = (self.line.chat, self.now);
        let Some(hold) = self.gate.open_mut() else { return };
        if !chat {
            self.ask_again();
            return;
        }
        hold.asking.began = Some(now);
        hold.asking.finish = Some((now, LoopDelay::default(), EvidenceClass::Virtual));
        hold.stage = Stage::Asking;
    }

    /// What came of runs that an earlier process could not tell of any more. None of them is run again (VC-79); the
    /// model says so first.
    pub(crate) fn tell_of_past_runs(&mut self) {
        for PastRun { call, tool, confirmed_by, outcome, .. } in core::mem::take(&mut self.unsettled) {
            let (ok, message, name) = describe(&outcome);
            self.report(Report::ToolFinished {
                call_id: call.clone(),
                tool: tool.clone(),
                ok,
                message: message.clone(),
                outcome: name.to_string(),
            });
            let text = if outcome == ToolOutcome::Unknown {
                format!(
                    "The program stopped while {tool} was running on the caller's yes, so it is not known whether it \
                     happened. It was not run again. Tell the caller; do not call it again unless they ask for that."
                )
            } else {
                format!(
                    "The program stopped just after {tool} had run on the caller's yes. What came of it: {message} \
                     Tell the caller; do not call it again for this."
                )
            };
            self.set_result_by(&call, message, Some(confirmed_by));
            self.tell(text);
            self.want_step();
        }
    }

    /// Sets what the model is answered for a call: in place if it was answered before.
    pub(crate) fn set_result(&mut self, call: &CallId, text: &str) {
        self.set_result_by(call, text.to_string(), None);
    }

    pub(crate) fn set_result_by(&mut self, call: &CallId, text: String, confirmed_by: Option<String>) {
        // A model may use an id again: what was answered to an earlier call of that id stays as it is.
        let from = self.items.iter().rposition(|i| matches!(i, Item::Call { call: c } if c.id == *call));
        let found = self.items.iter_mut().skip(from.unwrap_or(0)).rev().find_map(|item| match item {
            Item::Result { call: c, text, confirmed_by } if c == call => Some((text, confirmed_by)),
            Item::Result { .. }
            | Item::Caller { .. }
            | Item::Agent { .. }
            | Item::Call { .. }
            | Item::Told { .. } => None,
        });
        match found {
            Some((old, by)) => {
                *old = text;
                *by = confirmed_by;
            }
            None => self.items.push(Item::Result { call: call.clone(), text, confirmed_by }),
        }
    }
}

pub(crate) fn open_question(hold: &Hold) -> OpenQuestion {
    OpenQuestion {
        hold: hold.id,
        call: hold.call.clone(),
        tool: hold.tool.clone(),
        input: hold.input.clone(),
        question: hold.question.clone(),
        language: hold.language.clone(),
        terms: hold.terms,
        approval: hold.approval.clone(),
    }
}

pub(crate) fn reopened_hold(open: OpenQuestion) -> Hold {
    let OpenQuestion { hold, call, tool, input, question, language, terms, approval } = open;
    Hold {
        id: hold,
        call,
        generation: None,
        tool,
        input,
        question,
        language,
        terms,
        stage: Stage::Waiting,
        asking: Asking::default(),
        answer: Answer::default(),
        rounds: Rounds { asked: true, ..Rounds::default() },
        judged: None,
        reverifying: false,
        approval,
    }
}
