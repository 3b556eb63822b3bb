//! Whether a language model answered: a command whose model did not has not done what it was asked to, however well the
//! call went on without it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use sayback_runtime::llm::{Llm, LlmError, LlmMessage, LlmRequest, LlmStream};

use crate::exit::Stop;

/// A language model, and what came of asking it.
#[derive(Debug)]
pub(crate) struct Answered {
    inner: Arc<dyn Llm>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// It said something at least once.
    ever: bool,
    /// Why it did not, where it was asked for the last time.
    failure: Option<LlmError>,
}

impl Seen {
    fn note<T>(&mut self, outcome: &Result<T, LlmError>) {
        match outcome {
            Ok(_) => {
                self.ever = true;
                self.failure = None;
            }
            Err(error) => self.failure = Some(error.clone()),
        }
    }
}

fn open(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Answered {
    pub(crate) fn new(inner: Arc<dyn Llm>) -> Arc<Self> {
        Arc::new(Self { inner, seen: Arc::default() })
    }

    /// How a command ends whose model left the last request without an answer.
    pub(crate) fn at_last(&self) -> Result<(), Stop> {
        let seen = open(&self.seen);
        seen.failure.as_ref().map_or(Ok(()), |error| Err(stop("the last request was not answered", error)))
    }

    /// How a command ends whose model was asked and never answered.
    pub(crate) fn ever(&self) -> Result<(), Stop> {
        let seen = open(&self.seen);
        let failure = seen.failure.as_ref().filter(|_| !seen.ever);
        failure.map_or(Ok(()), |error| Err(stop("no request was answered", error)))
    }
}

fn stop(what: &str, error: &LlmError) -> Stop {
    Stop::missing(format!("{what}: {error}\n  hint: {}", mend(error)))
}

/// What whoever set it up can do about it.
pub(crate) fn mend(error: &LlmError) -> &'static str {
    match error {
        LlmError::Unreachable { .. } => "start that server, or mend `base_url` in [llm]",
        LlmError::Unauthorised(_) => "look at the key in the variable that `api_key_env` in [llm] names",
        LlmError::RateLimited { .. } => "wait, or ask its maker for a higher limit",
        LlmError::Refused { .. } => "look at `base_url` and `model` in [llm]",
        LlmError::Garbage(_) => "look at `base_url` in [llm]: it must speak what `provider` names",
        LlmError::BrokeOff(_) | LlmError::TimedOut(_) => "look at that server's own log",
    }
}

/// Asks a model for a word. A paid one is paid for at most 16 tokens.
///
/// # Errors
/// Why it does not answer.
pub(crate) async fn one_word(model: &dyn Llm, request: LlmRequest) -> Result<(), LlmError> {
    let text = "Say yes.".to_owned();
    let request = LlmRequest { messages: vec![LlmMessage::User { text }], max_tokens: Some(16), ..request };
    let first = model.stream(request).await?.next().await;
    first.unwrap_or_else(|| Err(LlmError::BrokeOff("it said nothing".to_owned()))).map(drop)
}

#[async_trait::async_trait]
impl Llm for Answered {
    fn name(&self) -> String {
        self.inner.name()
    }

    async fn stream(&self, request: LlmRequest) -> Result<LlmStream, LlmError> {
        let begun = self.inner.stream(request).await;
        let stream = match begun {
            Ok(stream) => stream,
            Err(error) => {
                open(&self.seen).failure = Some(error.clone());
                return Err(error);
            }
        };
        let seen = Arc::clone(&self.seen);
        Ok(Box::pin(stream.inspect(move |event| open(&seen).note(event))))
    }

    async fn warm(&self, request: LlmRequest) -> Result<(), LlmError> {
        self.inner.warm(request).await
    }
}
