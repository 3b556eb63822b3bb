//! From a file as written to a [`Scenario`].

use std::path::Path;
use std::time::Duration;

use sayback_core::{Approval, ApprovalOutcome, EvidenceClass, Time, UtteranceKind, Verdict};
use serde_json::Value;
use toml::de::DeTable;

use super::fault::ScenarioError;
use super::when::{NoPoint, When, anchor};
use super::written::{Fields, Source, json};
use super::{
    AckFault, Act, AfterClear, ApprovalStep, CallerAct, CheckStep, DEFAULT_LIMIT, LinePath, ModelStep, Point,
    RewindTo, Scenario, ScriptedAnswer, ScriptedCall, ScriptedError, Speech, SpeechMode, Target, ToolAnswer,
    ToolScript, Transport, TtsFault, expect, length_of_speech, numbers,
};

/// Time between two keys of one `dtmf` text.
const KEY_SPACING: Duration = Duration::from_millis(250);

/// Reads the text of one scenario file. `path` is for messages, and paths in the file are taken from its folder.
///
/// # Errors
/// All faults of the file, each with line, column and a hint.
pub fn parse_scenario(text: &str, path: &Path) -> Result<Scenario, ScenarioError> {
    let source = Source::new(text, path);
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let message = error.message().lines().next().unwrap_or("not TOML").to_owned();
        source.fault(error.span().unwrap_or(0..0), message, "this is not TOML; see https://toml.io");
    }
    if !errors.is_empty() {
        return Err(ScenarioError::Faults(source.into_faults()));
    }
    let fields = Fields::new(&source, root.get_ref(), 0..0, "the scenario");
    let scenario = scenario(&fields, path);
    fields.finish();
    drop(fields);
    let faults = source.into_faults();
    if faults.is_empty() { Ok(scenario) } else { Err(ScenarioError::Faults(faults)) }
}

fn scenario(file: &Fields<'_, '_>, path: &Path) -> Scenario {
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let expects: Vec<_> = file.tables("expect").iter().filter_map(expect::expect).collect();
    let scenario = Scenario {
        path: path.to_owned(),
        title: file.required("title", "one sentence that says what it shows").unwrap_or_default().to_owned(),
        agent: folder
            .join(file.required("agent", "the agent's file, from this file's folder").unwrap_or_default()),
        agent_at: file.place("agent"),
        speech: file
            .choice("speech", &[("text", SpeechMode::Text), ("audio", SpeechMode::Audio)])
            .unwrap_or_default(),
        line: line_path(file.table("path").as_ref()),
        callers: file.tables("caller").iter().flat_map(|act| caller(act, folder)).collect(),
        model: steps(file, "model", model_step),
        checks: steps(file, "check", check_step),
        approvals: file.tables("approval").iter().filter_map(approval_step).collect(),
        tools: file.tables("tool").iter().filter_map(tool_script).collect(),
        tts_faults: file.tables("tts").iter().map(tts_fault).collect(),
        ack_faults: file.tables("ack").iter().map(ack_fault).collect(),
        expects,
        end_at: file.duration("end_at").map(|at| Time::ZERO + at),
        limit: file.duration("limit").unwrap_or(DEFAULT_LIMIT),
    };
    if !file.has("expect") {
        file.bad("expect", "the scenario expects nothing", "add an [[expect]] with `event` or `never`");
    }
    scenario
}

/// Steps of a script; `None` if the file has none at all. An empty list, `model = []`, is a script that says nothing.
fn steps<T>(
    file: &Fields<'_, '_>,
    key: &'static str,
    read: fn(&Fields<'_, '_>) -> Option<T>,
) -> Option<Vec<T>> {
    file.has(key).then(|| file.tables(key).iter().filter_map(read).collect())
}

fn line_path(fields: Option<&Fields<'_, '_>>) -> LinePath {
    let local = Transport::default();
    let Some(fields) = fields else {
        return LinePath {
            transport: local,
            round_trip: None,
            output_buffer: Duration::ZERO,
            evidence: local.evidence(),
        };
    };
    let transports = Transport::ALL.map(|transport| (transport.name(), transport));
    let transport = fields.choice("transport", &transports).unwrap_or_default();
    let evidence = fields.choice("evidence", &EVIDENCE);
    let path = LinePath {
        transport,
        round_trip: fields.duration("round_trip"),
        output_buffer: fields.duration("output_buffer").unwrap_or_default(),
        evidence: evidence.unwrap_or(transport.evidence()),
    };
    fields.finish();
    path
}

const EVIDENCE: [(&str, EvidenceClass); 9] = [
    ("device", EvidenceClass::Device),
    ("page", EvidenceClass::Page),
    ("echo", EvidenceClass::Echo),
    ("xr", EvidenceClass::Xr),
    ("rtcp", EvidenceClass::Rtcp),
    ("mark", EvidenceClass::Mark),
    ("assumed", EvidenceClass::Assumed),
    ("virtual", EvidenceClass::Virtual),
    ("unproven", EvidenceClass::Unproven),
];

fn when(fields: &Fields<'_, '_>) -> Option<When> {
    let (at, after) = (fields.duration("at"), fields.string("after"));
    match (fields.has("at"), fields.has("after")) {
        (true, true) => {
            fields.bad("after", format!("{} has both `at` and `after`", fields.title()), "keep one of them");
            None
        }
        (false, false) => {
            let hint = "add `at = \"1.2s\"` or `after = \"question.heard + 400ms\"`";
            fields.bad("at", format!("{} does not say when", fields.title()), hint);
            None
        }
        (true, false) => Some(When::At(Time::ZERO + at?)),
        (false, true) => match anchor(after?) {
            Ok(anchor) => Some(When::After(anchor)),
            Err(NoPoint { message, hint }) => {
                fields.bad("after", message, hint);
                None
            }
        },
    }
}

/// The acts of a `[[caller]]`: one, or one per key of `dtmf`.
fn caller(fields: &Fields<'_, '_>, folder: &Path) -> Vec<CallerAct> {
    let when = when(fields);
    let acts = caller_acts(fields, folder);
    fields.finish();
    let (Some(when), line) = (when, fields.line()) else { return Vec::new() };
    let later = |index: usize| when.later(KEY_SPACING * u32::try_from(index).unwrap_or(u32::MAX));
    acts.into_iter().enumerate().map(|(index, act)| CallerAct { line, when: later(index), act }).collect()
}

fn caller_acts(fields: &Fields<'_, '_>, folder: &Path) -> Vec<Act> {
    const KINDS: [&str; 8] = ["text", "noise", "dtmf", "message", "hangup", "hold", "rewind", "reopen"];
    let speech = speech(fields, folder);
    let audio = fields.string("audio").map(|audio| folder.join(audio));
    let acts = [
        speech,
        fields.duration("noise").map(|length| Act::Noise { length, audio }),
        fields.string("message").map(|text| Act::Message(text.to_owned())),
        only_true(fields, "hangup", Act::HangUp),
        fields.duration("hold").map(Act::Hold),
        rewind(fields),
        only_true(fields, "reopen", Act::Reopen),
    ];
    let acts: Vec<_> = acts.into_iter().flatten().chain(digits(fields)).collect();
    let given: Vec<_> = KINDS.into_iter().filter(|kind| fields.has(kind)).collect();
    if given.len() > 1 {
        let message = format!("the caller does two things at once: {}", given.join(" and "));
        fields.bad(given[1], message, "make an entry of each");
    } else if given.is_empty() {
        let hint = if fields.has("audio") {
            "add `text`: in text mode it stands for the transcript; for a clip without words use `noise`"
        } else {
            "one of: text, noise, dtmf, message, hangup, hold, rewind, reopen"
        };
        fields.bad("audio", "the caller does nothing", hint);
    }
    acts
}

fn only_true(fields: &Fields<'_, '_>, key: &'static str, act: Act) -> Option<Act> {
    if fields.flag(key) {
        return Some(act);
    }
    if fields.has(key) {
        let hint = format!("write `{key} = true`, or leave the entry out");
        fields.bad(key, format!("`{key}` can only be true"), hint);
    }
    None
}

fn rewind(fields: &Fields<'_, '_>) -> Option<Act> {
    match fields.string("rewind")? {
        "question" => Some(Act::Rewind(RewindTo::Question)),
        "start" => Some(Act::Rewind(RewindTo::Start)),
        other => {
            fields.bad("rewind", format!("`{other}` is no place"), "`question` or `start`");
            None
        }
    }
}

fn speech(fields: &Fields<'_, '_>, folder: &Path) -> Option<Act> {
    // Every key is asked for even where it does not belong, so that it is refused by name and not as unknown.
    let audio = fields.string("audio").map(|audio| folder.join(audio));
    let length = fields.duration("length");
    let transcript_delay = fields.duration("transcript_delay");
    let confidence = fields.whole("confidence", 0..=100);
    let echo = fields.flag("echo");
    if !fields.has("text") {
        for key in ["length", "transcript_delay", "confidence", "echo"] {
            if fields.has(key) {
                fields.bad(key, format!("`{key}` goes with `text` only"), "remove it, or add `text`");
            }
        }
    }
    let text = fields.string("text")?;
    if text.trim().is_empty() {
        fields.bad("text", "`text` is empty", "for a sound without words use `noise = \"400ms\"`");
    }
    Some(Act::Speech(Speech {
        text: text.to_owned(),
        audio,
        length: length.unwrap_or_else(|| length_of_speech(text)),
        transcript_delay: transcript_delay.unwrap_or_default(),
        confidence: confidence.and_then(|percent| u8::try_from(percent).ok()),
        echo,
    }))
}

fn digits(fields: &Fields<'_, '_>) -> Vec<Act> {
    let Some(text) = fields.string("dtmf") else { return Vec::new() };
    let is_key = |c: char| c.is_ascii_digit() || matches!(c, '*' | '#' | 'A'..='D');
    if text.is_empty() || !text.chars().all(is_key) {
        fields.bad("dtmf", format!("`{text}` is no key"), "keys are 0-9, *, # and A-D");
        return Vec::new();
    }
    text.chars().map(Act::Digit).collect()
}

fn model_step(fields: &Fields<'_, '_>) -> Option<ModelStep> {
    let mut calls: Vec<_> = fields.table("call").iter().filter_map(scripted_call).collect();
    if fields.has("calls") {
        if fields.has("call") {
            fields.bad("calls", "the step has both `call` and `calls`", "put all of them into `calls`");
        }
        calls = fields.tables("calls").iter().filter_map(scripted_call).collect();
    }
    let step = ModelStep {
        line: fields.line(),
        say: fields.string("say").map(str::to_owned),
        calls,
        say_after: fields.string("say_after").map(str::to_owned),
        delay: fields.duration("delay").unwrap_or_default(),
        error: error(fields),
    };
    fields.finish();
    Some(step)
}

fn scripted_call(fields: &Fields<'_, '_>) -> Option<ScriptedCall> {
    let tool = fields.required("tool", "the tool's name").map(str::to_owned);
    let input = match fields.value("input").map(|value| json(fields.source, value)) {
        None => "{}".to_owned(),
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
    };
    fields.finish();
    Some(ScriptedCall { tool: tool?, input })
}

fn error(fields: &Fields<'_, '_>) -> Option<ScriptedError> {
    fields.string("error").map(|text| match text {
        "timeout" => ScriptedError::Timeout,
        _ => ScriptedError::Message(text.to_owned()),
    })
}

fn check_step(fields: &Fields<'_, '_>) -> Option<CheckStep> {
    const VERDICTS: [(&str, Verdict); 3] =
        [("yes", Verdict::Yes), ("no", Verdict::No), ("unclear", Verdict::Unclear)];
    let verdict = fields.choice("verdict", &VERDICTS).map(ScriptedAnswer::Verdict);
    let text = fields.string("text").map(|text| ScriptedAnswer::Text(text.to_owned()));
    let error = error(fields).map(ScriptedAnswer::Error);
    let delay = fields.duration("delay").unwrap_or_default();
    fields.finish();
    let given = ["verdict", "text", "error"].into_iter().filter(|key| fields.has(key)).count();
    if given != 1 {
        let message = if given == 0 { "the check answers nothing" } else { "the check answers twice" };
        fields.bad(
            "verdict",
            message,
            "one of: verdict = \"yes\" (no, unclear), text = \"...\", error = \"timeout\"",
        );
    }
    Some(CheckStep { line: fields.line(), answer: verdict.or(text).or(error)?, delay })
}

fn approval_step(fields: &Fields<'_, '_>) -> Option<ApprovalStep> {
    #[derive(Clone, Copy)]
    enum Said {
        Yes,
        No,
        Nothing,
    }
    let said = fields.choice("answer", &[("yes", Said::Yes), ("no", Said::No), ("none", Said::Nothing)]);
    let error = fields.string("error").map(str::to_owned);
    let tool = fields.string("tool").map(str::to_owned);
    let by = fields.string("by").unwrap_or("an operator").to_owned();
    let reason = fields.string("reason").map(str::to_owned);
    let payload = fields.value("payload").map(|value| json(fields.source, value).to_string());
    let delay = fields.duration("delay").unwrap_or_default();
    fields.finish();
    if fields.has("answer") == fields.has("error") {
        let message =
            if fields.has("answer") { "the operator answers twice" } else { "the operator answers nothing" };
        fields.bad("answer", message, "one of: answer = \"yes\" (no, none), error = \"...\"");
        return None;
    }
    let answered =
        |confirmed| Some(ApprovalOutcome::Answered { answer: Approval { confirmed, by, payload }, reason });
    let outcome = match (said, error) {
        (_, Some(error)) => Some(ApprovalOutcome::Failed { error }),
        (Some(Said::Yes), None) => answered(true),
        (Some(Said::No), None) => answered(false),
        (Some(Said::Nothing), None) => None,
        (None, None) => return None,
    };
    Some(ApprovalStep { line: fields.line(), tool, outcome, delay })
}

fn tool_script(fields: &Fields<'_, '_>) -> Option<ToolScript> {
    let name = fields.required("name", "the tool's name").map(str::to_owned);
    let result = fields.value("result").map(|value| ToolAnswer::Result(json(fields.source, value)));
    let error = error(fields).map(|error| match error {
        ScriptedError::Message(text) if text == "broke off" => ToolAnswer::BrokeOff,
        ScriptedError::Timeout | ScriptedError::Message(_) => ToolAnswer::Error(error),
    });
    let delay = fields.duration("delay").unwrap_or_default();
    fields.finish();
    if fields.has("result") == fields.has("error") {
        let message =
            if fields.has("result") { "the tool answers twice" } else { "the tool answers nothing" };
        fields.bad(
            "error",
            message,
            "one of: result = { ok = true, message = \"...\" }, error = \"timeout\"",
        );
    }
    Some(ToolScript { line: fields.line(), name: name?, answer: result.or(error)?, delay })
}

/// `question`, `speech`, `question#2`; absent: every question, since that is what faults are tried on.
fn target(fields: &Fields<'_, '_>) -> Target {
    let question = Target { kind: Some(UtteranceKind::Question), occurrence: None };
    let Some(text) = fields.string("on") else { return question };
    let (name, number) = text.split_once('#').map_or((text, None), |(name, number)| (name, Some(number)));
    let kind = match name.trim() {
        "question" => Some(UtteranceKind::Question),
        "speech" => Some(UtteranceKind::Speech),
        "any" => None,
        other => {
            let hint = super::fault::suggestion(other, ["question", "speech", "any"]);
            fields.bad("on", format!("`{other}` is nothing that a fault can strike"), hint);
            return question;
        }
    };
    let occurrence = number.map(|number| number.trim().parse::<u32>().ok().filter(|n| *n > 0));
    if occurrence == Some(None) {
        fields.bad("on", format!("`{text}` names no occurrence"), "the first is `#1`, the second `#2`");
    }
    Target { kind, occurrence: occurrence.flatten() }
}

fn point(fields: &Fields<'_, '_>, key: &'static str) -> Option<Point> {
    let text = fields.string(key)?;
    let point = numbers::percent(text).map(Point::Percent).or(numbers::duration(text).map(Point::After));
    if point.is_none() {
        fields.bad(
            key,
            format!("`{key}` = `{text}` is no point"),
            "a share like \"60%\", or a time like \"800ms\"",
        );
    }
    point
}

fn tts_fault(fields: &Fields<'_, '_>) -> TtsFault {
    let gap_at = point(fields, "gap_at");
    let gap = fields.duration("gap");
    if fields.has("gap_at") && !fields.has("gap") {
        fields.bad("gap_at", "`gap_at` without `gap`", "add how long it lasts: gap = \"350ms\"");
    }
    let fault = TtsFault {
        line: fields.line(),
        on: target(fields),
        fail_at: point(fields, "fail_at"),
        silence_tail: fields.duration("silence_tail").unwrap_or_default(),
        gap: gap.map(|length| (gap_at.unwrap_or(Point::Percent(50)), length)),
        lost: fields.duration("lost").unwrap_or_default(),
        delay: fields.duration("delay").unwrap_or_default(),
    };
    fields.finish();
    fault
}

fn ack_fault(fields: &Fields<'_, '_>) -> AckFault {
    let fault = AckFault {
        line: fields.line(),
        on: target(fields),
        delay: fields.duration("delay").unwrap_or_default(),
        lose: fields.flag("lose"),
        duplicate: fields.flag("duplicate"),
        after_clear: fields.choice("after_clear", &[("echo", AfterClear::Echo)]).unwrap_or_default(),
        reorder: fields.flag("reorder"),
        earlier: fields.flag("earlier"),
    };
    fields.finish();
    fault
}
