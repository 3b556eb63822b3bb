//! Turn-taking, as scripts: who has the floor, what the model is told, and what becomes of a question along the way.

mod common;

use std::time::Duration;

use common::{ASKED, after, ask, check, check_events, frozen, run, script, tool};
use sayback_core::*;

/// The caller has spoken; the model's first step is g1.
const SPOKE: &str = "
    0 start
    500 speech 1 500
    900 end 1 850
    1000 words 1 what is free on thursday
";

fn default() -> Policy {
    Policy::default()
}

#[test]
fn words_before_the_first_sound_join_the_turn() {
    check(
        &default(),
        &after(
            SPOKE,
            "1400 say g1 Let me
             1500 speech 2 1480
             1900 end 2 1850
             2000 words 2 in the morning
             2400 tick",
        ),
        "1200 caller.turn text=what is free on thursday
         1200 ! generate
         2000 ! cancel_generation
         2200 caller.turn text=in the morning
         2200 ! generate",
    );
}

#[test]
fn the_endpoint_waits_longer_when_the_model_is_unsure_or_the_words_trail_off() {
    check(&default(), &after(SPOKE, "1300 tick"), "1200 caller.turn");
    check(&default(), &SPOKE.replace("1000 words", "950 judge 1 20\n1000 words"), "1550 caller.turn");
    check(
        &default(),
        &SPOKE.replace("what is free on thursday", "I would like to come on thursday and"),
        "2050 caller.turn",
    );
}

#[test]
fn silence_counts_from_the_heard_end_and_has_a_limit() {
    check(
        &default(),
        "0 start Hello there.
         100 began u1
         1000 over u1 1000 +300
         9300 tick
         9400 began u2
         10400 over u2 10400
         18400 tick
         18500 began u3
         19500 over u3 19500
         27500 tick
         27600 began u4
         28600 over u4 28600
         60000 tick",
        "1300 agent.heard utterance=u_01
         9300 silence.followup n=1 text=Are you still there?
         18400 silence.followup n=2
         27500 silence.followup n=3
         - silence.followup n=4",
    );
}

#[test]
fn nobody_is_asked_whether_they_are_there_while_a_tool_runs_or_the_line_is_held() {
    check(
        &default(),
        &after(
            SPOKE,
            "1300 call g1 c1 find {}
             1310 done g1
             1320 plain c1 find
             20000 tick",
        ),
        "1320 tool.started call_id=c1\n- silence.followup",
    );
    check(
        &default(),
        "0 start
         1000 hold
         20000 resume
         27900 tick",
        "28000 silence.followup n=1",
    );
}

#[test]
fn vc_22_the_goodbye_of_a_step_that_was_cut_off_hangs_nothing_up() {
    check(
        &default(),
        &after(
            SPOKE,
            "1300 call g1 e1 end_call {\"goodbye\":\"Goodbye.\"}
             1400 speech 2 1380
             1800 end 2 1750
             1900 words 2 one more thing
             1950 done g1
             2200 tick",
        ),
        "1900 ! cancel_generation
         2100 caller.turn text=one more thing
         - ! end_call
         - agent.said utterance=u_01 text=Goodbye",
    );
    check(
        &default(),
        &after(
            SPOKE,
            "1300 call g1 e1 end_call {\"goodbye\":\"Goodbye for now.\"}
             1310 done g1
             1400 began u1
             1500 speech 2 1480
             1900 end 2 1850
             2000 words 2 one more thing
             2005 cleared u1 500
             2300 tick",
        ),
        "agent.said utterance=u_01 text=Goodbye for now.
         2000 ! clear
         2200 caller.turn text=one more thing
         - ! end_call",
    );
}

#[test]
fn a_model_that_fails_stalls_or_says_nothing_leads_to_an_apology() {
    for broken in ["1300 fail g1", "1300 done g1", "21300 tick"] {
        check(
            &default(),
            &after(SPOKE, broken),
            "! generate\nagent.said utterance=u_01 text=Sorry, something",
        );
    }
    check(&default(), &after(SPOKE, "21300 tick"), "21200 ! cancel_generation\n21200 model.failed");
}

#[test]
fn a_model_that_only_calls_tools_is_stopped() {
    let mut steps = String::from(SPOKE);
    for step in 1..=8 {
        let at = 1300 + step * 100;
        steps.push_str(&format!(
            "{at} call g{step} c{step} find {{}}\n{at} done g{step}\n{at} plain c{step} find\n{at} ran c{step} No.\n"
        ));
    }
    check(&default(), &steps, "2100 tool.finished call_id=c8\n2100 agent.said utterance=u_01 text=Sorry");
}

#[test]
fn a_model_that_loops_in_the_lead_in_does_not_leave_the_question_hanging() {
    let mut steps = after(
        ASKED,
        "5300 speech 2 5300
         5600 end 2 5500
         5650 words 2 the weather is nice
         5800 check c1 unclear\n",
    );
    for step in 2..=9 {
        let at = 5900 + step * 100;
        steps.push_str(&format!(
            "{at} call g{step} d{step} find {{}}\n{at} done g{step}\n{at} plain d{step} find\n{at} ran d{step} No.\n"
        ));
    }
    check(&default(), &steps, "6800 tool.finished call_id=d9\n6800 question.repeated question=h_01 round=1");
}

#[test]
fn vc_62_a_tool_that_is_too_slow_is_unknown_and_its_late_result_is_told() {
    check(
        &default(),
        &after(
            ASKED,
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 yes
             5800 check c1 yes
             36500 tick
             36600 say g2 I do not know whether that worked.
             36601 done g2
             40000 ran c1 Booked.",
        ),
        "6100 ! run c1 by yes
         36100 tool.finished call_id=c1 tool=book ok=false
         ! record h_01 outcome_unknown
         ! generate
         40000 model.told text=The late result of book: Booked.
         - tool.finished call_id=c1 tool=book ok=true",
    );
}

#[test]
fn vc_83_the_third_asking_ignores_barge_in() {
    let mut steps = String::from(ASKED).replace("5000 over u1 5000", "");
    for (round, at) in [(2, 3_500), (3, 7_500)] {
        let cut = round - 1;
        steps.push_str(&format!(
            "{} speech {round} {at}
             {} end {round} {}
             {} words {round} wait what
             {} cleared u{cut} 500
             {} call g{round} c{round} book {{}}
             {} done g{round}
             {} ask c{round} book Shall I book Thursday at three?
             {} began u{round}\n",
            at + 20,
            at + 400,
            at + 350,
            at + 500,
            at + 501,
            at + 1_000,
            at + 1_001,
            at + 1_002,
            at + 2_000
        ));
    }
    steps.push_str(
        "9500 sized u3 0..2000
         10000 speech 4 9980
         10400 end 4 10350
         10500 words 4 yes yes
         11500 over u3 11500
         12000 tick",
    );
    check(
        &default(),
        &steps,
        "question.dropped question=h_01 reason=barge_in
         question.dropped question=h_02 reason=barge_in
         11500 question.heard question=h_03
         - ! check
         - question.dropped question=h_03
         - tool.started",
    );
}

#[test]
fn vc_70_the_tool_runs_though_other_tools_came_up_since() {
    check(
        &default(),
        &after(
            ASKED,
            "5100 tools find book
             5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 yes
             5800 check c1 yes",
        ),
        "6100 ! run c1 by yes",
    );
}

#[test]
fn vc_71_another_owner_of_the_same_name_runs_nothing() {
    let mut events =
        script(&after(ASKED, "5300 speech 2 5300\n5600 end 2 5500\n5650 words 2 yes\n5800 check c1 yes"));
    let other = ToolRef { skill: "elsewhere".to_owned(), ..tool("book") };
    events.push((Time::from_millis(5_900), Event::Tools(vec![other])));
    check_events(
        &default(),
        &events,
        "6100 question.dropped question=h_01 reason=owner_gone\n- tool.started",
    );
}

/// A yes to a question whose tool was redefined since; what the new definition makes of the call.
fn redefined(outcome: Prepared) -> Vec<(Time, Event)> {
    let text = after(
        ASKED,
        "5100 redefined book\n5300 speech 2 5300\n5600 end 2 5500\n5650 words 2 yes\n5800 check c1 yes",
    );
    let mut events = script(&text);
    let call = CallId("c1".to_owned());
    events.push((Time::from_millis(6_200), Event::Prepared { call, outcome }));
    events
}

#[test]
fn vc_72_a_redefined_tool_runs_only_if_input_and_question_are_the_same() {
    let same = |question: &str, json: &str| Prepared::Ask {
        tool: ToolRef { definition: "sha256:2".to_owned(), ..tool("book") },
        input: frozen(json),
        question: question.to_owned(),
        language: "en".to_owned(),
        terms: AskTerms::default(),
    };
    check_events(
        &default(),
        &redefined(same("Shall I book Thursday at three?", "{\"n\":1}")),
        "6100 ! prepare\n6200 ! run c1 by yes",
    );
    for changed in [
        same("Shall I book Thursday at three for 40 euros?", "{\"n\":1}"),
        same("Shall I book Thursday at three?", "{\"n\":2}"),
        Prepared::Plain { tool: tool("book"), input: frozen("{\"n\":1}") },
    ] {
        check_events(
            &default(),
            &redefined(changed),
            "6200 question.dropped question=h_01 reason=definition_changed\nmodel.told\n- tool.started",
        );
    }
}

#[test]
fn vc_69_what_ran_once_is_asked_again() {
    check(
        &default(),
        &after(
            ASKED,
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 yes
             5800 check c1 yes
             6500 ran c1 Booked.
             6600 call g2 c2 book {}
             6610 done g2
             6620 ask c2 book Shall I book Thursday at three?
             7000 began u2
             9000 over u2 9000
             9500 tick",
        ),
        "6100 ! run c1 by yes
         question.held question=h_02
         9000 question.heard question=h_02
         - ! run c2",
    );
}

#[test]
fn vc_18_a_single_or_unfinished_sentence_before_the_call_is_not_said() {
    for text in ["1290 say g1 Let me just", "1290 say g1 Done.", ""] {
        let script = ASKED.replace("1300 call", &format!("{text}\n1300 call"));
        check(&default(), &script, "agent.said utterance=u_01 text=Shall I book Thursday at three?");
    }
    check(
        &default(),
        &ASKED.replace("1310 done g1", "1305 say g1 It is booked. Bye.\n1310 done g1"),
        "agent.said utterance=u_01 text=Shall I book Thursday at three?
         - agent.said utterance=u_02",
    );
}

#[test]
fn vc_19_ordinary_tools_beside_the_question_run_once_and_the_turn_ends_at_the_question() {
    check(
        &default(),
        &ASKED
            .replace("1300 call g1 c1", "1299 call g1 f1 find {}\n1300 call g1 c1")
            .replace("1320 ask", "1315 plain f1 find\n1320 ask")
            .replace("5000 over u1 5000", "5000 over u1 5000\n5200 failed f1 no network\n6000 tick"),
        "1315 ! run_plain
         1320 question.held
         5000 question.heard
         5200 tool.finished call_id=f1 tool=find ok=false
         - question.dropped",
    );
}

#[test]
fn vc_20_of_two_confirm_calls_in_a_step_the_later_one_is_asked() {
    check(
        &default(),
        &ASKED
            .replace("1310 done g1", "1305 call g1 c2 book {}\n1310 done g1")
            .replace("3000 began u1", "1330 ask c2 book Shall I book Friday at three?\n3000 began u1"),
        "question.dropped question=h_01 reason=replaced
         question.held question=h_02
         agent.said utterance=u_01 text=Shall I book Friday at three?
         5000 question.heard question=h_02
         - agent.said utterance=u_02",
    );
}

#[test]
fn vc_65_one_yes_however_often_it_comes_runs_once() {
    check(
        &default(),
        &after(
            ASKED,
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 yes
             5660 words 2 yes
             5800 check c1 yes
             5810 check c1 yes
             6150 check c1 yes
             6300 speech 3 6300
             6600 end 3 6500
             6650 words 3 yes
             8000 ran c1 Booked.
             8001 ran c1 Booked.",
        ),
        "6100 ! run c1 by yes\n8000 tool.finished\n8000 caller.turn text=yes\n- ! check c_02",
    );
}

#[test]
fn vc_67_the_late_verdict_on_a_replaced_question_is_ignored() {
    check(
        &default(),
        &after(
            ASKED,
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 yes
             5750 asked p1 cancel Shall I cancel everything?
             5800 check c1 yes
             6000 began u2
             8000 over u2 8000
             8100 check c1 yes
             9000 tick",
        ),
        "5700 ! check c_01 yes
         question.dropped question=h_01 reason=replaced
         8000 question.heard question=h_02
         - tool.started",
    );
}

#[test]
fn vc_68_words_that_began_before_the_second_question_ended_answer_neither() {
    check(
        &default(),
        &after(
            ASKED,
            "5300 speech 2 5300
             5400 asked p1 cancel Shall I cancel everything?
             5500 began u2
             7500 over u2 7500
             7900 end 2 7800
             8000 words 2 yes
             9000 tick",
        ),
        "question.dropped question=h_01 reason=replaced
         8000 question.dropped question=h_02 reason=barge_in
         - ! check
         - tool.started",
    );
}

const CHAT: &str = "
    0 chat
    100 message book it
    200 call g1 c1 book {}
    210 done g1
    900 ask c1 book Shall I book?
";

#[test]
fn vc_73_rewound_to_just_after_the_question_it_is_open_elsewhere_dropped() {
    // The items: the message, the call, its result, the question.
    check(
        &default(),
        &after(CHAT, "1000 message maybe\n1100 rewind 4\n1200 message yes\n1300 check c2 yes"),
        "900 question.heard
         ! check c_01 maybe
         ! check c_02 yes
         1300 ! run c1 by yes
         - question.dropped",
    );
    check(
        &default(),
        &after(CHAT, "1100 rewind 1\n1200 message yes"),
        "1100 question.dropped question=h_01 reason=rewound\n1200 caller.turn text=yes\n- ! check",
    );
}

#[test]
fn vc_73_a_yes_that_was_rewound_does_not_answer_again() {
    check(
        &default(),
        &after(CHAT, "1000 message yes\n1100 rewind 4\n1200 check c1 yes\n2000 tick"),
        "1000 ! check c_01 yes\n- ! check c_02\n- tool.started\n- question.dropped",
    );
}

#[test]
fn vc_76_rewound_to_just_after_an_answered_question_a_second_yes_runs_under_the_same_hold() {
    let ran = after(
        CHAT,
        "1000 message yes\n1100 check c1 yes\n1200 ran c1 Booked.\n1210 say g2 Done.\n1220 done g2",
    );
    check(
        &default(),
        &after(&ran, "2000 rewind 4\n2100 message yes\n2200 check c2 yes\n2300 ran c1 Booked."),
        "1100 ! run c1 by yes
         2000 question.reopened question=h_01 text=Shall I book? ran_before=yes
         2000 question.heard question=h_01
         2100 ! check c_02 yes
         2200 ! run c1 by yes
         2300 tool.finished call_id=c1
         - question.held question=h_02",
    );
    // Nothing runs by itself: the question is only open.
    let lines = run(&default(), &script(&after(&ran, "2000 rewind 4\n9000 tick")), Duration::from_secs(60));
    assert_eq!(lines.iter().filter(|line| line.contains("! run c1")).count(), 1, "{lines:#?}");
    check(
        &default(),
        &after(&ran, "2000 rewind 4\n2100 message no\n2200 check c2 no"),
        "1100 ! run c1\n2000 question.reopened\n2200 question.dropped question=h_01 reason=declined",
    );
}

#[test]
fn vc_73_a_declined_question_is_open_again_and_one_that_was_cut_off_is_not() {
    check(
        &default(),
        &after(CHAT, "1000 message no\n1100 check c1 no\n2000 rewind 4\n2100 message yes\n2200 check c2 yes"),
        "1100 question.dropped question=h_01 reason=declined
         2000 question.reopened question=h_01 text=Shall I book?
         2200 ! run c1 by yes
         - question.reopened question=h_01 text=Shall I book? ran",
    );
    // On a call: the question was cut by words, so there is nothing to go back to.
    let cut = ASKED.replace(
        "5000 over u1 5000",
        "3500 speech 2 3480
         4200 end 2 4100
         4300 words 2 wait a moment please
         4310 cleared u1 700",
    );
    check(&default(), &after(&cut, "4320 rewind 4"), "4300 question.dropped\n- question.reopened");
}

#[test]
fn vc_73_on_a_call_a_question_of_the_past_is_said_again_before_it_can_be_answered() {
    check(
        &default(),
        &after(
            ASKED,
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 yes
             5800 check c1 yes
             6200 ran c1 Booked.
             6300 rewind 4
             6400 speech 3 6400
             6700 end 3 6600
             6750 words 3 yes
             6800 began u2
             8800 over u2 8800
             9100 speech 4 9100
             9400 end 4 9300
             9450 words 4 yes
             9600 check c2 yes",
        ),
        "6300 question.reopened question=h_01 text=Shall I book Thursday at three? ran_before=yes
         6300 question.repeated question=h_01
         6300 ! speak u_02 Question
         8800 question.heard question=h_01
         9500 ! check c_02 yes
         ! run c1 by yes",
    );
}

#[test]
fn vc_75_a_rewind_takes_back_words_and_not_what_ran() {
    let mut session = Session::new(default());
    let talk = after(
        SPOKE,
        "1300 call g1 c1 find {}
         1301 call g1 c2 find {}
         1310 done g1
         1320 plain c1 find
         1321 plain c2 find
         1400 ran c1 Two slots.
         1410 ran c2 None.",
    );
    for (at, event) in script(&talk) {
        session.handle(at, event);
    }
    // Between the second call and its result.
    session.handle(Time::from_millis(1_500), Event::Rewound(Rewind { items: 3 }));
    let kept: Vec<&str> = session
        .items()
        .iter()
        .filter_map(|item| match item {
            Item::Result { text, .. } => Some(text.as_str()),
            Item::Caller { .. } | Item::Agent { .. } | Item::Call { .. } | Item::Told { .. } => None,
        })
        .collect();
    assert_eq!(kept, ["Two slots.", "None."]);
    // Between the calls: the second one is gone with its result.
    session.handle(Time::from_millis(1_600), Event::Rewound(Rewind { items: 2 }));
    assert_eq!(session.items().len(), 3, "{:?}", session.items());
}

#[test]
fn vc_75_a_tool_that_runs_while_its_call_is_taken_back_is_told_of() {
    check(
        &default(),
        &after(CHAT, "1000 message yes\n1100 check c1 yes\n1150 rewind 1\n1200 ran c1 Booked."),
        "1100 ! run c1 by yes
         1200 tool.finished call_id=c1
         1200 model.told text=book ran before the conversation was taken back, and is not undone: Booked.",
    );
}

fn reopened(script_text: &str) -> Vec<(Time, Event)> {
    let Prepared::Ask { tool, input, question, language, terms } = ask("book", "Shall I book?") else {
        panic!("a question")
    };
    let items = vec![Item::Agent { text: question.clone(), complete: true }];
    let call = CallId("c1".to_owned());
    let open = OpenQuestion { hold: HoldId(4), call, tool, input, question, language, terms, approval: None };
    let mut events =
        vec![(Time::ZERO, Event::Reopened(Reopened { items, open: Some(open), ..Reopened::default() }))];
    events.extend(script(script_text));
    events
}

#[test]
fn vc_74_a_reopened_question_is_open_in_chat_and_said_again_on_a_call() {
    check_events(
        &default(),
        &reopened("0 chat\n500 message yes\n700 check c1 yes"),
        "0 question.heard question=h_04\n500 ! check c_01 yes\n700 ! run c1 by yes\n- ! speak",
    );
    check_events(
        &default(),
        &reopened(
            "0 start Hello.
             100 began u1
             2100 over u1 2100
             2500 speech 1 2500
             2900 end 1 2800
             3000 words 1 yes
             3200 check c1 yes",
        ),
        "0 question.repeated question=h_04
         0 ! speak u_01 Question Shall I book?
         2100 question.heard question=h_04
         ! run c1 by yes",
    );
}

#[test]
fn vc_37_an_answer_with_a_part_that_was_never_recognised_is_unclear() {
    check(
        &default(),
        &after(
            ASKED,
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 yes
             5660 speech 3 5660
             6000 end 3 5950
             6100 check c1 yes
             11100 tick",
        ),
        "11000 answer.checked question=h_01 words=yes onset_ms=5300.0 margin_ms=300.0 verdict=unclear
         model.told
         ! generate
         - tool.started",
    );
}

#[test]
fn vc_46_speech_after_the_key_holds_the_run_back_and_its_words_count() {
    let mut policy = default();
    policy.confirm.keypad = true;
    check(
        &policy,
        &after(
            ASKED,
            "5400 digit 1
             5500 speech 2 5500
             5900 end 2 5850
             6000 words 2 no wait
             6300 check c1 no",
        ),
        "! check c_01 no wait\nquestion.dropped question=h_01 reason=declined\n- tool.started",
    );
}

#[test]
fn vc_21_a_transfer_or_goodbye_beside_a_question_of_the_programs_is_refused() {
    check(
        &default(),
        &after(
            SPOKE,
            "1300 call g1 e1 end_call {\"goodbye\":\"Bye.\"}
             1310 asked p1 cancel Shall I cancel everything?
             1320 done g1
             2000 began u1
             4000 over u1 4000",
        ),
        "question.held question=h_01\nmodel.told text=Refused\n4000 question.heard\n- ! end_call",
    );
}

#[test]
fn vc_12_a_step_whose_call_was_refused_does_not_hang_up() {
    // In whatever order, with a question or without: the model hears of it first, and may leave in its next step.
    for calls in [
        "1300 call g1 c1 book {}\n1301 call g1 e1 end_call {\"goodbye\":\"Bye.\"}",
        "1300 call g1 e1 end_call {\"goodbye\":\"Bye.\"}\n1301 call g1 c1 book {}",
    ] {
        for refused in ["1320 refuse c1 start: no such slot", "1320 refuse-plain c1 start: no such slot"] {
            let step =
                after(SPOKE, &format!("1290 say g1 All done. Goodbye.\n{calls}\n1310 done g1\n{refused}"));
            check(
                &default(),
                &after(
                    &step,
                    "1900 call g2 e2 end_call {\"goodbye\":\"Bye now.\"}
                     1910 done g2",
                ),
                "1320 model.told text=start: no such slot
                 1320 model.told text=Refused: another call of this step failed
                 1320 ! generate
                 agent.said utterance=u_02 text=Bye now.
                 - agent.said utterance=u_02 text=Goodbye
                 - agent.said utterance=u_01 text=Bye",
            );
        }
    }
}

#[test]
fn vc_12_a_question_that_a_refused_call_of_its_own_step_closes_does_not_hang_up_either() {
    check(
        &default(),
        &after(
            SPOKE,
            "1300 call g1 c1 book {}
             1301 call g1 c2 book {}
             1302 call g1 e1 end_call {\"goodbye\":\"Bye.\"}
             1310 done g1
             1320 ask c1 book Shall I book?
             1330 refuse c2 start: no such slot
             9000 tick",
        ),
        "question.held question=h_01
         question.dropped question=h_01 reason=input_error
         model.told text=Refused
         1330 ! generate
         - ! end_call
         - agent.said utterance=u_01 text=Bye",
    );
}

#[test]
fn row_4_a_question_that_comes_while_a_tool_runs_is_asked_behind_the_words_on_its_result() {
    check(
        &default(),
        &after(
            ASKED,
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 yes
             5800 check c1 yes
             6500 asked p1 cancel Shall I cancel the other one?
             7000 ran c1 Booked.
             7100 say g2 It is booked.
             7101 done g2
             8000 tick",
        ),
        "6100 ! run c1 by yes
         7000 question.held question=h_02
         7000 ! generate
         agent.said utterance=u_02 text=It is booked.
         agent.said utterance=u_03 text=Shall I cancel the other one?",
    );
}

#[test]
fn question_time_is_over_although_the_caller_coughed() {
    let mut policy = default();
    policy.confirm.ttl = Some(Duration::from_secs(2));
    check(
        &policy,
        &after(ASKED, "5500 speech 2 5500\n5700 end 2 5650\n5800 words 2\n8000 tick"),
        "7300 question.dropped question=h_01 reason=expired",
    );
}

#[test]
fn vc_21_a_step_whose_question_waits_for_a_running_tool_does_not_hang_up() {
    check(
        &default(),
        "0 chat
         100 message pay and book
         200 asked p1 pay Shall I pay?
         300 call g1 c2 book {}
         400 message yes
         500 check c1 yes
         600 ask c2 book Shall I book?
         700 call g1 c3 end_call {}
         800 done g1
         900 ran p1 Paid.",
        "500 ! run p1 by yes
         800 model.told text=Refused
         900 question.held question=h_02
         - ! end_call
         - question.dropped",
    );
}

#[test]
fn vc_59_an_unclear_verdict_on_the_first_word_does_not_stand_for_the_yes_behind_it() {
    let said = |first: &str| {
        after(
            ASKED,
            &format!(
                "5300 speech 2 5300
                 5400 end 2 5400
                 5450 words 2 mm-hm
                 5650 speech 3 5640
                 5700 {first}
                 5900 end 3 5880
                 6000 words 3 yes
                 6300 check c2 yes"
            ),
        )
    };
    for first in ["check c1 veto backchannel", "check c1 unclear"] {
        check(
            &default(),
            &said(first),
            "5600 ! check c_01 mm-hm
             ! check c_02 mm-hm yes
             ! run c1 by mm-hm yes
             - question.repeated",
        );
    }
    // A yes does stand for it, without a second call of the model.
    check(&default(), &said("check c1 yes"), "! run c1 by mm-hm yes\n- ! check c_02");
    // And a check that failed is not tried again (VC-52).
    check(&default(), &said("check c1 fail down"), "answer.checked question=h_01\n- ! check c_02\n- ! run");
}
