//! Hosted vendors, each against a server of the test's own that speaks the vendor's documented protocol, with its faults.
//! One suite for each trait, run over every vendor.

#![cfg(all(feature = "hosted", feature = "failover"))]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test, and says where")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a fake server does one thing for each of many")]
#![expect(clippy::result_large_err, reason = "the refusal of an upgrade is the library's own type")]

mod anthropic;
mod call;
mod ears;
mod failover;
#[path = "../openai/server.rs"]
mod http;
mod stt;
mod tts;

use std::time::Duration;

use sayback_providers::hosted::{ApiKey, Limits, Service};

/// Longer than any healthy answer on this machine takes.
const AMPLE: Duration = Duration::from_secs(20);
/// Short enough not to be waited for.
const SHORT: Duration = Duration::from_millis(150);
/// A key that must never be seen again.
const KEY: &str = "sk-secret-7";

fn service(base_url: &str) -> Service {
    Service {
        base_url: base_url.to_owned(),
        model: "a-model".to_owned(),
        voice: "a voice/1".to_owned(),
        language: "en".to_owned(),
        key: Some(ApiKey::new(KEY)),
        limits: Limits { connect: AMPLE, first: AMPLE, between: AMPLE },
    }
}

fn hurried(base_url: &str) -> Service {
    Service { limits: Limits { connect: AMPLE, first: SHORT, between: SHORT }, ..service(base_url) }
}
