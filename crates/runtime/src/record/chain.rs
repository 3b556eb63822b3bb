//! The evidence of a call: a line per decision, each bound to the one before it by its hash, and a seal at the end.
//!
//! A line is canonical JSON (RFC 8785) with a `hash` over all of its other fields, `prev` among them. So a changed,
//! missing or added byte shows, in a line as between lines. The chain is not signed: it shows what happened to a
//! recording, not who made it. Whoever must prove that keeps the seal's hash elsewhere.

use std::collections::BTreeMap;

use sayback_core::{
    CallId, CheckAnswer, CheckId, CheckRequest, Command, Event, EvidenceRecord, HoldId, Output, SegmentId,
    Time, ToolOutcome, Verdict,
};
use serde_json::{Map, Value, json};

use super::CallSheet;
use crate::clock::{stamp_of, unix_seconds};
use crate::frozen::sha256;
use crate::prompt::check_request;

/// Version of the lines.
pub const CHAIN: u32 = 1;

/// Canonical JSON of a value; what the hashes are over.
pub fn canonical_text(value: &Value) -> String {
    // Values have keys that are texts and numbers that are finite: nothing that canonical JSON lacks.
    serde_jcs::to_string(value).unwrap_or_default()
}

/// The hash of a line: over everything in it but the hash itself.
pub fn line_hash(line: &Map<String, Value>) -> String {
    let mut rest = line.clone();
    rest.remove("hash");
    sha256(canonical_text(&Value::Object(rest)).as_bytes())
}

/// The hash of the settings in force.
pub fn config_hash(sheet: &CallSheet) -> String {
    sha256(canonical_text(&serde_json::to_value(&sheet.policy).unwrap_or_default()).as_bytes())
}

/// A time as the chain has it: milliseconds on the call clock, exact to the microsecond.
fn ms(at: Time) -> Value {
    micros(i64::try_from(at.as_micros()).unwrap_or(i64::MAX))
}

fn micros(micros: i64) -> Value {
    // Both are JSON numbers that are read the same everywhere; whole ones are written without a point.
    if micros % 1_000 == 0 { json!(micros / 1_000) } else { json!(micros as f64 / 1_000.0) }
}

fn span(span: std::time::Duration) -> Value {
    micros(i64::try_from(span.as_micros()).unwrap_or(i64::MAX))
}

/// What a line says of a decision that follows from the core's record alone: a replay gives the same.
pub fn facts(record: &EvidenceRecord) -> Map<String, Value> {
    let segments = record.segments.iter().map(|s| {
        json!({"segment": s.segment, "onset_ms": [ms(s.onset.earliest), ms(s.onset.latest)],
               "offset_ms": s.offset.map(ms), "words": s.words})
    });
    let clock = record.heard.map(|heard| {
        json!({"q0_ms": ms(heard.began), "qE_ms": ms(heard.ended), "horizon_ms": ms(heard.horizon),
               "loop_ms": [span(heard.delay.at_least), span(heard.delay.at_most)], "source": heard.evidence})
    });
    let answered = record.answer_onset.is_some() || !record.answer.is_empty();
    let answer = answered.then(|| {
        json!({"words": record.answer, "segments": record.answer_segments,
               "onset_ms": record.answer_onset.map(|(onset, _)| ms(onset)),
               "margin_ms": record.answer_onset.map(|(_, margin)| micros(margin)),
               "complete_ms": record.complete_at.map(ms)})
    });
    let (verdict, veto, error) = match &record.check {
        Some(CheckAnswer::Verdict { verdict }) => (Some(*verdict), None, None),
        Some(CheckAnswer::Vetoed { veto }) => (Some(Verdict::Unclear), Some(veto.clone()), None),
        Some(CheckAnswer::Failed { error }) => (Some(Verdict::Unclear), None, Some(error.clone())),
        None => (None, None, None),
    };
    let key = record.check.is_none() && record.answer.len() == 1 && record.answer_onset.is_some();
    let decision = verdict.or(match record.answer.as_str() {
        "1" if key => Some(Verdict::Yes),
        "2" if key => Some(Verdict::No),
        _ => None,
    });
    let line = json!({
        "hold": record.hold, "call_id": record.call, "tool": record.tool.name, "skill": record.tool.skill,
        "definition": record.tool.definition, "input": parsed(&record.input.json),
        "input_hash": record.input.hash, "question": record.question,
        "question_hash": sha256(record.question.as_bytes()), "lang": record.language, "terms": record.terms,
        "clock": clock, "lost_ms": span(record.lost), "segments": segments.collect::<Vec<Value>>(),
        "agent_speech_after": record.agent_speech_after, "braked": record.braked, "hung_up": record.hung_up, "answer": answer,
        "check": record.check.is_some().then(|| json!({"verdict": verdict, "veto": veto, "error": error})),
        "decision": decision, "outcome": record.outcome, "decided_ms": ms(record.decided_at),
    });
    match line {
        Value::Object(line) => line,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or(Value::Null)
}

/// A stretch of recorded sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Hash of its samples, 16 bits each, low byte first; absent if they are no longer at hand.
    pub(super) sha256: Option<String>,
}

/// What the sound of a decision was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sounds {
    pub(super) question: Option<Stretch>,
    pub(super) answer: Option<Stretch>,
}

/// What the shell has seen of a check.
#[derive(Debug)]
struct Seen {
    check: CheckId,
    asked: Time,
    ms: Option<Value>,
    words: String,
    prompt: String,
    /// How the answer sounded; the vetoes depend on it.
    sounded: Value,
    answer: Option<CheckAnswer>,
}

/// The chain of one call.
#[derive(Debug)]
pub(super) struct Chain {
    call: String,
    transport: String,
    config: String,
    model: String,
    stt: String,
    began: u64,
    seq: u64,
    prev: String,
    decisions: u64,
    checks: BTreeMap<HoldId, Seen>,
    confidence: BTreeMap<SegmentId, u8>,
    results: BTreeMap<CallId, String>,
}

impl Chain {
    /// The chain of a call, and its first line: it binds `call.json`.
    pub(super) fn open(sheet: &CallSheet, sheet_hash: &str) -> (Self, String) {
        let mut chain = Self {
            call: sheet.call.clone(),
            transport: sheet.transport.clone(),
            config: config_hash(sheet),
            model: sheet.engines.model.clone(),
            stt: sheet.engines.stt.clone(),
            began: unix_seconds(),
            seq: 0,
            prev: sha256(b""),
            decisions: 0,
            checks: BTreeMap::new(),
            confidence: BTreeMap::new(),
            results: BTreeMap::new(),
        };
        let opening =
            json!({"kind": "opening", "call": sheet.call, "sheet": sheet_hash, "config": chain.config});
        let line = chain.link(opening);
        (chain, line)
    }

    pub(super) fn on_input(&mut self, at: Time, event: &Event) {
        if let Event::Transcript(transcript) = event
            && let Some(confidence) = transcript.confidence
        {
            self.confidence.extend(transcript.segments.iter().map(|segment| (*segment, confidence)));
        } else if let Event::Checked { check, answer } = event
            && let Some(seen) = self.checks.values_mut().find(|seen| seen.check == *check)
        {
            seen.ms = Some(span(at.since(seen.asked)));
            seen.answer = Some(answer.clone());
        } else if let Event::ToolFinished { call, outcome } = event
            && let ToolOutcome::Done { message }
            | ToolOutcome::Failed { message }
            | ToolOutcome::NotRun { message }
            | ToolOutcome::Asks { message, .. } = outcome
        {
            self.results.insert(call.clone(), sha256(message.as_bytes()));
        }
    }

    pub(super) fn on_output(&mut self, output: &Output) {
        if let Command::Check(request) = &output.command {
            let seen = Seen {
                check: request.check,
                asked: output.at,
                ms: None,
                words: request.words.clone(),
                prompt: prompt_hash(request),
                sounded: json!(request.sounded),
                answer: None,
            };
            self.checks.insert(request.hold, seen);
        }
    }

    /// The line of a decision.
    pub(super) fn decision(&mut self, record: &EvidenceRecord, sounds: &Sounds) -> String {
        let mut line = facts(record);
        let whole = record.heard.is_some();
        let mut put = |key: &str, value: Value| line.insert(key.to_owned(), value);
        put("kind", json!("decision"));
        put("session", json!(self.call));
        put("config", json!(self.config));
        put("idempotency_key", json!(format!("{}/{}", self.call, record.hold)));
        let decided = self.began + record.decided_at.as_micros() / 1_000_000;
        put("decided_at", json!(stamp_of(decided)));
        put("result_hash", json!(self.results.get(&record.call).filter(|_| ran(&record.outcome))));
        let question = sounds.question.as_ref().map(|s| {
            json!({"track": "agent", "from_sample": s.from, "to_sample": s.to, "sha256": s.sha256,
                   "played": if whole { "full" } else { "part" }, "lost_ms": span(record.lost)})
        });
        put("question_audio", json!(question));
        if let Some(clock) = line.get_mut("clock").and_then(Value::as_object_mut) {
            clock.insert("transport".to_owned(), json!(self.transport));
        }
        if let Some(answer) = line.get_mut("answer").and_then(Value::as_object_mut) {
            let confidence =
                record.answer_segments.iter().filter_map(|segment| self.confidence.get(segment)).min();
            answer.insert(
                "confidence".to_owned(),
                json!(confidence.map(|percent| f64::from(*percent) / 100.0)),
            );
            answer.insert("speakers".to_owned(), json!("unknown"));
            answer.insert("stt".to_owned(), json!(self.stt));
            if let Some(sound) = &sounds.answer {
                answer.insert("track".to_owned(), json!("caller"));
                answer.insert("from_sample".to_owned(), json!(sound.from));
                answer.insert("to_sample".to_owned(), json!(sound.to));
                answer.insert("sha256".to_owned(), json!(sound.sha256));
            }
        }
        if let Some(check) = line.get_mut("check").and_then(Value::as_object_mut)
            && let Some(seen) = self.checks.get(&record.hold)
        {
            check.insert("model".to_owned(), json!(self.model));
            check.insert("words".to_owned(), json!(seen.words));
            check.insert("sounded".to_owned(), seen.sounded.clone());
            check.insert("prompt_hash".to_owned(), json!(seen.prompt));
            check.insert("raw".to_owned(), json!(seen.answer.as_ref().map(raw)));
            check.insert("ms".to_owned(), json!(seen.ms));
        }
        self.decisions += 1;
        self.link(Value::Object(line))
    }

    /// The last line: what every other file of the recording was when it ended.
    pub(super) fn seal(&mut self, files: &BTreeMap<String, String>) -> String {
        let decisions = self.decisions;
        self.link(json!({"kind": "seal", "call": self.call, "decisions": decisions, "files": files}))
    }

    /// The hash of the last line.
    pub(super) fn head(&self) -> &str {
        &self.prev
    }

    fn link(&mut self, line: Value) -> String {
        let mut line = match line {
            Value::Object(line) => line,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Map::new()
            }
        };
        line.insert("v".to_owned(), json!(CHAIN));
        line.insert("seq".to_owned(), json!(self.seq));
        line.insert("prev".to_owned(), json!(self.prev));
        let hash = line_hash(&line);
        line.insert("hash".to_owned(), json!(hash));
        self.seq += 1;
        self.prev = hash;
        canonical_text(&Value::Object(line))
    }
}

/// Whether an outcome says that the tool was run.
fn ran(outcome: &str) -> bool {
    matches!(outcome, "executed" | "failed")
}

/// What the model said, as far as it matters: the word, or what came in its place.
fn raw(answer: &CheckAnswer) -> Value {
    match answer {
        CheckAnswer::Verdict { verdict } => json!(verdict),
        CheckAnswer::Vetoed { .. } => json!(Verdict::Yes),
        CheckAnswer::Failed { error } => json!(error),
    }
}

/// The hash of what the model is asked: its messages, as canonical JSON.
pub fn prompt_hash(request: &CheckRequest) -> String {
    let messages = serde_json::to_value(check_request(request).messages).unwrap_or_default();
    sha256(canonical_text(&messages).as_bytes())
}
