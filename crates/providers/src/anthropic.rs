//! Anthropic's Messages API.
//!
//! One `POST {base_url}/messages` per step, answered as server-sent events. Dropping the stream closes the connection.
//! A tool call is delivered once the whole answer is there: one that the token limit cut is not a call.
//!
//! Absent on purpose: images, extended thinking (a thought that arrives is passed over), prompt caching, batches,
//! retries. One request is put again: where the model refuses a temperature, it is asked without from then on.

mod read;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Url};
use sayback_runtime::llm::{Llm, LlmError, LlmRequest, LlmStream};

use crate::hosted::step::{BETWEEN_TOKENS, FIRST_TOKEN, Opening, Step};
use crate::hosted::{Address, AddressError, ApiKey, Fault, http_client};

use read::Blocks;

/// Where Anthropic itself answers.
pub const BASE_URL: &str = "https://api.anthropic.com/v1";

/// The version of the protocol that is spoken here.
const VERSION: &str = "2023-06-01";

/// Where the server is and what to ask it for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnthropicConfig {
    /// Up to and including the version: `https://api.anthropic.com/v1`.
    pub base_url: String,
    /// The model's name as the server knows it.
    pub model: String,
    /// The key, sent as `x-api-key`.
    pub key: Option<ApiKey>,
    /// Longest wait for the connection.
    pub connect_timeout: Duration,
}

impl AnthropicConfig {
    /// Anthropic itself, a connection within 5 s.
    pub fn new(model: impl Into<String>, key: Option<ApiKey>) -> Self {
        Self {
            base_url: BASE_URL.to_owned(),
            model: model.into(),
            key,
            connect_timeout: Duration::from_secs(5),
        }
    }
}

/// A language model behind the Messages API.
#[derive(Clone)]
pub struct Anthropic {
    client: Client,
    url: Url,
    key_header: Option<HeaderValue>,
    /// The model refuses a temperature, as newer ones do.
    no_temperature: Arc<AtomicBool>,
    config: AnthropicConfig,
}

impl fmt::Debug for Anthropic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Anthropic").field("url", &self.url.as_str()).field("config", &self.config).finish()
    }
}

impl Anthropic {
    /// Checks the configuration and readies a client; connects to nothing.
    pub fn new(config: AnthropicConfig) -> Result<Self, AddressError> {
        let address = Address::http(&config.base_url)?;
        let url = address.join("messages", &[]);
        let key_header = config.key.as_ref().map(|key| key.header("")).transpose()?;
        let client = http_client(&address, config.connect_timeout)?;
        Ok(Self { client, url, key_header, no_temperature: Arc::default(), config })
    }
}

impl Anthropic {
    fn post(&self, request: &LlmRequest) -> reqwest::RequestBuilder {
        let mut body = wire::body(request, &self.config.model);
        if self.no_temperature.load(Ordering::Relaxed)
            && let Some(fields) = body.as_object_mut()
        {
            fields.remove("temperature");
        }
        let mut post = self
            .client
            .post(self.url.clone())
            .header(ACCEPT, "text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .header("anthropic-version", VERSION)
            .body(body.to_string());
        if let Some(key) = &self.key_header {
            post = post.header("x-api-key", key.clone());
        }
        post
    }

    async fn open(&self, request: &LlmRequest) -> Result<Step, Fault> {
        let opening = Opening {
            first_token: request.first_token.unwrap_or(FIRST_TOKEN),
            between_tokens: request.between_tokens.unwrap_or(BETWEEN_TOKENS),
            key: self.config.key.clone(),
            url: self.url.to_string(),
        };
        let dialect = Box::new(Blocks::new(self.config.key.clone()));
        Step::open(self.post(request), opening, dialect).await
    }
}

/// Whether what was refused is the temperature: not the request, but our way to put it.
fn is_about_temperature(fault: &Fault) -> bool {
    matches!(fault, Fault::Refused { status: 400, message } if message.contains("temperature"))
}

#[async_trait::async_trait]
impl Llm for Anthropic {
    fn name(&self) -> String {
        format!("anthropic/{}", self.config.model)
    }

    async fn stream(&self, request: LlmRequest) -> Result<LlmStream, LlmError> {
        match self.open(&request).await {
            Err(fault)
                if is_about_temperature(&fault) && !self.no_temperature.swap(true, Ordering::Relaxed) =>
            {
                Ok(self.open(&request).await?.into_stream())
            }
            opened => Ok(opened?.into_stream()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_the_key() {
        let config = AnthropicConfig::new("m", Some(ApiKey::new("sk-ant-very-secret")));
        let shown = format!("{config:?} {:?}", Anthropic::new(config.clone()).unwrap());
        assert!(!shown.contains("very-secret"), "{shown}");
    }
}
