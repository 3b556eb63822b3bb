//! The sound of one call: packets in, packets out, reports both ways.
//!
//! One task owns the two sockets. It ends when the call is over, when the line is ended from our side, or when nothing
//! has come for too long.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use sayback_core::{Event, Time};
use sayback_media::resample::Resampler;
use sayback_media::rtp::packet::is_rtcp;
use sayback_media::rtp::report::Reports;
use sayback_media::rtp::send::{Outbound, StreamStart};
use sayback_media::rtp::{Inbound, RtpPacket};
use tokio::net::UdpSocket;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;

use super::crypto::Protection;
use super::join::{Joint, Passed};
use super::offer::Agreed;
use crate::wire::LoopEvidence;
use crate::wire::rtp::{Fact, owned};
use crate::wire::{self, Out, Wire};

/// Longest datagram that is taken.
const LONGEST: usize = 2_048;
/// Our first reports come quickly, so that the way is known before the first question; then in this rhythm.
const FIRST_REPORTS: [u64; 3] = [300, 1_000, 2_500];
const REPORTS: Duration = Duration::from_secs(5);
/// A stream from another address is followed once the known one has been silent for this long.
const QUIET: Duration = Duration::from_millis(500);
/// What is "all of it" where a path changed while something sounded.
const ALL: Duration = Duration::from_secs(3_600);
/// Errors of a socket in a row before it is given up.
const ERRORS: u32 = 200;

/// Where a call's sound comes and goes.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) rtp: UdpSocket,
    pub(super) reports: UdpSocket,
}

/// What signalling wants of the sound.
#[derive(Debug)]
pub(super) enum Order {
    /// Another session was agreed on.
    Change(Box<Agreed>),
    /// Keys are to be pressed.
    Press(String),
    /// The far end is to hear nothing of us, or to hear us again.
    Mute(bool),
    /// From now on it belongs to another call's; who is told once it does.
    Join(Box<Joint>, oneshot::Sender<()>),
    /// No more sound is wanted.
    Stop,
}

/// Why the sound is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MediaEnd {
    /// Our side ends the call, or it is over.
    Ours,
    /// Signalling said so.
    Stopped,
    /// Nothing came any more.
    Silent,
    /// The network gave up.
    Broken,
}

/// How a sound session is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct MediaTerms {
    pub(super) evidence: LoopEvidence,
    /// After this long without a packet the far end is gone.
    pub(super) patience: Duration,
    pub(super) start: StreamStart,
    /// Samples a second on the wire: the first codec's.
    pub(super) rate: u32,
}

/// The sound of one call.
#[derive(Debug)]
pub(super) struct Media {
    sockets: Sockets,
    wire: Wire,
    agreed: Agreed,
    terms: MediaTerms,
    inbound: Inbound,
    outbound: Outbound,
    converter: Option<Resampler>,
    reports: Reports,
    protection: Option<Protection>,
    /// Where sound comes from, once it does; ours goes there too (symmetric RTP).
    source: Option<SocketAddr>,
    heard_at: Time,
    reports_sent: usize,
    next_report: Time,
    lost_before: Option<u32>,
    /// What is to be told to the call.
    news: VecDeque<Event>,
    errors: u32,
    /// An operator wants it silent.
    muted: bool,
    /// The other call, if the two were joined.
    joint: Option<Joint>,
}

/// The session could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("the agreed sound cannot be set up: {0}")]
pub(super) struct MediaError(String);

impl Media {
    pub(super) fn new(
        sockets: Sockets,
        wire: Wire,
        agreed: Agreed,
        terms: MediaTerms,
    ) -> Result<Self, MediaError> {
        let told = |error: &dyn std::fmt::Display| MediaError(error.to_string());
        let now = wire.clock().now();
        let protection = protection(&agreed)?;
        let mut media = Self {
            inbound: Inbound::new(agreed.types).map_err(|error| told(&error))?,
            outbound: Outbound::new(agreed.format, terms.start).map_err(|error| told(&error))?,
            converter: None,
            reports: Reports::new(terms.start.ssrc, format!("{:08x}@sayback", terms.start.ssrc)),
            protection,
            source: None,
            heard_at: now,
            reports_sent: 0,
            next_report: now + Duration::from_millis(FIRST_REPORTS[0]),
            lost_before: None,
            news: VecDeque::new(),
            errors: 0,
            muted: false,
            joint: None,
            sockets,
            wire,
            agreed,
            terms,
        };
        media.fit_converter().map_err(|error| told(&error))?;
        media.wire.set_muted(!media.agreed.heard);
        if !media.agreed.heard {
            media.news.push_back(Event::LineHeld);
        }
        media.judge_loop(now);
        Ok(media)
    }

    /// Runs to the end of the sound.
    pub(super) async fn run(mut self, mut orders: Receiver<Order>) -> MediaEnd {
        let mut frame = Vec::new();
        let mut sound = [0; LONGEST];
        let mut report = [0; LONGEST];
        let end = loop {
            while let Some(event) = self.news.pop_front() {
                self.wire.tell(event).await;
            }
            let clock = self.wire.clock();
            let due = clock.instant(self.due());
            tokio::select! {
                passed = passed(&mut self.joint) => match passed {
                    Some(Passed::Sound(samples)) => self.pass(&samples).await,
                    Some(Passed::Digit(digit)) => self.press(&digit.to_string()),
                    None => break MediaEnd::Ours,
                },
                out = self.wire.next(&mut frame), if self.joint.is_none() => match out {
                    Some(Out::Frame { .. }) => self.send(&mut frame).await,
                    Some(Out::Digits { digits }) => self.press(&digits),
                    Some(Out::Mark { .. } | Out::Clear) => {}
                    Some(Out::End) | None => break MediaEnd::Ours,
                },
                came = self.sockets.rtp.recv_from(&mut sound) => match came {
                    Ok((len, from)) => self.on_datagram(&mut sound[..len], from, clock.now()),
                    Err(_) => self.errors += 1,
                },
                came = self.sockets.reports.recv_from(&mut report) => match came {
                    Ok((len, _)) => self.on_report(&report[..len], clock.now()),
                    Err(_) => self.errors += 1,
                },
                order = orders.recv() => match order {
                    Some(Order::Change(agreed)) => self.change(*agreed, clock.now()),
                    Some(Order::Press(digits)) => self.press(&digits),
                    Some(Order::Mute(muted)) => self.mute(muted),
                    Some(Order::Join(joint, told)) => {
                        self.joint = Some(*joint);
                        // Whoever asked waits for it, unless its call is over.
                        let _ = told.send(());
                    }
                    Some(Order::Stop) | None => break MediaEnd::Stopped,
                },
                () = tokio::time::sleep_until(due.into()) => self.on_time(clock.now()).await,
            }
            let now = clock.now();
            // Who holds us need not send anything.
            let sends = self.agreed.hearing && self.agreed.heard;
            if sends && now.since(self.heard_at) > self.terms.patience {
                break MediaEnd::Silent;
            }
            if self.errors > ERRORS {
                break MediaEnd::Broken;
            }
        };
        self.leave().await;
        end
    }

    fn due(&self) -> Time {
        self.inbound.poll_timeout().map_or(self.next_report, |due| due.min(self.next_report))
    }

    async fn on_time(&mut self, now: Time) {
        let mut facts = Vec::new();
        self.inbound.poll(now, &mut |fact| facts.push(owned(fact)));
        self.take_facts(facts);
        if now >= self.next_report {
            self.send_report(now).await;
        }
    }

    fn on_datagram(&mut self, bytes: &mut [u8], from: SocketAddr, now: Time) {
        self.errors = 0;
        if is_rtcp(bytes) {
            // Some send reports to the port of the sound without having agreed on it.
            self.on_report(bytes, now);
            return;
        }
        let opened = match &mut self.protection {
            Some(protection) => protection.open(bytes, false),
            None => None,
        };
        let bytes: &[u8] = match (&self.protection, &opened) {
            (Some(_), None) => return,
            (_, Some(opened)) => opened,
            (None, None) => bytes,
        };
        let Ok(packet) = RtpPacket::parse(bytes) else { return };
        if !self.is_ours(&packet) || !self.follow_source(from, now) {
            return;
        }
        self.heard_at = now;
        let mut facts = Vec::new();
        self.inbound.handle(bytes, now, &mut |fact| facts.push(owned(fact)));
        self.take_facts(facts);
    }

    /// Whether a payload type was agreed: whatever else comes to the port moves nothing.
    fn is_ours(&self, packet: &RtpPacket<'_>) -> bool {
        let types = &self.agreed.types;
        let agreed = [Some(types.audio), types.events, types.comfort_noise];
        agreed.contains(&Some(packet.payload_type))
    }

    /// Whether sound from there is the caller's. A telephone behind a translating router sends from another address
    /// than it names, and may change it: we follow, but not while the known address still sends.
    fn follow_source(&mut self, from: SocketAddr, now: Time) -> bool {
        match self.source {
            Some(known) if known == from => true,
            Some(known) => {
                if now.since(self.heard_at) < QUIET {
                    return false;
                }
                tracing::info!("sound comes from {from} instead of {known}");
                self.source = Some(from);
                self.lose_path();
                true
            }
            None => {
                self.source = Some(from);
                true
            }
        }
    }

    /// What is known of the way no longer holds, and what sounds just now may not have arrived (VC-42).
    fn lose_path(&mut self) {
        self.reports.forget_path();
        self.lost_before = None;
        self.wire.change_path();
        self.judge_loop(self.wire.clock().now());
        // To know the new way soon.
        self.reports_sent = 0;
    }

    fn take_facts(&mut self, facts: Vec<Fact>) {
        for fact in facts {
            let fact = match (&self.joint, fact) {
                (None, fact) => fact,
                (Some(joint), Fact::Wire(wire::InboundFact::Heard { samples, .. })) => {
                    joint.give(Passed::Sound(samples));
                    continue;
                }
                (Some(joint), Fact::Digit(digit, _)) => {
                    joint.give(Passed::Digit(digit));
                    continue;
                }
                (Some(_), Fact::Wire(wire::InboundFact::Lost { .. }) | Fact::Path) => continue,
            };
            match fact {
                Fact::Wire(fact) => self.wire.hear(fact),
                Fact::Digit(digit, start) => self.news.push_back(Event::Digit { digit, start }),
                Fact::Path => self.lose_path(),
            }
        }
    }

    fn on_report(&mut self, bytes: &[u8], now: Time) {
        let opened = match &mut self.protection {
            Some(protection) => match protection.open(bytes, true) {
                Some(opened) => Some(opened),
                None => return,
            },
            None => None,
        };
        if let Err(error) = self.reports.handle(opened.as_deref().unwrap_or(bytes), now) {
            tracing::debug!("{error}");
            return;
        }
        self.heard_at = now;
        if let Some(view) = self.reports.peer() {
            self.terms.evidence.proven = true;
            let lost = self.lost_before.map_or(0, |before| view.lost.saturating_sub(before));
            if lost > 0 {
                let packet = Duration::from_millis(u64::from(self.agreed.format.ptime_ms));
                self.wire.lose(packet.saturating_mul(lost).min(ALL));
            }
            self.lost_before = Some(view.lost);
        }
        self.judge_loop(now);
    }

    fn judge_loop(&mut self, now: Time) {
        let ptime = Duration::from_millis(u64::from(self.agreed.format.ptime_ms));
        let frame = frame_of(self.agreed.format.ptime_ms);
        let converted = if self.converter.is_some() { Duration::from_millis(10) } else { Duration::ZERO };
        self.terms.evidence.own = ptime.saturating_sub(frame) + converted;
        let (trip, device) = (self.reports.round_trip(now), self.reports.end_system());
        self.wire.set_trip(trip.map_or(Duration::ZERO, |trip| trip.least));
        let (delay, class) = self.terms.evidence.judge(trip, device);
        self.wire.set_loop(delay, class);
    }

    fn mute(&mut self, muted: bool) {
        self.muted = muted;
        self.wire.set_muted(muted || !self.agreed.heard);
    }

    async fn send(&mut self, frame: &mut [f32]) {
        if self.muted {
            frame.fill(0.0);
        }
        let packets = match &mut self.converter {
            Some(converter) => packets(&mut self.outbound, converter.push(frame), self.agreed.heard),
            None => packets(&mut self.outbound, frame, self.agreed.heard),
        };
        self.transmit(packets).await;
        self.wire.sent();
    }

    /// Sends what comes from the call that this one was joined with.
    async fn pass(&mut self, samples: &[f32]) {
        let Some(joint) = &mut self.joint else { return };
        let packets = match joint.fit(samples, self.agreed.format.codec.sample_rate()) {
            Ok(samples) => packets(&mut self.outbound, samples, self.agreed.heard),
            Err(error) => {
                tracing::error!("{error}");
                return;
            }
        };
        self.transmit(packets).await;
    }

    async fn transmit(&mut self, packets: Vec<Vec<u8>>) {
        let to = self.source.unwrap_or(self.agreed.remote);
        for packet in packets {
            let packet = match &mut self.protection {
                Some(protection) => protection.protect(&packet, false),
                None => Some(packet),
            };
            if let Some(packet) = packet {
                // A full buffer or an unreachable host: the packet is lost, as others are on the way.
                let _ = self.sockets.rtp.send_to(&packet, to).await;
            }
        }
    }

    fn press(&mut self, digits: &str) {
        for digit in digits.chars() {
            if !self.outbound.press(digit) {
                tracing::warn!("the far end takes no key {digit:?}");
            }
        }
    }

    async fn send_report(&mut self, now: Time) {
        let wait = FIRST_REPORTS.get(self.reports_sent + 1).zip(FIRST_REPORTS.get(self.reports_sent));
        let wait = wait.map_or(REPORTS, |(next, this)| Duration::from_millis(next - this));
        self.reports_sent += 1;
        self.next_report = now + wait;
        let received = self.inbound.ssrc().zip(self.inbound.loss().report());
        let mut bytes = Vec::new();
        self.reports.write(now, self.outbound.sent(), received, &mut bytes);
        self.send_control(&bytes).await;
    }

    async fn send_control(&mut self, bytes: &[u8]) {
        let bytes = match &mut self.protection {
            Some(protection) => protection.protect(bytes, true),
            None => Some(bytes.to_vec()),
        };
        let Some(bytes) = bytes else { return };
        let (socket, to) = if self.agreed.shared_port {
            (&self.sockets.rtp, self.source.unwrap_or(self.agreed.remote))
        } else {
            (&self.sockets.reports, self.agreed.reports)
        };
        let _ = socket.send_to(&bytes, to).await;
    }

    async fn leave(&mut self) {
        let mut bytes = Vec::new();
        self.reports.write_goodbye(&mut bytes);
        self.send_control(&bytes).await;
    }

    /// Goes on with what a re-INVITE or an UPDATE agreed on.
    fn change(&mut self, agreed: Agreed, now: Time) {
        let before = std::mem::replace(&mut self.agreed, agreed);
        let new_path = before.remote != self.agreed.remote
            || before.types != self.agreed.types
            || before.srtp != self.agreed.srtp;
        if before.srtp != self.agreed.srtp {
            match protection(&self.agreed) {
                Ok(protection) => self.protection = protection,
                Err(error) => tracing::error!("{error}"),
            }
        }
        if before.remote != self.agreed.remote {
            self.source = None;
        }
        if before.types != self.agreed.types {
            match Inbound::new(self.agreed.types) {
                Ok(inbound) => self.inbound = inbound,
                Err(error) => tracing::error!("{error}"),
            }
        }
        if before.format != self.agreed.format
            && let Err(error) = self.outbound.change(self.agreed.format)
        {
            tracing::error!("{error}");
        }
        if let Err(error) = self.fit_converter() {
            tracing::error!("{error}");
        }
        if new_path {
            self.lose_path();
        }
        if before.heard != self.agreed.heard {
            self.mute(self.muted);
            self.news.push_back(if self.agreed.heard { Event::LineResumed } else { Event::LineHeld });
        }
        self.heard_at = now;
        self.judge_loop(now);
    }

    /// The wire keeps its first rate; a codec of another rate gets a converter in front of it.
    fn fit_converter(&mut self) -> Result<(), sayback_media::resample::ResampleError> {
        let rate = self.agreed.format.codec.sample_rate();
        self.converter =
            if rate == self.terms.rate { None } else { Some(Resampler::new(self.terms.rate, rate)?) };
        Ok(())
    }
}

/// What the other call gives; for ever nothing if there is none.
async fn passed(joint: &mut Option<Joint>) -> Option<Passed> {
    match joint {
        Some(joint) => joint.take().await,
        None => std::future::pending().await,
    }
}

/// The packets that sound becomes; none while the far end wants none.
fn packets(outbound: &mut Outbound, samples: &[f32], wanted: bool) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    if wanted && let Err(error) = outbound.push(samples, |bytes| packets.push(bytes.to_vec())) {
        tracing::error!("{error}");
    }
    packets
}

/// The frames that packets of this length are made of.
pub(super) fn frame_of(ptime_ms: u32) -> Duration {
    Duration::from_millis(if ptime_ms.is_multiple_of(20) { 20 } else { 10 })
}

fn protection(agreed: &Agreed) -> Result<Option<Protection>, MediaError> {
    let Some(keys) = &agreed.srtp else { return Ok(None) };
    let refused = || MediaError("the keys were refused".to_owned());
    Protection::new(keys).map(Some).ok_or_else(refused)
}
