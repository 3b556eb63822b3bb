//! Where does a decision flip? One scenario run again and again, with the caller's answer moved across the end of the
//! question.
//!
//! The scenario is run once without the answer, which gives the horizon H; what the caller does after the answer by the
//! same anchor (a hang-up 250 ms later) is left out too, and keeps its distance when the answer moves. Then the answer is put on the call clock at
//! H plus each offset in turn, and each run is asked two things: whether the words counted as the answer, and whether
//! the tool ran on them. A gate that is right has one flip, at H. Each flip is then closed in on, to the microsecond.

use std::time::Duration;

use sayback_core::{EvidenceClass, Time};
use serde_json::Value;

use crate::engines::Engines;
use crate::mouth::LineRule;
use crate::run::{CallRun, SoundError, run_scenario};
use crate::scenario::{Act, Anchor, AnchorEvent, Scenario, SpeechMode, Transport, When, numbers};

mod shown;

pub use shown::{sweep_json, write_sweep};

/// More runs than this are a slip of the keyboard.
const MOST_STEPS: i64 = 100_000;
/// Voice activity detection states an onset that may lie this long before the clip (audio mode).
const STATED_BEFORE: Duration = Duration::from_millis(400);
/// A clip may sound for this long behind its words' reckoned length (audio mode).
const SOUNDS_ON: Duration = Duration::from_millis(1_500);

/// What is to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepPlan {
    /// The line of the file at which the answer's entry stands; `None`: the first that answers a question.
    pub answer: Option<usize>,
    /// First offset from the horizon, in microseconds.
    pub from_micros: i64,
    /// Last offset.
    pub to_micros: i64,
    /// From one offset to the next.
    pub step: Duration,
}

impl Default for SweepPlan {
    fn default() -> Self {
        Self { answer: None, from_micros: -600_000, to_micros: 300_000, step: Duration::from_millis(10) }
    }
}

/// Why a scenario cannot be swept.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// No line of the caller's answers a question.
    #[error(
        "no [[caller]] entry answers a question\n  hint: add one with `text`, `dtmf` or `message` and `after = \
         \"question.heard + 400ms\"`, or name one with --answer LINE"
    )]
    NoAnswer,
    /// The line named is no answer.
    #[error(
        "line {line} is no [[caller]] entry that can answer\n  hint: name the line of one with `text`, `dtmf` or \
         `message`"
    )]
    NotAnAnswer {
        /// The line.
        line: usize,
    },
    /// No question was heard.
    #[error(
        "question {occurrence} is not heard to its end in this scenario, so there is nothing to answer\n  hint: run \
         `sayback replay` on it and see what becomes of the question"
    )]
    NoQuestion {
        /// Which one, from 1.
        occurrence: u32,
    },
    /// The range or the step cannot be used.
    #[error("{0}")]
    BadRange(String),
    /// A run failed.
    #[error(transparent)]
    Sound(#[from] SoundError),
}

/// What came of one onset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepStep {
    /// Onset minus the horizon, in microseconds.
    pub offset_micros: i64,
    /// The onset, on the call clock.
    pub onset: Time,
    /// The words were taken for the answer.
    pub counts: bool,
    /// The tool ran on them.
    pub runs: bool,
    /// What became of the question, in a word or two.
    pub outcome: String,
}

/// A change of the decision between two neighbouring onsets, as close as it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flip {
    /// The last offset with the old decision, in microseconds.
    pub before_micros: i64,
    /// The first with the new one.
    pub after_micros: i64,
    /// Whether words count from here on.
    pub counts: bool,
}

/// A sweep's findings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The kind of line.
    pub transport: Transport,
    /// How it was known what the caller heard.
    pub evidence: EvidenceClass,
    /// The question, word for word.
    pub question: String,
    /// What is moved.
    pub answer: String,
    /// The line of the file at which it stands.
    pub line: usize,
    /// The question's first sample.
    pub began: Time,
    /// Its end at the caller's ear, on the input clock: a sound made at that moment would be stamped with this. An
    /// interval where the file does not say how long the line is.
    pub ear_end: (Time, Time),
    /// The horizon.
    pub horizon: Time,
    /// Every onset that was tried, in order.
    pub steps: Vec<SweepStep>,
    /// Where the decision changes.
    pub flips: Vec<Flip>,
    /// The range that was looked at reaches across the horizon.
    pub across: bool,
}

impl Sweep {
    /// What is wrong, each in a sentence; nothing if the decision flips exactly once and nothing ran too early.
    pub fn faults(&self) -> Vec<String> {
        let ms = |micros: i64| micros as f64 / 1_000.0;
        let mut faults: Vec<String> = self
            .steps
            .iter()
            .filter(|step| (step.runs || step.counts) && step.onset < self.horizon)
            .map(|step| {
                let did = if step.runs { "ran" } else { "counted" };
                format!("an answer begun {} ms before the horizon {did}", -ms(step.offset_micros))
            })
            .collect();
        match self.flips.len() {
            0 if self.across => faults.push("the decision never flips: no onset counts".to_owned()),
            0 | 1 => {}
            more => faults.push(format!("the decision flips {more} times")),
        }
        faults
    }
}

/// An offset as people write it: `-600ms`, `+0.3s`, `0`. `None` if it is none.
pub fn parse_offset(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, span) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if span.trim() == "0" {
        return Some(0);
    }
    let micros = i64::try_from(numbers::duration(span)?.as_micros()).ok()?;
    Some(sign * micros)
}

/// Moves the answer across the end of its question.
///
/// # Errors
/// The scenario has no question or no answer to it, the plan is no range, or a run on sound fails.
pub fn sweep(
    scenario: &Scenario,
    mode: SpeechMode,
    engines: &Engines,
    plan: &SweepPlan,
) -> Result<Sweep, SweepError> {
    check_range(plan)?;
    let (index, occurrence) = find_answer(scenario, mode, engines, plan.answer)?;
    let followers = followers(scenario, index);
    let asked = Asked::find(scenario, mode, engines, (index, &followers, occurrence))?;
    let horizon = asked.horizon;
    let mut trial = Trial { scenario: scenario.clone(), index, followers, mode, engines, horizon };
    let step = i64::try_from(plan.step.as_micros()).unwrap_or(i64::MAX);
    let mut steps = Vec::new();
    let mut offset = plan.from_micros;
    while offset <= plan.to_micros {
        steps.extend(trial.run(offset)?);
        offset = offset.saturating_add(step);
    }
    let mut flips = Vec::new();
    for (old, new) in steps.iter().zip(steps.iter().skip(1)).filter(|(old, new)| old.counts != new.counts) {
        flips.push(trial.close_in(old.offset_micros, new)?);
    }
    let rule = LineRule::of(&scenario.line, engines.assumed_loop);
    let left = asked.horizon - rule.delay.at_most;
    let ear_end = match rule.whole {
        Some(whole) => (left + whole, left + whole),
        None => (left + rule.delay.at_least, asked.horizon),
    };
    Ok(Sweep {
        transport: scenario.line.transport,
        evidence: asked.evidence.unwrap_or(rule.evidence),
        question: asked.text,
        answer: said(&trial.scenario.callers[index].act),
        line: trial.scenario.callers[index].line,
        began: asked.began,
        ear_end,
        horizon: asked.horizon,
        across: steps
            .first()
            .zip(steps.last())
            .is_some_and(|(a, b)| a.offset_micros < 0 && b.offset_micros >= 0),
        steps,
        flips,
    })
}

fn check_range(plan: &SweepPlan) -> Result<(), SweepError> {
    let step = i64::try_from(plan.step.as_micros()).unwrap_or(i64::MAX);
    if step == 0 {
        return Err(SweepError::BadRange("a step of nothing leads nowhere\n  hint: --step 10ms".to_owned()));
    }
    if plan.from_micros >= plan.to_micros {
        let message =
            "the range has no length\n  hint: --from lies before --to, as in --from -600ms --to 300ms";
        return Err(SweepError::BadRange(message.to_owned()));
    }
    let steps = plan.to_micros.saturating_sub(plan.from_micros) / step;
    if steps > MOST_STEPS {
        return Err(SweepError::BadRange(format!(
            "that would be {steps} runs, and {MOST_STEPS} are the most\n  hint: take a larger --step or a shorter \
             range; a flip is closed in on to the microsecond anyway"
        )));
    }
    Ok(())
}

fn can_answer(act: &Act) -> bool {
    match act {
        Act::Speech(speech) => !speech.echo,
        Act::Digit(_) | Act::Message(_) => true,
        Act::Noise { .. } | Act::HangUp | Act::Hold(_) | Act::Rewind(_) | Act::Reopen => false,
    }
}

fn said(act: &Act) -> String {
    match act {
        Act::Speech(speech) => speech.text.clone(),
        Act::Digit(digit) => format!("key {digit}"),
        Act::Message(text) => text.clone(),
        Act::Noise { .. } | Act::HangUp | Act::Hold(_) | Act::Rewind(_) | Act::Reopen => String::new(),
    }
}

/// Which entry is the answer, and which question it answers.
fn find_answer(
    scenario: &Scenario,
    mode: SpeechMode,
    engines: &Engines,
    line: Option<usize>,
) -> Result<(usize, u32), SweepError> {
    let anchored = |when: When| match when {
        When::After(Anchor {
            event: AnchorEvent::QuestionHeard | AnchorEvent::QuestionStarted,
            occurrence,
            ..
        }) => Some(occurrence),
        When::After(_) | When::At(_) => None,
    };
    let answers = || scenario.callers.iter().enumerate().filter(|(_, caller)| can_answer(&caller.act));
    if let Some(line) = line {
        // The line may be any of the entry's own.
        let entry = scenario.callers.iter().map(|caller| caller.line).filter(|at| *at <= line).max();
        let found = answers().find(|(_, caller)| Some(caller.line) == entry);
        let (index, caller) = found.ok_or(SweepError::NotAnAnswer { line })?;
        return Ok((index, anchored(caller.when).unwrap_or(1)));
    }
    if let Some(found) = answers().find_map(|(index, caller)| Some((index, anchored(caller.when)?))) {
        return Ok(found);
    }
    // Entries at a time of their own: the first that comes once the question sounds.
    let run = run_scenario(scenario, mode, engines)?;
    let began = event_time(&run, "question.started", 1).ok_or(SweepError::NoAnswer)?;
    let late = |when: When| matches!(when, When::At(at) if at >= began);
    answers().find(|(_, caller)| late(caller.when)).map(|(index, _)| (index, 1)).ok_or(SweepError::NoAnswer)
}

/// What the caller does after the answer by the same anchor: entry and distance.
fn followers(scenario: &Scenario, answer: usize) -> Vec<(usize, Duration)> {
    let Some(first) = scenario.callers.get(answer).map(|caller| caller.when) else { return Vec::new() };
    let distance = |when: When| match (first, when) {
        (When::At(first), When::At(at)) if at >= first => Some(at.since(first)),
        (When::After(first), When::After(other))
            if (first.event, first.occurrence) == (other.event, other.occurrence)
                && other.offset_micros >= first.offset_micros =>
        {
            Some(Duration::from_micros(other.offset_micros.abs_diff(first.offset_micros)))
        }
        (When::At(_) | When::After(_), When::At(_) | When::After(_)) => None,
    };
    let others = scenario.callers.iter().enumerate().filter(|(index, _)| *index != answer);
    others.filter_map(|(index, caller)| Some((index, distance(caller.when)?))).collect()
}

fn named<'a>(run: &'a CallRun, name: &'static str) -> impl Iterator<Item = &'a Value> {
    run.events.iter().filter(move |line| line["event"] == name)
}

fn micros(value: &Value) -> Option<Time> {
    value.as_f64().map(|ms| Time::from_micros((ms * 1_000.0).round() as u64))
}

fn event_time(run: &CallRun, name: &'static str, occurrence: u32) -> Option<Time> {
    let nth = usize::try_from(occurrence).ok()?.checked_sub(1)?;
    named(run, name).nth(nth).and_then(|line| micros(&line["t_ms"]))
}

/// The question without its answer.
struct Asked {
    text: String,
    began: Time,
    horizon: Time,
    evidence: Option<EvidenceClass>,
}

impl Asked {
    fn find(
        scenario: &Scenario,
        mode: SpeechMode,
        engines: &Engines,
        (index, followers, occurrence): (usize, &[(usize, Duration)], u32),
    ) -> Result<Self, SweepError> {
        let mut unanswered = scenario.clone();
        let kept = scenario.callers.iter().enumerate();
        let kept = kept.filter(|(at, _)| *at != index && followers.iter().all(|(other, _)| other != at));
        unanswered.callers = kept.map(|(_, caller)| caller.clone()).collect();
        let run = run_scenario(&unanswered, mode, engines)?;
        let none = SweepError::NoQuestion { occurrence };
        let nth = usize::try_from(occurrence).unwrap_or(usize::MAX).saturating_sub(1);
        let Some(heard) = named(&run, "question.heard").nth(nth) else { return Err(none) };
        let Some(horizon) = micros(&heard["latest_ms"]) else { return Err(none) };
        // The last start before it: an earlier one may have been dropped.
        let Some((began, text)) = named(&run, "question.started")
            .filter_map(|line| Some((micros(&line["t_ms"])?, line["text"].as_str()?)))
            .take_while(|(at, _)| *at <= horizon)
            .last()
        else {
            return Err(none);
        };
        let evidence = serde_json::from_value(heard["evidence"].clone()).ok();
        Ok(Self { text: text.to_owned(), began, horizon, evidence })
    }
}

/// The scenario with its answer at any onset.
struct Trial<'a> {
    scenario: Scenario,
    index: usize,
    followers: Vec<(usize, Duration)>,
    mode: SpeechMode,
    engines: &'a Engines,
    horizon: Time,
}

impl Trial<'_> {
    /// Nothing if the onset would lie before the call.
    fn run(&mut self, offset_micros: i64) -> Result<Option<SweepStep>, SweepError> {
        let at = i64::try_from(self.horizon.as_micros()).unwrap_or(i64::MAX).saturating_add(offset_micros);
        let Ok(onset) = u64::try_from(at).map(Time::from_micros) else { return Ok(None) };
        self.scenario.callers[self.index].when = When::At(onset);
        for (index, distance) in &self.followers {
            self.scenario.callers[*index].when = When::At(onset + *distance);
        }
        let run = run_scenario(&self.scenario, self.mode, self.engines)?;
        let (from, to) = self.sounds(onset);
        let ours = |at: Time| from <= at && at <= to;
        let checked =
            named(&run, "answer.checked").filter(|line| micros(&line["onset_ms"]).is_some_and(ours));
        let checked: Vec<&Value> = checked.collect();
        let runs = run.records.iter().any(|record| {
            record.outcome == "committed" && record.answer_onset.is_some_and(|(at, _)| ours(at))
        });
        let end =
            named(&run, "question.dropped").find(|line| micros(&line["t_ms"]).is_some_and(|at| at >= from));
        let reason = end.and_then(|line| line["reason"].as_str());
        // A key that says no closes the question without a check.
        let key = matches!(self.scenario.callers[self.index].act, Act::Digit(_));
        let counts = runs || !checked.is_empty() || (key && reason == Some("declined"));
        let outcome = match (runs, checked.first(), reason) {
            (true, ..) => "the tool runs".to_owned(),
            (false, Some(line), _) => format!("answered: {}", line["verdict"].as_str().unwrap_or("unclear")),
            (false, None, Some(reason)) => format!("dropped: {reason}"),
            (false, None, None) => "no answer".to_owned(),
        };
        Ok(Some(SweepStep { offset_micros, onset, counts, runs, outcome }))
    }

    /// The stretch in which the answer's stated onset lies.
    fn sounds(&self, onset: Time) -> (Time, Time) {
        let length = match &self.scenario.callers[self.index].act {
            Act::Speech(speech) => speech.length,
            Act::Digit(_)
            | Act::Message(_)
            | Act::Noise { .. }
            | Act::HangUp
            | Act::Hold(_)
            | Act::Rewind(_)
            | Act::Reopen => Duration::ZERO,
        };
        match self.mode {
            SpeechMode::Text => (onset, onset + length),
            SpeechMode::Audio => (onset - STATED_BEFORE, onset + length + SOUNDS_ON),
        }
    }

    /// Halves the stretch in which the decision changes until a microsecond is left. On sound the stated onset moves in
    /// steps of its own, and each run takes long: there the stretch stays as it is.
    fn close_in(&mut self, mut before: i64, new: &SweepStep) -> Result<Flip, SweepError> {
        let mut after = new.offset_micros;
        while self.mode == SpeechMode::Text && after - before > 1 {
            let middle = before + (after - before) / 2;
            match self.run(middle)? {
                Some(step) if step.counts == new.counts => after = middle,
                Some(_) | None => before = middle,
            }
        }
        Ok(Flip { before_micros: before, after_micros: after, counts: new.counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_has_a_sign_and_a_unit() {
        assert_eq!(parse_offset("-600ms"), Some(-600_000));
        assert_eq!(parse_offset("+0.3s"), Some(300_000));
        assert_eq!(parse_offset("300ms"), Some(300_000));
        assert_eq!(parse_offset("0"), Some(0));
        for wrong in ["", "-", "600", "--6ms", "- -6ms", "6 elephants", "+-6ms"] {
            assert_eq!(parse_offset(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_range_without_length_or_with_too_many_steps_is_refused() {
        let plan = SweepPlan::default();
        assert!(check_range(&plan).is_ok());
        for wrong in [
            SweepPlan { step: Duration::ZERO, ..plan },
            SweepPlan { from_micros: 300_000, ..plan },
            SweepPlan { from_micros: i64::MIN, to_micros: i64::MAX, ..plan },
            SweepPlan { step: Duration::from_micros(1), ..plan },
        ] {
            assert!(matches!(check_range(&wrong), Err(SweepError::BadRange(_))), "{wrong:?}");
        }
    }
}
