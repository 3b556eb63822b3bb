//! One step under way: opened, read piece by piece, each wait with its deadline.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use eventsource_stream::{Event, EventStreamError, Eventsource};
use futures::future::{Either, select};
use futures::{Stream, StreamExt};
use reqwest::{RequestBuilder, Response};
use sayback_runtime::llm::{LlmError, LlmEvent, LlmStream};
use serde_json::Value;

use super::ApiKey;
use super::assemble::Calls;
use super::refusal::{causes, cleared, in_stream, no_event_stream, refused, unsent};
use super::wire::{Choice, Chunk, Delta};

/// Most bytes of one answer: some hundred thousand tokens' worth of events, or a server gone mad.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Most bytes without a line end: the event reader keeps the open line in memory.
const MOST_LINE: usize = 256 * 1024;
/// The answer is whole once its finish reason is read; what follows is waited for only so that the connection can
/// be used again.
const FAREWELL: Duration = Duration::from_millis(100);

/// What a step needs to know besides the request.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) first_token: Duration,
    pub(super) between_tokens: Duration,
    pub(super) id_stem: String,
    pub(super) key: Option<ApiKey>,
    pub(super) url: String,
}

type Events = Pin<Box<dyn Stream<Item = Result<Event, EventStreamError<ReadError>>> + Send>>;

/// Why the bytes of an answer stopped.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error("a line of more than {MOST_LINE} bytes")]
    EndlessLine,
    #[error("an answer of more than {MOST_BYTES} bytes")]
    EndlessAnswer,
}

/// A named wait: done when its time is over.
struct Deadline {
    limit: Duration,
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Deadline {
    fn after(limit: Duration) -> Self {
        let over = Box::pin(async move {
            // The only outcome of waiting for nothing is the end of the time.
            let _ = tokio::time::timeout(limit, std::future::pending::<()>()).await;
        });
        Self { limit, over }
    }

    fn missed(&self) -> LlmError {
        LlmError::TimedOut(self.limit)
    }
}

/// One step under way.
pub(super) struct Step {
    events: Events,
    deadline: Deadline,
    opening: Opening,
    calls: Calls,
    ready: VecDeque<LlmEvent>,
    saw_event: bool,
    /// A finish reason was read: nothing that follows counts.
    finished: bool,
    closed: bool,
}

impl Step {
    /// Sends the request and waits for a response that promises an event stream.
    pub(super) async fn open(post: RequestBuilder, opening: Opening) -> Result<Self, LlmError> {
        let mut deadline = Deadline::after(opening.first_token);
        let answer = Box::pin(answer(post, &opening));
        let response = match select(answer, deadline.over.as_mut()).await {
            Either::Left((answer, _)) => answer?,
            Either::Right(((), _)) => return Err(deadline.missed()),
        };
        let events = bounded(response.bytes_stream()).eventsource();
        Ok(Self {
            events: Box::pin(events),
            deadline,
            opening,
            calls: Calls::default(),
            ready: VecDeque::new(),
            saw_event: false,
            finished: false,
            closed: false,
        })
    }

    pub(super) fn into_stream(self) -> LlmStream {
        Box::pin(futures::stream::unfold(self, async |mut step| step.next().await.map(|event| (event, step))))
    }

    async fn next(&mut self) -> Option<Result<LlmEvent, LlmError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if self.closed {
                return None;
            }
            // What is there is taken first: a listener who was slow to ask is not the server's silence.
            let outcome = match select(self.events.next(), self.deadline.over.as_mut()).await {
                Either::Left((Some(event), _)) => self.on_event(event),
                Either::Left((None, _)) => self.on_end(),
                Either::Right(((), _)) if self.finished => self.close(),
                Either::Right(((), _)) => Err(self.deadline.missed()),
            };
            if let Err(error) = outcome {
                self.closed = true;
                return Some(Err(error));
            }
        }
    }

    fn on_event(&mut self, event: Result<Event, EventStreamError<ReadError>>) -> Result<(), LlmError> {
        let event = match event {
            Ok(event) => event,
            Err(_) if self.finished => return self.close(),
            Err(EventStreamError::Transport(ReadError::Http(error))) => {
                return Err(LlmError::BrokeOff(causes(&error)));
            }
            Err(error) => return Err(LlmError::Garbage(error.to_string())),
        };
        self.saw_event = true;
        let data = event.data.trim();
        if data == "[DONE]" {
            return self.finish(None);
        }
        if self.finished || data.is_empty() {
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|_| {
            LlmError::Garbage(format!("no chunk: {}", cleared(data, self.opening.key.as_ref())))
        })?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(in_stream(&error, self.opening.key.as_ref()));
        }
        match chunk.choices.into_iter().next() {
            Some(choice) => self.on_choice(choice),
            None => Ok(()),
        }
    }

    fn on_choice(&mut self, choice: Choice) -> Result<(), LlmError> {
        if self.take(choice.delta)? {
            self.deadline = Deadline::after(self.opening.between_tokens);
        }
        match choice.finish_reason {
            Some(reason) if !reason.is_empty() => self.finish(Some(&reason)),
            _ => Ok(()),
        }
    }

    /// Takes what is new; whether that is a piece of the answer (a role or a thought is none).
    fn take(&mut self, delta: Delta) -> Result<bool, LlmError> {
        let text = delta.content.as_ref().and_then(Value::as_str).unwrap_or_default();
        let is_piece = !text.is_empty() || !delta.tool_calls.is_empty();
        if !text.is_empty() {
            self.ready.push_back(LlmEvent::Text(text.to_owned()));
        }
        for call in delta.tool_calls {
            self.calls.push(call).map_err(|error| LlmError::Garbage(error.to_string()))?;
        }
        Ok(is_piece)
    }

    /// The answer is whole: its calls are delivered. `reason` as the server names it.
    fn finish(&mut self, reason: Option<&str>) -> Result<(), LlmError> {
        if self.finished {
            return Ok(());
        }
        if reason == Some("length") && self.calls.has_cut_arguments() {
            return Err(LlmError::BrokeOff("the token limit was reached inside a tool call".to_owned()));
        }
        if reason == Some("content_filter") {
            return Err(LlmError::BrokeOff("the server's content filter stopped the answer".to_owned()));
        }
        let calls = self.calls.finish(&self.opening.id_stem).map_err(|e| LlmError::Garbage(e.to_string()))?;
        self.ready.extend(calls.into_iter().map(LlmEvent::Call));
        self.finished = true;
        self.deadline = Deadline::after(self.opening.between_tokens.min(FAREWELL));
        Ok(())
    }

    fn on_end(&mut self) -> Result<(), LlmError> {
        match (self.finished, self.saw_event) {
            (true, _) => self.close(),
            (false, true) => {
                Err(LlmError::BrokeOff("the connection ended in the middle of the answer".to_owned()))
            }
            (false, false) => Err(LlmError::Garbage("an event stream without an event".to_owned())),
        }
    }

    fn close(&mut self) -> Result<(), LlmError> {
        self.closed = true;
        self.ready.push_back(LlmEvent::Done);
        Ok(())
    }
}

async fn answer(post: RequestBuilder, opening: &Opening) -> Result<Response, LlmError> {
    let response = post.send().await.map_err(|error| unsent(&error, &opening.url))?;
    if !response.status().is_success() {
        return Err(refused(response, opening.key.as_ref()).await);
    }
    let kind = response.headers().get(reqwest::header::CONTENT_TYPE);
    let kind = kind.map(|kind| String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase());
    match kind {
        // Small home-made servers leave the header out; what they send is judged by its content.
        Some(kind) if !kind.trim_start().starts_with("text/event-stream") => {
            Err(no_event_stream(response, &kind, opening.key.as_ref()).await)
        }
        _ => Ok(response),
    }
}

/// Ends a stream that has no end, or a line that has none.
fn bounded<B: AsRef<[u8]>>(
    bytes: impl Stream<Item = Result<B, reqwest::Error>>,
) -> impl Stream<Item = Result<B, ReadError>> {
    let (mut total, mut line) = (0_usize, 0_usize);
    bytes.map(move |piece| {
        let piece = piece?;
        let seen = piece.as_ref();
        total = total.saturating_add(seen.len());
        line = match seen.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')) {
            Some(at) => seen.len() - at - 1,
            None => line.saturating_add(seen.len()),
        };
        if line > MOST_LINE {
            return Err(ReadError::EndlessLine);
        }
        if total > MOST_BYTES { Err(ReadError::EndlessAnswer) } else { Ok(piece) }
    })
}
