//! The rules of a confirmed run, from one record alone: a second reading beside the journal, written apart from the core.

use sayback_core::{Adjacency, EvidenceClass, Policy, QuestionBargeIn, Time};
use serde_json::{Map, Value};

/// Outcomes that say that the run was allowed.
const ALLOWED: [&str; 5] = ["committed", "executed", "failed", "outcome_unknown", "not_run"];

/// Milliseconds as the chain has them, in microseconds.
fn us(value: &Value) -> Option<i64> {
    value.as_f64().map(|ms| (ms * 1_000.0).round() as i64)
}

fn micros(span: std::time::Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// What does not follow in a decision, a sentence each.
pub(super) fn broken(line: &Map<String, Value>, policy: &Policy) -> Vec<String> {
    let mut wrong = Vec::new();
    let line = &Value::Object(line.clone());
    let (clock, answer) = (&line["clock"], &line["answer"]);
    let horizon = us(&clock["horizon_ms"]);
    if clock.is_object() && us(&clock["qE_ms"]).zip(us(&clock["loop_ms"][1])).map(|(e, l)| e + l) != horizon {
        wrong.push("the horizon is not the end of the question and the longest loop".to_owned());
    }
    let margin = us(&answer["onset_ms"]).zip(horizon).map(|(onset, horizon)| onset - horizon);
    if margin != us(&answer["margin_ms"]) {
        wrong.push("the margin is not the onset less the horizon".to_owned());
    }
    let outcome = line["outcome"].as_str().unwrap_or_default();
    let decision = line["decision"].as_str();
    if outcome == "declined" && decision != Some("no") {
        wrong.push("it was declined without a no".to_owned());
    }
    if outcome == "unconfirmed" && matches!(decision, Some("yes" | "no")) {
        wrong.push("it was left unconfirmed after a clear answer".to_owned());
    }
    if !ALLOWED.contains(&outcome) {
        return wrong;
    }
    let mut must = |holds: bool, what: &str| {
        if !holds {
            wrong.push(format!("it ran, but {what}"));
        }
    };
    must(decision == Some("yes"), "the answer was no yes");
    must(line["check"]["veto"].is_null(), "a veto had fired");
    must(margin.is_some_and(|margin| margin >= 0), "the answer did not begin behind the horizon");
    must(
        answer["segments"].as_array().is_some_and(Vec::is_empty) != answer_is_spoken(line),
        "nobody said it",
    );
    must(!line["check"].is_null() || policy.confirm.keypad, "a key was taken where keys do not answer");
    must(
        policy.confirm.adjacency == Adjacency::Off || line["agent_speech_after"] == false,
        "the agent spoke after the question",
    );
    must(
        us(&line["lost_ms"]).is_some_and(|lost| lost <= micros(policy.confirm.max_loss)),
        "too much was lost",
    );
    must(is_known_well(line, policy), "it was not known well enough that the question was heard");
    must(earlier_speech(line, policy).is_none(), "there was speech inside the question");
    must(in_time(line, policy), "the answer came after its time to live");
    must(after_grace(line, policy), "the grace was not over");
    wrong
}

/// A spoken or typed answer has segments, a key has none.
fn answer_is_spoken(line: &Value) -> bool {
    !line["check"].is_null()
}

fn is_known_well(line: &Value, policy: &Policy) -> bool {
    let class = |value: &Value| serde_json::from_value::<EvidenceClass>(value.clone()).ok();
    let least = policy.confirm.evidence;
    let least = class(&line["terms"]["evidence"]).map_or(least, |own| own.min(least));
    class(&line["clock"]["source"]).is_some_and(|source| source <= least && source != EvidenceClass::Unproven)
}

/// A stretch of speech that had words, or may have had, and overlaps the question.
fn earlier_speech<'a>(line: &'a Value, policy: &Policy) -> Option<&'a Value> {
    let ignored = policy.confirm.question_barge_in != QuestionBargeIn::Drop || line["braked"] == true;
    let (began, horizon) = (us(&line["clock"]["q0_ms"])?, us(&line["clock"]["horizon_ms"])?);
    line["segments"].as_array()?.iter().find(|segment| {
        let early = us(&segment["onset_ms"][0]).is_none_or(|onset| onset < horizon);
        let late = us(&segment["offset_ms"]).is_none_or(|offset| offset > began);
        segment["words"] != false && early && late && !ignored
    })
}

fn in_time(line: &Value, policy: &Policy) -> bool {
    let Some(ttl) = policy.confirm.ttl else { return true };
    let onset = us(&line["answer"]["onset_ms"]);
    onset.zip(us(&line["clock"]["horizon_ms"])).is_some_and(|(onset, horizon)| onset <= horizon + micros(ttl))
}

/// Grace is for calls that go on: a chat has none, and after a hang-up nothing more can be said.
fn after_grace(line: &Value, policy: &Policy) -> bool {
    if line["outcome"] != "committed" || line["clock"]["transport"] == "chat" {
        return true;
    }
    let complete = us(&line["answer"]["complete_ms"]);
    let hung_up = line["hung_up"] == true;
    complete.zip(us(&line["decided_ms"])).is_some_and(|(complete, decided)| {
        decided >= complete + if hung_up { 0 } else { micros(policy.confirm.grace) }
    })
}

/// A decision in a line, for people.
pub(super) fn shown(line: &Map<String, Value>) -> String {
    let line = &Value::Object(line.clone());
    let said = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut text = format!("{} {}: {}", said(&line["hold"]), said(&line["tool"]), said(&line["outcome"]));
    if let Some(words) = line["answer"]["words"].as_str() {
        text.push_str(&format!(" on {words:?}"));
    }
    if let Some(margin) = line["answer"]["margin_ms"].as_f64() {
        text.push_str(&format!(", which began {margin:.1} ms behind the horizon"));
    }
    if let Some(at) = us(&line["decided_ms"]).and_then(|us| u64::try_from(us).ok()) {
        text.push_str(&format!(" (at {:.1} s)", Time::from_micros(at).as_millis_f64() / 1_000.0));
    }
    text
}
