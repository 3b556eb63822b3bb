//! A language model with its agent file's limits and sampling.

use std::sync::Arc;
use std::time::Duration;

use sayback_agentfile::{AgentFile, LlmProvider, LlmSettings};
use sayback_core::Policy;
use sayback_providers::hosted::Limits;
use sayback_runtime::llm::{Llm, LlmError, LlmRequest, LlmStream};

/// Fills in what a request leaves open.
#[derive(Debug)]
pub(crate) struct Tuned {
    pub(crate) inner: Arc<dyn Llm>,
    first_token: Duration,
    between_tokens: Duration,
    temperature: Option<f32>,
    max_tokens: Option<u32>,
}

/// A model beside us on a busy machine reads a long prompt for this long.
const LOCAL_FIRST_TOKEN: Duration = Duration::from_secs(90);
/// The check on it, its prompt kept warm.
const LOCAL_CHECK: Duration = Duration::from_secs(8);

impl Tuned {
    pub(crate) fn new(inner: Arc<dyn Llm>, settings: &LlmSettings) -> Self {
        Self {
            inner,
            first_token: first_token(settings),
            between_tokens: settings.between_tokens,
            temperature: settings.temperature,
            max_tokens: settings.max_tokens,
        }
    }

    fn filled(&self, mut request: LlmRequest) -> LlmRequest {
        request.first_token.get_or_insert(self.first_token);
        request.between_tokens.get_or_insert(self.between_tokens);
        request.temperature = request.temperature.or(self.temperature);
        request.max_tokens = request.max_tokens.or(self.max_tokens);
        request
    }
}

fn first_token(settings: &LlmSettings) -> Duration {
    match settings.provider {
        LlmProvider::Local => settings.first_token.max(LOCAL_FIRST_TOKEN),
        LlmProvider::OpenAi | LlmProvider::Anthropic | LlmProvider::Scripted => settings.first_token,
    }
}

/// The core waits longer than the client, so that the client's own, better worded error comes first; a local model gets
/// the time for its check that a processor without an accelerator needs; and a second engine gets time of its own.
pub(crate) fn fit_limits(file: &mut AgentFile) {
    let policy = &mut file.agent.policy;
    let longest = file.llm.fallback.as_ref().map_or_else(
        || first_token(&file.llm),
        |fallback| fallback.after.max(first_token(&file.llm)) + first_token(&fallback.engine),
    );
    policy.turn.model_limit = policy.turn.model_limit.max(longest + Duration::from_secs(5));
    if file.llm.may_be_local() {
        policy.confirm.check_limit = policy.confirm.check_limit.max(LOCAL_CHECK);
    }
    if let Some(fallback) = &file.stt.fallback {
        let both = fallback.after + Limits::default().first + Duration::from_millis(500);
        policy.turn.transcript_limit = policy.turn.transcript_limit.max(both);
    }
}

/// Where time is virtual a call waits for a local model's check, however busy the machine is: nobody hears the wait.
pub(crate) fn wait_for_the_model(policy: &mut Policy) {
    policy.confirm.check_limit = policy.confirm.check_limit.max(LOCAL_FIRST_TOKEN);
}

#[async_trait::async_trait]
impl Llm for Tuned {
    fn name(&self) -> String {
        self.inner.name()
    }

    async fn stream(&self, request: LlmRequest) -> Result<LlmStream, LlmError> {
        self.inner.stream(self.filled(request)).await
    }

    async fn warm(&self, request: LlmRequest) -> Result<(), LlmError> {
        self.inner.warm(self.filled(request)).await
    }
}
