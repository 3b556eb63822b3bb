//! What nobody should send to the port of a call from a browser: the call, and the next one, go on; nothing panics and
//! nothing grows. `SAYBACK_TORTURE=FOLDER` adds datagrams from files. And calls whose way breaks, in `restarts`,
//! or loses, in `resends`.

#![cfg(feature = "webrtc")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate")]
#![expect(clippy::disallowed_methods, reason = "the caller has a clock")]

#[expect(dead_code, reason = "others ask for more")]
#[path = "../desk/mod.rs"]
mod desk;
mod far_end;
mod resends;
mod restarts;
mod scene;
mod way;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use far_end::FarEnd;
use sayback_media::Earshot;
use sayback_runtime::switchboard::Switchboard;
use sayback_transports::webrtc::{WebRtcOffer, WebRtcOptions, WebRtcServer};
use tokio::net::UdpSocket;

/// Nothing takes longer, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics of every thread from now on, beside telling them.
fn count_panics() -> usize {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |what| {
            PANICS.fetch_add(1, Ordering::Relaxed);
            usual(what);
        }));
    });
    PANICS.load(Ordering::Relaxed)
}

fn server() -> (WebRtcServer, Switchboard) {
    let (board, _) = desk::board_with(16, Arc::new(|| Box::new(Earshot::default()) as _));
    let options = WebRtcOptions { bind: vec!["127.0.0.1".parse().unwrap()], ..WebRtcOptions::default() };
    (WebRtcServer::new(options, board.clone()), board)
}

/// A caller whose sound flows.
struct Caller {
    far: FarEnd,
    id: String,
    /// Where the server hears it, and the ICE name there.
    port: SocketAddr,
    name: String,
    heard: Arc<AtomicU64>,
}

impl Caller {
    async fn call(server: &WebRtcServer, label: Option<&str>) -> Self {
        let heard = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&heard);
        let ear: far_end::Ear = Box::new(move |_, is_report, _| {
            count.fetch_add(u64::from(!is_report), Ordering::Relaxed);
        });
        let (mut far, sdp) = FarEnd::offer(7, label, ear).await;
        let opened = server.offer(WebRtcOffer { sdp, to: "desk".to_owned(), ..WebRtcOffer::default() }).await;
        let opened = opened.unwrap();
        let line =
            |start: &str| opened.answer.lines().find_map(|line| line.strip_prefix(start)).unwrap().trim();
        let candidate: Vec<&str> = line("a=candidate:").split(' ').collect();
        let port = format!("{}:{}", candidate[4], candidate[5]).parse().unwrap();
        let name = line("a=ice-ufrag:").to_owned();
        assert!(far.connect(opened.answer.clone()).await, "{}", opened.answer);
        Self { far, id: opened.id, port, name, heard }
    }

    /// Waits until sound comes that did not come before.
    async fn hears(&self) {
        let before = self.heard.load(Ordering::Relaxed);
        let until = Instant::now() + LIMIT;
        while self.heard.load(Ordering::Relaxed) < before + 25 {
            assert!(Instant::now() < until, "no sound comes any more");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The same numbers each time.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }
}

/// A STUN attribute, padded.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.extend((value.len() as u16).to_be_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A STUN message of a kind, with attributes.
fn stun(kind: u16, attributes: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.extend((attributes.len() as u16).to_be_bytes());
    bytes.extend([0x21, 0x12, 0xa4, 0x42]);
    bytes.extend(*b"not-a-secret");
    bytes.extend(attributes);
    bytes
}

/// A packet of sound, as far as its head goes.
const SOUND: [u8; 72] = {
    let mut bytes = [0xfc; 72];
    let head = [0x80, 111, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7];
    let mut at = 0;
    while at < head.len() {
        bytes[at] = head[at];
        at += 1;
    }
    bytes
};

/// Datagrams of our own making that look right at the first glance, for a call with that ICE name.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let user = attribute(0x0006, format!("{name}:abcd").as_bytes());
    let forged = [&user[..], &attribute(0x0024, &[0, 0, 0, 1]), &attribute(0x0008, &[0; 20])].concat();
    let marked = [&forged[..], &attribute(0x8028, &[0; 4])].concat();
    let hello = {
        let mut body = vec![0xfe, 0xfd];
        body.extend([7; 32]);
        body.extend([0, 0, 0, 2, 0xc0, 0x2b, 1, 0]);
        let length = body.len() as u8;
        let mut record = vec![22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, length + 12];
        record.extend([1, 0, 0, length, 0, 0, 0, 0, 0, 0, 0, length]);
        record.extend(body);
        record
    };
    let sound = SOUND;
    vec![
        stun(0x0001, &user),
        stun(0x0001, &forged),
        stun(0x0001, &marked),
        stun(0x0101, &forged),
        stun(0x0111, &attribute(0x0009, &[0, 0, 4, 87, b'r'])),
        stun(0x0011, &[]),
        stun(0x0001, &attribute(0x0006, &[b'a'; 600])),
        hello,
        vec![21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 2, 40],
        vec![23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 1, 0xff, 0xff],
        vec![20, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1],
        sound.to_vec(),
        [&[0x9f, 0xff][..], &sound[2..]].concat(),
        [&[0xb0, 0x6f][..], &sound[2..12], &[0xbe, 0xde, 0xff, 0xff]].concat(),
        vec![0x81, 200, 0, 6, 0, 0, 0, 7, 0, 0, 0, 0],
        vec![0x80, 203, 0, 1, 0, 0, 0, 7],
        vec![0x81, 205, 0xff, 0xff, 0, 0, 0, 7, 0, 0, 0, 0],
        Vec::new(),
        vec![0],
        vec![0xff; 1_400],
    ]
}

/// One of them with something wrong.
fn mutated(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.next(4) {
        let at = random.next(bytes.len());
        match random.next(5) {
            0 if !bytes.is_empty() => bytes[at] = random.next(256) as u8,
            1 if !bytes.is_empty() => bytes[at] ^= 1 << random.next(8),
            2 => bytes.truncate(at),
            3 => bytes.extend((0..random.next(64)).map(|_| 0xaa)),
            _ => {
                let piece = bytes.get(at..).unwrap_or_default().to_vec();
                bytes.extend(piece.iter().take(200));
            }
        }
    }
    bytes.truncate(1_500);
    bytes
}

/// Datagrams in files, if a folder is named.
fn files(folder: &Path, found: &mut Vec<Vec<u8>>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.len() <= 60_000
        {
            found.push(bytes);
        }
    }
}

/// Resident memory in MB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok()).unwrap_or_default() / 1_024.0
}

/// Throws so many datagrams at a call from strangers' addresses.
async fn throw(caller: &Caller, corpus: &[Vec<u8>], many: usize, random: &mut Random) {
    let strangers =
        [UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap()];
    for number in 0..many {
        let seed = &corpus[random.next(corpus.len())];
        let bytes = if number % 4 == 0 { seed.clone() } else { mutated(seed, random) };
        let _ = strangers[number % 2].send_to(&bytes, caller.port).await;
        if number % 50 == 0 {
            // Not all of it into a full queue.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_stranger_sends_to_a_calls_port_ends_it_or_stays() {
    let panics = count_panics();
    let (server, board) = server();
    let caller = Caller::call(&server, Some("sayback")).await;
    caller.hears().await;
    let mut corpus = seeds(&caller.name);
    if let Some(folder) = std::env::var_os("SAYBACK_TORTURE") {
        for kind in ["stun", "rtp", "rtcp", "srtp"] {
            files(&Path::new(&folder).join(kind), &mut corpus);
        }
    }
    let mut random = Random(0x5eed);
    throw(&caller, &corpus, 4_000, &mut random).await;
    let before = resident();
    for _ in 0..4 {
        throw(&caller, &corpus, 4_000, &mut random).await;
        caller.hears().await;
    }
    let grown = resident() - before;
    println!("{} seeds, 20,000 datagrams; grown by {grown:.1} MB", corpus.len());
    assert!(grown < 16.0, "grown by {grown:.1} MB");
    assert_eq!(board.calls().live(), 1);
    // And the next one can call.
    let next = Caller::call(&server, None).await;
    next.hears().await;
    for one in [caller, next] {
        assert!(server.end(&one.id).await);
        one.far.close().await;
    }
    assert_eq!(count_panics(), panics, "something panicked");
}

/// What a page may tell, and what it may not.
fn messages() -> Vec<String> {
    let played = r#"{"type":"played","at":1,"rtp":1,"heard":1,"spread":1,"microphone":1,"concealed":1}"#;
    let deep = "[".repeat(4_000);
    let long = "x".repeat(60_000);
    vec![
        played.to_owned(),
        r#"{"type":"hello","reports":true}"#.to_owned(),
        r#"{"type":"hello","reports":"yes"}"#.to_owned(),
        played.replace("\"at\":1", "\"at\":1e308"),
        played.replace("\"at\":1", "\"at\":-1"),
        played.replace("\"rtp\":1", "\"rtp\":4294967296"),
        played.replace("\"heard\":1", "\"heard\":null"),
        deep,
        long,
        String::new(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_page_tells_ends_its_call_or_stays() {
    let panics = count_panics();
    let (server, board) = server();
    let caller = Caller::call(&server, Some("sayback")).await;
    let channel = caller.far.channel.clone().unwrap();
    let opened = async {
        loop {
            match channel.poll().await {
                Some(::webrtc::data_channel::DataChannelEvent::OnOpen) => return,
                Some(_) => {}
                None => panic!("the channel is closed"),
            }
        }
    };
    tokio::time::timeout(LIMIT, opened).await.unwrap();
    let mut random = Random(0xfee1);
    let texts = messages();
    let before = resident();
    for number in 0..1_500 {
        let text = &texts[random.next(texts.len())];
        let bytes =
            if number % 3 == 0 { mutated(text.as_bytes(), &mut random) } else { text.clone().into_bytes() };
        let sent = match std::str::from_utf8(&bytes) {
            Ok(text) if number % 2 == 0 => channel.send_text(text).await,
            _ => channel.send((&bytes[..]).into()).await,
        };
        assert!(sent.is_ok(), "{sent:?}");
        if number % 20 == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    // Sound that is none, on the call's own keys.
    for number in 0..3_000 {
        caller.far.send(&mutated(&SOUND, &mut random)).await;
        if number % 20 == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    // More channels than one, and of other names: nobody listens, and nobody minds.
    for label in ["sayback", "other", ""] {
        let _ = caller.far.stack.create_data_channel(label, None).await;
    }
    caller.hears().await;
    let grown = resident() - before;
    println!("1,500 messages, 3,000 packets; grown by {grown:.1} MB");
    assert!(grown < 48.0, "grown by {grown:.1} MB");
    assert_eq!(board.calls().live(), 1);
    assert!(server.end(&caller.id).await);
    caller.far.close().await;
    assert_eq!(count_panics(), panics, "something panicked");
}
