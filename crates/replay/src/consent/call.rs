//! One call between the session and the caller.

use std::collections::BTreeMap;
use std::time::Duration;

use sayback_core::{
    AskTerms, CallId, CallStart, CheckRequest, Command, Confirmation, Event, Frozen, GenerationId, Interval,
    ModelEvent, PlayoutEvent, Prepared, Report, SegmentId, Session, Speak, Time, ToolCall, ToolRef,
    Transcript, UtteranceId, UtteranceKind,
};
use sayback_media::onset::Censor;
use sayback_runtime::prompt::check_answer;

use super::{Hides, Judged, Random, Sounds, Take, Trial};
use crate::mouth::{LineRule, Mouth, Piece};
use crate::scenario::{AckFault, AfterClear, Target, length_of_speech};

const TOOL: &str = "book";
const QUESTION: &str = "Shall I book Thursday the 3rd of December at 3 pm for anna at example dot com?";
/// How long the check takes.
const CHECK: Duration = Duration::from_millis(300);
/// How long the model takes to call the tool again.
const MODEL: Duration = Duration::from_millis(600);
/// A final is begun after so much quiet, before the segment is over.
const FINAL_BEGINS: Duration = Duration::from_millis(64);
/// What a caller does now was decided this long ago.
const REACTION: Duration = Duration::from_millis(200);
/// A caller whose yes has come to nothing says it again after this.
const PATIENCE: Duration = Duration::from_millis(2_500);
/// The call is over then, whatever came of it.
const LIMIT: Duration = Duration::from_secs(60);
/// The same where the caller says nothing after the first yes.
const SHORT_LIMIT: Duration = Duration::from_secs(13);

enum Happening {
    Event(Box<Event>),
    /// The caller opens the mouth, if the question still sounds as it did when they meant to.
    Answers(Plan),
    /// The caller wonders whether anything will come of what they said to this asking.
    Wonders(u32),
}

/// An answer that the caller has in mind.
#[derive(Clone, Copy)]
struct Plan {
    /// To which asking.
    asking: u32,
    /// When the mouth opens.
    mouth: Time,
    /// For how long the question had been paused when this was planned.
    paused: Duration,
}

/// Something that the caller said, by the stamps of our input.
struct Said {
    from: Time,
    to: Time,
    /// When it began, at the mouth.
    mouth: Time,
    words: String,
    late: Duration,
    /// It is the yes to the first asking.
    first: bool,
}

/// The asking that sounds, or sounded last.
#[derive(Default)]
struct Asking {
    utterance: Option<UtteranceId>,
    /// Its end at the ear, if nothing comes between.
    ends: Time,
    /// The same, once it is known.
    ear_end: Option<Time>,
    /// What hides the beginning of sounds around it.
    censor: Censor,
    /// The gate of a half-duplex line is closed until then.
    gate_opens: Option<Time>,
    /// Since when it is silent in the middle.
    silent: Option<Time>,
    /// For how long it was.
    paused: Duration,
    /// It was broken off.
    cleared: bool,
    /// The caller has spoken before its end.
    spoken_into: bool,
}

pub(super) struct Call<'a> {
    trial: &'a Trial,
    sounds: &'a Sounds,
    random: Random,
    session: Session,
    mouth: Mouth,
    now: Time,
    queue: BTreeMap<(Time, u64), Happening>,
    order: u64,
    said: Vec<Said>,
    segments: BTreeMap<SegmentId, Interval>,
    asking: Asking,
    kinds: BTreeMap<UtteranceId, UtteranceKind>,
    heard_ms: Option<f64>,
    /// A part of the first yes was reported.
    first_cut: bool,
    done: bool,
    judged: Judged,
}

fn tool() -> ToolRef {
    ToolRef { skill: "desk".to_owned(), name: TOOL.to_owned(), definition: "sha256:1".to_owned() }
}

fn ask() -> Prepared {
    let json = r#"{"email":"anna@example.com","start":"2026-12-03T15:00"}"#;
    Prepared::Ask {
        tool: tool(),
        input: Frozen { json: json.to_owned(), hash: "sha256:2".to_owned() },
        question: QUESTION.to_owned(),
        language: "en".to_owned(),
        terms: AskTerms::default(),
    }
}

fn shifted(time: Time, micros: i64) -> Time {
    let by = Duration::from_micros(micros.unsigned_abs());
    if micros < 0 { time - by } else { time + by }
}

/// Word of what was played comes this late.
fn late_word(by: Duration) -> AckFault {
    AckFault {
        line: 0,
        on: Target { kind: None, occurrence: None },
        delay: by,
        lose: false,
        duplicate: false,
        after_clear: AfterClear::Silent,
        reorder: false,
        earlier: false,
    }
}

impl<'a> Call<'a> {
    pub(super) fn new(trial: &'a Trial, sounds: &'a Sounds) -> Self {
        let line = &trial.line;
        let whole = line.out + line.back;
        let rule = LineRule { delay: line.stated, evidence: line.kind.evidence(), whole: Some(whole) };
        let faults = if line.word.is_zero() { Vec::new() } else { vec![late_word(line.word)] };
        let contained = line.stated.at_least <= whole && whole <= line.stated.at_most;
        Self {
            trial,
            sounds,
            random: Random::new(trial.seed),
            session: Session::new(trial.policy.clone()),
            mouth: Mouth::new(rule, Vec::new(), faults),
            now: Time::ZERO,
            queue: BTreeMap::new(),
            order: 0,
            said: Vec::new(),
            segments: BTreeMap::new(),
            asking: Asking::default(),
            kinds: BTreeMap::new(),
            heard_ms: None,
            first_cut: false,
            done: false,
            judged: Judged { contained, ..Judged::default() },
        }
    }

    pub(super) fn run(mut self) -> Judged {
        self.hand(Event::Tools(vec![tool()]));
        self.hand(Event::CallStarted(CallStart {
            transport: "bench".to_owned(),
            call: "call".to_owned(),
            language: "en".to_owned(),
            greeting: None,
            chat: false,
        }));
        self.say_nothing();
        self.later(
            Duration::from_millis(500),
            Event::Asked { call: CallId("call_0".to_owned()), outcome: ask() },
        );
        let limit = if self.trial.later.is_some() { LIMIT } else { SHORT_LIMIT };
        while let Some(next) = self.next_at().filter(|next| *next <= Time::ZERO + limit && !self.done) {
            self.advance(next);
        }
        self.judged
    }

    /// A frame of silence: from here on the session cuts segments from frames.
    fn say_nothing(&mut self) {
        let end = Time::from_millis(32);
        let frame = sayback_core::VoiceFrame { start: Time::ZERO, end, speech: 0, rise: Time::ZERO };
        self.put(end, Happening::Event(Box::new(Event::Voice(frame))));
    }

    fn put(&mut self, at: Time, happening: Happening) {
        self.order += 1;
        self.queue.insert((at.max(self.now), self.order), happening);
    }

    fn later(&mut self, by: Duration, event: Event) {
        self.put(self.now + by, Happening::Event(Box::new(event)));
    }

    fn next_at(&self) -> Option<Time> {
        let queued = self.queue.keys().next().map(|(at, _)| *at);
        let deadline = self.session.poll_timeout().map(|(at, _)| at);
        [queued, deadline, self.mouth.next_at()].into_iter().flatten().min()
    }

    fn advance(&mut self, at: Time) {
        self.now = self.now.max(at);
        for event in self.mouth.poll(self.now) {
            self.on_mouth(event);
        }
        let due = self.queue.first_key_value().map(|(key, _)| *key).filter(|key| key.0 <= self.now);
        match due.and_then(|key| self.queue.remove(&key)) {
            Some(Happening::Event(event)) => self.hand(*event),
            Some(Happening::Answers(plan)) => self.answer(plan),
            Some(Happening::Wonders(asking)) => self.wonder(asking),
            None if self.session.poll_timeout().is_some_and(|(at, _)| at <= self.now) => {
                self.hand(Event::Tick)
            }
            None => {}
        }
    }

    fn hand(&mut self, event: Event) {
        self.session.handle(self.now, event);
        while let Some(output) = self.session.poll_output() {
            self.obey(output.at, output.command);
        }
    }

    fn obey(&mut self, at: Time, command: Command) {
        match command {
            Command::Report(report) => self.note(&report),
            Command::OpenSegment { segment, onset } => {
                self.segments.insert(segment, onset);
            }
            Command::CloseSegment { segment, offset } => self.recognise(segment, offset),
            Command::JudgeEnd { segment } => self.judge_end(segment),
            Command::Speak(speak) => self.speak(&speak),
            Command::Pause => self.mouth.pause(self.now),
            Command::Resume => self.mouth.resume(self.now),
            Command::Clear => self.mouth.clear(self.now),
            Command::Generate { generation } => self.think(generation),
            Command::Prepare { call, .. } => {
                self.later(Duration::ZERO, Event::Prepared { call: call.id, outcome: ask() });
            }
            Command::Check(request) => self.check(&request),
            Command::RunConfirmed(yes) => self.judge_run(at, &yes),
            Command::CancelGeneration { .. }
            | Command::RunPlain(_)
            | Command::Record(_)
            | Command::RequestApproval(_)
            | Command::WithdrawApproval { .. }
            | Command::EndCall { .. }
            | Command::Transfer { .. } => {}
        }
    }

    // The model, the check.

    fn think(&mut self, generation: GenerationId) {
        if self.trial.later.is_some() {
            let id = CallId(format!("call_{}", generation.0));
            let call = ToolCall { id, name: TOOL.to_owned(), input: "{}".to_owned() };
            self.later(MODEL, Event::Model(ModelEvent::Call { generation, call }));
        } else {
            let text = "Very well. ".to_owned();
            self.later(MODEL, Event::Model(ModelEvent::Text { generation, text }));
        }
        self.later(MODEL, Event::Model(ModelEvent::Finished { generation }));
    }

    fn check(&mut self, request: &CheckRequest) {
        self.later(CHECK, Event::Checked { check: request.check, answer: check_answer(request, "yes") });
    }

    // The agent's voice, and the caller's ear.

    fn speak(&mut self, speak: &Speak) {
        self.kinds.insert(speak.utterance, speak.kind);
        self.mouth.speak(Piece::of_text(speak), self.now);
    }

    fn on_mouth(&mut self, event: PlayoutEvent) {
        let asking = &mut self.asking;
        match &event {
            PlayoutEvent::Started { utterance, at }
                if self.kinds.get(utterance) == Some(&UtteranceKind::Question) =>
            {
                self.on_question(*utterance, *at);
            }
            PlayoutEvent::Finished { utterance, last_audible, .. }
                if asking.utterance == Some(*utterance) =>
            {
                asking.ear_end = Some(*last_audible + self.trial.line.out);
            }
            PlayoutEvent::Paused { at } => asking.silent = Some(*at),
            PlayoutEvent::Resumed { at } => {
                asking.paused += asking.silent.take().map_or(Duration::ZERO, |since| at.since(since));
            }
            PlayoutEvent::Cleared { utterance, .. } if asking.utterance == Some(*utterance) => {
                asking.silent.get_or_insert(self.now);
                asking.cleared = true;
            }
            PlayoutEvent::Synthesised { .. }
            | PlayoutEvent::Started { .. }
            | PlayoutEvent::Finished { .. }
            | PlayoutEvent::Cleared { .. }
            | PlayoutEvent::Failed { .. } => {}
        }
        self.hand(Event::Playout(event));
    }

    /// Nobody answers a question that was broken off before they meant to; one that paused ends later.
    fn answer(&mut self, plan: Plan) {
        let asking = &self.asking;
        if plan.asking != self.judged.askings {
            return;
        }
        let decided = plan.mouth - REACTION;
        let silent = asking.silent.is_some_and(|since| since + self.trial.line.out <= decided);
        let longer = asking.paused.saturating_sub(plan.paused);
        match (silent, asking.cleared) {
            (true, true) => {}
            (true, false) => self.plan(plan.mouth + Duration::from_millis(50), plan.paused),
            (false, _) if longer.is_zero() => self.speak_up(plan.mouth, "", plan.asking == 1),
            (false, _) => self.plan(plan.mouth + longer, asking.paused),
        }
    }

    fn plan(&mut self, mouth: Time, paused: Duration) {
        let plan = Plan { asking: self.judged.askings, mouth, paused };
        // The ears begin to listen to a word 100 ms before it.
        self.put(mouth - Duration::from_millis(100), Happening::Answers(plan));
    }

    /// The question sounds: the caller plans what to say to it.
    fn on_question(&mut self, utterance: UtteranceId, at: Time) {
        self.judged.askings += 1;
        let (line, length) = (self.trial.line, length_of_speech(QUESTION));
        let whole = line.out + line.back;
        let mut asking = Asking { utterance: Some(utterance), ..Asking::default() };
        match line.hides {
            Hides::Gate => {
                let opens = at + length + line.stated.at_most;
                asking.censor.gate_closed(at, opens);
                asking.gate_opens = Some(opens);
            }
            Hides::Echo => asking.censor.gate_closed(at + whole, at + length + whole),
            Hides::Nothing | Hides::Dtx { .. } => {}
        }
        asking.ends = at + length + line.out;
        self.asking = asking;
        let first = self.judged.askings == 1;
        let gap = match (first, self.trial.later) {
            (true, _) => self.trial.answer.gap_micros,
            (false, Some(people)) => people.gap(&mut self.random),
            (false, None) => return,
        };
        let ear_end = at + length + line.out;
        let mouth = shifted(ear_end, gap).max(at + line.out);
        if self.random.percent(self.trial.backchannels) {
            let within = length * (20 + self.random.between(0, 40) as u32) / 100;
            let listening = at + line.out + within;
            if listening + Duration::from_millis(1_500) < mouth {
                self.speak_up(listening, "mm-hm", false);
            }
        }
        match self.trial.later {
            Some(_) => self.plan(mouth, Duration::ZERO),
            // Whoever must not be heard speaks whatever happens.
            None => self.speak_up(mouth, "", first),
        }
        self.put(mouth + line.back + PATIENCE, Happening::Wonders(self.judged.askings));
    }

    /// Nothing has come of the yes, and the agent is silent: it is said again.
    fn wonder(&mut self, asking: u32) {
        let same = asking == self.judged.askings && self.mouth.next_at().is_none();
        if same && self.trial.later.is_some() && self.session.open_question().is_some() {
            self.speak_up(self.now, "", false);
            self.put(self.now + PATIENCE, Happening::Wonders(asking));
        }
    }

    /// Speaks: with these words, or those of a recording.
    fn speak_up(&mut self, mouth: Time, words: &str, first: bool) {
        let line = self.trial.line;
        let asking = &mut self.asking;
        let early = asking.ear_end.is_none_or(|end| mouth < end) && mouth < asking.ends;
        if early && !asking.spoken_into {
            asking.spoken_into = true;
            self.judged.spoken_into += 1;
        }
        let take: &Take = self.sounds.pick(self.random.bits());
        let from = mouth + line.back;
        let to = from + take.length;
        let answer = if first { self.trial.answer } else { super::Answer::default() };
        if let Hides::Dtx { since, clipped } = line.hides {
            self.asking.censor.lost(from - since, from + clipped);
        }
        let frames: Vec<_> = take.frames(from).collect();
        for mut frame in frames {
            frame.rise = self.asking.censor.earliest(frame.rise);
            let at = frame.end + line.arrival + answer.held_up;
            self.put(at, Happening::Event(Box::new(Event::Voice(frame))));
        }
        // Recognition does not hear what lies behind a closed gate.
        let gated = self.asking.gate_opens.is_some_and(|opens| from + take.length / 2 < opens);
        let words = if gated {
            ""
        } else if words.is_empty() {
            take.words.as_str()
        } else {
            words
        };
        let words = words.to_owned();
        self.said.push(Said { from, to, mouth, words, late: answer.words_late, first });
    }

    // Recognition.

    fn recognise(&mut self, segment: SegmentId, offset: Time) {
        let onset = self.segments.get(&segment).map_or(offset, |onset| onset.earliest);
        let within = |said: &&Said| said.from < offset && said.to > onset;
        let words: Vec<&str> = self.said.iter().filter(within).map(|said| said.words.as_str()).collect();
        let late = self.said.iter().filter(within).map(|said| said.late).max().unwrap_or_default();
        let text = words.join(" ").trim().to_owned();
        let takes = Duration::from_millis(self.random.between(110, 190).unsigned_abs());
        let ready = offset + FINAL_BEGINS + self.trial.line.arrival + takes;
        let transcript =
            Transcript { segments: vec![segment], span: None, text, confidence: None, phantom: None };
        self.put(ready.max(self.now) + late, Happening::Event(Box::new(Event::Transcript(transcript))));
    }

    fn judge_end(&mut self, segment: SegmentId) {
        let percent = if self.random.percent(92) { 95 } else { 20 };
        let takes = Duration::from_millis(self.random.between(20, 100).unsigned_abs());
        self.later(takes, Event::EndOfTurn { segment, percent });
    }

    // Judgement.

    fn note(&mut self, report: &Report) {
        if let Report::QuestionHeard { latest_ms, .. } = report {
            self.heard_ms.get_or_insert(*latest_ms);
        }
        if let Report::CallerSpeech { onset_earliest_ms, onset_ms, offset_ms, .. } = report {
            let first = self.said.iter().filter(|said| said.first);
            let mut first = first.map(|said| (said.from.as_millis_f64(), said.to.as_millis_f64()));
            let ours = first.any(|(from, to)| from < *offset_ms && to > *onset_ms);
            // A word that is cut in two began where its first part did.
            if ours && !self.first_cut {
                self.first_cut = true;
                let behind = self.heard_ms.is_some_and(|heard| *onset_earliest_ms >= heard);
                self.judged.behind = behind && self.judged.askings == 1;
            }
        }
    }

    fn judge_run(&mut self, at: Time, yes: &Confirmation) {
        let _ = yes;
        self.done = true;
        self.judged.ran = true;
        // What was said last is what it ran on; a part of it that began earlier is the same stretch of sound.
        let Some(last) = self.said.iter().filter(|said| said.from <= at).max_by_key(|said| said.to) else {
            self.judged.unheard = true;
            return;
        };
        let joined =
            |said: &&Said| said.to + Duration::from_millis(350) >= last.from && said.from <= last.from;
        let began = self.said.iter().filter(joined).map(|said| said.mouth).min().unwrap_or(last.mouth);
        self.judged.unheard = self.asking.ear_end.is_none_or(|end| began < end);
        self.judged.at_once = last.first && self.judged.askings == 1;
        self.judged.to_run_micros = Some(at.diff_micros(last.to));
    }
}
