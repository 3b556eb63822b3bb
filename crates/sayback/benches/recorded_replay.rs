//! A recorded call of ten minutes, decided again: how much faster than it was held.
//!
//! `cargo bench -p sayback --bench recorded_replay` makes the call (a voice frame every 32 ms, a turn every 10 s, an
//! answer to each), records it, and prints the time to read it and decide all of it again, against real time.
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a bench reads the clock and prints")]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sayback::core::{
    CallStart, Command, Event, EvidenceClass, LoopDelay, ModelEvent, PlayoutEvent, Policy, Session, Time,
    Transcript, VoiceFrame,
};
use sayback::replay::bundle::{Bundle, recompute, write_run};
use sayback::replay::run::CallRun;
use sayback::runtime::record::{AgentSheet, CallSheet, Recorder};

const LENGTH: Duration = Duration::from_secs(600);
const FRAME: u64 = 32;
const RUNS: usize = 10;

/// A call in which the caller says something every 10 s and is answered.
fn call(policy: &Policy) -> Vec<(Time, Event)> {
    let mut session = Session::new(policy.clone());
    let start = CallStart {
        transport: "local".to_owned(),
        call: "bench".to_owned(),
        language: "en".to_owned(),
        greeting: None,
        chat: false,
    };
    let mut journal = vec![(Time::ZERO, Event::CallStarted(start))];
    let frames = LENGTH.as_millis() as u64 / FRAME;
    journal.extend((0..frames).map(|n| {
        let from = Time::from_millis(n * FRAME);
        let speech = if (n * FRAME) % 10_000 < 1_500 { 95 } else { 2 };
        let frame = VoiceFrame { start: from, end: Time::from_millis((n + 1) * FRAME), speech, rise: from };
        (Time::from_millis((n + 1) * FRAME), Event::Voice(frame))
    }));
    let mut waiting: VecDeque<(Time, Event)> = journal.into();
    let mut handed = Vec::new();
    while let Some((at, event)) = waiting.pop_front() {
        session.handle(at, event.clone());
        handed.push((at, event));
        let mut answers = Vec::new();
        while let Some(output) = session.poll_output() {
            answers.extend(answered(at, &output.command));
        }
        for answer in answers.into_iter().rev() {
            waiting.push_front(answer);
        }
    }
    handed
}

fn answered(at: Time, command: &Command) -> Vec<(Time, Event)> {
    let events = if let Command::CloseSegment { segment, .. } = command {
        vec![Event::Transcript(Transcript {
            segments: vec![*segment],
            span: None,
            text: "What time do you open on Friday?".to_owned(),
            confidence: Some(90),
            phantom: None,
        })]
    } else if let Command::Generate { generation } = command {
        let generation = *generation;
        let text = |text: &str| Event::Model(ModelEvent::Text { generation, text: text.to_owned() });
        let said = ["We ", "open ", "at ", "nine. ", "Anything ", "else?"].map(text);
        said.into_iter().chain([Event::Model(ModelEvent::Finished { generation })]).collect()
    } else if let Command::Speak(speak) = command {
        let utterance = speak.utterance;
        let (delay, evidence, lost) = (LoopDelay::default(), EvidenceClass::Device, Duration::ZERO);
        vec![
            Event::Playout(PlayoutEvent::Started { utterance, at }),
            Event::Playout(PlayoutEvent::Finished { utterance, last_audible: at, delay, evidence, lost }),
        ]
    } else {
        Vec::new()
    };
    events.into_iter().map(|event| (at, event)).collect()
}

fn main() {
    let policy = Policy::default();
    let run = CallRun { journal: call(&policy), ..CallRun::default() };
    let folder = std::env::temp_dir().join(format!("sayback-bench-{}", std::process::id()));
    let agent = AgentSheet { name: "bench".into(), file: "bench.toml".into(), hash: "sha256:0".into() };
    let recorder = Recorder::create(&folder, &CallSheet::new("bench", "local", agent, policy.clone()))
        .expect("the folder can be made");
    write_run(&run, &policy, &recorder, |_| {});
    recorder.finish(None).expect("it can be written");
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            let bundle = Bundle::open(&folder).expect("it can be read");
            let again = recompute(&bundle).expect("it can be decided again");
            assert_eq!(again.divergence, None, "it takes another course");
            assert!(again.events.iter().filter(|e| e["event"] == "caller.turn").count() >= 59);
            started.elapsed()
        })
        .collect();
    let _ = std::fs::remove_dir_all(&folder);
    times.sort();
    let median = times[times.len() / 2];
    println!(
        "{} inputs, {:.0} s of call in {:.1} ms (median of {RUNS}): {:.0} times real time",
        run.journal.len(),
        LENGTH.as_secs_f64(),
        median.as_secs_f64() * 1e3,
        LENGTH.as_secs_f64() / median.as_secs_f64()
    );
}
