//! How many telephone calls one core carries: G.711 over RTP with voice activity detection and a made-up model,
//! recogniser and voice, so that what is left is ours.
//!
//! ```text
//! cargo bench -p sayback-transports --features sip,media-stream --bench sip_calls -- 50 20 500
//! ```
//!
//! opens 50 calls for 20 seconds, and then makes 500 short ones to see whether anything is left of them. The server is
//! this process, on the first core; the callers are another one, on the second, and it is they who say what came late.
//! Beside it, in the same run, a reference: a server that knows no more of SIP than to answer, and sends silence at its
//! pace. What it cannot keep, this machine cannot keep. Silero is used where `SAYBACK_MODELS` has it, else the light
//! model.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on says so")]
#![expect(clippy::print_stdout, reason = "a bench prints")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

#[path = "load/caller.rs"]
mod caller;
#[expect(dead_code, reason = "others ask for more")]
#[path = "../tests/desk/mod.rs"]
mod desk;
#[path = "load/measure.rs"]
mod measure;
#[path = "load/reference.rs"]
mod reference;

use std::net::SocketAddr;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use measure::{Waits, over, pin, runtime, slope, usage, vad};
use sayback_media::codec::CodecKind;
use sayback_runtime::switchboard::Switchboard;
use sayback_transports::sip::{Listen, SipOptions, SipServer, SipTransport};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    if arguments.first().is_some_and(|first| first == "callers") {
        let number = |at: usize| arguments[at].parse().unwrap();
        let address = arguments[1].parse().unwrap();
        runtime().block_on(caller::callers(address, number(2), Duration::from_millis(number(3)), number(4)));
        return;
    }
    let number = |at: usize, or: u64| arguments.get(at).and_then(|a| a.parse().ok()).unwrap_or(or);
    // Without figures this is a test run of all benches: a short one.
    let (calls, seconds, short) = (number(0, 4), number(1, 4), number(2, 20));
    pin(std::process::id(), "0");
    runtime().block_on(async {
        println!("reference: answers, and sends silence");
        load(reference::start().await, calls, seconds, None).await;
        let (vad, name) = vad();
        let (board, _) = desk::board_with(usize::try_from(calls.max(64)).unwrap(), vad);
        let (server, address) = serve(board.clone()).await;
        println!("sayback: voice activity by {name}");
        load(address, calls, seconds, Some(&board)).await;
        growth(address, &board, short).await;
        server.stop().await;
    });
}

async fn serve(board: Switchboard) -> (SipServer, SocketAddr) {
    let listen = vec![Listen { transport: SipTransport::Udp, address: "127.0.0.1:0".parse().unwrap() }];
    let options = SipOptions {
        listen,
        media_ports: 20_000..=29_999,
        codecs: vec![CodecKind::Pcmu],
        ..SipOptions::default()
    };
    let server = SipServer::start(options, board).await.unwrap();
    let address = server.listening()[0].address;
    (server, address)
}

/// Another process that calls `calls` times, `at_once` of them at the same time.
fn callers(address: SocketAddr, calls: u64, length: Duration, at_once: u64) -> Child {
    let me = std::env::current_exe().unwrap();
    let length = length.as_millis().to_string();
    let child = Command::new(me)
        .args(["callers", &address.to_string(), &calls.to_string(), &length, &at_once.to_string()])
        .spawn()
        .unwrap();
    pin(child.id(), "1");
    child
}

/// Holds so many calls at once and prints what they cost.
async fn load(address: SocketAddr, calls: u64, seconds: u64, board: Option<&Switchboard>) {
    let waits = board.map(Waits::of);
    let (_, empty) = usage();
    let child = callers(address, calls, Duration::from_secs(seconds + 8), calls);
    match board {
        Some(board) => {
            while (board.calls().live() as u64) < calls {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        None => tokio::time::sleep(Duration::from_secs(4)).await,
    }
    let (before, _) = usage();
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let (after, full) = usage();
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    println!("  {calls} calls, {seconds} s");
    println!("  CPU per session-minute  {:.3} s", (after - before) / minutes / calls as f64);
    println!("  of one core             {:.0} %", (after - before) / minutes / 60.0 * 100.0);
    println!("  memory per call         {:.2} MB (base {empty:.1} MB)", (full - empty) / calls as f64);
    if let Some(waits) = waits {
        let (median, p95, count) = waits.result();
        println!("  first audio behind the sentence, median {median:.1} ms, p95 {p95:.1} ms ({count} times)");
    }
    over(child).await;
}

/// Many short calls one after the other: what each leaves behind, by a line through the second half of the figures.
async fn growth(address: SocketAddr, board: &Switchboard, calls: u64) {
    let (_, before) = usage();
    let child = callers(address, calls, Duration::from_millis(300), 40);
    let mut points: Vec<(f64, f64)> = Vec::new();
    let done = tokio::spawn(over(child));
    let first = board.calls().list().len() as u64;
    while !done.is_finished() {
        tokio::time::sleep(Duration::from_millis(500)).await;
        points.push((points.len() as f64, usage().1));
    }
    let (_, after) = usage();
    let half = &points[points.len() / 2..];
    let per_call = slope(half) * points.len() as f64 / calls as f64 * 1_024.0;
    println!("{calls} short calls (after {first}): {before:.1} MB before, {after:.1} MB after");
    println!("  growth in the second half {per_call:.3} KB a call");
}
