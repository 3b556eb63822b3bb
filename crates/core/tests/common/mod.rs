//! Scripts as text: a line an event, and the outputs as lines to compare with.
//!
//! ```text
//! 0 start                       a voice call; `start hello there` has a greeting, `chat` is typed
//! 100 speech 1 100              segment 1 begins; `100..120` is an interval
//! 500 end 1 450                 it ended at 450
//! 700 words 1 book it           its final words; without words: none
//! 900 say g1 Let me see.        the model's text; `call g1 c1 book {..}`, `done g1`, `fail g1`
//! 901 ask c1 Shall I book?      a call was prepared; `plain c1 find`, `refuse c1 why`, `refuse-plain c1 why`
//! 1000 began u1                 an utterance sounds; `sized u1 0..3000`, `over u1 4000 [+loop]`, `cleared u1 700`
//! 5900 check c1 yes             the check's answer; `check c1 fail timeout`, `check c1 veto negation`
//! 6000 ran c1 Booked.           a tool is done; `failed c1 why`
//! 7000 digit 1, hangup, hold, resume, message yes, tick, tools book find, echo 1, rewind 3
//! ```
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod monitor;
pub(crate) mod world;

use std::time::Duration;

use sayback_core::*;

pub(crate) fn ms(text: &str) -> Time {
    Time::from_millis(text.parse().unwrap_or_else(|_| panic!("not a time: {text}")))
}

fn number(text: &str) -> u32 {
    text.trim_start_matches(|c: char| c.is_alphabetic())
        .parse()
        .unwrap_or_else(|_| panic!("not an id: {text}"))
}

pub(crate) fn frozen(json: &str) -> Frozen {
    Frozen { json: json.to_owned(), hash: format!("sha256:{json}") }
}

pub(crate) fn tool(name: &str) -> ToolRef {
    ToolRef { skill: "desk".to_owned(), name: name.to_owned(), definition: "sha256:1".to_owned() }
}

/// The call id of the model's call; the tool's name is remembered by the script as `c1=book`.
pub(crate) fn ask(tool_name: &str, question: &str) -> Prepared {
    Prepared::Ask {
        tool: tool(tool_name),
        input: frozen("{\"n\":1}"),
        question: question.to_owned(),
        language: "en".to_owned(),
        terms: AskTerms::default(),
    }
}

/// One line to one event at its time.
pub(crate) fn parse(line: &str) -> (Time, Event) {
    let mut words = line.split_whitespace();
    let at = ms(words.next().unwrap_or_default());
    let verb = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    let arg = |i: usize| rest.get(i).copied().unwrap_or_default();
    let tail = |i: usize| rest.get(i..).unwrap_or_default().join(" ");
    let call = |i: usize| CallId(arg(i).to_owned());
    let generation = GenerationId(if arg(0).starts_with('g') { number(arg(0)) } else { 0 });
    let event = match verb {
        "start" | "chat" => Event::CallStarted(CallStart {
            transport: if verb == "chat" { "chat" } else { "local" }.to_owned(),
            call: "call".to_owned(),
            language: "en".to_owned(),
            greeting: Some(tail(0)).filter(|t| !t.is_empty()),
            chat: verb == "chat",
        }),
        "speech" => {
            let (a, b) = arg(1).split_once("..").unwrap_or((arg(1), arg(1)));
            Event::SpeechStarted { segment: SegmentId(number(arg(0))), onset: Interval::new(ms(a), ms(b)) }
        }
        "end" => Event::SpeechEnded { segment: SegmentId(number(arg(0))), offset: ms(arg(1)) },
        "partial" => Event::Partial { segment: SegmentId(number(arg(0))), text: tail(1) },
        "words" => Event::Transcript(Transcript {
            segments: arg(0).split(',').map(|id| SegmentId(number(id))).collect(),
            span: None,
            text: tail(1),
            confidence: None,
            phantom: None,
        }),
        "echo" => Event::Echo { segment: SegmentId(number(arg(0))) },
        "say" => Event::Model(ModelEvent::Text { generation, text: format!("{} ", tail(1)) }),
        "call" => Event::Model(ModelEvent::Call {
            generation,
            call: ToolCall { id: call(1), name: arg(2).to_owned(), input: tail(3) },
        }),
        "done" => Event::Model(ModelEvent::Finished { generation }),
        "fail" => Event::Model(ModelEvent::Failed { generation, error: "down".to_owned() }),
        "ask" => Event::Prepared { call: call(0), outcome: ask(arg(1), &tail(2)) },
        "plain" => Event::Prepared {
            call: call(0),
            outcome: Prepared::Plain { tool: tool(arg(1)), input: frozen("{}") },
        },
        "refuse" | "refuse-plain" => Event::Prepared {
            call: call(0),
            outcome: Prepared::Refused {
                reason: Refusal::InvalidInput,
                message: tail(1),
                confirms: verb == "refuse",
            },
        },
        "began" => Event::Playout(PlayoutEvent::Started { utterance: UtteranceId(number(arg(0))), at }),
        "sized" => {
            let (a, b) = arg(1).split_once("..").unwrap_or(("0", arg(1)));
            Event::Playout(PlayoutEvent::Synthesised {
                utterance: UtteranceId(number(arg(0))),
                audible_from: ms(a).since(Time::ZERO),
                audible_to: ms(b).since(Time::ZERO),
            })
        }
        "over" => {
            let delay = arg(2).trim_start_matches('+');
            let delay = Duration::from_millis(delay.parse().unwrap_or(0));
            Event::Playout(PlayoutEvent::Finished {
                utterance: UtteranceId(number(arg(0))),
                last_audible: ms(arg(1)),
                delay: LoopDelay::exact(delay),
                evidence: EvidenceClass::Virtual,
                lost: Duration::ZERO,
            })
        }
        "cleared" => Event::Playout(PlayoutEvent::Cleared {
            utterance: UtteranceId(number(arg(0))),
            played: ms(arg(1)).since(Time::ZERO),
            audible_from: Duration::ZERO,
            audible_to: None,
        }),
        "broke" => Event::Playout(PlayoutEvent::Failed {
            utterance: UtteranceId(number(arg(0))),
            failure: if arg(1) == "device" { PlayoutFailure::DeviceLost } else { PlayoutFailure::TtsFailed },
            played: Duration::ZERO,
        }),
        "check" => Event::Checked {
            check: CheckId(number(arg(0))),
            answer: match arg(1) {
                "yes" => CheckAnswer::Verdict { verdict: Verdict::Yes },
                "no" => CheckAnswer::Verdict { verdict: Verdict::No },
                "unclear" => CheckAnswer::Verdict { verdict: Verdict::Unclear },
                "veto" => CheckAnswer::Vetoed { veto: tail(2) },
                _ => CheckAnswer::Failed { error: tail(2) },
            },
        },
        "ran" => Event::ToolFinished { call: call(0), outcome: ToolOutcome::Done { message: tail(1) } },
        "failed" => Event::ToolFinished { call: call(0), outcome: ToolOutcome::Failed { message: tail(1) } },
        "digit" => Event::Digit { digit: arg(0).chars().next().unwrap_or('0'), start: at },
        "hangup" => Event::HungUp,
        "hold" => Event::LineHeld,
        "resume" => Event::LineResumed,
        "message" => Event::Message { text: tail(0), received: at },
        "tools" => Event::Tools(rest.iter().map(|name| tool(name)).collect()),
        "rewind" => Event::Rewound(Rewind { items: number(arg(0)) }),
        "tick" => Event::Tick,
        other => panic!("unknown verb {other} in: {line}"),
    };
    (at, event)
}

pub(crate) fn script(text: &str) -> Vec<(Time, Event)> {
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .map(parse)
        .collect()
}

/// One output as a line: `4000 question.heard h_01`, `4000 ! speak u_02 Shall I book?`.
pub(crate) fn show(output: &Output) -> String {
    let at = output.at.as_micros() / 1_000;
    let what = match &output.command {
        Command::Report(report) => {
            let mut value = serde_json::to_value(report).expect("reports serialise");
            let event = value["event"].as_str().unwrap_or_default().to_owned();
            let fields = value.as_object_mut().expect("a report is an object");
            fields.shift_remove("event");
            let fields: Vec<String> = fields.iter().map(|(k, v)| format!("{k}={}", plain(v))).collect();
            format!("{event} {}", fields.join(" "))
        }
        Command::Speak(speak) => format!("! speak {} {:?} {}", speak.utterance, speak.kind, speak.text),
        Command::RunConfirmed(yes) => format!("! run {} by {}", yes.call(), yes.confirmed_by()),
        Command::Check(request) => format!("! check {} {}", request.check, request.words),
        Command::Record(record) => format!("! record {} {}", record.hold, record.outcome),
        other => {
            let value = serde_json::to_value(other).expect("commands serialise");
            format!("! {}", value["type"].as_str().unwrap_or_default())
        }
    };
    format!("{at} {what}").trim_end().to_owned()
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Runs a script to its end and then `tail` longer; every output as a line.
pub(crate) fn run(policy: &Policy, events: &[(Time, Event)], tail: Duration) -> Vec<String> {
    let mut session = Session::new(policy.clone());
    let mut lines = Vec::new();
    let mut end = Time::ZERO;
    for (at, event) in events {
        session.handle(*at, event.clone());
        drain(&mut session, &mut lines);
        end = end.max(*at);
    }
    session.handle_timeout(end + tail);
    drain(&mut session, &mut lines);
    lines
}

pub(crate) fn drain(session: &mut Session, lines: &mut Vec<String>) {
    while let Some(output) = session.poll_output() {
        lines.push(show(&output));
    }
}

/// The same with empty ticks every few milliseconds.
pub(crate) fn run_with_ticks(
    policy: &Policy,
    events: &[(Time, Event)],
    tail: Duration,
    step_ms: u64,
) -> Vec<String> {
    let mut session = Session::new(policy.clone());
    let mut lines = Vec::new();
    let mut now = Time::ZERO;
    let step = Duration::from_millis(step_ms);
    let last = events.last().map_or(Time::ZERO, |(at, _)| *at);
    for (at, event) in events {
        while now + step < *at {
            now = now + step;
            session.handle(now, Event::Tick);
            drain(&mut session, &mut lines);
        }
        session.handle(*at, event.clone());
        drain(&mut session, &mut lines);
        now = now.max(*at);
    }
    while now + step < last + tail {
        now = now + step;
        session.handle(now, Event::Tick);
        drain(&mut session, &mut lines);
    }
    session.handle_timeout(last + tail);
    drain(&mut session, &mut lines);
    lines
}

/// Runs the script with and without ticks; the expected lines must come in this order (prefixes), and no line may
/// begin (after its time) with one of the `never` lines, which start with `-`.
#[track_caller]
pub(crate) fn check(policy: &Policy, text: &str, expect: &str) {
    let events = script(text);
    let lines = run(policy, &events, Duration::from_secs(3));
    for step in [1, 7, 10] {
        let ticked = run_with_ticks(policy, &events, Duration::from_secs(3), step);
        assert_eq!(lines, ticked, "ticks every {step} ms changed the outputs");
    }
    let all = lines.join("\n");
    let mut at = 0;
    for want in expect.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(never) = want.strip_prefix("- ") {
            let hit =
                lines.iter().find(|l| l.split_once(' ').is_some_and(|(_, rest)| rest.starts_with(never)));
            assert!(hit.is_none(), "never expected: {never}\nbut got: {hit:?}\nin\n{all}");
            continue;
        }
        let found = lines[at..].iter().position(|line| {
            let timed = want.starts_with(|c: char| c.is_ascii_digit());
            let line = if timed { line.as_str() } else { line.split_once(' ').map_or("", |(_, rest)| rest) };
            line.starts_with(want)
        });
        let Some(found) = found else { panic!("expected (after line {at}): {want}\nin\n{all}") };
        at += found + 1;
    }
}
