//! Who hears of each call of a server, whatever its agent wants: the ledger, which notes confirmed runs, and spans.

use std::sync::Arc;

use sayback_runtime::calls::CallView;
use sayback_runtime::journal::Journal;
use sayback_runtime::ledger::{Ledger, NotedRuns, Unnoted};
use sayback_runtime::record::Recorder;
use sayback_runtime::spans::CallSpans;
use sayback_runtime::switchboard::{Desk, Witness, Witnesses};
use tokio::runtime::Handle;

/// Notes each call's confirmed runs and makes its spans; recordings are behind it.
#[derive(Debug)]
pub(crate) struct Noted {
    pub(crate) ledger: Ledger,
    pub(crate) unnoted: Unnoted,
    pub(crate) recordings: Option<Arc<dyn Witnesses>>,
    pub(crate) executor: Handle,
}

impl Witnesses for Noted {
    fn of(&self, call: &CallView, desk: &Desk) -> Witness {
        let mut witness = self.recordings.as_ref().map(|inner| inner.of(call, desk)).unwrap_or_default();
        witness.observers.push(Box::new(CallSpans::new(call)));
        witness
    }

    fn journal(&self, call: &CallView, desk: &Desk) -> Option<Arc<dyn Journal>> {
        Some(Arc::new(NotedRuns {
            ledger: self.ledger.clone(),
            call: call.call.clone(),
            unnoted: self.unnoted,
            journal: self.recordings.as_ref().and_then(|inner| inner.journal(call, desk)),
            executor: self.executor.clone(),
        }))
    }

    fn ended(&self, call: &str, recorder: Option<&Recorder>) {
        if let Some(inner) = &self.recordings {
            inner.ended(call, recorder);
        }
    }
}
