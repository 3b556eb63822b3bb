//! Figures for Prometheus, in its text format.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;

use crate::{Api, Problem};

/// A figure of another part of the server, asked for when it is shown.
#[derive(Clone)]
pub struct Gauge {
    /// Its name: `sayback_…`.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// `gauge` or `counter`.
    pub kind: &'static str,
    /// Its value.
    pub value: Arc<dyn Fn() -> f64 + Send + Sync>,
}

impl std::fmt::Debug for Gauge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gauge").field("name", &self.name).finish_non_exhaustive()
    }
}

pub(crate) async fn show(
    State(api): State<Api>,
) -> Result<([(&'static str, &'static str); 1], String), Problem> {
    let mut text = String::new();
    let calls = api.board.calls();
    let own = [
        ("sayback_calls_live", "calls that go on", "gauge", calls.live() as f64),
        ("sayback_calls_total", "calls taken since the start", "counter", calls.taken() as f64),
        (
            "sayback_calls_refused_total",
            "calls refused since the start",
            "counter",
            api.board.refused() as f64,
        ),
        ("sayback_open", "whether calls are taken", "gauge", f64::from(u8::from(api.board.is_open()))),
    ];
    let [requests, starts, streams] = api.limiter.refused();
    let (open, counted) = api.limiter.kept();
    let asked = [
        ("sayback_http_requests_limited_total", "requests that were too many", "counter", requests as f64),
        ("sayback_http_starts_limited_total", "calls that were too many to begin", "counter", starts as f64),
        ("sayback_http_streams_limited_total", "open answers that were too many", "counter", streams as f64),
        ("sayback_http_streams", "answers that are open", "gauge", open as f64),
        ("sayback_http_counted", "tokens and addresses that are counted", "gauge", counted as f64),
    ];
    for (name, help, kind, value) in own.into_iter().chain(asked) {
        write_figure(&mut text, name, help, kind, value);
    }
    for gauge in &api.gauges {
        write_figure(&mut text, gauge.name, gauge.help, gauge.kind, (gauge.value)());
    }
    Ok(([("content-type", "text/plain; version=0.0.4")], text))
}

fn write_figure(text: &mut String, name: &str, help: &str, kind: &str, value: f64) {
    // Writing into a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
}
