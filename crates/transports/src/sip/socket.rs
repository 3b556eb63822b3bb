//! The socket for SIP messages: it answers by itself what the stack cannot read.
//!
//! The stack knows the methods of the RFCs and drops everything else. Whoever asks for another one is owed a 501
//! (RFC 3261, 8.2.1), or it would ask again for half a minute.

use std::net::SocketAddr;

use rsipstack::platform::net::UdpSocket as StackSocket;
use tokio::net::UdpSocket;

/// What the stack reads.
const KNOWN: [&str; 14] = [
    "ACK",
    "BYE",
    "CANCEL",
    "INFO",
    "INVITE",
    "MESSAGE",
    "NOTIFY",
    "OPTIONS",
    "PRACK",
    "PUBLISH",
    "REFER",
    "REGISTER",
    "SUBSCRIBE",
    "UPDATE",
];
/// Longest method that is answered.
const LONGEST: usize = 32;

/// A bound socket.
pub(super) struct SipSocket(UdpSocket);

impl SipSocket {
    pub(super) async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        UdpSocket::bind(address).await.map(Self)
    }

    pub(super) fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

#[async_trait::async_trait]
impl StackSocket for SipSocket {
    async fn recv_from(&self, buf: &mut [u8]) -> rsipstack::Result<(usize, SocketAddr)> {
        loop {
            let (len, from) = self.0.recv_from(buf).await?;
            let Some(answer) = buf.get(..len).and_then(|bytes| not_implemented(bytes, from)) else {
                return Ok((len, from));
            };
            // Lost like any other answer if there is no room: it is asked again.
            let _ = self.0.send_to(answer.as_bytes(), from).await;
        }
    }

    async fn send_to(&self, buf: &[u8], to: SocketAddr) -> rsipstack::Result<usize> {
        Ok(self.0.send_to(buf, to).await?)
    }

    fn local_addr(&self) -> rsipstack::Result<SocketAddr> {
        Ok(self.0.local_addr()?)
    }
}

/// The 501 for a request whose method nobody knows; `None` for everything else.
fn not_implemented(bytes: &[u8], from: SocketAddr) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let method = first.next()?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || "-.!%*_+`'~".contains(c);
    let unknown = !method.is_empty()
        && method.len() <= LONGEST
        && method.chars().all(is_token)
        && !KNOWN.contains(&method)
        && first.nth(1) == Some("SIP/2.0");
    if !unknown {
        return None;
    }
    let mut answer = "SIP/2.0 501 Not Implemented\r\n".to_owned();
    let mut seen = 0;
    for line in lines.take_while(|line| !line.is_empty()) {
        let Some((name, value)) = line.split_once(':') else { continue };
        let name = name.trim().to_ascii_lowercase();
        let kept = match name.as_str() {
            "via" | "v" if seen == 0 => {
                seen = 1;
                format!("Via: {};received={};rport={}", value.trim(), from.ip(), from.port())
            }
            "to" | "t" if !value.to_ascii_lowercase().contains(";tag=") => {
                format!("To: {};tag=501", value.trim())
            }
            "via" | "v" | "to" | "t" | "from" | "f" | "call-id" | "i" | "cseq" => line.to_owned(),
            _ => continue,
        };
        answer.push_str(&kept);
        answer.push_str("\r\n");
    }
    (seen == 1).then(|| answer + &format!("Allow: {}\r\nContent-Length: 0\r\n\r\n", super::messages::ALLOW))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(method: &str) -> String {
        format!(
            "{method} sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP 1.2.3.4;branch=z9hG4bK1\r\nVia: SIP/2.0/UDP 5.6.7.8\r\n\
             From: <sip:x@y>;tag=1\r\nTo: <sip:a@b>\r\nCall-ID: 1\r\nCSeq: 1 {method}\r\nX: y\r\n\r\nbody: no\r\n"
        )
    }

    #[test]
    fn an_unknown_method_is_answered_and_a_known_one_left_to_the_stack() {
        let from = "9.9.9.9:5060".parse().unwrap();
        let answer = not_implemented(request("TELEPORT").as_bytes(), from).unwrap();
        assert!(answer.starts_with("SIP/2.0 501 ") && answer.ends_with("\r\n\r\n"), "{answer}");
        assert!(
            answer.contains("Via: SIP/2.0/UDP 1.2.3.4;branch=z9hG4bK1;received=9.9.9.9;rport=5060\r\nVia: ")
        );
        assert!(
            answer.contains("To: <sip:a@b>;tag=501") && !answer.contains("X:") && !answer.contains("body")
        );
        for known in KNOWN {
            assert_eq!(not_implemented(request(known).as_bytes(), from), None);
        }
    }

    #[test]
    fn what_is_no_request_is_not_answered() {
        let from = "9.9.9.9:5060".parse().unwrap();
        for bytes in
            [&b"SIP/2.0 200 OK\r\n\r\n"[..], b"", b"\xff\xfe", b"HELLO\r\n\r\n", b"FOO a SIP/2.0\r\n\r\n"]
        {
            assert_eq!(not_implemented(bytes, from), None);
        }
    }

    proptest! {
        #[test]
        fn any_datagram_is_taken(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[A-Z]{0,9} [ -~]{0,80}(\r\n[ -~]{0,40}){0,6}") {
            let from = "9.9.9.9:5060".parse().unwrap();
            let _ = not_implemented(&bytes, from);
            let _ = not_implemented(text.as_bytes(), from);
        }
    }
}
