//! Any server that speaks the OpenAI chat API: OpenAI, Ollama, vLLM, llama.cpp.
//!
//! One `POST {base_url}/chat/completions` per step, answered as server-sent events. Dropping the stream closes the
//! connection, which is how every such server learns that nobody listens any more. There is no retry here: whoever
//! asked knows what silence on the line costs, a provider does not.
//!
//! Absent on purpose: images, audio, several choices, log-probabilities, the Responses API.

mod assemble;
mod read;
mod wire;

use std::fmt;
use std::time::Duration;

use reqwest::{Client, Url};
use sayback_runtime::llm::{Llm, LlmError, LlmRequest, LlmStream};

use crate::hosted::step::{BETWEEN_TOKENS, FIRST_TOKEN, Opening, Step};
use crate::hosted::{Address, http_client};

pub use crate::hosted::{AddressError as OpenAiConfigError, ApiKey, install_crypto};

use read::Chunks;

/// Where the server is and what to ask it for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenAiConfig {
    /// First half of the name in logs and evidence: `openai`, `local`.
    pub provider: String,
    /// Up to and including the version: `https://api.openai.com/v1`, `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    /// The model's name as the server knows it.
    pub model: String,
    /// The key, for servers that ask for one.
    pub key: Option<ApiKey>,
    /// Longest wait for the connection.
    pub connect_timeout: Duration,
    /// Send the words of [`LlmRequest::one_of`] as `choices`, a field that only our own local server understands.
    pub choices_field: bool,
}

impl OpenAiConfig {
    /// A server without a key, a connection within 5 s, nothing non-standard.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            provider: "openai".to_owned(),
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            connect_timeout: Duration::from_secs(5),
            choices_field: false,
        }
    }
}

/// A language model behind the OpenAI chat API.
#[derive(Clone)]
pub struct OpenAi {
    client: Client,
    url: Url,
    authorization: Option<reqwest::header::HeaderValue>,
    config: OpenAiConfig,
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi").field("url", &self.url.as_str()).field("config", &self.config).finish()
    }
}

impl OpenAi {
    /// Checks the configuration and readies a client; connects to nothing.
    pub fn new(config: OpenAiConfig) -> Result<Self, OpenAiConfigError> {
        let address = Address::http(&config.base_url)?;
        let url = address.join("chat/completions", &[]);
        let authorization = config.key.as_ref().map(|key| key.header("Bearer ")).transpose()?;
        let client = http_client(&address, config.connect_timeout)?;
        Ok(Self { client, url, authorization, config })
    }

    /// The configuration as given.
    pub fn config(&self) -> &OpenAiConfig {
        &self.config
    }

    fn post(&self, request: &LlmRequest) -> reqwest::RequestBuilder {
        let body = wire::body(request, &self.config, wire::limit_field(&self.url));
        let mut post = self
            .client
            .post(self.url.clone())
            .header(reqwest::header::ACCEPT, "text/event-stream")
            .header(reqwest::header::CONTENT_TYPE, "application/json")
            .body(body.to_string());
        if let Some(authorization) = &self.authorization {
            post = post.header(reqwest::header::AUTHORIZATION, authorization.clone());
        }
        post
    }
}

#[async_trait::async_trait]
impl Llm for OpenAi {
    fn name(&self) -> String {
        format!("{}/{}", self.config.provider, self.config.model)
    }

    async fn stream(&self, request: LlmRequest) -> Result<LlmStream, LlmError> {
        let opening = Opening {
            first_token: request.first_token.unwrap_or(FIRST_TOKEN),
            between_tokens: request.between_tokens.unwrap_or(BETWEEN_TOKENS),
            key: self.config.key.clone(),
            url: self.url.to_string(),
        };
        // Ids that a server leaves out are made from the length of the conversation: no two steps share one.
        let id_stem = format!("call_{}", request.messages.len());
        let dialect = Box::new(Chunks::new(id_stem, self.config.key.clone()));
        Ok(Step::open(self.post(&request), opening, dialect).await?.into_stream())
    }

    /// Has our own local server read the beginning of the conversation; a paid server is left alone.
    async fn warm(&self, request: LlmRequest) -> Result<(), LlmError> {
        if !self.config.choices_field {
            return Ok(());
        }
        let mut answer = self.stream(LlmRequest { max_tokens: Some(1), ..request }).await?;
        while let Some(event) = futures::StreamExt::next(&mut answer).await {
            event?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_none_are_refused_in_words() {
        for base in ["", "localhost:8080", "ftp://host/v1", "http://", "host/v1"] {
            let error = OpenAi::new(OpenAiConfig::new(base, "m")).unwrap_err();
            assert!(error.to_string().contains("base_url"), "{base:?}: {error}");
        }
    }

    #[test]
    fn debug_hides_the_key() {
        let mut config = OpenAiConfig::new("http://127.0.0.1:1/v1", "m");
        config.key = Some(ApiKey::new(" sk-very-secret\n"));
        let shown = format!("{config:?} {:?}", OpenAi::new(config.clone()).unwrap());
        assert!(!shown.contains("very-secret"), "{shown}");
        assert!(shown.contains("[hidden]"), "{shown}");
    }

    #[test]
    fn a_key_that_no_header_can_carry_is_refused() {
        let mut config = OpenAiConfig::new("http://127.0.0.1:1/v1", "m");
        config.key = Some(ApiKey::new("sk-\u{1}\nx"));
        assert!(matches!(OpenAi::new(config), Err(OpenAiConfigError::Key)));
    }
}
