//! Tools that run.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::command::{Command, PlainRun, Report};
use crate::event::{Frozen, ToolCall, ToolOutcome, ToolRef};
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
    tool: String,
    limit: Time,
    confirmed_by: Option<String>,
    /// The conversation was taken back to before its call: there is no place for its result.
    taken_back: bool,
}

impl Tools {
    pub(crate) fn start(&mut self, call: CallId, tool: ToolRef, limit: Time, confirmed_by: Option<String>) {
        self.running.push(Running { call, tool: tool.name, limit, confirmed_by, taken_back: false });
    }

    pub(crate) fn transferring(&mut self, call: &ToolCall, now: Time) {
        let limit = now + core::time::Duration::from_secs(60);
        self.running.push(Running {
            call: call.id.clone(),
            tool: call.name.clone(),
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
        self.tools.start(call.clone(), tool.clone(), self.now + limit, None);
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
        let (ok, message, name) = describe(&outcome);
        self.report(Report::ToolFinished {
            call_id: call.clone(),
            tool: run.tool.clone(),
            ok,
            message: message.clone(),
            outcome: name.to_string(),
        });
        if name == "outcome_unknown" {
            self.tools.late.push(run.clone());
        }
        if committed && !run.taken_back {
            // The result stands with the call, before the question and the yes; a model that reads on to the yes would
            // call again. So what came of it is said once more, as the last thing.
            let text = alloc::format!(
                "The caller said yes, and this came of {}: {message} Tell the caller; do not call it again for this.",
                run.tool
            );
            self.items.push(crate::context::Item::Told { text });
        }
        if !run.taken_back {
            self.set_result_by(call, message, run.confirmed_by);
        } else {
            // The call was taken back while it ran; what it did was not.
            self.tell(alloc::format!(
                "{} ran before the conversation was taken back, and is not undone: {message}",
                run.tool
            ));
        }
        self.turn.quiet_since = self.now;
        if committed && matches!(outcome, ToolOutcome::NotRun { .. }) {
            self.forget_run();
        }
        // Whoever was to be handed over is still there, and nobody else would say so.
        if committed || (!ok && run.tool == TRANSFER_CALL) {
            self.want_step();
        }
        if committed {
            self.end_commit(name);
        }
    }

    pub(crate) fn on_tool_limit(&mut self) {
        if let Some((_, call)) = self.tools.limit_at() {
            self.on_tool_finished(&call, ToolOutcome::Unknown);
        }
    }

    /// A result after the limit: told if anybody is left, never run again (VC-62).
    fn on_late_result(&mut self, call: &CallId, outcome: &ToolOutcome) {
        let Some(at) = self.tools.late.iter().position(|run| run.call == *call) else { return };
        let Running { tool, confirmed_by, .. } = self.tools.late.remove(at);
        let (_, message, _) = describe(outcome);
        if self.line.hung_up.is_none() {
            self.tell(alloc::format!("The late result of {tool}: {message}"));
        }
        self.set_result_by(call, message, confirmed_by);
    }
}

pub(crate) fn describe(outcome: &ToolOutcome) -> (bool, String, &'static str) {
    match outcome {
        ToolOutcome::Done { message } => (true, message.clone(), "executed"),
        ToolOutcome::Failed { message } => (false, message.clone(), "failed"),
        ToolOutcome::NotRun { message } => (false, message.clone(), "not_run"),
        ToolOutcome::Unknown => {
            let text = "No answer in time: it is unknown whether this happened. Do not run it again; say so.";
            (false, text.to_string(), "outcome_unknown")
        }
    }
}
