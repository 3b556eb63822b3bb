//! One step under way: opened, read piece by piece, each wait with its deadline.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use eventsource_stream::{Event, EventStreamError, Eventsource};
use futures::future::{Either, select};
use futures::{Stream, StreamExt};
use reqwest::{RequestBuilder, Response};
use sayback_runtime::llm::{LlmError, LlmEvent, LlmStream};

use super::{ApiKey, Deadline, Fault, causes, no_event_stream, refused, unsent};

/// Most bytes of one answer: some hundred thousand tokens' worth of events, or a server gone mad.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Most bytes without a line end: the event reader keeps the open line in memory.
const MOST_LINE: usize = 256 * 1024;
/// The answer is whole once its finish reason is read; what follows is waited for only so that the connection can
/// be used again.
const FAREWELL: Duration = Duration::from_millis(100);

/// Longest wait for the first piece where the request names none.
pub(crate) const FIRST_TOKEN: Duration = Duration::from_secs(15);
/// Longest wait between two pieces where the request names none.
pub(crate) const BETWEEN_TOKENS: Duration = Duration::from_secs(10);

/// What a step needs to know besides the request.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) first_token: Duration,
    pub(crate) between_tokens: Duration,
    pub(crate) key: Option<ApiKey>,
    pub(crate) url: String,
}

/// How one vendor writes the events of an answer.
pub(crate) trait Dialect: Send {
    /// Takes the data of one event; whole pieces of the answer go to `ready`.
    fn read(&mut self, data: &str, ready: &mut VecDeque<LlmEvent>) -> Result<Progress, Fault>;
}

/// What an event meant for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing new: a ping, a role, a thought.
    Nothing,
    /// There is more of it.
    Piece,
    /// It is whole: nothing that follows counts.
    Finished,
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

/// One step under way.
pub(crate) struct Step {
    events: Events,
    deadline: Deadline,
    opening: Opening,
    dialect: Box<dyn Dialect>,
    ready: VecDeque<LlmEvent>,
    saw_event: bool,
    /// The end was read: nothing that follows counts.
    finished: bool,
    closed: bool,
}

impl Step {
    /// Sends the request and waits for a response that promises an event stream.
    pub(crate) async fn open(
        post: RequestBuilder,
        opening: Opening,
        dialect: Box<dyn Dialect>,
    ) -> Result<Self, Fault> {
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
            dialect,
            ready: VecDeque::new(),
            saw_event: false,
            finished: false,
            closed: false,
        })
    }

    pub(crate) fn into_stream(self) -> LlmStream {
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
                return Some(Err(error.into()));
            }
        }
    }

    fn on_event(&mut self, event: Result<Event, EventStreamError<ReadError>>) -> Result<(), Fault> {
        let event = match event {
            Ok(event) => event,
            Err(_) if self.finished => return self.close(),
            Err(EventStreamError::Transport(ReadError::Http(error))) => {
                return Err(Fault::BrokeOff(causes(&error)));
            }
            Err(error) => return Err(Fault::Garbage(error.to_string())),
        };
        self.saw_event = true;
        let data = event.data.trim();
        if self.finished || data.is_empty() {
            return Ok(());
        }
        match self.dialect.read(data, &mut self.ready)? {
            Progress::Nothing => {}
            Progress::Piece => self.deadline = Deadline::after(self.opening.between_tokens),
            Progress::Finished => {
                self.finished = true;
                self.deadline = Deadline::after(self.opening.between_tokens.min(FAREWELL));
            }
        }
        Ok(())
    }

    fn on_end(&mut self) -> Result<(), Fault> {
        match (self.finished, self.saw_event) {
            (true, _) => self.close(),
            (false, true) => {
                Err(Fault::BrokeOff("the connection ended in the middle of the answer".to_owned()))
            }
            (false, false) => Err(Fault::Garbage("an event stream without an event".to_owned())),
        }
    }

    fn close(&mut self) -> Result<(), Fault> {
        self.closed = true;
        self.ready.push_back(LlmEvent::Done);
        Ok(())
    }
}

async fn answer(post: RequestBuilder, opening: &Opening) -> Result<Response, Fault> {
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
