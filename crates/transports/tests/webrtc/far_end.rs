//! A far end that is no browser: the same stack as the server's, from the other side.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ::webrtc::data_channel::DataChannel;
use ::webrtc::media_stream::track_local::TrackLocal;
use ::webrtc::media_stream::track_local::static_rtp::TrackLocalStaticRTP;
use ::webrtc::peer_connection::{
    MediaEngine, PeerConnection, PeerConnectionBuilder, PeerConnectionEventHandler, RTCIceGatheringState,
    RTCPeerConnectionState, RTCSessionDescription, Registry, SettingEngineBuilder,
};
use rtc::ice::mdns::MulticastDnsMode;
use rtc::interceptor::{Interceptor, Packet, Slot, StreamInfo, TaggedPacket};
use rtc::media_stream::MediaStreamTrack;
use rtc::rtp_transceiver::rtp_sender::{
    RTCRtpCodec, RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters, RtpCodecKind,
};
use rtc::sansio::Protocol;
use rtc::shared::error::Error;
use rtc::shared::marshal::Unmarshal;
use tokio::sync::watch;

/// Told of each packet of sound: its timestamp and when it came.
pub(crate) type Ear = Box<dyn FnMut(u32, Instant) + Send>;

/// A caller. Opus is all that it speaks.
pub(crate) struct FarEnd {
    pub(crate) stack: Arc<dyn PeerConnection>,
    /// The channel for messages, if one was wanted.
    pub(crate) channel: Option<Arc<dyn DataChannel>>,
    track: Arc<TrackLocalStaticRTP>,
    state: watch::Receiver<RTCPeerConnectionState>,
}

impl FarEnd {
    /// Comes up, and gives its offer.
    pub(crate) async fn offer(ssrc: u32, label: Option<&str>, ear: Ear) -> (Self, String) {
        let mut engine = MediaEngine::default();
        let parameters = RTCRtpCodecParameters { rtp_codec: opus(), payload_type: 111 };
        engine.register_codec(parameters, RtpCodecKind::Audio).unwrap();
        let (told, state) = watch::channel(RTCPeerConnectionState::New);
        let (gathered, mut complete) = watch::channel(false);
        let stack = PeerConnectionBuilder::new()
            .with_media_engine(engine)
            .with_setting_engine(
                SettingEngineBuilder::new()
                    .with_multicast_dns_mode(MulticastDnsMode::Disabled)
                    .with_include_loopback_candidate(true)
                    .build(),
            )
            .with_interceptor_registry(Registry::new().with(Slot::from(1), Listening::new(ear)))
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
        (Self { stack: Arc::new(stack), channel, track, state }, offer)
    }

    /// Takes the answer; true once sound can flow.
    pub(crate) async fn connect(&mut self, answer: String) -> bool {
        let answer = RTCSessionDescription::answer(answer).unwrap();
        self.stack.set_remote_description(answer).await.unwrap();
        let connected = self.state.wait_for(|state| *state == RTCPeerConnectionState::Connected);
        tokio::time::timeout(Duration::from_secs(30), connected).await.is_ok_and(|done| done.is_ok())
    }

    /// Sends a packet of sound.
    pub(crate) async fn send(&self, packet: &[u8]) {
        if let Ok(packet) = rtc::rtp::Packet::unmarshal(&mut &*packet) {
            let _ = self.track.write_rtp(packet).await;
        }
    }

    /// Is gone.
    pub(crate) async fn close(&self) {
        let _ = self.stack.close().await;
    }
}

fn opus() -> RTCRtpCodec {
    RTCRtpCodec {
        mime_type: "audio/opus".to_owned(),
        clock_rate: 48_000,
        channels: 2,
        sdp_fmtp_line: "minptime=10;useinbandfec=1".to_owned(),
        rtcp_feedback: Vec::new(),
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

/// Stands next to the network and hears; nothing is handed on.
struct Listening {
    ear: Mutex<Ear>,
    leaving: VecDeque<TaggedPacket>,
}

impl Listening {
    fn new(ear: Ear) -> Self {
        Self { ear: Mutex::new(ear), leaving: VecDeque::new() }
    }
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for Listening {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = Error;
    type Time = Instant;

    fn handle_read(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        if let Packet::Rtp(sound) = &packet.message.packet {
            self.ear.get_mut().unwrap()(sound.header.timestamp, packet.now);
        }
        Ok(())
    }

    fn poll_read(&mut self) -> Option<TaggedPacket> {
        None
    }

    fn handle_write(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        self.leaving.push_back(packet);
        Ok(())
    }

    fn poll_write(&mut self) -> Option<TaggedPacket> {
        self.leaving.pop_front()
    }
}

impl Interceptor for Listening {
    fn bind_local_stream(&mut self, _info: &StreamInfo) {}
    fn unbind_local_stream(&mut self, _info: &StreamInfo) {}
    fn bind_remote_stream(&mut self, _info: &StreamInfo) {}
    fn unbind_remote_stream(&mut self, _info: &StreamInfo) {}
}
