//! A call from a far end that talks and reports, over a way that can break and lose. The check of these calls says yes to
//! everything.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sayback_core::Time;
use sayback_media::codec::CodecKind;
use sayback_media::rtp::report::Reports;
use sayback_media::rtp::send::{Outbound, SendFormat, StreamStart};
use sayback_media::rtp::{Inbound, PayloadTypes};
use sayback_runtime::calls::News;
use sayback_runtime::clock::Clock;
use sayback_runtime::switchboard::Switchboard;
use sayback_transports::webrtc::{Patched, WebRtcOffer, WebRtcOptions, WebRtcServer};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::LIMIT;
use crate::desk::{self, Booked};
use crate::far_end::{Ear, FarEnd, over};
use crate::way::Way;

const SSRC: u32 = 7;
/// Half a second, in frames.
const WORDS: usize = 25;

/// What the caller has received, and can report of it.
pub(crate) struct Received {
    clock: Clock,
    pub(crate) inbound: Inbound,
    pub(crate) reports: Reports,
    packets: u64,
    /// Requests for packets of its own that came.
    pub(crate) asked: usize,
    /// Takes up what is missing.
    missing: UnboundedSender<Vec<u16>>,
}

impl Received {
    fn take(&mut self, bytes: &[u8], is_report: bool, at: Time) {
        if is_report {
            // Feedback of the transport, with nothing before it: packets are asked for.
            self.asked += usize::from(bytes.get(..2) == Some(&[0x81, 205]));
            let _ = self.reports.handle(bytes, at);
            return;
        }
        self.packets += 1;
        self.inbound.handle(bytes, at, &mut |_| {});
        let missing = self.reports.round_trip(at).map(|trip| self.inbound.missing(at, trip.most));
        if let Some(missing) = missing.filter(|missing| !missing.is_empty()) {
            let _ = self.missing.send(missing);
        }
    }
}

/// The call.
pub(crate) struct Scene {
    pub(crate) server: WebRtcServer,
    pub(crate) board: Switchboard,
    booked: Booked,
    pub(crate) id: String,
    /// Where the server hears it.
    port: SocketAddr,
    pub(crate) far: Arc<FarEnd>,
    pub(crate) way: Way,
    /// Frames of words that the caller has still to say.
    saying: Arc<AtomicUsize>,
    pub(crate) received: Arc<Mutex<Received>>,
}

impl Scene {
    /// `resends`: what is lost may be asked for again.
    pub(crate) async fn begin(patience: Duration, resends: bool) -> Self {
        let (board, booked) = desk::board_asking(16, 50);
        let options =
            WebRtcOptions { bind: vec!["127.0.0.1".parse().unwrap()], patience, ..WebRtcOptions::default() };
        let server = WebRtcServer::new(options, board.clone());
        let types = PayloadTypes { audio: 111, codec: CodecKind::Opus, events: None, comfort_noise: None };
        let (missing, mut wanted) = unbounded_channel();
        let received = Arc::new(Mutex::new(Received {
            clock: Clock::start(),
            inbound: Inbound::new(types).unwrap(),
            reports: Reports::new(SSRC, "caller"),
            packets: 0,
            asked: 0,
            missing,
        }));
        let taken = Arc::clone(&received);
        let ear: Ear = Box::new(move |bytes, is_report, at| {
            let taken = &mut *taken.lock().unwrap();
            taken.take(bytes, is_report, taken.clock.at(at));
        });
        let (mut far, offer) = FarEnd::offer(SSRC, None, ear).await;
        // The server is not told where the caller is: it finds out from what comes.
        let told = |line: &&str| !line.contains("candidate") && (resends || !line.contains(" nack"));
        let sdp: String = offer.split_inclusive('\n').filter(told).collect();
        let offer = WebRtcOffer { sdp, to: "desk".to_owned(), ..WebRtcOffer::default() };
        let opened = server.offer(offer).await.unwrap();
        let candidate = opened.answer.lines().find(|line| line.starts_with("a=candidate:")).unwrap();
        let words: Vec<&str> = candidate.split(' ').collect();
        let port = format!("{}:{}", words[4], words[5]).parse().unwrap();
        let way = Way::to(port).await;
        assert!(far.connect(over(&opened.answer, way.address)).await, "{}", opened.answer);
        assert_eq!(opened.answer.contains("a=rtcp-fb:111 nack"), resends, "{}", opened.answer);
        let (far, saying) = (Arc::new(far), Arc::new(AtomicUsize::new(0)));
        tokio::spawn(talk(Arc::clone(&far), Arc::clone(&saying), Arc::clone(&received)));
        let (asker, reads) = (Arc::clone(&far), Arc::clone(&received));
        tokio::spawn(async move {
            while let Some(missing) = wanted.recv().await {
                let theirs = reads.lock().unwrap().inbound.ssrc().filter(|_| resends);
                if let Some(theirs) = theirs {
                    asker.ask_again(SSRC, theirs, &missing).await;
                }
            }
        });
        Self { server, board, booked, id: opened.id, port, far, way, saying, received }
    }

    pub(crate) fn say(&self) {
        self.saying.store(WORDS, Ordering::Relaxed);
    }

    pub(crate) fn log(&self) -> Vec<Value> {
        let follow = self.board.calls().follow(&self.id, 0);
        follow.map(|follow| follow.lines.iter().map(News::fields).collect()).unwrap_or_default()
    }

    /// How often these events have come.
    pub(crate) fn count(&self, names: &[&str]) -> usize {
        let is = |line: &&Value| names.iter().any(|name| line["event"] == *name);
        self.log().iter().filter(is).count()
    }

    /// Waits until one of these events has come more than `before` times.
    pub(crate) async fn more_than(&self, before: usize, names: &[&str]) {
        let until = Instant::now() + LIMIT;
        while self.count(names) <= before {
            let told = self.log().iter().map(|line| format!("{line}\n")).collect::<String>();
            assert!(Instant::now() < until, "{names:?} does not come\n{told}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Looks for another way as a page does whose first answer is lost: it asks twice.
    pub(crate) async fn restart(&mut self) {
        let way = Way::to(self.port).await;
        let asked = self.far.restart().await;
        let lost = self.server.patch(&self.id, None, &asked).await.unwrap();
        let told = self.server.patch(&self.id, None, &asked).await.unwrap();
        assert_eq!(lost, told);
        let Patched::Restarted { fragment, session } = told else { panic!("{told:?}") };
        assert!(session.ends_with(".1"), "{session}");
        self.far.go_on(&fragment, way.address).await;
        self.way = way;
    }

    /// Waits until sound comes that did not come before.
    pub(crate) async fn hears(&self) {
        let packets = || self.received.lock().unwrap().packets;
        let (before, until) = (packets(), Instant::now() + LIMIT);
        while packets() < before + 25 {
            assert!(Instant::now() < until, "no sound comes any more");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The caller asks, hears the question and says yes; on a busy machine more than once.
    pub(crate) async fn book(&self) {
        let over = ["question.heard", "question.dropped"];
        for _ in 0..8 {
            let (settled, heard) = (self.count(&over), self.count(&over[..1]));
            self.say();
            self.more_than(settled, &over).await;
            if self.count(&over[..1]) == heard {
                continue;
            }
            // Behind all that is only known to lie in the question.
            tokio::time::sleep(Duration::from_millis(700)).await;
            let ended = ["tool.finished", "question.dropped", "answer.checked"];
            let before = self.count(&ended);
            self.say();
            self.more_than(before, &ended).await;
            let until = Instant::now() + Duration::from_secs(3);
            while Instant::now() < until {
                if self.count(&ended[..1]) > 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        panic!("nothing is booked: {:#?}", self.log());
    }

    pub(crate) fn times_booked(&self) -> usize {
        self.booked.lock().unwrap().len()
    }

    pub(crate) async fn end(self) {
        assert_eq!(self.board.calls().live(), 1, "it is the same call");
        assert_eq!(self.board.calls().taken(), 1);
        assert!(self.server.end(&self.id).await);
        self.far.close().await;
    }
}

/// Sends words or silence at its pace, and reports five times a second, until the far end is let go of.
async fn talk(far: Arc<FarEnd>, saying: Arc<AtomicUsize>, received: Arc<Mutex<Received>>) {
    let format = SendFormat { codec: CodecKind::Opus, payload_type: 111, ptime_ms: 20, events: None };
    let mut outbound = Outbound::new(format, StreamStart { ssrc: SSRC, sequence: 1, timestamp: 1 }).unwrap();
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    for number in 0_usize.. {
        ticks.tick().await;
        let words = saying.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        let level = if words.is_ok() { 0.3 } else { 0.0 };
        let sample = |n: usize| level * ((number * 960 + n) as f32 * 0.05).sin();
        let frame: Vec<f32> = (0..960).map(sample).collect();
        let mut packets: Vec<Vec<u8>> = Vec::new();
        outbound.push(&frame, |packet| packets.push(packet.to_vec())).unwrap();
        for packet in packets {
            far.send(&packet).await;
        }
        {
            let received = &mut *received.lock().unwrap();
            received.inbound.poll(received.clock.now(), &mut |_| {});
        }
        if number % 10 == 0 {
            let mut bytes = Vec::new();
            {
                let received = &mut *received.lock().unwrap();
                let figures = received.inbound.ssrc().zip(received.inbound.loss().report());
                received.reports.write(received.clock.now(), outbound.sent(), figures, &mut bytes);
            }
            far.send_reports(&bytes).await;
        }
    }
}
