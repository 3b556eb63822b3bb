//! The call as a table that reads like a transcript.

use std::fmt::Write as _;

use super::decision::{span, spoken_name};
use super::escape::escaped;
use super::timeline::{Question, Timeline};

/// One row: when, who, what, and a remark.
struct Line {
    at: f64,
    /// What comes of what, where several happen in one instant.
    step: Step,
    class: &'static str,
    who: &'static str,
    /// HTML, escaped already.
    what: String,
    note: String,
}

/// The order of what happens in one instant: words come first, and the end of the call comes last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Caller,
    /// A question makes room for the next one.
    Replaced,
    Held,
    Asked,
    Heard,
    Answered,
    Closed,
    Ran,
    Done,
    Told,
    Agent,
    End,
}

/// The rows of the table, in the order of time.
pub(super) fn conversation(timeline: &Timeline) -> String {
    let mut lines = Vec::new();
    voices(timeline, &mut lines);
    timeline.questions.iter().for_each(|question| question_lines(question, &mut lines));
    tools(timeline, &mut lines);
    lines.sort_by(|a, b| a.at.total_cmp(&b.at).then(a.step.cmp(&b.step)));
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
            step: Step::Caller,
            class: if words.ignored.is_some() { "caller ignored" } else { "caller" },
            who: "Caller",
            what: escaped(&words.text),
            note: note.unwrap_or_default(),
        });
    }
    for (at, digit) in &timeline.keys {
        lines.push(Line {
            at: *at,
            step: Step::Caller,
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
            step: if utterance.question { Step::Asked } else { Step::Agent },
            class: if utterance.question { "agent ask" } else { "agent" },
            who: if utterance.question { "Question" } else { "Agent" },
            what,
            note: note.into(),
        });
    }
    for (at, text) in &timeline.told {
        lines.push(Line {
            at: *at,
            step: Step::Told,
            class: "told",
            who: "Model told",
            what: escaped(text),
            note: String::new(),
        });
    }
    if let Some((at, reason)) = &timeline.ended {
        let what = format!("End of the call: {}", escaped(reason));
        lines.push(Line { at: *at, step: Step::End, class: "mark", who: "Line", what, note: String::new() });
    }
}

fn question_lines(question: &Question, lines: &mut Vec<Line>) {
    let mut mark = |at: f64, step, class, what: String, note: String| {
        lines.push(Line { at, step, class, who: "Gate", what, note })
    };
    let name = escaped(&spoken_name(&question.tool));
    mark(question.held, Step::Held, "mark", format!("Held back until a yes: {name}"), String::new());
    for horizon in question.askings.iter().filter_map(|asking| asking.heard.as_ref()) {
        let note = format!(
            "between {:.0} and {:.0} ms, known by: {}",
            horizon.earliest, horizon.latest, horizon.evidence
        );
        mark(
            horizon.latest,
            Step::Heard,
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
        mark(answer.at, Step::Answered, "mark", what, note);
    }
    if let Some((at, reason)) = &question.dropped {
        let step = if reason == "replaced" { Step::Replaced } else { Step::Closed };
        mark(*at, step, "mark bad", format!("The question is closed: {}", escaped(reason)), String::new());
    }
}

fn tools(timeline: &Timeline, lines: &mut Vec<Line>) {
    for run in &timeline.tools {
        let by = run.confirmed_by.as_ref().map(|by| format!("confirmed by “{by}”")).unwrap_or_default();
        let what = format!("{} <code>{}</code>", escaped(&run.tool), escaped(&run.input));
        lines.push(Line { at: run.started, step: Step::Ran, class: "tool", who: "Tool", what, note: by });
        if let Some(end) = &run.finished {
            let (class, result) = if end.ok { ("tool", "done") } else { ("tool bad", "failed") };
            let what = format!("{}: {}", escaped(&run.tool), escaped(&end.message));
            lines.push(Line { at: end.at, step: Step::Done, class, who: "Tool", what, note: result.into() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_happens_in_one_instant_stands_in_the_order_of_cause_and_effect() {
        // The log's order is that of when things were known, so an end of a run may come before its reason.
        let events = [
            json!({"t_ms": 0.0, "event": "call.started", "call": "c", "transport": "chat"}),
            json!({"t_ms": 5.0, "event": "call.ended", "reason": "hangup"}),
            json!({"t_ms": 5.0, "event": "model.told", "text": "told"}),
            json!({"t_ms": 5.0, "event": "tool.started", "call_id": "1", "tool": "book", "input": {}}),
            json!({"t_ms": 5.0, "event": "tool.finished", "call_id": "1", "tool": "book", "ok": true, "message": "m"}),
            json!({"t_ms": 5.0, "event": "caller.words", "text": "hello there", "onset_ms": 5.0, "offset_ms": 5.0,
                   "final": true}),
        ];
        let rows = conversation(&Timeline::gather(&events));
        let at = |part: &str| rows.find(part).unwrap_or_else(|| panic!("{part} is not in {rows}"));
        let order = [at("hello there"), at("<code>"), at("book: m"), at("Model told"), at("End of the call")];
        assert!(order.is_sorted(), "{order:?}: {rows}");
    }
}
