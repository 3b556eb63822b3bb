//! One page per call: a single file from which no request leaves, that can be sent to somebody.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::conversation::conversation;
use super::decision::{Ending, decision, span, without_question};
use super::drawing::{Drawing, Waves, drawing};
use super::escape::{escaped, filled};
use super::timeline::Timeline;
use crate::scenario::Failure;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The page runs this script and no other. A test compares it with the script.
const SCRIPT_HASH: &str = "sha256-XYckdAh07iU4QCV+WHcm4wqmi3KA18e/kQoH1ohCYfA=";
/// Largest recording that is put into the page, in bytes.
const LARGEST_RECORDING: usize = 4 << 20;

/// A call's recording, as a file that a browser plays.
#[derive(Clone, Copy, Debug)]
pub struct Recording<'a> {
    /// `audio/flac`, `audio/wav`.
    pub mime: &'a str,
    /// The file.
    pub bytes: &'a [u8],
}

/// What a page is made of.
#[derive(Clone, Copy, Debug)]
pub struct CallPage<'a> {
    /// What the call shows.
    pub title: &'a str,
    /// The event log, one object per line.
    pub events: &'a [Value],
    /// The caller's sound at 16 kHz from the beginning of the call, where there is any.
    pub caller: Option<&'a [i16]>,
    /// The agent's sound, likewise.
    pub agent: Option<&'a [i16]>,
    /// The recording, to be listened to; one above 4 MiB is left out.
    pub recording: Option<Recording<'a>>,
    /// Expectations that were not met; shown on top.
    pub failures: &'a [Failure],
}

/// The page as HTML. Every text of the call is escaped, and the page's own policy forbids other scripts and all
/// requests.
pub fn call_page(page: &CallPage<'_>) -> String {
    let timeline = Timeline::gather(page.events);
    let drawn = drawing(&timeline, Waves { caller: page.caller, agent: page.agent });
    let recording = page.recording.filter(|recording| recording.bytes.len() <= LARGEST_RECORDING);
    filled(
        TEMPLATE,
        &[
            ("TITLE", &escaped(page.title)),
            ("STYLE", STYLE),
            ("SCRIPT", SCRIPT),
            ("SCRIPT_HASH", SCRIPT_HASH),
            ("META", &meta(&timeline, page)),
            ("VERDICTS", &verdicts(&timeline)),
            ("FAILURES", &failures(page.failures)),
            ("LANES", &lanes(&drawn)),
            ("CALL", &drawn.svg),
            ("VIEW", &format!("0 0 {:.0} {:.0}", drawn.width, drawn.height)),
            ("FOCUS_MS", &format!("{:.0}", focus(&timeline))),
            ("END_MS", &format!("{:.0}", drawn.end_ms)),
            ("AUDIO", &recording.map(audio).unwrap_or_default()),
            ("CONVERSATION", &conversation(&timeline)),
            ("EVENTS", &events(page.events)),
        ],
    )
}

/// What the timeline shows first: where the last question was decided.
fn focus(timeline: &Timeline) -> f64 {
    let question = timeline.questions.last();
    let dropped = question.and_then(|question| question.dropped.as_ref()).map(|(at, _)| *at);
    let run = question.and_then(|question| question.run).and_then(|run| timeline.tools.get(run));
    run.map(|run| run.started).or(dropped).unwrap_or(0.0)
}

fn meta(timeline: &Timeline, page: &CallPage<'_>) -> String {
    let mut parts = vec![format!("{} long", span(timeline.end))];
    if !timeline.transport.is_empty() {
        parts.push(format!("over {}", timeline.transport));
    }
    let sound = page.caller.is_some() || page.agent.is_some();
    parts.push(if sound { "with sound".into() } else { "text only, times as scripted".into() });
    parts.push(format!("{} events", page.events.len()));
    escaped(&parts.join(" · "))
}

fn verdicts(timeline: &Timeline) -> String {
    if timeline.questions.is_empty() {
        return format!("<p class=\"verdict plain\"><b>{}</b></p>", escaped(&without_question(timeline)));
    }
    let mut html = String::new();
    for question in &timeline.questions {
        let (ending, sentence) = decision(timeline, question);
        let mark = match ending {
            Ending::Ran => "✓",
            Ending::Failed | Ending::NotRun => "✗",
            Ending::Open => "…",
        };
        let _ = write!(
            html,
            "<div class=\"verdict {}\"><span class=\"badge\" aria-hidden=\"true\">{mark}</span><div><p><b><bdi>{}</bdi></b></p>\
             <p class=\"asked\">Asked: <q><bdi>{}</bdi></q></p></div></div>",
            ending.class(),
            escaped(&sentence),
            escaped(&question.text)
        );
    }
    html
}

fn failures(failures: &[Failure]) -> String {
    let mut html = String::new();
    for failure in failures {
        let _ = write!(html, "<pre class=\"unmet\">{}</pre>", escaped(&failure.to_string()));
    }
    html
}

fn lanes(drawing: &Drawing) -> String {
    let mut html =
        format!("<div class=\"lanes\" style=\"height:{:.0}px\" aria-hidden=\"true\">", drawing.height);
    for (name, top, height) in &drawing.lanes {
        let _ = write!(html, "<span style=\"top:{top:.0}px;height:{height:.0}px\">{name}</span>");
    }
    html.push_str("</div>");
    html
}

fn audio(recording: Recording<'_>) -> String {
    let mime = escaped(recording.mime);
    let data = STANDARD.encode(recording.bytes);
    format!("<audio id=\"sound\" controls preload=\"metadata\" src=\"data:{mime};base64,{data}\"></audio>")
}

fn events(events: &[Value]) -> String {
    let mut html = String::new();
    for event in events {
        let _ = writeln!(html, "{}", escaped(&event.to_string()));
    }
    html
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn the_page_allows_its_own_script_and_no_other() {
        let hash = format!("sha256-{}", STANDARD.encode(Sha256::digest(SCRIPT.as_bytes())));
        assert_eq!(SCRIPT_HASH, hash, "page.js has changed");
        assert!(TEMPLATE.contains("<script>{{SCRIPT}}</script>"), "the hash is of exactly this text");
    }
}
