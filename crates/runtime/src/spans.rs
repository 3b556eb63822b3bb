//! A call as spans, for a collector: the call, and in it each run of a tool. Names and outcomes, never what was said and
//! never an input.

use std::collections::BTreeMap;

use serde_json::Value;
use tracing::Span;

use crate::calls::CallView;
use crate::driver::Observer;

/// Makes the spans of one call out of its event log.
#[derive(Debug)]
pub struct CallSpans {
    call: Span,
    /// Of tools that run, by the model's call.
    tools: BTreeMap<String, Span>,
}

impl CallSpans {
    /// A call that begins now.
    pub fn new(view: &CallView) -> Self {
        let call = tracing::info_span!(
            target: "sayback::call",
            "call",
            call = view.call,
            agent = view.agent,
            transport = view.transport,
            outbound = view.outbound,
            ended = tracing::field::Empty,
        );
        Self { call, tools: BTreeMap::new() }
    }
}

impl Observer for CallSpans {
    fn on_event(&mut self, line: &Value) {
        let text = |field: &str| line[field].as_str().unwrap_or_default();
        match text("event") {
            "tool.started" => {
                let span = tracing::info_span!(
                    target: "sayback::call",
                    parent: &self.call,
                    "tool",
                    tool = text("tool"),
                    confirmed = !text("confirmed_by").is_empty(),
                    ok = tracing::field::Empty,
                );
                self.tools.insert(text("call_id").to_owned(), span);
            }
            "tool.finished" => {
                if let Some(span) = self.tools.remove(text("call_id")) {
                    span.record("ok", line["ok"].as_bool().unwrap_or(false));
                }
            }
            "call.ended" => drop(self.call.record("ended", text("reason"))),
            _ => {}
        }
    }
}
