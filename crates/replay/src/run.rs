//! The virtual shell: one scenario, one call, no clock but its own.
//!
//! Events wait in a queue ordered by time and then by when they were put there, so the same file gives the same log
//! to the byte, on any machine and in any company. Engines that answer for real are waited for, and their answers
//! arrive after the delay that the file gives.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use sayback_core::{
    CallId, CallStart, Command, Event, EvidenceRecord, GenerationId, ModelEvent, Output, PastRun,
    PlayoutEvent, Report, SegmentId, Session, Time, ToolCall, UtteranceKind, Verdict,
};
use sayback_runtime::agent::{AskContext, RunContext, run_confirmed, run_plain};
use sayback_runtime::driver::screened;
use sayback_runtime::events::event_line;
use sayback_runtime::prepare::prepare;
use serde_json::Value;

use crate::engines::Engines;
use crate::mouth::{LineRule, Mouth};
use crate::scenario::{
    Act, AnchorEvent, ApprovalStep, CallerAct, CheckStep, ModelStep, Scenario, ScriptedAnswer, ScriptedError,
    SpeechMode, ToolAnswer, ToolScript, Transport, When,
};

mod caller;
mod sound;
mod stored;
mod tools;

use sound::Ears;
pub use sound::SoundError;

/// What a run left behind.
#[derive(Debug, Default)]
pub struct CallRun {
    /// The event log.
    pub events: Vec<Value>,
    /// What was recorded of each decision.
    pub records: Vec<EvidenceRecord>,
    /// Every event that the core was handed, with its time.
    pub journal: Vec<(Time, Event)>,
    /// How long the call was.
    pub length: Duration,
    /// The scenario's limit cut it off: more would have happened.
    pub cut: bool,
    /// The caller's sound at 16 kHz; empty in text mode.
    pub caller: Vec<i16>,
    /// The agent's sound at 16 kHz; empty in text mode.
    pub agent: Vec<i16>,
}

/// Runs a scenario.
///
/// # Errors
/// In audio mode: a clip cannot be read, or an engine fails.
pub fn run_scenario(scenario: &Scenario, mode: SpeechMode, engines: &Engines) -> Result<CallRun, SoundError> {
    let mut call = VirtualCall::new(scenario, mode, engines)?;
    call.begin();
    while let Some(next) = call.next_at() {
        if next > Time::ZERO + scenario.limit {
            call.run.cut = true;
            break;
        }
        call.advance(next)?;
    }
    Ok(call.finish())
}

/// Something that happens at a time.
#[derive(Debug)]
enum Happening {
    Event(Box<Event>),
    Act(usize),
}

pub(crate) struct VirtualCall<'a> {
    scenario: &'a Scenario,
    engines: &'a Engines,
    session: Session,
    mouth: Mouth,
    ears: Option<Ears>,
    now: Time,
    queue: BTreeMap<(Time, u64), Happening>,
    order: u64,
    script: Script<'a>,
    waiting: Waiting,
    run: CallRun,
    /// Confirmed runs that have begun and of which nothing is known yet.
    running: Vec<PastRun>,
    error: Option<SoundError>,
}

/// What is still to be played of the scripted model, check and tools.
#[derive(Debug)]
struct Script<'a> {
    model: Option<VecDeque<&'a ModelStep>>,
    checks: Option<VecDeque<&'a CheckStep>>,
    approvals: Vec<&'a ApprovalStep>,
    tools: BTreeMap<&'a str, VecDeque<&'a ToolScript>>,
    calls: u32,
}

/// Caller acts that wait for an event, and how often each event came.
#[derive(Debug, Default)]
struct Waiting {
    acts: Vec<usize>,
    counts: BTreeMap<&'static str, u32>,
    segments: u32,
    hung_up: bool,
}

impl<'a> VirtualCall<'a> {
    fn new(scenario: &'a Scenario, mode: SpeechMode, engines: &'a Engines) -> Result<Self, SoundError> {
        let line = LineRule::of(&scenario.line, engines.assumed_loop);
        let ears = match (mode, &engines.sound) {
            (SpeechMode::Text, _) => None,
            (SpeechMode::Audio, Some(sound)) => Some(Ears::new(scenario, sound.clone())?),
            (SpeechMode::Audio, None) => return Err(SoundError::NoEngines),
        };
        let mut tools: BTreeMap<&str, VecDeque<&ToolScript>> = BTreeMap::new();
        for tool in &scenario.tools {
            tools.entry(tool.name.as_str()).or_default().push_back(tool);
        }
        Ok(Self {
            scenario,
            engines,
            session: Session::new(engines.agent.policy.clone()),
            mouth: Mouth::new(line, scenario.tts_faults.clone(), scenario.ack_faults.clone()),
            ears,
            now: Time::ZERO,
            queue: BTreeMap::new(),
            order: 0,
            script: Script {
                model: scenario.model.as_ref().map(|steps| steps.iter().collect()),
                checks: scenario.checks.as_ref().map(|steps| steps.iter().collect()),
                approvals: scenario.approvals.iter().collect(),
                tools,
                calls: 0,
            },
            waiting: Waiting::default(),
            run: CallRun::default(),
            running: Vec::new(),
            error: None,
        })
    }

    fn begin(&mut self) {
        for (index, act) in self.scenario.callers.iter().enumerate() {
            match act.when {
                When::At(at) => self.put(at, Happening::Act(index)),
                When::After(_) => self.waiting.acts.push(index),
            }
        }
        if let Some(end) = self.scenario.end_at {
            self.put(end, Happening::Event(Box::new(Event::HungUp)));
        }
        self.hand(Event::Tools(self.engines.agent.tool_refs()));
        self.start_call();
    }

    fn start_call(&mut self) {
        let agent = &self.engines.agent;
        self.hand(Event::CallStarted(CallStart {
            transport: self.scenario.line.transport.name().to_owned(),
            call: "call".to_owned(),
            language: agent.language.clone(),
            greeting: agent.greeting.clone(),
            chat: self.scenario.line.transport == Transport::Chat,
        }));
    }

    fn put(&mut self, at: Time, happening: Happening) {
        self.order += 1;
        self.queue.insert((at.max(self.now), self.order), happening);
    }

    fn later(&mut self, by: Duration, event: Event) {
        self.put(self.now + by, Happening::Event(Box::new(event)));
    }

    fn next_at(&self) -> Option<Time> {
        let over = self.session.is_done() && self.mouth.next_at().is_none() && !self.reopens();
        if self.error.is_some() || over {
            return None;
        }
        let queued = self.queue.keys().next().map(|(at, _)| *at);
        let deadline = self.session.poll_timeout().map(|(at, _)| at);
        let pending = [queued, deadline, self.mouth.next_at()].into_iter().flatten().min();
        let ears = self.ears.as_ref().and_then(|ears| ears.next_at(pending));
        [pending, ears].into_iter().flatten().min()
    }

    fn advance(&mut self, at: Time) -> Result<(), SoundError> {
        self.now = self.now.max(at);
        for event in self.mouth.poll(self.now) {
            self.on_mouth(event);
        }
        let frames = self.ears.as_mut().map_or_else(|| Ok(Vec::new()), |ears| ears.frames_until(self.now))?;
        for frame in frames {
            self.hand(Event::Voice(frame));
        }
        if let Some((segment, text)) = self.ears.as_mut().map_or(Ok(None), |ears| ears.partial(self.now))? {
            self.hand(Event::Partial { segment, text });
        }
        if let Some((key, _)) = self.queue.first_key_value().map(|(k, h)| (*k, h))
            && key.0 <= self.now
        {
            match self.queue.remove(&key) {
                Some(Happening::Event(event)) => self.hand(*event),
                Some(Happening::Act(index)) => self.act(index),
                None => {}
            }
        } else if self.session.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
            self.hand(Event::Tick);
        }
        self.error.take().map_or(Ok(()), Err)
    }

    fn on_mouth(&mut self, event: PlayoutEvent) {
        let started = matches!(event, PlayoutEvent::Started { .. } | PlayoutEvent::Resumed { .. });
        self.hand(Event::Playout(event));
        if started {
            self.plan_ahead();
        }
    }

    /// Gives the core one event and obeys what it wants.
    fn hand(&mut self, event: Event) {
        self.waiting.hung_up |= event == Event::HungUp;
        self.note_result(&event);
        self.run.journal.push((self.now, event.clone()));
        self.session.handle(self.now, event);
        while let Some(output) = self.session.poll_output() {
            self.obey(output);
        }
    }

    fn obey(&mut self, output: Output) {
        match output.command {
            Command::Report(report) => self.report(output.at, &report),
            Command::OpenSegment { segment, onset } => {
                if let Some(ears) = self.ears.as_mut() {
                    ears.open(segment, onset);
                }
            }
            Command::CloseSegment { segment, offset } => self.recognise(segment, offset),
            Command::JudgeEnd { segment } => self.judge_end(segment),
            Command::Speak(speak) => self.speak(&speak),
            Command::Pause => self.mouth.pause(self.now),
            Command::Resume => self.mouth.resume(self.now),
            Command::Clear => self.mouth.clear(self.now),
            Command::Generate { generation } => self.generate(generation),
            Command::CancelGeneration { .. } => {}
            Command::Prepare { call, language } => self.prepare(&call, language),
            Command::RunPlain(run) => {
                let context = RunContext::keyed(run.call.0.clone());
                let call = run.call.clone();
                let name = run.tool.name.clone();
                let engines = self.engines;
                self.run_tool(call, &name, || engines.wait(run_plain(&engines.agent, &run, context)));
            }
            Command::RunConfirmed(yes) => {
                self.note_run(&yes);
                let context = RunContext::keyed(format!("call/{}", yes.hold()));
                let (call, name) = (yes.call().clone(), yes.tool().name.clone());
                let engines = self.engines;
                self.run_tool(call, &name, || engines.wait(run_confirmed(&engines.agent, yes, context)));
            }
            Command::RequestApproval(wish) => self.approve(&wish),
            Command::WithdrawApproval { .. } => {}
            Command::Check(request) => self.check(&request),
            Command::Record(record) => self.run.records.push(*record),
            Command::EndCall { .. } => {}
            Command::Transfer { call, .. } => {
                let outcome = sayback_core::ToolOutcome::Done { message: "Transferred.".to_owned() };
                self.later(Duration::ZERO, Event::ToolFinished { call, outcome });
            }
        }
    }

    fn report(&mut self, at: Time, report: &Report) {
        let line = event_line(at, report);
        self.notice(at, &line);
        self.run.events.push(line);
    }

    fn prepare(&mut self, call: &ToolCall, language: String) {
        let context = AskContext { language, vars: BTreeMap::new() };
        let engines = self.engines;
        let refused = screened(engines.screen.as_deref(), &engines.agent, call, &self.session);
        if let Some(outcome) = refused.or_else(|| engines.wait(prepare(&engines.agent, call, &context))) {
            self.later(Duration::ZERO, Event::Prepared { call: call.id.clone(), outcome });
        }
    }

    fn finish(mut self) -> CallRun {
        self.run.length = self.now.since(Time::ZERO);
        if let Some(ears) = &self.ears {
            self.run.caller = ears.recording(self.now);
            self.run.agent = sound::agent_track(&self.mouth, self.now);
        }
        self.run
    }
}
