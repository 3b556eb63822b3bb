//! Timing cases through the core: the case's clock says what sounds when, and the session decides.
//!
//! A case is about one question, so the conversation before it is made up: a turn and a held call, a minute earlier.
//! Playout follows the case's own times whatever the session asks for; a case that pauses has the delay in its times.

#![expect(clippy::wildcard_enum_match_arm, reason = "a case looks at a few of many reports and events")]

use std::collections::VecDeque;
use std::time::Duration;

use sayback_core::{
    AskTerms, CallId, CallStart, CheckAnswer, CheckId, Command, Event, EvidenceClass, Frozen, GenerationId,
    HoldId, Interval, LoopDelay, ModelEvent, OpenQuestion, Output, PlayoutEvent, PlayoutFailure, Policy,
    Prepared, Reopened, SegmentId, Session, Speak, Time, ToolCall, ToolOutcome, ToolRef, Transcript,
    UtteranceId, UtteranceKind,
};

use crate::timing::{CheckReply, PlayedSpeech, Spoken, TimingCase, TimingEvent};

mod judge;

pub use judge::Mismatch;
use judge::Seen;

/// Case times begin this long after the call does: the conversation before the question lies in between.
const BASE: Duration = Duration::from_secs(60);
/// How long after the last event a case is watched.
const TAIL: Duration = Duration::from_secs(90);
/// Longer than any case: limits that a case does not name never strike.
const NEVER: Duration = Duration::from_secs(3_600);

/// Runs one case; what did not come as expected.
pub fn run_timing(case: &TimingCase) -> Vec<Mismatch> {
    let mut run = TimingRun::new(case);
    run.script();
    run.go();
    judge::judge(case, &run.seen, &run.session)
}

struct TimingRun<'a> {
    case: &'a TimingCase,
    session: Session,
    /// What is to happen, in order of time and then of being put here.
    queue: Vec<(Time, u32, Event)>,
    order: u32,
    checks: VecDeque<(Time, CheckReply)>,
    /// Spans of other speech, and of further askings.
    speeches: VecDeque<PlayedSpeech>,
    askings: VecDeque<PlayedSpeech>,
    asked: bool,
    seen: Seen,
}

fn shifted(time: Time) -> Time {
    time + BASE
}

/// Back to the case's own clock.
fn unshifted(time: Time) -> Time {
    time - BASE
}

fn policy(case: &TimingCase) -> Policy {
    let config = &case.config;
    let mut policy = Policy::default();
    policy.turn.endpoint = config.endpoint;
    policy.turn.endpoint_unsure = config.endpoint;
    policy.turn.endpoint_trailing = config.endpoint;
    policy.turn.silence_followup = None;
    policy.turn.transcript_limit = NEVER;
    policy.turn.model_limit = NEVER;
    policy.turn.tool_limit = NEVER;
    let confirm = &mut policy.confirm;
    confirm.question_barge_in = config.question_barge_in;
    confirm.adjacency = config.adjacency;
    confirm.after_hangup = config.after_hangup;
    confirm.keypad = config.keypad;
    confirm.grace = config.grace;
    confirm.ttl = config.ttl;
    confirm.max_loss = config.max_loss;
    confirm.check_limit = NEVER;
    confirm.check_after_quiet = None;
    confirm.quiet = Duration::ZERO;
    confirm.silence_followup = None;
    let followups = case.events.iter().filter_map(|event| match event {
        TimingEvent::Played(played) => played.followup.map(|at| (at, played)),
        _ => None,
    });
    if let (Some((at, played)), Some(horizon)) = (followups.clone().next(), horizon(case)) {
        confirm.silence_followup = Some(at.since(horizon));
        confirm.silence_again =
            followups.clone().nth(1).map_or(NEVER, |(second, _)| second.since(played.span.end));
        confirm.silence_text = (!played.verbatim).then(|| played.text.clone());
    }
    policy
}

/// When the question's end leaves, and its horizon, on the case's clock.
fn end_of_question(case: &TimingCase) -> Option<Time> {
    let question = &case.question;
    question.last_audible.map(|last| question.mark_echo.or(question.sent_end).unwrap_or(last))
}

fn horizon(case: &TimingCase) -> Option<Time> {
    end_of_question(case).map(|end| end + case.question.whole_loop() + case.config.eps)
}

impl<'a> TimingRun<'a> {
    fn new(case: &'a TimingCase) -> Self {
        let played = || {
            case.events.iter().filter_map(|event| match event {
                TimingEvent::Played(played) => Some(played.clone()),
                _ => None,
            })
        };
        Self {
            case,
            session: Session::new(policy(case)),
            queue: Vec::new(),
            order: 0,
            checks: VecDeque::new(),
            speeches: played().filter(|p| !p.verbatim).collect(),
            askings: played().filter(|p| p.verbatim).collect(),
            asked: false,
            seen: Seen::default(),
        }
    }

    fn chat(&self) -> bool {
        self.case.transport == "chat"
    }

    fn at(&mut self, time: Time, event: Event) {
        self.order += 1;
        self.queue.push((time, self.order, event));
    }

    /// Puts the case's own events on the clock.
    fn script(&mut self) {
        self.opening();
        let mut segment = 100;
        for event in &self.case.events {
            segment += 10;
            self.event(event, segment);
        }
        for hold in self.case.question.line_hold.clone() {
            self.at(shifted(hold.start), Event::LineHeld);
            self.at(shifted(hold.end), Event::LineResumed);
        }
    }

    /// The made-up conversation: a turn, a call, and the question held.
    fn opening(&mut self) {
        let emitted = self.case.question.play_start.map_or(BASE_TIME, shifted);
        let held = if self.chat() { emitted } else { BASE_TIME - Duration::from_secs(1) };
        let start = Event::CallStarted(CallStart {
            transport: self.case.transport.clone(),
            call: self.case.id.clone(),
            language: "en".to_owned(),
            greeting: None,
            chat: self.chat(),
        });
        if self.case.question.reopened {
            let open = OpenQuestion {
                hold: HoldId(1),
                call: CallId("c1".to_owned()),
                tool: tool(),
                input: input(),
                question: QUESTION.to_owned(),
                language: "en".to_owned(),
                terms: AskTerms::default(),
                approval: None,
            };
            self.at(held, Event::Reopened(Reopened { open: Some(open), ..Reopened::default() }));
            self.at(held, start);
            return;
        }
        self.at(Time::ZERO, start);
        let before = Time::from_millis(1_000);
        self.at(before, Event::Message { text: OPENING.to_owned(), received: before });
        let generation = GenerationId(1);
        let sentences: String = self.case.question.preamble.iter().map(|_| "Well. ").collect();
        if !sentences.is_empty() {
            let text = format!("{sentences}And. ");
            self.at(held, Event::Model(ModelEvent::Text { generation, text }));
        }
        let call = ToolCall { id: CallId("c1".to_owned()), name: "book".to_owned(), input: "{}".to_owned() };
        self.at(held, Event::Model(ModelEvent::Call { generation, call }));
        self.at(held, Event::Model(ModelEvent::Finished { generation }));
        self.at(held, Event::Prepared { call: CallId("c1".to_owned()), outcome: ask(QUESTION) });
    }

    fn event(&mut self, event: &TimingEvent, segment: u32) {
        match event {
            TimingEvent::Segment(spoken) => self.spoken(spoken, SegmentId(segment)),
            TimingEvent::Merged(merged) => {
                let ids: Vec<SegmentId> =
                    (0..merged.segments.len()).map(|i| SegmentId(segment + i as u32)).collect();
                for (id, span) in ids.iter().zip(&merged.segments) {
                    self.sound(*id, shifted(span.start), shifted(span.end));
                }
                let last = merged.segments.iter().map(|s| s.end).max().unwrap_or(merged.final_at);
                self.words(ids, &merged.text, shifted(merged.final_at.max(last)));
            }
            TimingEvent::Partial { text, at } => {
                let sounding = self.segment_at(*at);
                if let Some(segment) = sounding {
                    self.at(shifted(*at), Event::Partial { segment, text: text.clone() });
                }
            }
            TimingEvent::Check { at, reply, .. } => self.checks.push_back((shifted(*at), reply.clone())),
            TimingEvent::Digit { digit, at } => {
                self.at(shifted(*at), Event::Digit { digit: *digit, start: shifted(*at) });
            }
            TimingEvent::HangUp { at } => self.at(shifted(*at), Event::HungUp),
            TimingEvent::Replace { hold, at } => {
                self.seen.names.push(hold.clone());
                let call = CallId(format!("replaced by {hold}"));
                self.at(shifted(*at), Event::Asked { call, outcome: ask("Shall I do the other thing?") });
            }
            TimingEvent::Played(played) if played.followup.is_none() && !played.verbatim => {
                self.at(shifted(played.span.start), Event::Say { text: spoken_text(&played.text) });
            }
            TimingEvent::Message { text, received } => {
                self.at(
                    shifted(*received),
                    Event::Message { text: text.clone(), received: shifted(*received) },
                );
            }
            TimingEvent::Played(_) | TimingEvent::Handler(_) => {}
        }
    }

    fn spoken(&mut self, spoken: &Spoken, id: SegmentId) {
        let map = |time| if spoken.raw { self.case.question.on_call_clock(time) } else { time };
        let (onset, offset) = (shifted(map(spoken.onset)), shifted(map(spoken.offset)));
        self.sound(id, onset, offset);
        let Some(final_at) = spoken.final_at.map(shifted) else { return };
        if spoken.echo {
            self.at(final_at, Event::Echo { segment: id });
            return;
        }
        let text = if spoken.rejected { "" } else { spoken.text.as_str() };
        self.words(vec![id], text, final_at.max(offset));
    }

    fn sound(&mut self, segment: SegmentId, onset: Time, offset: Time) {
        self.at(onset, Event::SpeechStarted { segment, onset: Interval::exact(onset) });
        self.at(offset, Event::SpeechEnded { segment, offset });
    }

    fn words(&mut self, segments: Vec<SegmentId>, text: &str, at: Time) {
        let transcript =
            Transcript { segments, span: None, text: text.to_owned(), confidence: None, phantom: None };
        self.at(at, Event::Transcript(transcript));
    }

    fn segment_at(&self, at: Time) -> Option<SegmentId> {
        self.queue.iter().rev().find_map(|(time, _, event)| match event {
            Event::SpeechStarted { segment, .. } if *time <= shifted(at) => Some(*segment),
            _ => None,
        })
    }

    fn go(&mut self) {
        let mut last = BASE_TIME;
        while let Some(next) = self.take_next() {
            let (at, event) = next;
            last = last.max(at);
            self.deadlines(at);
            self.session.handle(at, event);
            self.drain();
        }
        self.deadlines(last + TAIL);
        self.session.handle_timeout(last + TAIL);
        self.drain();
        if !self.queue.is_empty() {
            self.go();
        }
    }

    /// Lets deadlines strike one by one, so that what they ask for can be answered in time.
    fn deadlines(&mut self, until: Time) {
        while let Some((at, _)) = self.session.poll_timeout().filter(|(at, _)| *at < until) {
            self.session.handle_timeout(at);
            self.drain();
            if self.queue.iter().any(|(time, ..)| *time < until) && self.earlier_than(until) {
                break;
            }
        }
    }

    /// Events that a deadline put on the clock before `until` come first.
    fn earlier_than(&mut self, until: Time) -> bool {
        while let Some(index) = self.first().filter(|i| self.queue[*i].0 < until) {
            let (at, _, event) = self.queue.remove(index);
            self.session.handle(at, event);
            self.drain();
        }
        false
    }

    fn first(&self) -> Option<usize> {
        // What sounded up to an instant comes before what the caller does at it: an exact end may be answered.
        let playout = |event: &Event| !matches!(event, Event::Playout(_));
        (0..self.queue.len()).min_by_key(|i| (self.queue[*i].0, playout(&self.queue[*i].2), self.queue[*i].1))
    }

    fn take_next(&mut self) -> Option<(Time, Event)> {
        let index = self.first()?;
        let (at, _, event) = self.queue.remove(index);
        Some((at, event))
    }

    fn drain(&mut self) {
        while let Some(output) = self.session.poll_output() {
            self.obey(output);
        }
    }

    fn obey(&mut self, output: Output) {
        let at = output.at;
        self.seen.note(&output);
        match output.command {
            Command::Speak(speak) => self.speak(at, &speak),
            Command::Check(request) => self.answer_check(at, request.check),
            Command::RunConfirmed(yes) => self.run_tool(at, yes.call().clone()),
            Command::RunPlain(run) => self.run_tool(at, run.call),
            Command::Generate { generation } => {
                // The lead-in of a re-ask has no words here; other steps are not part of a case.
                if self.session.open_question().is_some() {
                    self.at(at, Event::Model(ModelEvent::Finished { generation }));
                }
            }
            Command::Report(_)
            | Command::OpenSegment { .. }
            | Command::CloseSegment { .. }
            | Command::JudgeEnd { .. }
            | Command::Pause
            | Command::Resume
            | Command::Clear
            | Command::CancelGeneration { .. }
            | Command::Prepare { .. }
            | Command::Record(_)
            | Command::RequestApproval(_)
            | Command::WithdrawApproval { .. }
            | Command::EndCall { .. }
            | Command::Transfer { .. } => {}
        }
    }

    fn answer_check(&mut self, now: Time, check: CheckId) {
        let Some((at, reply)) = self.checks.pop_front() else { return };
        let verdict = |verdict| CheckAnswer::Verdict { verdict };
        let failed = |error: &str| CheckAnswer::Failed { error: error.to_owned() };
        let answer = match reply {
            CheckReply::Verdict(word) => verdict(word),
            CheckReply::Raw(text) => {
                sayback_core::check::parse_verdict(&text).map_or_else(|| failed(&text), verdict)
            }
            CheckReply::Timeout => failed("timeout"),
            CheckReply::Error => failed("error"),
        };
        self.at(at.max(now), Event::Checked { check, answer });
    }

    fn run_tool(&mut self, now: Time, call: CallId) {
        let end = self.case.events.iter().find_map(|event| match event {
            TimingEvent::Handler(span) => Some(shifted(span.end)),
            _ => None,
        });
        let outcome = ToolOutcome::Done { message: "done".to_owned() };
        self.at(end.unwrap_or(now).max(now), Event::ToolFinished { call, outcome });
    }

    fn speak(&mut self, now: Time, speak: &Speak) {
        if self.chat() {
            return;
        }
        match speak.kind {
            UtteranceKind::Question if !self.asked => {
                self.asked = true;
                self.play_question(speak.utterance);
            }
            UtteranceKind::Question => {
                if let Some(played) = self.askings.pop_front() {
                    self.play(speak.utterance, now, &played);
                }
            }
            UtteranceKind::Speech if unshifted(now) == Time::ZERO => self.play_preamble(speak.utterance),
            UtteranceKind::Speech => {
                if let Some(played) = self.speeches.pop_front() {
                    self.play(speak.utterance, now, &played);
                }
            }
        }
    }

    fn delay(&self) -> LoopDelay {
        let whole = self.case.question.whole_loop();
        LoopDelay { at_least: whole, at_most: whole + self.case.config.eps }
    }

    fn play_preamble(&mut self, utterance: UtteranceId) {
        let index = self.seen.preambles;
        self.seen.preambles += 1;
        if let Some(span) = self.case.question.preamble.get(index).copied() {
            self.sounds(utterance, shifted(span.start), shifted(span.end), Duration::ZERO);
        }
    }

    fn play(&mut self, utterance: UtteranceId, now: Time, played: &PlayedSpeech) {
        let start = shifted(played.span.start).max(now);
        self.sounds(utterance, start, shifted(played.span.end).max(start), Duration::ZERO);
    }

    fn sounds(&mut self, utterance: UtteranceId, start: Time, end: Time, lost: Duration) {
        let delay = self.delay();
        self.at(start, Event::Playout(PlayoutEvent::Started { utterance, at: start }));
        let finished = PlayoutEvent::Finished {
            utterance,
            last_audible: end,
            delay,
            evidence: EvidenceClass::Virtual,
            lost,
        };
        self.at(end, Event::Playout(finished));
    }

    fn play_question(&mut self, utterance: UtteranceId) {
        let question = &self.case.question;
        let start = question.play_start.map(shifted);
        let failure = if question.samples == Some(0) {
            Some((start.unwrap_or(BASE_TIME), PlayoutFailure::NoSamples))
        } else if let Some(at) = question.failed_at {
            Some((shifted(at), PlayoutFailure::TtsFailed))
        } else if let Some(at) =
            question.device_lost_at.filter(|at| question.last_audible.is_none_or(|end| *at < end))
        {
            Some((shifted(at), PlayoutFailure::DeviceLost))
        } else if question.mark_echo_cause.is_some() {
            // A mark that comes back for any other reason than having been played says that it was not.
            question.mark_echo.map(|at| (shifted(at), PlayoutFailure::NotPlayed))
        } else {
            None
        };
        let end = end_of_question(self.case).filter(|_| failure.is_none()).map(shifted);
        let lost = question.lost;
        // Sent is not played: without its mark nothing shows that any of it was.
        let unmarked = self.case.transport == "ws-mark" && question.mark_echo.is_none();
        let planned = question.last_audible.map(shifted).filter(|_| unmarked && failure.is_none());
        if let (Some(start), Some(end)) = (start, planned) {
            self.at(start, Event::Playout(PlayoutEvent::Started { utterance, at: start }));
            let length = end.since(start.min(end));
            let known =
                PlayoutEvent::Synthesised { utterance, audible_from: Duration::ZERO, audible_to: length };
            self.at(start, Event::Playout(known));
            return;
        }
        match (start, end) {
            (Some(start), Some(end)) => self.sounds(utterance, start, end.max(start), lost),
            (Some(start), None) => {
                self.at(start, Event::Playout(PlayoutEvent::Started { utterance, at: start }))
            }
            (None, _) => {}
        }
        if let Some((at, failure)) = failure {
            self.at(at, Event::Playout(PlayoutEvent::Failed { utterance, failure, played: Duration::ZERO }));
        }
    }
}

const BASE_TIME: Time = Time::from_millis(60_000);
const OPENING: &str = "please book it";
const QUESTION: &str = "Shall I book it?";

fn spoken_text(text: &str) -> String {
    if text.trim().is_empty() { "One moment.".to_owned() } else { text.to_owned() }
}

fn tool() -> ToolRef {
    ToolRef { skill: "desk".to_owned(), name: "book".to_owned(), definition: "sha256:0".to_owned() }
}

fn input() -> Frozen {
    Frozen { json: "{}".to_owned(), hash: "sha256:0".to_owned() }
}

fn ask(question: &str) -> Prepared {
    Prepared::Ask {
        tool: tool(),
        input: input(),
        question: question.to_owned(),
        language: "en".to_owned(),
        terms: AskTerms::default(),
    }
}
