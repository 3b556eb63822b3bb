//! The call as a table that reads like a transcript.

use std::fmt::Write as _;

use super::decision::{span, spoken_name};
use super::escape::escaped;
use super::timeline::{Question, Timeline};

/// One row: when, who, what, and a remark.
struct Line {
    at: f64,
    class: &'static str,
    who: &'static str,
    /// HTML, escaped already.
    what: String,
    note: String,
}

/// The rows of the table, in the order of time.
pub(super) fn conversation(timeline: &Timeline) -> String {
    let mut lines = Vec::new();
    voices(timeline, &mut lines);
    timeline.questions.iter().for_each(|question| question_lines(question, &mut lines));
    tools(timeline, &mut lines);
    lines.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut html = String::new();
    for line in lines {
        let _ = write!(
            html,
            "<tr class=\"{}\"><td class=\"when\">{}</td><td class=\"who\">{}</td><td class=\"what\"><bdi>{}</bdi></td>\
             <td class=\"note\">{}</td></tr>",
            line.class,
            clock(line.at),
            line.who,
            line.what,
            escaped(&line.note)
        );
    }
    html
}

/// `0:04.2`
fn clock(ms: f64) -> String {
    let tenths = (ms.max(0.0) / 100.0) as u64;
    format!("{}:{:02}.{}", tenths / 600, tenths / 10 % 60, tenths % 10)
}

fn voices(timeline: &Timeline, lines: &mut Vec<Line>) {
    for words in &timeline.words {
        let note = words.ignored.as_ref().map(|why| format!("not taken for the caller's words: {why}"));
        lines.push(Line {
            at: words.onset,
            class: if words.ignored.is_some() { "caller ignored" } else { "caller" },
            who: "Caller",
            what: escaped(&words.text),
            note: note.unwrap_or_default(),
        });
    }
    for (at, digit) in &timeline.keys {
        lines.push(Line {
            at: *at,
            class: "caller",
            who: "Caller",
            what: format!("key {}", escaped(digit)),
            note: String::new(),
        });
    }
    for utterance in &timeline.utterances {
        let (heard, rest) = utterance.heard_and_rest();
        let note = match (utterance.started, &utterance.heard) {
            (None, _) => "never played",
            (Some(_), Some(heard)) if !heard.complete => "cut off; what is struck out was not heard",
            (Some(_), _) => "",
        };
        let mut what = escaped(heard);
        if !rest.is_empty() {
            let _ = write!(what, "<del>{}</del>", escaped(rest));
        }
        lines.push(Line {
            at: utterance.started.unwrap_or(utterance.said),
            class: if utterance.question { "agent ask" } else { "agent" },
            who: if utterance.question { "Question" } else { "Agent" },
            what,
            note: note.into(),
        });
    }
    for (at, text) in &timeline.told {
        lines.push(Line {
            at: *at,
            class: "told",
            who: "Model told",
            what: escaped(text),
            note: String::new(),
        });
    }
    if let Some((at, reason)) = &timeline.ended {
        let what = format!("End of the call: {}", escaped(reason));
        lines.push(Line { at: *at, class: "mark", who: "Line", what, note: String::new() });
    }
}

fn question_lines(question: &Question, lines: &mut Vec<Line>) {
    let mut mark =
        |at: f64, class, what: String, note: String| lines.push(Line { at, class, who: "Gate", what, note });
    let name = escaped(&spoken_name(&question.tool));
    mark(question.held, "mark", format!("Held back until a yes: {name}"), String::new());
    for horizon in question.askings.iter().filter_map(|asking| asking.heard.as_ref()) {
        let note = format!(
            "between {:.0} and {:.0} ms, known by: {}",
            horizon.earliest, horizon.latest, horizon.evidence
        );
        mark(
            horizon.latest,
            "mark",
            "The question has been heard; what begins now can answer it".into(),
            note,
        );
    }
    for answer in &question.answers {
        let note = match (&answer.veto, &answer.error) {
            (Some(veto), _) => format!("lowered from yes: {veto}"),
            (None, Some(error)) => error.clone(),
            (None, None) => format!("began {} after the question had been heard", span(answer.margin)),
        };
        let what = format!("“{}” means: {}", escaped(&answer.words), escaped(&answer.verdict));
        mark(answer.at, "mark", what, note);
    }
    if let Some((at, reason)) = &question.dropped {
        mark(*at, "mark bad", format!("The question is closed: {}", escaped(reason)), String::new());
    }
}

fn tools(timeline: &Timeline, lines: &mut Vec<Line>) {
    for run in &timeline.tools {
        let by = run.confirmed_by.as_ref().map(|by| format!("confirmed by “{by}”")).unwrap_or_default();
        let what = format!("{} <code>{}</code>", escaped(&run.tool), escaped(&run.input));
        lines.push(Line { at: run.started, class: "tool", who: "Tool", what, note: by });
        if let Some(end) = &run.finished {
            let (class, result) = if end.ok { ("tool", "done") } else { ("tool bad", "failed") };
            let what = format!("{}: {}", escaped(&run.tool), escaped(&end.message));
            lines.push(Line { at: end.at, class, who: "Tool", what, note: result.into() });
        }
    }
}
