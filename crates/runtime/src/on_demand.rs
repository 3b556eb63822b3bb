//! Work of one call that is done in order, on a thread that is there only while there is some.
//!
//! A server holds hundreds of calls, and most of them neither speak nor recognise anything just now. A thread that waits
//! costs memory, and waking it up costs more than starting one does for work that takes milliseconds.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A queue of work, and who does it.
pub(crate) struct OnDemand<T> {
    shared: Arc<Shared<T>>,
}

impl<T> std::fmt::Debug for OnDemand<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnDemand").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

struct Shared<T> {
    /// The thread's name.
    name: &'static str,
    work: Box<dyn Fn(T) + Send + Sync>,
    state: Mutex<State<T>>,
}

struct State<T> {
    waiting: VecDeque<T>,
    running: bool,
}

impl<T: Send + 'static> OnDemand<T> {
    /// Nothing to do yet. `work` may take its time: it is called on the thread.
    pub(crate) fn new(name: &'static str, work: impl Fn(T) + Send + Sync + 'static) -> Self {
        let state = State { waiting: VecDeque::new(), running: false };
        Self { shared: Arc::new(Shared { name, work: Box::new(work), state: Mutex::new(state) }) }
    }

    /// Lines up work behind what waits.
    pub(crate) fn put(&self, item: T) {
        let mut state = self.shared.state();
        state.waiting.push_back(item);
        self.start(state);
    }

    /// Lines up work, unless as much as `most` waits already; says whether it did.
    pub(crate) fn try_put(&self, item: T, most: usize) -> bool {
        let mut state = self.shared.state();
        if state.waiting.len() >= most {
            return false;
        }
        state.waiting.push_back(item);
        self.start(state);
        true
    }

    fn start(&self, mut state: MutexGuard<'_, State<T>>) {
        if state.running {
            return;
        }
        state.running = true;
        drop(state);
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name(self.shared.name.to_owned());
        if let Err(error) = thread.spawn(move || shared.run()) {
            tracing::error!("cannot start a thread for {}: {error}", self.shared.name);
            // What waits is tried again with what comes next.
            self.shared.state().running = false;
        }
    }
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        // Also if the work panics: the next piece must find a thread.
        let _off = Off(self);
        loop {
            let Some(item) = self.next() else { return };
            (self.work)(item);
        }
    }

    /// The next piece; with none the thread counts as gone at once, so that nothing is put into a queue without one.
    fn next(&self) -> Option<T> {
        let mut state = self.state();
        let item = state.waiting.pop_front();
        state.running = item.is_some();
        item
    }
}

/// Says that the thread is gone if a piece of work broke it.
struct Off<'a, T>(&'a Shared<T>);

impl<T> Drop for Off<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state().running = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn work_is_done_in_order_and_again_after_a_rest() {
        let (sender, done) = channel();
        let queue = OnDemand::new("test", move |n: u32| sender.send(n).unwrap());
        for n in 0..50 {
            queue.put(n);
        }
        assert_eq!((0..50).map(|_| done.recv().unwrap()).collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
        while queue.shared.state().running {
            std::thread::yield_now();
        }
        queue.put(99);
        assert_eq!(done.recv().unwrap(), 99);
    }

    #[test]
    fn a_queue_that_is_full_takes_nothing_and_a_panic_ends_no_queue() {
        let (gate, wait) = channel::<()>();
        let (sender, done) = channel();
        let wait = Mutex::new(wait);
        let queue = OnDemand::new("test", move |n: u32| {
            wait.lock().unwrap_or_else(PoisonError::into_inner).recv().unwrap();
            assert_ne!(n, 0, "as this test wants it");
            sender.send(n).unwrap();
        });
        assert!(queue.try_put(0, 1));
        // The first may have been taken up already; after two more there is no place for sure.
        queue.put(1);
        queue.put(2);
        assert!(!queue.try_put(3, 1));
        gate.send(()).unwrap();
        while queue.shared.state().running {
            std::thread::yield_now();
        }
        gate.send(()).unwrap();
        gate.send(()).unwrap();
        queue.put(4);
        gate.send(()).unwrap();
        assert_eq!((done.recv().unwrap(), done.recv().unwrap(), done.recv().unwrap()), (1, 2, 4));
    }
}
