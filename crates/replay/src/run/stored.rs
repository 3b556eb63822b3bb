//! A conversation that is taken back, and one that another process opens again.

use sayback_core::{Confirmation, PastRun, Rewind, ToolOutcome};

use super::*;
use crate::scenario::RewindTo;

impl VirtualCall<'_> {
    pub(super) fn rewind(&mut self, to: RewindTo) {
        let items = match to {
            RewindTo::Start => 0,
            // Nothing was asked: there is nowhere to go.
            RewindTo::Question => match self.session.asked().last() {
                Some(asked) => asked.end,
                None => return,
            },
        };
        self.hand(Event::Rewound(Rewind { items }));
    }

    /// A run has begun on a yes, and that is written down.
    pub(super) fn note_run(&mut self, yes: &Confirmation) {
        self.running.push(PastRun {
            hold: yes.hold(),
            call: yes.call().clone(),
            tool: yes.tool().name.clone(),
            confirmed_by: yes.confirmed_by().to_owned(),
            outcome: ToolOutcome::Unknown,
        });
    }

    /// What came of a run is written down as soon as it is known.
    pub(super) fn note_result(&mut self, event: &Event) {
        if let Event::ToolFinished { call, .. } = event {
            self.running.retain(|run| run.call != *call);
        }
    }

    /// The process is gone with all that it had under way; another one opens what was stored. The caller calls again.
    pub(super) fn reopen(&mut self, index: usize) {
        if self.ears.is_some() {
            let line = self.scenario.callers.get(index).map_or(1, |act| act.line);
            self.error = Some(SoundError::Reopened { path: self.scenario.path.clone(), line });
            return;
        }
        let mut stored = self.session.to_store();
        stored.unsettled.append(&mut self.running);
        self.session = Session::new(self.engines.agent.policy.clone());
        let line = LineRule::of(&self.scenario.line, self.engines.assumed_loop);
        self.mouth = Mouth::new(line, self.scenario.tts_faults.clone(), self.scenario.ack_faults.clone());
        let end = self.scenario.end_at;
        self.queue.retain(|(at, _), happening| match happening {
            Happening::Act(_) => true,
            Happening::Event(event) => Some(*at) == end && **event == Event::HungUp,
        });
        self.waiting.hung_up = false;
        self.hand(Event::Tools(self.engines.agent.tool_refs()));
        self.hand(Event::Reopened(stored));
        self.start_call();
    }

    /// Whether another process is still to open the conversation.
    pub(super) fn reopens(&self) -> bool {
        let reopens =
            |index: &usize| self.scenario.callers.get(*index).is_some_and(|act| act.act == Act::Reopen);
        self.queue.values().any(|happening| match happening {
            Happening::Act(index) => reopens(index),
            Happening::Event(_) => false,
        })
    }
}
