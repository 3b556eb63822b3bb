//! Who hears of each call of a server, whatever its agent wants: the ledger, which notes confirmed runs, and spans.

use std::sync::Arc;

use sayback_runtime::calls::CallView;
use sayback_runtime::journal::Journal;
use sayback_runtime::ledger::{Ledger, NotedRuns, Unnoted};
use sayback_runtime::record::Recorder;
use sayback_runtime::spans::CallSpans;
use sayback_runtime::switchboard::{Desk, Witness, Witnesses};

/// Notes each call's confirmed runs and makes its spans; recordings are behind it.
#[derive(Debug)]
pub(crate) struct Noted {
    pub(crate) ledger: Ledger,
    pub(crate) unnoted: Unnoted,
    pub(crate) recordings: Option<Arc<dyn Witnesses>>,
}

impl Witnesses for Noted {
    fn of(&self, call: &CallView, desk: &Desk) -> Witness {
        let mut witness = self.recordings.as_ref().map(|inner| inner.of(call, desk)).unwrap_or_default();
        witness.observers.push(Box::new(CallSpans::new(call)));
        witness
    }

    fn journal(
        &self,
        call: &CallView,
        desk: &Desk,
        reopened: Option<Arc<dyn Journal>>,
    ) -> Option<Arc<dyn Journal>> {
        let journal = match &self.recordings {
            Some(inner) => inner.journal(call, desk, reopened),
            None => reopened,
        };
        Some(Arc::new(NotedRuns {
            ledger: self.ledger.clone(),
            call: call.call.clone(),
            unnoted: self.unnoted,
            journal,
        }))
    }

    fn ended(&self, call: &str, recorder: Option<&Recorder>) {
        if let Some(inner) = &self.recordings {
            inner.ended(call, recorder);
        }
    }
}
