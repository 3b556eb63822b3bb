//! The page at `/` in a browser: each of its states, in light, in dark and on a telephone. `tests/browser/console.mjs`
//! steers Chromium; this side is the server, with a call that goes on step by step as the script asks for it.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::Path as UrlPath;
use axum::routing::post;
use sayback_core::{
    Event, EvidenceClass, Interval, LoopDelay, PlayoutEvent, SegmentId, Speak, Time, Transcript, UtteranceId,
    UtteranceKind,
};
use sayback_rig::{Browser, pictures};
use sayback_runtime::approvals::{ApprovalQueue, ApprovalRequest, Asker};
use sayback_runtime::calls::{CallView, LineControl};
use sayback_runtime::clock::Clock;
use sayback_runtime::line::Line;
use sayback_runtime::record::{AgentSheet, CallSheet, Recorder, SoundSheet};
use sayback_runtime::switchboard::{Asked, Desk, Limits, Switchboard, Witness, Witnesses};
use sayback_server::recordings::Recordings;
use sayback_server::{Access, Api, Role, router, serve};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::Sender;

use crate::console::{Told, booking_desk};
use crate::support::{OneDesk, Said, api, token};

/// A line that plays all but questions at once; those when it is told to.
#[derive(Clone, Debug, Default)]
struct Stage(Arc<Mutex<Set>>);

#[derive(Debug, Default)]
struct Set {
    call: Option<(Sender<Event>, Clock)>,
    question: Option<UtteranceId>,
    segments: u32,
}

impl Stage {
    fn tell(&self, event: Event) {
        let call = self.0.lock().unwrap().call.clone();
        if let Some((call, _)) = call {
            call.try_send(event).unwrap();
        }
    }

    fn now(&self) -> Time {
        self.0.lock().unwrap().call.as_ref().unwrap().1.now()
    }

    /// The caller has said something, and it took half a second.
    fn hear(&self, text: &str) {
        let now = self.now();
        let from = Time::from_micros(now.as_micros().saturating_sub(500_000));
        let segment = {
            let mut set = self.0.lock().unwrap();
            set.segments += 1;
            SegmentId(set.segments)
        };
        let onset = Interval::new(Time::from_micros(from.as_micros().saturating_sub(60_000)), from);
        self.tell(Event::SpeechStarted { segment, onset });
        self.tell(Event::SpeechEnded { segment, offset: now });
        let span = Some((from, now));
        let text = text.to_owned();
        self.tell(Event::Transcript(Transcript {
            segments: vec![segment],
            span,
            text,
            confidence: None,
            phantom: None,
        }));
    }

    fn played(&self, utterance: UtteranceId) {
        self.tell(Event::Playout(PlayoutEvent::Finished {
            utterance,
            last_audible: self.now(),
            delay: LoopDelay { at_least: Duration::from_millis(20), at_most: Duration::from_millis(60) },
            evidence: EvidenceClass::Page,
            lost: Duration::ZERO,
        }));
    }
}

impl Line for Stage {
    fn speak(&mut self, speak: Speak) {
        let utterance = speak.utterance;
        let length = Duration::from_millis(40 * speak.text.len() as u64);
        let sound = PlayoutEvent::Synthesised { utterance, audible_from: Duration::ZERO, audible_to: length };
        self.tell(Event::Playout(sound));
        self.tell(Event::Playout(PlayoutEvent::Started { utterance, at: self.now() }));
        if speak.kind == UtteranceKind::Question {
            self.0.lock().unwrap().question = Some(utterance);
        } else {
            self.played(utterance);
        }
    }

    fn clear(&mut self) {
        let question = self.0.lock().unwrap().question.take();
        let Some(utterance) = question else { return };
        let played = Duration::from_millis(600);
        let audible_to = Some(Duration::from_millis(900));
        let audible_from = Duration::ZERO;
        self.tell(Event::Playout(PlayoutEvent::Cleared { utterance, played, audible_to, audible_from }));
    }
}

/// Records every call, with a made-up sound.
#[derive(Debug)]
struct Taped(std::path::PathBuf);

impl Witnesses for Taped {
    fn of(&self, call: &CallView, desk: &Desk) -> Witness {
        let agent =
            AgentSheet { name: desk.agent.name.clone(), file: String::new(), hash: "sha256:0".to_owned() };
        let mut sheet = CallSheet::new(&call.call, &call.transport, agent, desk.agent.policy.clone());
        sheet.sound = (call.transport != "chat").then(SoundSheet::default);
        let recorder = Recorder::create(&self.0.join(&call.call), &sheet).unwrap();
        Witness { observers: vec![recorder.observer()], recorder: Some(recorder), notice: None }
    }

    fn ended(&self, _call: &str, recorder: Option<&Recorder>) {
        let Some(recorder) = recorder else { return };
        let tone = |n: u32| f32::from((n % 80) as u16) / 100.0 - 0.4;
        let side = |from: u32| {
            (0..64_000).map(|n| if n / 8_000 % 4 == from { tone(n) } else { 0.0 }).collect::<Vec<f32>>()
        };
        recorder.hear(Time::from_micros(0), &side(1), &side(3));
        recorder.finish(None).unwrap();
    }
}

/// What the script may ask of the call.
async fn step(stage: Stage, board: Switchboard, step: String) -> Result<String, axum::http::StatusCode> {
    match step.as_str() {
        "start" => {
            let asked = Asked { transport: "webrtc".to_owned(), from: "anna".to_owned(), ..Asked::default() };
            let admitted = board.admit(asked).await.map_err(|_| axum::http::StatusCode::CONFLICT)?;
            let clock = Clock::start();
            let control: Arc<dyn LineControl> = Arc::new(Said::default());
            // The greeting is said after the first event, and that is not taken before this lock is free.
            let mut set = stage.0.lock().unwrap();
            let started = admitted.start(Box::new(stage.clone()), Some(control), clock);
            *set = Set { call: Some((started.call.clone(), clock)), ..Set::default() };
            return Ok(started.id);
        }
        "ask" => stage.hear("Book me for Thursday."),
        "heard" => {
            // One that was cut off is not played any more.
            let question = stage.0.lock().unwrap().question.take();
            if let Some(question) = question {
                stage.played(question);
            }
        }
        "yes" => stage.hear("yes please"),
        "end" => stage.tell(Event::HungUp),
        _ => return Err(axum::http::StatusCode::NOT_FOUND),
    }
    Ok(String::new())
}

fn request(id: &str, call: &str, payload: Option<Value>) -> ApprovalRequest {
    ApprovalRequest {
        id: id.to_owned(),
        asker: Asker::Call(call.to_owned()),
        agent: "Clinic desk".to_owned(),
        tool: "refund_payment".to_owned(),
        input: json!({ "amount": 120, "account": "4711" }),
        hint: "The caller wants 120 euros back.".to_owned(),
        payload,
        asked_ms: sayback_runtime::clock::unix_millis(),
        expires_ms: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_each_state_to_everybody_and_asks_nobody_else() {
    let Some(browser) = Browser::new() else { return };
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("calls");
    let witnesses: Arc<dyn Witnesses> = Arc::new(Taped(folder.clone()));
    let desks = Arc::new(OneDesk(Arc::new(booking_desk())));
    let board = Switchboard::new(desks, Some(witnesses), Limits::default());
    let queue = ApprovalQueue::default();
    queue.request(&request("a-1", "webrtc-1", None)).await.unwrap();
    queue.request(&request("a-2", "webrtc-2", Some(json!({ "amount": 120 })))).await.unwrap();
    let secret = token("ops", &[Role::Read, Role::Call, Role::Approve, Role::App]);
    let access = |tokens| Arc::new(Access::new(tokens, "127.0.0.1:1".parse().unwrap()).unwrap());
    let recordings = Some(Recordings { folder, retell: Arc::new(Told), archive: None });
    let all = |tokens| {
        let recordings = recordings.clone();
        Api { recordings, ..api(&board, access(tokens), queue.clone()) }
    };
    let stage = Stage::default();
    let steps = {
        let board = board.clone();
        axum::Router::new().route(
            "/test/{step}",
            post(move |UrlPath(name): UrlPath<String>| step(stage.clone(), board.clone(), name)),
        )
    };
    let mut addresses = Vec::new();
    for routes in [router(all(vec![]), steps), router(all(vec![secret]), axum::Router::new())] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        addresses.push(format!("http://{}", listener.local_addr().unwrap()));
        tokio::spawn(serve(listener, routes, std::future::pending()));
    }
    let pictures = pictures(temporary.path());
    let steered = browser.steered(Command::new("node"), "console.mjs");
    let mut steering = tokio::process::Command::from(steered);
    let steering = steering.args(&addresses).arg(&pictures).kill_on_drop(true).output();
    let done = tokio::time::timeout(Duration::from_secs(240), steering).await.unwrap().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}");
    assert!(std::fs::read_dir(&pictures).unwrap().count() >= 30, "{said}");
}
