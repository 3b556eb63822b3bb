//! How many calls from browsers one core carries: ICE, DTLS, SRTP and Opus for each, with voice activity detection and a
//! made-up model, recogniser and voice, so that what is left is ours and the stack's.
//!
//! ```text
//! cargo bench -p sayback-transports --features media-stream,webrtc --bench webrtc_calls -- 100 30 200
//! ```
//!
//! opens 100 calls for 30 seconds, and then makes 200 short ones to see whether anything is left of them. The server is
//! this process, on the first core; the callers are another one, on the second, with the same stack, and say what came
//! late. They send what was coded once, and decode nothing.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on says so")]
#![expect(clippy::print_stdout, reason = "a bench prints")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

#[expect(dead_code, reason = "others ask for more")]
#[path = "../tests/desk/mod.rs"]
mod desk;
#[expect(dead_code, reason = "the tests talk over a channel too, and look for other ways")]
#[path = "../tests/webrtc/far_end.rs"]
mod far_end;
#[path = "load/measure.rs"]
mod measure;
#[path = "load/outside.rs"]
mod outside;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use far_end::FarEnd;
use measure::{Waits, cost, over, pin, runtime, usage, vad};
use outside::{CYCLE, Calls, Met, growth};
use sayback_media::codec::CodecKind;
use sayback_media::noise::WhiteNoise;
use sayback_media::rtp::send::{Outbound, SendFormat, StreamStart};
use sayback_runtime::switchboard::Switchboard;
use sayback_transports::webrtc::{WebRtcOffer, WebRtcOptions, WebRtcServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    if let Some(calls) = Calls::of(&arguments) {
        return runtime().block_on(callers(calls));
    }
    let number = |at: usize, or: u64| arguments.get(at).and_then(|a| a.parse().ok()).unwrap_or(or);
    // Without figures this is a test run of all benches: a short one.
    let (calls, seconds, short) = (number(0, 2), number(1, 3), number(2, 4));
    pin(std::process::id(), "0");
    runtime().block_on(async {
        let (vad, name) = vad();
        let (board, _) = desk::board_with(usize::try_from(calls.max(64)).unwrap(), vad);
        let address = serve(board.clone()).await;
        println!("sayback: voice activity by {name}");
        load(address, calls, seconds, &board).await;
        let length = Duration::from_millis(400);
        growth(&Calls { server: address, calls: short, length, at_once: 10 }).await;
    });
}

/// Takes offers over plain TCP, and answers them; what hangs up is a connection that is closed.
async fn serve(board: Switchboard) -> SocketAddr {
    let options = WebRtcOptions { bind: vec!["127.0.0.1".parse().unwrap()], ..WebRtcOptions::default() };
    let server = WebRtcServer::new(options, board);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let server = server.clone();
            tokio::spawn(async move {
                let mut length = [0; 4];
                stream.read_exact(&mut length).await.unwrap();
                let mut sdp = vec![0; u32::from_be_bytes(length) as usize];
                stream.read_exact(&mut sdp).await.unwrap();
                let sdp = String::from_utf8(sdp).unwrap();
                let offer = WebRtcOffer { sdp, to: "desk".to_owned(), ..WebRtcOffer::default() };
                let opened = server.offer(offer).await.unwrap();
                stream.write_all(&(opened.answer.len() as u32).to_be_bytes()).await.unwrap();
                stream.write_all(opened.answer.as_bytes()).await.unwrap();
                let _ = stream.read(&mut [0]).await;
                server.end(&opened.id).await;
            });
        }
    });
    address
}

/// How what comes keeps its pace, against the packet that came soonest.
#[derive(Default)]
struct Pace {
    met: Met,
    soonest: Option<i64>,
    first: Option<u32>,
}

impl Pace {
    fn take(&mut self, timestamp: u32, since: Duration) {
        let first = *self.first.get_or_insert(timestamp);
        let played = i64::from(timestamp.wrapping_sub(first)) * 1_000 / 48;
        let behind = since.as_micros() as i64 - played;
        let least = self.soonest.map_or(behind, |least| least.min(behind));
        self.soonest = Some(least);
        let late = Duration::from_micros((behind - least).unsigned_abs());
        self.met.frames += 1;
        self.met.late += u64::from(late > Duration::from_millis(20));
        self.met.latest = self.met.latest.max(late);
    }
}

/// Makes the calls.
async fn callers(calls: Calls) {
    let (sound, server, length) = (Arc::new(sound()), calls.server, calls.length);
    let call = |number| {
        let sound = Arc::clone(&sound);
        async move { call(server, number, length, &sound).await }
    };
    // Not all in the same millisecond: a handshake costs more than a second of sound.
    calls.make(Duration::from_millis(60), call).await;
}

/// Noise, and a few words in each six seconds, as packets of Opus.
fn sound() -> Vec<Vec<u8>> {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/audio/yes-please.wav");
    let clip = sayback_media::read_audio(&file).unwrap();
    let words = sayback_media::resample::resample(&clip.mixed_down(), clip.rate, 48_000).unwrap();
    let noise = WhiteNoise::new(7).samples(CYCLE * 960, -65.0);
    let format = SendFormat { codec: CodecKind::Opus, payload_type: 111, ptime_ms: 20, events: None };
    let mut coder = Outbound::new(format, StreamStart { ssrc: 1, timestamp: 0, sequence: 0 }).unwrap();
    let mut packets = Vec::new();
    for frame in 0..CYCLE {
        let mixed = |n: usize| noise[n] + words.get(n).copied().unwrap_or(0.0);
        let samples: Vec<f32> = (frame * 960..(frame + 1) * 960).map(mixed).collect();
        coder.push(&samples, |packet| packets.push(packet.to_vec())).unwrap();
    }
    packets
}

async fn call(server: SocketAddr, number: u64, length: Duration, sound: &[Vec<u8>]) -> Met {
    let pace = Arc::new(Mutex::new(Pace::default()));
    let (heard, began) = (Arc::clone(&pace), Instant::now());
    let ear: far_end::Ear = Box::new(move |bytes, is_report, at| {
        let timestamp =
            bytes.get(4..8).filter(|_| !is_report).map(|t| u32::from_be_bytes(t.try_into().unwrap()));
        if let Some(timestamp) = timestamp {
            heard.lock().unwrap().take(timestamp, at.saturating_duration_since(began));
        }
    });
    let ssrc = number as u32 + 1;
    let (mut far, offer) = FarEnd::offer(ssrc, None, ear).await;
    let mut stream = TcpStream::connect(server).await.unwrap();
    stream.write_all(&(offer.len() as u32).to_be_bytes()).await.unwrap();
    stream.write_all(offer.as_bytes()).await.unwrap();
    let mut answer = vec![0; stream.read_u32().await.unwrap_or(0) as usize];
    let answered = stream.read_exact(&mut answer).await.is_ok() && !answer.is_empty();
    if !answered || !far.connect(String::from_utf8(answer).unwrap()).await {
        far.close().await;
        return Met { refused: 1, ..Met::default() };
    }
    let mut ticks = interval(Duration::from_millis(20));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for sent in 0..(length.as_millis() / 20) as u64 {
        ticks.tick().await;
        // Each begins at another place.
        let mut packet = sound[(sent + number * 37) as usize % sound.len()].clone();
        packet[2..4].copy_from_slice(&(sent as u16).to_be_bytes());
        packet[4..8].copy_from_slice(&((sent * 960) as u32).to_be_bytes());
        packet[8..12].copy_from_slice(&ssrc.to_be_bytes());
        far.send(&packet).await;
    }
    drop(stream);
    far.close().await;
    std::mem::take(&mut pace.lock().unwrap().met)
}

/// Holds so many calls at once and prints what they cost.
async fn load(address: SocketAddr, calls: u64, seconds: u64, board: &Switchboard) {
    let waits = Waits::of(board);
    let (idle, empty) = usage();
    // Handshakes first, one after the other, then all of them together.
    let opening = Duration::from_millis(calls * 150 + 5_000);
    let length = opening + Duration::from_secs(seconds);
    let child = Calls { server: address, calls, length, at_once: calls }.start();
    let until = Instant::now() + opening;
    while (board.calls().live() as u64) < calls && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("  {calls} calls, {seconds} s; {} are on", board.calls().live());
    println!("  CPU to open one         {:.3} s", (usage().0 - idle) / calls as f64);
    tokio::time::sleep(Duration::from_secs(2)).await;
    cost(calls, seconds, empty).await;
    waits.print();
    over(child).await;
}
