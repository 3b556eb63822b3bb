//! A tool that makes one HTTP request: the input as JSON, the idempotency key as a header.

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::redirect;
use reqwest::{Client, Response, StatusCode, Url};
use sayback_runtime::agent::{Handler, RunContext, RunError, ToolOutput};
use serde_json::Value;

use super::{BEYOND_LIMIT, MAX_ANSWER, answer, tells_outcome, too_late};

/// How often a server may redirect, within its own host.
const MAX_REDIRECTS: usize = 3;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    pub(crate) url: Url,
    pub(crate) method: Method,
    pub(crate) headers: Vec<(String, Header)>,
    pub(crate) limit: Duration,
}

/// How the input is sent: `GET` puts it into the query, the others into the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// A header's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// As written in the file.
    Text(String),
    /// From the environment when the tool runs, behind a prefix such as `Bearer `.
    Env { name: String, prefix: String },
}

#[async_trait]
impl Handler for Http {
    async fn run(&self, input: Value, context: RunContext) -> Result<ToolOutput, RunError> {
        let exchange = self.exchange(&input, &context.idempotency_key);
        match tokio::time::timeout(self.limit + BEYOND_LIMIT, exchange).await {
            Ok(result) => result,
            Err(_) => Err(too_late("the service", self.limit)),
        }
    }
}

impl Http {
    async fn exchange(&self, input: &Value, key: &str) -> Result<ToolOutput, RunError> {
        let mut url = self.url.clone();
        if self.method == Method::Get {
            add_query(&mut url, input);
        }
        let mut request = client()?.request(self.method.into(), url).header("Idempotency-Key", key);
        for (name, value) in &self.headers {
            request = request.header(name, value.resolve()?);
        }
        if self.method != Method::Get {
            request = request.json(input);
        }
        let response = request.send().await.map_err(|error| self.failure(&error))?;
        let status = response.status();
        if status.is_redirection() {
            return Err(self.redirected(status));
        }
        let body = self.body(response).await.or_else(|error| {
            // That it failed was said before the answer broke off.
            if refuses(status) { Ok(String::new()) } else { Err(error) }
        })?;
        if forwards(status) && !tells_outcome(&body) {
            let what = format!("what is behind {} did not answer (status {})", self.host(), status.as_u16());
            return Err(RunError::Unknown(what));
        }
        let mut output = answer(&body, status.is_success());
        if !status.is_success() && body.is_empty() {
            output.message = format!("The service answered with status {}.", status.as_u16());
        }
        Ok(output)
    }

    async fn body(&self, mut response: Response) -> Result<String, RunError> {
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.failure(&error))? {
            body.extend_from_slice(&piece);
            if body.len() > MAX_ANSWER {
                return Err(RunError::Unknown("the service answered with more than 64 KiB".to_owned()));
            }
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    fn host(&self) -> &str {
        self.url.host_str().unwrap_or("the service")
    }

    /// Without the query, which may hold what the caller said.
    fn failure(&self, error: &reqwest::Error) -> RunError {
        let host = self.host();
        if error.is_connect() {
            return RunError::Failed(format!("{host} cannot be reached; nothing was done."));
        }
        if error.is_builder() {
            return RunError::Failed("The request cannot be put together; nothing was done.".to_owned());
        }
        RunError::Unknown(format!("the exchange with {host} broke off"))
    }

    /// A server that sends elsewhere for the answer may have done what was asked; one that sends the request itself
    /// elsewhere has not.
    fn redirected(&self, status: StatusCode) -> RunError {
        let why = "redirects to another host, which is not followed";
        let again = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT].contains(&status);
        if again || self.method == Method::Get {
            RunError::Failed(format!("The service {why}."))
        } else {
            RunError::Unknown(format!("{} {why}", self.host()))
        }
    }
}

fn refuses(status: StatusCode) -> bool {
    !status.is_success() && !forwards(status)
}

/// A gateway says this of a server behind it: what that one did it does not know either.
fn forwards(status: StatusCode) -> bool {
    [StatusCode::BAD_GATEWAY, StatusCode::GATEWAY_TIMEOUT].contains(&status)
}

impl Header {
    pub(super) fn resolve(&self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Env { name, prefix } => std::env::var(name)
                .map(|value| format!("{prefix}{value}"))
                .map_err(|_| format!("The environment variable {name} is not set; nothing was done.")),
        }
    }
}

impl From<Method> for reqwest::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Get => Self::GET,
            Method::Post => Self::POST,
            Method::Put => Self::PUT,
            Method::Patch => Self::PATCH,
            Method::Delete => Self::DELETE,
        }
    }
}

fn add_query(url: &mut Url, input: &Value) {
    let Some(fields) = input.as_object().filter(|fields| !fields.is_empty()) else { return };
    let mut query = url.query_pairs_mut();
    for (name, value) in fields {
        match value {
            Value::String(text) => query.append_pair(name, text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                query.append_pair(name, &value.to_string())
            }
        };
    }
}

/// One client for all tools, so that connections are kept.
pub(super) fn client() -> Result<Client, String> {
    static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();
    CLIENT.get_or_init(build_client).clone()
}

fn build_client() -> Result<Client, String> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // A loss of the race means that another one is installed, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    let same_place = redirect::Policy::custom(|attempt| {
        let (to, from) = (attempt.url(), attempt.previous().last());
        let stays = from.is_some_and(|from| from.origin() == to.origin());
        if stays && attempt.previous().len() <= MAX_REDIRECTS { attempt.follow() } else { attempt.stop() }
    });
    Client::builder()
        .redirect(same_place)
        .connect_timeout(Duration::from_secs(5))
        .user_agent("sayback")
        .build()
        .map_err(|error| format!("HTTP is not available: {error}"))
}

#[cfg(test)]
mod tests;
