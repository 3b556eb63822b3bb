//! Holding a call, asking its question, and every way a hold is closed.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use crate::command::{Command, DropReason, Report, UtteranceKind};
use crate::confirmation::Confirmation;
use crate::event::{CheckAnswer, EvidenceClass, Prepared, Refusal, ToolRef};
use crate::evidence::EvidenceRecord;
use crate::ids::{CallId, GenerationId, HoldId, SegmentId};
use crate::session::gate::{Answer, Asking, Hold, Misses, Rounds, Stage};
use crate::session::leaving::{being_handed_over, nobody_answered};
use crate::session::{Owner, Session};
use crate::time::{LoopDelay, Time};

/// Dropped by speech this often, the next asking ignores barge-in (VC-83).
const BRAKE_AFTER: u8 = 2;
/// Not played this often, the model is no longer asked to try again by itself.
const GIVE_UP_AFTER: u8 = 2;

impl Session {
    /// A valid call of a confirm tool: it is held, whatever was held before is replaced.
    pub(crate) fn hold(&mut self, call: CallId, ask: Prepared, generation: Option<GenerationId>) {
        let Prepared::Ask { tool, input, question, language, terms } = ask else { return };
        let braked =
            self.gate.misses_mut(&tool.name, &input.hash).is_some_and(|m| m.by_speech >= BRAKE_AFTER);
        if let Some(step) = self.step.as_mut() {
            step.note_question();
        }
        self.ids.hold += 1;
        let hold = Hold {
            id: HoldId(self.ids.hold),
            call,
            generation,
            tool,
            input,
            question,
            language,
            terms,
            stage: Stage::Waiting,
            asking: Asking::default(),
            answer: Answer::default(),
            rounds: Rounds { braked, ..Rounds::default() },
            judged: None,
            reverifying: false,
            approval: None,
        };
        if self.gate.committing() {
            self.replace_next(hold);
        } else {
            self.close_hold(DropReason::Replaced);
            self.put_hold(hold);
        }
    }

    /// A call made by the program itself.
    pub(crate) fn on_asked(&mut self, call: CallId, outcome: Prepared) {
        let fresh = self.gate.hold.as_ref().is_none_or(|hold| hold.call != call);
        let up = self.line.up && self.line.hung_up.is_none() && !self.line.ended;
        // Whoever takes their leave asks nothing more, or the call would end with a question open.
        let leaving = self.line.ending.is_some() || self.line.transfer.is_some();
        if let Prepared::Ask { tool, .. } = &outcome
            && self.tools.handing_over()
        {
            self.tell(being_handed_over(&tool.name));
        } else if let Prepared::Ask { tool, .. } = &outcome
            && self.line.unanswered
        {
            self.tell(nobody_answered(&tool.name));
        } else if let Prepared::Ask { tool, .. } = &outcome
            && up
            && leaving
        {
            self.tell(format!(
                "The call is about to end: {} was not asked about and did not run.",
                tool.name
            ));
        } else if up && fresh && matches!(outcome, Prepared::Ask { .. }) {
            self.hold(call, outcome, None);
            if !self.gate.committing() {
                self.ask_again();
            }
        }
    }

    /// A call that comes while the tool runs waits until that is over (row 4); the newest wins here too.
    fn replace_next(&mut self, hold: Hold) {
        if let Some(old) = self.gate.next.replace(hold) {
            self.set_result(&old.call, "Replaced by a later call: this action will not run.");
        }
    }

    fn put_hold(&mut self, hold: Hold) {
        self.report(Report::QuestionHeld {
            question: hold.id,
            tool: hold.tool.name.clone(),
            text: hold.question.clone(),
        });
        self.set_result(
            &hold.call,
            "Nothing has happened yet. The caller is being asked to confirm; the action runs only on their yes.",
        );
        self.gate.hold = Some(hold);
    }

    pub(crate) fn next_hold(&mut self) {
        if let Some(hold) = self.gate.next.take() {
            if self.line.hung_up.is_some() {
                return;
            }
            if self.tools.handing_over() {
                self.set_result(&hold.call, &being_handed_over(&hold.tool.name));
                return;
            }
            self.put_hold(hold);
            // A step on the tool's result is owed: the question comes behind its words.
            if !self.turn.wanted {
                self.ask_again();
            }
        }
    }

    /// Says the question, as the last thing in the queue.
    pub(crate) fn ask_again(&mut self) {
        let (held, now) = (self.line.held, self.now);
        let Some(hold) = self.gate.open_mut() else { return };
        let (text, language, id) = (hold.question.clone(), hold.language.clone(), hold.id);
        let (again, round) = (hold.rounds.asked, hold.rounds.unclear);
        hold.stage = Stage::Asking;
        hold.rounds.asked = true;
        hold.rounds.wait_since = None;
        hold.answer = Answer::default();
        hold.judged = None;
        hold.asking = Asking { held: (Duration::ZERO, held.then_some(now)), ..Asking::default() };
        if again {
            self.report(Report::QuestionRepeated { question: id, round });
        }
        let utterance = self.speak(text, language, UtteranceKind::Question, None);
        if let Some(hold) = self.gate.open_mut() {
            hold.asking.utterance = Some(utterance);
        }
        self.settle_chat(utterance);
    }

    pub(crate) fn end_line_hold(asking: &mut Asking, now: Time) {
        if let Some(since) = asking.held.1.take() {
            asking.held.0 += now.since(since);
        }
    }

    /// The question's first sample sounds.
    pub(crate) fn on_question_started(&mut self, at: Time) {
        let Some(hold) = self.gate.open_mut() else { return };
        hold.asking.began = Some(at);
        // Only what is lost of the question itself counts.
        hold.asking.held = (Duration::ZERO, hold.asking.held.1.map(|since| since.max(at)));
        let report = Report::QuestionStarted {
            question: hold.id,
            tool: hold.tool.name.clone(),
            text: hold.question.clone(),
        };
        self.report(report);
    }

    /// The question's last audible sample is on its way: from here its horizon is known.
    pub(crate) fn on_question_finished(
        &mut self,
        last_audible: Time,
        how: (LoopDelay, EvidenceClass),
        lost: Duration,
    ) {
        let (max_loss, least) = (self.policy.confirm.max_loss, self.policy.confirm.evidence);
        let now = self.now;
        let Some(hold) = self.gate.open_mut().filter(|hold| hold.stage == Stage::Asking) else { return };
        let still_held = hold.asking.held.1.map_or(Duration::ZERO, |since| now.since(since));
        hold.asking.held.0 += lost;
        let lost = hold.asking.held.0 + still_held;
        let least = hold.terms.evidence.map_or(least, |own| own.min(least));
        hold.asking.finish = Some((last_audible, how.0, how.1));
        if lost > max_loss || how.1 > least || how.1 == EvidenceClass::Unproven {
            self.drop_unheard(DropReason::NotPlayed);
            return;
        }
        self.place_again();
    }

    /// The question was not heard word for word: it was not asked.
    pub(crate) fn drop_unheard(&mut self, reason: DropReason) {
        let Some(hold) = self.gate.open() else { return };
        let (tool, hash) = (hold.tool.name.clone(), hold.input.hash.clone());
        self.count_miss(&tool, &hash, false);
        let tries = self.gate.misses_mut(&tool, &hash).map_or(0, |m| m.not_played);
        self.close_hold(reason);
        if tries < GIVE_UP_AFTER {
            self.want_step();
        }
    }

    fn count_miss(&mut self, tool: &str, hash: &str, by_speech: bool) {
        if self.gate.misses_mut(tool, hash).is_none() {
            self.gate.misses.push(Misses {
                tool: tool.to_string(),
                input_hash: hash.to_string(),
                by_speech: 0,
                not_played: 0,
            });
        }
        if let Some(misses) = self.gate.misses_mut(tool, hash) {
            let count = if by_speech { &mut misses.by_speech } else { &mut misses.not_played };
            *count = count.saturating_add(1);
        }
    }

    /// The question's end has reached the ear; it is open once no earlier segment is unresolved.
    pub(crate) fn settle_hold(&mut self) {
        let Some(hold) = self.gate.open().filter(|hold| hold.stage == Stage::Asking) else { return };
        let Some((end, delay, evidence)) = hold.asking.finish else { return };
        let horizon = end + delay.at_most;
        let blocked = self.segments.iter().any(|s| s.unresolved() && s.onset.earliest < horizon);
        if self.now < horizon || blocked {
            return;
        }
        if hold.asking.lost_by(horizon) > self.policy.confirm.max_loss {
            self.drop_unheard(DropReason::NotPlayed);
            return;
        }
        let report = Report::QuestionHeard {
            question: hold.id,
            earliest_ms: Self::ms(end + delay.at_least),
            latest_ms: Self::ms(horizon),
            evidence,
        };
        if let Some(hold) = self.gate.open_mut() {
            hold.stage = Stage::Heard;
        }
        self.note_asked();
        self.report(report);
        self.place_again();
    }

    /// Only an affirmation, begun just before the horizon: the runtime asks again by itself, once (VC-82).
    pub(crate) fn ask_near_end(&mut self, segment: SegmentId) {
        let Some(hold) = self.gate.open() else { return };
        let ask = Prepared::Ask {
            tool: hold.tool.clone(),
            input: hold.input.clone(),
            question: hold.question.clone(),
            language: hold.language.clone(),
            terms: hold.terms,
        };
        let (call, language, approval) = (hold.call.clone(), hold.language.clone(), hold.approval.clone());
        self.take_as_context(segment);
        self.close_hold(DropReason::BargeIn);
        self.interrupt();
        self.hold(call, ask, None);
        if let Some(hold) = self.gate.open_mut() {
            hold.rounds.again = true;
            hold.approval = approval;
        }
        self.say(sorry(&language), language, None);
        self.ask_again();
    }

    /// Closes the hold, if there is one that is not running yet: reported, recorded, told.
    pub(crate) fn close_hold(&mut self, reason: DropReason) {
        self.close_hold_as(reason, outcome_name(reason));
    }

    pub(crate) fn close_hold_as(&mut self, reason: DropReason, outcome: &str) {
        let Some(mut hold) = self.gate.hold.take_if(|hold| hold.stage != Stage::Committing) else { return };
        if reason != DropReason::Hangup {
            self.left_open = None;
        }
        Self::end_line_hold(&mut hold.asking, self.now);
        self.report(Report::QuestionDropped { question: hold.id, reason });
        let record = self.record(&hold, outcome);
        self.command(Command::Record(alloc::boxed::Box::new(record)));
        if reason == DropReason::BargeIn {
            self.count_miss(&hold.tool.name, &hold.input.hash, true);
        }
        if hold.asking.utterance.and_then(|id| self.mouth.get(id)).is_some_and(|u| u.active()) {
            self.silence_mouth();
        }
        let braked = hold.rounds.braked;
        if let Some(text) = told(reason, &hold.tool.name, braked) {
            self.set_result(&hold.call, "Not confirmed: this action did not run.");
            self.tell(text);
        }
    }

    /// Records how the open hold stands.
    pub(crate) fn record_open(&mut self, outcome: &str) {
        if let Some(record) = self.gate.open().map(|hold| self.record(hold, outcome)) {
            self.command(Command::Record(alloc::boxed::Box::new(record)));
        }
    }

    // The run.

    /// The yes stands: run it, unless the tool is no longer what the caller was asked about (rows 29, 30).
    pub(crate) fn commit_or_verify(&mut self) {
        let Some(hold) = self.gate.heard() else { return };
        match self.knows(&hold.tool) {
            Owner::Gone => self.drop_answered(DropReason::OwnerGone),
            Owner::Same => self.commit(),
            Owner::Changed => self.verify_again(),
        }
    }

    fn drop_answered(&mut self, reason: DropReason) {
        self.take_answer();
        self.close_hold(reason);
        self.want_step();
    }

    /// The definition changed: the input is validated and the question built anew with the new one (VC-72).
    fn verify_again(&mut self) {
        let Some(hold) = self.gate.open_mut() else { return };
        hold.reverifying = true;
        let call = crate::event::ToolCall {
            id: hold.call.clone(),
            name: hold.tool.name.clone(),
            input: hold.input.json.clone(),
        };
        let language = hold.language.clone();
        self.command(Command::Prepare { call, language });
    }

    /// Gives back whether it was about the hold's own second look.
    pub(crate) fn on_verified(&mut self, call: &CallId, outcome: &Prepared) -> bool {
        let Some(hold) = self.gate.open_mut().filter(|hold| hold.reverifying && hold.call == *call) else {
            return false;
        };
        hold.reverifying = false;
        let skill = hold.tool.skill.clone();
        // An approval that was given was given for the same input; whether the question is the same is looked at here.
        let outcome = match hold.approval {
            Some(_) => outcome.behind_approval(),
            None => outcome,
        };
        match outcome {
            Prepared::Ask { tool, input, question, .. }
                if *input == hold.input && *question == hold.question && tool.skill == skill =>
            {
                hold.tool = ToolRef::clone(tool);
                if self.grace_over_at().is_some_and(|at| at <= self.now) {
                    self.commit();
                }
            }
            Prepared::Refused { reason: Refusal::UnknownTool, .. } => {
                self.drop_answered(DropReason::OwnerGone)
            }
            Prepared::Ask { .. }
            | Prepared::Plain { .. }
            | Prepared::Approve { .. }
            | Prepared::Refused { .. } => {
                self.drop_answered(DropReason::DefinitionChanged);
            }
        }
        true
    }

    fn commit(&mut self) {
        let Some(hold) = self.gate.heard().cloned() else { return };
        let Some(check) = self.confirming_words(&hold) else { return };
        // The yes is written down and used up in one step (LED-37); without it there is nothing to run on.
        let (now, ledger) = (self.now, &mut self.gate.ledger);
        ledger.record(hold.id, &hold.tool.name, &hold.input.hash, now);
        let Some(used) = ledger.consume(hold.id, &hold.tool.name, &hold.input.hash, now) else { return };
        let record = self.record(&hold, "committed");
        self.note_run(hold.id, &check);
        self.take_answer();
        // Answered: a conversation that is stored from here on does not end with an open question.
        self.left_open = None;
        if let Some(open) = self.gate.open_mut() {
            open.stage = Stage::Committing;
        }
        self.command(Command::Record(alloc::boxed::Box::new(record.clone())));
        self.gate.committed = Some(record);
        let limit = self.policy.turn.tool_limit;
        let what = (hold.call.clone(), hold.tool.clone(), hold.input.clone());
        self.tools.start(what, self.now + limit, Some(check.clone()));
        self.report(Report::ToolStarted {
            call_id: hold.call.clone(),
            tool: hold.tool.name.clone(),
            input: json(&hold.input.json),
            confirmed_by: Some(check.clone()),
        });
        let yes = Confirmation::new(used, (hold.call, hold.tool), hold.input, (check, limit));
        self.command(Command::RunConfirmed(yes.after(hold.approval)));
    }

    /// The words or the digit that say yes.
    fn confirming_words(&self, hold: &Hold) -> Option<String> {
        if let Some((digit, _)) = hold.answer.digit {
            return Some(digit.to_string());
        }
        let yes = CheckAnswer::Verdict { verdict: crate::event::Verdict::Yes };
        let said = hold.answer.check.as_ref()?.answer.as_ref() == Some(&yes);
        said.then(|| self.words_of(hold))
    }

    pub(crate) fn words_of(&self, hold: &Hold) -> String {
        let ids = hold.answer.segments.iter();
        let texts: Vec<&str> = ids.filter_map(|id| self.segments.get(*id)).filter_map(|s| s.text()).collect();
        texts.join(" ")
    }

    /// The confirmed tool is done: the slot is free.
    pub(crate) fn end_commit(&mut self, outcome: &str) {
        if self.gate.hold.take_if(|hold| hold.stage == Stage::Committing).is_some()
            && let Some(record) = self.gate.committed.take()
        {
            let record = EvidenceRecord { outcome: outcome.to_string(), decided_at: self.now, ..record };
            self.command(Command::Record(alloc::boxed::Box::new(record)));
        }
        self.next_hold();
    }

    pub(crate) fn committed_call(&self) -> Option<&CallId> {
        self.gate.hold.as_ref().filter(|hold| hold.stage == Stage::Committing).map(|hold| &hold.call)
    }
}

/// What the event log shows of an input. Frozen inputs are JSON by construction.
pub(crate) fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or(serde_json::Value::Null)
}

fn outcome_name(reason: DropReason) -> &'static str {
    match reason {
        DropReason::BargeIn => "barge_in",
        DropReason::Replaced => "replaced",
        DropReason::Cancelled => "cancelled",
        DropReason::NotPlayed => "not_played",
        DropReason::TtsFailed => "tts_failed",
        DropReason::Hangup => "hangup",
        DropReason::Expired => "expired",
        DropReason::Declined => "declined",
        DropReason::Unconfirmed => "unconfirmed",
        DropReason::OwnerGone => "owner_gone",
        DropReason::DefinitionChanged => "definition_changed",
        DropReason::Rewound => "rewound",
        DropReason::InputError => "input_error",
    }
}

/// What the model is told of a closed hold; nothing if there is nobody left to talk to.
fn told(reason: DropReason, tool: &str, braked: bool) -> Option<String> {
    let person = "Offer the caller to speak to a person instead.";
    Some(match reason {
        DropReason::BargeIn => format!(
            "The caller spoke before the question for {tool} had been heard to its end, so it was not asked and \
             nothing ran. Answer what they say; if they still want it, call {tool} again so that the whole question \
             is said."
        ),
        DropReason::Replaced => format!("A later call replaced {tool}: that action will not run."),
        DropReason::Cancelled => {
            format!(
                "The question for {tool} was not asked and nothing ran. Call it again if it is still wanted."
            )
        }
        DropReason::NotPlayed | DropReason::TtsFailed if braked => {
            format!("The question for {tool} could not be asked and nothing ran. {person}")
        }
        DropReason::NotPlayed | DropReason::TtsFailed => format!(
            "The question for {tool} was not heard word for word, so it was not asked and nothing ran. Call {tool} \
             again so that the whole question is said."
        ),
        DropReason::Expired => format!("The question for {tool} was not answered in time. Nothing ran."),
        DropReason::Declined => format!(
            "The caller did not agree to {tool}. Nothing ran. Handle what they said; calling {tool} again asks with \
             the new details."
        ),
        DropReason::Unconfirmed => {
            format!("{tool} was not confirmed after several tries. Nothing ran. {person}")
        }
        DropReason::OwnerGone => format!("{tool} is no longer available. Nothing ran."),
        DropReason::DefinitionChanged => {
            format!("{tool} changed after the caller was asked. Nothing ran; call it again to ask anew.")
        }
        DropReason::InputError => {
            format!("The open question for {tool} was closed, since a new call had wrong input. Nothing ran.")
        }
        DropReason::Rewound => format!("The conversation was taken back; {tool} is no longer waiting."),
        DropReason::Hangup => return None,
    })
}

fn sorry(language: &str) -> String {
    let base = language.split('-').next().unwrap_or(language);
    String::from(match base {
        "de" => "Entschuldigung, noch einmal.",
        "es" => "Perdón, otra vez.",
        "fr" => "Pardon, encore une fois.",
        "pt" => "Desculpe, mais uma vez.",
        "ja" => "すみません、もう一度。",
        "hi" => "माफ़ कीजिए, एक बार फिर।",
        _ => "Sorry, once more.",
    })
}
