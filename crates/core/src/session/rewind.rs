//! A conversation that is taken back to an earlier point.
//!
//! Taken back to just after a question that had been heard, that question is open again, whatever became of it since:
//! a yes then runs under the hold it always had, so with the same idempotency key (VC-73, VC-76, rows 35 and 36). What
//! ran in between is not undone, and nothing of it runs again by itself (VC-75).

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::command::{DropReason, Report};
use crate::context::Item;
use crate::event::{AskedQuestion, Ran};
use crate::ids::{CallId, HoldId};
use crate::session::Session;
use crate::session::gate::Answer;
use crate::session::stored::{open_question, reopened_hold};

/// Askings remembered; the oldest goes first.
const KEEP: usize = 64;

impl Session {
    /// The questions that were heard in this conversation, oldest first, and what ran on a yes to them.
    pub fn asked(&self) -> &[AskedQuestion] {
        &self.gate.asked
    }

    /// The question was heard: the conversation can be taken back to here.
    pub(crate) fn note_asked(&mut self) {
        let Some(hold) = self.gate.heard() else { return };
        let spoken = hold.asking.utterance.and_then(|id| self.mouth.get(id)).and_then(|u| u.item);
        let Some(at) = spoken.or_else(|| self.question_item(&hold.question)) else { return };
        let end = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let question = open_question(hold);
        let earlier = self.gate.asked.iter().find(|asked| asked.question.hold == question.hold);
        let ran = earlier.and_then(|asked| asked.ran.clone());
        self.gate.asked.retain(|asked| asked.end != end);
        if self.gate.asked.len() >= KEEP {
            self.gate.asked.remove(0);
        }
        self.gate.asked.push(AskedQuestion { question, end, ran });
    }

    /// The item in which a question was last heard.
    fn question_item(&self, question: &str) -> Option<usize> {
        let heard = |item: &Item| matches!(item, Item::Agent { text, complete: true } if text == question);
        self.items.iter().rposition(heard)
    }

    /// A yes to the hold runs now; `by` are its words, which are about to become the next item.
    pub(crate) fn note_run(&mut self, hold: HoldId, by: &str) {
        let item = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        for asked in self.gate.asked.iter_mut().filter(|asked| asked.question.hold == hold) {
            asked.ran = Some(Ran { by: by.to_string(), item });
        }
    }

    /// What was about to run was not run after all. An earlier run on another yes stays.
    pub(crate) fn forget_run(&mut self) {
        let Some(hold) = self.gate.hold.as_ref().map(|hold| hold.id) else { return };
        let first = self.gate.ledger.runs().iter().filter(|ran| **ran == hold).count() <= 1;
        for asked in self.gate.asked.iter_mut().filter(|asked| first && asked.question.hold == hold) {
            asked.ran = None;
        }
    }

    pub(crate) fn on_rewound(&mut self, items: u32) {
        let keep = (items as usize).min(self.items.len());
        self.interrupt();
        let target = self.asked_just_before(keep);
        let here = target.as_ref().map(|asked| asked.question.hold);
        let stays = here.is_some() && self.gate.heard().map(|hold| hold.id) == here;
        if !stays {
            self.close_hold(DropReason::Rewound);
        }
        if let Some(next) = self.gate.next.take() {
            self.set_result(&next.call, "The conversation was taken back: this action will not run.");
        }
        self.cut(keep);
        self.report(Report::ConversationRewound { items: self.items.len() });
        match target {
            Some(_) if stays => {
                if let Some(hold) = self.gate.open_mut() {
                    hold.answer = Answer::default();
                }
            }
            Some(asked) => self.open_again(asked),
            None => {}
        }
        self.turn.wanted = false;
    }

    /// The question behind which the conversation would end if only its first `keep` items were left.
    fn asked_just_before(&self, keep: usize) -> Option<AskedQuestion> {
        let said = |item: &Item| !matches!(item, Item::Result { .. } | Item::Told { .. });
        let end = self.items.iter().take(keep).rposition(said)? + 1;
        let asked = self.gate.asked.iter().rev().find(|asked| asked.end as usize == end)?;
        let question = &asked.question.question;
        let heard =
            matches!(self.items.get(end - 1), Some(Item::Agent { text, complete: true }) if text == question);
        heard.then(|| asked.clone())
    }

    /// Cuts the conversation. A call that stays keeps its result: that it ran, or did not, is not taken back.
    fn cut(&mut self, keep: usize) {
        let gone = self.items.split_off(keep.min(self.items.len()));
        self.restored = self.restored.min(self.items.len());
        let (kept, lost) = (calls_in(&self.items), calls_in(&gone));
        let stays = |item: &Item| matches!(item, Item::Result { call, .. } if kept.contains(call));
        self.items.extend(gone.into_iter().filter(stays));
        self.tools.take_back(&lost);
        self.withdraw_approvals_of(&lost);
        self.mouth.forget_items_from(keep);
        self.gate.asked.retain(|asked| asked.end as usize <= keep);
        // What was said since belongs to the part that is gone: it neither answers nor makes a turn.
        for segment in self.segments.iter_mut() {
            segment.taken = true;
        }
    }

    /// A question of the past is open again. A tool that runs at this moment keeps the slot: that is not taken back.
    fn open_again(&mut self, asked: AskedQuestion) {
        let over = self.line.hung_up.is_some() || self.line.ended;
        if self.gate.hold.is_some() || over {
            return;
        }
        let AskedQuestion { question, ran, .. } = asked;
        if ran.is_none() {
            let result =
                "Nothing has happened yet. The caller is asked again; the action runs only on their yes.";
            self.set_result(&question.call, result);
        } else {
            // Its result stands.
            self.tell(format!(
                "The conversation was taken back to before the caller's yes. {} ran on it all the same, and that is not \
                 undone. The caller is asked again; it runs another time only on another yes.",
                question.tool.name
            ));
        }
        self.report(Report::QuestionReopened {
            question: question.hold,
            text: question.question.clone(),
            ran_before: ran.map(|ran| ran.by),
        });
        self.gate.hold = Some(reopened_hold(question));
        self.resume_reopened();
    }
}

fn calls_in(items: &[Item]) -> Vec<CallId> {
    let call = |item: &Item| match item {
        Item::Call { call } => Some(call.id.clone()),
        Item::Caller { .. } | Item::Agent { .. } | Item::Result { .. } | Item::Told { .. } => None,
    };
    items.iter().filter_map(call).collect()
}
