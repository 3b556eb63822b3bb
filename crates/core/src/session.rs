//! The decision machine of one call.
//!
//! [`Session::handle`] takes one fact and the time; [`Session::poll_output`] gives what is wanted done, in order;
//! [`Session::poll_timeout`] says when it wants to be called again at the latest. A time-driven transition happens at
//! its deadline, not when somebody notices: `handle` first fires every deadline that is due, each at its own time, so
//! calling more often changes nothing.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::command::{Command, DropReason, Output, Report};
use crate::context::Item;
use crate::event::{CallStart, Event, OpenQuestion, PastRun, PlayoutEvent, ToolRef};
use crate::ids::{GenerationId, HoldId};
use crate::playout::Mouth;
use crate::policy::Policy;
use crate::segment::{Segmenter, Segments};
use crate::time::Time;

mod answer;
mod approve;
mod ask;
mod evidence;
mod gate;
mod hear;
mod leaving;
mod quiet;
mod rewind;
mod run;
mod sounded;
mod speak;
mod step;
mod stored;
mod timers;

use approve::Approvals;
use gate::{Gate, Stage};
pub use leaving::is_emergency;
use run::Tools;
use step::Step;
pub use timers::Timer;

/// One call, from its first to its last decision.
#[derive(Clone)]
pub struct Session {
    policy: Policy,
    now: Time,
    out: Queue,
    ids: Ids,
    line: Line,
    segmenter: Segmenter,
    segments: Segments,
    mouth: Mouth,
    step: Option<Step>,
    turn: Turn,
    gate: Gate,
    approvals: Approvals,
    tools: Tools,
    items: Vec<Item>,
    /// The question that was open when the caller left, for the stored conversation.
    left_open: Option<OpenQuestion>,
    /// Runs of an earlier process whose outcome is told when the call starts.
    unsettled: Vec<PastRun>,
    /// Items of an earlier process: a model may count its calls from the beginning again.
    restored: usize,
}

/// What is to be handed out. Not part of the state: cloning a session leaves it behind.
#[derive(Debug, Default)]
struct Queue(VecDeque<Output>);

impl Clone for Queue {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// The next id of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Ids {
    segment: u32,
    utterance: u32,
    generation: u32,
    hold: u32,
    check: u32,
    approval: u32,
}

/// The line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Line {
    up: bool,
    chat: bool,
    /// Frames come in: segments are cut here.
    frames: bool,
    hung_up: Option<Time>,
    held: bool,
    /// An outbound call that no person has answered yet.
    unanswered: bool,
    language: String,
    /// The agent wants to hang up once everything is heard, and why.
    ending: Option<String>,
    ended: bool,
    /// Transfer wanted once everything is heard.
    transfer: Option<crate::event::ToolCall>,
    /// The question that is dropped for the transfer.
    dropped: Option<String>,
}

/// What the caller's turn needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Turn {
    /// The model's next step is owed.
    wanted: bool,
    /// Steps since the caller last spoke.
    steps: u8,
    /// Silence follow-ups in a row.
    followups: u8,
    /// From when silence counts, apart from agent speech.
    quiet_since: Time,
    /// Failures in a row that the caller was told of.
    apologies: u8,
}

/// The model may take this many steps before the caller must speak again; more is a loop.
const MAX_STEPS: u8 = 8;

impl Session {
    /// A call that has not begun.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            now: Time::ZERO,
            out: Queue::default(),
            ids: Ids::default(),
            line: Line::default(),
            segmenter: Segmenter::default(),
            segments: Segments::default(),
            mouth: Mouth::default(),
            step: None,
            turn: Turn::default(),
            gate: Gate::default(),
            approvals: Approvals::default(),
            tools: Tools::default(),
            items: Vec::new(),
            left_open: None,
            unsettled: Vec::new(),
            restored: 0,
        }
    }

    /// Takes one fact. Time never goes back: an earlier `now` counts as the latest one.
    pub fn handle(&mut self, now: Time, event: Event) {
        self.run_until(now);
        self.now = self.now.max(now);
        self.on_event(event);
        self.settle();
        self.run_until(self.now);
    }

    /// Lets time pass: the same as handling a tick.
    pub fn handle_timeout(&mut self, now: Time) {
        self.handle(now, Event::Tick);
    }

    /// The next wish, in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.0.pop_front()
    }

    /// When it wants to be called again at the latest, and why.
    pub fn poll_timeout(&self) -> Option<(Time, Timer)> {
        self.next_deadline()
    }

    /// The conversation as the caller heard it.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// What every model context carries while a question is open (VC-54), or an operator is asked.
    pub fn waiting_line(&self) -> Option<String> {
        let question =
            self.gate.open().map(|h| alloc::format!("Waiting for the caller to confirm: \"{}\"", h.question));
        let lines: Vec<String> = question.into_iter().chain(self.approvals.waiting_lines()).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// The open question: its hold, its text, and whether it was heard.
    pub fn open_question(&self) -> Option<(HoldId, &str, bool)> {
        self.gate.open().map(|hold| (hold.id, hold.question.as_str(), hold.stage == Stage::Heard))
    }

    /// The horizon of the latest asking, once its end is known.
    pub fn horizon(&self) -> Option<Time> {
        self.gate.hold.as_ref().and_then(|hold| hold.asking.horizon())
    }

    /// The language in force.
    pub fn language(&self) -> &str {
        &self.line.language
    }

    /// Whether nothing more can come of this call.
    pub fn is_done(&self) -> bool {
        let gone = self.line.ended || self.line.hung_up.is_some();
        gone && self.gate.hold.is_none() && self.tools.idle()
    }

    /// Whether the call is idle: nothing is being said, thought, run or waited for but the caller.
    pub fn is_idle(&self) -> bool {
        self.step.is_none()
            && !self.turn.wanted
            && !self.mouth.active()
            && self.tools.idle()
            && !self.segments.any_unresolved()
            && self.pending_turn().is_empty()
            && !self.gate.committing()
            && self.gate.open().is_none_or(|hold| hold.stage == Stage::Heard && hold.answer.check.is_none())
    }

    /// The whole state as text: equal states, equal texts. For exploring orders of events.
    pub fn fingerprint(&self) -> String {
        alloc::format!(
            "{:?}",
            (
                (self.now, &self.line, &self.segmenter, &self.segments, &self.mouth),
                (&self.step, &self.turn, &self.gate, &self.approvals, &self.tools, &self.items, &self.ids)
            )
        )
    }

    fn run_until(&mut self, now: Time) {
        while let Some((at, timer)) = self.next_deadline() {
            if at > now {
                break;
            }
            self.now = self.now.max(at);
            self.fire(timer);
            self.settle();
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::CallStarted(start) => self.on_call_started(start),
            Event::HungUp => self.on_gone("hangup"),
            Event::LineLost => self.on_gone("lost"),
            Event::Unanswered => self.line.unanswered = true,
            Event::Answered => self.line.unanswered = false,
            Event::LineHeld => self.on_line_held(),
            Event::LineResumed => self.on_line_resumed(),
            Event::Voice(frame) => self.on_frame(&frame),
            Event::SpeechStarted { segment, onset } => self.on_speech_started(segment, onset),
            Event::SpeechEnded { segment, offset } => self.on_speech_ended(segment, offset),
            Event::Echo { segment } => self.on_echo(segment),
            Event::Partial { segment, text } => self.on_partial(segment, &text),
            Event::Transcript(transcript) => self.on_transcript(transcript),
            Event::Measured { segment, level_db, speakers } => self.on_measured(segment, level_db, speakers),
            Event::EndOfTurn { segment, percent } => self.on_end_of_turn(segment, percent),
            Event::Digit { digit, start } => self.on_digit(digit, start),
            Event::Message { text, received } => self.on_message(text, received),
            Event::Model(event) => self.on_model(event),
            Event::Prepared { call, outcome } => self.on_prepared(call, outcome),
            Event::ToolFinished { call, outcome } => self.on_tool_finished(&call, outcome),
            Event::Checked { check, answer } => self.on_checked(check, answer),
            Event::Approvals(settled) => self.on_approvals(settled),
            Event::Playout(event) => self.on_playout(event),
            Event::Tools(tools) => self.tools.known = Some(tools),
            Event::Rewound(rewind) => self.on_rewound(rewind.items),
            Event::Reopened(reopened) => self.on_reopened(reopened),
            Event::Asked { call, outcome } => self.on_asked(call, outcome),
            Event::Say { text } => self.say_own(text),
            Event::EndRequested => self.line.ending = Some(String::from("requested")),
            Event::Tick => {}
        }
    }

    /// Whatever follows from the state alone, at the current time.
    fn settle(&mut self) {
        self.settle_speech();
        self.settle_hold();
        self.settle_answer();
        self.settle_approvals();
        self.settle_step();
        self.settle_line();
    }

    fn on_call_started(&mut self, start: CallStart) {
        if self.line.up {
            return;
        }
        self.line.up = true;
        self.line.chat = start.chat;
        self.line.language = start.language;
        self.turn.quiet_since = self.now;
        self.report(Report::CallStarted { call: start.call, transport: start.transport });
        self.tell_of_past_runs();
        let reopened = self.gate.open().is_some() || self.turn.wanted;
        if let Some(greeting) = start.greeting.filter(|text| !text.trim().is_empty() && !reopened) {
            self.say_own(greeting);
        }
        self.resume_reopened();
        self.ask_approvals_again();
    }

    fn on_gone(&mut self, reason: &str) {
        if self.line.hung_up.is_some() || self.line.ended {
            return;
        }
        self.end_open_segment();
        self.left_open = self.to_store().open;
        self.line.hung_up = Some(self.now);
        self.hang_up_hold();
        self.hang_up_approvals();
        self.cancel_step();
        self.silence_mouth();
        self.turn.wanted = false;
        self.report(Report::CallEnded { reason: String::from(reason) });
    }

    /// The line is gone: speech that was still open ended with its last voiced frame.
    fn end_open_segment(&mut self) {
        if let Some((id, offset)) = self.segments.sounding().map(|s| s.id).zip(self.segmenter.close()) {
            self.on_speech_ended(id, offset);
        }
    }

    fn on_line_held(&mut self) {
        self.line.held = true;
        let now = self.now;
        if let Some(hold) = self.gate.open_mut() {
            hold.asking.held.1.get_or_insert(now);
        }
    }

    fn on_line_resumed(&mut self) {
        self.line.held = false;
        let now = self.now;
        self.turn.quiet_since = now;
        if let Some(hold) = self.gate.open_mut() {
            Self::end_line_hold(&mut hold.asking, now);
        }
    }

    fn settle_line(&mut self) {
        if self.mouth.active() || self.step.is_some() || self.line.hung_up.is_some() || self.line.ended {
            return;
        }
        if let Some(call) = self.line.transfer.take() {
            self.drop_for_transfer();
            let dropped = self.line.dropped.take();
            self.tools.transferring(&call, self.now);
            self.command(Command::Transfer { call: call.id, input: call.input, dropped });
        } else if self.line.ending.is_some() && self.tools.idle() && !self.gate.committing() {
            let reason = self.line.ending.take().unwrap_or_default();
            self.close_hold(DropReason::Cancelled);
            self.line.ended = true;
            self.withdraw_approvals("the call is over");
            self.command(Command::EndCall { reason: reason.clone() });
            self.report(Report::CallEnded { reason });
        }
    }

    fn on_playout(&mut self, event: PlayoutEvent) {
        match event {
            PlayoutEvent::Synthesised { utterance, audible_to, .. } => {
                if let Some(utterance) = self.mouth.get_mut(utterance) {
                    utterance.audible_to = Some(audible_to);
                }
            }
            PlayoutEvent::Started { utterance, at } => self.on_started(utterance, at),
            PlayoutEvent::Finished { utterance, last_audible, delay, evidence, lost } => {
                self.on_finished(utterance, last_audible, (delay, evidence), lost);
            }
            PlayoutEvent::Paused { .. } => {}
            PlayoutEvent::Resumed { .. } => {}
            PlayoutEvent::Cleared { utterance, played, audible_to, audible_from } => {
                self.on_cleared(utterance, played, audible_from, audible_to);
            }
            PlayoutEvent::Failed { utterance, failure, played } => self.on_failed(utterance, failure, played),
        }
    }

    fn command(&mut self, command: Command) {
        self.out.0.push_back(Output { at: self.now, command });
    }

    fn report(&mut self, report: Report) {
        self.command(Command::Report(report));
    }

    /// Tells the model something outside the caller's words.
    fn tell(&mut self, text: String) {
        self.items.push(Item::Told { text: text.clone() });
        self.report(Report::ModelTold { text });
    }

    /// Puts the model's next step on the list, if there is anybody left to talk to.
    fn want_step(&mut self) {
        self.turn.wanted = self.line.hung_up.is_none() && !self.line.ended;
    }

    fn next_generation(&mut self) -> GenerationId {
        self.ids.generation += 1;
        GenerationId(self.ids.generation)
    }

    fn knows(&self, tool: &ToolRef) -> Owner {
        let Some(known) = &self.tools.known else { return Owner::Same };
        match known.iter().find(|k| k.skill == tool.skill && k.name == tool.name) {
            None => Owner::Gone,
            Some(found) if found.definition == tool.definition => Owner::Same,
            Some(_) => Owner::Changed,
        }
    }

    fn ms(time: Time) -> f64 {
        time.as_millis_f64()
    }

    fn margin_ms(onset: Time, horizon: Time) -> f64 {
        onset.diff_micros(horizon) as f64 / 1_000.0
    }

    fn after(time: Time, span: Duration) -> Time {
        time + span
    }
}

/// Whether a skill still owns a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Same,
    Changed,
    Gone,
}

impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session").field("now", &self.now).field("gate", &self.gate).finish_non_exhaustive()
    }
}
