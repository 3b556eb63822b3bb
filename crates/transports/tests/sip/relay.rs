//! A network between a telephone and a server: delay each way, jitter and loss, by a seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// What the network does to a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) up: Duration,
    pub(crate) down: Duration,
    /// Up to so much more, by chance.
    pub(crate) jitter: Duration,
    /// So many in a thousand are lost.
    pub(crate) loss: u64,
    pub(crate) seed: u64,
}

impl Way {
    /// A round trip, the same each way.
    pub(crate) fn round_trip(ms: u64, seed: u64) -> Self {
        let half = Duration::from_millis(ms / 2);
        Self { up: half, down: half, jitter: Duration::from_millis(ms / 20), loss: 0, seed }
    }
}

/// Who is at either end, once known.
#[derive(Debug, Default)]
struct Ends {
    phone: Option<SocketAddr>,
    server: Option<SocketAddr>,
}

pub(crate) struct Relay {
    address: SocketAddr,
    ends: Arc<Mutex<Ends>>,
    task: JoinHandle<()>,
}

impl Relay {
    pub(crate) async fn start(way: Way, phone: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let ends = Arc::new(Mutex::new(Ends { phone: Some(phone), server: None }));
        let task = tokio::spawn(carry(socket, way, Arc::clone(&ends)));
        Self { address, ends, task }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn set_server(&self, server: SocketAddr) {
        self.ends.lock().unwrap().server = Some(server);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A packet on its way: when it arrives, its number, whom it is for, and itself.
type Carried = Reverse<(Instant, u64, SocketAddr, Vec<u8>)>;

async fn carry(socket: UdpSocket, way: Way, ends: Arc<Mutex<Ends>>) {
    let mut random = way.seed | 1;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut waiting: BinaryHeap<Carried> = BinaryHeap::new();
    let (mut bytes, mut number) = ([0; 2_048], 0);
    loop {
        let due = waiting.peek().map(|Reverse((at, ..))| *at);
        tokio::select! {
            came = socket.recv_from(&mut bytes) => {
                let Ok((len, from)) = came else { continue };
                let (to, delay) = {
                    let ends = ends.lock().unwrap();
                    if Some(from) == ends.phone { (ends.server, way.up) } else { (ends.phone, way.down) }
                };
                let more = way.jitter.mul_f64((next() % 1_000) as f64 / 1_000.0);
                let lost = next() % 1_000 < way.loss;
                if let Some(to) = to.filter(|_| !lost) {
                    number += 1;
                    waiting.push(Reverse((Instant::now() + delay + more, number, to, bytes[..len].to_vec())));
                }
            }
            () = until(due) => {
                if let Some(Reverse((_, _, to, packet))) = waiting.pop() {
                    let _ = socket.send_to(&packet, to).await;
                }
            }
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
