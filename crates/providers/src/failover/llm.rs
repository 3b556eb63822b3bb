//! Language models.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use sayback_runtime::llm::{Llm, LlmError, LlmRequest, LlmStream};

use super::Ring;

/// Language models that stand in for each other.
#[derive(Debug)]
pub struct FailoverLlm {
    ring: Ring<Arc<dyn Llm>>,
    after: Duration,
}

impl FailoverLlm {
    /// `after`: how long all but the last may take for their first piece. Where a request has less time than that, half
    /// of it, so that the next one has some too.
    pub fn new(first: Arc<dyn Llm>, others: Vec<Arc<dyn Llm>>, after: Duration) -> Self {
        Self { ring: Ring::new(first, others), after }
    }

    fn hurried(&self, request: &LlmRequest) -> LlmRequest {
        let given = request.first_token.map_or(self.after, |limit| limit / 2);
        LlmRequest { first_token: Some(self.after.min(given)), ..request.clone() }
    }
}

/// The stream from its first piece on; an error before it is the caller's to act on.
async fn begun(llm: &Arc<dyn Llm>, request: LlmRequest) -> Result<LlmStream, LlmError> {
    let mut stream = llm.stream(request).await?;
    match stream.next().await {
        Some(Ok(first)) => Ok(Box::pin(futures::stream::once(async { Ok(first) }).chain(stream))),
        Some(Err(error)) => Err(error),
        None => Err(LlmError::BrokeOff("an answer without an end".to_owned())),
    }
}

#[async_trait::async_trait]
impl Llm for FailoverLlm {
    fn name(&self) -> String {
        self.ring.names(|llm| llm.name())
    }

    async fn stream(&self, request: LlmRequest) -> Result<LlmStream, LlmError> {
        let all = self.ring.engines.len();
        let mut failed = LlmError::BrokeOff("there is no language model".to_owned());
        for (nth, (at, llm)) in self.ring.round().enumerate() {
            let is_last = nth + 1 == all;
            let asked = if is_last { request.clone() } else { self.hurried(&request) };
            match begun(llm, asked).await {
                Ok(stream) => {
                    self.ring.works(at);
                    return Ok(stream);
                }
                Err(error) => {
                    tracing::warn!("{}: {error}", llm.name());
                    failed = error;
                }
            }
        }
        Err(failed)
    }

    /// Warms all: one that has to read its prompts first is of little use when it is suddenly asked.
    async fn warm(&self, request: LlmRequest) -> Result<(), LlmError> {
        let mut warmed = Ok(());
        for (_, llm) in self.ring.round() {
            warmed = warmed.and(llm.warm(request.clone()).await);
        }
        warmed
    }
}
