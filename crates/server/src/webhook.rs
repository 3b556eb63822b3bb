//! Events sent to other programs, signed, in order, and a bounded number of times.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use sayback_runtime::calls::News;
use sayback_runtime::clock::{Clock, unix_seconds};
use serde_json::json;
use sha2::Sha256;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// How long the other program may take to answer.
const LIMIT: Duration = Duration::from_secs(5);
/// How often an event is sent at most.
const TRIES: u32 = 5;

/// Where events go.
#[derive(Clone)]
pub struct Webhook {
    /// The address that is posted to.
    pub url: String,
    /// Signs what is sent; the other program has it too.
    pub secret: String,
    /// Which events, by name; empty: all.
    pub events: Vec<String>,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("url", &shown(&self.url)).finish_non_exhaustive()
    }
}

/// What came of the events of a webhook.
#[derive(Debug, Default)]
pub struct Delivered {
    sent: AtomicU64,
    lost: AtomicU64,
}

impl Delivered {
    /// Events that were taken.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Events that were given up, or that came faster than they could be sent.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Sends what happens to a webhook until there is nothing more. One event at a time, so they arrive in order; what
/// comes faster than it is taken for a while waits in the switchboard's queue, and is then lost and counted.
pub async fn deliver(hook: Webhook, mut news: Receiver<News>, delivered: Arc<Delivered>) {
    let client = match reqwest::Client::builder()
        .timeout(LIMIT)
        // What is signed for one address is not carried to another.
        .redirect(reqwest::redirect::Policy::none())
        .build()
    {
        Ok(client) => client,
        Err(error) => {
            tracing::error!("the webhook to {} cannot be sent: {error}", shown(&hook.url));
            return;
        }
    };
    loop {
        match news.recv().await {
            Ok(news) => {
                let fields = news.fields();
                let name = fields["event"].as_str().unwrap_or_default();
                if !hook.events.is_empty() && !hook.events.iter().any(|wanted| wanted == name) {
                    continue;
                }
                let taken = send(&client, &hook, &news).await;
                let counter = if taken { &delivered.sent } else { &delivered.lost };
                counter.fetch_add(1, Ordering::Relaxed);
            }
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!("the webhook to {} missed {missed} events: it is too slow", shown(&hook.url));
                delivered.lost.fetch_add(missed, Ordering::Relaxed);
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// An address for people: without a name and a password, and without a query, where keys stand too.
pub fn shown(url: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(url) else { return "an address that is none".to_owned() };
    // What has no host has no name and password either.
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Sends one event until it is taken, refused for good, or given up.
async fn send(client: &reqwest::Client, hook: &Webhook, news: &News) -> bool {
    let body = json!({ "call": &*news.call, "number": news.number, "event": news.fields() }).to_string();
    let clock = Clock::start();
    for attempt in 0..TRIES {
        let at = unix_seconds();
        let request = client
            .post(&hook.url)
            .header("content-type", "application/json")
            .header("sayback-signature", signature(&hook.secret, at, &body))
            .body(body.clone());
        match request.send().await {
            Ok(answer) if answer.status().is_success() => return true,
            // The other program says that it will never take this.
            Ok(answer) if answer.status().is_client_error() && answer.status().as_u16() != 429 => {
                tracing::warn!("the webhook to {} refuses an event: {}", shown(&hook.url), answer.status());
                return false;
            }
            Ok(answer) => tracing::warn!("the webhook to {} answers {}", shown(&hook.url), answer.status()),
            Err(error) => tracing::warn!("the webhook to {}: {}", shown(&hook.url), error.without_url()),
        }
        let again = clock.now() + Duration::from_millis(500 << attempt);
        tokio::time::sleep_until(clock.instant(again).into()).await;
    }
    false
}

/// `t=…,v1=…`: the time and the HMAC-SHA256 of `time.body`, so that an old event cannot be sent again by others.
pub fn signature(secret: &str, at: u64, body: &str) -> String {
    let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.as_bytes()) else {
        // HMAC takes keys of any length.
        return String::new();
    };
    mac.update(format!("{at}.{body}").as_bytes());
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={at},v1={hex}")
}
