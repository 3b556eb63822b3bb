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
#[path = "load/outside.rs"]
mod outside;
#[path = "load/reference.rs"]
mod reference;

use std::net::SocketAddr;
use std::time::Duration;

use measure::{Waits, cost, over, pin, runtime, usage, vad};
use outside::{Calls, growth};
use sayback_media::codec::CodecKind;
use sayback_runtime::switchboard::Switchboard;
use sayback_transports::sip::{Listen, SipOptions, SipServer, SipTransport};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    if let Some(calls) = Calls::of(&arguments) {
        return runtime().block_on(caller::callers(calls));
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
        let length = Duration::from_millis(300);
        growth(&Calls { server: address, calls: short, length, at_once: 40 }).await;
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

/// Holds so many calls at once and prints what they cost.
async fn load(address: SocketAddr, calls: u64, seconds: u64, board: Option<&Switchboard>) {
    let waits = board.map(Waits::of);
    let (_, empty) = usage();
    let child =
        Calls { server: address, calls, length: Duration::from_secs(seconds + 8), at_once: calls }.start();
    match board {
        Some(board) => {
            while (board.calls().live() as u64) < calls {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        None => tokio::time::sleep(Duration::from_secs(4)).await,
    }
    println!("  {calls} calls, {seconds} s");
    cost(calls, seconds, empty).await;
    if let Some(waits) = waits {
        waits.print();
    }
    over(child).await;
}
