//! One call that is up: what its dialog does, until it is over.

use std::sync::Arc;
use std::time::Duration;

use rsipstack::dialog::dialog::{DialogState, DialogStateReceiver, TerminatedReason, TransactionHandle};
use rsipstack::dialog::invite_dialog::InviteDialog;
use rsipstack::sip::{Header, Method, Request, StatusCode};
use sayback_core::{Event, Time, ToolOutcome};
use sayback_media::rtp::digits::digit_of_info;
use sayback_runtime::clock::Clock;
use sayback_runtime::switchboard::Admitted;
use sayback_runtime::tts::Synthesize;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use super::line::{Control, WISHES, Wish};
use super::media::{Media, MediaEnd, MediaTerms, Order, Sockets, frame_of};
use super::messages::{
    abilities, asked_timer, content_is_sdp, header, least_is, request_description, sequence, timer_headers,
};
use super::offer::{Agreed, Ours, answer, offer, take_answer};
use super::refresh::{Answer, Refresh, Refreshed};
use super::sdp::{Description, Direction};
use super::server::House;
use super::timer::{Due, SessionTimer, TooShort};
use super::transfer::{Came, Guest, Transfer};
use crate::wire::rtp::stream_start;
use crate::wire::{self, Proof, WireOptions};
use crate::wire::{Far, LoopEvidence};

/// What may wait to be heard by whoever takes over a caller.
const NEWS: usize = 64;
/// Orders that may wait for the sound.
const ORDERS: usize = 8;
/// An answer that the stack has acknowledged is here within this.
const JUST_COME: Duration = Duration::from_millis(50);

/// What a call needs that both sides have agreed on.
pub(super) struct Agreement {
    pub(super) dialog: InviteDialog,
    pub(super) states: DialogStateReceiver,
    pub(super) sockets: Sockets,
    pub(super) ours: Ours,
    pub(super) agreed: Agreed,
    pub(super) refresh: Option<Refresh>,
    pub(super) far: Far,
    pub(super) clock: Clock,
}

/// A call that is up.
pub(super) struct Live {
    pub(super) house: Arc<House>,
    pub(super) dialog: InviteDialog,
    states: DialogStateReceiver,
    ours: Ours,
    refresh: Option<Refresh>,
    pub(super) clock: Clock,
    pub(super) call: Sender<Event>,
    pub(super) orders: Sender<Order>,
    wishes: Receiver<Wish>,
    media: JoinHandle<MediaEnd>,
    /// A re-INVITE of theirs that we have answered and whose ACK has not come.
    theirs: Option<Theirs>,
    pub(super) transfer: Option<Transfer>,
    /// The caller is with somebody else.
    pub(super) transferred: bool,
    /// It was joined with another call, and the agent has left.
    pub(super) joined: bool,
    /// What whoever takes over a caller is told with.
    pub(super) speaks: Option<Speaks>,
    /// Somebody has said that the call is over.
    over: bool,
}

/// A re-INVITE of the far end's.
#[derive(Clone, Copy, Debug)]
struct Theirs {
    sequence: Option<u32>,
    /// Our answer was an offer; the ACK brings theirs.
    offered: bool,
}

/// Why a call could not begin.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotBegun(String);

/// A voice, and the language of whoever has it.
#[derive(Clone, Debug)]
pub(super) struct Speaks {
    pub(super) tts: Arc<dyn Synthesize>,
    pub(super) language: String,
}

/// What a call's sound and its line are begun with.
struct Terms {
    wire: WireOptions,
    media: MediaTerms,
}

/// What a call is joined to: its line, its session, and what is wished of it.
struct Ends {
    wire: wire::Wire,
    call: Sender<Event>,
    wishes: Receiver<Wish>,
    speaks: Option<Speaks>,
}

impl Live {
    /// Begins the call on its line.
    pub(super) fn begin(
        house: Arc<House>,
        admitted: Admitted,
        agreement: Agreement,
    ) -> Result<Self, NotBegun> {
        let desk = admitted.desk();
        let speaks = Speaks { tts: Arc::clone(&desk.tts), language: desk.agent.language.clone() };
        let terms = terms(&house, &agreement, desk.assumed_loop)?;
        let clock = agreement.clock;
        let (line, end) = wire::open(terms.wire, clock, Arc::clone(&speaks.tts));
        let (wisher, wishes) = channel(WISHES);
        let control = Control { wishes: wisher, destinations: house.options.transfers.clone() };
        let line = line.with(control.clone());
        let started = admitted.start(Box::new(line), Some(Arc::new(control)), clock);
        let call = started.call.clone();
        let wire = end.join(started.call, started.ears);
        let ends = Ends { wire, call, wishes, speaks: Some(speaks) };
        Self::assemble(house, agreement, terms.media, ends)
    }

    /// Begins a call with somebody who is to take over a caller: nobody listens to it, and it only hears keys.
    pub(super) fn begin_guest(
        house: &Arc<House>,
        agreement: Agreement,
        tts: Arc<dyn Synthesize>,
    ) -> Result<(Self, Guest), NotBegun> {
        let terms = terms(house, &agreement, Duration::ZERO)?;
        let (line, end) = wire::open(terms.wire, agreement.clock, tts);
        let (call, news) = channel(NEWS);
        let (_, wishes) = channel(1);
        let ends = Ends { wire: end.join_deaf(call.clone()), call, wishes, speaks: None };
        let live = Self::assemble(Arc::clone(house), agreement, terms.media, ends)?;
        let guest = Guest::new(line, &live, news);
        Ok((live, guest))
    }

    fn assemble(
        house: Arc<House>,
        agreement: Agreement,
        terms: MediaTerms,
        ends: Ends,
    ) -> Result<Self, NotBegun> {
        let Agreement { dialog, states, sockets, ours, agreed, refresh, far: _, clock } = agreement;
        let Ends { wire, call, wishes, speaks } = ends;
        let media = Media::new(sockets, wire, agreed, terms).map_err(|error| {
            // The session has begun: it must not wait for a line that never was. Its queue is empty yet.
            let _ = call.try_send(Event::HungUp);
            NotBegun(error.to_string())
        })?;
        let (orders, taken) = channel(ORDERS);
        let media = tokio::spawn(media.run(taken));
        let (theirs, transfer) = (None, None);
        let (transferred, joined, over) = (false, false, false);
        Ok(Self {
            house,
            dialog,
            states,
            ours,
            refresh,
            clock,
            call,
            orders,
            wishes,
            media,
            theirs,
            transfer,
            transferred,
            joined,
            speaks,
            over,
        })
    }

    /// Runs it to its end.
    pub(super) async fn run(mut self) {
        while !self.over {
            let due = self.due().map(|at| self.clock.instant(at));
            tokio::select! {
                state = self.states.recv() => match state {
                    Some(state) => self.on_state(state).await,
                    None => self.over = true,
                },
                end = &mut self.media => {
                    self.on_media_end(end.unwrap_or(MediaEnd::Broken)).await;
                    self.over = true;
                }
                Some(wish) = self.wishes.recv() => self.on_wish(wish).await,
                answer = answered(&mut self.refresh) => self.on_refreshed(answer).await,
                came = came(&mut self.transfer) => self.on_came(came).await,
                () = until(due) => self.on_time().await,
            }
        }
        // A call that is over needs no more news.
        let _ = self.call.send(Event::HungUp).await;
        if !self.media.is_finished() {
            let _ = self.orders.send(Order::Stop).await;
            if let Err(error) = (&mut self.media).await {
                tracing::error!("the sound of a call broke off: {error}");
            }
        }
        self.house.forget(&self.dialog);
    }

    fn due(&self) -> Option<Time> {
        let timer = self.refresh.as_ref().map(|refresh| refresh.due().0);
        let transfer = self.transfer.as_ref().map(|transfer| transfer.until);
        timer.into_iter().chain(transfer).min()
    }

    async fn on_time(&mut self) {
        let now = self.clock.now();
        if self.transfer.as_ref().is_some_and(|transfer| now >= transfer.until) {
            self.conclude_transfer(Err("nobody answered".to_owned())).await;
        }
        let Some(refresh) = &mut self.refresh else { return };
        let (at, due) = refresh.due();
        if now < at {
            return;
        }
        match due {
            Due::Refresh => {
                let body = offer(&self.ours, Direction::SendRecv);
                refresh.begin(&self.dialog, body, self.theirs.is_some(), now);
            }
            Due::Expired => {
                tracing::info!("a call's session was not refreshed in time");
                self.hang_up("SIP;cause=408;text=\"Session timer expired\"").await;
            }
        }
    }

    async fn on_refreshed(&mut self, answer: Answer) {
        let (role, random, now) = (self.dialog.role(), self.house.random(), self.clock.now());
        let Some(refresh) = &mut self.refresh else { return };
        match refresh.take(answer, role, random, now) {
            Refreshed::Done(body) => {
                let agreed = body.and_then(|body| self.taken(&body));
                self.change(agreed).await;
            }
            Refreshed::Later => {}
            Refreshed::Gone => self.hang_up("SIP;cause=481").await,
        }
    }

    async fn on_media_end(&mut self, end: MediaEnd) {
        match end {
            MediaEnd::Ours => self.hang_up("Q.850;cause=16;text=\"Normal call clearing\"").await,
            MediaEnd::Silent => {
                tracing::info!("nothing came from a call's far end; it is ended");
                let _ = self.call.send(Event::LineLost).await;
                self.hang_up("Q.850;cause=41;text=\"No sound\"").await;
            }
            MediaEnd::Broken => {
                let _ = self.call.send(Event::LineLost).await;
                self.hang_up("Q.850;cause=41;text=\"Network error\"").await;
            }
            MediaEnd::Stopped => {}
        }
    }

    async fn hang_up(&mut self, reason: &str) {
        self.over = true;
        if let Err(error) = self.dialog.hangup_with_reason(reason.to_owned()).await {
            tracing::debug!("BYE: {error}");
        }
    }

    async fn on_state(&mut self, state: DialogState) {
        match state {
            DialogState::Updated(_, request, handle) => self.on_update(&request, handle).await,
            DialogState::Confirmed(..) if self.is_acknowledged() => self.on_ack().await,
            // The news of the transfer has been answered: now the call may end.
            DialogState::Confirmed(..) if self.transferred => {
                self.hang_up("SIP;cause=200;text=\"Transferred\"").await;
            }
            DialogState::Info(_, request, handle) => self.on_info(&request, handle).await,
            DialogState::Options(_, _, handle) => {
                let _ = handle.respond(StatusCode::OK, Some(abilities()), None).await;
            }
            DialogState::Notify(_, request, handle) => {
                let _ = handle.reply(StatusCode::OK).await;
                self.on_notify(&request).await;
            }
            DialogState::Refer(_, _, handle)
            | DialogState::Message(_, _, handle)
            | DialogState::Publish(_, _, handle) => {
                let _ = handle.respond(StatusCode::MethodNotAllowed, Some(abilities()), None).await;
            }
            DialogState::Terminated(_, reason) => {
                log_end(&reason);
                self.over = true;
            }
            DialogState::Calling(_)
            | DialogState::Trying(_)
            | DialogState::Early(..)
            | DialogState::WaitAck(..)
            | DialogState::Confirmed(..) => {}
        }
    }

    /// Whether the ACK that came last is the one that a re-INVITE waits for; other requests confirm the dialog too.
    fn is_acknowledged(&self) -> bool {
        let last = || self.dialog.last_remote_ack().and_then(|ack| sequence(&ack));
        self.theirs.is_some_and(|theirs| theirs.sequence == last())
    }

    async fn on_ack(&mut self) {
        let theirs = self.theirs.take();
        if theirs.is_some_and(|theirs| theirs.offered) {
            let body = self.dialog.last_remote_ack().map(|ack| ack.body().clone()).unwrap_or_default();
            let agreed = self.taken(&body);
            self.change(agreed).await;
        }
    }

    /// A re-INVITE or an UPDATE.
    async fn on_update(&mut self, request: &Request, handle: TransactionHandle) {
        let invite = request.method == Method::Invite;
        let Ok(body) = request_description(request) else {
            let _ = handle.reply(StatusCode::UnsupportedMediaType).await;
            return;
        };
        // Both have asked at once (RFC 3261, 14.2; RFC 3311, 5.2).
        let invited = self.has_invited().await;
        let offered = self.theirs.is_some_and(|theirs| theirs.offered);
        if (invited || offered) && (invite || body.is_some()) {
            let _ = handle.reply(StatusCode::RequestPending).await;
            return;
        }
        let Ok(mut headers) = self.answer_timer(request) else {
            let least = least_is(self.house.options.shortest_session);
            let _ = handle.respond(StatusCode::SessionIntervalTooSmall, Some(vec![least]), None).await;
            return;
        };
        let Some(body) = body else {
            let text = invite.then(|| {
                headers.push(content_is_sdp());
                offer(&self.ours, Direction::SendRecv).into_bytes()
            });
            self.await_ack(request, text.is_some());
            let _ = handle.respond(StatusCode::OK, Some(headers), text).await;
            return;
        };
        self.ours.version += 1;
        let answered = Description::parse(&body).map_err(|error| error.to_string());
        let answered =
            answered.and_then(|theirs| answer(&theirs, &self.ours).map_err(|error| error.to_string()));
        match answered {
            Ok((agreed, text)) => {
                headers.push(content_is_sdp());
                self.await_ack(request, false);
                let _ = handle.respond(StatusCode::OK, Some(headers), Some(text.into_bytes())).await;
                self.change(Some(agreed)).await;
            }
            Err(why) => {
                // The session goes on as it was (RFC 3261, 14.2).
                let warning = vec![Header::Warning(format!("399 sayback \"{why}\"").into())];
                let _ = handle.respond(StatusCode::NotAcceptableHere, Some(warning), None).await;
            }
        }
    }

    /// Whether a re-INVITE of ours has no answer yet. One that has just come may still be on its way to us.
    async fn has_invited(&mut self) -> bool {
        if !self.refresh.as_ref().is_some_and(Refresh::has_invited) {
            return false;
        }
        if let Ok(answer) = tokio::time::timeout(JUST_COME, answered(&mut self.refresh)).await {
            self.on_refreshed(answer).await;
            return false;
        }
        true
    }

    /// A re-INVITE is answered now, and its ACK comes.
    fn await_ack(&mut self, request: &Request, offered: bool) {
        if request.method == Method::Invite {
            self.theirs = Some(Theirs { sequence: sequence(request), offered });
        }
    }

    /// The headers of our answer to a request that refreshes the session.
    fn answer_timer(&mut self, request: &Request) -> Result<Vec<Header>, TooShort> {
        let (asked, now) = (asked_timer(request), self.clock.now());
        let answered = SessionTimer::answering(asked, self.house.timer_terms(), now)?;
        let mut headers = abilities();
        if let Some(refresh) = &mut self.refresh {
            refresh.timer = answered;
            headers.extend(timer_headers(&answered, asked.supported));
        }
        Ok(headers)
    }

    fn taken(&self, body: &[u8]) -> Option<Agreed> {
        let theirs = Description::parse(body).ok()?;
        take_answer(&theirs, &self.ours).ok()
    }

    async fn change(&mut self, agreed: Option<Agreed>) {
        if let Some(agreed) = agreed {
            // The sound is gone only when the call is.
            let _ = self.orders.send(Order::Change(Box::new(agreed))).await;
        }
    }

    async fn on_info(&mut self, request: &Request, handle: TransactionHandle) {
        let kind = header(request, "Content-Type").unwrap_or_default();
        let digit = std::str::from_utf8(request.body()).ok().and_then(|body| digit_of_info(&kind, body));
        let status = match digit {
            Some(_) => StatusCode::OK,
            None if request.body().is_empty() => StatusCode::OK,
            None => StatusCode::UnsupportedMediaType,
        };
        let now = self.clock.now();
        let _ = handle.reply(status).await;
        if let Some(digit) = digit {
            // It went down when it was sent at the latest, and nobody says how long before: its duration at least.
            let held =
                std::str::from_utf8(request.body()).ok().and_then(duration_of_info).unwrap_or_default();
            let _ = self.call.send(Event::Digit { digit, start: now - held }).await;
        }
    }

    async fn on_wish(&mut self, wish: Wish) {
        match wish {
            Wish::Press(digits) => {
                let _ = self.orders.send(Order::Press(digits)).await;
            }
            Wish::Mute(muted) => {
                let _ = self.orders.send(Order::Mute(muted)).await;
            }
            Wish::Transfer(sending) => self.transfer(*sending).await,
            Wish::Stay(call, why) => {
                let outcome = ToolOutcome::Failed { message: format!("The transfer failed: {why}.") };
                let _ = self.call.send(Event::ToolFinished { call, outcome }).await;
            }
        }
    }
}

fn terms(house: &House, agreement: &Agreement, assumed: Duration) -> Result<Terms, NotBegun> {
    let format = agreement.agreed.format;
    // The far end has acknowledged our answer, or answered us.
    let evidence = LoopEvidence { far: agreement.far, assumed, own: Duration::ZERO, proven: true };
    let (delay, class) = evidence.judge(None, None);
    let wire = WireOptions {
        rate: format.codec.sample_rate(),
        frame: frame_of(format.ptime_ms),
        lead: Duration::ZERO,
        proof: Proof::Sent,
        delay,
        evidence: class,
        telephone: format.codec.sample_rate() == 8_000,
        continuous: true,
    };
    let start = stream_start().ok_or_else(|| NotBegun("no random numbers".to_owned()))?;
    let media = MediaTerms { evidence, patience: house.options.media_timeout, start, rate: wire.rate };
    Ok(Terms { wire, media })
}

/// What a transfer waits for.
async fn came(transfer: &mut Option<Transfer>) -> Came {
    match transfer {
        Some(transfer) => transfer.came().await,
        None => std::future::pending().await,
    }
}

/// The answer of a refresh that is under way.
async fn answered(refresh: &mut Option<Refresh>) -> Answer {
    match refresh {
        Some(refresh) => refresh.answered().await,
        None => std::future::pending().await,
    }
}

fn log_end(reason: &TerminatedReason) {
    tracing::debug!("a call's dialog is over: {reason:?}");
}

/// How long a key was held, by the body of an INFO.
fn duration_of_info(body: &str) -> Option<Duration> {
    let line = body.lines().find_map(|line| line.trim().strip_prefix("Duration="))?;
    Some(Duration::from_millis(line.trim().parse::<u64>().ok()?.min(10_000)))
}

async fn until(deadline: Option<std::time::Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
