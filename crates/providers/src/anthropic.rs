//! Anthropic's Messages API.
//!
//! One `POST {base_url}/messages` per step, answered as server-sent events. Dropping the stream closes the connection.
//! A tool call is delivered once the whole answer is there: one that the token limit cut is not a call.
//!
//! Absent on purpose: images, extended thinking (a thought that arrives is passed over), prompt caching, batches,
//! retries.

mod read;
mod wire;

use std::fmt;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Url};
use sayback_runtime::llm::{Llm, LlmError, LlmRequest, LlmStream};

use crate::hosted::step::{BETWEEN_TOKENS, FIRST_TOKEN, Opening, Step};
use crate::hosted::{Address, AddressError, ApiKey, http_client};

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
        Ok(Self { client, url, key_header, config })
    }
}

#[async_trait::async_trait]
impl Llm for Anthropic {
    fn name(&self) -> String {
        format!("anthropic/{}", self.config.model)
    }

    async fn stream(&self, request: LlmRequest) -> Result<LlmStream, LlmError> {
        let opening = Opening {
            first_token: request.first_token.unwrap_or(FIRST_TOKEN),
            between_tokens: request.between_tokens.unwrap_or(BETWEEN_TOKENS),
            key: self.config.key.clone(),
            url: self.url.to_string(),
        };
        let mut post = self
            .client
            .post(self.url.clone())
            .header(ACCEPT, "text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .header("anthropic-version", VERSION)
            .body(wire::body(&request, &self.config.model).to_string());
        if let Some(key) = &self.key_header {
            post = post.header("x-api-key", key.clone());
        }
        let dialect = Box::new(Blocks::new(self.config.key.clone()));
        Ok(Step::open(post, opening, dialect).await?.into_stream())
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
