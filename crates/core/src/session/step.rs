//! The model's step: releasing its speech one sentence behind, and what its calls turn it into.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::approval::ApprovalAsker;
use crate::command::{Command, DropReason, Report};
use crate::context::Item;
use crate::event::{ModelEvent, Prepared, ToolCall};
use crate::ids::{CallId, GenerationId};
use crate::sentence::Sentences;
use crate::session::gate::Stage;
use crate::session::leaving::{being_handed_over, is_never_refused, nobody_answered};
use crate::session::{MAX_STEPS, Session};
use crate::time::Time;

/// The built-in tool that hangs up.
pub(crate) const END_CALL: &str = "end_call";
/// The built-in tool that hands the caller over.
pub(crate) const TRANSFER_CALL: &str = "transfer_call";
/// Apologies in a row; then the agent stays quiet rather than repeat itself.
const MAX_APOLOGIES: u8 = 2;

/// A step of the model, while it streams.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Step {
    pub(crate) generation: GenerationId,
    text: Sentences,
    /// Sentences already said.
    released: usize,
    /// Whole sentences kept back since the first call.
    kept: Vec<String>,
    calls: Vec<StepCall>,
    /// Built-in calls: hang up, hand over.
    ending: Option<ToolCall>,
    transfer: Option<ToolCall>,
    finished: bool,
    /// A question came up while it ran, its own or the program's.
    asks: bool,
    /// A call of it was refused: the model has to hear why.
    refused: bool,
    /// A call of it waits for an operator: the model is not asked again before they have answered.
    approving: bool,
    last_event: Time,
}

/// A call within a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StepCall {
    id: CallId,
    /// Sentences of the step before it.
    sentences_before: usize,
    prepared: bool,
}

impl Step {
    fn new(generation: GenerationId, now: Time) -> Self {
        Self {
            generation,
            text: Sentences::default(),
            released: 0,
            kept: Vec::new(),
            calls: Vec::new(),
            ending: None,
            transfer: None,
            finished: false,
            asks: false,
            refused: false,
            approving: false,
            last_event: now,
        }
    }

    pub(crate) fn note_question(&mut self) {
        self.asks = true;
    }

    fn closed(&self) -> bool {
        !self.calls.is_empty() || self.ending.is_some() || self.transfer.is_some()
    }

    fn knows(&self, call: &CallId) -> bool {
        let built_in = [&self.ending, &self.transfer];
        self.calls.iter().any(|c| c.id == *call) || built_in.into_iter().flatten().any(|c| c.id == *call)
    }

    /// What was written so far becomes a whole sentence.
    fn keep_rest(&mut self) {
        self.kept.extend(self.text.take_rest());
    }
}

impl Session {
    /// Asks for the next step when it is owed, and completes one that is all there.
    pub(crate) fn settle_step(&mut self) {
        if self.step.as_ref().is_some_and(|step| step.finished && step.calls.iter().all(|c| c.prepared)) {
            self.complete_step();
        }
        let free = self.step.is_none() && !self.tools.running() && !self.gate.committing();
        let leaving = self.line.ended || self.line.ending.is_some() || self.line.transfer.is_some();
        let up = self.line.up && self.line.hung_up.is_none() && !leaving;
        // A caller's turn that is complete by now joins the same step: the model is not asked twice.
        let turn_due = self.turn_complete_at().is_some_and(|at| at <= self.now);
        if self.turn.wanted && free && up && !turn_due {
            self.start_step();
        }
    }

    fn start_step(&mut self) {
        self.turn.wanted = false;
        if self.turn.steps >= MAX_STEPS {
            let waits = self.gate.open().is_some_and(|hold| hold.stage == Stage::Waiting);
            if waits {
                self.ask_again();
            } else {
                self.apologise();
            }
            return;
        }
        self.turn.steps += 1;
        let generation = self.next_generation();
        self.step = Some(Step::new(generation, self.now));
        if let Some(hold) = self.gate.open_mut().filter(|hold| hold.stage == Stage::Waiting) {
            hold.generation = Some(generation);
        }
        self.command(Command::Generate { generation });
    }

    pub(crate) fn on_model(&mut self, event: ModelEvent) {
        let generation = match &event {
            ModelEvent::Text { generation, .. }
            | ModelEvent::Call { generation, .. }
            | ModelEvent::Finished { generation }
            | ModelEvent::Failed { generation, .. } => *generation,
        };
        let now = self.now;
        let Some(step) = self.step.as_mut().filter(|s| s.generation == generation && !s.finished) else {
            return;
        };
        step.last_event = now;
        match event {
            ModelEvent::Text { text, .. } => self.on_model_text(&text),
            ModelEvent::Call { call, .. } => self.on_model_call(call),
            ModelEvent::Finished { .. } => step.finished = true,
            ModelEvent::Failed { error, .. } => self.fail_step(error),
        }
    }

    fn on_model_text(&mut self, text: &str) {
        let Some(step) = self.step.as_mut() else { return };
        let sentences = step.text.push(text);
        if step.closed() {
            step.kept.extend(sentences);
            return;
        }
        step.released += sentences.len();
        let generation = step.generation;
        for sentence in sentences {
            self.say_step(sentence, generation);
        }
    }

    fn say_step(&mut self, text: String, generation: GenerationId) {
        let language = self.line.language.clone();
        self.say(text, language, Some(generation));
    }

    fn on_model_call(&mut self, call: ToolCall) {
        let known_before = self
            .items
            .iter()
            .skip(self.restored)
            .any(|item| matches!(item, Item::Call { call: c } if c.id == call.id));
        let Some(step) = self.step.as_mut() else { return };
        if known_before || step.knows(&call.id) {
            return;
        }
        step.keep_rest();
        let sentences_before = step.released + step.kept.len();
        self.items.push(Item::Call { call: call.clone() });
        match call.name.as_str() {
            END_CALL => step.ending = Some(call),
            TRANSFER_CALL => step.transfer = Some(call),
            _ => {
                step.calls.push(StepCall { id: call.id.clone(), sentences_before, prepared: false });
                let language = self.line.language.clone();
                self.command(Command::Prepare { call, language });
            }
        }
    }

    pub(crate) fn on_prepared(&mut self, id: CallId, outcome: Prepared) {
        if self.on_verified(&id, &outcome) {
            return;
        }
        let Some(step) = self.step.as_mut() else { return };
        let generation = step.generation;
        let Some(call) = step.calls.iter_mut().find(|c| c.id == id && !c.prepared) else { return };
        call.prepared = true;
        let leaving = self.line.transfer.is_some() || self.tools.handing_over();
        if let Prepared::Ask { tool, .. } = outcome.behind_approval()
            && (self.line.unanswered || leaving)
        {
            let refusal = if leaving { being_handed_over(&tool.name) } else { nobody_answered(&tool.name) };
            step.refused = true;
            self.set_result(&id, &refusal);
            self.report(Report::ModelTold { text: refusal });
            return;
        }
        match outcome {
            Prepared::Plain { tool, input } => self.run_plain(id, tool, input),
            Prepared::Approve { hint, then } => {
                step.approving = true;
                self.ask_approval(id, (hint, None), *then, ApprovalAsker::Rule);
            }
            Prepared::Ask { ref tool, ref input, .. } => {
                self.report_called(&id, tool, input);
                self.hold(id, outcome, Some(generation));
            }
            Prepared::Refused { message, confirms, .. } => {
                step.refused = true;
                if confirms {
                    self.close_hold(DropReason::InputError);
                }
                self.set_result(&id, &message);
                self.report(Report::ModelTold { text: message });
            }
        }
    }

    /// All of the step is there.
    fn complete_step(&mut self) {
        let Some(mut step) = self.step.take() else { return };
        step.keep_rest();
        let asked = self
            .gate
            .hold
            .as_ref()
            .filter(|hold| hold.stage == Stage::Waiting)
            .and_then(|hold| step.calls.iter().find(|c| c.id == hold.call))
            .map(|c| c.sentences_before);
        match asked {
            Some(before) => self.complete_asking_step(step, before),
            None => self.complete_plain_step(step),
        }
    }

    /// A step that asks: all but the last sentence before the call, then the question; it never hangs up.
    fn complete_asking_step(&mut self, mut step: Step, before: usize) {
        if step.transfer.as_ref().is_some_and(is_never_refused) {
            // The caller goes to whom they need now: the question is not asked (VC-85).
            self.leave(None, step.transfer, step.generation);
            return;
        }
        let keep = before.saturating_sub(1).saturating_sub(step.released);
        self.refuse_leaving(&mut step, "the caller is being asked a question");
        for sentence in step.kept.into_iter().take(keep) {
            self.say_step(sentence, step.generation);
        }
        self.ask_again();
    }

    fn refuse_leaving(&mut self, step: &mut Step, why: &str) {
        for call in step.ending.take().into_iter().chain(step.transfer.take()) {
            let refusal = format!("Refused: {why}; the call goes on.");
            self.set_result(&call.id, &refusal);
            self.report(Report::ModelTold { text: refusal });
        }
    }

    /// A step that leaves no question of its own behind. It does not leave if one came up in it, whatever became of that
    /// since (VC-21), nor if a call of it was refused: the action that the caller wanted would be gone with the call, and
    /// the model would never hear that (VC-12).
    fn complete_plain_step(&mut self, mut step: Step) {
        let wished = step.ending.is_some() || step.transfer.is_some();
        let urgent = step.transfer.as_ref().is_some_and(is_never_refused);
        let stays = wished && !urgent && (step.asks || step.refused || step.approving);
        if stays {
            let why = if step.approving {
                "an operator is being asked"
            } else if step.asks {
                "the caller is being asked a question"
            } else {
                "another call of this step failed"
            };
            self.refuse_leaving(&mut step, why);
            // They lead up to a goodbye that is not to be.
            step.kept.clear();
        }
        let silent = step.released == 0 && step.kept.is_empty();
        for sentence in step.kept {
            self.say_step(sentence, step.generation);
        }
        let leaves = step.ending.is_some() || step.transfer.is_some();
        if leaves {
            self.leave(step.ending, step.transfer, step.generation);
        } else if step.approving && !step.refused {
            self.say_please_wait();
        } else if !step.calls.is_empty() || (stays && self.gate.open().is_none()) {
            self.want_step();
        } else if self.gate.open().is_some_and(|hold| hold.stage == Stage::Waiting) {
            self.ask_again();
        } else if silent {
            self.apologise();
        }
    }

    fn leave(&mut self, ending: Option<ToolCall>, transfer: Option<ToolCall>, generation: GenerationId) {
        if ending.is_some() {
            self.close_hold(DropReason::Cancelled);
        } else {
            self.drop_for_transfer();
        }
        if let Some(call) = ending {
            if let Some(goodbye) = goodbye(&call.input) {
                self.say_step(goodbye, generation);
            }
            self.set_result(&call.id, "The call ends once this has been heard.");
            self.line.ending = Some(String::from("agent"));
        } else {
            self.line.transfer = transfer;
        }
    }

    /// The step is no longer wanted; calls that were not yet prepared never run.
    pub(crate) fn cancel_step(&mut self) {
        let Some(step) = self.step.take() else { return };
        self.command(Command::CancelGeneration { generation: step.generation });
        self.abandon(&step, "Not run: the caller spoke first.");
        let own = |hold: &&crate::session::gate::Hold| {
            hold.stage == Stage::Waiting && hold.generation == Some(step.generation)
        };
        if self.gate.open().filter(own).is_some() {
            self.close_hold(DropReason::Cancelled);
        }
    }

    fn abandon(&mut self, step: &Step, why: &str) {
        let unprepared = step.calls.iter().filter(|c| !c.prepared).map(|c| c.id.clone());
        let built_in = [&step.ending, &step.transfer].into_iter().flatten().map(|c| c.id.clone());
        let ids: Vec<CallId> = unprepared.chain(built_in).collect();
        for id in ids {
            self.set_result(&id, why);
        }
    }

    pub(crate) fn model_limit_at(&self) -> Option<Time> {
        let step = self.step.as_ref()?;
        Some(step.last_event + self.policy.turn.model_limit)
    }

    pub(crate) fn on_model_limit(&mut self) {
        if let Some(generation) = self.step.as_ref().map(|step| step.generation) {
            self.command(Command::CancelGeneration { generation });
            self.fail_step(String::from("timeout"));
        }
    }

    fn fail_step(&mut self, error: String) {
        let Some(step) = self.step.take() else { return };
        self.report(Report::ModelFailed { generation: step.generation, error });
        self.abandon(&step, "Not run: the step failed.");
        let held = self.gate.open().filter(|hold| hold.stage == Stage::Waiting);
        let held_here = held.is_some_and(|hold| step.calls.iter().any(|c| c.id == hold.call));
        let lead_in = held.is_some() && !held_here;
        if held_here {
            self.close_hold(DropReason::Cancelled);
        }
        if lead_in {
            self.ask_again();
        } else {
            self.apologise();
        }
    }

    pub(crate) fn apologise(&mut self) {
        self.turn.quiet_since = self.now;
        if self.turn.apologies < MAX_APOLOGIES {
            self.turn.apologies += 1;
            let text = self.policy.turn.apology.clone();
            self.say_own(text);
        }
    }
}

/// A goodbye may be `end_call`'s argument.
fn goodbye(input: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(input).ok()?;
    let text = value.get("goodbye")?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_string())
}
