//! Everything that should not come, sent at a live server. Afterwards a whole call works.
//!
//! `SAYBACK_TORTURE` names a folder with collected messages (`sip`, `stun`, `sdp`, `rtp`, `rtcp`, `srtp` in it); without
//! it only what is made up here is sent.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use sayback_media::codec::CodecKind;
use tokio::net::UdpSocket;

use super::phone::Phone;

/// A small generator of numbers with a seed.
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most.max(1) as u64).unwrap()
    }

    /// A message with a few bytes changed, cut or doubled.
    fn spoil(&mut self, message: &[u8]) -> Vec<u8> {
        let mut bytes = message.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.splice(at..at, message.iter().copied().take(40)).for_each(drop),
                2 => bytes.splice(at..at, b"\r\n".iter().copied()).for_each(drop),
                _ => {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = self.next() as u8;
                    }
                }
            }
            if bytes.is_empty() {
                break;
            }
        }
        bytes
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut all = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// The collected messages of some kinds that fit into a datagram.
fn collected(kinds: &[&str]) -> Vec<Vec<u8>> {
    let Some(folder) = std::env::var_os("SAYBACK_TORTURE").map(PathBuf::from) else { return Vec::new() };
    let read = |path: PathBuf| std::fs::read(path).ok().filter(|bytes| bytes.len() < 60_000);
    kinds.iter().flat_map(|kind| files(&folder.join(kind))).filter_map(read).collect()
}

fn invite(body: &str) -> Vec<u8> {
    format!(
        "INVITE sip:100@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bKhostile\r\nFrom: <sip:h@h>;tag=h\r\n\
         To: <sip:100@127.0.0.1>\r\nCall-ID: hostile\r\nCSeq: 1 INVITE\r\nContact: <sip:h@127.0.0.1:9>\r\nMax-Forwards: 70\r\n\
         Session-Expires: 1800\r\nSupported: timer\r\nContent-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Sends it all at a server's SIP port; gives how many.
pub(crate) async fn attack_signalling(server: SocketAddr, seed: u64) -> usize {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let body =
        "v=0\r\nc=IN IP4 127.0.0.1\r\nm=audio 9 RTP/AVP 0 8 101\r\na=rtpmap:101 telephone-event/8000\r\n";
    let (whole, mut seeded) = (invite(body), Seeded(seed));
    let mut all = collected(&["sip", "stun"]);
    for sdp in collected(&["sdp"]) {
        all.push(invite(&String::from_utf8_lossy(&sdp)));
    }
    all.extend((0..1_500).map(|_| seeded.spoil(&whole)));
    for (n, bytes) in all.iter().enumerate() {
        // A datagram that does not fit is refused by the machine itself.
        let _ = socket.send_to(bytes, server).await;
        if n % 50 == 49 {
            tokio::task::yield_now().await;
        }
    }
    all.len()
}

/// Sends it all at the ports of a call that is up; gives how many.
pub(crate) async fn attack_sound(phone: &mut Phone, seed: u64) -> usize {
    let mut seeded = Seeded(seed);
    let mut all = collected(&["rtp", "rtcp", "srtp", "stun"]);
    let mut packet = vec![0x80, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 5];
    packet.extend([0x55; 160]);
    let report = [0x80u8, 200, 0, 6, 0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2];
    all.extend((0..1_000).map(|_| seeded.spoil(&packet)));
    all.extend((0..1_000).map(|_| seeded.spoil(&report)));
    for (n, bytes) in all.iter().enumerate() {
        phone.send_raw(bytes, n % 2 == 1).await;
        if n % 50 == 49 {
            tokio::task::yield_now().await;
        }
    }
    all.len()
}

/// Anybody's packets to anybody's port, from elsewhere.
pub(crate) async fn inject_sound(to: SocketAddr, codec: CodecKind) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut packet = vec![0x80, codec.payload_type(), 0, 1, 0, 0, 0, 9, 9, 9, 9, 9];
    packet.extend([0x10; 160]);
    for _ in 0..200 {
        let _ = socket.send_to(&packet, to).await;
    }
}
