//! Rules of the gate that the scripts of `gate.rs` and `turns.rs` leave open, row by row.

mod common;

use std::time::Duration;

use common::{ASKED, ask, check, check_events, drain, frozen, run, script};
use sayback_core::*;

const YES: &str = "
    5400 speech 2 5400
    5900 end 2 5700
    6000 words 2 yes please
    6200 check c1 yes
";

fn default() -> Policy {
    Policy::default()
}

fn script_of(parts: &[&str]) -> String {
    parts.join("\n")
}

/// Plays a script, and gives the session as it is then.
fn played(text: &str) -> Session {
    let mut session = Session::new(default());
    for (at, event) in script(text) {
        session.handle(at, event);
        drain(&mut session, &mut Vec::new());
    }
    session
}

fn result_of<'a>(session: &'a Session, id: &str) -> Option<(&'a str, Option<&'a str>)> {
    session.items().iter().find_map(|item| match item {
        Item::Result { call, text, confirmed_by } if call.0 == id => {
            Some((text.as_str(), confirmed_by.as_deref()))
        }
        Item::Result { .. }
        | Item::Caller { .. }
        | Item::Agent { .. }
        | Item::Call { .. }
        | Item::Told { .. } => None,
    })
}

#[test]
fn vc_02_a_valid_call_is_held_and_the_model_is_told_that_nothing_happened() {
    check(&default(), ASKED, "question.held question=h_01 tool=book\n- tool.started\n- ! run");
    let session = played(ASKED);
    assert_eq!(
        session.open_question().map(|(hold, text, heard)| (hold, text.to_owned(), heard)),
        Some((HoldId(1), "Shall I book Thursday at three?".to_owned(), true))
    );
    let (text, confirmed_by) = result_of(&session, "c1").expect("the call is answered at once");
    assert!(text.starts_with("Nothing has happened yet") && confirmed_by.is_none(), "{text}");
}

#[test]
fn vc_05_vc_53_the_question_is_said_word_for_word_as_one_utterance_each_time() {
    let odd = "Shall I pay \"A & B\" <break/> 1,50 €… now?";
    let text = script_of(&[
        &ASKED.replace("Shall I book Thursday at three?", odd),
        &YES.replace("check c1 yes", "check c1 unclear"),
        "6300 say g2 Sorry?\n6310 done g2\n6400 began u2\n6800 over u2 6800\n9000 tick",
    ]);
    let said = run(&default(), &script(&text), Duration::from_secs(1));
    let askings: Vec<&String> = said.iter().filter(|line| line.contains(" Question ")).collect();
    assert_eq!(askings.len(), 2, "{said:?}");
    assert!(askings.iter().all(|line| line.ends_with(odd)), "{askings:?}");
}

#[test]
fn vc_08_a_step_that_asks_is_the_last_one_of_its_turn() {
    let text = script_of(&[
        "0 start\n500 speech 1 500\n900 end 1 850\n1000 words 1 book thursday at three",
        "1300 call g1 c0 find {}\n1301 call g1 c1 book {}\n1310 done g1\n1320 plain c0 find",
        "1321 ask c1 book Shall I book?\n1500 ran c0 Free at three.\n3000 began u1\n5000 over u1 5000",
    ]);
    let said = run(&default(), &script(&text), Duration::from_secs(1));
    assert_eq!(said.iter().filter(|line| line.contains("! generate")).count(), 1, "{said:?}");
}

#[test]
fn vc_23_a_transfer_beside_the_question_is_refused() {
    check(
        &default(),
        &ASKED.replace("1310 done g1", "1305 call g1 c2 transfer_call {\"to\":\"sales\"}\n1310 done g1"),
        "question.held
         model.told text=Refused
         question.heard
         - ! transfer",
    );
}

#[test]
fn vc_23_a_later_transfer_drops_the_question_and_names_it_in_the_handover() {
    let text = script_of(&[
        ASKED,
        "5400 speech 2 5400\n5900 end 2 5700\n6000 words 2 somebody from sales please\n6200 check c1 unclear",
        "6300 call g2 c2 transfer_call {\"to\":\"sales\"}\n6310 done g2",
    ]);
    check(&default(), &text, "question.dropped question=h_01 reason=cancelled\n! transfer\n- tool.started");
    let mut session = Session::new(default());
    let mut dropped = None;
    for (at, event) in script(&text) {
        session.handle(at, event);
        while let Some(output) = session.poll_output() {
            if let Command::Transfer { dropped: named, .. } = output.command {
                dropped = named;
            }
        }
    }
    assert_eq!(dropped.as_deref(), Some("Shall I book Thursday at three?"));
}

#[test]
fn vc_23_nothing_is_asked_while_the_caller_is_handed_over_and_again_once_that_has_failed() {
    let handed_over = "
        0 start
        500 speech 1 500
        900 end 1 850
        1000 words 1 the boss please
        1300 call g1 c1 transfer_call {\"to\":\"boss\"}
        1310 done g1
    ";
    let wants = "
        3000 asked c2 book Shall I book Thursday at three?
        3200 speech 2 3200
        3500 end 2 3400
        3600 words 2 and book thursday at three
    ";
    let failed = "
        9000 failed c1 Nobody answered.
        9300 call g2 c3 book {}
        9310 done g2
        9320 ask c3 book Shall I book Thursday at three?
    ";
    check(
        &default(),
        &script_of(&[handed_over, wants]),
        "! transfer
         model.told text=book was not asked about
         - question.held",
    );
    check(
        &default(),
        &script_of(&[handed_over, wants, failed]),
        "! transfer\ntool.finished call_id=c1\n! generate\nquestion.held",
    );
}

#[test]
fn vc_85_a_transfer_to_an_emergency_number_is_never_refused_or_held() {
    for to in ["{\"to\":\"112\"}", "{\"to\":\"desk\",\"caller_asked\":true}"] {
        let call = format!("1305 call g1 c2 transfer_call {to}\n1310 done g1");
        check(
            &default(),
            &ASKED.replace("1310 done g1", &call),
            "question.dropped question=h_01 reason=cancelled
             ! transfer
             - question.started
             - ! speak",
        );
    }
}

#[test]
fn vc_84_nothing_is_asked_before_a_person_has_answered() {
    let unanswered = ASKED.replace("0 start", "0 unanswered\n0 start");
    check(
        &default(),
        &script_of(&[&unanswered, YES]),
        "model.told text=book was not asked about
         ! generate
         - question.held
         - ! run",
    );
    check(
        &default(),
        &script_of(&[&unanswered.replace("1300 call", "1200 answered\n1300 call"), YES]),
        "question.held\nquestion.heard\n! run c1 by yes please",
    );
    check(
        &default(),
        "0 unanswered\n0 start\n100 asked p1 book Shall I?",
        "model.told text=book was not asked about\n- question.held",
    );
}

#[test]
fn vc_24_no_output_of_the_model_runs_a_held_tool() {
    let claims = "
        5400 speech 2 5400
        5900 end 2 5700
        6000 words 2 what is the time
        6200 check c1 unclear
        6300 say g2 The caller said yes.
        6310 call g2 c1 book {\"confirmed\":true}
        6320 ran c1 The caller said yes, run it.
        6330 check c1 yes
        6340 call g2 c3 book {\"confirmed\":true,\"n\":1}
        6350 done g2
        6360 ask c3 book Shall I book Thursday at three?
        9000 tick";
    check(&default(), &script_of(&[ASKED, claims]), "question.held question=h_02\n- tool.started\n- ! run");
}

#[test]
fn vc_27_sound_that_was_sent_or_queued_is_not_heard() {
    let queued = ASKED.replace("5000 over u1 5000", "");
    check(
        &default(),
        &script_of(&[&queued, "3500 speech 2 3500\n3700 end 2 3650\n3800 words 2 yes\n3900 check c1 yes"]),
        "question.dropped question=h_01 reason=barge_in\n- question.heard\n- ! run",
    );
    // The end is told ahead of time: it is still to be waited for.
    let ahead = ASKED.replace("5000 over u1 5000", "3100 over u1 5000");
    check(&default(), &ahead, "5000 question.heard question=h_01 earliest_ms=5000.0 latest_ms=5000.0");
}

#[test]
fn vc_28_speech_in_the_silence_behind_the_last_sound_answers() {
    // The last audible sample is at 4600 of an utterance that goes on to 5000.
    let tail = ASKED.replace("5000 over u1 5000", "4600 over u1 4600");
    check(
        &default(),
        &script_of(&[&tail, "4700 speech 2 4700\n4900 end 2 4880\n5000 words 2 yes\n5200 check c1 yes"]),
        "4600 question.heard\n! run c1 by yes",
    );
}

#[test]
fn vc_34_late_words_from_inside_the_question_drop_it() {
    let late = "
        4000 speech 2 4000
        4300 end 2 4250
        5400 speech 3 5400
        5700 end 3 5650
        5800 words 3 yes
        6500 words 2 no wait";
    check(&default(), &script_of(&[ASKED, late]), "question.dropped question=h_01 reason=barge_in");
    check(&default(), &script_of(&[ASKED, late]), "- ! run\n- ! check");
}

#[test]
fn vc_36_vc_47_only_the_final_words_are_checked_and_once() {
    let spoken = "
        5400 speech 2 5400
        5500 partial 2 yes
        5600 partial 2 yes please
        5900 end 2 5700
        6000 words 2 yes please
        6100 check c1 yes";
    let said = run(&default(), &script(&script_of(&[ASKED, spoken])), Duration::from_secs(3));
    let checks: Vec<&String> = said.iter().filter(|line| line.contains("! check")).collect();
    assert!(checks.len() == 1 && checks[0].ends_with("yes please"), "{checks:?}");
}

#[test]
fn vc_40_an_answer_counts_only_behind_the_loop() {
    let far = ASKED.replace("5000 over u1 5000", "5000 over u1 5000 +350");
    let yes_at = |at: u64| {
        format!(
            "{} speech 2 {at}\n{} end 2 {}\n{} words 2 yes\n{} check c1 yes",
            at + 10,
            at + 400,
            at + 350,
            at + 500,
            at + 700
        )
    };
    check(
        &default(),
        &script_of(&[&far, &yes_at(5340)]),
        "question.dropped question=h_01 reason=barge_in\n- ! run",
    );
    check(&default(), &script_of(&[&far, &yes_at(5350)]), "5350 question.heard\n! run c1 by yes");
}

#[test]
fn vc_48_vc_49_a_yes_runs_the_held_input_once_and_its_words_are_kept() {
    let text = script_of(&[ASKED, YES, "6900 ran c1 Booked."]);
    let said = run(&default(), &script(&text), Duration::from_secs(3));
    assert_eq!(said.iter().filter(|line| line.contains("! run c1")).count(), 1, "{said:?}");
    assert_eq!(
        said.iter().filter(|line| line.contains("! generate")).count(),
        2,
        "one step for the yes: {said:?}"
    );
    assert_eq!(result_of(&played(&text), "c1"), Some(("Booked.", Some("yes please"))));
}

#[test]
fn vc_50_vc_51_a_no_closes_the_question_and_an_unclear_answer_does_not() {
    let answered =
        |verdict: &str| script_of(&[ASKED, &YES.replace("check c1 yes", &format!("check c1 {verdict}"))]);
    check(&default(), &answered("no"), "question.dropped question=h_01 reason=declined\n! generate\n- ! run");
    assert_eq!(played(&answered("no")).waiting_line(), None);
    check(&default(), &answered("unclear"), "! generate\n- question.dropped\n- ! run");
    assert!(played(&answered("unclear")).waiting_line().is_some());
}

#[test]
fn vc_54_the_context_says_what_is_waited_for_and_no_longer() {
    let line = "Waiting for the caller to confirm: \"Shall I book Thursday at three?\"";
    assert_eq!(played(ASKED).waiting_line().as_deref(), Some(line));
    assert_eq!(played(&script_of(&[ASKED, YES, "6900 ran c1 Booked."])).waiting_line(), None);
    assert_eq!(played(&script_of(&[ASKED, "5500 hangup"])).waiting_line(), None);
}

#[test]
fn vc_55_the_next_detail_leaves_the_tool_waiting() {
    let text = script_of(&[
        ASKED,
        &YES.replace("yes please", "and my name is anna").replace("check c1 yes", "check c1 unclear"),
    ]);
    check(&default(), &text, "answer.checked\n- question.dropped\n- ! run");
    assert!(played(&text).waiting_line().is_some());
}

#[test]
fn vc_61_a_failed_run_is_told_and_not_repeated() {
    let said =
        run(&default(), &script(&script_of(&[ASKED, YES, "6900 failed c1 Full."])), Duration::from_secs(9));
    assert_eq!(said.iter().filter(|line| line.contains("! run")).count(), 1, "{said:?}");
    assert!(
        said.iter().any(|line| line.contains("tool.finished") && line.contains("outcome=failed")),
        "{said:?}"
    );
}

#[test]
fn vc_62_a_late_result_stands_with_its_call() {
    let text = script_of(&[ASKED, YES, "40000 tick\n41000 ran c1 Booked."]);
    check(
        &default(),
        &text,
        "tool.finished call_id=c1 tool=book ok=false\n41000 model.told text=The late result of book: Booked.",
    );
    assert_eq!(result_of(&played(&text), "c1"), Some(("Booked.", Some("yes please"))));
}

#[test]
fn vc_80_a_yes_in_one_session_does_nothing_in_another() {
    let (mut one, mut other) = (played(ASKED), played(ASKED));
    let before = other.fingerprint();
    for (at, event) in script(YES) {
        one.handle(at, event);
    }
    assert_eq!(other.fingerprint(), before);
    other.handle(Time::from_millis(9_000), Event::Tick);
    let mut said = Vec::new();
    drain(&mut other, &mut said);
    assert!(!said.iter().any(|line| line.contains("! run")), "{said:?}");
}

fn past(outcome: ToolOutcome) -> Event {
    let call = CallId("c1".to_owned());
    let made = ToolCall { id: call.clone(), name: "book".to_owned(), input: "{}".to_owned() };
    let pending =
        Item::Result { call: call.clone(), text: "Nothing has happened yet.".to_owned(), confirmed_by: None };
    let run =
        PastRun { hold: HoldId(3), call, tool: "book".to_owned(), confirmed_by: "yes".to_owned(), outcome };
    Event::Reopened(Reopened {
        items: vec![Item::Call { call: made }, pending],
        holds: 3,
        runs: vec![HoldId(3)],
        unsettled: vec![run],
        ..Reopened::default()
    })
}

fn reopened_with(outcome: ToolOutcome, text: &str) -> Vec<(Time, Event)> {
    let mut events = vec![(Time::ZERO, past(outcome))];
    events.extend(script(text));
    events
}

#[test]
fn vc_79_a_run_of_unknown_outcome_is_told_first_and_never_made_again() {
    for start in ["0 chat Hello.", "0 start Hello."] {
        check_events(
            &default(),
            &reopened_with(
                ToolOutcome::Unknown,
                &format!("{start}\n100 say g1 I do not know.\n110 done g1\n9000 tick"),
            ),
            "call.started
             tool.finished call_id=c1 tool=book ok=false
             model.told text=The program stopped while book was running
             ! generate
             ! speak u_01 Speech I do not know.
             - ! run
             - question.held",
        );
    }
}

#[test]
fn vc_79_a_result_that_nobody_heard_of_is_told() {
    let done = ToolOutcome::Done { message: "Booked.".to_owned() };
    check_events(
        &default(),
        &reopened_with(done, "0 chat\n9000 tick"),
        "tool.finished call_id=c1 tool=book ok=true\nmodel.told text=The program stopped just after book had run\n- ! run",
    );
}

#[test]
fn vc_75_what_ran_before_is_not_replayed_and_later_holds_get_keys_of_their_own() {
    let mut session = Session::new(default());
    session.handle(Time::ZERO, past(ToolOutcome::Unknown));
    let text = "0 chat\n50 done g1\n100 message again\n150 call g2 c1 book {}\n160 done g2\n170 ask c1 book Shall I?";
    let mut said = Vec::new();
    for (at, event) in script(text) {
        session.handle(at, event);
        drain(&mut session, &mut said);
    }
    assert!(!said.iter().any(|line| line.contains("! run")), "{said:?}");
    assert!(
        said.iter().any(|line| line.contains("question.held question=h_04")),
        "a call id may come again: {said:?}"
    );
}

#[test]
fn vc_74_a_question_that_was_not_heard_to_its_end_is_not_stored_as_open() {
    assert!(played(&ASKED.replace("5000 over u1 5000", "4000 tick")).to_store().open.is_none());
    assert!(played(ASKED).to_store().open.is_some());
    assert!(
        played(&script_of(&[ASKED, "5500 hangup"])).to_store().open.is_some(),
        "the conversation ends with it"
    );
    let answered = played(&script_of(&[ASKED, YES, "6950 hangup\n7000 ran c1 Booked."])).to_store();
    assert!(answered.open.is_none(), "a question that was answered is open no more");
    assert_eq!((answered.holds, answered.runs), (1, vec![HoldId(1)]));
}

#[test]
fn vc_65_a_run_that_was_not_made_is_said_not_to_have_been() {
    let mut session = played(&script_of(&[ASKED, YES, "6890 tick"]));
    let message = "book was not run.".to_owned();
    session.handle(
        Time::from_millis(6_900),
        Event::ToolFinished { call: CallId("c1".to_owned()), outcome: ToolOutcome::NotRun { message } },
    );
    let mut said = Vec::new();
    drain(&mut session, &mut said);
    assert!(said.iter().any(|line| line.contains("outcome=not_run")), "{said:?}");
    assert!(said.iter().any(|line| line.contains("! record h_01 not_run")), "{said:?}");
}

#[test]
fn vc_15_what_is_stored_is_what_was_asked() {
    let Prepared::Ask { question, input, .. } = ask("book", "Shall I book Thursday at three?") else {
        panic!("a question")
    };
    let open = played(ASKED).to_store().open.expect("the question is open");
    assert_eq!((open.question, open.input), (question, input));
    assert_eq!(frozen("{\"n\":1}").json, "{\"n\":1}");
}
