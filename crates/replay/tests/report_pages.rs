//! Reports: pages that show a call and let nothing of it act, JUnit that parses, console lines.

use std::path::Path;

use proptest::prelude::*;
use sayback_core::{Report, Time};
use sayback_replay::report::{
    CallPage, EventLog, Outcome, Recording, RunResult, Tally, call_page, junit_xml, outcome_json,
    write_outcome,
};
use sayback_replay::scenario::{Failure, Fault, unknown_parts};
use sayback_runtime::events::event_line;
use serde_json::{Value, json};

fn log(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs").join(name);
    let text = std::fs::read_to_string(path).expect("the log is part of the tests");
    text.lines().map(|line| serde_json::from_str(line).expect("a log is JSON lines")).collect()
}

fn page(title: &str, events: &[Value]) -> String {
    call_page(&CallPage { title, events, caller: None, agent: None, recording: None, failures: &[] })
}

/// Bursts of something like speech where the log says that somebody spoke.
fn sound(spans: &[(f64, f64)]) -> Vec<i16> {
    let mut samples = vec![0_i16; 16 * 24_000];
    for (from, to) in spans {
        let (from, to) = ((from * 16.0) as usize, (to * 16.0) as usize);
        for (index, sample) in samples[from..to].iter_mut().enumerate() {
            let t = index as f64 / 16_000.0;
            let shape = (t * 21.0).sin().abs() * (0.4 + 0.6 * (t * 3.1).cos().abs());
            *sample = (9_000.0 * shape * (t * 1_130.0).sin()) as i16;
        }
    }
    samples
}

/// Writes pages to look at into the folder in `SAYBACK_PAGES`, if it is set.
fn keep(name: &str, page: &str) {
    if let Some(folder) = std::env::var_os("SAYBACK_PAGES") {
        std::fs::write(Path::new(&folder).join(name), page).expect("the folder is there");
    }
}

#[test]
fn a_page_says_why_a_tool_ran_and_why_it_did_not() {
    let events = log("spoke_over_then_yes.jsonl");
    let title = "A caller who speaks over the question has not been asked; a yes after it counts";
    let text = page(title, &events);
    assert!(text.contains(
        "Done: book meeting. The caller said “Yes please.” 412 ms after the question had been heard."
    ));
    assert!(text.contains("Not done: book meeting. The caller spoke over the question (“Yes.”)."));
    assert!(text.contains("<del> for anna at example dot com?</del>"), "what was not heard is struck out");
    keep("text.html", &text);

    let caller = sound(&[(2520.0, 5890.0), (10420.0, 10770.0), (16630.0, 17190.0)]);
    let agent = sound(&[
        (120.0, 1850.0),
        (7040.0, 7870.0),
        (8120.0, 10440.0),
        (11840.0, 15940.0),
        (19030.0, 22180.0),
    ]);
    let wav = b"RIFF\0\0\0\0WAVE";
    let recording = Some(Recording { mime: "audio/wav", bytes: wav });
    let sounding = CallPage {
        title,
        events: &events,
        caller: Some(&caller),
        agent: Some(&agent),
        recording,
        failures: &[],
    };
    let sounding = call_page(&sounding);
    assert!(sounding.contains("class=\"wave caller-wave\" d=\"M"), "a wave is drawn");
    assert!(sounding.contains("src=\"data:audio/wav;base64,UklGRgAAAABXQVZF\""));
    keep("audio.html", &sounding);
}

#[test]
fn a_page_shows_what_was_unclear_ignored_and_unmet() {
    let failures = [failure()];
    let events = log("unclear_then_no.jsonl");
    let title = "A yes with a condition is no yes";
    let text = call_page(&CallPage {
        title,
        events: &events,
        caller: None,
        agent: None,
        recording: None,
        failures: &failures,
    });
    assert!(text.contains("Not done: transfer. The caller said “No, leave it for now.”, which is no yes."));
    assert!(text.contains("lowered from yes: condition"));
    assert!(text.contains("expected tool.started"));
    assert!(text.contains("not taken for the caller&#39;s words: no_speech"));
    keep("unclear.html", &text);
}

#[test]
fn no_text_of_a_call_becomes_markup() {
    let hostile = "</title></text><script>alert(1)</script><img src=x onerror=alert(1)>\"' onload='x {{SCRIPT}} \u{202e}";
    let mut events = log("spoke_over_then_yes.jsonl");
    for event in &mut events {
        for (key, value) in event.as_object_mut().expect("an event is an object") {
            if key != "event" && (value.is_string() || value.is_object()) {
                *value = json!(hostile);
            }
        }
    }
    let failures = [Failure { found: hostile.into(), expected: hostile.into(), ..failure() }];
    let recording = Some(Recording { mime: hostile, bytes: b"x" });
    let page = call_page(&CallPage {
        title: hostile,
        events: &events,
        caller: None,
        agent: None,
        recording,
        failures: &failures,
    });
    assert_eq!(page.matches("<script").count(), 1, "the page's own script only");
    assert_eq!(page.matches("(function () {").count(), 1, "a mark in a text is not filled");
    for markup in ["<img", "\" onload", "' onload", "\u{202e}"] {
        assert!(!page.contains(markup), "{markup}");
    }
    keep("hostile.html", &page);
}

#[test]
fn the_logs_of_these_tests_are_real_ones() {
    for name in ["spoke_over_then_yes.jsonl", "unclear_then_no.jsonl"] {
        let unknown: Vec<_> = log(name).iter().flat_map(unknown_parts).collect();
        assert_eq!(unknown, Vec::<String>::new(), "{name}");
    }
    assert_eq!(unknown_parts(&json!({ "event": "dtmf", "key": 1 })), ["dtmf: key"]);
    assert_eq!(unknown_parts(&json!({ "event": "dtmg" })), ["dtmg"]);
}

#[test]
fn no_request_leaves_a_page() {
    let page = page("t", &log("spoke_over_then_yes.jsonl"));
    for reference in ["http:", "https:", "src=\"/", "href=\"h", "@import", "fetch(", "url(//"] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn a_recording_that_is_too_large_is_left_out() {
    let bytes = vec![0; (4 << 20) + 1];
    let recording = Some(Recording { mime: "audio/wav", bytes: &bytes });
    let page =
        call_page(&CallPage { title: "t", events: &[], caller: None, agent: None, recording, failures: &[] });
    assert!(!page.contains("<audio"));
    assert!(page.contains("Nothing was asked for a yes, and no tool ran."));
}

fn failure() -> Failure {
    Failure {
        path: "tests/calls/x.call.toml".into(),
        line: 12,
        column: 1,
        expected: "tool.started with tool = \"transfer\"".into(),
        found: "  no tool.started in the log of 30 events\n  > 19800.0 ms  question.dropped".into(),
    }
}

fn outcomes() -> Vec<Outcome> {
    let fault = Fault {
        path: "y".into(),
        line: 3,
        column: 2,
        message: "no `title`".into(),
        hint: "one <sentence>".into(),
    };
    let outcome = |title: &str, result| Outcome {
        path: "tests/calls/x.call.toml".into(),
        title: title.into(),
        result,
        call_ms: 23_100.0,
        events: 40,
    };
    vec![
        outcome("passes", RunResult::Passed),
        outcome("fails & <says> \"why\"\u{1}", RunResult::Failed(vec![failure(), failure()])),
        outcome("cannot\nbe read", RunResult::Unusable(vec![fault])),
    ]
}

#[test]
fn console_lines_tell_each_scenario_and_the_sum() {
    let mut out = Vec::new();
    let mut tally = Tally::default();
    for outcome in outcomes() {
        write_outcome(&mut out, &outcome).unwrap();
        tally.add(&outcome);
    }
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.starts_with("ok      tests/calls/x.call.toml  passes  (23.1 s, 40 events)\nFAILED  "),
        "{text}"
    );
    assert!(text.contains("    tests/calls/x.call.toml:12:1: expected tool.started"), "{text}");
    assert!(text.contains("    y:3:2: no `title`\n      hint: one <sentence>"), "{text}");
    assert_eq!((tally.to_string(), tally.exit_status()), ("1 passed, 2 failed".into(), 2));
    assert_eq!(outcome_json(&outcomes()[1])["problems"][0]["line"], 12);
}

#[test]
fn junit_is_valid_xml_with_every_result() {
    let xml = junit_xml(&outcomes());
    let names = elements(&xml).expect("the XML is well formed");
    let count = |name: &str| names.iter().filter(|n| *n == name).count();
    assert_eq!((count("testcase"), count("failure"), count("error")), (3, 2, 1));
    assert!(xml.contains("tests=\"3\" failures=\"1\" errors=\"1\" time=\"69.300\""), "{xml}");
    assert!(xml.contains("name=\"fails &amp; &lt;says&gt; &quot;why&quot;\u{fffd}\""), "{xml}");
}

#[test]
fn an_event_line_begins_with_its_time_and_name() {
    let line = event_line(Time::from_micros(1_234_500), &Report::Dtmf { digit: '1' });
    let mut log = EventLog::new(Vec::new());
    log.write(&line).unwrap();
    log.flush().unwrap();
    assert_eq!(line.to_string(), r#"{"t_ms":1234.5,"event":"dtmf","digit":"1"}"#);
}

/// Names of all elements, or why the text is no well-formed XML. As strict as our own output needs.
fn elements(xml: &str) -> Result<Vec<String>, String> {
    let mut open: Vec<String> = Vec::new();
    let mut names = Vec::new();
    let mut rest =
        xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").ok_or("no declaration")?;
    while let Some(start) = rest.find('<') {
        text_is_escaped(&rest[..start])?;
        let end = rest[start..].find('>').ok_or("a tag without an end")? + start;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop().as_deref() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
            continue;
        }
        let (name, attributes) = tag.trim_end_matches('/').split_once(' ').unwrap_or((tag, ""));
        if attributes.matches('"').count() % 2 != 0 || attributes.chars().any(|c| c.is_control() || c == '<')
        {
            return Err(format!("attributes of <{tag}>"));
        }
        text_is_escaped(attributes)?;
        names.push(name.to_owned());
        if !tag.ends_with('/') {
            open.push(name.to_owned());
        }
    }
    if open.is_empty() { Ok(names) } else { Err(format!("{open:?} are left open")) }
}

fn text_is_escaped(text: &str) -> Result<(), String> {
    for (at, _) in text.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        if !known.iter().any(|entity| text[at..].starts_with(entity)) {
            return Err(format!("a bare & in {text:?}"));
        }
    }
    match text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        Some(c) => Err(format!("control character {c:?}")),
        None => Ok(()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn junit_is_well_formed_whatever_a_title_says(title in any::<String>(), found in any::<String>()) {
        let failure = Failure { expected: title.clone(), found, ..failure() };
        let result = RunResult::Failed(vec![failure]);
        let outcome = Outcome { path: "p".into(), title, result, call_ms: 0.0, events: 0 };
        prop_assert_eq!(elements(&junit_xml(&[outcome])).map(|names| names.len()), Ok(4));
    }

    #[test]
    fn no_log_makes_a_page_panic(
        rows in proptest::collection::vec(("(call|caller|agent|question|tool|answer|model|silence)\\.(started|ended|speech|words|said|heard|held|dropped|checked|told|finished|paused|resumed)", -1e12_f64..1e12, -1e12_f64..1e12, 0..3_u32, any::<bool>(), ".{0,12}"), 0..20),
        sound in proptest::collection::vec(any::<i16>(), 0..400),
    ) {
        let event = |(name, t, u, id, flag, text): (String, f64, f64, u32, bool, String)| json!({
            "t_ms": t, "event": name, "onset_ms": u, "offset_ms": t, "latest_ms": u, "earliest_ms": t, "question": id,
            "utterance": id, "call_id": text, "text": text, "tool": text, "words": text, "margin_ms": t, "final": flag,
            "complete": flag, "ok": flag, "reason": "barge_in", "verdict": "yes", "confirmed_by": text,
        });
        let events: Vec<_> = rows.into_iter().map(event).collect();
        let page = call_page(&CallPage { title: "t", events: &events, caller: Some(&sound), agent: None, recording: None, failures: &[] });
        prop_assert!(!page.contains("NaN") && !page.contains("inf\""));
    }
}
