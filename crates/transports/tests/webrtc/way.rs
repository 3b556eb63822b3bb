//! A way between a far end and the server that can break, and lose.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// What the way does to packets.
#[derive(Debug, Default)]
struct State {
    /// One in so many is lost; 0: none is, 1: all are.
    loses: AtomicU64,
    random: AtomicU64,
}

impl State {
    fn lets_through(&self) -> bool {
        let step =
            |n: u64| Some(n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        let random = self.random.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).unwrap_or(0);
        match self.loses.load(Ordering::Relaxed) {
            0 => true,
            many => !(random >> 33).is_multiple_of(many),
        }
    }
}

/// It stands where the server's candidate is and carries every packet on, as a router does. It is gone when dropped.
pub(crate) struct Way {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

impl Way {
    /// Leads to `server`.
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let near = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let far = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let address = near.local_addr().unwrap();
        let (state, caller) = (Arc::new(State::default()), Arc::new(Mutex::new(None)));
        let mut tasks = JoinSet::new();
        tasks.spawn({
            let (near, far) = (Arc::clone(&near), Arc::clone(&far));
            let (state, caller) = (Arc::clone(&state), Arc::clone(&caller));
            async move {
                let mut bytes = [0; 2_048];
                loop {
                    let Ok((len, from)) = near.recv_from(&mut bytes).await else { continue };
                    *caller.lock().unwrap() = Some(from);
                    if state.lets_through() {
                        let _ = far.send_to(&bytes[..len], server).await;
                    }
                }
            }
        });
        tasks.spawn({
            let state = Arc::clone(&state);
            async move {
                let mut bytes = [0; 2_048];
                loop {
                    let Ok((len, _)) = far.recv_from(&mut bytes).await else { continue };
                    let to = *caller.lock().unwrap();
                    if let Some(to) = to.filter(|_| state.lets_through()) {
                        let _ = near.send_to(&bytes[..len], to).await;
                    }
                }
            }
        });
        Self { address, state, _tasks: tasks }
    }

    /// Nothing gets through any more.
    pub(crate) fn break_off(&self) {
        self.lose_one_in(1);
    }

    /// One packet in so many is lost; 0: none.
    pub(crate) fn lose_one_in(&self, many: u64) {
        self.state.loses.store(many, Ordering::Relaxed);
    }
}
