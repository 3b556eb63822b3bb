//! A stored conversation made ready to go on.

use sayback_core::{AskedQuestion, CallId, HoldId, Item, OpenQuestion, PastRun, Reopened, ToolOutcome};

use super::{Stored, StoredRun};

/// A conversation that may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reopening {
    /// It, with what the journal knows of its runs.
    pub conversation: Reopened,
    /// Whether the question that it ended with did not fit the rest, and is not asked any more.
    pub question_dropped: bool,
}

impl Stored {
    /// The conversation as it may go on. What is stored is not believed: a question stays open only if it is the last thing
    /// that was heard, with the input that was frozen for it, and was not answered before.
    ///
    /// # Errors
    /// Its text cannot be read: another version wrote it, or somebody by hand.
    pub fn reopening(&self) -> Result<Reopening, serde_json::Error> {
        let mut conversation: Reopened = serde_json::from_str(&self.body)?;
        let open = conversation.open.take();
        let asked_last = open.is_some();
        conversation.open = open.filter(|open| {
            is_sound(open, &conversation.items) && !was_answered(open, &conversation, &self.runs)
        });
        let question_dropped = asked_last && conversation.open.is_none();
        let (items, asked) = (&conversation.items, std::mem::take(&mut conversation.asked));
        conversation.asked = asked.into_iter().filter(|asked| was_heard(asked, items)).collect();
        // A model may use an id again: the result that stands under it is that of its latest run.
        let latest =
            |(at, run): &(usize, &StoredRun)| self.runs[at + 1..].iter().all(|later| later.call != run.call);
        let runs = self.runs.iter().enumerate().filter(latest);
        let made = |run: &StoredRun| self.runs.iter().filter(|other| other.call == run.call).count();
        conversation.unsettled =
            runs.filter_map(|(_, run)| unsettled(run, made(run), &conversation)).collect();
        conversation.runs = self.runs.iter().map(|run| HoldId(run.hold)).collect();
        Ok(Reopening { conversation, question_dropped })
    }
}

/// A run whose outcome the conversation does not tell: the process ended before it could. One that was rewound away is
/// no part of the conversation any more. `made`: how many runs its call's id stands for.
fn unsettled(run: &StoredRun, made: usize, conversation: &Reopened) -> Option<PastRun> {
    let outcome = match run.state.as_str() {
        "executed" => ToolOutcome::Done { message: run.message.clone() },
        "failed" => ToolOutcome::Failed { message: run.message.clone() },
        _ => ToolOutcome::Unknown,
    };
    let unknown = outcome == ToolOutcome::Unknown;
    let results = conversation.items.iter().filter_map(|item| match item {
        Item::Result { call, text, confirmed_by } if call.0 == run.call => Some((text, confirmed_by)),
        Item::Result { .. }
        | Item::Told { .. }
        | Item::Caller { .. }
        | Item::Agent { .. }
        | Item::Call { .. } => None,
    });
    let results: Vec<(&String, &Option<String>)> = results.collect();
    let (text, confirmed_by) = results.last()?;
    let told = if confirmed_by.is_some() {
        unknown || **text == run.message
    } else {
        // The model has used the id again, for a call that waits: what ran before was told where it ran.
        results.iter().filter(|(_, confirmed_by)| confirmed_by.is_some()).count() >= made
    };
    (!told).then(|| PastRun {
        hold: HoldId(run.hold),
        call: CallId(run.call.clone()),
        tool: run.tool.clone(),
        confirmed_by: run.confirmed_by.clone(),
        outcome,
    })
}

/// A stored question is open only if it is the last thing that was heard, and its input is the one that was frozen.
fn is_sound(open: &OpenQuestion, items: &[Item]) -> bool {
    let last = items.iter().rev().find(|item| matches!(item, Item::Agent { .. } | Item::Caller { .. }));
    let asked_last = matches!(last, Some(Item::Agent { text, complete: true }) if *text == open.question);
    is_frozen(open) && asked_last
}

/// A question of the past may be opened again only if it is where it says, heard to its end, with the input frozen then.
fn was_heard(asked: &AskedQuestion, items: &[Item]) -> bool {
    let item = (asked.end as usize).checked_sub(1).and_then(|at| items.get(at));
    is_frozen(&asked.question)
        && matches!(item, Some(Item::Agent { text, complete: true }) if *text == asked.question.question)
}

/// Whether a stored question's input is canonical, and hashes to what it says.
fn is_frozen(open: &OpenQuestion) -> bool {
    let value = crate::frozen::parse_strict(&open.input.json).ok();
    let frozen = value.and_then(|value| crate::frozen::canonical(&value).ok());
    frozen.is_some_and(|frozen| frozen == open.input)
}

/// The journal is ahead of the conversation: the question was answered, and what was asked ran. (A question that a
/// rewind opened again has no more runs than the conversation knows of: VC-76.)
fn was_answered(open: &OpenQuestion, conversation: &Reopened, runs: &[StoredRun]) -> bool {
    let known = conversation.runs.iter().filter(|hold| **hold == open.hold).count();
    runs.iter().filter(|run| run.hold == open.hold.0).count() > known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str, confirmed_by: Option<&str>) -> Item {
        let call = CallId("m1".to_owned());
        Item::Result { call, text: text.to_owned(), confirmed_by: confirmed_by.map(str::to_owned) }
    }

    fn run(hold: u32) -> StoredRun {
        StoredRun {
            hold,
            attempt: 1,
            idempotency_key: format!("k/{hold}"),
            call: "m1".to_owned(),
            tool: "book".to_owned(),
            confirmed_by: "yes".to_owned(),
            state: "executed".to_owned(),
            message: "Booked.".to_owned(),
        }
    }

    /// How many runs are told, of these under one id, after these results.
    fn untold(items: Vec<Item>, runs: Vec<StoredRun>) -> Vec<u32> {
        let conversation = Reopened { items, ..Reopened::default() };
        let body = serde_json::to_string(&conversation).unwrap();
        let stored = Stored { agent: String::new(), changed: String::new(), body, runs };
        let told = stored.reopening().unwrap().conversation.unsettled;
        told.iter().map(|run| run.hold.0).collect()
    }

    const NONE: [u32; 0] = [];

    #[test]
    fn what_ran_under_an_id_that_is_used_again_is_told_once() {
        let (ran, waits) = (|| result("Booked.", Some("yes")), || result("The caller is being asked.", None));
        assert_eq!(untold(vec![ran()], vec![run(1)]), NONE);
        assert_eq!(untold(vec![waits()], vec![run(1)]), [1], "the process ended before it was told");
        assert_eq!(untold(vec![ran(), waits()], vec![run(1)]), NONE, "the second call has not run");
        assert_eq!(untold(vec![ran(), waits()], vec![run(1), run(2)]), [2], "it has");
        assert_eq!(untold(vec![ran(), ran()], vec![run(1), run(2)]), NONE);
        assert_eq!(untold(vec![], vec![run(1)]), NONE, "taken back");
    }
}
