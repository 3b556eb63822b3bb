//! Spans to a collector, over OTLP.
//!
//! Spans wait in a bounded queue and are sent by a task of the server's own: a collector that is slow or away holds no
//! call up. What does not fit is lost and counted.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, Span, SpanData, SpanExporter as _, SpanProcessor, Tracer};
use sayback_server::webhook::shown;
use serde::Deserialize;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Interval;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

use crate::exit::Stop;

/// Spans that wait to be sent; more are lost.
const QUEUE: usize = 4_096;
/// Spans that are sent at once.
const AT_ONCE: usize = 512;
/// How long a span waits for others to be sent with.
const GATHERED: Duration = Duration::from_secs(1);
/// How long a collector may take for one batch.
const LIMIT: Duration = Duration::from_secs(10);
/// How often a batch is sent before it is lost: a connection that breaks once costs no span.
const TRIES: u32 = 3;

static LOST: AtomicU64 = AtomicU64::new(0);
static WAITING: AtomicU64 = AtomicU64::new(0);

/// `[telemetry]` as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TelemetrySettings {
    /// Where the collector takes OTLP over HTTP: `http://127.0.0.1:4318`.
    pub(crate) otlp: String,
}

/// What sends spans, once somebody runs it.
#[derive(Debug)]
pub(crate) struct Sending {
    spans: Receiver<SpanData>,
    exporter: SpanExporter,
    endpoint: String,
    /// Keeps the tracer alive.
    _provider: SdkTracerProvider,
}

/// The layer of a log that makes spans, and what sends them.
pub(crate) fn layer<S>(otlp: &str) -> Result<(impl Layer<S> + Send + Sync, Sending), Stop>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let (tracer, sending) = tracer(otlp)?;
    let ours = Targets::new().with_target("sayback", LevelFilter::INFO);
    let layer = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false);
    Ok((layer.with_filter(ours), sending))
}

fn tracer(otlp: &str) -> Result<(Tracer, Sending), Stop> {
    let endpoint = endpoint(otlp);
    let refused = |error: &dyn std::fmt::Display| {
        Stop::unusable(format!(
            "[telemetry] otlp cannot be used: {error}\n  hint: write the collector's address: \
             http://127.0.0.1:4318"
        ))
    };
    // The same client as for everything else, so that an address of this machine is asked without a proxy.
    let client = sayback_providers::hosted::client_for(&endpoint, LIMIT).map_err(|error| refused(&error))?;
    let builder =
        SpanExporter::builder().with_http().with_http_client(client).with_protocol(Protocol::HttpBinary);
    let built = builder.with_endpoint(&endpoint).with_timeout(LIMIT).build();
    let mut exporter = built.map_err(|error| refused(&error))?;
    let resource = Resource::builder().with_service_name("sayback").build();
    exporter.set_resource(&resource);
    let (sender, spans) = channel(QUEUE);
    let provider =
        SdkTracerProvider::builder().with_resource(resource).with_span_processor(Waiting(sender)).build();
    let tracer = provider.tracer("sayback");
    Ok((tracer, Sending { spans, exporter, endpoint, _provider: provider }))
}

/// A collector is named by its address alone; the path is the protocol's.
fn endpoint(otlp: &str) -> String {
    let base = otlp.trim_end_matches('/');
    if base.ends_with("/v1/traces") { base.to_owned() } else { format!("{base}/v1/traces") }
}

/// Takes spans that are over, and never waits.
#[derive(Debug)]
struct Waiting(Sender<SpanData>);

impl SpanProcessor for Waiting {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        WAITING.fetch_add(1, Ordering::Relaxed);
        if self.0.try_send(span).is_err() {
            WAITING.fetch_sub(1, Ordering::Relaxed);
            LOST.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _limit: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl Sending {
    /// Sends spans for as long as there are any to come.
    pub(crate) async fn run(mut self) {
        let mut away = false;
        let mut batch = Vec::with_capacity(AT_ONCE);
        let mut beat = tokio::time::interval(GATHERED);
        while self.spans.recv_many(&mut batch, AT_ONCE).await > 0 {
            let spans = std::mem::replace(&mut batch, Vec::with_capacity(AT_ONCE));
            let count = u64::try_from(spans.len()).unwrap_or(u64::MAX);
            match self.send(&spans, if away { 1 } else { TRIES }, &mut beat).await {
                Ok(()) => away = false,
                Err(error) => {
                    LOST.fetch_add(count, Ordering::Relaxed);
                    // Said once, not every second.
                    if !std::mem::replace(&mut away, true) {
                        tracing::warn!("spans cannot be sent to {}: {error}", shown(&self.endpoint));
                    }
                }
            }
            WAITING.fetch_sub(count, Ordering::Relaxed);
            beat.tick().await;
        }
    }

    /// Sends a batch, once more for each failure while there are tries.
    async fn send(&mut self, spans: &[SpanData], tries: u32, beat: &mut Interval) -> OTelSdkResult {
        let mut sent = self.exporter.export(spans.to_vec()).await;
        for _ in 1..tries {
            if sent.is_ok() {
                break;
            }
            beat.tick().await;
            sent = self.exporter.export(spans.to_vec()).await;
        }
        sent
    }
}

/// Waits until everything has been sent, for a while: a collector that is away does not keep a server from ending.
pub(crate) async fn flushed() {
    let all = async {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        while WAITING.load(Ordering::Relaxed) > 0 {
            look.tick().await;
        }
    };
    if tokio::time::timeout(Duration::from_secs(2), all).await.is_err() {
        tracing::warn!("some spans were not sent");
    }
}

/// Spans that never reached a collector.
pub(crate) fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// What a server's file says of telemetry, before anything else of it is read: the log begins before that. A file that
/// is not right is told by whoever reads it whole.
pub(crate) fn wanted(path: &Path) -> Option<TelemetrySettings> {
    let text = std::fs::read_to_string(path).ok()?;
    let table: toml::Table = text.parse().ok()?;
    table.get("telemetry")?.clone().try_into().ok()
}
