//! Media streams against made-up services: a yes behind the question books, one over it does not, whatever becomes of
//! the marks. The check of these calls says yes to everything, so only the clock stands between a caller and a wrong
//! booking.

#![expect(clippy::unwrap_used, reason = "a test of its own crate, whose figures are wanted")]

#[expect(dead_code, reason = "others ask for more")]
#[path = "../desk/mod.rs"]
mod desk;
mod service;

use std::net::SocketAddr;
use std::time::Duration;

use desk::{Booked, board};
use futures::{SinkExt, StreamExt};
use sayback_runtime::switchboard::Switchboard;
use sayback_transports::media_stream::{MediaSettings, Service as Vendor, VendorSettings, router};
use serde_json::json;
use service::{Answer, Fault, Lived, Service};
use tokio::net::TcpListener;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::{Error, Message};

const VENDORS: [&str; 5] = ["twilio", "telnyx", "plivo", "vonage", "plain"];
/// Six seconds and a half: the caller's words, the question of a second, the answer, and what comes of it.
const LIFE: i64 = 325;

async fn serve(most: usize) -> (SocketAddr, Switchboard, Booked) {
    let (board, booked) = board(most);
    let vendor = VendorSettings { secret: Some("secret".to_owned()) };
    let names = VENDORS.into_iter().filter_map(Vendor::named);
    let services = names.map(|service| (service, vendor.clone())).collect();
    let settings = MediaSettings { public_url: None, services };
    let app = router(board.clone(), settings);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        use axum::serve::ListenerExt;
        let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
        axum::serve(listener, app).await.unwrap();
    });
    (address, board, booked)
}

/// One call; how often it booked, what the caller lived through, and the event log.
async fn call(vendor: &'static str, fault: Fault, answer: Answer) -> (usize, Lived, String) {
    let (address, board, booked) = serve(4).await;
    let lived = Service::call(address, vendor, fault, answer).await.live(LIFE).await;
    tokio::time::timeout(Duration::from_secs(10), board.calls().none_live()).await.unwrap();
    let id = board.calls().list()[0].call.clone();
    let lines = board.calls().follow(&id, 0).unwrap().lines;
    let log: Vec<String> = lines.iter().map(|news| news.line.to_string()).collect();
    let times = booked.lock().unwrap().len();
    (times, lived, log.join("\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_behind_the_question_books_once_on_every_service() {
    let calls = VENDORS.map(|vendor| call(vendor, Fault::None, Answer::AfterEnd(20)));
    for (vendor, (booked, lived, log)) in VENDORS.iter().zip(futures::future::join_all(calls).await) {
        assert_eq!(booked, 1, "{vendor}: {lived:?}\n{log}");
        assert!(log.contains(r#""evidence":"mark""#), "{vendor}: {log}");
        // Frames sent ahead of their time: the lead of two, and what a busy machine adds.
        assert!(lived.ahead <= 8, "{vendor}: {lived:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_over_the_question_books_nothing_on_any_service() {
    let calls = VENDORS.map(|vendor| call(vendor, Fault::None, Answer::AfterBegin(30)));
    for (vendor, (booked, lived, log)) in VENDORS.iter().zip(futures::future::join_all(calls).await) {
        assert_eq!(booked, 0, "{vendor}: {lived:?}\n{log}");
        assert!(lived.clears > 0 && log.contains(r#""reason":"barge_in""#), "{vendor}: {lived:?}\n{log}");
    }
}

const FAULTS: [Fault; 9] = [
    Fault::LateMarks(15),
    Fault::LateMarks(60),
    Fault::MarksTwice,
    Fault::NoMarks,
    Fault::MarksAtOnce,
    Fault::MadeUpMarks,
    Fault::Burst(60),
    Fault::Disorder,
    Fault::Loss,
];

#[tokio::test(flavor = "multi_thread")]
async fn no_fault_of_the_marks_makes_an_early_yes_count() {
    for over in [Answer::AfterBegin(10), Answer::AfterBegin(52)] {
        let calls = FAULTS.map(|fault| call("twilio", fault, over));
        for (fault, (booked, lived, log)) in FAULTS.iter().zip(futures::future::join_all(calls).await) {
            // Judged by the caller's own clock: the answer began before the last sound was in the ear.
            let early = lived.answered.zip(lived.ended).is_some_and(|(answered, ended)| answered <= ended);
            assert!(early, "{fault:?}: {lived:?}");
            assert_eq!(booked, 0, "{fault:?} {over:?}: {lived:?}\n{log}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_faults_leave_of_a_late_yes() {
    let late = Answer::AfterEnd(40);
    let faults = [Fault::LateMarks(15), Fault::MarksTwice, Fault::MadeUpMarks, Fault::Loss];
    let calls = faults.map(|fault| call("twilio", fault, late));
    for (fault, (booked, lived, log)) in faults.iter().zip(futures::future::join_all(calls).await) {
        assert_eq!(booked, 1, "{fault:?}: {lived:?}\n{log}");
    }
    // Sound out of order is put back by the dialect whose service says that it may be.
    let (booked, lived, log) = call("telnyx", Fault::Disorder, late).await;
    assert_eq!(booked, 1, "{lived:?}\n{log}");
    // Unknown is not heard.
    let (booked, _, log) = call("twilio", Fault::NoMarks, late).await;
    assert!(booked == 0 && !log.contains("question.heard"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_held_to_the_same_end_of_the_question() {
    let keys = [Answer::KeyAfterEnd(40), Answer::KeyAfterBegin(30)];
    let calls = keys.map(|key| call("twilio", Fault::None, key));
    let results = futures::future::join_all(calls).await;
    assert_eq!(results[0].0, 1, "{:?}\n{}", results[0].1, results[0].2);
    assert_eq!(results[1].0, 0, "{:?}\n{}", results[1].1, results[1].2);
}

async fn refusal(url: String) -> u16 {
    match connect_async(url).await {
        Err(Error::Http(response)) => response.status().as_u16(),
        other => panic!("no refusal: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_proof_nothing_is_opened() {
    let (address, board, _) = serve(1).await;
    for vendor in VENDORS {
        assert_eq!(refusal(format!("ws://{address}/v1/media/{vendor}")).await, 403);
        assert_eq!(refusal(format!("ws://{address}/v1/media/{vendor}?token=guess")).await, 403);
    }
    assert_eq!(refusal(format!("ws://{address}/v1/media/other?token=secret")).await, 404);
    assert_eq!(board.calls().taken(), 0);
}

/// Sends some messages and gives the code and the reason of the close that comes back.
async fn closed_by(address: SocketAddr, vendor: &str, messages: Vec<Message>) -> (u16, String) {
    let url = format!("ws://{address}/v1/media/{vendor}?token=secret");
    let (mut socket, _) = connect_async(url).await.unwrap();
    for message in messages {
        if socket.send(message).await.is_err() {
            break;
        }
    }
    let close = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(Some(close)))) => {
                    return (close.code.into(), close.reason.to_string());
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return (0, "broken off".to_owned()),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), close).await.unwrap()
}

fn text(value: serde_json::Value) -> Message {
    Message::Text(value.to_string().into())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_far_end_is_closed_with_a_reason_and_leaves_nothing_behind() {
    let (address, board, _) = serve(2).await;
    let start = || text(json!({ "event": "start", "to": "100", "encoding": "l16", "rate": 16000 }));
    let sound = |n: u64| {
        let mut bytes = (n * 320).to_le_bytes().to_vec();
        bytes.extend([7; 640]);
        Message::Binary(bytes.into())
    };
    let many = |most: u64, of: &dyn Fn(u64) -> Message| -> Vec<Message> {
        std::iter::once(start()).chain((0..most).map(of)).collect()
    };
    let cases = [
        (vec![text(json!({ "event": "start", "encoding": "opus", "rate": 48000 }))], 1007),
        (vec![Message::Text("{".into())], 1007),
        (vec![text(json!({ "no": "event" }))], 1007),
        (vec![text(json!({ "event": "unheard of" }))], 1007),
        (vec![sound(0)], 1008),
        (vec![start(), start()], 1007),
        (vec![start(), Message::Binary(vec![1, 2, 3].into())], 1007),
        (vec![text(json!({ "event": "start", "to": "nobody" }))], 1013),
        (many(2_000, &sound), 1008),
        (many(3_000, &|n| text(json!({ "event": "played", "name": n.to_string() }))), 1008),
        (vec![start(), Message::Text("x".repeat(70_000).into())], 1008),
    ];
    for (messages, code) in cases {
        let first = format!("{:?}", messages.last()).chars().take(80).collect::<String>();
        let (closed, reason) = closed_by(address, "plain", messages).await;
        // A far end that goes on sending may see the connection reset before the close.
        assert!(closed == code || closed == 0, "{first}: {closed} {reason}");
        assert!(!reason.is_empty(), "{first}");
    }
    tokio::time::timeout(Duration::from_secs(5), board.calls().none_live()).await.unwrap();
    let (booked, ..) = call("plain", Fault::None, Answer::AfterEnd(20)).await;
    assert_eq!(booked, 1, "a whole call works after it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_says_so_and_the_next_call_is_taken() {
    let (address, board, _) = serve(1).await;
    let first = Service::call(address, "plain", Fault::None, Answer::AfterEnd(1)).await;
    let living = tokio::spawn(first.live(100));
    while board.calls().live() == 0 {
        tokio::task::yield_now().await;
    }
    let start = text(json!({ "event": "start", "to": "100", "encoding": "l16", "rate": 16000 }));
    let (code, reason) = closed_by(address, "plain", vec![start]).await;
    assert!(code == 1013 && reason.contains("places are taken"), "{code} {reason}");
    living.await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), board.calls().none_live()).await.unwrap();
    assert_eq!(board.refused(), 1);
}

/// A telephone system with a caller: it plays what it gets at once, and knows what its ear has heard.
async fn audio_socket_call(address: SocketAddr, answer_after_end: Option<i64>) -> (bool, u8) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut hello = vec![0x01, 0, 16];
    hello.extend([7; 16]);
    stream.write_all(&hello).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let (sender, mut packets) = tokio::sync::mpsc::channel(64);
    tokio::spawn(async move {
        let mut header = [0; 3];
        while reader.read_exact(&mut header).await.is_ok() {
            let mut payload = vec![0; usize::from(u16::from_be_bytes([header[1], header[2]]))];
            if reader.read_exact(&mut payload).await.is_err()
                || sender.send((header[0], payload)).await.is_err()
            {
                return;
            }
        }
    });
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let (mut began, mut ended, mut answered, mut last) = (None, None, None, 0xee);
    for now in 0..LIFE {
        ticks.tick().await;
        while let Ok((kind, payload)) = packets.try_recv() {
            last = kind;
            let loud = payload.chunks_exact(2).any(|pair| i16::from_le_bytes([pair[0], pair[1]]).abs() > 300);
            if kind == 0x10 && loud {
                began.get_or_insert(now);
                if answered.is_none() {
                    ended = Some(now);
                }
            }
        }
        let due = match answer_after_end {
            Some(after) => ended.filter(|ended| now > ended + 5).map(|ended| ended + after),
            None => began.map(|began| began + 30),
        };
        if answered.is_none() && due.is_some_and(|due| now >= due) {
            answered = Some(now);
        }
        let speaks = (15..40).contains(&now) || answered.is_some_and(|from| now < from + 20);
        let level = if speaks { 9_000.0 } else { 0.0 };
        let mut packet = vec![0x10, 1, 64];
        packet.extend((0..160).flat_map(|n| (((n as f32 * 0.3).sin() * level) as i16).to_le_bytes()));
        if writer.write_all(&packet).await.is_err() {
            break;
        }
    }
    let _ = writer.write_all(&[0, 0, 0]).await;
    (answered.is_some(), last)
}

#[tokio::test(flavor = "multi_thread")]
async fn audio_socket_books_on_a_yes_behind_the_question_only() {
    for (answer, expected) in [(Some(30), 1), (None, 0)] {
        let (board, booked) = board(1);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving =
            tokio::spawn(sayback_transports::media_stream::serve_audio_socket(listener, board.clone()));
        let (answered, last) = audio_socket_call(address, answer).await;
        assert!(answered && last == 0x10, "{answer:?} {last}");
        tokio::time::timeout(Duration::from_secs(10), board.calls().none_live()).await.unwrap();
        assert_eq!(booked.lock().unwrap().len(), expected, "{answer:?}");
        serving.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn audio_socket_closes_on_what_makes_no_sense() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (board, _) = board(1);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(sayback_transports::media_stream::serve_audio_socket(listener, board.clone()));
    let mut hello = vec![0x01, 0, 16];
    hello.extend([7; 16]);
    let mut flood = hello.clone();
    flood.extend(
        (0..1_000).flat_map(|_| [0x10_u8, 0x1f, 0x40].into_iter().chain(std::iter::repeat_n(1, 8_000))),
    );
    let cases = [
        vec![0x01, 0, 3, 1, 2, 3],
        vec![0x10, 0, 2, 0, 0],
        vec![0x10, 0xff, 0xff],
        [hello, vec![0x77, 0, 0]].concat(),
        flood,
    ];
    for bytes in cases {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        // The server may close before all of it is written.
        let _ = stream.write_all(&bytes).await;
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "{:?}", &bytes[..bytes.len().min(24)]);
    }
    tokio::time::timeout(Duration::from_secs(5), board.calls().none_live()).await.unwrap();
}
