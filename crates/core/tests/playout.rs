//! The agent's voice, as scripts: pauses, false interruptions, cuts, and what of it was heard.

mod common;

use common::{after, check, script};
use sayback_core::*;

/// The agent answers with a long sentence, u_01, from 2000 on.
const ANSWERS: &str = "
    0 start
    500 speech 1 500
    900 end 1 850
    1000 words 1 what is free on thursday
    1300 say g1 On Thursday there is three, four and five.
    1301 done g1
    2000 began u1
    2000 sized u1 0..4000
";

/// The model calls `book` at once; the question u_01 sounds from 3000 on and takes two seconds.
const ASKS: &str = "
    0 start
    500 speech 1 500
    900 end 1 850
    1000 words 1 book thursday at three
    1300 call g1 c1 book {}
    1310 done g1
    1320 ask c1 book Shall I book Thursday at three?
    3000 began u1
    3000 sized u1 0..2000
";

fn default() -> Policy {
    Policy::default()
}

#[test]
fn speech_pauses_the_agent_and_a_cough_lets_it_go_on() {
    check(
        &default(),
        &after(
            ANSWERS,
            "3000 speech 2 3000
             3500 end 2 3400
             3600 words 2
             6600 over u1 6600",
        ),
        "3096 ! pause
         3096 agent.paused
         3600 ! resume
         3600 agent.resumed
         6600 agent.heard utterance=u_01
         - ! clear",
    );
}

#[test]
fn without_words_the_agent_goes_on_by_itself() {
    check(
        &default(),
        &after(ANSWERS, "3000 speech 2 3000\n5000 end 2 4900\n6500 words 2\n9000 over u1 9000"),
        "3096 ! pause\n5700 ! resume\n9000 agent.heard utterance=u_01\n- ! clear",
    );
    check(
        &default(),
        &after(ASKS, "3500 speech 2 3500\n3900 end 2 3820\n5500 words 2\n5720 over u1 5720"),
        "3700 ! pause\n4420 ! resume\n5720 question.heard\n- question.dropped\n- question.repeated",
    );
}

#[test]
fn the_agent_does_not_go_on_into_sound_and_yet_not_never() {
    // Nothing is known of the words, and the caller has not fallen silent.
    check(&default(), &after(ANSWERS, "3000 speech 2 3000\n6000 tick"), "3096 ! pause\n8096 ! resume");
}

/// The model says something before it calls `book`: u_01 from 1500 on and u_02; u_03 is the question.
const LEADS_UP: &str = "
    0 start
    500 speech 1 500
    900 end 1 850
    1000 words 1 book thursday at three
    1300 say g1 Let me see. That is free. So then
    1305 call g1 c1 book {}
    1310 done g1
    1320 ask c1 book Shall I book Thursday at three?
    1500 began u1
    1500 sized u1 0..1000
";

#[test]
fn row_6a_even_a_short_sound_over_the_lead_up_holds_the_question_back() {
    // 64 ms: less than what pauses the agent elsewhere. It had words.
    check(
        &default(),
        &after(
            LEADS_UP,
            "2000 speech 2 2000
             2240 end 2 2064
             2600 words 2 wait
             2601 cleared u1 500
             9000 tick",
        ),
        "2000 ! pause
         2600 question.dropped question=h_01 reason=cancelled
         2600 ! clear
         2600 caller.turn text=wait
         - question.started
         - ! resume",
    );
    // It had none: the agent goes on at once.
    check(
        &default(),
        &after(
            LEADS_UP,
            "2000 speech 2 2000
             2240 end 2 2064
             2600 words 2
             3100 over u1 3100
             3110 began u2
             3200 over u2 3200
             3210 began u3
             5210 over u3 5210",
        ),
        "2000 ! pause\n2600 ! resume\n3210 question.started\n5210 question.heard\n- question.dropped",
    );
}

#[test]
fn row_6a_no_time_limit_lets_the_question_begin_before_the_words_are_known() {
    check(
        &default(),
        &after(LEADS_UP, "2000 speech 2 2000\n2240 end 2 2064\n5000 tick\n7000 words 2\n8000 tick"),
        "2000 ! pause\n7000 ! resume\n- question.started",
    );
}

#[test]
fn row_6a_a_second_sound_takes_over_from_the_first() {
    check(
        &default(),
        &after(
            LEADS_UP,
            "2000 speech 2 2000
             2240 end 2 2064
             2300 speech 3 2280
             2600 words 2
             2640 end 3 2400
             2900 words 3
             9000 tick",
        ),
        "2000 ! pause\n2900 ! resume",
    );
}

#[test]
fn row_6a_counts_a_sound_from_before_the_call_was_made() {
    // The words over the sentence are still unknown when the model makes its call.
    let late = "
        0 start
        500 speech 1 500
        900 end 1 850
        1000 words 1 book thursday at three
        1300 say g1 Let me see. That is free. So then
        1500 began u1
        1500 sized u1 0..2000
        1700 speech 2 1700
        1790 end 2 1764
        2000 call g1 c1 book {}
        2010 done g1
        2020 ask c1 book Shall I book Thursday at three?
        2600 words 2 hold on please
        2601 cleared u1 500
        9000 tick";
    check(
        &default(),
        late,
        "2020 ! pause\n2600 question.dropped question=h_01 reason=cancelled\n- question.started",
    );
}

#[test]
fn while_words_are_coming_the_agent_stays_quiet() {
    check(
        &default(),
        &after(
            ANSWERS,
            "3000 speech 2 3000
             3500 partial 2 no I
             4500 end 2 4400
             4600 words 2 no I meant friday
             4601 cleared u1 1096
             5000 tick",
        ),
        "3096 ! pause\n4600 ! clear\n4750 caller.turn text=no I meant friday\n- ! resume",
    );
}

#[test]
fn words_cut_the_agent_and_the_model_reads_the_heard_part() {
    let events = script(&after(
        ANSWERS,
        "3900 speech 2 3900
         4300 end 2 4250
         4400 words 2 three please
         4405 cleared u1 2000",
    ));
    let mut session = Session::new(default());
    for (at, event) in events {
        session.handle(at, event);
        while session.poll_output().is_some() {}
    }
    let heard = Item::Agent { text: "On Thursday there is".to_owned(), complete: false };
    assert!(session.items().contains(&heard), "{:?}", session.items());
}

#[test]
fn a_question_with_a_long_gap_in_it_starts_again() {
    check(
        &default(),
        &after(
            ASKS,
            "3500 speech 2 3500
             3600 partial 2 uh
             4800 end 2 4700
             4900 words 2
             4901 cleared u1 700
             5000 began u2
             7000 over u2 7000",
        ),
        "3700 ! pause
         4900 question.repeated question=h_01 round=0
         ! speak u_02 Question Shall I book Thursday at three?
         7000 question.heard question=h_01
         - question.dropped",
    );
}

#[test]
fn late_words_over_the_part_before_the_gap_drop_the_question_that_started_again() {
    for late in ["4590 words 2 no wait\n4700 began u2", "4600 began u2\n4750 words 2 no wait"] {
        let script =
            format!("3500 speech 2 3500\n4000 end 2 3960\n4565 cleared u1 700\n{late}\n7000 over u2 7000");
        check(
            &default(),
            &after(ASKS, &script),
            "3700 ! pause
             ! resume
             question.repeated question=h_01 round=0
             question.dropped question=h_01 reason=barge_in
             - question.heard",
        );
    }
}

#[test]
fn speech_that_begins_in_the_last_300_ms_does_not_pause_the_question() {
    check(
        &default(),
        &after(ASKS, "4750 speech 2 4750\n5000 over u1 5000\n5200 end 2 5150\n5300 words 2"),
        "5300 question.heard question=h_01 earliest_ms=5000.0 latest_ms=5000.0\n- ! pause",
    );
    check(
        &default(),
        &after(ASKS, "4600 speech 2 4600\n4900 end 2 4850\n4950 words 2\n5200 over u1 5200"),
        "4800 ! pause\n4950 ! resume",
    );
}

#[test]
fn vc_44_the_agents_own_echo_is_nothing() {
    check(
        &default(),
        &after(ASKS, "3500 speech 2 3500\n3600 echo 2\n5000 over u1 5000\n5600 tick"),
        "5000 question.heard\n- ! pause\n- question.dropped",
    );
}

#[test]
fn vc_57_speech_between_the_end_and_the_horizon_makes_a_yes_stale() {
    check(
        &default(),
        &after(
            ASKS,
            "4000 speak By the way, we are open.
             5000 over u1 5000 +350
             5010 began u2
             6000 over u2 6000
             6500 speech 2 6500
             6900 end 2 6800
             7000 words 2 yes
             7200 check c1 yes",
        ),
        "5350 question.heard
         answer.checked question=h_01 words=yes
         question.repeated question=h_01
         - tool.started",
    );
}

#[test]
fn vc_57_speech_after_a_cough_makes_a_yes_stale() {
    check(
        &default(),
        &after(
            ASKS,
            "5000 over u1 5000
             5300 speech 2 5300
             5350 speak By the way, we are open.
             5400 began u2
             5500 end 2 5450
             5600 words 2
             6400 over u2 6400
             6800 speech 3 6800
             7200 end 3 7100
             7300 words 3 yes
             7500 check c1 yes",
        ),
        "answer.checked question=h_01 words=yes\nquestion.repeated question=h_01\n- tool.started",
    );
}

#[test]
fn vc_56_a_cough_does_not_end_the_silence() {
    check(
        &default(),
        &after(ASKS, "5000 over u1 5000\n6000 speech 2 6000\n6200 end 2 6100\n6300 words 2\n11500 tick"),
        "11000 silence.followup n=1 text=Shall I book Thursday at three?",
    );
}

#[test]
fn vc_42_a_line_held_after_the_last_sample_was_sent_loses_it_too() {
    check(
        &default(),
        &after(ASKS, "4000 over u1 5000\n4200 hold\n6000 resume"),
        "question.dropped question=h_01 reason=not_played\n- question.heard",
    );
}

#[test]
fn vc_42_a_line_held_before_the_question_loses_nothing_of_it() {
    check(
        &default(),
        &ASKS
            .replace("3000 began", "1400 hold\n2400 resume\n3000 began")
            .replace("3000 sized u1 0..2000", "3000 sized u1 0..2000\n5000 over u1 5000\n5500 tick"),
        "5000 question.heard\n- question.dropped",
    );
}

#[test]
fn vc_43_words_over_the_sentences_before_the_question_cancel_it() {
    check(
        &default(),
        &ASKS
            .replace("1300 call", "1290 say g1 Fine. I will book it.\n1300 call")
            .replace("3000 began u1", "2000 began u1\n2300 speech 2 2280\n2700 end 2 2650\n2800 words 2 wait")
            .replace("3000 sized u1 0..2000", "3000 tick"),
        "agent.said utterance=u_02 text=Shall I book
         2800 question.dropped question=h_01 reason=cancelled
         model.told
         caller.turn text=wait
         - question.started",
    );
}

#[test]
fn an_utterance_that_is_never_reported_played_counts_as_not_heard() {
    check(
        &default(),
        &after(ASKS, "10500 tick"),
        "10000 question.dropped question=h_01 reason=not_played\nmodel.told\n- question.heard",
    );
}

#[test]
fn nothing_is_said_on_a_line_that_was_closed() {
    check(
        &default(),
        "0 start
         100 close
         200 speak Hello?
         300 asked p1 book Shall I book?",
        "100 ! end_call\n- ! speak\n- question.held",
    );
}
