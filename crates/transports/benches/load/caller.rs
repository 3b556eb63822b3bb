//! Callers that cost little: just enough SIP to be answered, G.711 whose sound is made once, and a watch on what comes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sayback_media::noise::WhiteNoise;
use sayback_media::telephone::mulaw_encode;
use tokio::net::UdpSocket;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::outside::{CYCLE, Calls, Met};

/// Makes the calls.
pub(crate) async fn callers(calls: Calls) {
    let (sound, server, length) = (Arc::new(sound()), calls.server, calls.length);
    let call = |number| {
        let sound = Arc::clone(&sound);
        async move { call(server, number, length, &sound).await }
    };
    // Not all in the same millisecond.
    calls.make(Duration::from_millis(4), call).await;
}

/// Noise, and a few words in each six seconds, as bytes on the line.
fn sound() -> Vec<[u8; 160]> {
    let file =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/audio/yes-please-phone.wav");
    let clip = sayback_media::read_audio(&file).unwrap();
    let words = sayback_media::resample::resample(&clip.mixed_down(), clip.rate, 8_000).unwrap();
    let noise = WhiteNoise::new(7).samples(CYCLE * 160, -65.0);
    let mixed = |n: usize| (noise[n] + words.get(n).copied().unwrap_or(0.0)) * 32_767.0;
    (0..CYCLE).map(|frame| std::array::from_fn(|n| mulaw_encode(mixed(frame * 160 + n) as i16))).collect()
}

struct Caller {
    sip: UdpSocket,
    number: u64,
    /// The To header, with the far end's tag once it is known.
    to: String,
}

impl Caller {
    fn request(&self, method: &str, sequence: u32, body: &str) -> String {
        let own = self.sip.local_addr().unwrap();
        let server = self.sip.peer_addr().unwrap();
        let kind = if body.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
        format!(
            "{method} sip:100@{server} SIP/2.0\r\nVia: SIP/2.0/UDP {own};branch=z9hG4bK{}{method}{sequence};rport\r\n\
             Max-Forwards: 70\r\nFrom: <sip:load@{own}>;tag={}\r\nTo: {}\r\nCall-ID: load-{}-{}\r\n\
             CSeq: {sequence} {method}\r\nContact: <sip:load@{own}>\r\n{kind}Content-Length: {}\r\n\r\n{body}",
            self.number,
            self.number,
            self.to,
            self.number,
            own.port(),
            body.len()
        )
    }

    /// Sends it until it is answered for good.
    async fn ask(&self, request: &str) -> Option<String> {
        let mut bytes = vec![0; 4_096];
        for _ in 0..20 {
            self.sip.send(request.as_bytes()).await.ok()?;
            let until = Instant::now() + Duration::from_millis(500);
            while let Some(left) = until.checked_duration_since(Instant::now()) {
                let Ok(Ok(len)) = timeout(left, self.sip.recv(&mut bytes)).await else { break };
                let text = String::from_utf8_lossy(&bytes[..len]).into_owned();
                if text.starts_with("SIP/2.0") && !text.starts_with("SIP/2.0 1") {
                    return Some(text);
                }
            }
        }
        None
    }
}

async fn call(server: SocketAddr, number: u64, length: Duration, sound: &[[u8; 160]]) -> Met {
    let sip = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let rtp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    sip.connect(server).await.unwrap();
    let port = rtp.local_addr().unwrap().port();
    let mut caller = Caller { sip, number, to: format!("<sip:100@{server}>") };
    let offer = format!(
        "v=0\r\no=- {number} 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
         m=audio {port} RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\na=ptime:20\r\n"
    );
    let refused = Met { refused: 1, ..Met::default() };
    let Some(answer) = caller.ask(&caller.request("INVITE", 1, &offer)).await else { return refused };
    let line = |name: &str| answer.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    caller.to = line("To:").unwrap_or_default().to_owned();
    let _ = caller.sip.send(caller.request("ACK", 1, "").as_bytes()).await;
    let theirs = line("m=audio").and_then(|media| media.split(' ').next()?.parse::<u16>().ok());
    let Some(theirs) = theirs.filter(|_| answer.starts_with("SIP/2.0 200")) else { return refused };
    rtp.connect(("127.0.0.1", theirs)).await.unwrap();
    let met = talk(&rtp, number, length, sound).await;
    let _ = caller.ask(&caller.request("BYE", 2, "")).await;
    met
}

/// Sends sound at its pace, and watches how what comes keeps its own: against the packet that came soonest.
async fn talk(rtp: &UdpSocket, number: u64, length: Duration, sound: &[[u8; 160]]) -> Met {
    let mut ticks = interval(Duration::from_millis(20));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut met, mut bytes, began) = (Met::default(), [0; 2_048], Instant::now());
    let mut soonest: Option<i64> = None;
    let mut sent: u64 = 0;
    while began.elapsed() < length {
        tokio::select! {
            _ = ticks.tick() => {
                let mut packet = vec![0x80, 0];
                packet.extend((sent as u16).to_be_bytes());
                packet.extend(((sent * 160) as u32).to_be_bytes());
                packet.extend((number as u32 + 1).to_be_bytes());
                // Each begins at another place.
                packet.extend(sound[(sent + number * 37) as usize % CYCLE]);
                let _ = rtp.send(&packet).await;
                sent += 1;
            }
            came = rtp.recv(&mut bytes) => {
                let Ok(len) = came else { continue };
                if len < 12 || bytes[1] & 0x7f != 0 {
                    continue;
                }
                let timestamp = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
                // Streams of less than a minute: a wrap would be a surprise of 35 hours, and is passed over.
                let behind = began.elapsed().as_micros() as i64 - i64::from(timestamp) * 125;
                let least = *soonest.get_or_insert(behind);
                soonest = Some(least.min(behind));
                let late = Duration::from_micros((behind - least).unsigned_abs());
                if behind - least > 60_000_000 || behind < least {
                    continue;
                }
                met.frames += 1;
                met.late += u64::from(late > Duration::from_millis(20));
                met.latest = met.latest.max(late);
            }
        }
    }
    met
}
