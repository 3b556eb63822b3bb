//! The caller's side: segments, words, and what they mean where they fall.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use crate::check;
use crate::command::{Command, DropReason, Report};
use crate::context::Item;
use crate::event::{Transcript, VoiceFrame};
use crate::ids::SegmentId;
use crate::playout::Pause;
use crate::policy::{NearEnd, QuestionBargeIn};
use crate::segment::{Cut, Segment, Words};
use crate::session::Session;
use crate::session::gate::{Hold, Stage};
use crate::time::{Interval, Time};

/// Where a segment lies relative to the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It overlaps the held step's own sentences, before the question.
    OverStep,
    /// It was over before the question sounded, or fell in silence before it.
    Before,
    /// It overlaps the question, or may.
    Inside,
    /// It began behind the horizon for sure.
    Behind,
    /// The question's end is not known yet, and the segment may lie behind it.
    Unknown,
}

impl Session {
    pub(crate) fn on_frame(&mut self, frame: &VoiceFrame) {
        self.line.frames = true;
        match self.segmenter.frame(frame) {
            Some(Cut::Started(onset)) => {
                self.ids.segment += 1;
                self.on_speech_started(SegmentId(self.ids.segment), onset);
            }
            Some(Cut::Ended(offset)) => {
                if let Some(id) = self.segments.sounding().map(|segment| segment.id) {
                    self.on_speech_ended(id, offset);
                }
            }
            None => {}
        }
    }

    pub(crate) fn on_speech_started(&mut self, id: SegmentId, onset: Interval) {
        if self.segments.get(id).is_some() || self.line.hung_up.is_some() {
            return;
        }
        self.ids.segment = self.ids.segment.max(id.0);
        self.segments.add(Segment::new(id, onset));
        self.command(Command::OpenSegment { segment: id, onset });
    }

    pub(crate) fn on_speech_ended(&mut self, id: SegmentId, offset: Time) {
        let now = self.now;
        let Some(segment) = self.segments.get_mut(id).filter(|s| s.offset.is_none()) else { return };
        let offset = offset.max(segment.onset.earliest);
        segment.offset = Some(offset);
        segment.closed_at = Some(now);
        let onset = segment.onset;
        self.report(Report::CallerSpeech {
            segment: id,
            onset_earliest_ms: Self::ms(onset.earliest),
            onset_ms: Self::ms(onset.latest),
            offset_ms: Self::ms(offset),
        });
        self.command(Command::CloseSegment { segment: id, offset });
        self.command(Command::JudgeEnd { segment: id });
    }

    pub(crate) fn on_echo(&mut self, id: SegmentId) {
        let now = self.now;
        let Some(segment) = self.segments.get_mut(id) else { return };
        segment.echo = true;
        segment.taken = true;
        segment.resolved_at.get_or_insert(now);
        self.after_resolution(id);
    }

    pub(crate) fn on_partial(&mut self, id: SegmentId, text: &str) {
        let Some(segment) = self.segments.get_mut(id).filter(|s| s.unresolved()) else { return };
        segment.partial |= !text.trim().is_empty();
        let (onset, end) = (segment.onset, self.now);
        self.report_words(id, text, (onset.latest, end), false, (None, None));
    }

    pub(crate) fn on_end_of_turn(&mut self, id: SegmentId, percent: u8) {
        if let Some(segment) = self.segments.get_mut(id) {
            segment.ended_percent = Some(percent);
        }
    }

    pub(crate) fn on_transcript(&mut self, transcript: Transcript) {
        let mut covered = self.covered(&transcript);
        covered.sort_by_key(|id| self.segments.get(*id).map(|segment| segment.onset.earliest));
        let Some(&first) = covered.first() else { return };
        let words = transcript.text.trim();
        let real = transcript.phantom.is_none() && !words.is_empty();
        let (from, to) = self.span_of(&covered);
        let confidence = transcript.confidence.map(|percent| f64::from(percent) / 100.0);
        self.report_words(first, words, (from, to), true, (confidence, transcript.phantom.clone()));
        // One final over several segments: its words belong to the first, so that any part of it before the
        // question's end keeps all of it from being an answer (VC-38).
        for (index, id) in covered.iter().enumerate() {
            let text = if real && index == 0 { Words::Text(words.to_string()) } else { Words::None };
            self.resolve(*id, text);
            if let Some(segment) = self.segments.get_mut(*id) {
                segment.confidence = transcript.confidence;
                segment.phantom = transcript.phantom.is_some() && !words.is_empty();
            }
        }
        // They reach to the last end of any of them: the segment that began last need not be the one that ended last.
        let offset = covered.iter().filter_map(|id| self.segments.get(*id)?.offset).max();
        if let Some(segment) = self.segments.get_mut(first) {
            segment.offset = offset;
        }
        for id in covered {
            self.after_resolution(id);
        }
    }

    fn covered(&self, transcript: &Transcript) -> Vec<SegmentId> {
        let unresolved = |s: &&Segment| s.words == Words::Awaited && !s.echo;
        if !transcript.segments.is_empty() {
            let named = |s: &&Segment| transcript.segments.contains(&s.id);
            return self.segments.iter().filter(named).filter(unresolved).map(|s| s.id).collect();
        }
        // A sound without length lies where it began.
        let inside = |s: &&Segment| {
            transcript.span.is_none_or(|(from, to)| {
                let onset = s.onset.earliest;
                onset < to && s.offset.is_none_or(|offset| offset > from || onset >= from)
            })
        };
        self.segments.iter().filter(unresolved).filter(inside).map(|s| s.id).collect()
    }

    fn span_of(&self, covered: &[SegmentId]) -> (Time, Time) {
        let all = || covered.iter().filter_map(|id| self.segments.get(*id));
        let from = all().map(|s| s.onset.latest).min().unwrap_or(self.now);
        let to = all().map(|s| s.offset.unwrap_or(self.now)).max().unwrap_or(self.now);
        (from, to)
    }

    fn report_words(
        &mut self,
        segment: SegmentId,
        text: &str,
        (onset, offset): (Time, Time),
        is_final: bool,
        (confidence, ignored): (Option<f64>, Option<String>),
    ) {
        self.report(Report::CallerWords {
            segment,
            text: text.to_string(),
            onset_ms: Self::ms(onset),
            offset_ms: Self::ms(offset),
            is_final,
            confidence,
            ignored,
        });
    }

    fn resolve(&mut self, id: SegmentId, words: Words) {
        let now = self.now;
        if let Some(segment) = self.segments.get_mut(id) {
            // A final for a segment that still sounds ends it: whatever follows is another segment.
            segment.offset.get_or_insert(now);
            segment.words = words;
            segment.resolved_at = Some(now);
        }
    }

    pub(crate) fn transcript_limit_at(&self) -> Option<(Time, SegmentId)> {
        let limit = self.policy.turn.transcript_limit;
        self.segments
            .iter()
            .filter(|s| s.words == Words::Awaited && !s.echo)
            .filter_map(|s| s.closed_at.map(|at| (at + limit, s.id)))
            .min()
    }

    pub(crate) fn on_transcript_limit(&mut self) {
        let Some((_, id)) = self.transcript_limit_at() else { return };
        // Where nothing is known, nothing is accepted: it may have had words.
        self.resolve(id, Words::Unknown);
        let (from, to) = self.span_of(&[id]);
        self.report_words(id, "", (from, to), true, (None, Some(String::from("timeout"))));
        self.after_resolution(id);
    }

    /// What a segment means, now that its words are known.
    fn after_resolution(&mut self, id: SegmentId) {
        let Some(segment) = self.segments.get(id).cloned() else { return };
        if !segment.may_have_words() {
            if let Some(segment) = self.segments.get_mut(id) {
                segment.taken = true;
            }
            // A cough is no answer: the question is as open as before (row 21).
            if let Some(hold) = self.gate.open_mut() {
                hold.answer.segments.retain(|segment| *segment != id);
            }
            self.resume_after(id);
            return;
        }
        match self.gate.open().map(|hold| self.place(hold, &segment)) {
            None => self.interrupt_for_words(),
            Some(Place::OverStep) => {
                self.close_hold(DropReason::Cancelled);
                self.interrupt();
            }
            Some(Place::Before) => self.take_as_context(id),
            Some(Place::Inside) => self.on_words_inside(&segment),
            Some(Place::Behind | Place::Unknown) => {
                self.interrupt_other_speech();
            }
        }
        self.drop_unknown(id);
    }

    /// A segment that may have had words but gave none cannot become a turn. As part of an answer it stays: what it
    /// may have said counts (see `settle_answer`).
    fn drop_unknown(&mut self, id: SegmentId) {
        let Some(segment) = self.segments.get(id).filter(|segment| segment.words == Words::Unknown) else {
            return;
        };
        let place = self.gate.open().map(|hold| self.place(hold, segment));
        if matches!(place, Some(Place::Behind | Place::Unknown)) {
            return;
        }
        if let Some(segment) = self.segments.get_mut(id) {
            segment.taken = true;
        }
        self.apologise();
    }

    pub(crate) fn place(&self, hold: &Hold, segment: &Segment) -> Place {
        let over_cut = |(from, to): (Time, Time)| {
            segment.onset.earliest < to && segment.offset.is_none_or(|offset| offset > from)
        };
        if hold.asking.cut.is_some_and(over_cut) {
            return Place::Inside;
        }
        let Some(q0) = hold.asking.began.filter(|_| hold.stage != Stage::Waiting) else {
            let own = hold.generation;
            let over = own.is_some() && self.mouth.spoke_during(segment.onset.earliest, segment.offset, own);
            return if over { Place::OverStep } else { Place::Before };
        };
        let ended_before = segment.offset.is_some_and(|offset| offset <= q0);
        match hold.asking.horizon() {
            Some(horizon) if segment.onset.earliest >= horizon => Place::Behind,
            _ if ended_before => Place::Before,
            Some(_) => Place::Inside,
            None => {
                let question = hold.asking.utterance.and_then(|id| self.mouth.get(id));
                let end = question.and_then(crate::playout::Utterance::projected_end);
                let behind = end.is_some_and(|end| segment.onset.earliest >= end);
                if behind { Place::Unknown } else { Place::Inside }
            }
        }
    }

    fn on_words_inside(&mut self, segment: &Segment) {
        let Some(hold) = self.gate.open() else { return };
        let ignores = match self.policy.confirm.question_barge_in {
            QuestionBargeIn::Ignore => true,
            QuestionBargeIn::Drop => hold.rounds.braked,
            QuestionBargeIn::Continuers => hold.rounds.braked || self.is_lone_continuer(hold, segment),
        };
        if ignores {
            self.take_as_context(segment.id);
            if self.mouth.paused.is_some_and(|pause| pause.segment == segment.id) {
                self.resume_mouth();
            }
            return;
        }
        if self.is_near_end(hold, segment) {
            self.ask_near_end(segment.id);
            return;
        }
        self.close_hold(DropReason::BargeIn);
        self.interrupt();
    }

    fn is_lone_continuer(&self, hold: &Hold, segment: &Segment) -> bool {
        let text = segment.text().unwrap_or_default();
        let (Some(offset), Some(onset)) = (segment.offset, Some(segment.onset.latest)) else { return false };
        let quiet = offset + Duration::from_millis(300);
        let alone = !self
            .segments
            .iter()
            .any(|s| s.id != segment.id && s.onset.latest >= offset && s.onset.latest < quiet);
        offset.since(onset) <= Duration::from_millis(600)
            && alone
            && check::is_continuer(&hold.language, text)
    }

    fn is_near_end(&self, hold: &Hold, segment: &Segment) -> bool {
        let (NearEnd::Again, Some(horizon)) = (self.policy.confirm.near_end, hold.asking.horizon()) else {
            return false;
        };
        let near = segment.onset.earliest >= horizon - Duration::from_millis(300);
        let text = segment.text().unwrap_or_default();
        near && !hold.rounds.again && check::is_affirmation(&hold.language, text)
    }

    /// Words that are waiting input: kept for the model to read, never an answer.
    pub(crate) fn take_as_context(&mut self, id: SegmentId) {
        let Some(segment) = self.segments.get_mut(id) else { return };
        segment.taken = true;
        if let Words::Text(text) = &segment.words {
            let text = text.clone();
            self.items.push(Item::Caller { text });
        }
        if self.mouth.paused.is_some_and(|pause| pause.segment == id) {
            self.resume_mouth();
        }
    }

    /// Once the question's end is known: segments that could not be placed before.
    pub(crate) fn place_again(&mut self) {
        let waiting: Vec<SegmentId> = self
            .segments
            .iter()
            .filter(|s| !s.taken && !s.unresolved() && s.may_have_words())
            .map(|s| s.id)
            .collect();
        for id in waiting {
            let Some(segment) = self.segments.get(id).cloned() else { continue };
            match self.gate.open().map(|hold| self.place(hold, &segment)) {
                Some(Place::Inside) => self.on_words_inside(&segment),
                Some(Place::Before) => self.take_as_context(id),
                Some(Place::OverStep | Place::Behind | Place::Unknown) | None => {}
            }
        }
    }

    /// Segments with words that make up the caller's next ordinary turn.
    pub(crate) fn pending_turn(&self) -> Vec<&Segment> {
        let hold =
            self.gate.open().filter(|hold| hold.asking.began.is_some() && hold.stage != Stage::Waiting);
        self.segments
            .iter()
            .filter(|s| !s.taken && s.text().is_some())
            .filter(|s| hold.is_none_or(|h| !matches!(self.place(h, s), Place::Behind | Place::Unknown)))
            .collect()
    }

    pub(crate) fn turn_complete_at(&self) -> Option<Time> {
        if self.segments.any_unresolved() {
            return None;
        }
        if let Some(at) = self.answer_complete_at() {
            return self.answer_wants_turn().then_some(at);
        }
        if self.line.hung_up.is_some() {
            return None;
        }
        let pending = self.pending_turn();
        // Typed input waits for the agent to finish; spoken input takes the floor.
        let typing_waits = self.line.chat && (self.step.is_some() || self.turn.wanted);
        let busy = self.tools.running() || self.gate.committing() || self.line.ended || typing_waits;
        if pending.is_empty() || busy {
            return None;
        }
        self.complete_at(&pending)
    }

    /// When a turn of these segments is complete: quiet for long enough, and its last words final.
    pub(crate) fn complete_at(&self, segments: &[&Segment]) -> Option<Time> {
        let last = segments.iter().max_by_key(|s| s.offset)?;
        let resolved = segments.iter().filter_map(|s| s.resolved_at).max()?;
        if self.line.chat || self.line.hung_up.is_some() {
            return Some(resolved);
        }
        Some((last.offset? + self.endpoint(last)).max(resolved))
    }

    fn endpoint(&self, last: &Segment) -> Duration {
        let turn = &self.policy.turn;
        let text = last.text().unwrap_or_default();
        let sure = last.ended_percent.map_or(!turn.judged, |percent| percent >= turn.sure_percent);
        if check::is_trailing(&self.line.language, text) {
            turn.endpoint_trailing.max(turn.endpoint)
        } else if sure {
            turn.endpoint
        } else {
            turn.endpoint_unsure.max(turn.endpoint)
        }
    }

    pub(crate) fn on_turn_complete(&mut self) {
        if self.answer_complete_at().is_some() {
            if self
                .gate
                .heard()
                .is_some_and(|hold| hold.answer.check.is_none() && hold.answer.digit.is_none())
            {
                self.start_check();
            }
            return;
        }
        let ids: Vec<SegmentId> = self.pending_turn().iter().map(|s| s.id).collect();
        let Some(onset) = ids.first().and_then(|id| self.segments.get(*id)).map(|s| s.onset.latest) else {
            return;
        };
        let text = self.take_words(&ids);
        self.report(Report::CallerTurn { text: text.clone(), onset_ms: Self::ms(onset) });
        self.items.push(Item::Caller { text });
        self.turn.followups = 0;
        self.turn.apologies = 0;
        self.turn.steps = 0;
        self.turn.quiet_since = self.now;
        self.cancel_step();
        self.want_step();
    }

    /// The words of these segments, in the order in which they were spoken; they are used up.
    pub(crate) fn take_words(&mut self, ids: &[SegmentId]) -> String {
        let mut words = String::new();
        for segment in self.segments.iter_mut().filter(|s| ids.contains(&s.id)) {
            segment.taken = true;
            if let Words::Text(text) = &segment.words {
                if !words.is_empty() {
                    words.push(' ');
                }
                words.push_str(text);
            }
        }
        words
    }

    pub(crate) fn on_message(&mut self, text: String, received: Time) {
        let text = text.trim().to_string();
        if text.is_empty() || self.line.hung_up.is_some() {
            return;
        }
        self.ids.segment += 1;
        let id = SegmentId(self.ids.segment);
        let received = received.min(self.now);
        let mut segment = Segment::new(id, Interval::exact(received));
        segment.offset = Some(received);
        segment.closed_at = Some(self.now);
        segment.words = Words::Text(text.clone());
        segment.resolved_at = Some(self.now);
        self.segments.add(segment);
        self.report_words(id, &text, (received, received), true, (None, None));
        self.after_resolution(id);
    }

    pub(crate) fn on_digit(&mut self, digit: char, start: Time) {
        if self.line.hung_up.is_some_and(|gone| start > gone) {
            return;
        }
        self.report(Report::Dtmf { digit });
        if self.policy.confirm.keypad && self.gate.open().is_some() {
            self.on_answer_key(digit, start);
            return;
        }
        if self.gate.open().is_none() && self.line.hung_up.is_none() {
            self.items.push(Item::Told { text: format!("The caller pressed the key {digit}.") });
        }
    }

    // Barge-in: the pause is reversible, words decide.

    pub(crate) fn barge_in_at(&self) -> Option<Time> {
        if !self.mouth.active()
            || self.mouth.paused.is_some()
            || self.line.chat
            || self.line.hung_up.is_some()
        {
            return None;
        }
        if self.speech_before_question().is_some() {
            return Some(self.now);
        }
        let segment = self.segments.sounding()?;
        if self.mouth.spoken_through == Some(segment.id) {
            return None;
        }
        let threshold = self.barge_in_threshold(segment)?;
        if self.line.frames {
            return self.segmenter.interrupts(threshold).then_some(self.now);
        }
        Some(segment.onset.latest + threshold)
    }

    /// Caller sound over the sentences that lead up to the question, while it is not known whether it has words: the
    /// question does not begin before that, however short the sound was (row 6a).
    fn speech_before_question(&self) -> Option<SegmentId> {
        let hold = self.gate.open().filter(|hold| hold.asking.began.is_none())?;
        let own = Some(hold.generation?);
        let over = |s: &&Segment| s.unresolved() && self.mouth.spoke_during(s.onset.earliest, s.offset, own);
        self.segments.iter().find(over).map(|segment| segment.id)
    }

    /// How much voiced speech pauses what is being said; `None`: this speech does not.
    fn barge_in_threshold(&self, segment: &Segment) -> Option<Duration> {
        let confirm = &self.policy.confirm;
        let asking =
            self.gate.open().filter(|hold| hold.stage == Stage::Asking && hold.asking.began.is_some());
        let Some(hold) = asking else { return Some(self.policy.turn.barge_in) };
        if hold.rounds.braked || confirm.question_barge_in == QuestionBargeIn::Ignore {
            return None;
        }
        let question = hold.asking.utterance.and_then(|id| self.mouth.get(id));
        let end = question.and_then(crate::playout::Utterance::projected_end);
        let near_end = end.is_some_and(|end| segment.onset.latest + confirm.no_pause_before_end >= end);
        (!near_end).then_some(confirm.barge_in)
    }

    pub(crate) fn on_barge_in(&mut self) {
        let sounding = || self.segments.sounding().map(|s| s.id);
        let Some(segment) = self.speech_before_question().or_else(sounding) else { return };
        self.mouth.paused = Some(Pause { since: self.now, segment });
        self.command(Command::Pause);
        self.report(Report::AgentPaused {});
    }

    /// When the agent goes on if no words have come: counted from the quiet behind the sound that paused it, so that it
    /// does not speak into what may still become words. Sound without end holds it up no longer than a recogniser may.
    pub(crate) fn resume_at(&self) -> Option<Time> {
        let pause = self.mouth.paused?;
        let asking = self.gate.open().is_some_and(|hold| hold.stage == Stage::Asking);
        let wait = if asking { self.policy.confirm.resume } else { self.policy.turn.resume };
        let segment = self.segments.get(pause.segment);
        if segment.is_some_and(|s| s.partial && s.unresolved()) || self.speech_before_question().is_some() {
            return None;
        }
        let Some(segment) = segment.filter(|s| !s.echo) else { return Some(pause.since + wait) };
        Some(match segment.offset {
            Some(quiet) => quiet.max(pause.since) + wait,
            None => pause.since + self.policy.turn.transcript_limit,
        })
    }

    /// The sound that paused the agent had no words: it goes on, unless another one stands in front of the question.
    fn resume_after(&mut self, id: SegmentId) {
        let Some(pause) = self.mouth.paused.filter(|pause| pause.segment == id) else { return };
        match self.speech_before_question() {
            Some(segment) => self.mouth.paused = Some(Pause { segment, ..pause }),
            None => self.resume_mouth(),
        }
    }
}
