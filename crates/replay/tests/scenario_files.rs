//! Scenario files: what is read from them, what is refused and how it is said, and what an unmet expectation says.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use sayback_core::{EvidenceClass, Time, UtteranceKind, Verdict};
use sayback_replay::scenario::{
    Act, AfterClear, AnchorEvent, ScriptedAnswer, ScriptedError, SpeechMode, ToolAnswer, Transport, When,
    check_expectations, parse_scenario,
};
use serde_json::{Value, json};

const WHOLE: &str = r##"
title = "A caller who speaks over the question has not been asked"
agent = "../../configs/clinic.toml"
speech = "text"
limit = "1m"

[path]
transport = "sip"
round_trip = "180ms"
output_buffer = "60ms"
evidence = "rtcp"

[[caller]]
at = "1.2s"
audio = "audio/book.wav"
text = "Book me for Thursday at three, anna at example dot com."

[[caller]]
after = "question.started + 400ms"
text = "yes"
length = "350ms"
transcript_delay = "700ms"
confidence = 40

[[caller]]
after = "question.heard#2 - 200ms"
dtmf = "1#"

[[caller]]
after = "question.heard + 1s"
noise = "400ms"

[[caller]]
at = "9s"
hold = "2s"

[[caller]]
at = "20s"
hangup = true

[[model]]
say = "Let me check."
call = { tool = "book_meeting", input = { start = "2026-12-03T15:00", email = "anna@example.com" } }

[[model]]
calls = [{ tool = "a", input = '{"broken":' }, { tool = "b" }]
delay = "300ms"
error = "timeout"

[[check]]
verdict = "yes"

[[check]]
text = "garbage"
delay = "300ms"

[[tool]]
name = "book_meeting"
result = { ok = true, message = "Booked." }
delay = "200ms"

[[tts]]
on = "question#1"
fail_at = "60%"
silence_tail = "400ms"
gap = "350ms"

[[ack]]
after_clear = "echo"
lose = true
reorder = true
earlier = true

[[expect]]
event = "question.dropped"
reason = "barge_in"

[[expect]]
never = "tool.started"

[[expect]]
event = "model.told"
contains = "again"
within = "2s"
"##;

fn faults(text: &str) -> Vec<String> {
    let error = parse_scenario(text, Path::new("t.call.toml")).expect_err("the file has faults");
    error.faults().iter().map(|fault| format!("{fault:#}")).collect()
}

/// A scenario with these lines added to the least that a file needs.
fn least(lines: &str) -> String {
    format!("title = \"t\"\nagent = \"a.toml\"\n{lines}\n[[expect]]\nevent = \"call.ended\"\n")
}

#[test]
fn every_key_is_read() {
    let scenario = parse_scenario(WHOLE, Path::new("tests/calls/x.call.toml")).unwrap();
    assert_eq!(scenario.agent, Path::new("tests/calls/../../configs/clinic.toml"));
    assert_eq!(scenario.speech, SpeechMode::Text);
    assert_eq!(scenario.line.transport, Transport::Sip);
    assert_eq!(scenario.line.evidence, EvidenceClass::Rtcp);
    assert_eq!(scenario.line.round_trip, Some(Duration::from_millis(180)));
    assert_eq!(scenario.callers.len(), 7, "each key of a dtmf text is an act");
    assert_eq!(scenario.callers[0].when, When::At(Time::from_millis(1_200)));
    let Act::Speech(yes) = &scenario.callers[1].act else { panic!("the second act is speech") };
    assert_eq!((yes.length, yes.confidence), (Duration::from_millis(350), Some(40)));
    let When::After(first) = scenario.callers[2].when else { panic!("a key waits for an event") };
    let When::After(second) = scenario.callers[3].when else { panic!("a key waits for an event") };
    assert_eq!(
        (first.event, first.occurrence, first.offset_micros),
        (AnchorEvent::QuestionHeard, 2, -200_000)
    );
    assert_eq!(second.offset_micros, 50_000);
    assert_eq!(scenario.callers[3].act, Act::Digit('#'));
    let model = scenario.model.unwrap();
    assert_eq!(model[0].calls[0].input, r#"{"start":"2026-12-03T15:00","email":"anna@example.com"}"#);
    assert_eq!(model[1].calls[0].input, r#"{"broken":"#, "a text of its own is handed on as it is");
    assert_eq!(model[1].calls[1].input, "{}");
    assert_eq!(model[1].error, Some(ScriptedError::Timeout));
    let checks = scenario.checks.unwrap();
    assert_eq!(checks[0].answer, ScriptedAnswer::Verdict(Verdict::Yes));
    assert_eq!(checks[1].answer, ScriptedAnswer::Text("garbage".into()));
    assert_eq!(scenario.tools[0].answer, ToolAnswer::Result(json!({ "ok": true, "message": "Booked." })));
    assert_eq!(scenario.tts_faults[0].on.kind, Some(UtteranceKind::Question));
    assert_eq!(scenario.tts_faults[0].on.occurrence, Some(1));
    let ack = &scenario.ack_faults[0];
    assert!(ack.lose && ack.reorder && ack.earlier && !ack.duplicate);
    assert_eq!(ack.after_clear, AfterClear::Echo);
    assert_eq!(scenario.limit, Duration::from_secs(60));
}

#[test]
fn a_file_without_scripts_leaves_the_model_and_the_check_to_the_agent() {
    let scenario = parse_scenario(&least(""), Path::new("t.call.toml")).unwrap();
    assert_eq!((scenario.model, scenario.checks), (None, None));
    assert_eq!(scenario.line.evidence, EvidenceClass::Device);
    let scenario = parse_scenario(&least("model = []"), Path::new("t.call.toml")).unwrap();
    assert_eq!(scenario.model, Some(Vec::new()), "an empty script is a script");
}

#[test]
fn all_faults_are_told_at_once_with_place_and_remedy() {
    let text = "titel = \"x\"\nagent = \"a.toml\"\n\n[[caller]]\nat = \"1,2s\"\ntxet = \"yes\"\n\n\
                [[expect]]\nevent = \"question.droped\"\n\n[[expect]]\nnever = \"question.dropped\"\nreson = \"barge_in\"\n";
    assert_eq!(
        faults(text),
        [
            "t.call.toml:1:1: the scenario has no `title`\n  hint: one sentence that says what it shows",
            "t.call.toml:1:1: the scenario has no key `titel`\n  hint: did you mean `title`?",
            "t.call.toml:4:1: the caller does nothing\n  hint: one of: text, noise, dtmf, message, hangup, hold, rewind, \
             reopen",
            "t.call.toml:5:6: `at` = `1,2s` is no duration\n  hint: write a number with its unit, in quotes: \
             \"400ms\", \"1.2s\", \"1m30s\"",
            "t.call.toml:6:1: [[caller]] has no key `txet`\n  hint: did you mean `text`?",
            "t.call.toml:9:9: `question.droped` is no event\n  hint: did you mean `question.dropped`?",
            "t.call.toml:13:1: `question.dropped` has no field `reson`\n  hint: did you mean `reason`?",
        ]
    );
}

#[test]
fn each_kind_of_fault_is_refused() {
    let cases = [
        ("[[caller]]\ntext = \"yes\"", "does not say when"),
        ("[[expect]]\nnever = \"question.dropped\"\nreason = \"barge_inn\"", "did you mean `barge_in`?"),
        (
            "[[expect]]\nnever = \"answer.checked\"\nverdict = \"Yes\"",
            "`verdict` of `answer.checked` is never",
        ),
        ("[[expect]]\nevent = \"agent.heard\"\nevidence = \"divice\"", "did you mean `device`?"),
        ("[[caller]]\nat = \"1s\"\nafter = \"call.started\"\ntext = \"yes\"", "both `at` and `after`"),
        ("[[caller]]\nat = \"1s\"\ntext = \"yes\"\nnoise = \"1s\"", "two things at once: text and noise"),
        ("[[caller]]\nat = \"1s\"\ntext = \" \"", "`text` is empty"),
        ("[[caller]]\nat = \"1s\"\naudio = \"yes.wav\"", "the caller does nothing"),
        ("[[caller]]\nat = \"1s\"\ndtmf = \"x\"", "`x` is no key"),
        ("[[caller]]\nat = \"1s\"\ndtmf = 1", "`dtmf` is an integer, expected a string"),
        ("[[caller]]\nat = \"1s\"\nhangup = false", "can only be true"),
        ("[[caller]]\nat = \"1s\"\nhold = \"1s\"\nlength = \"1s\"", "`length` goes with `text` only"),
        ("[[caller]]\nat = \"1s\"\ntext = \"yes\"\nconfidence = 101", "`confidence` is out of range"),
        ("[[caller]]\nafter = \"tool.started - 1s\"\ntext = \"yes\"", "nothing can happen before"),
        ("[path]\ntransport = \"sipp\"", "`sipp` is no transport"),
        ("[path]\nlatency = \"1s\"", "[path] has no key `latency`"),
        ("[[check]]\nverdict = \"maybe\"", "`maybe` is no verdict"),
        ("[[check]]\ndelay = \"1s\"", "the check answers nothing"),
        ("[[tool]]\nname = \"a\"\nresult = 1\nerror = \"timeout\"", "the tool answers twice"),
        ("[[tool]]\nresult = 1", "[[tool]] has no `name`"),
        ("[[tool]]\nname = \"a\"\nresult = 99999999999999999999", "a number that JSON cannot hold"),
        ("[[tool]]\nname = \"a\"\nresult = nan", "a number that JSON cannot hold"),
        ("[[model]]\ncall = { input = {} }", "[call] has no `tool`"),
        ("[[model]]\ncall = { tool = \"a\" }\ncalls = []", "both `call` and `calls`"),
        ("[[tts]]\nfail_at = \"160%\"", "is no point"),
        ("[[tts]]\non = \"qestion\"", "nothing that a fault can strike"),
        ("[[tts]]\non = \"question#0\"", "names no occurrence"),
        ("[[tts]]\ngap_at = \"5%\"", "`gap_at` without `gap`"),
        ("[[ack]]\nlose = \"yes\"", "`lose` is a string, expected true or false"),
        ("caller = 3", "`caller` is an integer, expected a list of tables"),
        ("caller = [3]", "[[caller]] is no table"),
        ("[[expect]]\nevent = \"dtmf\"\nnever = \"dtmf\"", "both `event` and `never`"),
        ("[[expect]]\nreason = \"x\"", "expects no event"),
        ("[[expect]]\nnever = \"dtmf\"\nwithin = \"1s\"", "`within` does not go with `never`"),
        ("[[expect]]\nevent = \"question.heard\"\nlatest_ms = { min = 3, max = 2 }", "no range of numbers"),
        ("title = \"again\"", "duplicate key"),
        ("= = =", ""),
    ];
    for (lines, message) in cases {
        let faults = faults(&least(lines));
        assert!(faults.iter().any(|fault| fault.contains(message)), "{lines}\n{faults:#?}");
        assert!(faults.iter().all(|fault| fault.contains("hint: ")), "{lines}\n{faults:#?}");
    }
    assert!(faults("title = \"t\"\nagent = \"a\"")[0].contains("expects nothing"));
}

fn unmet(expects: &str, events: &[Value]) -> Vec<String> {
    let text = format!("title = \"t\"\nagent = \"a.toml\"\n{expects}");
    let scenario = parse_scenario(&text, Path::new("t.call.toml")).expect("the file is in order");
    check_expectations(&scenario.path, &scenario.expects, events).iter().map(ToString::to_string).collect()
}

fn log() -> Vec<Value> {
    vec![
        json!({ "t_ms": 0.0, "event": "call.started", "call": "c", "transport": "sip" }),
        json!({ "t_ms": 1000.0, "event": "question.started", "question": 1, "tool": "book", "text": "Shall I?" }),
        json!({ "t_ms": 1500.0, "event": "model.told", "text": "Call the tool AGAIN." }),
        json!({ "t_ms": 2000.0, "event": "question.dropped", "question": 1, "reason": "declined" }),
        json!({ "t_ms": 4000.0, "event": "model.told", "text": "again, please" }),
        json!({ "t_ms": 4100.0, "event": "tool.started", "call_id": "x", "tool": "book", "input": { "n": 3, "who": "Anna" } }),
        json!({ "t_ms": 9000.0, "event": "call.ended", "reason": "hangup" }),
    ]
}

#[test]
fn the_example_in_the_documentation_is_in_order() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let docs = std::fs::read_to_string(path).expect("the documentation is part of the project");
    let example =
        docs.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("it has an example");
    let scenario = parse_scenario(example, Path::new("early-yes.call.toml")).unwrap();
    let place = format!("early-yes.call.toml:{}:1: expected question.dropped", scenario.expects[0].line);
    assert!(docs.contains(&place), "{place}");
}

#[test]
fn what_happened_is_found() {
    let met = "[[expect]]\nevent = \"question.started\"\n[[expect]]\nevent = \"model.told\"\ncontains = \"again\"\n\
               [[expect]]\nevent = \"tool.started\"\nwithin = \"100ms\"\ninput = { n = 3.0, who = { contains = \"ann\" } }\n\
               [[expect]]\nevent = \"model.told\"\ncount = 2\n[[expect]]\nnever = \"question.dropped\"\nreason = \"barge_in\"\n\
               [[expect]]\nevent = \"call.ended\"\nt_ms = { min = 8000 }";
    assert_eq!(
        unmet(met, &log()),
        Vec::<String>::new(),
        "the second `model.told` is the one that fits `within`"
    );
}

#[test]
fn an_unmet_expectation_tells_what_happened_instead() {
    let failures = unmet("[[expect]]\nevent = \"question.dropped\"\nreason = \"barge_in\"", &log());
    let expected = r#"t.call.toml:3:1: expected question.dropped with reason = "barge_in"
  closest: the one at 2000.0 ms, where reason is "declined", expected "barge_in"
          0.0 ms  call.started      call="c" transport="sip"
       1000.0 ms  question.started  question=1 tool="book" text="Shall I?"
       1500.0 ms  model.told        text="Call the tool AGAIN."
  >    2000.0 ms  question.dropped  question=1 reason="declined""#;
    assert!(failures[0].replace("   > ", "  > ").starts_with(expected), "{}", failures[0]);
}

#[test]
fn order_time_count_and_absence_are_told_apart() {
    let early =
        unmet("[[expect]]\nevent = \"tool.started\"\n[[expect]]\nevent = \"question.started\"", &log());
    assert!(early[0].contains("it came too early: at 1000.0 ms"), "{}", early[0]);
    let late = unmet(
        "[[expect]]\nevent = \"question.dropped\"\n[[expect]]\nevent = \"call.ended\"\nwithin = \"2s\"",
        &log(),
    );
    assert!(late[0].contains("it came too late: at 9000.0 ms, 7000.0 ms after"), "{}", late[0]);
    let never = unmet("[[expect]]\nnever = \"tool.started\"\ntool = \"book\"", &log());
    assert!(never[0].contains("but it happened at 4100.0 ms"), "{}", never[0]);
    let count = unmet("[[expect]]\nevent = \"model.told\"\ncount = 1", &log());
    assert!(count[0].contains("but there are 2"), "{}", count[0]);
    let absent = unmet("[[expect]]\nevent = \"dtmf\"", &log());
    assert!(absent[0].contains("no dtmf in the log of 7 events"), "{}", absent[0]);
    let empty = unmet("[[expect]]\nevent = \"dtmf\"\n[[expect]]\nnever = \"dtmf\"", &[]);
    assert_eq!(empty.len(), 1);
}

#[test]
fn one_unmet_expectation_does_not_hide_the_next() {
    let failures = unmet(
        "[[expect]]\nevent = \"dtmf\"\n[[expect]]\nevent = \"question.started\"\n[[expect]]\nevent = \"silence.followup\"",
        &log(),
    );
    assert_eq!(failures.len(), 2);
    assert!(failures[1].starts_with("t.call.toml:7:1: expected silence.followup"), "{}", failures[1]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,300}") {
        let _ = parse_scenario(&text, Path::new("x"));
    }

    #[test]
    fn no_damage_to_a_whole_file_makes_the_reader_panic(at in 0..WHOLE.len(), cut in 0_usize..40, put in ".{0,8}") {
        let to = (at + cut).min(WHOLE.len());
        let text = format!("{}{put}{}", &WHOLE[..at], &WHOLE[to..]);
        match parse_scenario(&text, Path::new("x")) {
            Ok(scenario) => prop_assert!(!scenario.expects.is_empty()),
            Err(error) => prop_assert!(error.faults().iter().all(|fault| fault.line >= 1 && fault.column >= 1)),
        }
    }

    #[test]
    fn no_value_in_any_place_makes_the_reader_panic(
        section in "(path|caller|model|check|tool|tts|ack|expect|title|limit)",
        key in "(at|after|text|noise|dtmf|call|calls|input|event|never|count|within|on|fail_at|result|verdict)",
        value in "(\"[a-z0-9.#+ -]{0,20}\"|-?[0-9]{1,25}|[0-9]{1,3}\\.[0-9]{1,3}|true|nan|inf|\\[\\]|\\{\\}|\\{ a = 1 \\}|1979-05-27)",
    ) {
        for text in [format!("[[{section}]]\n{key} = {value}"), format!("[{section}]\n{key} = {value}"), format!("{section} = {value}")] {
            let _ = parse_scenario(&text, Path::new("x"));
        }
    }
}
