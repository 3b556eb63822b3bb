//! Random faults of the far end's word on what it played, over random calls: none ever turns a call that does not run
//! into one that does.
//!
//! `SAYBACK_CASES` sets how many calls each property tries; a failure prints the smallest call that fails, and its seed
//! is kept in `ack_faults.regressions`.

#![expect(clippy::wildcard_enum_match_arm, reason = "only what is judged is looked at")]

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures::future::BoxFuture;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use sayback::core::{Event, EvidenceClass, PlayoutEvent, Time, UtteranceId, UtteranceKind, Verdict};
use sayback::replay::engines::{BlockOn, Engines};
use sayback::replay::run::{CallRun, run_scenario};
use sayback::replay::scenario::{
    AckFault, Act, AfterClear, CallerAct, CheckStep, LinePath, ModelStep, Point, Scenario, ScriptedAnswer,
    ScriptedCall, Speech, SpeechMode, Target, Transport, TtsFault, When,
};

#[derive(Debug)]
struct Waits(tokio::runtime::Runtime);

impl BlockOn for Waits {
    fn block_on(&self, future: BoxFuture<'_, ()>) {
        self.0.block_on(future);
    }
}

/// A run is kept to one thread: each has an executor of its own.
fn waits() -> Arc<Waits> {
    thread_local! {
        static WAITS: Arc<Waits> = Arc::new(Waits(
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an executor"),
        ));
    }
    WAITS.with(Arc::clone)
}

/// The clinic. `once`: the question is never said again, so that one call has one horizon.
fn engines(once: bool) -> Engines {
    static CLINIC: LazyLock<sayback::agentfile::AgentFile> = LazyLock::new(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/clinic.toml");
        sayback::agentfile::load(&path).expect("the clinic is part of the repository")
    });
    let mut agent = CLINIC.agent.clone();
    if once {
        agent.policy.confirm.silence_followup = None;
        agent.policy.confirm.rounds = 1;
    }
    Engines {
        waits: waits(),
        agent: Arc::new(agent),
        llm: None,
        sound: None,
        assumed_loop: CLINIC.line.assumed_loop,
        today: String::new(),
        screen: None,
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// When the caller asks for the appointment; the question follows at once.
const BOOKS: u64 = 1_000;
/// No question's horizon lies before this: the caller's turn, the model's step and the question's own length.
const HORIZON: u64 = 7_895;

/// Something that the caller does: when, how long it sounds, how late its words are, and what it is.
fn acts(words: &'static [&'static str], onsets: std::ops::Range<u64>) -> BoxedStrategy<CallerAct> {
    let what = proptest::sample::select(words);
    (onsets, 60_u64..1_100, prop_oneof![Just(0_u64), 0_u64..2_500], what)
        .prop_map(|(at, length, delay, text)| {
            let act = match text {
                "" => Act::Noise { length: ms(length), audio: None },
                text => Act::Speech(Speech {
                    text: text.to_owned(),
                    audio: None,
                    length: ms(length),
                    transcript_delay: ms(delay),
                    confidence: None,
                    echo: false,
                }),
            };
            CallerAct { line: 1, when: When::At(Time::from_millis(at)), act }
        })
        .boxed()
}

/// Nothing that brings the question back by itself, and no "mm-hm": alone it is unclear, and together with a yes it is a
/// yes. A late word on the question makes one answer of both, which is as right as two.
const PLAIN_WORDS: [&str; 5] = ["yes", "yes, please", "no", "on Friday", ""];
const ANY_WORDS: [&str; 8] = ["yes", "yes, please", "no", "on Friday", "mm-hm", "hold on", "what", ""];

fn target() -> impl Strategy<Value = Target> {
    let kind = prop_oneof![
        3 => Just(Some(UtteranceKind::Question)),
        1 => Just(Some(UtteranceKind::Speech)),
        1 => Just(None),
    ];
    (kind, prop_oneof![2 => Just(None), 1 => (1_u32..4).prop_map(Some)])
        .prop_map(|(kind, occurrence)| Target { kind, occurrence })
}

fn ack_fault() -> impl Strategy<Value = AckFault> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (target(), prop_oneof![Just(0_u64), 0_u64..6_000], flags, proptest::bool::weighted(0.2)).prop_map(
        |(on, delay, (duplicate, echo, reorder, earlier), lose)| AckFault {
            line: 1,
            on,
            delay: ms(delay),
            lose,
            duplicate,
            after_clear: if echo { AfterClear::Echo } else { AfterClear::Silent },
            reorder,
            earlier,
        },
    )
}

fn tts_fault() -> impl Strategy<Value = TtsFault> {
    let gap = prop_oneof![Just(None), (0_u8..100, 1_u64..900).prop_map(Some)];
    (target(), gap, 0_u64..500, prop_oneof![Just(0_u64), 0_u64..400], 0_u64..600).prop_map(
        |(on, gap, silence_tail, lost, delay)| TtsFault {
            line: 1,
            on,
            fail_at: None,
            silence_tail: ms(silence_tail),
            gap: gap.map(|(at, long)| (Point::Percent(at), ms(long))),
            lost: ms(lost),
            delay: ms(delay),
        },
    )
}

fn line() -> impl Strategy<Value = LinePath> {
    const KINDS: [(Transport, EvidenceClass); 7] = [
        (Transport::Local, EvidenceClass::Device),
        (Transport::WebRtc, EvidenceClass::Page),
        (Transport::Sip, EvidenceClass::Echo),
        (Transport::Sip, EvidenceClass::Xr),
        (Transport::Sip, EvidenceClass::Rtcp),
        (Transport::Sip, EvidenceClass::Assumed),
        (Transport::MediaStream, EvidenceClass::Mark),
    ];
    let trip = prop_oneof![Just(None), (0_u64..600).prop_map(Some)];
    (proptest::sample::select(&KINDS[..]), trip).prop_map(|((transport, evidence), trip)| LinePath {
        transport,
        round_trip: trip.map(ms),
        output_buffer: Duration::ZERO,
        evidence,
    })
}

/// Seldom before the question, more often around its end.
fn callers(words: &'static [&'static str]) -> impl Strategy<Value = Vec<CallerAct>> {
    vec(prop_oneof![1 => acts(words, 2_500..14_000), 3 => acts(words, 8_000..10_500)], 1..4)
}

/// A random call in which the model calls `asks` times.
fn call(words: &'static [&'static str], asks: usize) -> impl Strategy<Value = Scenario> {
    let script = (vec(0_u64..700, 4), any::<bool>());
    (line(), callers(words), vec(tts_fault(), 0..2), script).prop_map(
        move |(line, mut callers, tts_faults, (check_delays, preamble))| {
            let book = Act::Speech(Speech {
                text: "Book me for Thursday at three".to_owned(),
                audio: None,
                length: ms(1_200),
                transcript_delay: Duration::ZERO,
                confidence: None,
                echo: false,
            });
            callers.insert(0, CallerAct { line: 1, when: When::At(Time::from_millis(BOOKS)), act: book });
            let input = r#"{"start":"2026-12-03T15:00","email":"anna@example.com"}"#;
            let step = |calls: bool, say: Option<&str>| ModelStep {
                line: 1,
                say: say.map(str::to_owned),
                calls: if calls {
                    vec![ScriptedCall { tool: "book_appointment".to_owned(), input: input.to_owned() }]
                } else {
                    Vec::new()
                },
                say_after: None,
                delay: ms(1_300),
                error: None,
            };
            let first = preamble.then_some("Let me see. One moment.");
            let mut model: Vec<ModelStep> = (0..asks).map(|_| step(true, first)).collect();
            model.extend((0..6).map(|_| step(false, Some("Very well."))));
            let check = |delay: &u64| CheckStep {
                line: 1,
                answer: ScriptedAnswer::Verdict(Verdict::Yes),
                delay: ms(*delay),
            };
            Scenario {
                path: "random.call.toml".into(),
                title: "random".to_owned(),
                agent: "clinic.toml".into(),
                agent_at: (2, 1),
                speech: SpeechMode::Text,
                line,
                callers,
                model: Some(model),
                checks: Some(check_delays.iter().map(check).collect()),
                approvals: Vec::new(),
                tools: Vec::new(),
                tts_faults,
                ack_faults: Vec::new(),
                expects: Vec::new(),
                end_at: Some(Time::from_millis(40_000)),
                limit: ms(60_000),
            }
        },
    )
}

fn run(scenario: &Scenario, once: bool) -> CallRun {
    run_scenario(scenario, SpeechMode::Text, &engines(once)).expect("text mode needs nothing")
}

fn runs(run: &CallRun) -> usize {
    run.records.iter().filter(|record| record.outcome == "committed").count()
}

/// Whoever ran may have run: the words were spoken after the whole question had sounded, as far as its first sample, its
/// length and its pauses tell, none of which an acknowledgement can touch.
fn assert_runs_had_heard_questions(run: &CallRun) -> Result<(), TestCaseError> {
    let questions: Vec<UtteranceId> = questions(run);
    for record in run.records.iter().filter(|record| record.outcome == "committed") {
        let (onset, margin) = record.answer_onset.expect("a run has an answer");
        prop_assert!(margin >= 0, "{record:?}");
        let asked =
            run.journal.iter().rev().filter(|(at, _)| *at <= onset).find_map(|(_, event)| match event {
                Event::Playout(PlayoutEvent::Started { utterance, at }) if questions.contains(utterance) => {
                    Some((*utterance, *at))
                }
                _ => None,
            });
        let Some((utterance, began)) = asked else { return Err(TestCaseError::fail("no question sounded")) };
        let length = run.journal.iter().find_map(|(_, event)| match event {
            Event::Playout(PlayoutEvent::Synthesised { utterance: u, audible_to, .. }) if *u == utterance => {
                Some(*audible_to)
            }
            _ => None,
        });
        let sounded_to = began + length.expect("its length is known");
        prop_assert!(onset >= sounded_to, "answered at {onset}, and it sounded to {sounded_to}");
        let cleared = run.journal.iter().any(|(_, event)| {
            matches!(event, Event::Playout(PlayoutEvent::Cleared { utterance: u, .. }) if *u == utterance)
        });
        prop_assert!(!cleared, "the question that was answered was thrown away");
    }
    Ok(())
}

/// The utterances that were questions, by what the log says was said.
fn questions(run: &CallRun) -> Vec<UtteranceId> {
    let said = run.events.iter().filter(|line| line["event"] == "agent.said");
    let questions = said.filter(|line| line["text"].as_str().is_some_and(|text| text.starts_with("Shall I")));
    questions.filter_map(|line| serde_json::from_value(line["utterance"].clone()).ok()).collect()
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("SAYBACK_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(256);
    ProptestConfig {
        cases,
        max_shrink_iters: 2_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn no_fault_makes_a_run_of_a_question_that_was_not_heard(
        call in call(&ANY_WORDS, 3),
        faults in vec(ack_fault(), 0..4),
    ) {
        let mut call = call;
        call.ack_faults = faults;
        assert_runs_had_heard_questions(&run(&call, false))?;
    }

    #[test]
    fn no_fault_turns_a_call_that_does_not_run_into_one_that_does(
        call in call(&PLAIN_WORDS, 1),
        faults in vec(ack_fault(), 1..4),
    ) {
        let without = runs(&run(&call, true));
        let mut faulty = call;
        faulty.ack_faults = faults;
        let with = runs(&run(&faulty, true));
        prop_assert!(with <= without, "{with} runs with faults, {without} without");
    }

    #[test]
    fn speech_before_the_horizon_turns_no_call_into_one_that_runs(
        call in call(&PLAIN_WORDS, 1),
        faults in vec(ack_fault(), 0..3),
        more in acts(&PLAIN_WORDS, 2_600..HORIZON),
    ) {
        let mut call = call;
        call.ack_faults = faults;
        let without = runs(&run(&call, true));
        call.callers.push(more);
        let with = runs(&run(&call, true));
        prop_assert!(with <= without, "{with} runs with more speech, {without} without");
    }
}

/// Random calls prove nothing if none of them ever runs.
#[test]
fn random_calls_run_and_do_not_run() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut ran, mut not, mut spoiled) = (0, 0, 0);
    for _ in 0..150 {
        let (mut call, faults) = (call(&PLAIN_WORDS, 1), vec(ack_fault(), 1..4))
            .new_tree(&mut runner)
            .expect("calls can be made")
            .current();
        let without = runs(&run(&call, true));
        call.ack_faults = faults;
        let with = runs(&run(&call, true));
        ran += usize::from(without > 0);
        not += usize::from(without == 0);
        spoiled += usize::from(with < without);
    }
    println!("{ran} calls run, {not} do not, faults spoil {spoiled}");
    assert!(ran >= 20 && not >= 20 && spoiled >= 5, "{ran} run, {not} do not, {spoiled} spoiled");
}
