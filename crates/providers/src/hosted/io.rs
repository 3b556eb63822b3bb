//! Threads that wait for sockets, and waits with an end.
//!
//! Recognisers and voices are called on threads of the runtime's own and block there. Their sockets live on one small
//! executor of this module, so that a blocked caller holds up no other call.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::Fault;

/// Threads for all sockets of all vendors; what they do between two waits is short.
const THREADS: usize = 2;

fn runtime() -> Result<&'static Runtime, Fault> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let build = || {
        Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("vendors")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())
    };
    let unable = |reason: &String| Fault::BrokeOff(format!("this machine starts no more threads: {reason}"));
    RUNTIME.get_or_init(build).as_ref().map_err(unable)
}

/// Runs `work` on the sockets' threads. Its owner is whatever channel it holds: it ends when nobody listens.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Result<(), Fault> {
    runtime()?.spawn(work);
    Ok(())
}

/// Waits on the calling thread for what comes from a socket's.
pub(crate) fn wait<T>(work: impl Future<Output = T>) -> T {
    futures::executor::block_on(work)
}

/// A named wait: done when its time is over.
pub(crate) struct Deadline {
    limit: Duration,
    pub(crate) over: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Self {
        let over = Box::pin(async move {
            // The only outcome of waiting for nothing is the end of the time.
            let _ = tokio::time::timeout(limit, std::future::pending::<()>()).await;
        });
        Self { limit, over }
    }

    /// What is said of a service that did not keep it.
    pub(crate) fn missed(&self) -> Fault {
        Fault::TimedOut(self.limit)
    }
}
