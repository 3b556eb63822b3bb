//! The gate, as scripts: what the caller heard, when they began to speak, and what may run.

mod common;

use common::{check, run};
use sayback_core::{AfterHangup, NearEnd, Policy, QuestionBargeIn};
use std::time::Duration;

/// A caller asks, the model calls `book`, the question is u_01 (or what the script says), sounds at 3000 and is heard
/// at 5000.
const ASKED: &str = "
    0 start
    500 speech 1 500
    900 end 1 850
    1000 words 1 book thursday at three
    1300 say g1 Sure.
    1300 call g1 c1 book {}
    1310 done g1
    1320 ask c1 book Shall I book Thursday at three?
    3000 began u1
    3000 sized u1 0..2000
    5000 over u1 5000
";

fn after_asked(more: &str) -> String {
    format!("{ASKED}\n{more}")
}

#[test]
fn a_yes_behind_the_horizon_runs_once() {
    check(
        &Policy::default(),
        &after_asked(
            "5400 speech 2 5300..5330
             5900 end 2 5700
             6000 words 2 yes please
             6200 check c1 yes
             6900 ran c1 Booked.",
        ),
        "question.held question=h_01 tool=book
         question.started
         5000 question.heard question=h_01 earliest_ms=5000.0 latest_ms=5000.0
         6000 ! check c_01 yes please
         6200 answer.checked
         tool.started
         ! run c1 by yes please
         6900 tool.finished call_id=c1 tool=book ok=true
         ! record h_01 executed
         ! generate",
    );
}

#[test]
fn vc_29_words_inside_the_question_drop_it() {
    check(
        &Policy::default(),
        &after_asked("5050 tick").replace(
            "5000 over u1 5000",
            "3500 speech 2 3480
             3900 end 2 3860
             4100 words 2 yes
             4105 cleared u1 1100",
        ),
        "3680 ! pause
         4100 question.dropped question=h_01 reason=barge_in
         ! record h_01 barge_in
         ! clear
         model.told
         4105 agent.heard utterance=u_01 text=Shall I book complete=false
         caller.turn text=yes
         ! generate
         - tool.started
         - question.heard",
    );
}

#[test]
fn vc_30_onset_decides_not_overlap() {
    check(
        &Policy::default(),
        &after_asked(
            "5010 speech 2 4960
             5400 end 2 5350
             5600 words 2 yes",
        ),
        "5600 question.dropped question=h_01 reason=barge_in
         - tool.started
         - ! check",
    );
}

#[test]
fn vc_31_an_onset_that_may_lie_before_the_end_is_not_an_answer() {
    check(
        &Policy::default(),
        &after_asked(
            "5040 speech 2 4990..5030
             5400 end 2 5350
             5600 words 2 yes",
        ),
        "question.dropped question=h_01 reason=barge_in
         - tool.started",
    );
}

#[test]
fn vc_33_a_cough_neither_drops_nor_answers() {
    check(
        &Policy::default(),
        &after_asked(
            "5300 speech 2 5300
             5400 end 2 5360
             5500 words 2
             6000 speech 3 6000
             6400 end 3 6300
             6500 words 3 yes
             6700 check c1 yes",
        ),
        "question.heard
         ! check c_01 yes
         tool.started",
    );
}

#[test]
fn vc_37_no_commit_before_an_earlier_segment_resolves() {
    check(
        &Policy::default(),
        &after_asked(
            "5300 speech 3 5300
             5600 end 3 5500
             5700 words 3 yes
             6500 words 2 no not that",
        )
        .replace("5000 over", "4500 speech 2 4480\n4800 end 2 4700\n5000 over"),
        "6500 question.dropped question=h_01 reason=barge_in
         - ! check
         - tool.started",
    );
}

#[test]
fn vc_58_yes_no_wait_is_one_turn_and_one_check() {
    check(
        &Policy {
            confirm: sayback_core::ConfirmPolicy { check_after_quiet: None, ..Default::default() },
            ..Policy::default()
        },
        &after_asked(
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 yes
             5700 speech 3 5700
             6100 end 3 6000
             6200 words 3 no wait
             6500 check c1 no",
        ),
        "6350 ! check c_01 yes no wait
         question.dropped question=h_01 reason=declined
         model.told
         ! generate
         - tool.started",
    );
}

#[test]
fn vc_59_speech_in_the_grace_window_voids_the_verdict() {
    check(
        &Policy::default(),
        &after_asked(
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 yes
             5720 check c1 yes
             6000 speech 3 6000
             6300 end 3 6250
             6400 words 3 not yet
             6700 check c2 no",
        ),
        "! check c_01 yes
         ! check c_02 yes not yet
         question.dropped question=h_01 reason=declined
         - tool.started",
    );
}

#[test]
fn vc_59_a_wordless_sound_in_grace_only_delays_the_run() {
    check(
        &Policy::default(),
        &after_asked(
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 yes
             5720 check c1 yes
             6000 speech 3 6000
             6200 end 3 6060
             6300 words 3",
        ),
        "! check c_01 yes
         6300 tool.started
         - ! check c_02",
    );
}

#[test]
fn vc_46_keys_follow_the_same_rule() {
    let mut policy = Policy::default();
    policy.confirm.keypad = true;
    check(&policy, &after_asked("5400 digit 1"), "dtmf\n6000 tool.started\n! run c1 by 1\n- ! check");
    check(
        &policy,
        &after_asked("5400 digit 2"),
        "question.dropped question=h_01 reason=declined\n- tool.started",
    );
    check(
        &policy,
        &after_asked("6000 tick").replace("5000 over", "4000 digit 1\n5000 over"),
        "4000 question.dropped question=h_01 reason=barge_in\n- tool.started",
    );
    check(
        &Policy::default(),
        &after_asked("5400 digit 1"),
        "question.heard\n- tool.started\n- question.dropped",
    );
}

#[test]
fn vc_46_keys_in_a_row_are_a_number_and_no_yes() {
    let mut policy = Policy::default();
    policy.confirm.keypad = true;
    for dialled in [
        "5400 digit 1\n5900 digit 3",
        "5400 digit 5\n5900 digit 1",
        "5400 digit 5\n5700 digit 1\n6000 digit 1",
        "5400 digit 1\n5600 digit 1\n5800 digit #",
        "5400 digit 1\n5800 digit 2",
    ] {
        check(&policy, &after_asked(&format!("{dialled}\n9000 tick")), "dtmf\n- tool.started\n- ! check");
    }
    // By itself it is one again, and one that was pressed twice is one yes.
    check(&policy, &after_asked("5400 digit 5\n6000 digit 1"), "6600 tool.started\n! run c1 by 1");
    check(&policy, &after_asked("5400 digit 1\n5700 digit 1"), "6300 tool.started\n! run c1 by 1");
}

// A key is no answer to "no, do not": the words are judged, whichever came first.
#[test]
fn vc_46_words_beside_a_key_decide() {
    let mut policy = Policy::default();
    policy.confirm.keypad = true;
    let keyed = |words: &str, verdict: &str| {
        after_asked(&format!(
            "5100 speech 2 5100
             5600 digit 1
             5700 end 2 5650
             5900 words 2 {words}
             6100 check c1 {verdict}"
        ))
    };
    check(
        &policy,
        &keyed("no do not book it", "no"),
        "! check c_01 no do not book it\nquestion.dropped question=h_01 reason=declined\n- tool.started",
    );
    check(
        &policy,
        &keyed("yes", "yes"),
        "! check c_01 yes\ntool.started\n! run c1 by yes\n- question.dropped",
    );
}

// A loudspeaker's sound comes back to the microphone behind the horizon: its last word is nobody's answer.
#[test]
fn vc_39_the_last_word_of_the_question_coming_back_is_no_answer() {
    let answered = |onset: u32, words: &str| {
        let (end, said, checked) = (onset + 300, onset + 500, onset + 700);
        after_asked(&format!(
            "{onset} speech 2 {onset}\n{end} end 2 {end}\n{said} words 2 {words}\n{checked} check c1 yes"
        ))
        .replace("Shall I book Thursday at three?", "I book Thursday at three. Okay?")
    };
    check(&Policy::default(), &answered(5_300, "Okay."), "answer.checked\n- tool.started");
    check(&Policy::default(), &answered(5_300, "Okay, yes."), "tool.started\n! run c1 by Okay, yes.");
    // So late it is the caller's own.
    check(&Policy::default(), &answered(7_300, "Okay."), "tool.started\n! run c1 by Okay.");
}

#[test]
fn vc_52_a_failed_check_counts_as_unclear() {
    check(
        &Policy::default(),
        &after_asked(
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 yes
             5800 check c1 fail garbage
             6000 say g2 Sorry, I did not get that.
             6010 done g2
             6100 began u2
             6900 over u2 6900
             6950 began u3
             8950 over u3 8950
             9300 speech 3 9300
             9700 end 3 9600
             9800 words 3 yes
             9900 check c2 yes",
        ),
        "answer.checked question=h_01 words=yes onset_ms=5300.0 margin_ms=300.0 verdict=unclear error=garbage
         model.told
         ! generate
         question.repeated question=h_01 round=1
         ! speak u_03 Question Shall I book Thursday at three?
         8950 question.heard
         ! check c_02 yes
         tool.started",
    );
}

#[test]
fn vc_53_after_the_last_round_it_is_unconfirmed() {
    let mut policy = Policy::default();
    policy.confirm.rounds = 1;
    check(
        &policy,
        &after_asked(
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 the weather is nice
             5800 check c1 unclear",
        ),
        "question.dropped question=h_01 reason=unconfirmed
         model.told
         ! generate",
    );
}

#[test]
fn vc_56_silence_says_the_question_again() {
    check(
        &Policy::default(),
        &after_asked(
            "11000 tick
             11200 began u2
             13200 over u2 13200
             13600 speech 2 13600
             14000 end 2 13900
             14050 words 2 yes
             14300 check c1 yes",
        ),
        "11000 silence.followup n=1 text=Shall I book Thursday at three?
         question.repeated question=h_01 round=0
         13200 question.heard
         tool.started",
    );
}

#[test]
fn vc_57_a_yes_after_other_agent_speech_is_asked_again() {
    let mut policy = Policy::default();
    policy.confirm.silence_text = Some("Are you still there?".to_owned());
    check(
        &policy,
        &after_asked(
            "11000 tick
             11200 began u2
             12200 over u2 12200
             12600 speech 2 12600
             13000 end 2 12900
             13050 words 2 yes
             13300 check c1 yes",
        ),
        "silence.followup n=1 text=Are you still there?
         answer.checked question=h_01 words=yes
         question.repeated question=h_01
         - tool.started",
    );
}

#[test]
fn vc_63_a_complete_yes_then_hangup_runs_by_default() {
    let script = after_asked(
        "5300 speech 2 5300
         5600 end 2 5500
         5650 hangup
         5700 words 2 yes
         5900 check c1 yes
         6500 ran c1 Booked.",
    );
    check(
        &Policy::default(),
        &script,
        "call.ended\ntool.started\n! record h_01 executed\n- question.dropped",
    );
    let mut drop = Policy::default();
    drop.confirm.after_hangup = AfterHangup::Drop;
    check(
        &drop,
        &script,
        "question.dropped question=h_01 reason=hangup\n! record h_01 answered_then_hung_up\n- tool.started",
    );
}

#[test]
fn vc_66_a_new_call_replaces_the_open_question() {
    check(
        &Policy::default(),
        &after_asked(
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 make it four
             5800 check c1 no
             6000 call g2 c2 book {}
             6010 done g2
             6020 ask c2 book Shall I book Thursday at four?
             6200 began u2
             8200 over u2 8200",
        ),
        "question.dropped question=h_01 reason=declined
         question.held question=h_02
         8200 question.heard question=h_02",
    );
}

#[test]
fn vc_71_a_tool_without_owner_does_not_run() {
    check(
        &Policy::default(),
        &after_asked(
            "5100 tools find
             5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 yes
             5800 check c1 yes",
        ),
        "question.dropped question=h_01 reason=owner_gone
         model.told
         - tool.started",
    );
}

#[test]
fn vc_12_a_failing_re_call_closes_the_open_question() {
    check(
        &Policy::default(),
        &after_asked(
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 hmm what about friday
             5800 check c1 unclear
             6000 call g2 c2 book {}
             6010 done g2
             6020 refuse c2 start: no such slot",
        ),
        "question.dropped question=h_01 reason=input_error
         model.told
         ! generate
         - tool.started",
    );
}

#[test]
fn vc_17_all_but_the_last_sentence_before_the_call_are_said() {
    check(
        &Policy::default(),
        &ASKED.replace("1300 say g1 Sure.", "1300 say g1 Sure. One moment. I will book it"),
        "agent.said utterance=u_01 text=Sure.
         agent.said utterance=u_02 text=One moment.
         agent.said utterance=u_03 text=Shall I book Thursday at three?
         - agent.said utterance=u_03 text=I will book it",
    );
}

#[test]
fn vc_21_a_step_that_asks_never_hangs_up() {
    for calls in [
        "1300 call g1 e1 end_call {\"goodbye\":\"Bye.\"}\n1300 call g1 c1 book {}",
        "1300 call g1 c1 book {}\n1300 call g1 e1 end_call {\"goodbye\":\"Bye.\"}",
    ] {
        check(
            &Policy::default(),
            &ASKED.replace("1300 call g1 c1 book {}", calls),
            "model.told text=Refused
             agent.said utterance=u_01 text=Shall I book
             5000 question.heard
             - ! end_call
             - agent.said utterance=u_01 text=Bye",
        );
    }
}

#[test]
fn vc_22_end_call_in_a_later_step_drops_the_hold_and_waits_for_the_goodbye() {
    check(
        &Policy::default(),
        &after_asked(
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 the weather is nice
             5800 check c1 unclear
             6000 call g2 e1 end_call {\"goodbye\":\"Goodbye.\"}
             6010 done g2
             6100 began u2
             6900 over u2 6900",
        ),
        "question.dropped question=h_01 reason=cancelled
         agent.said utterance=u_02 text=Goodbye.
         6900 ! end_call
         6900 call.ended reason=agent",
    );
}

#[test]
fn vc_82_an_affirmation_just_before_the_horizon_is_asked_again_by_the_runtime() {
    let mut policy = Policy::default();
    policy.confirm.near_end = NearEnd::Again;
    check(
        &policy,
        &after_asked(
            "4900 speech 2 4850
             5300 end 2 5200
             5400 words 2 yes",
        ),
        "question.dropped question=h_01 reason=barge_in
         question.held question=h_02
         agent.said utterance=u_02 text=Sorry, once more.
         agent.said utterance=u_03 text=Shall I book Thursday at three?
         - ! generate_never",
    );
}

#[test]
fn vc_45_ignored_speech_never_answers() {
    let mut policy = Policy::default();
    policy.confirm.question_barge_in = QuestionBargeIn::Ignore;
    check(
        &policy,
        &after_asked("5600 words 2 yes")
            .replace("5000 over", "4000 speech 2 4000\n4400 end 2 4300\n5000 over"),
        "5600 question.heard
         - question.dropped
         - ! pause
         - ! check",
    );
}

#[test]
fn vc_38_one_final_over_segments_on_both_sides_is_no_answer() {
    check(
        &Policy::default(),
        &after_asked(
            "5300 speech 3 5300
             5600 end 3 5500
             5700 words 2,3 yes",
        )
        .replace("5000 over", "4500 speech 2 4480\n4700 end 2 4600\n5000 over"),
        "question.dropped question=h_01 reason=barge_in\n- tool.started",
    );
}

// Segments may overlap where something else than our own detector cuts them: the one that began last ended first.
#[test]
fn vc_38_one_final_reaches_to_the_last_end_of_what_it_covers() {
    check(
        &Policy::default(),
        &after_asked(
            "5600 words 2,3,4 yes
             5700 speech 5 5300
             5900 end 5 5500
             6000 words 5 yes",
        )
        .replace("5000 over", "2950 speech 2 2650\n2960 speech 3 2700\n2970 speech 4 2800\n2980 end 4 2850\n2990 end 2 2900\n4000 end 3 3800\n5000 over"),
        "question.dropped question=h_01 reason=barge_in\n- tool.started",
    );
}

#[test]
fn vc_42_a_held_line_inside_the_question_is_not_heard() {
    check(
        &Policy::default(),
        &after_asked("6000 tick").replace("5000 over", "3500 hold\n4500 resume\n5000 over"),
        "question.dropped question=h_01 reason=not_played\nmodel.told\n- question.heard",
    );
}

#[test]
fn vc_41_a_failing_voice_asks_nothing() {
    check(
        &Policy::default(),
        &after_asked("6000 tick").replace("5000 over u1 5000", "4000 broke u1"),
        "question.dropped question=h_01 reason=tts_failed\nmodel.told\n! generate\n- question.heard",
    );
}

#[test]
fn vc_60_words_while_the_tool_runs_are_the_next_turn() {
    check(
        &Policy::default(),
        &after_asked(
            "5300 speech 2 5300
             5600 end 2 5500
             5650 words 2 yes
             5800 check c1 yes
             6500 speech 3 6500
             6900 end 3 6800
             7000 words 3 no wait
             9000 ran c1 Booked.",
        ),
        "tool.started
         9000 tool.finished
         caller.turn text=no wait
         ! generate
         - question.dropped",
    );
}

#[test]
fn question_time_limit_counts_from_the_horizon() {
    let mut policy = Policy::default();
    policy.confirm.ttl = Some(Duration::from_secs(2));
    check(
        &policy,
        &after_asked("5500 tick"),
        "7300 question.dropped question=h_01 reason=expired\nmodel.told",
    );
    check(
        &policy,
        &after_asked(
            "6900 speech 2 6900
             7400 end 2 7300
             7500 words 2 yes
             7700 check c1 yes",
        ),
        "tool.started\n- question.dropped",
    );
}

#[test]
fn vc_25_chat_is_heard_when_it_is_said() {
    check(
        &Policy::default(),
        "0 chat
         100 message book it
         200 call g1 c1 book {}
         210 done g1
         900 ask c1 book Shall I book?
         1000 message yes
         1600 check c1 yes
         1700 ran c1 Booked.
         1800 say g2 It is booked.
         1801 done g2",
        "100 caller.turn text=book it
         900 question.heard question=h_01 earliest_ms=900.0 latest_ms=900.0
         ! check c_01 yes
         1600 tool.started
         agent.heard utterance=u_02 text=It is booked. complete=true",
    );
}

#[test]
fn vc_35_a_message_that_waited_is_no_answer() {
    check(
        &Policy::default(),
        "0 chat
         100 message book it
         200 call g1 c1 book {}
         210 done g1
         300 message yes
         900 ask c1 book Shall I book?",
        "900 question.heard\n- ! check\n- tool.started",
    );
}

#[test]
fn after_hold_on_the_next_words_bring_the_question_back() {
    check(
        &Policy::default(),
        &after_asked(
            "5300 speech 2 5300
             5700 end 2 5600
             5750 words 2 hold on
             5900 check c1 unclear
             9000 speech 3 9000
             9400 end 3 9300
             9450 words 3 okay
             9700 check c2 yes
             10000 began u2
             12000 over u2 12000
             12400 speech 4 12400
             12800 end 4 12700
             12850 words 4 yes
             13100 check c3 yes",
        ),
        "model.told text=The caller asked to wait.
         question.repeated question=h_01
         12000 question.heard
         ! check c_03 yes
         tool.started",
    );
}

#[test]
fn what_stands_in_brackets_is_said_too() {
    let reply = |words| sayback_core::check::Reply {
        language: "en",
        question: "Shall I send a taxi at 3:30 pm?",
        words,
        input_json: None,
        speakers: None,
        confidence: None,
        agent_speech_after: false,
    };
    for words in ["yes (not really)", "yes [no]", "yes (but at four)", "[cancel] yes", "yes （no）"] {
        assert!(sayback_core::check::veto(&reply(words)).is_some(), "{words}");
    }
    assert!(sayback_core::check::veto(&reply("yes [laughs]")).is_none());
}

#[test]
fn a_piece_of_an_amount_is_not_that_amount() {
    let reply = |words| sayback_core::check::Reply {
        language: "en",
        question: "Shall I transfer 1,250 dollars and 50 cents?",
        words,
        input_json: Some("{\"amount\":\"1250.50\"}"),
        speakers: None,
        confidence: None,
        agent_speech_after: false,
    };
    for words in ["yes 250", "yes two hundred and fifty", "yes 125"] {
        assert!(sayback_core::check::veto(&reply(words)).is_some(), "{words}");
    }
}

#[test]
fn the_check_is_told_how_the_answer_sounded() {
    let booked = after_asked(
        "5300 speech 2 5300
         5600 end 2 5500
         5610 measured 2 -41 1
         5650 sure 2 57 yes",
    )
    .replace("1000 words 1", "990 measured 1 -20 -\n1000 words 1");
    check(&Policy::default(), &booked, "5700 ! check c_01 yes | sure 57 under 21 people 1 over false");
    // Of an answer in two parts, the worse of each.
    let parts = booked.replace(
        "5650 sure 2 57 yes",
        "5650 sure 2 57 yes
         5660 speech 3 5655
         5900 end 3 5800
         5910 measured 3 -19 2
         5950 sure 3 91 please",
    );
    check(&Policy::default(), &parts, "! check c_01 yes please | sure 57 under 21 people 2 over false");
    // Louder than before is not under; and nothing measured is nothing told.
    let louder = booked.replace("measured 2 -41", "measured 2 -12");
    check(&Policy::default(), &louder, "! check c_01 yes | sure 57 under 0 people 1 over false");
    let nothing = booked.replace("5610 measured 2 -41 1", "").replace("sure 2 57", "words 2");
    check(&Policy::default(), &nothing, "5700 ! check c_01 yes\n- ! check c_01 yes |");
}

#[test]
fn a_caller_who_has_moved_away_is_heard_again_after_one_more_asking() {
    let far = after_asked(
        "5300 speech 2 5300
         5600 end 2 5500
         5610 measured 2 -40 -
         5650 sure 2 90 yes
         5800 check c1 veto level
         5900 say g2 Sorry, that was faint.
         5910 done g2
         6000 began u2
         7000 over u2 7000
         7010 began u3
         9000 over u3 9000
         9300 speech 3 9300
         9600 end 3 9500
         9610 measured 3 -41 -
         9650 sure 3 90 yes",
    )
    .replace("1000 words 1", "990 measured 1 -20 -\n1000 words 1");
    check(
        &Policy::default(),
        &far,
        "! check c_01 yes | sure 90 under 20 people - over false
         answer.checked question=h_01 words=yes onset_ms=5300.0 margin_ms=300.0 verdict=unclear veto=level
         9700 ! check c_02 yes | sure 90 under 1 people - over false",
    );
}

#[test]
fn an_answer_over_the_agents_own_voice_is_told() {
    let mut policy = Policy::default();
    policy.confirm.adjacency = sayback_core::Adjacency::Off;
    check(
        &policy,
        &after_asked(
            "5100 speak By the way.
             5200 began u2
             5300 speech 2 5300
             5380 end 2 5370
             5650 words 2 yes",
        ),
        "! check c_01 yes | sure - under - people - over true",
    );
}

#[test]
fn vc_39_a_word_beside_what_nobody_said_is_no_yes() {
    let before = "5300 speech 2 5300\n5600 end 2 5500\n5700 phantom 2 [Music]
                  5900 speech 3 5900\n6300 end 3 6200\n6400 words 3 okay\n6700 check c1 yes";
    let after = "5300 speech 2 5300\n5600 end 2 5500\n5700 words 2 okay\n5800 check c1 yes
                 5900 speech 3 5880\n6300 end 3 6200\n6400 phantom 3 (speaking in foreign language)";
    for script in [before, after] {
        check(&Policy::default(), &after_asked(script), "! generate\n- tool.started\n- question.dropped");
    }
    let far = "5300 speech 2 5300\n5600 end 2 5500\n5700 phantom 2 [Music]
               6900 speech 3 6900\n7300 end 3 7200\n7400 words 3 okay\n7700 check c1 yes";
    check(&Policy::default(), &after_asked(far), "answer.checked question=h_01 words=okay\ntool.started");
}

/// A yes was heard and reported, and "yes" came again before it ran: the moment at which the whole answer is complete is
/// a deadline like any other, so that what happens then does not wait for somebody to look.
#[test]
fn a_yes_that_is_said_again_is_judged_when_the_whole_answer_is_complete() {
    let yes = "5300 speech 2 5300\n5500 end 2 5450\n5500 words 2 yes\n5700 check c1 yes";
    let after_speech =
        "5820 speak Hello.\n5850 began u2\n5900 speech 3 5900\n6000 end 3 5990\n6000 words 3 yes";
    check(
        &Policy::default(),
        &after_asked(&format!("{yes}\n{after_speech}\n9000 tick")),
        "5800 answer.checked question=h_01 words=yes onset_ms=5300.0 margin_ms=300.0 verdict=yes
         6340 caller.turn text=yes yes
         6340 question.repeated
         - tool.started",
    );
    let beside_music = "5900 speech 3 5900\n6000 end 3 5990\n6000 words 3 yes
                        6050 speech 4 6050\n6100 end 4 6090\n6110 phantom 4 [Music]";
    check(
        &Policy::default(),
        &after_asked(&format!("{yes}\n{beside_music}\n9000 tick")),
        "5800 answer.checked question=h_01 words=yes onset_ms=5300.0 margin_ms=300.0 verdict=yes
         6340 answer.checked question=h_01 words=yes yes onset_ms=5300.0 margin_ms=300.0 verdict=unclear veto=phantom_beside
         - tool.started",
    );
    let alone = "5900 speech 3 5900\n6000 end 3 5990\n6000 words 3 yes";
    check(&Policy::default(), &after_asked(&format!("{yes}\n{alone}")), "6590 tool.started");
}

/// A breath that was cut in two is one answer. Only politeness leans on the other piece: two doubtful pieces do not make a
/// sure one, and nor does politeness beside a doubtful yes.
#[test]
fn a_piece_of_politeness_is_as_sure_as_the_breath_it_belongs_to() {
    let two = |first: &str, gap: u64, second: &str| {
        let onset = 5500 + gap;
        let ends = [onset + 250, onset + 300, onset + 310, onset + 320];
        format!(
            "5300 speech 2 5200\n5510 end 2 5500\n5520 sure 2 {first}\n{} speech 3 {onset}\n{} end 3 {}\n{} sure 3 {second}\n{} check c1 unclear",
            onset + 60,
            ends[1],
            ends[0],
            ends[2],
            ends[3]
        )
    };
    for (script, sure) in [
        (two("90 yes", 240, "24 please"), "yes please | sure 60"),
        (two("24 please", 240, "90 yes"), "please yes | sure 54"),
        // As much in doubt as ever: the yes itself, what follows after a pause, and what says something.
        (two("24 yes", 240, "90 please"), "yes please | sure 24"),
        (two("24 please", 240, "30 please"), "please please | sure 24"),
        (two("90 yes", 240, "24 okay"), "yes okay | sure 24"),
        (two("90 yes", 240, "24 the red one"), "yes the red one | sure 24"),
        (two("90 yes", 240, "24 it"), "yes it | sure 24"),
        (two("90 yes", 400, "24 please"), "yes please | sure 24"),
    ] {
        let events = common::script(&after_asked(&script));
        let checks = run(&Policy::default(), &events, Duration::from_secs(3));
        let last = checks.iter().rfind(|line| line.contains("! check"));
        assert!(last.is_some_and(|line| line.contains(sure)), "{sure}\n{}", checks.join("\n"));
    }
}
