//! Any server that speaks the OpenAI chat API: OpenAI, Ollama, vLLM, llama.cpp.
//!
//! One `POST {base_url}/chat/completions` per step, answered as server-sent events. Dropping the stream closes the
//! connection, which is how every such server learns that nobody listens any more. There is no retry here: whoever
//! asked knows what silence on the line costs, a provider does not.
//!
//! Absent on purpose: images, audio, several choices, log-probabilities, the Responses API.

mod assemble;
mod refusal;
mod step;
mod wire;

use std::fmt;
use std::time::Duration;

use reqwest::{Client, Url};
use sayback_runtime::llm::{Llm, LlmError, LlmRequest, LlmStream};

use step::{Opening, Step};

/// Longest wait for the first piece where the request names none.
const FIRST_TOKEN: Duration = Duration::from_secs(15);
/// Longest wait between two pieces where the request names none.
const BETWEEN_TOKENS: Duration = Duration::from_secs(10);

/// Makes ring the TLS provider of this process; call it first thing in `main`.
///
/// Two TLS providers in one process end it at the first connection, so one is chosen before anybody connects.
/// A second call does nothing.
pub fn install_crypto() {
    // An error says that a provider is installed already, and that is all that is wanted.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A key that is sent and never shown: `Debug` hides it, and servers' messages are cleared of it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes the key as it stands in the environment; surrounding white space goes.
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(key.as_ref().trim().to_owned())
    }

    /// `text` without the key: servers like to repeat what they were sent.
    fn cleared_from(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "[key]") }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey([hidden])")
    }
}

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

/// Why there can be no client for such a configuration.
#[derive(Debug, thiserror::Error)]
pub enum OpenAiConfigError {
    /// The address is not one.
    #[error("base_url {url:?} is not an http or https address: {reason}")]
    BaseUrl {
        /// As written.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The key holds letters that no header may carry.
    #[error("the key cannot be sent: it holds characters that a header may not carry; was it copied whole?")]
    Key,
    /// The HTTP client cannot be made.
    #[error("cannot set up HTTP: {0}")]
    Http(#[source] reqwest::Error),
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
        // The client is built on the process's TLS provider and panics where there is none.
        install_crypto();
        let url = chat_url(&config.base_url)?;
        let authorization = config.key.as_ref().map(bearer).transpose()?;
        let mut builder = Client::builder()
            .connect_timeout(config.connect_timeout)
            .tcp_nodelay(true)
            // A redirected POST would carry the key to another host.
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(OpenAiConfigError::Http)?;
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
            // Ids that a server leaves out are made from the length of the conversation: no two steps share one.
            id_stem: format!("call_{}", request.messages.len()),
            key: self.config.key.clone(),
            url: self.url.to_string(),
        };
        Ok(Step::open(self.post(&request), opening).await?.into_stream())
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

fn chat_url(base_url: &str) -> Result<Url, OpenAiConfigError> {
    let wrong = |reason: String| OpenAiConfigError::BaseUrl { url: base_url.to_owned(), reason };
    let url = Url::parse(base_url.trim()).map_err(|error| wrong(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(wrong("it must begin with http:// or https:// and name a host".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // The address stands in logs and errors.
        return Err(OpenAiConfigError::BaseUrl {
            url: format!("{}://…@{}", url.scheme(), url.host_str().unwrap_or_default()),
            reason: "credentials do not belong into an address; name them in api_key_env".to_owned(),
        });
    }
    let mut chat = url;
    let path = format!("{}/chat/completions", chat.path().trim_end_matches('/'));
    chat.set_path(&path);
    Ok(chat)
}

fn bearer(key: &ApiKey) -> Result<reqwest::header::HeaderValue, OpenAiConfigError> {
    let mut value = reqwest::header::HeaderValue::from_str(&format!("Bearer {}", key.0))
        .map_err(|_| OpenAiConfigError::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Nothing on this machine is reached through a proxy.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_appended_to_the_base_url_with_and_without_a_slash() {
        for base in ["http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/"] {
            assert_eq!(chat_url(base).unwrap().as_str(), "http://127.0.0.1:8080/v1/chat/completions");
        }
        let with_query = chat_url("https://host/openai/v1?api-version=2").unwrap();
        assert_eq!(with_query.as_str(), "https://host/openai/v1/chat/completions?api-version=2");
    }

    #[test]
    fn addresses_that_are_none_are_refused_in_words() {
        for base in ["", "localhost:8080", "ftp://host/v1", "http://", "host/v1"] {
            let error = OpenAi::new(OpenAiConfig::new(base, "m")).unwrap_err();
            assert!(error.to_string().contains("base_url"), "{base:?}: {error}");
        }
    }

    #[test]
    fn credentials_in_the_address_are_refused_and_not_repeated() {
        let error = OpenAi::new(OpenAiConfig::new("https://me:s3cret@host/v1", "m")).unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
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

    #[test]
    fn only_this_machine_is_loopback() {
        let loopback = |address: &str| is_loopback(&Url::parse(address).unwrap());
        assert!(
            loopback("http://127.0.0.1:1/") && loopback("http://[::1]:1/") && loopback("http://localhost/")
        );
        assert!(!loopback("http://10.0.0.1/") && !loopback("https://localhost.example.com/"));
    }
}
