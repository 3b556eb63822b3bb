//! A network between a browser and the server: jitter and loss by a seed, outages and another address on demand.
//!
//! It stands where the server's candidate is and carries every packet on, from a port of its own for each of the
//! browser's, as a router does.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// What the network does to packets, both ways.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    /// Up to so much later, by chance.
    pub(crate) jitter: Duration,
    /// So many in a thousand are lost.
    pub(crate) loss: u64,
    pub(crate) seed: u64,
}

#[derive(Debug, Default)]
struct State {
    server: Mutex<Option<SocketAddr>>,
    /// Nothing gets through.
    broken: AtomicBool,
    /// How often the address of the browser's side has changed.
    moves: AtomicU32,
}

/// A running network. A page asks `http://ORDERS/server/PORT` for it to lead there, `/outage` to break it for two seconds,
/// `/move` to come from another address from then on.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    pub(crate) orders: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Relay {
    pub(crate) async fn start(way: Way) -> Self {
        let near = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let state = Arc::new(State::default());
        let (address, orders) = (near.local_addr().unwrap(), listener.local_addr().unwrap());
        let mut tasks = JoinSet::new();
        let (sender, carried) = channel(4_096);
        tasks.spawn(deliver(way, Arc::clone(&state), carried));
        tasks.spawn(carry(near, Arc::clone(&state), sender));
        tasks.spawn(obey(listener, state));
        Self { address, orders, _tasks: tasks }
    }
}

/// A packet, from where it is to leave, and for whom.
type Packet = (Arc<UdpSocket>, SocketAddr, Vec<u8>);

/// Takes packets in on the browser's side, and opens a port on the server's side for each of the browser's.
async fn carry(near: Arc<UdpSocket>, state: Arc<State>, sender: Sender<Packet>) {
    let mut far: BTreeMap<(SocketAddr, u32), Arc<UdpSocket>> = BTreeMap::new();
    let mut listeners = JoinSet::new();
    let mut bytes = [0; 2_048];
    loop {
        let Ok((len, from)) = near.recv_from(&mut bytes).await else { continue };
        let Some(server) = *state.server.lock().unwrap() else { continue };
        let key = (from, state.moves.load(Ordering::Relaxed));
        let socket = match far.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
                let far = (Arc::clone(&socket), Arc::clone(&state), key.1);
                listeners.spawn(back(far, (Arc::clone(&near), from), sender.clone()));
                place.insert(socket)
            }
        };
        let _ = sender.send((Arc::clone(socket), server, bytes[..len].to_vec())).await;
    }
}

/// Takes packets in on the server's side, as long as this is where the browser is.
async fn back(
    (far, state, moves): (Arc<UdpSocket>, Arc<State>, u32),
    (near, to): (Arc<UdpSocket>, SocketAddr),
    sender: Sender<Packet>,
) {
    let mut bytes = [0; 2_048];
    while state.moves.load(Ordering::Relaxed) == moves {
        let Ok((len, _)) = far.recv_from(&mut bytes).await else { continue };
        if state.moves.load(Ordering::Relaxed) != moves {
            return;
        }
        if sender.send((Arc::clone(&near), to, bytes[..len].to_vec())).await.is_err() {
            return;
        }
    }
}

/// A packet in its turn: when it arrives, and its number.
struct Due(Instant, u64, Packet);

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.1 == other.1
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

async fn deliver(way: Way, state: Arc<State>, mut carried: tokio::sync::mpsc::Receiver<Packet>) {
    let mut random = way.seed | 1;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut waiting: BinaryHeap<Reverse<Due>> = BinaryHeap::new();
    let mut number = 0;
    loop {
        let due = waiting.peek().map(|Reverse(Due(at, ..))| *at);
        tokio::select! {
            packet = carried.recv() => {
                let Some(packet) = packet else { return };
                let late = way.jitter.mul_f64((next() % 1_000) as f64 / 1_000.0);
                let lost = next() % 1_000 < way.loss || state.broken.load(Ordering::Relaxed);
                if !lost {
                    number += 1;
                    waiting.push(Reverse(Due(Instant::now() + late, number, packet)));
                }
            }
            () = until(due) => {
                if let Some(Reverse(Due(_, _, (socket, to, bytes)))) = waiting.pop() {
                    let _ = socket.send_to(&bytes, to).await;
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

/// Does what a page asks for.
async fn obey(listener: TcpListener, state: Arc<State>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { return };
        let mut bytes = [0; 1_024];
        let len = stream.read(&mut bytes).await.unwrap_or(0);
        let asked = String::from_utf8_lossy(&bytes[..len]).into_owned();
        let port = asked.strip_prefix("GET /server/").and_then(|rest| rest.split(' ').next()?.parse().ok());
        if let Some(port) = port {
            *state.server.lock().unwrap() = Some(SocketAddr::from(([127, 0, 0, 1], port)));
        } else if asked.starts_with("GET /outage") {
            state.broken.store(true, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(2)).await;
            state.broken.store(false, Ordering::Relaxed);
        } else if asked.starts_with("GET /move") {
            state.moves.fetch_add(1, Ordering::Relaxed);
        }
        let answer = "HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: *\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}
