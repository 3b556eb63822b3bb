//! Keys.

use std::fmt;

use reqwest::header::HeaderValue;

use super::AddressError;

/// A key that is sent and never shown: `Debug` hides it, and servers' messages are cleared of it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes the key as it stands in the environment; surrounding white space goes.
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(key.as_ref().trim().to_owned())
    }

    /// `text` without the key: servers like to repeat what they were sent.
    pub(crate) fn cleared_from(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "[key]") }
    }

    /// The value of a header: `scheme`, then the key. HTTP libraries do not log it.
    pub(crate) fn header(&self, scheme: &str) -> Result<HeaderValue, AddressError> {
        let mut value =
            HeaderValue::from_str(&format!("{scheme}{}", self.0)).map_err(|_| AddressError::Key)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey([hidden])")
    }
}
