//! The stack, behind what a call needs of it: an answer, packets both ways, messages both ways, and how the connection is.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::webrtc::data_channel::{DataChannel, DataChannelEvent};
use ::webrtc::media_stream::track_local::TrackLocal;
use ::webrtc::media_stream::track_local::static_rtp::TrackLocalStaticRTP;
use ::webrtc::peer_connection::{
    MediaEngine, PeerConnection, PeerConnectionBuilder, PeerConnectionEventHandler, RTCConfigurationBuilder,
    RTCIceCandidateInit, RTCIceGatheringState, RTCIceServer, RTCIceTransportPolicy, RTCPeerConnectionState,
    RTCSessionDescription, SettingEngineBuilder, StatsSelector,
};
use rtc::ice::mdns::MulticastDnsMode;
use rtc::interceptor::{NackResponderBuilder, Registry, Slot};
use rtc::media_stream::MediaStreamTrack;
use rtc::rtcp::transport_feedbacks::transport_layer_nack::{
    TransportLayerNack, nack_pairs_from_sequence_numbers,
};
use rtc::rtp_transceiver::rtp_sender::{
    RTCPFeedback, RTCRtpCodec, RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters,
    RtpCodecKind,
};
use rtc::shared::marshal::Unmarshal;
use sayback_media::codec::CodecKind;
use sayback_runtime::clock::Clock;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::description::Wanted;
use super::fragment::Fragment;
use super::line::MESSAGES;
use super::settings::WebRtcOptions;
use super::tap::{Arrived, Tap};

/// Packets that may wait for the call.
const ARRIVED: usize = 512;
/// News that may wait.
const NEWS: usize = 64;
/// Servers on the internet have this long to tell how we look from outside.
const GATHER: Duration = Duration::from_secs(3);
/// Ports that are tried before none is free.
const TRIES: u16 = 64;
/// Largest message of a page, in bytes, and how many it may send in a second.
const LARGEST: usize = 4_096;
const MESSAGES_A_SECOND: u32 = 100;
/// What a page has been told and has not taken yet, in bytes; what is behind it is lost to it.
const UNREAD: usize = 256 * 1024;
/// Packets that can be sent again: a second and a quarter, behind which nobody waits for them any more. A power of two.
const RESENT: u16 = 64;
/// The label of the data channel that is ours.
const LABEL: &str = "sayback";

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PeerError {
    /// The far end's description, or a piece of one, is at fault.
    #[error("the description was refused: {0}")]
    Theirs(String),
    /// We are.
    #[error("no answer can be made: {0}")]
    Ours(String),
}

/// How the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    Connected,
    /// Nothing has come for some seconds.
    Shaken,
    /// No way is left. The far end may ask for another one.
    Broken,
    Gone,
}

/// What the stack tells beside packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    Connection(Connection),
    /// The page can be told things.
    Open,
    /// The page told something.
    Message(String, Instant),
}

/// One far end.
pub(super) struct Peer {
    stack: Arc<dyn PeerConnection>,
    track: Arc<TrackLocalStaticRTP>,
    gathered: Arc<Notify>,
    public: Option<IpAddr>,
    offer: String,
    pub(super) arrived: Receiver<Arrived>,
    pub(super) news: Receiver<News>,
    page: Sender<String>,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer").finish_non_exhaustive()
    }
}

impl Peer {
    /// Answers an offer. `ssrc` is the number of our stream.
    pub(super) async fn answer(
        options: &WebRtcOptions,
        (wanted, offer): (Wanted, &str),
        ssrc: u32,
    ) -> Result<(Self, String), PeerError> {
        let (arrived, tapped) = channel(ARRIVED);
        let (news, told) = channel(NEWS);
        let (page, messages) = channel(MESSAGES);
        let gathered = Arc::new(Notify::new());
        let watch = Arc::new(Watch {
            news,
            gathered: Arc::clone(&gathered),
            messages: Mutex::new(Some(messages)),
            pace: Clock::start(),
        });
        let stack = build(options, wanted.codec, arrived, watch).await?;
        let track = Arc::new(TrackLocalStaticRTP::new(our_track(wanted.codec, ssrc)));
        let ours = |error: ::webrtc::error::Error| PeerError::Ours(error.to_string());
        stack.add_track(Arc::clone(&track) as Arc<dyn TrackLocal>).await.map_err(ours)?;
        let peer = Self {
            stack,
            track,
            gathered,
            public: options.public_address,
            offer: offer.to_owned(),
            arrived: tapped,
            news: told,
            page,
        };
        let answer = match peer.negotiate(offer).await {
            Ok(answer) => answer,
            Err(error) => {
                peer.close().await;
                return Err(error);
            }
        };
        Ok((peer, answer))
    }

    async fn negotiate(&self, offer: &str) -> Result<String, PeerError> {
        let theirs = |error: ::webrtc::error::Error| PeerError::Theirs(error.to_string());
        let ours = |error: ::webrtc::error::Error| PeerError::Ours(error.to_string());
        let offer = RTCSessionDescription::offer(offer.to_owned()).map_err(theirs)?;
        self.stack.set_remote_description(offer).await.map_err(theirs)?;
        let answer = self.stack.create_answer(None).await.map_err(theirs)?;
        let mut gathered = std::pin::pin!(self.gathered.notified());
        if gathered.as_mut().enable() {
            // That was what an earlier description came to, too late for it.
            gathered.set(self.gathered.notified());
        }
        self.stack.set_local_description(answer).await.map_err(ours)?;
        // What has not been found by then is missed, not waited for.
        let _ = tokio::time::timeout(GATHER, gathered).await;
        let answer = self.stack.local_description().await;
        let answer = answer.ok_or_else(|| PeerError::Ours("there is no description".to_owned()))?;
        Ok(match self.public {
            Some(public) => advertise(&answer.sdp, public),
            None => answer.sdp,
        })
    }

    /// The far end can be reached there too.
    pub(super) async fn add_candidate(&self, candidate: &str) -> Result<(), PeerError> {
        let candidate = RTCIceCandidateInit {
            candidate: candidate.to_owned(),
            sdp_mline_index: Some(0),
            ..RTCIceCandidateInit::default()
        };
        let theirs = |error: ::webrtc::error::Error| PeerError::Theirs(error.to_string());
        self.stack.add_ice_candidate(candidate).await.map_err(theirs)
    }

    /// Looks for the way anew, under the far end's new names; gives ours.
    pub(super) async fn restart(&mut self, fragment: &Fragment) -> Result<String, PeerError> {
        let offer = fragment.renew(&self.offer);
        let answer = self.negotiate(&offer).await?;
        self.offer = offer;
        Ok(Fragment::of_answer(&answer))
    }

    /// How often the way has changed so far.
    pub(super) async fn path_changes(&self, now: Instant) -> u32 {
        let stats = self.stack.get_stats(now, StatsSelector::None).await;
        stats.transport().map_or(0, |transport| transport.selected_candidate_pair_changes)
    }

    /// Sends a packet of sound.
    pub(super) async fn send(&self, packet: &[u8]) {
        let Ok(packet) = rtc::rtp::Packet::unmarshal(&mut &*packet) else { return };
        if let Err(error) = self.track.write_rtp(packet).await {
            tracing::debug!("a packet was not sent: {error}");
        }
    }

    /// Sends control reports.
    pub(super) async fn send_reports(&self, reports: &[u8]) {
        let Ok(reports) = rtc::rtcp::packet::unmarshal(&mut &*reports) else { return };
        if let Err(error) = self.track.write_rtcp(reports).await {
            tracing::debug!("a report was not sent: {error}");
        }
    }

    /// Asks the far end for packets of its stream once more. `ours` is the number of our stream.
    pub(super) async fn ask_again(&self, ours: u32, theirs: u32, missing: &[u16]) {
        let nacks = nack_pairs_from_sequence_numbers(missing);
        let nack = TransportLayerNack { sender_ssrc: ours, media_ssrc: theirs, nacks };
        if let Err(error) = self.track.write_rtcp(vec![Box::new(nack)]).await {
            tracing::debug!("nothing was asked for again: {error}");
        }
    }

    /// Tells the page something; what finds no room is lost.
    pub(super) fn say(&self, text: String) {
        let _ = self.page.try_send(text);
    }

    /// Lets go of the far end.
    pub(super) async fn close(&self) {
        if let Err(error) = self.stack.close().await {
            tracing::debug!("a connection was not closed well: {error}");
        }
    }
}

async fn build(
    options: &WebRtcOptions,
    codec: CodecKind,
    arrived: Sender<Arrived>,
    watch: Arc<Watch>,
) -> Result<Arc<dyn PeerConnection>, PeerError> {
    let tries = if options.ports.is_some() { TRIES } else { 1 };
    let mut fault = PeerError::Ours("no port is free for sound; widen [webrtc] ports".to_owned());
    for _ in 0..tries {
        let builder = PeerConnectionBuilder::new()
            .with_configuration(configuration(options))
            .with_media_engine(engine(codec)?)
            .with_setting_engine(
                SettingEngineBuilder::new()
                    .with_multicast_dns_mode(MulticastDnsMode::Disabled)
                    .with_include_loopback_candidate(true)
                    .build(),
            )
            .with_interceptor_registry(interceptors(arrived.clone()))
            .with_handler(Arc::clone(&watch) as Arc<dyn PeerConnectionEventHandler>)
            .with_data_channel_send_buffer_limit(UNREAD)
            .with_udp_addrs(addresses(options));
        match builder.build().await {
            Ok(stack) => return Ok(Arc::new(stack)),
            Err(error) => fault = PeerError::Ours(error.to_string()),
        }
    }
    Err(fault)
}

/// What was sent is sent again if the far end asks for it, and everything that comes in is ours behind that.
fn interceptors(arrived: Sender<Arrived>) -> Registry {
    Registry::new()
        .with(Slot::NackResponder, NackResponderBuilder::new().with_size(RESENT).build())
        .with(Slot::JitterBuffer, Tap::new(arrived))
}

/// Where the next call's sound comes to.
fn addresses(options: &WebRtcOptions) -> Vec<SocketAddr> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let port = options.ports.as_ref().map_or(0, |ports| {
        let many = ports.end().saturating_sub(*ports.start()).saturating_add(1).max(1);
        ports.start().saturating_add(NEXT.fetch_add(1, Ordering::Relaxed) % many)
    });
    options.bind.iter().map(|address| SocketAddr::new(*address, port)).collect()
}

fn configuration(options: &WebRtcOptions) -> ::webrtc::peer_connection::RTCConfiguration {
    let stun = options.stun.iter().map(|url| RTCIceServer { urls: vec![url.clone()], ..Default::default() });
    let turn = options.turn.iter().map(|turn| RTCIceServer {
        urls: vec![turn.url.clone()],
        username: turn.user.clone(),
        credential: turn.password.clone(),
    });
    let policy = if options.relay_only { RTCIceTransportPolicy::Relay } else { RTCIceTransportPolicy::All };
    RTCConfigurationBuilder::new()
        .with_ice_servers(stun.chain(turn).collect())
        .with_ice_transport_policy(policy)
        .build()
}

/// The codec that was chosen and its key presses: nothing else can be agreed on.
fn engine(codec: CodecKind) -> Result<MediaEngine, PeerError> {
    let mut engine = MediaEngine::default();
    let events = RTCRtpCodec {
        mime_type: "audio/telephone-event".to_owned(),
        clock_rate: codec.clock_rate(),
        channels: 1,
        sdp_fmtp_line: "0-15".to_owned(),
        rtcp_feedback: Vec::new(),
    };
    let events_type = if codec == CodecKind::Opus { 110 } else { 126 };
    for (rtp_codec, payload_type) in [(codec_of(codec), codec.payload_type()), (events, events_type)] {
        let parameters = RTCRtpCodecParameters { rtp_codec, payload_type };
        let ours = |error: ::webrtc::error::Error| PeerError::Ours(error.to_string());
        engine.register_codec(parameters, RtpCodecKind::Audio).map_err(ours)?;
    }
    Ok(engine)
}

/// What is sent to us may repair what was lost before it. Silence is asked for in full: what was not sent was not heard,
/// and an answer may begin in it. What is lost is sent again for whoever offers to ask for it.
fn codec_of(codec: CodecKind) -> RTCRtpCodec {
    let opus = codec == CodecKind::Opus;
    RTCRtpCodec {
        mime_type: format!("audio/{}", codec.name()),
        clock_rate: codec.clock_rate(),
        channels: if opus { 2 } else { 1 },
        sdp_fmtp_line: if opus { "minptime=10;useinbandfec=1".to_owned() } else { String::new() },
        rtcp_feedback: vec![RTCPFeedback { typ: "nack".to_owned(), parameter: String::new() }],
    }
}

fn our_track(codec: CodecKind, ssrc: u32) -> MediaStreamTrack {
    let coding = RTCRtpEncodingParameters {
        rtp_coding_parameters: RTCRtpCodingParameters { ssrc: Some(ssrc), ..Default::default() },
        active: true,
        codec: codec_of(codec),
        ..Default::default()
    };
    let name = || LABEL.to_owned();
    MediaStreamTrack::new(name(), "agent".to_owned(), name(), RtpCodecKind::Audio, vec![coding])
}

/// An answer with a router's address beside each of ours: it hands everything on, port by port.
fn advertise(answer: &str, public: IpAddr) -> String {
    let mut told = String::with_capacity(answer.len() + 256);
    for line in answer.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ours = words.get(4).and_then(|word| word.parse::<IpAddr>().ok());
        let is_host = line.starts_with("a=candidate:") && words.contains(&"host");
        if let (true, Some(ours)) = (is_host, ours.filter(|ours| ours.is_ipv4() == public.is_ipv4())) {
            let replaced = line.replacen(&format!(" {ours} "), &format!(" {public} "), 1);
            told.push_str(&replaced.replacen("a=candidate:", "a=candidate:9", 1));
            told.push_str("\r\n");
        }
        told.push_str(line);
        told.push_str("\r\n");
    }
    told
}

/// Hears of what happens in the stack.
struct Watch {
    news: Sender<News>,
    gathered: Arc<Notify>,
    /// What the page is told: taken by the first channel that is ours.
    messages: Mutex<Option<Receiver<String>>>,
    pace: Clock,
}

#[async_trait::async_trait]
impl PeerConnectionEventHandler for Watch {
    async fn on_ice_gathering_state_change(&self, state: RTCIceGatheringState) {
        if state == RTCIceGatheringState::Complete {
            self.gathered.notify_one();
        }
    }

    async fn on_connection_state_change(&self, state: RTCPeerConnectionState) {
        use RTCPeerConnectionState::{Closed, Connected, Disconnected, Failed};
        let connection = if state == Connected {
            Connection::Connected
        } else if state == Disconnected {
            Connection::Shaken
        } else if state == Failed {
            Connection::Broken
        } else if state == Closed {
            Connection::Gone
        } else {
            return;
        };
        // The queue is long; a call that takes no news is at its end.
        let _ = self.news.try_send(News::Connection(connection));
    }

    async fn on_data_channel(&self, channel: Arc<dyn DataChannel>) {
        if channel.label().await.is_ok_and(|label| label == LABEL) {
            let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(messages) = messages {
                tokio::spawn(talk(channel, messages, self.news.clone(), self.pace));
            }
        }
    }
}

/// Moves messages between a page and its call, as long as there are both.
async fn talk(
    channel: Arc<dyn DataChannel>,
    mut messages: Receiver<String>,
    news: Sender<News>,
    pace: Clock,
) {
    let (mut second, mut many) = (0, 0);
    loop {
        tokio::select! {
            event = channel.poll() => match event {
                Some(DataChannelEvent::OnOpen) => {
                    let _ = news.send(News::Open).await;
                }
                Some(DataChannelEvent::OnMessage(message)) => {
                    let now = pace.now();
                    let this = now.as_micros() / 1_000_000;
                    many = if this == second { many + 1 } else { 0 };
                    second = this;
                    let text = std::str::from_utf8(&message.data).ok();
                    let text = text.filter(|text| text.len() <= LARGEST && many < MESSAGES_A_SECOND);
                    if let Some(text) = text {
                        let _ = news.send(News::Message(text.to_owned(), pace.instant(now))).await;
                    }
                }
                Some(DataChannelEvent::OnClose) | None => return,
                // Open, errors and fill levels: nothing of it is ours to act on.
                Some(_other) => {}
            },
            message = messages.recv() => match message {
                // A page that reads nothing must not make us keep everything.
                Some(message) => match channel.try_send_text(&message).await {
                    Ok(()) | Err(::webrtc::error::Error::ErrSendBufferFull) => {}
                    Err(_) => return,
                },
                None => return,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_address_stands_beside_our_own() {
        let answer = "v=0\r\na=candidate:1 1 udp 2130706431 10.0.0.7 40000 typ host\r\n\
            a=candidate:2 1 udp 1 203.0.113.1 4 typ srflx raddr 10.0.0.7 rport 40000\r\n";
        let told = advertise(answer, "203.0.113.9".parse().unwrap());
        assert!(told.contains("a=candidate:91 1 udp 2130706431 203.0.113.9 40000 typ host\r\n"), "{told}");
        assert_eq!(told.lines().count(), 4);
        assert_eq!(advertise(answer, "2001:db8::1".parse().unwrap()).lines().count(), 3);
    }
}
