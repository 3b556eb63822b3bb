//! The HTTP side: requests in, events out.

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, channel};

use crate::answer::Part;
use crate::api::{ChatRequest, chunk, error};
use crate::engine::{Ending, Job, Jobs, Output};

/// Room for a whole answer: the model never waits for a slow reader.
const PIECES: usize = 2048;

#[derive(Clone, Debug)]
struct Shared {
    jobs: Jobs,
    model: String,
}

/// The routes: `/v1/chat/completions`, `/v1/models`, `/health`.
pub(crate) fn routes(jobs: Jobs, model: String) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/models", get(models))
        // The model is loaded before the port is open.
        .route("/health", get(async || Json(json!({"status": "ok"}))))
        .with_state(Shared { jobs, model })
}

async fn models(State(shared): State<Shared>) -> Json<Value> {
    Json(json!({"object": "list", "data": [{"id": shared.model, "object": "model", "owned_by": "local"}]}))
}

async fn chat(State(shared): State<Shared>, request: Result<Json<ChatRequest>, JsonRejection>) -> Response {
    let request = match request {
        Ok(Json(request)) => request,
        Err(rejection) => return refusal(400, &rejection.body_text()),
    };
    if request.messages.is_empty() {
        return refusal(400, "messages is empty");
    }
    let is_streamed = request.stream;
    let (pieces, mut given) = channel(PIECES);
    if shared.jobs.try_send(Job { request, pieces }).is_err() {
        return refusal(503, "too many answers are waiting, or the model has stopped");
    }
    // The first piece decides the status, so a failure is a failure in HTTP too.
    let first = given.recv().await;
    match first {
        Some(Output::Failed(status, message)) => refusal(status, &message),
        None => refusal(500, "the model has stopped"),
        Some(first) if is_streamed => streamed(shared.model, first, given).into_response(),
        Some(first) => whole(&shared.model, first, given).await,
    }
}

fn refusal(status: u16, message: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(error(status.as_u16(), message))).into_response()
}

/// Events under way.
struct Streaming {
    model: String,
    next: Option<Output>,
    given: Receiver<Output>,
    /// Events that follow the last output.
    closing: Vec<String>,
    has_ended: bool,
}

fn streamed(
    model: String,
    first: Output,
    given: Receiver<Output>,
) -> Sse<impl stream::Stream<Item = Result<Event, std::convert::Infallible>>> {
    let streaming = Streaming { model, next: Some(first), given, closing: Vec::new(), has_ended: false };
    Sse::new(stream::unfold(streaming, async |mut streaming| {
        let data = streaming.next().await?;
        Some((Ok(Event::default().data(data)), streaming))
    }))
}

impl Streaming {
    async fn next(&mut self) -> Option<String> {
        if let Some(data) = self.closing.pop() {
            return Some(data);
        }
        if self.has_ended {
            return None;
        }
        let output = match self.next.take() {
            Some(output) => Some(output),
            None => self.given.recv().await,
        };
        Some(match output {
            Some(Output::Part(part)) => chunk(&self.model, &delta(part), None).to_string(),
            Some(Output::End(ending)) => {
                self.has_ended = true;
                self.closing.push("[DONE]".to_owned());
                let mut last = chunk(&self.model, &json!({}), Some(reason(&ending)));
                last["timings"] = timings(&ending);
                last.to_string()
            }
            Some(Output::Failed(status, message)) => self.failed(status, &message),
            None => self.failed(500, "the model has stopped"),
        })
    }

    fn failed(&mut self, status: u16, message: &str) -> String {
        self.has_ended = true;
        error(status, message).to_string()
    }
}

async fn whole(model: &str, first: Output, mut given: Receiver<Output>) -> Response {
    let (mut content, mut calls) = (String::new(), Vec::new());
    let mut next = Some(first);
    loop {
        match next {
            Some(Output::Part(Part::Text(text))) => content.push_str(&text),
            Some(Output::Part(Part::Call { name, arguments })) => calls.push(tool_call(&name, &arguments)),
            Some(Output::Failed(status, message)) => return refusal(status, &message),
            None => return refusal(500, "the model has stopped"),
            Some(Output::End(ending)) => {
                let mut message = json!({"role": "assistant", "content": content});
                if !calls.is_empty() {
                    message["tool_calls"] = Value::Array(calls);
                }
                return Json(json!({
                    "id": "chatcmpl-local",
                    "object": "chat.completion",
                    "created": 0,
                    "model": model,
                    "choices": [{"index": 0, "message": message, "finish_reason": reason(&ending)}],
                    "timings": timings(&ending),
                }))
                .into_response();
            }
        }
        next = given.recv().await;
    }
}

fn delta(part: Part) -> Value {
    match part {
        Part::Text(text) => json!({"content": text}),
        Part::Call { name, arguments } => json!({"tool_calls": [tool_call(&name, &arguments)]}),
    }
}

/// Without an id: the client, who knows the conversation, makes one that is not taken.
fn tool_call(name: &str, arguments: &str) -> Value {
    json!({"index": 0, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn reason(ending: &Ending) -> &'static str {
    match ending {
        Ending { called: true, .. } => "tool_calls",
        Ending { was_cut: true, .. } => "length",
        Ending { .. } => "stop",
    }
}

fn timings(ending: &Ending) -> Value {
    json!({
        "prompt_n": ending.prompt_tokens,
        "cache_n": ending.cached_tokens,
        "predicted_n": ending.answer_tokens,
        "prompt_ms": ending.prompt_us / 1000,
        "predicted_ms": ending.answer_us / 1000,
    })
}
