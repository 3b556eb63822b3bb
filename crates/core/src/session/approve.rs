//! Approvals: an operator or an app is asked first, by id, while nothing is held (decision 2).
//!
//! ```text
//! waiting ─┬ approved ─┬ the tool has no question ─▶ it runs
//!          │           └ it has one ─▶ once the slot is free, the caller is asked; their yes is the last thing
//!          └ rejected, too late, nobody to ask, caller gone ─▶ nothing runs, the model is told, the caller is not asked
//! ```
//! A caller's question is one slot, and the newest wins; approvals are a list, and each settles on its own.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::approval::{Approval, ApprovalAsker, ApprovalOutcome, PendingApproval, SettledApproval};
use crate::command::{ApprovalWish, Command, Report};
use crate::confirmation::Confirmation;
use crate::event::{Frozen, Prepared, ToolRef};
use crate::ids::{ApprovalId, CallId, HoldId};
use crate::session::ask::json;
use crate::session::{Owner, Session};
use crate::time::Time;

/// Those that are not settled, or settled and not acted on yet; oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Approvals(Vec<Waiting>);

#[derive(Clone, Debug)]
struct Waiting {
    wish: PendingApproval,
    since: Time,
    /// The answer, once there is one that lets it go on.
    granted: Option<Approval>,
}

impl Approvals {
    /// Whether an operator is being asked.
    pub(crate) fn any(&self) -> bool {
        self.0.iter().any(|waiting| waiting.granted.is_none())
    }

    pub(crate) fn waiting_lines(&self) -> impl Iterator<Item = String> {
        let open = self.0.iter().filter(|waiting| waiting.granted.is_none());
        open.filter_map(|waiting| subject(&waiting.wish.then)).map(|(tool, _)| {
            format!(
                "Waiting for an operator to approve: {}. It has not run, and no word of the caller's approves it. The \
                 system goes on by itself once they answer; do not call it again.",
                tool.name
            )
        })
    }

    pub(crate) fn to_store(&self) -> Vec<PendingApproval> {
        self.0.iter().map(|waiting| waiting.wish.clone()).collect()
    }

    fn take(&mut self, id: ApprovalId) -> Option<Waiting> {
        let at = self.0.iter().position(|w| w.wish.approval == id && w.granted.is_none())?;
        Some(self.0.remove(at))
    }
}

/// What is to run.
fn subject(then: &Prepared) -> Option<(&ToolRef, &Frozen)> {
    match then {
        Prepared::Plain { tool, input } | Prepared::Ask { tool, input, .. } => Some((tool, input)),
        Prepared::Approve { .. } | Prepared::Refused { .. } => None,
    }
}

impl Session {
    /// Asks an operator; `what` is what they are told and what they may fill in.
    pub(crate) fn ask_approval(
        &mut self,
        call: CallId,
        what: (String, Option<String>),
        then: Prepared,
        asker: ApprovalAsker,
    ) {
        let Some((tool, input)) = subject(&then) else { return };
        if self.line.ended || (self.line.hung_up.is_some() && !self.line.chat) {
            return;
        }
        if asker == ApprovalAsker::Rule {
            self.report_called(&call, tool, input);
            self.set_result(
                &call,
                "Nothing has happened yet. An operator is being asked to approve this; it goes on only once they have.",
            );
        }
        self.ids.approval += 1;
        let (hint, payload) = what;
        let approval = ApprovalId(self.ids.approval);
        let wish = PendingApproval { approval, call, hint, payload, then, asker };
        self.request_approval(&wish);
        self.approvals.0.push(Waiting { wish, since: self.now, granted: None });
    }

    fn request_approval(&mut self, wish: &PendingApproval) {
        let Some((tool, input)) = subject(&wish.then) else { return };
        let PendingApproval { approval, call, hint, payload, .. } = wish;
        self.report(Report::ConfirmationRequested {
            id: *approval,
            call_id: call.clone(),
            tool: tool.name.clone(),
            input: json(&input.json),
            hint: hint.clone(),
            payload: payload.as_deref().map(json),
        });
        self.command(Command::RequestApproval(ApprovalWish {
            approval: *approval,
            call: call.clone(),
            tool: tool.clone(),
            input: input.clone(),
            hint: hint.clone(),
            payload: payload.clone(),
        }));
    }

    /// The caller waits: what they hear meanwhile. In text there is no need to fill the quiet.
    pub(crate) fn say_please_wait(&mut self) {
        if self.approvals.any() && !self.line.chat {
            let text = self.policy.confirm.approval_text.clone();
            self.say_own(text);
        }
    }

    /// Those of a stored conversation.
    pub(crate) fn reopen_approvals(&mut self, approvals: Vec<PendingApproval>) {
        for wish in approvals.into_iter().filter(|wish| subject(&wish.then).is_some()) {
            self.ids.approval = self.ids.approval.max(wish.approval.0);
            self.approvals.0.push(Waiting { wish, since: self.now, granted: None });
        }
    }

    /// They are asked for again, under the same ids: an answer that came meanwhile is found.
    pub(crate) fn ask_approvals_again(&mut self) {
        for wish in self.approvals.to_store() {
            self.request_approval(&wish);
        }
    }

    pub(crate) fn on_approvals(&mut self, settled: Vec<SettledApproval>) {
        for SettledApproval { approval, outcome } in settled {
            let Some(waiting) = self.approvals.take(approval) else { continue };
            match outcome {
                ApprovalOutcome::Answered { answer, reason } => self.on_answered(waiting, answer, reason),
                ApprovalOutcome::Expired => self.on_expired_approval(&waiting.wish),
                ApprovalOutcome::Failed { error } => {
                    self.report_answered(&waiting.wish, "failed", None, Some(error));
                    self.refuse_approval(&waiting.wish, "no operator could be asked");
                }
            }
        }
    }

    fn on_answered(&mut self, waiting: Waiting, answer: Approval, reason: Option<String>) {
        let outcome = if answer.confirmed { "approved" } else { "rejected" };
        self.report_answered(&waiting.wish, outcome, Some(&answer), reason.clone());
        if answer.confirmed || waiting.wish.asker == ApprovalAsker::Tool {
            self.approvals.0.push(Waiting { granted: Some(answer), ..waiting });
            return;
        }
        let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        self.refuse_approval(&waiting.wish, &format!("an operator rejected it{why}"));
    }

    fn on_expired_approval(&mut self, wish: &PendingApproval) {
        self.report_answered(wish, "expired", None, None);
        self.refuse_approval(wish, "no operator answered in time");
    }

    fn report_answered(
        &mut self,
        wish: &PendingApproval,
        outcome: &str,
        answer: Option<&Approval>,
        reason: Option<String>,
    ) {
        let tool = subject(&wish.then).map(|(tool, _)| tool.name.clone()).unwrap_or_default();
        self.report(Report::ConfirmationAnswered {
            id: wish.approval,
            call_id: wish.call.clone(),
            tool,
            confirmed: answer.is_some_and(|answer| answer.confirmed),
            outcome: outcome.to_string(),
            by: answer.map(|answer| answer.by.clone()),
            reason,
            payload: answer.and_then(|answer| answer.payload.as_deref()).map(json),
        });
    }

    /// Nothing runs; the model is told and goes on from there.
    fn refuse_approval(&mut self, wish: &PendingApproval, why: &str) {
        let Some((tool, _)) = subject(&wish.then) else { return };
        let text = format!(
            "{} was not approved, so nothing ran: {why}. Tell the caller; do not call it again unless something changes.",
            tool.name
        );
        self.set_result(&wish.call, "This tool call is rejected. Nothing ran.");
        self.tell(text);
        self.want_step();
    }

    /// What was approved goes on: it runs, or the caller is asked as soon as nothing else is asked or being written.
    pub(crate) fn settle_approvals(&mut self) {
        let leaves = self.line.transfer.is_some() || self.tools.handing_over();
        let free = self.gate.hold.is_none() && self.step.is_none();
        let slot = free && self.line.hung_up.is_none() && !leaves;
        let ready =
            |w: &Waiting| w.granted.is_some() && (matches!(w.wish.then, Prepared::Plain { .. }) || slot);
        let Some(at) = self.approvals.0.iter().position(ready) else { return };
        let Waiting { wish, granted, .. } = self.approvals.0.remove(at);
        if let Some(approval) = granted {
            self.go_on(wish, approval);
        }
        self.settle_approvals();
    }

    fn go_on(&mut self, wish: PendingApproval, approval: Approval) {
        let Some((tool, input)) = subject(&wish.then) else { return };
        match self.knows(tool) {
            Owner::Same => {}
            Owner::Gone => {
                self.refuse_approval(&wish, "it is no longer available");
                return;
            }
            Owner::Changed => {
                self.refuse_approval(
                    &wish,
                    "it changed after the operator was asked; call it again to ask anew",
                );
                return;
            }
        }
        if matches!(wish.then, Prepared::Ask { .. }) {
            self.hold(wish.call, wish.then, None);
            if let Some(hold) = self.gate.hold.as_mut() {
                hold.approval = Some(approval);
            }
            self.ask_again();
        } else {
            let (tool, input) = (tool.clone(), input.clone());
            self.run_approved(wish.call, tool, input, approval);
        }
    }

    /// Runs on the approval alone. It is written down and used up like a caller's yes (LED-37), under a hold's id of its
    /// own, so that it is journaled and made once like any confirmed run.
    fn run_approved(&mut self, call: CallId, tool: ToolRef, input: Frozen, approval: Approval) {
        self.ids.hold += 1;
        let (hold, now) = (HoldId(self.ids.hold), self.now);
        self.gate.ledger.record(hold, &tool.name, &input.hash, now);
        let Some(used) = self.gate.ledger.consume(hold, &tool.name, &input.hash, now) else { return };
        let verb = if approval.confirmed { "approved" } else { "rejected" };
        let by = format!("{verb} by {}", approval.by);
        let limit = self.policy.turn.tool_limit;
        self.tools.start((call.clone(), tool.clone(), input.clone()), now + limit, Some(by.clone()));
        self.report(Report::ToolStarted {
            call_id: call.clone(),
            tool: tool.name.clone(),
            input: json(&input.json),
            confirmed_by: Some(by.clone()),
        });
        let yes = Confirmation::new(used, (call, tool), input, (by, limit)).of_operator(approval);
        self.command(Command::RunConfirmed(yes));
    }

    pub(crate) fn approval_limit_at(&self) -> Option<Time> {
        let wait = self.policy.confirm.approval_wait.filter(|_| !self.line.chat)?;
        let open = self.approvals.0.iter().filter(|waiting| waiting.granted.is_none());
        open.map(|waiting| waiting.since + wait).min()
    }

    pub(crate) fn on_approval_limit(&mut self) {
        let open = self.approvals.0.iter().filter(|waiting| waiting.granted.is_none());
        let Some(id) = open.min_by_key(|waiting| waiting.since).map(|waiting| waiting.wish.approval) else {
            return;
        };
        let Some(waiting) = self.approvals.take(id) else { return };
        let reason = "nobody answered while the caller waited".to_string();
        self.command(Command::WithdrawApproval { approval: id, reason });
        self.on_expired_approval(&waiting.wish);
    }

    /// The caller is gone: nobody can be asked any more, and nothing runs behind their back. A text conversation is only
    /// put aside.
    pub(crate) fn hang_up_approvals(&mut self) {
        if !self.line.chat {
            self.withdraw_approvals("the caller hung up");
        }
    }

    pub(crate) fn withdraw_approvals(&mut self, reason: &str) {
        self.withdraw(reason, |_| true);
    }

    /// The conversation no longer has these calls.
    pub(crate) fn withdraw_approvals_of(&mut self, calls: &[CallId]) {
        self.withdraw("the conversation was taken back", |call| calls.contains(call));
    }

    fn withdraw(&mut self, reason: &str, which: impl Fn(&CallId) -> bool) {
        let (gone, kept) =
            core::mem::take(&mut self.approvals.0).into_iter().partition(|w| which(&w.wish.call));
        self.approvals.0 = kept;
        let gone: Vec<Waiting> = gone;
        for Waiting { wish, .. } in gone {
            self.report_answered(&wish, "cancelled", None, Some(reason.to_string()));
            self.command(Command::WithdrawApproval { approval: wish.approval, reason: reason.to_string() });
            let known = |item: &crate::context::Item| matches!(item, crate::context::Item::Call { call } if call.id == wish.call);
            if self.items.iter().any(known) {
                self.set_result(&wish.call, &format!("Not approved and not run: {reason}."));
            }
        }
    }
}
