//! The scripted model, check and tools, and the real ones behind them.

use futures::StreamExt;
use sayback_core::{ApprovalWish, CheckAnswer, CheckRequest, SettledApproval, ToolOutcome};
use sayback_runtime::llm::{LlmError, LlmEvent, LlmRequest};
use sayback_runtime::prompt::{check_answer, check_request, step_request};

use super::*;

impl VirtualCall<'_> {
    pub(super) fn generate(&mut self, generation: GenerationId) {
        let Some(script) = self.script.model.as_mut() else {
            self.generate_for_real(generation);
            return;
        };
        let Some(step) = script.pop_front() else {
            let error = "the scenario's model has no more steps".to_owned();
            self.later(Duration::ZERO, Event::Model(ModelEvent::Failed { generation, error }));
            return;
        };
        self.play_step(generation, step);
    }

    fn play_step(&mut self, generation: GenerationId, step: &ModelStep) {
        let delay = step.delay;
        let mut events = Vec::new();
        let text = |text: &Option<String>| {
            text.clone().map(|text| ModelEvent::Text { generation, text: format!("{text} ") })
        };
        events.extend(text(&step.say));
        for call in &step.calls {
            self.script.calls += 1;
            let id = CallId(format!("call_{}", self.script.calls));
            let call = ToolCall { id, name: call.tool.clone(), input: call.input.clone() };
            events.push(ModelEvent::Call { generation, call });
        }
        events.extend(text(&step.say_after));
        match &step.error {
            None => events.push(ModelEvent::Finished { generation }),
            Some(ScriptedError::Timeout) => {}
            Some(ScriptedError::Message(error)) => {
                events.push(ModelEvent::Failed { generation, error: error.clone() });
            }
        }
        for event in events {
            self.later(delay, Event::Model(event));
        }
    }

    fn generate_for_real(&mut self, generation: GenerationId) {
        let request = step_request(&self.engines.agent, &self.session, &self.engines.today);
        let events = match self.ask_model(request) {
            Ok(events) => events,
            Err(error) => {
                let error = error.to_string();
                self.later(Duration::ZERO, Event::Model(ModelEvent::Failed { generation, error }));
                return;
            }
        };
        for event in events {
            let event = match event {
                LlmEvent::Text(text) => ModelEvent::Text { generation, text },
                LlmEvent::Call(call) => ModelEvent::Call {
                    generation,
                    call: ToolCall { id: CallId(call.id), name: call.name, input: call.arguments },
                },
                LlmEvent::Done => ModelEvent::Finished { generation },
            };
            self.later(Duration::ZERO, Event::Model(event));
        }
    }

    fn ask_model(&self, request: LlmRequest) -> Result<Vec<LlmEvent>, LlmError> {
        let missing = || LlmError::Refused {
            status: 0,
            message: "this run has no language model; give the scenario [[model]] steps".to_owned(),
        };
        let Some(llm) = self.engines.llm.clone() else { return Err(missing()) };
        let asking = async move {
            let mut stream = llm.stream(request).await?;
            let mut events = Vec::new();
            while let Some(event) = stream.next().await {
                events.push(event?);
            }
            Ok(events)
        };
        self.engines.wait(asking).unwrap_or_else(|| Err(missing()))
    }

    pub(super) fn check(&mut self, request: &CheckRequest) {
        let Some(script) = self.script.checks.as_mut() else {
            let text = self.ask_model(check_request(request)).map(|events| text_of(&events));
            let answer = match text {
                Ok(text) => check_answer(request, &text),
                Err(error) => CheckAnswer::Failed { error: error.to_string() },
            };
            self.later(Duration::ZERO, Event::Checked { check: request.check, answer });
            return;
        };
        let Some(step) = script.pop_front() else {
            let answer = CheckAnswer::Failed { error: "the scenario has no more verdicts".to_owned() };
            self.later(Duration::ZERO, Event::Checked { check: request.check, answer });
            return;
        };
        let answer = match &step.answer {
            ScriptedAnswer::Verdict(verdict) => check_answer(request, word(*verdict)),
            ScriptedAnswer::Text(text) => check_answer(request, text),
            ScriptedAnswer::Error(ScriptedError::Timeout) => return,
            ScriptedAnswer::Error(ScriptedError::Message(error)) => {
                CheckAnswer::Failed { error: error.clone() }
            }
        };
        self.later(step.delay, Event::Checked { check: request.check, answer });
    }

    /// What the scenario's operator answers, if they do.
    pub(super) fn approve(&mut self, wish: &ApprovalWish) {
        let fits = |step: &&ApprovalStep| step.tool.as_ref().is_none_or(|tool| *tool == wish.tool.name);
        let Some(at) = self.script.approvals.iter().position(fits) else { return };
        let step = self.script.approvals.remove(at);
        if let Some(outcome) = step.outcome.clone() {
            let settled = SettledApproval { approval: wish.approval, outcome };
            self.later(step.delay, Event::Approvals(vec![settled]));
        }
    }

    /// A scripted answer for the tool if there is one; else the tool itself.
    pub(super) fn run_tool(&mut self, call: CallId, name: &str, real: impl FnOnce() -> Option<ToolOutcome>) {
        let script = self.script.tools.get_mut(name).and_then(|list| {
            // The last entry goes on answering.
            if list.len() > 1 { list.pop_front() } else { list.front().copied() }
        });
        let Some(script) = script else {
            let failed = || ToolOutcome::Failed { message: "the tool gave no answer".to_owned() };
            let outcome = real().unwrap_or_else(failed);
            self.later(Duration::ZERO, Event::ToolFinished { call, outcome });
            return;
        };
        let outcome = match &script.answer {
            ToolAnswer::Result(value) => outcome_of(value),
            ToolAnswer::Error(ScriptedError::Timeout) => return,
            ToolAnswer::BrokeOff => ToolOutcome::Unknown,
            ToolAnswer::Error(ScriptedError::Message(message)) => {
                ToolOutcome::Failed { message: message.clone() }
            }
        };
        self.later(script.delay, Event::ToolFinished { call, outcome });
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Yes => "yes",
        Verdict::No => "no",
        Verdict::Unclear => "unclear",
    }
}

fn text_of(events: &[LlmEvent]) -> String {
    events
        .iter()
        .filter_map(|event| match event {
            LlmEvent::Text(text) => Some(text.as_str()),
            LlmEvent::Call(_) | LlmEvent::Done => None,
        })
        .collect()
}

fn outcome_of(value: &Value) -> ToolOutcome {
    let message = value["message"].as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value["ok"].as_bool() {
        Some(false) => ToolOutcome::Failed { message },
        Some(true) | None => ToolOutcome::Done { message },
    }
}
