//! What the machine itself allows: a server that answers every INVITE and sends silence, and does nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{MissedTickBehavior, interval};

/// Starts it; it lives as long as the process.
pub(crate) async fn start() -> SocketAddr {
    let sip = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let address = sip.local_addr().unwrap();
    tokio::spawn(async move {
        let mut bytes = vec![0; 4_096];
        let mut answered = std::collections::BTreeMap::new();
        loop {
            let Ok((len, from)) = sip.recv_from(&mut bytes).await else { continue };
            let request = String::from_utf8_lossy(&bytes[..len]).into_owned();
            if request.starts_with("ACK") {
                continue;
            }
            let body = match answered.get(&from) {
                Some(body) => String::clone(body),
                None => {
                    let body = stream(&request).await;
                    answered.insert(from, body.clone());
                    body
                }
            };
            let _ = sip.send_to(answer(&request, &body).as_bytes(), from).await;
        }
    });
    address
}

fn answer(request: &str, body: &str) -> String {
    let mut answer = "SIP/2.0 200 OK\r\n".to_owned();
    for name in ["Via:", "From:", "To:", "Call-ID:", "CSeq:"] {
        if let Some(line) = request.lines().find(|line| line.starts_with(name)) {
            answer.push_str(line.trim_end());
            answer.push_str(if name == "To:" && !line.contains("tag=") {
                ";tag=reference\r\n"
            } else {
                "\r\n"
            });
        }
    }
    answer.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    answer
}

/// Sends silence to where the caller listens, at its pace, until nothing comes from there any more.
async fn stream(request: &str) -> String {
    let port =
        request.lines().find_map(|line| line.strip_prefix("m=audio ")?.split(' ').next()?.parse().ok());
    let to = ("127.0.0.1", port.unwrap_or(9));
    let rtp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let own = rtp.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut ticks = interval(Duration::from_millis(20));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let (mut sent, mut heard, mut bytes) = (0_u64, 0_u64, [0; 2_048]);
        while sent < heard + 250 {
            tokio::select! {
                _ = ticks.tick() => {
                    let mut packet = vec![0x80, 0];
                    packet.extend((sent as u16).to_be_bytes());
                    packet.extend(((sent * 160) as u32).to_be_bytes());
                    packet.extend([0, 0, 0, 1]);
                    packet.extend([0xff; 160]);
                    let _ = rtp.send_to(&packet, to).await;
                    sent += 1;
                }
                came = rtp.recv(&mut bytes) => {
                    if came.is_ok() {
                        heard = sent;
                    }
                }
            }
        }
    });
    format!(
        "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {own} RTP/AVP 0\r\n\
         a=rtpmap:0 PCMU/8000\r\n"
    )
}
