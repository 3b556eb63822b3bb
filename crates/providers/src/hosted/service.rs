//! What a speech service is asked for, the same for all vendors.

use std::time::Duration;

use reqwest::header::HeaderValue;

use super::{AddressError, ApiKey};

/// A speech service: where it is, what it is asked for, and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its root, up to and including the version where there is one: `https://api.deepgram.com/v1`.
    pub base_url: String,
    /// The model's name as the vendor knows it.
    pub model: String,
    /// The voice's name or id as the vendor knows it; of no meaning to recognisers.
    pub voice: String,
    /// The language spoken, as a BCP 47 tag: `en`, `pt-BR`.
    pub language: String,
    /// The key.
    pub key: Option<ApiKey>,
    /// How long it may take.
    pub limits: Limits,
}

/// How long a speech service may take: silence on a line is noticed after a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest wait for a connection.
    pub connect: Duration,
    /// Longest wait for the first sound of an utterance, or for the words of sound that was handed over.
    pub first: Duration,
    /// Longest wait between two pieces of sound.
    pub between: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            first: Duration::from_secs(3),
            between: Duration::from_secs(3),
        }
    }
}

impl Service {
    /// The key as a header of that name, behind that scheme.
    pub(crate) fn key_header(
        &self,
        name: &'static str,
        scheme: &str,
    ) -> Result<Option<(&'static str, HeaderValue)>, AddressError> {
        let value = self.key.as_ref().map(|key| key.header(scheme)).transpose()?;
        Ok(value.map(|value| (name, value)))
    }

    /// `de` of `de-CH`: most vendors know languages only.
    pub(crate) fn base_language(&self) -> &str {
        self.language.split('-').next().unwrap_or(&self.language)
    }
}
