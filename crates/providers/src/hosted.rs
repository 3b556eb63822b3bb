//! What the clients of hosted services have in common: keys, addresses, failures, and threads that wait for sockets.
//!
//! Vendors differ in their words, not in what can go wrong. So each failure is a `Fault` first and becomes the error
//! of a trait at the trait's edge; and nothing that a server says is passed on before the key is taken out of it.

mod address;
mod fault;
mod io;
mod key;
mod refusal;
mod service;
#[cfg(feature = "socket")]
pub(crate) mod socket;
#[cfg(any(feature = "openai", feature = "anthropic"))]
pub(crate) mod step;

pub use address::AddressError;
pub use key::ApiKey;
pub use service::{Limits, Service};

pub(crate) use address::{Address, http_client};
pub(crate) use fault::Fault;
pub(crate) use io::{Deadline, spawn, wait};
pub(crate) use refusal::{beginning, causes, cleared, from_status, refused, unsent};
#[cfg(any(feature = "openai", feature = "anthropic"))]
pub(crate) use refusal::{in_stream, no_event_stream};

/// A client for whoever else asks this address over HTTP: the process's TLS provider, no redirects, and no proxy to this
/// machine itself.
///
/// # Errors
///
/// What is no address over HTTP is refused with what is wrong with it.
pub fn client_for(
    base_url: &str,
    connect_within: std::time::Duration,
) -> Result<reqwest::Client, AddressError> {
    http_client(&Address::http(base_url)?, connect_within)
}

/// Makes ring the TLS provider of this process; call it first thing in `main`.
///
/// Two TLS providers in one process end it at the first connection, so one is chosen before anybody connects.
/// A second call does nothing.
pub fn install_crypto() {
    // An error says that a provider is installed already, and that is all that is wanted.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
