//! A far end that is no browser: the same stack as the server's, from the other side.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ::webrtc::data_channel::DataChannel;
use ::webrtc::media_stream::track_local::TrackLocal;
use ::webrtc::media_stream::track_local::static_rtp::TrackLocalStaticRTP;
use ::webrtc::peer_connection::{
    MediaEngine, PeerConnection, PeerConnectionBuilder, PeerConnectionEventHandler, RTCIceGatheringState,
    RTCPeerConnectionState, RTCSessionDescription, SettingEngineBuilder,
};
use rtc::ice::mdns::MulticastDnsMode;
use rtc::interceptor::{NackResponderBuilder, Registry, Slot};
use rtc::media_stream::MediaStreamTrack;
use rtc::peer_connection::configuration::RTCOfferOptions;
use rtc::rtcp::transport_feedbacks::transport_layer_nack::{
    TransportLayerNack, nack_pairs_from_sequence_numbers,
};
use rtc::rtp_transceiver::rtp_sender::{
    RTCPFeedback, RTCRtpCodec, RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters,
    RtpCodecKind,
};
use rtc::shared::marshal::Unmarshal;
use tap::Tap;
use tokio::sync::mpsc::channel;
use tokio::sync::watch;

/// The server's own.
#[path = "../../src/webrtc/tap.rs"]
mod tap;

/// Told of each packet: its bytes, whether it is a control report, and when it came.
pub(crate) type Ear = Box<dyn FnMut(&[u8], bool, Instant) + Send>;

/// A caller. Opus is all that it speaks.
pub(crate) struct FarEnd {
    pub(crate) stack: Arc<dyn PeerConnection>,
    /// The channel for messages, if one was wanted.
    pub(crate) channel: Option<Arc<dyn DataChannel>>,
    track: Arc<TrackLocalStaticRTP>,
    state: watch::Receiver<RTCPeerConnectionState>,
    /// What the server answered last.
    answer: Mutex<String>,
}

impl FarEnd {
    /// Comes up, and gives its offer.
    pub(crate) async fn offer(ssrc: u32, label: Option<&str>, mut ear: Ear) -> (Self, String) {
        let mut engine = MediaEngine::default();
        let parameters = RTCRtpCodecParameters { rtp_codec: opus(), payload_type: 111 };
        engine.register_codec(parameters, RtpCodecKind::Audio).unwrap();
        let (told, state) = watch::channel(RTCPeerConnectionState::New);
        let (gathered, mut complete) = watch::channel(false);
        let (arrived, mut tapped) = channel::<tap::Arrived>(512);
        tokio::spawn(async move {
            while let Some(came) = tapped.recv().await {
                ear(&came.bytes, came.is_report, came.at);
            }
        });
        let stack = PeerConnectionBuilder::new()
            .with_media_engine(engine)
            .with_setting_engine(
                SettingEngineBuilder::new()
                    .with_multicast_dns_mode(MulticastDnsMode::Disabled)
                    .with_include_loopback_candidate(true)
                    .build(),
            )
            .with_interceptor_registry(
                Registry::new()
                    .with(Slot::NackResponder, NackResponderBuilder::new().with_size(64).build())
                    .with(Slot::JitterBuffer, Tap::new(arrived)),
            )
            .with_handler(Arc::new(Watch { told, gathered }))
            .with_udp_addrs(vec!["127.0.0.1:0"])
            .build()
            .await
            .unwrap();
        let coding = RTCRtpEncodingParameters {
            rtp_coding_parameters: RTCRtpCodingParameters { ssrc: Some(ssrc), ..Default::default() },
            active: true,
            codec: opus(),
            ..Default::default()
        };
        let name = || "caller".to_owned();
        let sound = MediaStreamTrack::new(name(), name(), name(), RtpCodecKind::Audio, vec![coding]);
        let track = Arc::new(TrackLocalStaticRTP::new(sound));
        stack.add_track(Arc::clone(&track) as Arc<dyn TrackLocal>).await.unwrap();
        let channel = match label {
            Some(label) => Some(stack.create_data_channel(label, None).await.unwrap()),
            None => None,
        };
        let offer = stack.create_offer(None).await.unwrap();
        stack.set_local_description(offer).await.unwrap();
        tokio::time::timeout(Duration::from_secs(20), complete.wait_for(|done| *done))
            .await
            .unwrap()
            .unwrap();
        let offer = stack.local_description().await.unwrap().sdp;
        (Self { stack: Arc::new(stack), channel, track, state, answer: Mutex::default() }, offer)
    }

    /// Takes the answer; true once sound can flow.
    pub(crate) async fn connect(&mut self, answer: String) -> bool {
        self.answer.lock().unwrap().clone_from(&answer);
        let answer = RTCSessionDescription::answer(answer).unwrap();
        self.stack.set_remote_description(answer).await.unwrap();
        let connected = self.state.wait_for(|state| *state == RTCPeerConnectionState::Connected);
        tokio::time::timeout(Duration::from_secs(30), connected).await.is_ok_and(|done| done.is_ok())
    }

    /// Looks for another way; gives its new names, and no candidate: the server is to find out where this end is.
    pub(crate) async fn restart(&self) -> String {
        let offer = self.stack.create_offer(Some(RTCOfferOptions { ice_restart: true })).await.unwrap();
        let first = |start: &str| offer.sdp.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
        let told = ["a=ice-ufrag:", "a=ice-pwd:", "m=audio", "a=mid:"].map(first);
        self.stack.set_local_description(offer).await.unwrap();
        format!("{}\r\n", told.join("\r\n"))
    }

    /// Takes what the server said to that, and goes over `way` from now on.
    pub(crate) async fn go_on(&self, fragment: &str, way: SocketAddr) {
        let mut renewed = String::new();
        let before = self.answer.lock().unwrap().clone();
        for line in before.lines().filter(|line| !line.starts_with("a=end-of-candidates")) {
            let start = ["a=ice-ufrag:", "a=ice-pwd:"].into_iter().find(|start| line.starts_with(start));
            let fresh = start.and_then(|start| fragment.lines().find(|line| line.starts_with(start)));
            renewed.push_str(fresh.unwrap_or(line));
            renewed.push_str("\r\n");
        }
        let renewed = over(&renewed, way);
        self.answer.lock().unwrap().clone_from(&renewed);
        let answer = RTCSessionDescription::answer(renewed).unwrap();
        self.stack.set_remote_description(answer).await.unwrap();
    }

    /// Waits until its own stack has given the way up.
    pub(crate) async fn breaks(&self) {
        let mut state = self.state.clone();
        let broken = state.wait_for(|state| *state == RTCPeerConnectionState::Failed);
        tokio::time::timeout(Duration::from_secs(60), broken).await.unwrap().unwrap();
    }

    /// Sends a packet of sound.
    pub(crate) async fn send(&self, packet: &[u8]) {
        if let Ok(packet) = rtc::rtp::Packet::unmarshal(&mut &*packet) {
            let _ = self.track.write_rtp(packet).await;
        }
    }

    /// Sends control reports.
    pub(crate) async fn send_reports(&self, reports: &[u8]) {
        if let Ok(reports) = rtc::rtcp::packet::unmarshal(&mut &*reports) {
            let _ = self.track.write_rtcp(reports).await;
        }
    }

    /// Asks the server for packets once more.
    pub(crate) async fn ask_again(&self, ours: u32, theirs: u32, missing: &[u16]) {
        let nacks = nack_pairs_from_sequence_numbers(missing);
        let nack = TransportLayerNack { sender_ssrc: ours, media_ssrc: theirs, nacks };
        let _ = self.track.write_rtcp(vec![Box::new(nack)]).await;
    }

    /// Is gone.
    pub(crate) async fn close(&self) {
        let _ = self.stack.close().await;
    }
}

/// A description whose sound goes to `way`: its one candidate is put there, and others are left out.
pub(crate) fn over(description: &str, way: SocketAddr) -> String {
    let mut told = String::new();
    for line in description.lines().filter(|line| !line.starts_with("a=candidate:")) {
        told.push_str(line);
        told.push_str("\r\n");
        if line.starts_with("a=mid:0") {
            told.push_str(&format!(
                "a=candidate:1 1 udp 2130706431 {} {} typ host\r\n",
                way.ip(),
                way.port()
            ));
        }
    }
    told
}

fn opus() -> RTCRtpCodec {
    RTCRtpCodec {
        mime_type: "audio/opus".to_owned(),
        clock_rate: 48_000,
        channels: 2,
        sdp_fmtp_line: "minptime=10;useinbandfec=1".to_owned(),
        rtcp_feedback: vec![RTCPFeedback { typ: "nack".to_owned(), parameter: String::new() }],
    }
}

struct Watch {
    told: watch::Sender<RTCPeerConnectionState>,
    gathered: watch::Sender<bool>,
}

#[async_trait::async_trait]
impl PeerConnectionEventHandler for Watch {
    async fn on_ice_gathering_state_change(&self, state: RTCIceGatheringState) {
        self.gathered.send_replace(state == RTCIceGatheringState::Complete);
    }

    async fn on_connection_state_change(&self, state: RTCPeerConnectionState) {
        self.told.send_replace(state);
    }
}
