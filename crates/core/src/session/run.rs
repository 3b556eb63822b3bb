//! Tools that run.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::approval::ApprovalAsker;
use crate::command::{Command, PlainRun, Report};
use crate::event::{Frozen, Prepared, ToolCall, ToolOutcome, ToolRef};
use crate::ids::CallId;
use crate::session::Session;
use crate::session::ask::json;
use crate::session::step::TRANSFER_CALL;
use crate::time::Time;

/// Tools that run, and those that exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tools {
    /// The tools that exist; `None` until told.
    pub(crate) known: Option<Vec<ToolRef>>,
    running: Vec<Running>,
    /// Calls given up on, whose result may still come.
    late: Vec<Running>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Running {
    call: CallId,
    tool: ToolRef,
    /// What it was run with; none for a transfer.
    input: Option<Frozen>,
    limit: Time,
    confirmed_by: Option<String>,
    /// The conversation was taken back to before its call: there is no place for its result.
    taken_back: bool,
}

impl Tools {
    pub(crate) fn start(
        &mut self,
        what: (CallId, ToolRef, Frozen),
        limit: Time,
        confirmed_by: Option<String>,
    ) {
        let (call, tool, input) = what;
        self.running.push(Running { call, tool, input: Some(input), limit, confirmed_by, taken_back: false });
    }

    pub(crate) fn transferring(&mut self, call: &ToolCall, now: Time) {
        let limit = now + core::time::Duration::from_secs(60);
        self.running.push(Running {
            call: call.id.clone(),
            tool: ToolRef { skill: String::new(), name: call.name.clone(), definition: String::new() },
            input: None,
            limit,
            confirmed_by: None,
            taken_back: false,
        });
    }

    /// The conversation no longer has these calls; those that run go on.
    pub(crate) fn take_back(&mut self, calls: &[CallId]) {
        for run in self.running.iter_mut().filter(|run| calls.contains(&run.call)) {
            run.taken_back = true;
        }
    }

    /// Whether the caller is on their way to somebody else.
    pub(crate) fn handing_over(&self) -> bool {
        self.running.iter().any(|run| run.tool.name == TRANSFER_CALL)
    }

    pub(crate) fn running(&self) -> bool {
        !self.running.is_empty()
    }

    pub(crate) fn idle(&self) -> bool {
        self.running.is_empty()
    }

    pub(crate) fn limit_at(&self) -> Option<(Time, CallId)> {
        self.running.iter().map(|r| (r.limit, r.call.clone())).min()
    }

    fn take(&mut self, call: &CallId) -> Option<Running> {
        let at = self.running.iter().position(|r| r.call == *call)?;
        Some(self.running.remove(at))
    }
}

impl Session {
    pub(crate) fn report_called(&mut self, call: &CallId, tool: &ToolRef, input: &Frozen) {
        self.report(Report::ToolCalled {
            call_id: call.clone(),
            skill: tool.skill.clone(),
            tool: tool.name.clone(),
            input: json(&input.json),
        });
    }

    pub(crate) fn run_plain(&mut self, call: CallId, tool: ToolRef, input: Frozen) {
        self.report_called(&call, &tool, &input);
        let limit = self.policy.turn.tool_limit;
        self.tools.start((call.clone(), tool.clone(), input.clone()), self.now + limit, None);
        self.report(Report::ToolStarted {
            call_id: call.clone(),
            tool: tool.name.clone(),
            input: json(&input.json),
            confirmed_by: None,
        });
        self.command(Command::RunPlain(PlainRun { call, tool, input, limit }));
    }

    pub(crate) fn on_tool_finished(&mut self, call: &CallId, outcome: ToolOutcome) {
        let Some(run) = self.tools.take(call) else {
            self.on_late_result(call, &outcome);
            return;
        };
        let committed = self.committed_call() == Some(call);
        let outcome = if committed { after_a_yes(outcome) } else { outcome };
        let approved = !committed && run.confirmed_by.is_some();
        let (ok, message, name) = describe(&outcome);
        self.report(Report::ToolFinished {
            call_id: call.clone(),
            tool: run.tool.name.clone(),
            ok,
            message: message.clone(),
            outcome: name.to_string(),
        });
        self.turn.quiet_since = self.now;
        if run.taken_back {
            // The call was taken back while it ran; what it did was not.
            self.tell(alloc::format!(
                "{} ran before the conversation was taken back, and is not undone: {message}",
                run.tool.name
            ));
        } else {
            if committed {
                self.tell_once_more("The caller said yes", &run.tool, &message);
            } else if approved {
                self.tell_once_more("An operator answered", &run.tool, &message);
            }
            self.set_result_by(call, message, run.confirmed_by.clone());
            self.ask_for_tool(&run, &outcome);
        }
        if committed && matches!(outcome, ToolOutcome::NotRun { .. }) {
            self.forget_run();
        }
        // Whoever was to be handed over is still there, and nobody else would say so.
        if committed || approved || (!ok && run.tool.name == TRANSFER_CALL) {
            self.want_step();
        }
        if committed {
            self.end_commit(name);
        }
    }

    /// The result stands with the call, before the question and the yes; a model that reads on to the yes would call
    /// again. So what came of it is said once more, as the last thing.
    fn tell_once_more(&mut self, opening: &str, tool: &ToolRef, message: &str) {
        let text = alloc::format!(
            "{opening}, and this came of {}: {message} Tell the caller; do not call it again for this.",
            tool.name
        );
        self.items.push(crate::context::Item::Told { text });
    }

    /// A tool that asks an operator by itself: its answer is how things stand until they have answered.
    fn ask_for_tool(&mut self, run: &Running, outcome: &ToolOutcome) {
        if let (ToolOutcome::Asks { message, hint, payload }, Some(input)) = (outcome, &run.input) {
            let then = Prepared::Plain { tool: run.tool.clone(), input: input.clone() };
            let what = (hint.clone(), payload.clone());
            self.ask_approval(run.call.clone(), what, then, ApprovalAsker::Tool);
            self.set_result(&run.call, message);
        }
    }

    pub(crate) fn on_tool_limit(&mut self) {
        let Some((_, call)) = self.tools.limit_at() else { return };
        self.tools.late.extend(self.tools.running.iter().find(|run| run.call == call).cloned());
        self.on_tool_finished(&call, ToolOutcome::Unknown);
    }

    /// A result after the limit: told if anybody is left, never run again (VC-62).
    fn on_late_result(&mut self, call: &CallId, outcome: &ToolOutcome) {
        let Some(at) = self.tools.late.iter().position(|run| run.call == *call) else { return };
        let Running { tool, confirmed_by, .. } = self.tools.late.remove(at);
        if *outcome == ToolOutcome::Unknown {
            // That it broke off in the end is what was said already.
            return;
        }
        let (_, message, _) = describe(outcome);
        if self.line.hung_up.is_none() {
            self.tell(alloc::format!("The late result of {}: {message}", tool.name));
        }
        self.set_result_by(call, message, confirmed_by);
    }
}

/// A confirmed tool that wants more than the caller's yes must say so before the caller is asked.
fn after_a_yes(outcome: ToolOutcome) -> ToolOutcome {
    if !matches!(outcome, ToolOutcome::Asks { .. }) {
        return outcome;
    }
    let message = "It asked for an approval after the caller's yes, which it may not.".to_string();
    ToolOutcome::Failed { message }
}

pub(crate) fn describe(outcome: &ToolOutcome) -> (bool, String, &'static str) {
    match outcome {
        ToolOutcome::Done { message } => (true, message.clone(), "executed"),
        ToolOutcome::Failed { message } => (false, message.clone(), "failed"),
        ToolOutcome::NotRun { message } => (false, message.clone(), "not_run"),
        ToolOutcome::Asks { message, .. } => (true, message.clone(), "waits_for_approval"),
        ToolOutcome::Unknown => {
            let text = "No answer came: it is unknown whether this happened. Do not run it again; say so.";
            (false, text.to_string(), "outcome_unknown")
        }
    }
}
