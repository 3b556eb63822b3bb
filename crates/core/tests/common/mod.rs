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
//! 7000 measured 2 -31 1        segment 2 had a level of -31 dB and one speaker; `-` is not measured
//! 7000 sure 2 57 book it        as `words`, with a confidence of 57 percent
//! 7000 judge 2 30              the end-of-turn model is 30 percent sure after segment 2
//! 7000 asked p1 book Shall I?, speak Hello., close    the program asks, says, ends the call
//! 7000 redefined book           the tool has another definition
//! 7000 digit 1, hangup, hold, resume, message yes, tick, tools book find, echo 1, rewind 3
//! ```
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod caller;
pub(crate) mod monitor;
pub(crate) mod world;

use std::time::Duration;

use sayback_core::*;

/// A caller asks, the model calls `book`, the question is u_01, sounds at 3000 and is heard at 5000.
pub(crate) const ASKED: &str = "
    0 start
    500 speech 1 500
    900 end 1 850
    1000 words 1 book thursday at three
    1300 call g1 c1 book {}
    1310 done g1
    1320 ask c1 book Shall I book Thursday at three?
    3000 began u1
    3000 sized u1 0..2000
    5000 over u1 5000
";

/// A script that goes on.
pub(crate) fn after(before: &str, more: &str) -> String {
    format!("{before}\n{more}")
}

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

/// One line, cut up: its time, its verb and what follows.
struct Line<'a> {
    at: Time,
    verb: &'a str,
    rest: Vec<&'a str>,
}

impl Line<'_> {
    fn arg(&self, index: usize) -> &str {
        self.rest.get(index).copied().unwrap_or_default()
    }

    fn tail(&self, from: usize) -> String {
        self.rest.get(from..).unwrap_or_default().join(" ")
    }

    fn call(&self, index: usize) -> CallId {
        CallId(self.arg(index).to_owned())
    }

    fn segment(&self) -> SegmentId {
        SegmentId(number(self.arg(0)))
    }

    fn utterance(&self) -> UtteranceId {
        UtteranceId(number(self.arg(0)))
    }

    fn generation(&self) -> GenerationId {
        GenerationId(number(self.arg(0)))
    }
}

/// One line to one event at its time.
pub(crate) fn parse(line: &str) -> (Time, Event) {
    let mut words = line.split_whitespace();
    let at = ms(words.next().unwrap_or_default());
    let verb = words.next().unwrap_or_default();
    let cut = Line { at, verb, rest: words.collect() };
    let event = caller_event(&cut)
        .or_else(|| model_event(&cut))
        .or_else(|| playout_event(&cut))
        .or_else(|| program_event(&cut))
        .unwrap_or_else(|| panic!("unknown verb {verb} in: {line}"));
    (at, event)
}

fn caller_event(line: &Line<'_>) -> Option<Event> {
    Some(match line.verb {
        "speech" => {
            let (a, b) = line.arg(1).split_once("..").unwrap_or((line.arg(1), line.arg(1)));
            Event::SpeechStarted { segment: line.segment(), onset: Interval::new(ms(a), ms(b)) }
        }
        "end" => Event::SpeechEnded { segment: line.segment(), offset: ms(line.arg(1)) },
        "partial" => Event::Partial { segment: line.segment(), text: line.tail(1) },
        "words" => Event::Transcript(Transcript {
            segments: line.arg(0).split(',').map(|id| SegmentId(number(id))).collect(),
            span: None,
            text: line.tail(1),
            confidence: None,
            phantom: None,
        }),
        "phantom" => Event::Transcript(Transcript {
            segments: vec![line.segment()],
            span: None,
            text: line.tail(1),
            confidence: None,
            phantom: Some("sound".to_owned()),
        }),
        "echo" => Event::Echo { segment: line.segment() },
        "measured" => Event::Measured {
            segment: line.segment(),
            level_db: line.arg(1).parse().ok(),
            speakers: line.arg(2).parse().ok(),
        },
        "sure" => Event::Transcript(Transcript {
            segments: vec![line.segment()],
            span: None,
            text: line.tail(2),
            confidence: line.arg(1).parse().ok(),
            phantom: None,
        }),
        "judge" => Event::EndOfTurn { segment: line.segment(), percent: number(line.arg(1)) as u8 },
        "digit" => Event::Digit { digit: line.arg(0).chars().next().unwrap_or('0'), start: line.at },
        "hangup" => Event::HungUp,
        "hold" => Event::LineHeld,
        "resume" => Event::LineResumed,
        "message" => Event::Message { text: line.tail(0), received: line.at },
        _ => return None,
    })
}

fn model_event(line: &Line<'_>) -> Option<Event> {
    Some(match line.verb {
        "say" => Event::Model(ModelEvent::Text {
            generation: line.generation(),
            text: format!("{} ", line.tail(1)),
        }),
        "call" => Event::Model(ModelEvent::Call {
            generation: line.generation(),
            call: ToolCall { id: line.call(1), name: line.arg(2).to_owned(), input: line.tail(3) },
        }),
        "done" => Event::Model(ModelEvent::Finished { generation: line.generation() }),
        "fail" => {
            Event::Model(ModelEvent::Failed { generation: line.generation(), error: "down".to_owned() })
        }
        "ask" => Event::Prepared { call: line.call(0), outcome: ask(line.arg(1), &line.tail(2)) },
        "plain" => Event::Prepared {
            call: line.call(0),
            outcome: Prepared::Plain { tool: tool(line.arg(1)), input: frozen("{}") },
        },
        "refuse" | "refuse-plain" => Event::Prepared {
            call: line.call(0),
            outcome: Prepared::Refused {
                reason: Refusal::InvalidInput,
                message: line.tail(1),
                confirms: line.verb == "refuse",
            },
        },
        "check" => Event::Checked {
            check: CheckId(number(line.arg(0))),
            answer: match line.arg(1) {
                "yes" => CheckAnswer::Verdict { verdict: Verdict::Yes },
                "no" => CheckAnswer::Verdict { verdict: Verdict::No },
                "unclear" => CheckAnswer::Verdict { verdict: Verdict::Unclear },
                "veto" => CheckAnswer::Vetoed { veto: line.tail(2) },
                _ => CheckAnswer::Failed { error: line.tail(2) },
            },
        },
        _ => return None,
    })
}

fn playout_event(line: &Line<'_>) -> Option<Event> {
    if !["began", "sized", "over", "cleared", "broke"].contains(&line.verb) {
        return None;
    }
    let utterance = line.utterance();
    let span = |text: &str| ms(text).since(Time::ZERO);
    Some(Event::Playout(match line.verb {
        "began" => PlayoutEvent::Started { utterance, at: line.at },
        "sized" => {
            let (a, b) = line.arg(1).split_once("..").unwrap_or(("0", line.arg(1)));
            PlayoutEvent::Synthesised { utterance, audible_from: span(a), audible_to: span(b) }
        }
        "over" => {
            let delay = line.arg(2).trim_start_matches('+');
            let delay = Duration::from_millis(delay.parse().unwrap_or(0));
            PlayoutEvent::Finished {
                utterance,
                last_audible: ms(line.arg(1)),
                delay: LoopDelay::exact(delay),
                evidence: EvidenceClass::Virtual,
                lost: Duration::ZERO,
            }
        }
        "cleared" => PlayoutEvent::Cleared {
            utterance,
            played: span(line.arg(1)),
            audible_from: Duration::ZERO,
            audible_to: None,
        },
        _ => PlayoutEvent::Failed {
            utterance,
            failure: if line.arg(1) == "device" {
                PlayoutFailure::DeviceLost
            } else {
                PlayoutFailure::TtsFailed
            },
            played: Duration::ZERO,
        },
    }))
}

fn program_event(line: &Line<'_>) -> Option<Event> {
    let message = line.tail(1);
    Some(match line.verb {
        "start" | "chat" => Event::CallStarted(CallStart {
            transport: if line.verb == "chat" { "chat" } else { "local" }.to_owned(),
            call: "call".to_owned(),
            language: "en".to_owned(),
            greeting: Some(line.tail(0)).filter(|text| !text.is_empty()),
            chat: line.verb == "chat",
        }),
        "ran" => Event::ToolFinished { call: line.call(0), outcome: ToolOutcome::Done { message } },
        "failed" => Event::ToolFinished { call: line.call(0), outcome: ToolOutcome::Failed { message } },
        "tools" => Event::Tools(line.rest.iter().map(|name| tool(name)).collect()),
        "redefined" => Event::Tools(vec![ToolRef { definition: "sha256:2".to_owned(), ..tool(line.arg(0)) }]),
        "rewind" => Event::Rewound(Rewind { items: number(line.arg(0)) }),
        "asked" => Event::Asked { call: line.call(0), outcome: ask(line.arg(1), &line.tail(2)) },
        "speak" => Event::Say { text: line.tail(0) },
        "close" => Event::EndRequested,
        "unanswered" => Event::Unanswered,
        "answered" => Event::Answered,
        "tick" => Event::Tick,
        _ => return None,
    })
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
        Command::Check(request) if request.sounded == Sounded::default() => {
            format!("! check {} {}", request.check, request.words)
        }
        Command::Check(CheckRequest { check, words, sounded: s, .. }) => {
            let or_none =
                |value: Option<u16>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
            let (sure, people) = (or_none(s.confidence.map(u16::from)), or_none(s.speakers.map(u16::from)));
            let under = or_none(s.under_median_db);
            format!(
                "! check {check} {words} | sure {sure} under {under} people {people} over {}",
                s.over_agent
            )
        }
        Command::Record(record) => format!("! record {} {}", record.hold, record.outcome),
        other @ (Command::OpenSegment { .. }
        | Command::CloseSegment { .. }
        | Command::JudgeEnd { .. }
        | Command::Pause
        | Command::Resume
        | Command::Clear
        | Command::Generate { .. }
        | Command::CancelGeneration { .. }
        | Command::Prepare { .. }
        | Command::RunPlain(_)
        | Command::RequestApproval(_)
        | Command::WithdrawApproval { .. }
        | Command::EndCall { .. }
        | Command::Transfer { .. }) => {
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
    check_events(policy, &script(text), expect);
}

#[track_caller]
pub(crate) fn check_events(policy: &Policy, events: &[(Time, Event)], expect: &str) {
    let lines = run(policy, events, Duration::from_secs(3));
    for step in [1, 7, 10] {
        let ticked = run_with_ticks(policy, events, Duration::from_secs(3), step);
        assert_eq!(lines, ticked, "ticks every {step} ms changed the outputs");
    }
    compare(&lines, expect);
}

#[track_caller]
fn compare(lines: &[String], expect: &str) {
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
