//! What can go wrong with a service, before it is the error of a trait.

use std::time::Duration;

#[cfg(any(feature = "openai", feature = "anthropic"))]
use sayback_runtime::llm::LlmError;
use sayback_runtime::stt::SttError;
use sayback_runtime::tts::TtsError;

/// A failure of a hosted service. Its words are cleared of the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// Nothing answers there.
    #[error("cannot be reached at {url}: {reason}")]
    Unreachable { url: String, reason: String },
    /// The key is missing or refused.
    #[error("refused the key: {0}")]
    Unauthorised(String),
    /// Too many requests.
    #[error("is rate-limited{}", retry_after.map(|d| format!(", retry in {} s", d.as_secs())).unwrap_or_default())]
    RateLimited { retry_after: Option<Duration> },
    /// The request was refused.
    #[error("refused the request ({status}): {message}")]
    Refused { status: u16, message: String },
    /// The answer makes no sense.
    #[error("answered rubbish: {0}")]
    Garbage(String),
    /// It broke off.
    #[error("broke off: {0}")]
    BrokeOff(String),
    /// It took too long.
    #[error("was silent for {} ms", .0.as_millis())]
    TimedOut(Duration),
}

impl Fault {
    /// As the error of a recogniser.
    pub(crate) fn stt(&self, vendor: &str) -> SttError {
        let words = format!("{vendor} {self}");
        if matches!(self, Self::TimedOut(_)) { SttError::Slow(words) } else { SttError::Failed(words) }
    }

    /// As the error of a voice.
    pub(crate) fn tts(&self, vendor: &str) -> TtsError {
        TtsError::Failed(format!("{vendor} {self}"))
    }
}

#[cfg(any(feature = "openai", feature = "anthropic"))]
impl From<Fault> for LlmError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unreachable { url, reason } => Self::Unreachable { url, reason },
            Fault::Unauthorised(words) => Self::Unauthorised(words),
            Fault::RateLimited { retry_after } => Self::RateLimited { retry_after },
            Fault::Refused { status, message } => Self::Refused { status, message },
            Fault::Garbage(why) => Self::Garbage(why),
            Fault::BrokeOff(why) => Self::BrokeOff(why),
            Fault::TimedOut(limit) => Self::TimedOut(limit),
        }
    }
}
