//! The runs of our own gate, noted in the ledger: each run of a tool with a question leaves an entry that is used up.
//!
//! The gate of a call decides before, and stands on its own. The ledger is behind it and can only add a block: where the
//! very same run was noted before, by another server, nothing runs (LED-36, LED-37).

use std::sync::Arc;

use async_trait::async_trait;
use sayback_core::ToolOutcome;
use serde::Deserialize;

use super::{Ledger, Moment, OwnRun};
use crate::clock::unix_millis;
use crate::journal::{Begun, ConfirmedRun, Journal, JournalError, Snapshot};

/// What happens to a run that the ledger cannot note because its store does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unnoted {
    /// It is made: the gate has decided, and it is logged that it was not noted.
    #[default]
    Run,
    /// It is not made, and the model is told.
    Block,
}

/// A journal that notes each confirmed run in a ledger as soon as another journal, if there is one, has written it.
#[derive(Debug)]
pub struct NotedRuns {
    /// The ledger.
    pub ledger: Ledger,
    /// The call whose runs these are.
    pub call: String,
    /// What happens to a run that cannot be noted.
    pub unnoted: Unnoted,
    /// The journal behind it.
    pub journal: Option<Arc<dyn Journal>>,
}

impl NotedRuns {
    async fn note(&self, run: &ConfirmedRun) -> Result<Begun, JournalError> {
        let id = format!("run:{}/{}/{}", self.call, run.hold.0, run.attempt);
        let own = OwnRun { tool: &run.tool.name, input_hash: &run.input_hash, id: &id };
        match self.ledger.note_run(&own, Moment(unix_millis())).await {
            Ok(true) => Ok(Begun::Fresh),
            Ok(false) => Ok(Begun::Already),
            Err(error) => match self.unnoted {
                Unnoted::Run => {
                    tracing::error!("the run of {} is not in the ledger: {error}", run.tool.name);
                    Ok(Begun::Fresh)
                }
                Unnoted::Block => Err(JournalError::Failed(error.to_string())),
            },
        }
    }
}

#[async_trait]
impl Journal for NotedRuns {
    async fn begin(&self, run: &ConfirmedRun, now: &Snapshot) -> Result<Begun, JournalError> {
        let Some(journal) = &self.journal else { return self.note(run).await };
        // The journal first: whoever may not write in this conversation uses nothing up.
        if journal.begin(run, now).await? == Begun::Already {
            return Ok(Begun::Already);
        }
        let noted = self.note(run).await;
        if noted != Ok(Begun::Fresh) {
            // It is written as begun, and is not made.
            let message = "the ledger did not let it through".to_owned();
            if let Err(error) = journal.finish(run, &ToolOutcome::NotRun { message }).await {
                tracing::error!(
                    "a run that was not made stands in the journal as one that may have been: {error}"
                );
            }
        }
        noted
    }

    async fn finish(&self, run: &ConfirmedRun, outcome: &ToolOutcome) -> Result<(), JournalError> {
        match &self.journal {
            Some(journal) => journal.finish(run, outcome).await,
            None => Ok(()),
        }
    }

    async fn keep(&self, now: &Snapshot) -> Result<(), JournalError> {
        match &self.journal {
            Some(journal) => journal.keep(now).await,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use sayback_core::Reopened;

    use super::super::store::{Bounds, Claim, Lease, LedgerFault, LedgerStore, Owner, Settled, Want, Wanted};
    use super::super::{Entry, EntryId, InMemory, LedgerOptions, Switch, Yes};
    use super::*;
    use crate::journal::exactly_once;
    use crate::journal::tests::run;

    /// A store whose database is away.
    #[derive(Debug)]
    struct Away;

    fn away<T>() -> Result<T, LedgerFault> {
        Err(LedgerFault::Unreachable("nobody answers".to_owned()))
    }

    #[async_trait::async_trait]
    impl LedgerStore for Away {
        async fn put(&self, _: &Owner, _: &Yes, _: &Bounds) -> Result<EntryId, LedgerFault> {
            away()
        }
        async fn offers(&self, _: &Owner, _: &Wanted<'_>) -> Result<Vec<Entry>, LedgerFault> {
            away()
        }
        async fn claim(&self, _: &str, _: &Claim, _: Want, _: Moment) -> Result<Option<Lease>, LedgerFault> {
            away()
        }
        async fn settle(&self, _: &str, _: &Claim, _: Lease, _: Settled) -> Result<bool, LedgerFault> {
            away()
        }
        async fn forget(&self, _: Moment) -> Result<u64, LedgerFault> {
            away()
        }
    }

    fn noted(ledger: &Ledger, unnoted: Unnoted) -> Arc<dyn Journal> {
        let (ledger, call) = (ledger.clone(), "c".to_owned());
        Arc::new(NotedRuns { ledger, call, unnoted, journal: None })
    }

    async fn make(journal: Arc<dyn Journal>) -> ToolOutcome {
        let now = Snapshot { order: 1, conversation: Reopened::default() };
        exactly_once(journal, run(), now, async { ToolOutcome::Done { message: "paid".to_owned() } }).await
    }

    fn ran(outcome: &ToolOutcome) -> bool {
        matches!(outcome, ToolOutcome::Done { .. })
    }

    #[tokio::test]
    async fn led_37_a_run_is_noted_before_it_is_made_and_made_once_across_servers() {
        let store: Arc<dyn LedgerStore> = Arc::new(InMemory::default());
        let server = || Ledger::on(Arc::clone(&store), LedgerOptions::default()).unwrap();
        assert!(ran(&make(noted(&server(), Unnoted::Run)).await));
        let again = make(noted(&server(), Unnoted::Run)).await;
        assert!(matches!(again, ToolOutcome::NotRun { .. }), "{again:?}");
    }

    /// A journal that says the same to each run, and keeps what came of them.
    #[derive(Debug)]
    struct Says(Result<Begun, JournalError>, std::sync::Mutex<Vec<ToolOutcome>>);

    #[async_trait]
    impl Journal for Says {
        async fn begin(&self, _: &ConfirmedRun, _: &Snapshot) -> Result<Begun, JournalError> {
            self.0.clone()
        }

        async fn finish(&self, _: &ConfirmedRun, outcome: &ToolOutcome) -> Result<(), JournalError> {
            self.1.lock().unwrap().push(outcome.clone());
            Ok(())
        }

        async fn keep(&self, _: &Snapshot) -> Result<(), JournalError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn who_may_not_write_uses_nothing_up_and_what_the_ledger_blocks_is_written_as_not_run() {
        let ledger = Ledger::in_memory(LedgerOptions::default()).unwrap();
        let behind = |says| {
            let journal = Arc::new(Says(says, std::sync::Mutex::default()));
            let (ledger, call, unnoted) = (ledger.clone(), "c".to_owned(), Unnoted::Run);
            let behind = Some(Arc::clone(&journal) as Arc<dyn Journal>);
            (Arc::new(NotedRuns { ledger, call, unnoted, journal: behind }), journal)
        };
        for refusal in [Err(JournalError::OpenedElsewhere), Err(JournalError::Failed("away".to_owned()))] {
            assert!(matches!(make(behind(refusal).0).await, ToolOutcome::NotRun { .. }));
        }
        let (here, journal) = behind(Ok(Begun::Fresh));
        assert!(ran(&make(here).await), "it was left to whoever may");
        assert!(matches!(journal.1.lock().unwrap()[..], [ToolOutcome::Done { .. }]));
        let (there, journal) = behind(Ok(Begun::Fresh));
        assert!(matches!(make(there).await, ToolOutcome::NotRun { .. }), "once");
        assert!(matches!(journal.1.lock().unwrap()[..], [ToolOutcome::NotRun { .. }]));
    }

    #[tokio::test]
    async fn led_36_a_ledger_that_is_off_or_away_opens_nothing_and_can_only_add_a_block() {
        let off = LedgerOptions { switch: Switch::Off, ..LedgerOptions::default() };
        let off = Ledger::in_memory(off).unwrap();
        assert!(ran(&make(noted(&off, Unnoted::Block)).await), "the gate has decided");
        let away = Ledger::on(Arc::new(Away), LedgerOptions::default()).unwrap();
        assert!(ran(&make(noted(&away, Unnoted::Run)).await));
        let blocked = make(noted(&away, Unnoted::Block)).await;
        assert!(matches!(blocked, ToolOutcome::NotRun { .. }), "{blocked:?}");
    }
}
