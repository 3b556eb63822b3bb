//! How many calls one core carries: media streams with voice activity detection and a made-up model, recogniser and
//! voice, so that what is left is ours.
//!
//! ```text
//! cargo bench -p sayback-transports --features media-stream --bench calls -- 50 30
//! ```
//!
//! opens 50 calls for 30 seconds. The server is this process, on the first core; the callers are another one, on the
//! second, and it is they who say what came late. Silero is used where `SAYBACK_MODELS` has it, else the light model.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on says so")]
#![expect(clippy::print_stdout, reason = "a bench prints")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

#[expect(dead_code, reason = "others ask for more")]
#[path = "../tests/desk/mod.rs"]
mod desk;
#[expect(dead_code, reason = "what callers wait for is measured by themselves here")]
#[path = "load/measure.rs"]
mod measure;

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::{SinkExt, StreamExt};
use measure::{cost, over, pin, runtime, usage, vad};
use sayback_media::noise::WhiteNoise;
use sayback_media::telephone::mulaw_encode;
use sayback_transports::media_stream::{MediaSettings, Service, VendorSettings, router};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    if arguments.first().is_some_and(|first| first == "callers") {
        let number = |at: usize| arguments[at].parse().unwrap();
        runtime().block_on(callers(arguments[1].parse().unwrap(), number(2), number(3)));
        return;
    }
    let number = |at: usize, or: u64| arguments.get(at).and_then(|a| a.parse().ok()).unwrap_or(or);
    // Without figures this is a test run of all benches: a short one.
    let (calls, seconds) = (number(0, 4), number(1, 4));
    pin(std::process::id(), "0");
    runtime().block_on(server(calls, seconds));
}

async fn server(calls: u64, seconds: u64) {
    let (vad, name) = vad();
    let (board, _) = desk::board_with(usize::try_from(calls).unwrap(), vad);
    let services = [(Service::Twilio, VendorSettings { secret: None })].into();
    let routes = router(board.clone(), MediaSettings { public_url: None, services });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        use axum::serve::ListenerExt;
        let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
        axum::serve(listener, routes).await.unwrap();
    });
    let (_, empty) = usage();
    let me = std::env::current_exe().unwrap();
    let total = (seconds + 5).to_string();
    let callers =
        Command::new(me).args(["callers", &address.to_string(), &calls.to_string(), &total]).spawn().unwrap();
    pin(callers.id(), "1");
    while (board.calls().live() as u64) < calls {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    println!("{calls} calls, {seconds} s, voice activity by {name}");
    cost(calls, seconds, empty).await;
    over(callers).await;
}

/// What one caller met with.
#[derive(Default)]
struct Met {
    frames: u64,
    late: u64,
    latest: Duration,
    answers: Vec<Duration>,
}

async fn callers(address: SocketAddr, calls: u64, seconds: u64) {
    let each = (0..calls).map(|n| tokio::spawn(caller(address, n, seconds)));
    let met: Vec<Met> =
        futures::future::join_all(each).await.into_iter().map(|caller| caller.unwrap()).collect();
    let sum = |of: fn(&Met) -> u64| met.iter().map(of).sum::<u64>();
    let mut answers: Vec<Duration> = met.iter().flat_map(|met| met.answers.iter().copied()).collect();
    answers.sort();
    let at = |percent: usize| answers.get((answers.len() * percent / 100).min(answers.len().max(1) - 1));
    let latest = met.iter().map(|met| met.latest).max().unwrap_or_default();
    println!("frames to the callers   {}", sum(|met| met.frames));
    println!("later than 20 ms        {} (latest {} ms)", sum(|met| met.late), latest.as_millis());
    println!("answer after the end of speech, median {:?}, p95 {:?}", at(50), at(95));
}

/// What callers say: a recording at 8 kHz.
fn words() -> Vec<f32> {
    let file =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/audio/yes-please-phone.wav");
    let clip = sayback_media::read_audio(&file).unwrap();
    sayback_media::resample::resample(&clip.mixed_down(), clip.rate, 8_000).unwrap()
}

/// Noise, and a few words every six seconds; each caller begins at another time.
async fn caller(address: SocketAddr, number: u64, seconds: u64) -> Met {
    let (mut socket, _) = connect_async(format!("ws://{address}/v1/media/twilio")).await.unwrap();
    let start = json!({ "event": "start", "streamSid": "MZ1", "start": { "streamSid": "MZ1", "callSid": "CA1",
        "mediaFormat": { "encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1 } } });
    socket.send(Message::Text(start.to_string().into())).await.unwrap();
    let (words, mut noise) = (words(), WhiteNoise::new(number + 1));
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let (mut met, mut last, mut ended) = (Met::default(), None::<Instant>, None::<Instant>);
    let mut frame: u64 = 0;
    while frame < seconds * 50 {
        tokio::select! {
            _ = ticks.tick() => {
                let phase = (frame + number * 37) % 300;
                let at = usize::try_from(phase).unwrap() * 160;
                if at >= words.len() && at < words.len() + 160 {
                    ended = Some(Instant::now());
                }
                let word = |n: usize| words.get(at + n).copied().unwrap_or(0.0);
                let samples = noise.samples(160, -65.0);
                let bytes: Vec<u8> =
                    samples.iter().enumerate().map(|(n, s)| mulaw_encode(((s + word(n)) * 32_767.0) as i16)).collect();
                let media = json!({ "event": "media", "streamSid": "MZ1", "media": { "track": "inbound",
                    "timestamp": (frame * 20).to_string(), "payload": STANDARD.encode(bytes) } });
                socket.send(Message::Text(media.to_string().into())).await.unwrap();
                frame += 1;
            }
            message = socket.next() => {
                let Some(Ok(Message::Text(text))) = message else { break };
                let value: Value = serde_json::from_str(&text).unwrap();
                match value["event"].as_str() {
                    Some("media") => {
                        let now = Instant::now();
                        if let Some(ended) = ended.take() {
                            met.answers.push(now - ended);
                        }
                        met.frames += 1;
                        // A gap of less than 300 ms is inside an utterance.
                        let gap = last.map(|last| now - last).filter(|gap| *gap < Duration::from_millis(300));
                        let late = gap.unwrap_or_default().saturating_sub(Duration::from_millis(20));
                        met.late += u64::from(late > Duration::from_millis(20));
                        met.latest = met.latest.max(late);
                        last = Some(now);
                    }
                    Some("mark") => {
                        last = None;
                        socket.send(Message::Text(text)).await.unwrap();
                    }
                    _ => last = None,
                }
            }
        }
    }
    met
}
