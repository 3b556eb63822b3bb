//! A telephone of our own: it calls, sends a tone as its voice, and knows to the packet what it heard and when.

use std::net::SocketAddr;
use std::time::Duration;

use sayback_core::Time;
use sayback_media::codec::{Codec, CodecKind};
use sayback_media::pcm::level_dbfs;
use sayback_media::rtp::RtpPacket;
use sayback_media::rtp::packet::is_rtcp;
use sayback_media::rtp::report::{Reports, Sent};
use tokio::net::UdpSocket;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::peer::{response, value};
use super::relay::{Relay, Way};

/// Louder than this is speech, in dB below full scale.
const LOUD: f32 = -45.0;

/// What it sends: how high each of its two tones is in hertz. One alone would be a beep.
type Chord = [f32; 2];

const VOICE: Chord = [500.0, 830.0];
const BEEP: Chord = [1_000.0; 2];

pub(crate) struct Phone {
    sip: UdpSocket,
    rtp: UdpSocket,
    server: SocketAddr,
    sound: SocketAddr,
    to: String,
    codec: Box<dyn Codec>,
    payload_type: u8,
    sequence: u16,
    timestamp: u32,
    began: Instant,
    /// How many packets were sent; the pace is counted from the beginning.
    sent: u32,
    /// When the last loud packet came, and when the first of the present stretch did.
    loud: Option<Instant>,
    stretch: Option<Instant>,
    call_id: String,
    cseq: u32,
    reports: Reports,
    reported: Option<Instant>,
    /// Highest sequence number heard.
    heard: u32,
    theirs: Option<u32>,
    relay: Option<Relay>,
}

/// What a telephone offers or answers: this codec, and keys.
fn sdp(codec: CodecKind, port: u16) -> String {
    let (number, name, clock) = (codec.payload_type(), codec.name(), codec.clock_rate());
    format!(
        "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {port} RTP/AVP {number} 101\r\n\
         a=rtpmap:{number} {name}/{clock}\r\na=rtpmap:101 telephone-event/{clock}\r\na=rtcp-mux\r\n"
    )
}

impl Phone {
    /// Calls and waits until the call is up.
    pub(crate) async fn call(server: SocketAddr, codec: CodecKind) -> Self {
        Self::call_over(server, codec, None).await
    }

    /// The same with a network in between, for the sound.
    pub(crate) async fn call_over(server: SocketAddr, codec: CodecKind, way: Option<Way>) -> Self {
        let sip = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let rtp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        sip.connect(server).await.unwrap();
        let own = rtp.local_addr().unwrap();
        let relay = match way {
            Some(way) => Some(Relay::start(way, own).await),
            None => None,
        };
        let port = relay.as_ref().map_or(own, Relay::address).port();
        let call_id = format!("phone-{port}");
        let mut phone = Self { call_id, relay, ..Self::at_rest(sip, rtp, server, codec) };
        let body = sdp(codec, port);
        let answer = phone.ask("INVITE", 1, &body).await;
        let line = answer.lines().find(|line| line.starts_with("m=audio")).unwrap();
        let port: u16 = line.split(' ').nth(1).unwrap().parse().unwrap();
        phone.sound = SocketAddr::new(server.ip(), port);
        if let Some(relay) = &phone.relay {
            relay.set_server(phone.sound);
            phone.sound = relay.address();
        }
        let to = answer.lines().find(|line| line.to_lowercase().starts_with("to:")).unwrap();
        phone.to = to[3..].trim().to_owned();
        phone.request("ACK", 1, "").await;
        phone.began = Instant::now();
        phone
    }

    /// Waits for a call and takes it.
    pub(crate) async fn pick_up(sip: UdpSocket, codec: CodecKind) -> Self {
        let rtp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut bytes = [0; 8_192];
        let (invite, server) = loop {
            let (len, from) = sip.recv_from(&mut bytes).await.unwrap();
            let text = String::from_utf8_lossy(&bytes[..len]).into_owned();
            if text.starts_with("INVITE ") {
                break (text, from);
            }
        };
        sip.connect(server).await.unwrap();
        let body = sdp(codec, rtp.local_addr().unwrap().port());
        let theirs: u16 =
            invite.lines().find_map(|l| l.strip_prefix("m=audio ")?.split(' ').next()?.parse().ok()).unwrap();
        let mut phone = Self {
            sound: SocketAddr::new(server.ip(), theirs),
            to: value(&invite, "from").to_owned(),
            call_id: value(&invite, "call-id").to_owned(),
            cseq: 0,
            ..Self::at_rest(sip, rtp, server, codec)
        };
        // Again and again until the ACK: a datagram may be lost.
        for _ in 0..20 {
            phone.reply(&invite, "200 OK", &body).await;
            if phone.request_within("ACK", Duration::from_millis(500)).await.is_some() {
                break;
            }
        }
        phone.began = Instant::now();
        phone
    }

    /// Has sent and heard nothing yet.
    fn at_rest(sip: UdpSocket, rtp: UdpSocket, server: SocketAddr, codec: CodecKind) -> Self {
        Self {
            sip,
            rtp,
            server,
            sound: server,
            to: "<sip:100@server>".to_owned(),
            codec: codec.open().unwrap(),
            payload_type: codec.payload_type(),
            sequence: 1_000,
            timestamp: 50_000,
            began: Instant::now(),
            sent: 0,
            loud: None,
            stretch: None,
            call_id: String::new(),
            cseq: 1,
            reports: Reports::new(77, "phone"),
            reported: None,
            heard: 0,
            theirs: None,
            relay: None,
        }
    }

    /// Answers a request of the server's.
    async fn reply(&mut self, request: &str, status: &str, body: &str) {
        let contact = format!("<sip:phone@{}>", self.sip.local_addr().unwrap());
        let text = response(request, status, "phone", &format!("Contact: {contact}\r\n"), body);
        self.sip.send(text.as_bytes()).await.unwrap();
    }

    /// The next request of this method, if it comes in time.
    async fn request_within(&mut self, method: &str, patience: Duration) -> Option<String> {
        let mut bytes = [0; 8_192];
        let until = Instant::now() + patience;
        loop {
            let len = tokio::time::timeout_at(until, self.sip.recv(&mut bytes)).await.ok()?.ok()?;
            let text = String::from_utf8_lossy(&bytes[..len]).into_owned();
            if text.starts_with(&format!("{method} ")) {
                return Some(text);
            }
        }
    }

    /// Waits, without a sound, for a request of the server's, and takes it.
    pub(crate) async fn take_request(&mut self, method: &str, status: &str) -> Option<String> {
        let request = self.request_within(method, Duration::from_secs(20)).await?;
        self.reply(&request, status, "").await;
        Some(request)
    }

    /// Whether the server was heard since then.
    pub(crate) fn heard_since(&self, at: Instant) -> bool {
        self.loud.is_some_and(|loud| loud > at)
    }

    async fn request(&mut self, method: &str, cseq: u32, body: &str) {
        let local = self.sip.local_addr().unwrap();
        let kind = if body.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
        let text = format!(
            "{method} sip:100@{} SIP/2.0\r\nVia: SIP/2.0/UDP {local};branch=z9hG4bK{method}{cseq}{local}\r\n\
             From: <sip:phone@{local}>;tag=1\r\nTo: {}\r\nCall-ID: {}\r\nCSeq: {cseq} {method}\r\nMax-Forwards: 70\r\n\
             Contact: <sip:phone@{local}>\r\n{kind}Content-Length: {}\r\n\r\n{body}",
            self.server,
            self.to,
            self.call_id,
            body.len()
        );
        self.sip.send(text.as_bytes()).await.unwrap();
    }

    /// A request and its final answer. Like every telephone it asks again while nothing comes: a datagram may be lost
    /// where a flood fills the server's socket. Late copies of other answers are let by.
    async fn ask(&mut self, method: &str, cseq: u32, body: &str) -> String {
        let mut bytes = [0; 4_096];
        let mut patience = Duration::from_millis(500);
        for _ in 0..6 {
            self.request(method, cseq, body).await;
            let until = tokio::time::Instant::now() + patience;
            while let Ok(got) = tokio::time::timeout_at(until, self.sip.recv(&mut bytes)).await {
                let text = String::from_utf8_lossy(&bytes[..got.unwrap()]).into_owned();
                if !text.contains(&format!("CSeq: {cseq} {method}")) || text.starts_with("SIP/2.0 1") {
                    continue;
                }
                assert!(text.starts_with("SIP/2.0 2"), "{text}");
                return text;
            }
            patience *= 2;
        }
        panic!("no answer to {method}")
    }

    /// Where the server takes our sound.
    pub(crate) fn sound(&self) -> SocketAddr {
        self.sound
    }

    /// Any bytes from our own port, to the server's port for sound or for reports.
    pub(crate) async fn send_raw(&mut self, bytes: &[u8], reports: bool) {
        let to = SocketAddr::new(self.sound.ip(), self.sound.port() + u16::from(reports));
        let _ = self.rtp.send_to(bytes, to).await;
    }

    /// Holds, or takes off hold, by a re-INVITE.
    pub(crate) async fn reinvite(&mut self, cseq: u32, direction: &str) {
        let port = self.rtp.local_addr().unwrap().port();
        let kind = self.codec.kind();
        let (number, name, clock) = (kind.payload_type(), kind.name(), kind.clock_rate());
        let body = format!(
            "v=0\r\no=- 1 {cseq} IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {port} RTP/AVP {number}\r\n\
             a=rtpmap:{number} {name}/{clock}\r\na={direction}\r\n"
        );
        self.ask("INVITE", cseq, &body).await;
        self.request("ACK", cseq, "").await;
        self.cseq = cseq;
    }

    /// Waits until the question sounds.
    pub(crate) async fn wait_for_question(&mut self) {
        let asked_after = Instant::now();
        self.run(false, |phone, now| {
            assert!(now - asked_after < Duration::from_secs(10), "no question came");
            phone.stretch.is_some_and(|at| at > asked_after)
        })
        .await;
    }

    pub(crate) async fn hang_up(mut self) {
        self.ask("BYE", self.cseq + 1, "").await;
    }

    /// Sends packets in real time and hears what comes, until `until` says so.
    async fn run(&mut self, speaks: bool, until: impl FnMut(&Self, Instant) -> bool) {
        self.run_at(speaks.then_some(VOICE), until).await;
    }

    /// The same with other tones; `None`: silence.
    async fn run_at(&mut self, tones: Option<Chord>, mut until: impl FnMut(&Self, Instant) -> bool) {
        let mut pace = interval(Duration::from_millis(5));
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut bytes = [0; 2_048];
        loop {
            tokio::select! {
                _ = pace.tick() => {
                    self.report().await;
                    while self.began.elapsed() >= Duration::from_millis(20) * (self.sent + 1) {
                        self.send_packet(tones).await;
                    }
                }
                came = self.rtp.recv(&mut bytes) => {
                    let len = came.unwrap();
                    self.hear(&bytes[..len]);
                }
            }
            if until(self, Instant::now()) {
                return;
            }
        }
    }

    async fn send_packet(&mut self, tones: Option<Chord>) {
        let kind = self.codec.kind();
        let samples = kind.sample_rate() as usize / 50;
        let turn = std::f32::consts::TAU / kind.sample_rate() as f32;
        let place = self.sent as usize * samples;
        let sample =
            |n| tones.unwrap_or_default().map(|hertz| ((place + n) as f32 * turn * hertz).sin() * 0.15);
        let frame: Vec<f32> = (0..samples).map(|n| sample(n).iter().sum()).collect();
        let mut payload = Vec::new();
        self.codec.encode(&frame, &mut payload).unwrap();
        let mut bytes = Vec::new();
        let packet = RtpPacket {
            marker: self.sent == 0,
            payload_type: self.payload_type,
            sequence: self.sequence,
            timestamp: self.timestamp,
            ssrc: 77,
            payload: &payload,
        };
        packet.write(&mut bytes);
        self.rtp.send_to(&bytes, self.sound).await.unwrap();
        self.sequence = self.sequence.wrapping_add(1);
        self.timestamp = self.timestamp.wrapping_add(kind.ticks(samples) as u32);
        self.sent += 1;
    }

    fn time(&self) -> Time {
        Time::from_micros(self.began.elapsed().as_micros() as u64)
    }

    /// A report twice a second, as a telephone that we are told is the caller's own.
    async fn report(&mut self) {
        if self.reported.is_some_and(|at| at.elapsed() < Duration::from_millis(500)) {
            return;
        }
        self.reported = Some(Instant::now());
        let sent = Sent { timestamp: self.timestamp, packets: self.sent, bytes: self.sent * 160 };
        let loss =
            sayback_media::rtp::loss::LossReport { fraction: 0, lost: 0, highest: self.heard, jitter: 0 };
        let mut bytes = Vec::new();
        let (now, ssrc) = (self.time(), self.theirs);
        self.reports.write(now, sent, ssrc.map(|ssrc| (ssrc, loss)), &mut bytes);
        self.rtp.send_to(&bytes, self.sound).await.unwrap();
    }

    fn hear(&mut self, bytes: &[u8]) {
        if is_rtcp(bytes) {
            let now = self.time();
            let _ = self.reports.handle(bytes, now);
            return;
        }
        let Ok(packet) = RtpPacket::parse(bytes) else { return };
        if packet.payload_type != self.payload_type {
            return;
        }
        self.theirs = Some(packet.ssrc);
        self.heard = u32::from(packet.sequence);
        let mut sound = Vec::new();
        self.codec.decode(packet.payload, &mut sound).unwrap();
        let now = Instant::now();
        if level_dbfs(&sound) > LOUD {
            let fresh = self.loud.is_none_or(|loud| now - loud > Duration::from_millis(400));
            if fresh {
                self.stretch = Some(now);
            }
            self.loud = Some(now);
        }
    }

    /// Waits, silent, until the other side has spoken and has been quiet for a while; not at all if it never speaks.
    pub(crate) async fn hear_until_quiet(&mut self, most: Duration) {
        let from = Instant::now();
        self.run(false, |phone, now| {
            phone.loud.is_some_and(|loud| now - loud > Duration::from_millis(600))
                || now - from > most.min(Duration::from_secs(1))
        })
        .await;
    }

    /// Speaks for a while.
    pub(crate) async fn say(&mut self, length: Duration) {
        let from = Instant::now();
        self.run(true, |_, now| now - from >= length).await;
    }

    /// Beeps as an answering machine does.
    pub(crate) async fn beep(&mut self, length: Duration) {
        let from = Instant::now();
        self.run_at(Some(BEEP), |_, now| now - from >= length).await;
    }

    /// Presses a key for 120 ms, without a marker and with the end sent once: how some telephones do it.
    pub(crate) async fn press(&mut self, event: u8) {
        let began = self.timestamp;
        for step in 1..=6u16 {
            let [high, low] = (step * 160).to_be_bytes();
            let payload = [event, if step == 6 { 0x8a } else { 0x0a }, high, low];
            let mut bytes = Vec::new();
            let packet = RtpPacket {
                marker: false,
                payload_type: 101,
                sequence: self.sequence,
                timestamp: began,
                ssrc: 77,
                payload: &payload,
            };
            packet.write(&mut bytes);
            self.rtp.send_to(&bytes, self.sound).await.unwrap();
            self.sequence = self.sequence.wrapping_add(1);
            self.timestamp = self.timestamp.wrapping_add(160);
            self.sent += 1;
            let due = self.began + Duration::from_millis(20) * (self.sent + 1);
            tokio::time::sleep_until(due).await;
        }
    }

    /// Waits for the question, and presses a key so long after its end.
    pub(crate) async fn press_at(&mut self, offset_ms: u64, event: u8) {
        self.wait_for_question().await;
        let at = self.stretch.expect("it has begun") + Duration::from_millis(offset_ms);
        self.run(false, |_, now| now >= at).await;
        self.press(event).await;
    }

    pub(crate) async fn listen(&mut self, length: Duration) {
        let from = Instant::now();
        self.run(false, |_, now| now - from >= length).await;
    }

    /// Waits for the question, and says 500 ms so long after its end; before it if negative.
    ///
    /// The question is 8 words of 150 ms: its end is known from its beginning.
    pub(crate) async fn answer_at(&mut self, offset_ms: i64) {
        self.wait_for_question().await;
        let began = self.stretch.expect("it has begun");
        let end = began + Duration::from_millis(8 * 150);
        let at = if offset_ms < 0 {
            end - Duration::from_millis(offset_ms.unsigned_abs())
        } else {
            end + Duration::from_millis(offset_ms.unsigned_abs())
        };
        self.run(false, |_, now| now >= at).await;
        self.say(Duration::from_millis(500)).await;
    }
}
