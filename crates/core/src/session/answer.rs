//! The answer: only speech that began behind the horizon, checked once the turn is complete, and a run only at the
//! end of the grace window.
//!
//! Open, Hearing, Checking and Grace are not stored: they follow from the answer's segments and its check.
//!
//! ```text
//! no segment yet                      -> Open
//! one sounds or awaits its words      -> Hearing
//! words, no check answer yet          -> Checking
//! yes, not yet due                    -> Grace
//! ```

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::check;
use crate::command::{CheckRequest, Command, DropReason, Report};
use crate::context::Item;
use crate::event::{CheckAnswer, Verdict};
use crate::ids::{CheckId, SegmentId};
use crate::policy::{Adjacency, AfterHangup, QuestionBargeIn};
use crate::segment::{Segment, Words};
use crate::session::Session;
use crate::session::gate::{Answer, Check, Hold, KEYS_IN_A_ROW, Stage};
use crate::session::hear::Place;
use crate::time::Time;

const YES: CheckAnswer = CheckAnswer::Verdict { verdict: Verdict::Yes };

impl Session {
    /// Collects new answer segments and acts on a check that has answered.
    pub(crate) fn settle_answer(&mut self) {
        self.collect_answer();
        self.void_key();
        self.refuse_unknown_answer();
        if self.answer_complete_at().is_some_and(|at| at <= self.now)
            && let Some((check, answer)) = self.usable_answer()
        {
            self.apply(check, answer);
        }
        self.end_answer_after_hangup();
    }

    fn collect_answer(&mut self) {
        let Some(hold) = self.gate.heard() else { return };
        let expiry = self.policy.confirm.ttl.and_then(|ttl| Self::expiry(hold, ttl));
        let new: Vec<(SegmentId, Time)> = self
            .segments
            .iter()
            .filter(|s| !s.taken && !s.echo && !hold.answer.segments.contains(&s.id))
            .filter(|s| self.place(hold, s) == Place::Behind)
            .map(|s| (s.id, s.onset.latest))
            .collect();
        if hold.answer.segments.is_empty()
            && new.first().zip(expiry).is_some_and(|((_, onset), end)| *onset > end)
        {
            self.close_hold(DropReason::Expired);
            return;
        }
        if let Some(hold) = self.gate.open_mut() {
            hold.answer.segments.extend(new.into_iter().map(|(id, _)| id));
        }
    }

    /// Words beside a key count more than the key, whichever came first: it may have been taken back (row 28), or
    /// pressed by somebody who had just said no.
    fn void_key(&mut self) {
        let Some(hold) = self.gate.heard() else { return };
        let spoken = hold.answer.digit.is_some() && self.answer_segments(hold).any(Segment::may_have_words);
        if spoken && let Some(hold) = self.gate.open_mut() {
            (hold.answer.digit, hold.answer.reported) = (None, false);
        }
    }

    /// An answer with a part whose words never came is unclear: that part may have taken the rest back.
    fn refuse_unknown_answer(&mut self) {
        let Some(hold) = self.gate.heard().filter(|_| !self.segments.any_unresolved()) else { return };
        if self.answer_segments(hold).any(|s| s.words == Words::Unknown) {
            let words = self.answer_words(hold);
            let check = Check { id: CheckId(0), words, started: self.now, answer: None };
            self.apply(check, CheckAnswer::Failed { error: String::from("no transcript") });
        }
    }

    pub(crate) fn answer_segments<'a>(&'a self, hold: &'a Hold) -> impl Iterator<Item = &'a Segment> {
        self.segments.iter().filter(|s| !s.taken && hold.answer.segments.contains(&s.id))
    }

    fn answer_words(&self, hold: &Hold) -> String {
        let texts: Vec<&str> = self.answer_segments(hold).filter_map(Segment::text).collect();
        texts.join(" ")
    }

    /// When the answer turn is complete; `None` while there is none, or while anything is unresolved.
    pub(crate) fn answer_complete_at(&self) -> Option<Time> {
        let hold = self.gate.heard()?;
        if self.segments.any_unresolved()
            || (self.line.hung_up.is_some() && !self.answered_before_hangup(hold))
        {
            return None;
        }
        if let Some((_, start)) = hold.answer.digit {
            return Some(start.max(self.segments.last_resolved().unwrap_or(start)));
        }
        let with_words: Vec<&Segment> = self.answer_segments(hold).filter(|s| s.text().is_some()).collect();
        self.complete_at(&with_words)
    }

    /// Whether anything happens at the moment the answer turn is complete: a check to start, or a verdict to act on.
    /// A yes that was reported only waits for its grace, unless what was said since takes its effect away.
    pub(crate) fn answer_wants_turn(&self) -> bool {
        let Some(hold) = self.gate.heard() else { return false };
        let waits = hold.answer.reported && self.yes_stands(hold);
        if hold.answer.digit.is_some() {
            return !waits;
        }
        hold.answer.check.as_ref().is_none_or(|check| {
            let acts = check.answer.as_ref().is_some_and(|answer| *answer != YES || !waits);
            acts || !covers(check, &self.answer_words(hold), &hold.language)
        })
    }

    /// Whether a yes to this hold may run as things stand: the question was the last thing heard before it, the caller
    /// has not asked to wait, and nothing was heard beside it that nobody can have said.
    fn yes_stands(&self, hold: &Hold) -> bool {
        !self.is_stale(hold) && hold.rounds.wait_since.is_none() && self.veto_beside(hold).is_none()
    }

    pub(crate) fn early_check_at(&self) -> Option<Time> {
        let quiet = self.policy.confirm.check_after_quiet?;
        let complete = self.answer_complete_at()?;
        let hold =
            self.gate.heard().filter(|hold| hold.answer.check.is_none() && hold.answer.digit.is_none())?;
        let last =
            self.answer_segments(hold).filter(|s| s.text().is_some()).filter_map(|s| s.offset).max()?;
        let resolved = self.answer_segments(hold).filter_map(|s| s.resolved_at).max()?;
        let at = (last + quiet).max(resolved);
        (at < complete).then_some(at)
    }

    /// One short call: the question, and the caller's words since.
    pub(crate) fn start_check(&mut self) {
        let Some(hold) = self.gate.heard() else { return };
        let words = self.answer_words(hold);
        self.ids.check += 1;
        let id = CheckId(self.ids.check);
        let request = CheckRequest {
            check: id,
            hold: hold.id,
            question: hold.question.clone(),
            words: words.clone(),
            language: hold.language.clone(),
            input: hold.input.json.clone(),
            sounded: self.sounded(hold),
            limit: self.policy.confirm.check_limit,
        };
        let check = Check { id, words, started: self.now, answer: None };
        if let Some(hold) = self.gate.open_mut() {
            hold.answer.check = Some(check);
            hold.answer.reported = false;
        }
        self.command(Command::Check(request));
    }

    pub(crate) fn check_limit_at(&self) -> Option<Time> {
        let check = self.gate.heard()?.answer.check.as_ref()?;
        check.answer.is_none().then(|| check.started + self.policy.confirm.check_limit)
    }

    pub(crate) fn on_check_limit(&mut self) {
        let answer = CheckAnswer::Failed { error: String::from("timeout") };
        if let Some(check) = self.gate.open_mut().and_then(|hold| hold.answer.check.as_mut()) {
            check.answer.get_or_insert(answer);
        }
    }

    pub(crate) fn on_checked(&mut self, id: CheckId, answer: CheckAnswer) {
        if self.gate.heard().is_none() {
            return;
        }
        if let Some(check) = self.gate.open_mut().and_then(|hold| hold.answer.check.as_mut())
            && check.id == id
        {
            check.answer.get_or_insert(answer);
        }
    }

    /// The check's answer, if it is about all words since the question; a check that is not is forgotten.
    fn usable_answer(&mut self) -> Option<(Check, CheckAnswer)> {
        let hold = self.gate.heard()?;
        if let Some((digit, _)) = hold.answer.digit {
            let check = Check { id: CheckId(0), words: digit.to_string(), started: self.now, answer: None };
            return Some((check, YES));
        }
        let check = hold.answer.check.clone()?;
        let words = self.answer_words(hold);
        if covers(&check, &words, &hold.language) {
            let answer = check.answer.clone()?;
            return Some((Check { words, ..check }, answer));
        }
        if let Some(hold) = self.gate.open_mut() {
            hold.answer.check = None;
        }
        None
    }

    fn apply(&mut self, check: Check, mut answer: CheckAnswer) {
        let yes = answer == YES;
        if let Some(veto) = self.gate.heard().filter(|_| yes).and_then(|hold| self.veto_beside(hold)) {
            answer = CheckAnswer::Vetoed { veto: veto.to_string() };
            // A yes that was reported while the music was still to come is taken back.
            if let Some(hold) = self.gate.open_mut() {
                hold.answer.reported = false;
            }
        }
        self.report_checked(&check, &answer);
        self.note_judged(&check, &answer);
        let Some(hold) = self.gate.heard() else { return };
        let stale = self.is_stale(hold);
        match answer {
            CheckAnswer::Verdict { verdict: Verdict::No } => self.decline(),
            // The caller asked to wait: what they say next brings the question back, and only then can it be answered.
            CheckAnswer::Verdict { verdict: Verdict::Yes } if hold.rounds.wait_since.is_some() => {
                self.take_answer();
                self.ask_again();
            }
            CheckAnswer::Verdict { verdict: Verdict::Yes } if stale => self.ask_stale(),
            CheckAnswer::Verdict { verdict: Verdict::Yes } => {
                if self.grace_over_at().is_some_and(|at| at <= self.now) {
                    self.on_grace_over();
                }
            }
            CheckAnswer::Verdict { verdict: Verdict::Unclear }
            | CheckAnswer::Vetoed { .. }
            | CheckAnswer::Failed { .. } => self.on_unclear(&check.words),
        }
    }

    fn report_checked(&mut self, check: &Check, answer: &CheckAnswer) {
        let Some(hold) = self.gate.heard().filter(|hold| !hold.answer.reported) else { return };
        let (verdict, veto, error) = match answer {
            CheckAnswer::Verdict { verdict } => (*verdict, None, None),
            CheckAnswer::Vetoed { veto } => (Verdict::Unclear, Some(veto.clone()), None),
            CheckAnswer::Failed { error } => (Verdict::Unclear, None, Some(error.clone())),
        };
        let onset = self.answer_onset(hold);
        let horizon = hold.asking.horizon().unwrap_or(onset);
        let report = Report::AnswerChecked {
            question: hold.id,
            words: check.words.clone(),
            onset_ms: Self::ms(onset),
            margin_ms: Self::margin_ms(onset, horizon),
            verdict,
            veto,
            error,
        };
        self.report(report);
        if let Some(hold) = self.gate.open_mut() {
            hold.answer.reported = true;
        }
    }

    /// The earliest moment at which the answer may have begun.
    pub(crate) fn answer_onset(&self, hold: &Hold) -> Time {
        let key = hold.answer.digit.map(|(_, start)| start);
        let spoken = || {
            let ids = &hold.answer.segments;
            self.segments.iter().filter(|s| ids.contains(&s.id)).map(|s| s.onset.earliest).min()
        };
        key.or_else(spoken).unwrap_or(self.now)
    }

    /// Whether the caller heard other agent speech after the question, before some part of the answer began. Asked
    /// when all is resolved, so that it does not depend on the order in which things were noticed.
    pub(crate) fn answered_after_speech(&self, hold: &Hold) -> bool {
        let Some(speech) = hold.asking.other_speech else { return false };
        let key = hold.answer.digit.is_some_and(|(_, start)| start > speech);
        let ids = &hold.answer.segments;
        let mut spoken = self.segments.iter().filter(|s| ids.contains(&s.id) && s.text().is_some());
        key || spoken.any(|s| s.onset.latest > speech)
    }

    fn is_stale(&self, hold: &Hold) -> bool {
        self.policy.confirm.adjacency == Adjacency::Strict && self.answered_after_speech(hold)
    }

    /// When a yes may run: not before the grace is over, nor while there is any sign of sound.
    pub(crate) fn grace_over_at(&self) -> Option<Time> {
        let hold = self.gate.heard().filter(|hold| !hold.reverifying)?;
        let complete = self.answer_complete_at()?;
        let said_yes = hold.answer.check.as_ref().is_some_and(|check| check.answer == Some(YES));
        if (!said_yes && hold.answer.digit.is_none()) || !self.yes_stands(hold) {
            return None;
        }
        if self.line.chat || self.line.hung_up.is_some() {
            return Some(complete);
        }
        let confirm = &self.policy.confirm;
        let quiet = if hold.terms.irreversible { confirm.quiet_irreversible } else { confirm.quiet };
        let sign = if self.line.frames { self.segmenter.last_sign } else { self.segments.last_offset() };
        let calm = sign.map_or(Time::ZERO, |sign| sign + quiet);
        let keyed = hold.answer.row.filter(|_| hold.answer.digit.is_some());
        let alone = keyed.map_or(Time::ZERO, |(last, _)| last + KEYS_IN_A_ROW);
        Some((complete + confirm.grace).max(calm).max(alone))
    }

    pub(crate) fn on_grace_over(&mut self) {
        if self.usable_answer().is_some() {
            self.commit_or_verify();
        }
    }

    fn decline(&mut self) {
        self.take_answer();
        // Nobody is there any more who declined it (row 33a).
        if self.line.hung_up.is_some() {
            self.close_hold(DropReason::Hangup);
            return;
        }
        self.close_hold(DropReason::Declined);
        self.want_step();
    }

    /// A yes to a question that was not the last thing heard (VC-57): it is said again, without a model step.
    fn ask_stale(&mut self) {
        self.take_answer();
        self.tell(String::from(
            "The caller said yes after other speech, so it does not count for the question; it is said again.",
        ));
        self.ask_again();
    }

    fn on_unclear(&mut self, words: &str) {
        if self.line.hung_up.is_some() {
            self.close_hold(DropReason::Hangup);
            return;
        }
        let (now, cap) = (self.now, self.policy.confirm.rounds);
        self.take_answer();
        let Some(hold) = self.gate.open_mut() else { return };
        if check::is_hold_word(&hold.language, words) {
            hold.rounds.wait_since = Some(now);
            self.tell(String::from(
                "The caller asked to wait. Nothing has been done; the question stays open.",
            ));
            return;
        }
        hold.rounds.wait_since = None;
        hold.rounds.unclear = hold.rounds.unclear.saturating_add(1);
        if hold.rounds.unclear >= cap {
            self.close_hold(DropReason::Unconfirmed);
            self.want_step();
            return;
        }
        hold.stage = Stage::Waiting;
        hold.generation = None;
        let name = hold.tool.name.clone();
        self.tell(format!(
            "The caller's answer to the question for {name} was neither yes nor no. Nothing has been done. Reply \
             briefly to what they said; the question itself is then said again by the system, do not ask it yourself."
        ));
        self.want_step();
    }

    /// The answer's words become part of the conversation and are used up.
    pub(crate) fn take_answer(&mut self) -> String {
        let Some(hold) = self.gate.heard() else { return String::new() };
        let ids = hold.answer.segments.clone();
        let onset = self.answer_onset(hold);
        let digit = hold.answer.digit;
        let mut text = self.take_words(&ids);
        if let Some((digit, _)) = digit {
            text = digit.to_string();
        }
        if !text.is_empty() {
            self.report(Report::CallerTurn { text: text.clone(), onset_ms: Self::ms(onset) });
            self.items.push(Item::Caller { text: text.clone() });
        }
        if let Some(hold) = self.gate.open_mut() {
            hold.answer = Answer::default();
        }
        self.turn.followups = 0;
        self.turn.apologies = 0;
        self.turn.steps = 0;
        self.turn.quiet_since = self.now;
        text
    }

    pub(crate) fn on_answer_key(&mut self, digit: char, start: Time) {
        let Some(hold) = self.gate.open() else { return };
        match (hold.stage, hold.asking.horizon()) {
            (Stage::Heard, Some(horizon)) if start >= horizon => {
                if let Some(hold) = self.gate.open_mut() {
                    hold.answer.press(digit, start);
                }
                if digit == '2' {
                    self.note_refusing_key(start, horizon);
                    self.items.push(Item::Caller { text: digit.to_string() });
                    self.decline();
                }
            }
            (Stage::Asking, _) | (Stage::Heard, _) if hold.asking.began.is_some_and(|q0| start > q0) => {
                let ignored = self.policy.confirm.question_barge_in == QuestionBargeIn::Ignore;
                if hold.stage == Stage::Asking && !hold.rounds.braked && !ignored {
                    self.close_hold(DropReason::BargeIn);
                    self.interrupt();
                    self.want_step();
                }
            }
            (Stage::Waiting | Stage::Asking | Stage::Heard | Stage::Committing, _) => {}
        }
    }

    // Hang-up (rows 33, 33a).

    /// The caller had finished an eligible answer when they hung up.
    pub(crate) fn answered_before_hangup(&self, hold: &Hold) -> bool {
        let Some(gone) = self.line.hung_up else { return false };
        if hold.answer.digit.is_some() {
            return true;
        }
        let mut ends = hold.answer.segments.iter().filter_map(|id| self.segments.get(*id)).peekable();
        ends.peek().is_some() && ends.all(|s| s.offset.is_some_and(|offset| offset <= gone))
    }

    pub(crate) fn hang_up_hold(&mut self) {
        let Some(hold) = self.gate.open() else { return };
        let answered = hold.stage == Stage::Heard && self.answered_before_hangup(hold);
        if !answered {
            self.close_hold(DropReason::Hangup);
        } else if self.policy.confirm.after_hangup == AfterHangup::Drop {
            self.close_hold_as(DropReason::Hangup, "answered_then_hung_up");
        } else {
            self.record_open("answered_then_hung_up");
        }
    }

    /// After a hang-up an answer without words closes the hold.
    fn end_answer_after_hangup(&mut self) {
        let Some(hold) = self.gate.heard().filter(|_| self.line.hung_up.is_some()) else { return };
        let settled = !self.segments.any_unresolved() && hold.answer.digit.is_none();
        if settled && self.answer_words(hold).is_empty() {
            self.close_hold(DropReason::Hangup);
        }
    }
}

/// Whether a check is about these words: the same, or with only a further affirmation behind them (row 22). A verdict
/// that was neither yes nor no does not stand for more words than it was given: "mm-hm" may be unclear and "mm-hm, yes"
/// is not, whenever the check happened to begin. A check that failed is not tried again (VC-52).
fn covers(check: &Check, words: &str, language: &str) -> bool {
    let decided = !check.answer.as_ref().is_some_and(is_undecided);
    words
        .strip_prefix(check.words.as_str())
        .map(str::trim)
        .is_some_and(|further| further.is_empty() || (decided && check::is_affirmation(language, further)))
}

fn is_undecided(answer: &CheckAnswer) -> bool {
    match answer {
        CheckAnswer::Verdict { verdict: Verdict::Yes | Verdict::No } | CheckAnswer::Failed { .. } => false,
        CheckAnswer::Verdict { verdict: Verdict::Unclear } | CheckAnswer::Vetoed { .. } => true,
    }
}
