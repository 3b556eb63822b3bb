//! One call from a browser: its sound, its reports and what its page tells.
//!
//! ```text
//! waiting ── connected ──▶ live ── either side ends, or nothing comes any more ──▶ over
//!    └── not in time ──▶ over   │ ▲
//!                    way broken ▼ └ another way, if the page asks for one in time
//! ```
//!
//! A way that is broken is not the end: a page whose address has changed asks for another one (an ICE restart), and over
//! that the call goes on. Only what sounded meanwhile was not heard. A page that sends neither sound nor such a request
//! for [`WebRtcOptions::patience`](super::WebRtcOptions::patience) is gone, and the call is lost.
//!
//! A mark behind an utterance is held until somebody says that it was heard: the page, or, where there is none that
//! reports, the far end's control reports.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sayback_core::{Event, EvidenceClass, LoopDelay, Time};
use sayback_media::rtp::report::Reports;
use sayback_media::rtp::send::{Outbound, SendFormat, StreamStart};
use sayback_media::rtp::{Inbound, PayloadTypes};
use serde_json::json;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;

use super::description::AgreedSound;
use super::fragment::Fragment;
use super::page::{Page, PageFact};
use super::peer::{Connection, News, Peer, PeerError};
use super::tap::Arrived;
use crate::wire::rtp::{Fact, owned};
use crate::wire::{LoopEvidence, Out, Wire};

/// Sound in a packet, and in a frame.
pub(super) const FRAME: Duration = Duration::from_millis(20);
/// Our first reports come quickly, so that the way is known before the first question; then in this rhythm.
const FIRST_REPORTS: [u64; 4] = [200, 700, 1_500, 2_500];
const REPORTS: Duration = Duration::from_millis(2_500);
/// A page that has a channel says so within this long, or is taken for one that does not report.
const HELLO: Duration = Duration::from_secs(3);
/// Where no page reports: a report of the far end about the sound behind a mark is waited for this long, then the sound
/// that comes from there has to do. Browsers report every five seconds.
const REPORT_WAIT: Duration = Duration::from_millis(1_500);
/// Sound that has not come for so long was not being sent, or did not get through; neither did ours, then.
const OUTAGE: Duration = Duration::from_millis(600);
/// What is "all of it" where a path changed while something sounded.
const ALL: Duration = Duration::from_secs(3_600);
/// Marks that may wait.
const MARKS: usize = 64;

/// What is asked of a call over HTTP.
#[derive(Debug)]
pub(super) enum Order {
    /// Where the far end can be reached too.
    Candidates(Fragment, oneshot::Sender<Result<(), PeerError>>),
    /// The way is to be looked for anew.
    Restart(Fragment, oneshot::Sender<Result<String, PeerError>>),
    /// It is over.
    Stop,
}

/// Who says what of our sound was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Witness {
    /// Not known yet: a page may still say that it will.
    Awaited,
    /// The page.
    Page,
    /// The far end's control reports.
    Reports,
}

/// The sound that was agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) codec: sayback_media::codec::CodecKind,
    pub(super) agreed: AgreedSound,
    pub(super) start: StreamStart,
    pub(super) evidence: LoopEvidence,
    pub(super) witness: Witness,
    /// Without a sign of life the far end is gone after so long.
    pub(super) patience: Duration,
}

/// A mark that waits for somebody to have heard what is before it.
#[derive(Clone, Debug)]
struct Mark {
    name: String,
    /// The timestamp behind the last sample before it, and the packets sent by then.
    rtp: u32,
    packets: u32,
    at: Time,
}

/// A call whose sound flows.
#[derive(Debug)]
pub(super) struct BrowserCall {
    peer: Peer,
    wire: Wire,
    told: Receiver<String>,
    inbound: Inbound,
    outbound: Outbound,
    reports: Reports,
    terms: Terms,
    page: Page,
    marks: VecDeque<Mark>,
    /// When the marks were looked at last.
    looked: Time,
    news: VecDeque<Event>,
    /// When a packet came last.
    heard: Time,
    /// When the far end showed last that it is there: a packet, or the wish for another way.
    alive: Time,
    /// How often the way had changed when it was looked at last.
    path_changes: Option<u32>,
    begun: Time,
    reports_sent: usize,
    next_report: Time,
    lost_before: Option<u32>,
}

impl BrowserCall {
    pub(super) fn new(
        peer: Peer,
        wire: Wire,
        told: Receiver<String>,
        terms: Terms,
    ) -> Result<Self, sayback_media::codec::CodecError> {
        let Terms { codec, agreed, start, .. } = terms;
        let format = SendFormat {
            codec,
            payload_type: agreed.payload_type,
            ptime_ms: u32::try_from(FRAME.as_millis()).unwrap_or(20),
            events: agreed.events,
        };
        let types =
            PayloadTypes { audio: agreed.payload_type, codec, events: agreed.events, comfort_noise: None };
        let now = wire.clock().now();
        let call = Self {
            peer,
            told,
            inbound: Inbound::new(types)?,
            outbound: Outbound::new(format, start)?,
            reports: Reports::new(start.ssrc, format!("{:08x}@sayback", start.ssrc)),
            page: Page::new(codec.clock_rate()),
            marks: VecDeque::new(),
            looked: Time::ZERO,
            news: VecDeque::new(),
            heard: now,
            alive: now,
            path_changes: None,
            begun: now,
            reports_sent: 0,
            next_report: now + Duration::from_millis(FIRST_REPORTS[0]),
            lost_before: None,
            terms,
            wire,
        };
        call.judge_loop(now);
        Ok(call)
    }

    /// Holds it to its end; the session knows of it then.
    pub(super) async fn hold(mut self, orders: &mut Receiver<Order>) {
        let ended = self.talk(orders).await;
        // What the page has not been told yet, it is told now: how the call ended, above all.
        while let Ok(text) = self.told.try_recv() {
            self.peer.say(text);
        }
        let mut goodbye = Vec::new();
        self.reports.write_goodbye(&mut goodbye);
        self.peer.send_reports(&goodbye).await;
        self.wire.lose_line();
        self.wire.tell(ended).await;
        self.peer.close().await;
    }

    /// Talks until it is over; says to the session how.
    async fn talk(&mut self, orders: &mut Receiver<Order>) -> Event {
        let mut frame = Vec::new();
        loop {
            while let Some(event) = self.news.pop_front() {
                self.wire.tell(event).await;
            }
            let clock = self.wire.clock();
            let due = clock.instant(self.due());
            tokio::select! {
                out = self.wire.next(&mut frame) => match out {
                    Some(Out::Frame { .. }) => self.send(&frame).await,
                    Some(Out::Mark { name }) => self.mark(name, clock.now()),
                    Some(Out::Clear) => self.marks.clear(),
                    Some(Out::Digits { digits }) => self.press(&digits),
                    Some(Out::End) | None => return Event::HungUp,
                },
                arrived = self.peer.arrived.recv() => match arrived {
                    Some(arrived) => self.on_arrived(&arrived).await,
                    None => return Event::LineLost,
                },
                news = self.peer.news.recv() => match news {
                    Some(News::Connection(Connection::Gone)) | None => return Event::LineLost,
                    Some(news) => self.on_news(news),
                },
                Some(text) = self.told.recv() => self.peer.say(text),
                order = orders.recv() => match order {
                    Some(Order::Stop) | None => return Event::HungUp,
                    Some(order) => self.obey(order).await,
                },
                () = tokio::time::sleep_until(due.into()) => self.on_time(clock.now()).await,
            }
            let now = clock.now();
            if now.since(self.alive) > self.terms.patience {
                tracing::info!(
                    "neither sound nor the wish for another way has come for too long; the call is lost"
                );
                return Event::LineLost;
            }
            self.release_marks(now).await;
        }
    }

    fn due(&self) -> Time {
        let mark = mark_due(self.marks.front(), self.terms.witness, self.looked);
        let sound = self.inbound.poll_timeout();
        [mark, sound].into_iter().flatten().fold(self.next_report, Time::min)
    }

    async fn send(&mut self, frame: &[f32]) {
        let mut packets: Vec<Vec<u8>> = Vec::new();
        if let Err(error) = self.outbound.push(frame, |bytes| packets.push(bytes.to_vec())) {
            tracing::error!("{error}");
        }
        for packet in packets {
            self.peer.send(&packet).await;
        }
        self.wire.sent();
    }

    fn mark(&mut self, name: String, now: Time) {
        let sent = self.outbound.sent();
        if self.marks.len() == MARKS {
            // The oldest is given up: it counts as not heard.
            self.marks.pop_front();
        }
        self.marks.push_back(Mark { name, rtp: sent.timestamp, packets: sent.packets, at: now });
    }

    fn press(&mut self, digits: &str) {
        for digit in digits.chars() {
            if !self.outbound.press(digit) {
                tracing::warn!("the page takes no key {digit:?}");
            }
        }
    }

    async fn on_arrived(&mut self, arrived: &Arrived) {
        let now = self.wire.clock().at(arrived.at);
        if arrived.is_report {
            self.on_report(&arrived.bytes, now);
            return;
        }
        let quiet = now.since(self.heard);
        if quiet > OUTAGE && self.terms.witness != Witness::Page {
            // Nothing came, so nothing went either, for all that we know.
            self.wire.lose(quiet);
        }
        (self.heard, self.alive) = (now, now);
        let mut facts = Vec::new();
        self.inbound.handle(&arrived.bytes, now, &mut |fact| facts.push(owned(fact)));
        self.take_facts(facts, now);
        if self.terms.agreed.resends {
            self.ask_again(now).await;
        }
    }

    /// Asks for what was lost, as far as it can still come in time.
    async fn ask_again(&mut self, now: Time) {
        let Some((trip, theirs)) = self.reports.round_trip(now).zip(self.inbound.ssrc()) else { return };
        let missing = self.inbound.missing(now, trip.most);
        if !missing.is_empty() {
            self.peer.ask_again(self.terms.start.ssrc, theirs, &missing).await;
        }
    }

    fn take_facts(&mut self, facts: Vec<Fact>, now: Time) {
        for fact in facts {
            match fact {
                Fact::Wire(fact) => self.wire.hear(fact),
                Fact::Digit(digit, start) => self.news.push_back(Event::Digit { digit, start }),
                Fact::Path => self.lose_path(now),
            }
        }
    }

    fn on_report(&mut self, bytes: &[u8], now: Time) {
        if let Err(error) = self.reports.handle(bytes, now) {
            tracing::debug!("{error}");
            return;
        }
        if let Some(view) = self.reports.peer() {
            self.terms.evidence.proven = true;
            let lost = self.lost_before.map_or(0, |before| view.lost.saturating_sub(before));
            // A page knows better: what was lost may have been repaired before it sounded.
            if lost > 0 && self.terms.witness != Witness::Page {
                self.wire.lose(FRAME.saturating_mul(lost).min(ALL));
            }
            self.lost_before = Some(view.lost);
        }
        self.judge_loop(now);
    }

    fn judge_loop(&self, now: Time) {
        let (trip, device) = (self.reports.round_trip(now), self.reports.end_system());
        let (delay, class) = self.terms.evidence.judge(trip, device);
        if self.terms.witness == Witness::Reports {
            self.wire.set_loop(delay, class);
        } else {
            // Until somebody has reported nothing is proven.
            self.wire.set_loop(delay, EvidenceClass::Unproven);
        }
    }

    fn on_news(&mut self, news: News) {
        let clock = self.wire.clock();
        match news {
            News::Open => {
                let rate = self.terms.codec.clock_rate();
                self.peer.say(json!({ "type": "welcome", "clock_rate": rate }).to_string());
            }
            News::Message(text, at) => self.on_message(&text, clock.at(at)),
            News::Connection(Connection::Shaken) => self.lose_path(clock.now()),
            News::Connection(Connection::Broken) => {
                tracing::info!("the way to the page is broken; another one is waited for");
                self.lose_path(clock.now());
            }
            News::Connection(Connection::Connected | Connection::Gone) => {}
        }
    }

    fn on_message(&mut self, text: &str, at: Time) {
        match self.page.handle(text, at) {
            Some(PageFact::Hello { reports }) => {
                self.terms.witness = if reports { Witness::Page } else { Witness::Reports };
                self.judge_loop(at);
            }
            Some(PageFact::Heard { lost }) if self.terms.witness == Witness::Page => {
                if !lost.is_zero() {
                    self.wire.lose(lost);
                }
            }
            Some(PageFact::Heard { .. }) | None => {}
        }
    }

    /// What is known of the way no longer holds, and what sounds just now may not have arrived (VC-42).
    fn lose_path(&mut self, now: Time) {
        self.reports.forget_path();
        self.page.forget_path();
        self.lost_before = None;
        self.wire.lose_all();
        self.judge_loop(now);
        // To know the new way soon.
        self.reports_sent = 0;
        self.next_report = self.next_report.min(now + Duration::from_millis(FIRST_REPORTS[0]));
    }

    /// Gives back the marks whose sound was heard.
    async fn release_marks(&mut self, now: Time) {
        self.looked = now;
        if self.terms.witness == Witness::Awaited && now.since(self.begun) > HELLO {
            self.terms.witness = Witness::Reports;
            self.judge_loop(now);
        }
        // The page was silent for too long around the end of these.
        let unknown = |mark: &Mark| self.terms.witness == Witness::Page && self.page.has_passed(mark.rtp);
        while self.marks.front().is_some_and(unknown) {
            if let Some(mark) = self.marks.pop_front() {
                self.wire.miss_mark(&mark.name);
            }
        }
        while self.marks.front().is_some_and(|mark| self.place(mark, now).is_some()) {
            // What was told may be of another way than the sound took.
            self.look_at_path(now).await;
            let Some(mark) = self.marks.front() else { return };
            let Some((place, delay)) = self.place(mark, now) else { return };
            if let Some(delay) = delay {
                self.wire.set_loop(delay, EvidenceClass::Page);
            }
            self.wire.on_mark(&mark.name, place);
            self.marks.pop_front();
        }
    }

    /// When what is before a mark was heard, and the loop behind it if the page knows; `None`: not yet.
    fn place(&self, mark: &Mark, now: Time) -> Option<(Time, Option<LoopDelay>)> {
        match self.terms.witness {
            Witness::Awaited => None,
            Witness::Reports => self.reported(mark, now).then_some((mark.at, None)),
            Witness::Page => self.page.place(mark.rtp).map(|place| (place.at, Some(place.delay))),
        }
    }

    /// Whether the sound still takes the way that it took when this was asked before.
    async fn look_at_path(&mut self, now: Time) {
        let changes = self.peer.path_changes(self.wire.clock().instant(now)).await;
        if self.path_changes.replace(changes).is_some_and(|before| before != changes) {
            tracing::info!("the sound takes another way now");
            self.lose_path(now);
        }
    }

    /// Whether the far end has, by its reports, received what is before a mark.
    fn reported(&self, mark: &Mark, now: Time) -> bool {
        let Some(view) = self.reports.peer() else { return false };
        let received = view.highest.wrapping_sub(u32::from(self.terms.start.sequence));
        let flows = now.since(self.heard) <= OUTAGE;
        received.wrapping_add(1) >= mark.packets || (flows && now.since(mark.at) >= REPORT_WAIT)
    }

    async fn on_time(&mut self, now: Time) {
        let mut facts = Vec::new();
        self.inbound.poll(now, &mut |fact| facts.push(owned(fact)));
        self.take_facts(facts, now);
        if now >= self.next_report {
            self.look_at_path(now).await;
            let wait = FIRST_REPORTS.get(self.reports_sent + 1).zip(FIRST_REPORTS.get(self.reports_sent));
            let wait = wait.map_or(REPORTS, |(next, this)| Duration::from_millis(next - this));
            self.reports_sent += 1;
            self.next_report = now + wait;
            let received = self.inbound.ssrc().zip(self.inbound.loss().report());
            let mut bytes = Vec::new();
            self.reports.write(now, self.outbound.sent(), received, &mut bytes);
            self.peer.send_reports(&bytes).await;
        }
    }

    async fn obey(&mut self, order: Order) {
        if matches!(order, Order::Restart(..)) {
            let now = self.wire.clock().now();
            self.alive = now;
            self.lose_path(now);
        }
        obey(&mut self.peer, order).await;
    }
}

/// Does what was asked over HTTP.
pub(super) async fn obey(peer: &mut Peer, order: Order) {
    match order {
        Order::Candidates(fragment, answer) => {
            let mut done = Ok(());
            for candidate in &fragment.candidates {
                done = done.and(peer.add_candidate(candidate).await);
            }
            // Whoever asked may have gone.
            let _ = answer.send(done);
        }
        Order::Restart(fragment, answer) => {
            let _ = answer.send(peer.restart(&fragment).await);
        }
        Order::Stop => {}
    }
}

/// Waits until sound can flow; says whether it can.
pub(super) async fn connected(peer: &mut Peer, orders: &mut Receiver<Order>, until: Instant) -> bool {
    loop {
        tokio::select! {
            news = peer.news.recv() => match news {
                Some(News::Connection(Connection::Connected)) => return true,
                Some(News::Connection(Connection::Broken | Connection::Gone)) | None => return false,
                Some(News::Connection(Connection::Shaken) | News::Open | News::Message(..)) => {}
            },
            order = orders.recv() => match order {
                Some(Order::Stop) | None => return false,
                Some(order) => obey(peer, order).await,
            },
            () = tokio::time::sleep_until(until.into()) => return false,
        }
    }
}

/// When the first mark is to be looked at though nothing has come. Once its time is over only what comes can help it:
/// asking again at once would be asking all the time.
fn mark_due(first: Option<&Mark>, witness: Witness, looked: Time) -> Option<Time> {
    let due = first?.at + REPORT_WAIT;
    (witness == Witness::Reports && due > looked).then_some(due)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_of_which_nobody_reports_is_looked_at_when_its_time_is_over_and_not_all_the_time() {
        let at = Time::from_millis(1_000);
        let mark = Mark { name: "0.1".to_owned(), rtp: 0, packets: 50, at };
        let due = at + REPORT_WAIT;
        assert_eq!(mark_due(Some(&mark), Witness::Reports, at), Some(due));
        assert_eq!(mark_due(Some(&mark), Witness::Reports, due), None);
        assert_eq!(mark_due(Some(&mark), Witness::Page, at), None);
        assert_eq!(mark_due(None, Witness::Reports, at), None);
    }
}
