//! Conformance files: every key is taken, every other is refused with its line.

use std::fs;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use sayback_core::{QuestionBargeIn, Time, Verdict};
use sayback_replay::timing::{
    CheckReply, HashExpect, HashInput, Reask, Span, State, TimingCase, TimingEvent, load_cases, parse_hashes,
    parse_replies, parse_timing,
};

const EVERY_KEY: &str = r#"{"id": "x1", "note": "n", "transport": "rtp", "config": {"eps_ms": 20, "grace_ms": 250, "endpoint_ms": 600.5, "question_barge_in": "continuers", "adjacency": "off", "after_hangup": "run", "dtmf": true, "question_ttl_ms": 60000, "max_question_loss_ms": 200}, "question": {"hold": "h1", "preamble": [[200, 900]], "play_start": 1000, "last_audible": 4000, "buffer_end": 4300, "sent_end": 3900, "rtt_ms": null, "remote_jb_ms": 20, "assumed_rtt_ms": 300, "mark_echo": 4000, "mark_echo_cause": "clear", "paused": [[3050, 3650]], "underruns": [1, 2], "lost_ms": 80, "line_hold": [[1, 2], [3, 4]], "failed_at": 2800, "samples": 0, "device_lost_at": 3500, "input_clock_offset_ms": -80, "reopened": true}, "events": [{"seg": {"onset": 3960, "offset": 4400, "text": "yes", "stt_final_at": 5000, "rejected": true, "echo": true, "raw": true}}, {"merged": [[1, 2], [3, 4]], "text": "a b", "stt_final_at": 9}, {"partial": "ye", "t": 7}, {"check": {"started": 1, "at": 2, "raw": "Yes, absolutely"}}, {"check": {"at": 2, "verdict": "timeout"}}, {"dtmf": "1", "t": 8}, {"hangup": 9}, {"replace": "h2", "t": 10}, {"play": [1, 2], "text": "One moment.", "verbatim": false}, {"silence_followup": 9000, "verbatim": true, "play": [9000, 12000]}, {"message": "yes", "received": 900}, {"handler": [6000, 9000]}], "expect": {"state": "open", "reason": "barge_in", "check_calls": 1, "check_words": "yes", "tool_runs": 0, "model_told": true, "evidence_words": null, "evidence": "answered_then_hung_up", "horizon": 4260, "mapped_onset": 4030.25, "asked_playout": 2, "context_words": "a", "next_turn_words": "b", "hold": "h2", "reask": true}}"#;

fn case(text: &str) -> TimingCase {
    parse_timing(text, Path::new("t.jsonl")).expect("the line is a case").remove(0)
}

fn fault(text: &str) -> String {
    parse_timing(text, Path::new("t.jsonl")).expect_err("the line is no case").to_string()
}

#[test]
fn every_key_of_a_timing_case_is_read() {
    let case = case(EVERY_KEY);
    assert_eq!(case.config.endpoint, Duration::from_micros(600_500));
    assert_eq!(case.config.question_barge_in, QuestionBargeIn::Continuers);
    assert_eq!(
        case.question.whole_loop(),
        Duration::from_millis(300),
        "unmeasured: the assumed one is the whole"
    );
    assert_eq!(case.question.underruns, [Span { start: Time::from_millis(1), end: Time::from_millis(2) }]);
    assert_eq!(case.question.on_call_clock(Time::from_millis(100)), Time::from_millis(20));
    assert_eq!(case.events.len(), 12);
    let TimingEvent::Check { reply, .. } = &case.events[3] else { panic!("the fourth event is a check") };
    assert_eq!(*reply, CheckReply::Raw("Yes, absolutely".into()));
    let TimingEvent::Played(again) = &case.events[9] else { panic!("the tenth event is agent speech") };
    assert_eq!((again.followup, again.verbatim), (Some(Time::from_millis(9_000)), true));
    assert_eq!(case.expect.state, Some(State::Open));
    assert_eq!(case.expect.evidence_words, Some(None), "null says that there are none");
    assert_eq!(case.expect.mapped_onset, Some(Some(Time::from_micros(4_030_250))));
    assert_eq!(case.expect.reask, Some(Reask::Whether(true)));
}

#[test]
fn what_a_case_does_not_name_is_not_asserted() {
    let case = case(r#"{"id": "x", "question": {"rtt_ms": 240, "remote_jb_ms": 20}, "expect": {}}"#);
    assert_eq!(case.expect, Default::default());
    assert_eq!(case.question.whole_loop(), Duration::from_millis(260));
    assert_eq!(case.question.play_start, None);
}

#[test]
fn an_unknown_key_is_refused_with_its_line_at_every_depth() {
    let places = [
        (r#""id": "x1""#, r#""idd": 1, "id": "x1""#, "unknown field `idd`"),
        (r#""eps_ms": 20"#, r#""eps": 20"#, "unknown field `eps`"),
        (r#""sent_end": 3900"#, r#""send_end": 3900"#, "did you mean `sent_end`?"),
        (r#""raw": true"#, r#""rawe": true"#, "unknown field `rawe`"),
        (r#""started": 1"#, r#""startet": 1"#, "unknown field `startet`"),
        (r#""hangup": 9"#, r#""hangup": 9, "t": 3"#, "event 7 of case x1: `t` does not belong"),
        (r#""hangup": 9"#, r#""hang_up": 9"#, "unknown field `hang_up`"),
        (r#""hangup": 9"#, r#""t": 9"#, "no kind of event is named"),
        (r#""reask": true"#, r#""re_ask": true"#, "unknown field `re_ask`"),
        (r#""state": "open""#, r#""state": "opened""#, "unknown variant `opened`"),
        (r#""t": 8"#, r#""t": -8"#, "a time before the call began"),
        (r#""t": 8"#, r#""t": 1e300"#, "more than a week"),
        (r#""dtmf": "1""#, r#""dtmf": "11""#, "`11` is no key"),
        (r#""handler": [6000, 9000]"#, r#""handler": [6000, 900]"#, "ends before it starts"),
        (r#""verdict": "timeout""#, r#""verdict": "maybe""#, "`maybe` is no verdict"),
    ];
    for (from, to, message) in places {
        assert!(EVERY_KEY.contains(from), "{from}");
        let text = format!("{EVERY_KEY}\n\n{}", EVERY_KEY.replacen(from, to, 1));
        let fault = fault(&text);
        assert!(fault.starts_with("t.jsonl:3:") && fault.contains(message), "{to}\n{fault}");
    }
}

#[test]
fn all_bad_lines_are_told() {
    let fault = fault("{\n{}\n[1]\nnull");
    assert_eq!(fault.matches("t.jsonl:").count(), 4, "{fault}");
}

#[test]
fn replies_and_hashes_are_read_and_strangers_refused() {
    let row = r#"{"id": "r1", "lang": "en", "question": "q", "reply": "Yes.", "label": "unclear", "also_ok": ["no"], "note": "", "tags": ["t"], "hard": true, "context": {"since_question": ["Still there?"], "speakers": 2}}"#;
    let replies = parse_replies(row, Path::new("r.jsonl")).unwrap();
    assert_eq!((replies[0].label, &replies[0].also_ok[..]), (Verdict::Unclear, &[Verdict::No][..]));
    let error = parse_replies(&row.replace("\"hard\"", "\"hrad\""), Path::new("r.jsonl")).unwrap_err();
    assert!(error.to_string().contains("did you mean `hard`?"), "{error}");

    let rows = "{\"name\": \"a\", \"json\": \"{}\", \"canonical\": \"{}\", \"sha256\": \"44\"}\n\
                {\"name\": \"b\", \"make\": {\"string_of_bytes\": 3}, \"error\": \"too long\"}";
    let hashes = parse_hashes(rows, Path::new("h.jsonl")).unwrap();
    assert_eq!(hashes[0].input, HashInput::Json("{}".into()));
    assert_eq!(hashes[1].input.json(), "\"aaa\"");
    assert_eq!(hashes[1].expect, HashExpect::Refused("too long".into()));
    for bad in [
        "{\"name\": \"a\"}",
        "{\"name\": \"a\", \"json\": \"1\"}",
        "{\"name\": \"a\", \"json\": \"1\", \"sha\": \"\"}",
    ] {
        assert!(parse_hashes(bad, Path::new("h.jsonl")).is_err(), "{bad}");
    }
}

/// The open cases, or those of another folder in `SAYBACK_CONFORMANCE`.
#[test]
fn whole_files_are_read() {
    let open = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance");
    let folder = std::env::var_os("SAYBACK_CONFORMANCE").map_or(open, Into::into);
    let timing = load_cases(&folder.join("timing.jsonl"), parse_timing).unwrap();
    let replies = load_cases(&folder.join("replies.jsonl"), parse_replies).unwrap();
    let hashes = load_cases(&folder.join("hash.jsonl"), parse_hashes).unwrap();
    println!("{} timing, {} replies, {} hashes", timing.len(), replies.len(), hashes.len());
    assert!(!timing.is_empty() && !replies.is_empty() && !hashes.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_makes_a_reader_panic(at in 0..EVERY_KEY.len(), cut in 0_usize..30, put in ".{0,6}") {
        let to = (at + cut).min(EVERY_KEY.len());
        let text = format!("{}{put}{}", &EVERY_KEY[..at], &EVERY_KEY[to..]);
        let _ = parse_timing(&text, Path::new("x"));
        let _ = parse_replies(&text, Path::new("x"));
        let _ = parse_hashes(&text, Path::new("x"));
    }
}

/// A file that cannot be tried is refused with its place, and nothing tried is no success.
#[test]
fn a_file_that_is_no_file_of_cases_is_refused_with_its_place() {
    const ROW: &str = r#"{"id": "r1", "lang": "en", "question": "Shall I?", "reply": "Yep.", "label": "yes", "also_ok": [], "note": "n", "tags": [], "hard": false}"#;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cases");
    fs::create_dir_all(&folder).unwrap();
    let mut broken = ROW.as_bytes().to_vec();
    broken.extend(b"\n{\"id\": \"\xff\"}");
    for (name, bytes, said) in [
        ("empty", Vec::new(), ":1:1: the file has no cases"),
        ("blank", b"\n \n".to_vec(), ":1:1: the file has no cases"),
        ("bytes", broken, ":2:9: this is not UTF-8"),
        ("twice", format!("{ROW}\n\n{ROW}\n").into_bytes(), ":3:1: `r1` is already the case of line 1"),
        ("cut", format!("{ROW}\n{{\"id\": \"r2\", \"lang\"").into_bytes(), ":2:19: EOF"),
        ("label", ROW.replace("\"yes\"", "\"perhaps\"").into_bytes(), ":1:86: unknown variant `perhaps`"),
        ("key", ROW.replace("\"reply\": \"Yep.\", ", "").into_bytes(), ": missing field `reply`"),
    ] {
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        let error = load_cases(&path, parse_replies).unwrap_err().to_string();
        assert!(error.contains(said), "{name}: {error}");
    }
    assert!(load_cases(&folder, parse_replies).unwrap_err().to_string().contains("cannot be read"));
    let marked = folder.join("marked");
    fs::write(&marked, format!("\u{feff}{ROW}\r\n")).unwrap();
    assert_eq!(load_cases(&marked, parse_replies).unwrap().len(), 1);
}
