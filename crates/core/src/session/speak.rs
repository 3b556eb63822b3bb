//! The agent's side: handing over speech, pausing it, cutting it, and what of it was heard.

use alloc::string::{String, ToString};
use core::time::Duration;

use crate::command::{Command, DropReason, Report, Speak, UtteranceKind};
use crate::context::Item;
use crate::event::{EvidenceClass, PlayoutFailure};
use crate::ids::{GenerationId, UtteranceId};
use crate::playout::{Sound, Utterance, heard_prefix};
use crate::session::Session;
use crate::session::gate::Stage;
use crate::time::{Interval, LoopDelay, Time};

/// Word that an utterance was played may come this late; then it counts as not heard.
const PLAYOUT_LIMIT: Duration = Duration::from_secs(5);

impl Session {
    /// Hands text to the voice, behind whatever is queued.
    pub(crate) fn speak(
        &mut self,
        text: String,
        language: String,
        kind: UtteranceKind,
        generation: Option<GenerationId>,
    ) -> UtteranceId {
        self.ids.utterance += 1;
        let id = UtteranceId(self.ids.utterance);
        self.mouth.add(Utterance {
            id,
            text: text.clone(),
            kind,
            generation,
            sound: Sound::Queued,
            audible_to: None,
            paused: Duration::ZERO,
            item: None,
        });
        self.report(Report::AgentSaid { utterance: id, text: text.clone() });
        self.command(Command::Speak(Speak { utterance: id, text, language, kind }));
        id
    }

    /// Ordinary speech.
    pub(crate) fn say(&mut self, text: String, language: String, generation: Option<GenerationId>) {
        if text.trim().is_empty() || self.line.hung_up.is_some() || self.line.ended {
            return;
        }
        let id = self.speak(text, language, UtteranceKind::Speech, generation);
        self.settle_chat(id);
    }

    /// Speech of the runtime's own: greeting, follow-up, apology.
    pub(crate) fn say_own(&mut self, text: String) {
        let language = self.line.language.clone();
        self.say(text, language, None);
    }

    /// In chat what is emitted is heard at that instant (VC-25).
    pub(crate) fn settle_chat(&mut self, id: UtteranceId) {
        if self.line.chat {
            let now = self.now;
            self.on_started(id, now);
            self.on_finished(id, now, (LoopDelay::default(), EvidenceClass::Virtual), Duration::ZERO);
        }
    }

    pub(crate) fn on_started(&mut self, id: UtteranceId, at: Time) {
        let Some(utterance) = self.mouth.get_mut(id).filter(|u| u.sound == Sound::Queued) else { return };
        utterance.sound = Sound::Sounding(at);
        utterance.item = Some(self.items.len());
        let (text, kind) = (utterance.text.clone(), utterance.kind);
        self.items.push(Item::Agent { text, complete: false });
        self.report(Report::AgentStarted { utterance: id });
        if self.gate.open().is_some_and(|hold| hold.asking.utterance == Some(id)) {
            self.on_question_started(at);
        } else if kind == UtteranceKind::Speech {
            self.note_other_speech(at);
        }
    }

    /// Agent speech that sounds behind the question makes a yes that begins later stale (VC-57). Also while the end
    /// of the question is still on its way to the ear: the caller hears the speech last.
    fn note_other_speech(&mut self, at: Time) {
        if let Some(hold) = self.gate.open_mut().filter(|hold| hold.stage != Stage::Waiting)
            && hold.asking.began.is_some_and(|began| at >= began)
        {
            let first = hold.asking.other_speech.map_or(at, |first| first.min(at));
            hold.asking.other_speech = Some(first);
        }
    }

    pub(crate) fn on_finished(
        &mut self,
        id: UtteranceId,
        last_audible: Time,
        how: (LoopDelay, EvidenceClass),
        lost: Duration,
    ) {
        let Some(utterance) = self.mouth.get_mut(id) else { return };
        let Sound::Sounding(began) = utterance.sound else { return };
        let last_audible = last_audible.max(began);
        let end = Interval::new(last_audible + how.0.at_least, last_audible + how.0.at_most);
        utterance.sound = Sound::Leaving(began, end, how.1);
        if self.gate.open().is_some_and(|hold| hold.asking.utterance == Some(id)) {
            self.on_question_finished(last_audible, how, lost);
        }
    }

    pub(crate) fn on_heard_due(&mut self) {
        let Some((_, id)) = self.mouth.next_heard() else { return };
        let Some(utterance) = self.mouth.get_mut(id) else { return };
        let Sound::Leaving(began, end, evidence) = utterance.sound else { return };
        utterance.sound = Sound::Heard(began, end);
        let (text, item) = (utterance.text.clone(), utterance.item);
        self.mouth.last_over = self.mouth.last_over.max(Some(end.latest));
        self.set_heard(item, &text, true);
        self.report(Report::AgentHeard {
            utterance: id,
            text,
            complete: true,
            earliest_ms: Self::ms(end.earliest),
            latest_ms: Self::ms(end.latest),
            evidence,
        });
    }

    fn set_heard(&mut self, item: Option<usize>, heard: &str, whole: bool) {
        if let Some(Item::Agent { text, complete }) = item.and_then(|at| self.items.get_mut(at)) {
            *text = heard.to_string();
            *complete = whole;
        }
    }

    /// Throws away all that has not left; a pause is over with it.
    pub(crate) fn silence_mouth(&mut self) {
        let mut any = false;
        let now = self.now;
        for id in self.mouth.active_ids() {
            let Some(utterance) = self.mouth.get_mut(id) else { continue };
            match utterance.sound {
                Sound::Queued => utterance.sound = Sound::Cut(None, now),
                Sound::Sounding(began) => utterance.sound = Sound::Cut(Some(began), now),
                Sound::Leaving(..) | Sound::Heard(..) | Sound::Cut(..) => continue,
            }
            any = true;
        }
        if any {
            self.mouth.last_over = self.mouth.last_over.max(Some(now));
            self.command(Command::Clear);
        }
        if any || self.mouth.paused.is_some() {
            self.mouth.paused = None;
        }
    }

    pub(crate) fn on_cleared(
        &mut self,
        id: UtteranceId,
        played: Duration,
        from: Duration,
        to: Option<Duration>,
    ) {
        let now = self.now;
        let Some(utterance) = self.mouth.get_mut(id) else { return };
        let Sound::Cut(Some(began), at) = utterance.sound else { return };
        let heard = heard_prefix(&utterance.text, played, from, to.or(utterance.audible_to)).to_string();
        // Reported once; that it sounded from `began` to `at` is kept.
        utterance.sound = Sound::Heard(began, Interval::exact(at));
        let item = utterance.item;
        self.set_heard(item, &heard, false);
        self.report(Report::AgentHeard {
            utterance: id,
            text: heard,
            complete: false,
            earliest_ms: Self::ms(at),
            latest_ms: Self::ms(now),
            evidence: EvidenceClass::Assumed,
        });
    }

    pub(crate) fn on_failed(&mut self, id: UtteranceId, failure: PlayoutFailure, played: Duration) {
        let now = self.now;
        let Some(utterance) = self.mouth.get_mut(id).filter(|u| u.active()) else { return };
        let began = utterance.began();
        utterance.sound = Sound::Cut(began, now);
        let heard = heard_prefix(&utterance.text, played, Duration::ZERO, utterance.audible_to).to_string();
        let item = utterance.item;
        self.set_heard(item, &heard, false);
        self.mouth.last_over = self.mouth.last_over.max(Some(now));
        if self.gate.open().is_some_and(|hold| hold.asking.utterance == Some(id)) {
            self.drop_unheard(match failure {
                PlayoutFailure::TtsFailed | PlayoutFailure::NoSamples => DropReason::TtsFailed,
                PlayoutFailure::DeviceLost | PlayoutFailure::NotPlayed => DropReason::NotPlayed,
            });
        }
    }

    /// When an utterance that sounds is given up on: nobody has said that it was played, and it should have been.
    pub(crate) fn playout_limit_at(&self) -> Option<(Time, UtteranceId)> {
        if self.mouth.paused.is_some() {
            return None;
        }
        self.mouth.overdue_from().map(|(at, id)| (at + PLAYOUT_LIMIT, id))
    }

    /// Unknown means not heard.
    pub(crate) fn on_playout_limit(&mut self) {
        if let Some((_, id)) = self.playout_limit_at() {
            self.on_failed(id, PlayoutFailure::NotPlayed, Duration::ZERO);
        }
    }

    /// The caller took the floor: what is being said or thought is no longer wanted.
    pub(crate) fn interrupt(&mut self) {
        self.cancel_step();
        self.silence_mouth();
        self.line.ending = None;
        self.line.transfer = None;
    }

    /// Words while no question is open.
    pub(crate) fn interrupt_for_words(&mut self) {
        if self.line.chat {
            return;
        }
        if self.mouth.active() || self.step.is_some() {
            self.interrupt();
        }
    }

    /// An answer began while other agent speech sounds (a follow-up): that is cut, the question stays.
    pub(crate) fn interrupt_other_speech(&mut self) {
        if self.mouth.active() && self.gate.heard().is_some() {
            self.silence_mouth();
        }
    }

    /// Nothing is left to resume: the pause is over.
    pub(crate) fn settle_speech(&mut self) {
        if self.mouth.paused.is_some() && !self.mouth.active() {
            self.mouth.paused = None;
            self.command(Command::Resume);
            self.report(Report::AgentResumed {});
        }
    }

    /// A false interruption: the agent goes on; a question with too long a gap in it starts again.
    pub(crate) fn resume_mouth(&mut self) {
        let Some(pause) = self.mouth.paused.take() else { return };
        self.mouth.add_pause(pause.since, self.now);
        self.mouth.spoken_through = Some(pause.segment);
        self.command(Command::Resume);
        self.report(Report::AgentResumed {});
        let asking = self.gate.open().filter(|hold| hold.stage == Stage::Asking);
        let began =
            asking.and_then(|hold| hold.asking.began.map(|began| hold.asking.cut.map_or(began, |c| c.0)));
        // A pause asked for before the question sounded leaves no gap in it.
        let gap = |began: Time| self.now.since(pause.since.max(began));
        if let Some(began) = began.filter(|began| gap(*began) > self.policy.confirm.max_gap) {
            let cut = (began, self.now);
            self.silence_mouth();
            self.ask_again();
            if let Some(hold) = self.gate.open_mut() {
                hold.asking.cut = Some(cut);
            }
        }
    }
}
