//! Personal details out of stored conversations.

use std::sync::Arc;

use async_trait::async_trait;
use sayback_core::{Event, Item, OpenQuestion, Time, ToolOutcome};

use super::Redactor;
use crate::driver::Observer;
use crate::journal::{Begun, ConfirmedRun, Journal, JournalError, Snapshot};

/// A journal that is told no personal details, but for those of a question that is open and of an approval that an
/// operator owes: a yes must find the words that were heard and the input that they stand for. They go when the conversation is next written without it.
#[derive(Debug)]
pub struct RedactedJournal {
    inner: Arc<dyn Journal>,
    redactor: Redactor,
}

impl RedactedJournal {
    /// Keeps in `inner` what is left when the details are gone.
    pub fn new(inner: Arc<dyn Journal>, redactor: Redactor) -> Self {
        Self { inner, redactor }
    }
}

#[async_trait]
impl Journal for RedactedJournal {
    async fn begin(&self, run: &ConfirmedRun, now: &Snapshot) -> Result<Begun, JournalError> {
        self.inner.begin(&self.redactor.run(run), &self.redactor.snapshot(now)).await
    }

    async fn finish(&self, run: &ConfirmedRun, outcome: &ToolOutcome) -> Result<(), JournalError> {
        let mut outcome = outcome.clone();
        self.redactor.outcome(&mut outcome);
        self.inner.finish(&self.redactor.run(run), &outcome).await
    }

    async fn keep(&self, now: &Snapshot) -> Result<(), JournalError> {
        self.inner.keep(&self.redactor.snapshot(now)).await
    }
}

/// Takes note of the questions that are built from details, so that they go as a whole from what is stored later.
#[derive(Debug)]
pub struct Learner(pub Redactor);

impl Observer for Learner {
    fn on_input(&mut self, _at: Time, event: &Event) {
        self.0.learn(event);
    }
}

impl Redactor {
    fn run(&self, run: &ConfirmedRun) -> ConfirmedRun {
        ConfirmedRun { confirmed_by: self.text(&run.confirmed_by), ..run.clone() }
    }

    /// A conversation as it may be stored.
    ///
    /// A question of the past that was built from details cannot be opened again from it: its input is gone.
    fn snapshot(&self, now: &Snapshot) -> Snapshot {
        let mut now = now.clone();
        let conversation = &mut now.conversation;
        let open = conversation.open.take();
        // What an operator has not decided yet runs with the input that was frozen, too.
        let approvals = std::mem::take(&mut conversation.approvals);
        conversation.asked.retain(|asked| self.is_bare(&asked.question));
        self.reopened(conversation, open.as_ref().map(|open| open.question.as_str()));
        conversation.open = open;
        conversation.approvals = approvals;
        now
    }

    /// Whether a question and its input are without details. What an operator filled in may be one.
    fn is_bare(&self, question: &OpenQuestion) -> bool {
        let OpenQuestion { mut input, question, approval, .. } = question.clone();
        approval.is_none() && !self.frozen(&mut input) && self.text(&question) == question
    }

    /// Whether this is what the agent said last, word for word.
    pub(super) fn is_said(item: &Item, open: Option<&str>) -> bool {
        matches!((item, open), (Item::Agent { text, .. }, Some(open)) if text == open)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use sayback_core::{AskedQuestion, CallId, Frozen, HoldId, Ran, Reopened, ToolRef};

    use super::super::Detail;
    use super::*;

    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<String>>);

    impl Kept {
        fn note(&self, what: String) {
            self.0.lock().unwrap().push(what);
        }
    }

    #[async_trait]
    impl Journal for Kept {
        async fn begin(&self, run: &ConfirmedRun, now: &Snapshot) -> Result<Begun, JournalError> {
            self.note(format!("{run:?} {now:?}"));
            Ok(Begun::Fresh)
        }

        async fn finish(&self, run: &ConfirmedRun, outcome: &ToolOutcome) -> Result<(), JournalError> {
            self.note(format!("{run:?} {outcome:?}"));
            Ok(())
        }

        async fn keep(&self, now: &Snapshot) -> Result<(), JournalError> {
            self.note(serde_json::to_string(&now.conversation).unwrap());
            Ok(())
        }
    }

    const QUESTION: &str = "Shall I write to a n n a at example dot com?";

    fn question() -> OpenQuestion {
        OpenQuestion {
            hold: HoldId(1),
            call: CallId("c1".to_owned()),
            tool: ToolRef {
                skill: "s".to_owned(),
                name: "write".to_owned(),
                definition: "sha256:1".to_owned(),
            },
            input: crate::frozen::canonical(&serde_json::json!({"to": "anna@example.com"})).unwrap(),
            question: QUESTION.to_owned(),
            ..bare()
        }
    }

    fn bare() -> OpenQuestion {
        OpenQuestion {
            hold: HoldId(2),
            call: CallId("c2".to_owned()),
            tool: ToolRef {
                skill: "s".to_owned(),
                name: "close".to_owned(),
                definition: "sha256:2".to_owned(),
            },
            input: Frozen { json: "{}".to_owned(), hash: "sha256:3".to_owned() },
            question: "Shall I close it?".to_owned(),
            language: "en".to_owned(),
            terms: sayback_core::AskTerms::default(),
            approval: None,
        }
    }

    fn conversation(open: bool) -> Reopened {
        let ran = Some(Ran { by: "yes, anna@example.com".to_owned(), item: 3 });
        Reopened {
            items: vec![
                Item::Caller { text: "write to anna@example.com or 030 1234567".to_owned() },
                Item::Agent { text: QUESTION.to_owned(), complete: true },
            ],
            open: open.then(question),
            asked: vec![
                AskedQuestion { question: question(), end: 2, ran: None },
                AskedQuestion { question: bare(), end: 2, ran },
            ],
            ..Reopened::default()
        }
    }

    async fn kept(redactor: &Redactor, conversation: Reopened) -> Reopened {
        let inner = Arc::new(Kept::default());
        let journal = RedactedJournal::new(inner.clone(), redactor.clone());
        journal.keep(&Snapshot::last(conversation)).await.unwrap();
        let texts = inner.0.lock().unwrap();
        serde_json::from_str(&texts[0]).unwrap()
    }

    fn redactor() -> Redactor {
        Redactor::new(&[Detail::Email, Detail::Phone]).unwrap()
    }

    #[tokio::test]
    async fn a_conversation_is_stored_without_details_but_for_those_of_the_open_question() {
        let stored = kept(&redactor(), conversation(true)).await;
        assert_eq!(stored.open, Some(question()));
        assert!(matches!(&stored.items[1], Item::Agent { text, .. } if text == QUESTION));
        let said = format!("{:?} {:?}", stored.items[0], stored.asked);
        assert!(!said.contains("anna") && !said.contains("1234567"), "{said}");
        assert_eq!(stored.asked.len(), 1);
    }

    #[tokio::test]
    async fn once_the_question_is_closed_nothing_of_it_is_stored() {
        let redactor = redactor();
        redactor.learn(&Event::Reopened(conversation(true)));
        let text = serde_json::to_string(&kept(&redactor, conversation(false)).await).unwrap();
        assert!(!text.contains("anna") && !text.contains("a n n a") && !text.contains("1234567"), "{text}");
    }

    #[tokio::test]
    async fn what_was_redacted_before_stays_as_it_is() {
        let once = kept(&redactor(), conversation(false)).await;
        for _ in 0..40 {
            assert_eq!(kept(&redactor(), once.clone()).await, once);
        }
    }

    #[tokio::test]
    async fn runs_are_stored_without_details() {
        let inner = Arc::new(Kept::default());
        let journal = RedactedJournal::new(inner.clone(), redactor());
        let run = ConfirmedRun {
            hold: HoldId(1),
            attempt: 1,
            idempotency_key: "k".to_owned(),
            call: "c1".to_owned(),
            tool: question().tool,
            input_hash: "sha256:4".to_owned(),
            confirmed_by: "yes, anna@example.com".to_owned(),
        };
        journal.begin(&run, &Snapshot::last(conversation(false))).await.unwrap();
        let message = "Written to anna@example.com.".to_owned();
        journal.finish(&run, &ToolOutcome::Done { message }).await.unwrap();
        let texts = inner.0.lock().unwrap().join("\n");
        assert!(texts.contains("[email:") && !texts.contains("anna@"), "{texts}");
    }
}
