//! A far end whose every message a test writes itself: what telephones do at the wrong moment.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

/// Nothing on this machine takes longer, however busy it is.
const PATIENCE: Duration = Duration::from_secs(25);
/// A request is sent again so often until it is answered.
const AGAIN: Duration = Duration::from_millis(500);

pub(crate) const ALLOW: &str = "Allow: INVITE, ACK, BYE, CANCEL, OPTIONS, UPDATE\r\n";

pub(crate) struct Peer {
    sip: UdpSocket,
    pub(crate) address: SocketAddr,
    server: SocketAddr,
    /// Who answers.
    pub(crate) tag: &'static str,
    call_id: String,
    /// Our own address in `From` (or `To` of the server's INVITE), with its tag.
    own: String,
    /// Theirs, with their tag once it is known.
    their: String,
    /// What came and was not asked for yet.
    inbox: VecDeque<String>,
    /// What was handed out or answered: copies of it are let by.
    seen: BTreeSet<String>,
}

/// The value of a message's header.
pub(crate) fn value<'a>(message: &'a str, name: &str) -> &'a str {
    let found = message.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
    });
    found.unwrap_or_default()
}

pub(crate) fn status(message: &str) -> u16 {
    message.strip_prefix("SIP/2.0 ").and_then(|rest| rest.get(..3)?.parse().ok()).unwrap_or_default()
}

pub(crate) fn sdp(version: u32) -> String {
    format!(
        "v=0\r\no=- 1 {version} IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\n\
         a=rtpmap:0 PCMU/8000\r\n"
    )
}

/// An answer to a request, as whoever `tag` says; a body is a session description.
pub(crate) fn response(request: &str, status: &str, tag: &str, headers: &str, body: &str) -> String {
    let mut text = format!("SIP/2.0 {status}\r\n");
    for line in request.lines() {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if ["via", "from", "call-id", "cseq", "record-route"].contains(&name.as_str()) {
            text.push_str(&format!("{}\r\n", line.trim_end()));
        } else if name == "to" {
            let tag = if line.contains("tag=") { String::new() } else { format!(";tag={tag}") };
            text.push_str(&format!("{}{tag}\r\n", line.trim_end()));
        }
    }
    let kind = if body.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
    text.push_str(&format!("{headers}{kind}Content-Length: {}\r\n\r\n{body}", body.len()));
    text
}

impl Peer {
    /// One that is called, or calls a server.
    pub(crate) async fn bind(server: SocketAddr) -> Self {
        let sip = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = sip.local_addr().unwrap();
        Self {
            sip,
            address,
            server,
            tag: "peer",
            call_id: format!("peer-{}", address.port()),
            own: format!("<sip:peer@{address}>;tag=peer"),
            their: format!("<sip:100@{server}>"),
            inbox: VecDeque::new(),
            seen: BTreeSet::new(),
        }
    }

    /// Calls, and acknowledges the answer.
    pub(crate) async fn call(server: SocketAddr, headers: &str) -> Self {
        let mut peer = Self::bind(server).await;
        let answer = peer.ask("INVITE", 1, headers, &sdp(1)).await;
        assert_eq!(status(&answer), 200, "{answer}");
        peer.send("ACK", 1, "", "").await;
        peer
    }

    /// Waits for a call of the server's.
    pub(crate) async fn called(&mut self) -> String {
        let invite = self.take("INVITE").await;
        self.call_id = value(&invite, "Call-ID").to_owned();
        self.their = value(&invite, "From").to_owned();
        self.own = format!("{};tag={}", value(&invite, "To"), self.tag);
        let contact = value(&invite, "Contact").trim_start_matches("<sip:").to_owned();
        let host =
            contact.split(['>', ';']).next().unwrap_or_default().rsplit('@').next().unwrap_or_default();
        self.server = host.parse().unwrap();
        invite
    }

    /// Goes on as one of several who were called.
    pub(crate) fn own_tag(&mut self, tag: &'static str) {
        self.tag = tag;
        let address = self.own.split(';').next().unwrap_or_default().to_owned();
        self.own = format!("{address};tag={tag}");
    }

    /// Sends a request of the call.
    pub(crate) async fn send(&self, method: &str, cseq: u32, headers: &str, body: &str) {
        let (own, their, call_id, local) = (&self.own, &self.their, &self.call_id, self.address);
        let typed = body.is_empty() || headers.contains("Content-Type");
        let kind = if typed { "" } else { "Content-Type: application/sdp\r\n" };
        // A CANCEL belongs to the transaction of its INVITE, an ACK of a 2xx to none.
        let branch = if method == "CANCEL" { "INVITE" } else { method };
        let text = format!(
            "{method} sip:100@{} SIP/2.0\r\nVia: SIP/2.0/UDP {local};branch=z9hG4bK{branch}{cseq}{local}\r\n\
             From: {own}\r\nTo: {their}\r\nCall-ID: {call_id}\r\nCSeq: {cseq} {method}\r\nMax-Forwards: 70\r\n\
             Contact: <sip:peer@{local}>\r\n{headers}{kind}Content-Length: {}\r\n\r\n{body}",
            self.server,
            body.len()
        );
        self.sip.send_to(text.as_bytes(), self.server).await.unwrap();
    }

    /// Sends a request until its final answer comes, and gives that.
    pub(crate) async fn ask(&mut self, method: &str, cseq: u32, headers: &str, body: &str) -> String {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            self.send(method, cseq, headers, body).await;
            if let Some(answer) = self.final_answer(method, cseq, AGAIN).await {
                return answer;
            }
        }
        panic!("no answer to {method} {cseq}; there are {:?}", self.inbox)
    }

    /// The final answer to a request, if it comes in time. The tag of whoever answers an INVITE is kept.
    pub(crate) async fn final_answer(&mut self, method: &str, cseq: u32, within: Duration) -> Option<String> {
        let (until, wanted) = (Instant::now() + within, format!("{cseq} {method}"));
        let is_it = |text: &str| status(text) >= 200 && value(text, "CSeq") == wanted;
        let answer = self.next(until, is_it).await?;
        if method == "INVITE" {
            self.their = value(&answer, "To").to_owned();
        }
        Some(answer)
    }

    /// The next request of this method.
    pub(crate) async fn take(&mut self, method: &str) -> String {
        let request = self.take_within(method, PATIENCE).await;
        request.unwrap_or_else(|| panic!("no {method} came; there are {:?}", self.inbox))
    }

    /// The next request of this method, if it comes in time.
    pub(crate) async fn take_within(&mut self, method: &str, within: Duration) -> Option<String> {
        let start = format!("{method} ");
        self.next(Instant::now() + within, |text| text.starts_with(&start)).await
    }

    async fn next(&mut self, until: Instant, wanted: impl Fn(&str) -> bool) -> Option<String> {
        loop {
            if let Some(place) = self.inbox.iter().position(|text| wanted(text)) {
                let text = self.inbox.remove(place)?;
                self.seen.insert(name_of(&text));
                return Some(text);
            }
            let mut bytes = [0; 8_192];
            let (len, from) = timeout_at(until, self.sip.recv_from(&mut bytes)).await.ok()?.ok()?;
            let text = String::from_utf8_lossy(&bytes[..len]).into_owned();
            self.server = from;
            if !self.seen.contains(&name_of(&text)) {
                self.inbox.push_back(text);
            }
        }
    }

    /// Answers a request of the server's, as whoever `tag` says: a proxy may have called several at once.
    pub(crate) async fn reply(&self, request: &str, status: &str, headers: &str, body: &str) {
        let headers = format!("Contact: <sip:{}@{}>\r\n{headers}", self.tag, self.address);
        let text = response(request, status, self.tag, &headers, body);
        self.sip.send_to(text.as_bytes(), self.server).await.unwrap();
    }

    /// Answers an INVITE of the server's until its ACK comes.
    pub(crate) async fn answer(&mut self, invite: &str, headers: &str, body: &str) -> String {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            self.reply(invite, "200 OK", headers, body).await;
            if let Some(ack) = self.take_within("ACK", AGAIN).await {
                return ack;
            }
        }
        panic!("no ACK came; there are {:?}", self.inbox)
    }

    /// Ends the call.
    pub(crate) async fn bye(&mut self, cseq: u32) {
        let answer = self.ask("BYE", cseq, "", "").await;
        assert_eq!(status(&answer), 200, "{answer}");
    }
}

/// What tells copies of a message from another message.
fn name_of(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let to = value(text, "To").rsplit("tag=").next().unwrap_or_default();
    format!("{first}|{}|{}|{}|{to}", value(text, "Via"), value(text, "Call-ID"), value(text, "CSeq"))
}
