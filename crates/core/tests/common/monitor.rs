//! What every call must obey, judged from the outside: events that went in and outputs that came out, nothing else.
//!
//! The numbers in the complaints are those of the invariants: 1 a run has a heard question and a yes of the same
//! hold behind it, 2 it runs once, 3 with the very input that was asked about, 4 every checked word began behind the
//! horizon, 5 the question was the last thing heard, 6 a verdict acts on its own hold, 7 an asking step never hangs
//! up, 8 model output alone runs nothing, 9 a closed hold stays closed, 10 words before the horizon prevent the run.

#![expect(clippy::wildcard_enum_match_arm, reason = "only what is judged is looked at")]

use std::collections::BTreeMap;

use sayback_core::*;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Words {
    Awaited,
    None,
    Text(String),
    /// The recogniser never answered.
    Unknown,
}

#[derive(Clone, Debug, Hash)]
struct Segment {
    onset: Interval,
    offset: Option<Time>,
    words: Words,
    echo: bool,
    /// The conversation was taken back to before it.
    gone: bool,
}

impl Segment {
    fn unresolved(&self) -> bool {
        !self.echo && (self.offset.is_none() || self.words == Words::Awaited)
    }

    fn may_have_words(&self) -> bool {
        !self.echo && matches!(self.words, Words::Text(_) | Words::Unknown)
    }
}

#[derive(Clone, Debug, Default, Hash)]
struct Hold {
    text: String,
    generation: u32,
    began: Option<Time>,
    horizon: Option<Time>,
    heard: bool,
    /// At any time, in whatever asking.
    was_heard: bool,
    dropped: Option<String>,
    runs: u32,
}

#[derive(Clone, Debug, Hash)]
struct Check {
    hold: u32,
    words: String,
    started: Time,
    limit: std::time::Duration,
    yes: Option<bool>,
}

/// Watches one call.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Monitor {
    policy: Policy,
    chat: bool,
    generation: u32,
    /// The last step that is complete, and whether the program is asking.
    complete: u32,
    program: bool,
    /// The conversation is being taken back by the event at hand.
    rewinding: bool,
    segments: BTreeMap<u32, Segment>,
    holds: BTreeMap<u32, Hold>,
    current: u32,
    checks: BTreeMap<u32, Check>,
    kinds: BTreeMap<u32, UtteranceKind>,
    sounded: BTreeMap<u32, Time>,
    speech: Vec<Time>,
    inputs: BTreeMap<String, Frozen>,
    keys: Vec<Time>,
    /// What the transcript that is being handled covers: earliest onset, latest offset.
    covered: Option<(Time, Time)>,
    /// Complaints, each a fault of the core.
    pub(crate) faults: Vec<String>,
    /// Confirmed runs so far.
    pub(crate) runs: u32,
}

impl Monitor {
    pub(crate) fn new(policy: &Policy) -> Self {
        Self {
            policy: policy.clone(),
            chat: false,
            generation: 0,
            complete: 0,
            program: false,
            rewinding: false,
            segments: BTreeMap::new(),
            holds: BTreeMap::new(),
            current: 0,
            checks: BTreeMap::new(),
            kinds: BTreeMap::new(),
            sounded: BTreeMap::new(),
            speech: Vec::new(),
            inputs: BTreeMap::new(),
            keys: Vec::new(),
            covered: None,
            faults: Vec::new(),
            runs: 0,
        }
    }

    /// The hold that is open now, and whether its question was heard.
    pub(crate) fn open(&self) -> Option<(HoldId, bool)> {
        let hold = self.holds.get(&self.current)?;
        (hold.dropped.is_none() && hold.runs == 0).then_some((HoldId(self.current), hold.heard))
    }

    /// Why holds were closed without a run.
    pub(crate) fn drop_reasons(&self) -> Vec<String> {
        self.holds.values().filter_map(|hold| hold.dropped.clone()).collect()
    }

    fn fault(&mut self, at: Time, what: &str) {
        self.faults.push(format!("{at} {what}"));
    }

    /// Notes a fact, before it is handed to the core.
    pub(crate) fn observe(&mut self, now: Time, event: &Event) {
        self.covered = None;
        self.program = matches!(event, Event::Asked { .. });
        self.rewinding = matches!(event, Event::Rewound(_));
        match event {
            Event::Model(ModelEvent::Finished { generation }) => self.complete = generation.0,
            Event::CallStarted(start) => self.chat |= start.chat,
            Event::Echo { segment } => {
                if let Some(segment) = self.segments.get_mut(&segment.0) {
                    segment.echo = true;
                }
            }
            Event::Rewound(_) => self.segments.values_mut().for_each(|segment| segment.gone = true),
            Event::Transcript(transcript) => self.observe_transcript(now, transcript),
            Event::Digit { digit: '1', start } => self.keys.push(*start),
            Event::Prepared { call, outcome: Prepared::Ask { input, .. } }
            | Event::Asked { call, outcome: Prepared::Ask { input, .. } } => {
                self.inputs.entry(call.0.clone()).or_insert_with(|| input.clone());
            }
            Event::Checked { check, answer } => self.observe_verdict(now, *check, answer),
            Event::Playout(PlayoutEvent::Started { utterance, at }) => {
                self.sounded.entry(utterance.0).or_insert(*at);
            }
            Event::Reopened(Reopened { open: Some(open), .. }) => {
                self.inputs.insert(open.call.0.clone(), open.input.clone());
                self.holds.insert(open.hold.0, Hold { text: open.question.clone(), ..Hold::default() });
                self.current = open.hold.0;
            }
            _ => {}
        }
    }

    fn observe_verdict(&mut self, now: Time, check: CheckId, answer: &CheckAnswer) {
        if let Some(check) = self.checks.get_mut(&check.0)
            && now < check.started + check.limit
        {
            let yes = *answer == CheckAnswer::Verdict { verdict: Verdict::Yes };
            check.yes.get_or_insert(yes);
        }
    }

    fn observe_transcript(&mut self, now: Time, transcript: &Transcript) {
        let named = |id: &u32| transcript.segments.contains(&SegmentId(*id));
        let all = transcript.segments.is_empty();
        for (id, segment) in &mut self.segments {
            if (all || named(id)) && segment.words == Words::Awaited && !segment.echo {
                let offset = *segment.offset.get_or_insert(now);
                segment.words = Words::None;
                let (from, to) = self.covered.unwrap_or((segment.onset.earliest, offset));
                self.covered = Some((from.min(segment.onset.earliest), to.max(offset)));
            }
        }
    }

    /// Judges one output.
    pub(crate) fn judge(&mut self, output: &Output) {
        let at = output.at;
        match &output.command {
            Command::Report(report) => self.judge_report(at, report),
            Command::OpenSegment { segment, onset } => {
                let new =
                    Segment { onset: *onset, offset: None, words: Words::Awaited, echo: false, gone: false };
                self.segments.insert(segment.0, new);
            }
            Command::CloseSegment { segment, offset } => {
                if let Some(segment) = self.segments.get_mut(&segment.0) {
                    segment.offset.get_or_insert(*offset);
                }
            }
            Command::Speak(speak) => self.judge_speak(speak),
            Command::Generate { generation } => self.generation = generation.0,
            Command::Check(request) => self.judge_check(at, request),
            Command::RunConfirmed(yes) => self.judge_run(at, yes),
            Command::EndCall { reason } => self.judge_leaving(at, reason == "agent"),
            Command::Transfer { .. } => self.judge_leaving(at, true),
            _ => {}
        }
    }

    fn judge_speak(&mut self, speak: &Speak) {
        self.kinds.insert(speak.utterance.0, speak.kind);
        if speak.kind == UtteranceKind::Question
            && let Some(hold) = self.holds.get_mut(&self.current)
        {
            (hold.began, hold.horizon, hold.heard) = (None, None, false);
        }
    }

    fn judge_report(&mut self, at: Time, report: &Report) {
        match report {
            Report::QuestionHeld { question, text, .. } => {
                if self.holds.contains_key(&question.0) {
                    self.fault(at, "9: a hold id came twice");
                }
                let outside = self.program && self.complete == self.generation;
                let generation = if outside { u32::MAX } else { self.generation };
                let hold = Hold { text: text.clone(), generation, ..Hold::default() };
                self.holds.insert(question.0, hold);
                self.current = question.0;
            }
            Report::QuestionRepeated { question, .. } => self.must_be_open(at, *question, "repeated"),
            Report::QuestionStarted { question, .. } => {
                let began = self.last_sounded().unwrap_or(at);
                self.must_be_open(at, *question, "started");
                self.holds.entry(question.0).or_default().began = Some(began);
            }
            Report::QuestionReopened { question, .. } => self.judge_reopened(at, *question),
            Report::QuestionHeard { question, latest_ms, .. } => self.judge_heard(at, *question, *latest_ms),
            Report::QuestionDropped { question, reason } => {
                self.must_be_open(at, *question, "dropped");
                self.holds.entry(question.0).or_default().dropped = Some(format!("{reason:?}"));
            }
            Report::AgentStarted { utterance }
                if self.kinds.get(&utterance.0) == Some(&UtteranceKind::Speech) =>
            {
                self.speech.push(self.sounded.get(&utterance.0).copied().unwrap_or(at));
            }
            Report::AnswerChecked { question, margin_ms, .. } => {
                self.must_be_open(at, *question, "checked");
                if *margin_ms < 0.0 {
                    self.fault(at, "4: an answer from before the horizon was checked");
                }
            }
            Report::CallerWords { segment, text, onset_ms, offset_ms, is_final: true, ignored, .. } => {
                self.judge_words(*segment, text, (*onset_ms, *offset_ms), ignored.as_deref());
            }
            _ => {}
        }
    }

    fn last_sounded(&self) -> Option<Time> {
        let questions = self.kinds.iter().filter(|(_, kind)| **kind == UtteranceKind::Question);
        questions.filter_map(|(id, _)| self.sounded.get(id)).next_back().copied().filter(|_| !self.chat)
    }

    fn judge_words(&mut self, id: SegmentId, text: &str, (from, to): (f64, f64), ignored: Option<&str>) {
        let words = match ignored {
            Some("timeout") => Words::Unknown,
            Some(_) => Words::None,
            None if text.trim().is_empty() => Words::None,
            None => Words::Text(text.to_owned()),
        };
        let typed = Segment {
            onset: Interval::exact(from_ms(from)),
            offset: Some(from_ms(to)),
            words: Words::Awaited,
            echo: false,
            gone: false,
        };
        let segment = self.segments.entry(id.0).or_insert(typed);
        segment.words = words;
        // A recogniser that never answered covers nothing else.
        if let Some((from, to)) = self.covered.filter(|_| ignored != Some("timeout")) {
            segment.onset = Interval::new(segment.onset.earliest.min(from), segment.onset.latest);
            segment.offset = Some(to);
        }
    }

    /// Only taking the conversation back opens a question again, and none that was never heard.
    fn judge_reopened(&mut self, at: Time, id: HoldId) {
        self.current = id.0;
        if !self.rewinding {
            self.fault(at, "9: a question was opened again by itself");
        }
        match self.holds.get_mut(&id.0) {
            Some(hold) if hold.was_heard => {
                (hold.dropped, hold.runs) = (None, 0);
                (hold.began, hold.horizon, hold.heard) = (None, None, false);
            }
            Some(_) | None => self.fault(at, "1: a question that was never heard was opened again"),
        }
    }

    fn must_be_open(&mut self, at: Time, id: HoldId, what: &str) {
        self.current = id.0;
        match self.holds.get(&id.0) {
            None => self.fault(at, &format!("9: {id} was {what} and never held")),
            Some(hold) if hold.dropped.is_some() || hold.runs > 0 => {
                self.fault(at, &format!("9: {id} was {what} after its end"));
            }
            Some(_) => {}
        }
    }

    fn judge_heard(&mut self, at: Time, id: HoldId, latest_ms: f64) {
        let horizon = from_ms(latest_ms);
        self.must_be_open(at, id, "heard");
        if at < horizon {
            self.fault(at, "1: heard before its horizon");
        }
        if self.segments.values().any(|s| s.unresolved() && s.onset.earliest < horizon) {
            self.fault(at, "1: opened while earlier sound was unresolved");
        }
        let hold = self.holds.entry(id.0).or_default();
        hold.horizon = Some(horizon);
        hold.began.get_or_insert(horizon);
        (hold.heard, hold.was_heard) = (true, true);
    }

    /// The segments that may answer a question with this horizon.
    fn eligible(&self, horizon: Time) -> impl Iterator<Item = (&Segment, &str)> {
        self.segments.values().filter(move |s| !s.echo && s.onset.earliest >= horizon).filter_map(
            |s| match &s.words {
                Words::Text(text) => Some((s, text.as_str())),
                Words::Awaited | Words::None | Words::Unknown => None,
            },
        )
    }

    fn judge_check(&mut self, at: Time, request: &CheckRequest) {
        self.must_be_open(at, request.hold, "checked");
        let hold = self.holds.get(&request.hold.0).cloned().unwrap_or_default();
        if !hold.heard || hold.text != request.question {
            self.fault(at, "1: a check of a question that was not heard");
        }
        let mut spare: Vec<&str> =
            self.eligible(hold.horizon.unwrap_or(at)).flat_map(|(_, text)| text.split_whitespace()).collect();
        let mut strange = false;
        for word in request.words.split_whitespace() {
            match spare.iter().position(|w| *w == word) {
                Some(at) => drop(spare.swap_remove(at)),
                None => strange = true,
            }
        }
        if strange {
            self.fault(at, &format!("4: checked words from before the horizon: {:?}", request.words));
        }
        let check = Check {
            hold: request.hold.0,
            words: request.words.clone(),
            started: at,
            limit: request.limit,
            yes: None,
        };
        self.checks.insert(request.check.0, check);
    }

    fn judge_leaving(&mut self, at: Time, by_model: bool) {
        if self.open().is_some() {
            self.fault(at, "7: left with a question open");
        }
        let asked_here = |hold: &Hold| {
            let dropped = hold.dropped.as_deref().is_none_or(|reason| reason == "Cancelled");
            hold.generation == self.generation && dropped && hold.runs == 0
        };
        if by_model && self.holds.values().any(asked_here) {
            self.fault(at, "7: a step that asks hung up");
        }
    }

    fn judge_run(&mut self, at: Time, yes: &Confirmation) {
        self.runs += 1;
        self.must_be_open(at, yes.hold(), "run");
        let hold = self.holds.entry(yes.hold().0).or_default();
        hold.runs += 1;
        let hold = hold.clone();
        if hold.runs > 1 {
            self.fault(at, "2: a second run");
        }
        if !hold.heard {
            self.fault(at, "1: run without a heard question");
        }
        if self.inputs.get(&yes.call().0) != Some(yes.input()) {
            self.fault(at, "3: the input changed");
        }
        let horizon = hold.horizon.unwrap_or(at);
        let began = hold.began.unwrap_or(horizon);
        self.judge_yes(at, yes, (began, horizon));
        self.judge_silence_before(at, (began, horizon));
        if self.segments.values().any(Segment::unresolved) {
            self.fault(at, "10: run while sound was unresolved");
        }
        let unknown =
            |s: &&Segment| !s.echo && s.words == Words::Unknown && !s.gone && s.onset.earliest >= horizon;
        if self.segments.values().any(|s| unknown(&s)) {
            self.fault(at, "10: run although part of the answer is unknown");
        }
    }

    /// 1, 6, 8: the yes is a verdict on this hold's words or a key; 5: nothing else was heard in between.
    fn judge_yes(&mut self, at: Time, yes: &Confirmation, (began, horizon): (Time, Time)) {
        let said = yes.confirmed_by();
        let hold = yes.hold().0;
        let verdict = self.checks.values().any(|check| {
            check.hold == hold
                && check.yes == Some(true)
                && check.started >= horizon
                && said.starts_with(&check.words)
        });
        let key = said == "1" && self.policy.confirm.keypad && self.keys.iter().any(|key| *key >= horizon);
        if !verdict && !key {
            self.fault(at, "1: run without a yes of its own");
        }
        let answer =
            self.eligible(horizon).filter(|(_, text)| said.contains(text)).map(|(s, _)| s.onset.latest);
        let answer = answer.min().filter(|_| !key).or_else(|| self.keys.iter().max().copied());
        let between = |speech: &Time| *speech > began && answer.is_some_and(|answer| *speech < answer);
        if self.policy.confirm.adjacency == Adjacency::Strict && self.speech.iter().any(between) {
            self.fault(at, "5: other speech was heard between the question and the yes");
        }
    }

    fn judge_silence_before(&mut self, at: Time, (began, horizon): (Time, Time)) {
        let inside = |s: &Segment| {
            s.may_have_words() && s.onset.earliest < horizon && s.offset.is_none_or(|offset| offset > began)
        };
        let drops = self.policy.confirm.question_barge_in == QuestionBargeIn::Drop;
        if drops && !self.chat && self.segments.values().any(inside) {
            self.fault(at, "10: run although there were words before the horizon");
        }
    }
}

fn from_ms(ms: f64) -> Time {
    Time::from_micros((ms * 1_000.0).round() as u64)
}
