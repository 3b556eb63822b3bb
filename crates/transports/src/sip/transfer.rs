//! A caller who goes to somebody else.
//!
//! ```text
//! plain:  REFER ── 2xx ── NOTIFY 200 ──▶ BYE: they talk without us
//! warm:   call whoever it is ── say who calls and why ── key 1 ─┬─▶ REFER with Replaces, where the far end takes it
//!            │ refused, no answer, key 2                        └─▶ or both calls are joined, and the agent leaves
//!            └──▶ the caller is still there, and the model is told
//! ```
//!
//! While it goes on, the core asks the caller nothing. Whoever hangs up first ends it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rsipstack::sip::prelude::HeadersExt;
use rsipstack::sip::{Request, StatusCodeKind, Uri};
use rsipstack::transaction::key::TransactionRole;
use sayback_core::{CallId, Event, PlayoutEvent, Speak, Time, ToolOutcome, UtteranceId, UtteranceKind};
use sayback_runtime::line::Line;
use sayback_runtime::tts::Synthesize;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::announce::Brief;
use super::call::Live;
use super::join::{Joint, joints};
use super::media::Order;
use super::messages::{address, header, lists, other, refer_status};
use super::outbound::{Dial, connect};
use super::refresh::Answer;
use super::server::House;
use crate::wire::WireLine;

/// How long the far end may take to reach whom a caller is transferred to.
const TRANSFER: Duration = Duration::from_secs(40);
/// How long a warm one may take, less than the core waits for it.
const WARM: Duration = Duration::from_secs(55);
/// How long whoever is called has to answer.
const RING: Duration = Duration::from_secs(25);
/// After what was said, so long nothing is pressed before it is said again, or given up.
const PRESSES: Duration = Duration::from_secs(7);
/// So often it is said.
const SAID: u32 = 2;

/// Where callers may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// A number or a SIP address.
    pub to: String,
    /// Whether whoever answers there is told first who calls, and may refuse.
    pub warm: bool,
}

impl Destination {
    /// One that the caller is sent to without a word.
    pub fn plain(to: impl Into<String>) -> Self {
        Self { to: to.into(), warm: false }
    }

    /// One where whoever answers is asked first.
    pub fn warm(to: impl Into<String>) -> Self {
        Self { to: to.into(), warm: true }
    }
}

/// A wish to send the caller somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sending {
    pub(super) destination: Destination,
    /// The tool's call that asked for it, if one did.
    pub(super) call: Option<CallId>,
    pub(super) about: Option<String>,
    pub(super) dropped: Option<String>,
}

/// A transfer that goes on.
#[derive(Debug)]
pub(super) struct Transfer {
    call: Option<CallId>,
    pub(super) until: Time,
    /// What it waits for; nothing once the far end has said that it will try.
    waits: Option<Waits>,
    /// Whoever takes the call, once they want it.
    guest: Option<Guest>,
    to: String,
}

#[derive(Debug)]
enum Waits {
    ForGuest(JoinHandle<Result<Guest, String>>),
    ForAnswer(JoinHandle<Answer>),
}

impl Drop for Waits {
    fn drop(&mut self) {
        match self {
            Self::ForGuest(task) => task.abort(),
            Self::ForAnswer(task) => task.abort(),
        }
    }
}

/// What a transfer waited for.
#[derive(Debug)]
pub(super) enum Came {
    Guest(Result<Guest, String>),
    Answer(Answer),
}

impl Transfer {
    /// Waits for whatever it waits for; for ever if for nothing. May be dropped meanwhile.
    pub(super) async fn came(&mut self) -> Came {
        let came = match &mut self.waits {
            None => return std::future::pending().await,
            Some(Waits::ForGuest(task)) => {
                Came::Guest(task.await.unwrap_or_else(|error| Err(error.to_string())))
            }
            Some(Waits::ForAnswer(task)) => {
                Came::Answer(task.await.unwrap_or_else(|error| Err(error.to_string())))
            }
        };
        self.waits = None;
        came
    }
}

impl Live {
    pub(super) async fn transfer(&mut self, sending: Sending) {
        let Sending { destination, call, about, dropped } = sending;
        let now = self.clock.now();
        let mut transfer =
            Transfer { call, until: now + TRANSFER, waits: None, guest: None, to: destination.to.clone() };
        if self.transfer.is_some() || self.joined {
            let why = "the caller is being transferred already".to_owned();
            self.tell_transfer(transfer.call, Err(why)).await;
            return;
        }
        let Some(target) = self.target(&destination.to) else {
            let why = format!("{:?} is no number and no SIP address", destination.to);
            self.tell_transfer(transfer.call, Err(why)).await;
            return;
        };
        if let Some(speaks) = self.speaks.clone().filter(|_| destination.warm) {
            let brief = Brief { language: speaks.language, from: self.caller(), about, dropped };
            let dial = Dial { to: target, ..Dial::default() };
            let guest = consult(Arc::clone(&self.house), dial, speaks.tts, brief);
            transfer.until = now + WARM;
            transfer.waits = Some(Waits::ForGuest(tokio::spawn(guest)));
        } else {
            transfer.waits = Some(self.refer(format!("<{target}>")));
        }
        self.transfer = Some(transfer);
    }

    /// Asks the far end to call somebody else (RFC 3515).
    fn refer(&self, to: String) -> Waits {
        let by = other("Referred-By", format!("<{}>", self.dialog.initial_request().uri));
        let dialog = self.dialog.clone();
        Waits::ForAnswer(tokio::spawn(async move {
            dialog.refer(to, Some(vec![by]), None).await.map_err(|error| error.to_string())
        }))
    }

    /// Who calls, or was called: their number or name.
    fn caller(&self) -> Option<String> {
        let request = self.dialog.initial_request();
        let line = match self.dialog.role() {
            TransactionRole::Server => {
                header(&request, "P-Asserted-Identity").or_else(|| header(&request, "From"))
            }
            TransactionRole::Client => header(&request, "To"),
        };
        let uri = Uri::try_from(address(&line?).as_str()).ok()?;
        uri.user().filter(|user| !user.eq_ignore_ascii_case("anonymous")).map(str::to_owned)
    }

    /// A number becomes an address at our telephone system, or else at the host that the call came from.
    fn target(&self, to: &str) -> Option<String> {
        if to.starts_with("sip:") || to.starts_with("sips:") || to.starts_with("tel:") {
            return Uri::try_from(to).ok().map(|uri| uri.to_string());
        }
        let number = to.chars().all(|c| c.is_ascii_alphanumeric() || "+*#-._".contains(c)) && !to.is_empty();
        let request = self.dialog.initial_request();
        let host = request.from_header().ok()?.uri().ok()?.host_with_port.to_string();
        number.then(|| format!("sip:{to}@{host}"))
    }

    pub(super) async fn on_came(&mut self, came: Came) {
        match came {
            Came::Guest(Ok(guest)) => self.on_guest(guest).await,
            Came::Guest(Err(why)) => self.conclude_transfer(Err(why)).await,
            Came::Answer(Ok(Some(response))) => {
                if response.status_code.kind() != StatusCodeKind::Successful {
                    let why = format!("the telephone system refused it ({})", response.status_code);
                    self.fail_refer(why).await;
                }
            }
            Came::Answer(Ok(None) | Err(_)) => self.fail_refer("it could not be asked for".to_owned()).await,
        }
    }

    /// Whoever was called wants the caller: the far end may call them in place of us, or we join the two.
    async fn on_guest(&mut self, guest: Guest) {
        let Some(transfer) = &mut self.transfer else { return };
        let request = self.dialog.initial_request();
        let replaces = self.dialog.role() == TransactionRole::Server
            && lists(&request, "Supported", "replaces")
            && lists(&request, "Allow", "REFER");
        let referred = replaces.then(|| guest.refer_to()).flatten();
        transfer.guest = Some(guest);
        match referred {
            Some(to) => {
                let waits = self.refer(to);
                if let Some(transfer) = &mut self.transfer {
                    transfer.waits = Some(waits);
                }
            }
            None => self.join().await,
        }
    }

    /// The far end did not call whoever it was to: whoever waits for the caller is joined with them by us.
    async fn fail_refer(&mut self, why: String) {
        if self.transfer.as_ref().is_some_and(|transfer| transfer.guest.is_some()) {
            self.join().await;
        } else {
            self.conclude_transfer(Err(why)).await;
        }
    }

    /// Joins both calls. The agent's own is over then.
    async fn join(&mut self) {
        let guest = self.transfer.as_mut().and_then(|transfer| transfer.guest.take());
        let Some(guest) = guest else { return };
        let (here, there) = joints();
        // Once both are joined, neither the end of the session nor of what was said to the guest ends a call.
        let (one, other) = (joined(&self.orders, here).await, joined(&guest.orders, there).await);
        if !(one && other) {
            self.conclude_transfer(Err("the other end has hung up".to_owned())).await;
            return;
        }
        tracing::info!("a caller was joined with {}", self.transfer.as_ref().map_or("", |t| t.to.as_str()));
        let call = self.transfer.take().and_then(|transfer| transfer.call.clone());
        self.joined = true;
        self.tell_transfer(call, Ok(())).await;
        // The agent has left; what the two say is not its business.
        let _ = self.call.send(Event::HungUp).await;
    }

    pub(super) async fn on_notify(&mut self, request: &Request) {
        match refer_status(request) {
            Some(200..=299) => self.conclude_transfer(Ok(())).await,
            Some(status @ 300..) => self.fail_refer(format!("the other end said {status}")).await,
            Some(_) | None => {}
        }
    }

    pub(super) async fn conclude_transfer(&mut self, outcome: Result<(), String>) {
        let Some(transfer) = self.transfer.take() else { return };
        self.transferred = outcome.is_ok();
        self.tell_transfer(transfer.call.clone(), outcome).await;
    }

    async fn tell_transfer(&self, call: Option<CallId>, outcome: Result<(), String>) {
        let Some(call) = call else {
            if let Err(why) = outcome {
                tracing::warn!("a transfer failed: {why}");
            }
            return;
        };
        let outcome = match outcome {
            Ok(()) => ToolOutcome::Done { message: "The caller has been transferred.".to_owned() },
            Err(why) => ToolOutcome::Failed { message: format!("The transfer failed: {why}.") },
        };
        let _ = self.call.send(Event::ToolFinished { call, outcome }).await;
    }
}

/// Gives a call's sound its end; whether it has taken it.
async fn joined(orders: &Sender<Order>, joint: Joint) -> bool {
    let (sender, taken) = oneshot::channel();
    let ordered = orders.send(Order::Join(Box::new(joint), sender)).await;
    ordered.is_ok() && taken.await.is_ok()
}

/// Somebody who was called to take over a caller. Their call ends with this, unless it was joined before.
#[derive(Debug)]
pub(super) struct Guest {
    line: WireLine,
    orders: Sender<Order>,
    news: Receiver<Event>,
    /// Who they are, for a REFER: their address, and what tells their call.
    uri: Option<Uri>,
    call_id: String,
    /// Their tag and ours.
    tags: (String, String),
}

impl Guest {
    pub(super) fn new(line: WireLine, live: &Live, news: Receiver<Event>) -> Self {
        let id = live.dialog.id();
        Self {
            line,
            orders: live.orders.clone(),
            news,
            uri: Some(live.dialog.snapshot().remote_uri),
            call_id: id.call_id.to_string(),
            tags: (id.remote_tag.to_string(), id.local_tag.to_string()),
        }
    }

    /// Where the far end is to call, and whose place it takes there (RFC 3891).
    fn refer_to(&self) -> Option<String> {
        let uri = self.uri.as_ref()?;
        let (theirs, ours) = &self.tags;
        let replaces = format!("{};to-tag={theirs};from-tag={ours}", self.call_id);
        Some(format!("<{uri}?Replaces={}>", escaped(&replaces)))
    }

    /// Tells them who calls, until they press a key.
    async fn ask(mut self, brief: &Brief) -> Result<Self, String> {
        for said in 1..=SAID {
            self.line.speak(Speak {
                utterance: UtteranceId(said),
                text: brief.text(),
                language: brief.language.clone(),
                kind: UtteranceKind::Speech,
            });
            // Until it is said, it is the whole transfer's patience that counts.
            let mut patience = WARM;
            loop {
                match tokio::time::timeout(patience, self.news.recv()).await {
                    Ok(Some(Event::Digit { digit: '1', .. })) => return Ok(self),
                    Ok(Some(Event::Digit { digit: '2', .. })) => {
                        return Err("whoever answered does not want to take it".to_owned());
                    }
                    Ok(Some(Event::Playout(PlayoutEvent::Finished { .. } | PlayoutEvent::Failed { .. }))) => {
                        patience = PRESSES;
                    }
                    Ok(Some(Event::HungUp) | None) => return Err("whoever answered hung up".to_owned()),
                    Ok(Some(_)) => {}
                    Err(_) => break,
                }
            }
        }
        Err("whoever answered did not say whether they take it".to_owned())
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.line.clear();
        self.line.end();
    }
}

/// Calls whoever is to take over, and asks them.
///
/// Boxed, for their call is a call like ours: the one future would contain the other.
fn consult(
    house: Arc<House>,
    dial: Dial,
    tts: Arc<dyn Synthesize>,
    brief: Brief,
) -> Pin<Box<dyn Future<Output = Result<Guest, String>> + Send>> {
    Box::pin(call_and_ask(house, dial, tts, brief))
}

async fn call_and_ask(
    house: Arc<House>,
    dial: Dial,
    tts: Arc<dyn Synthesize>,
    brief: Brief,
) -> Result<Guest, String> {
    let agreement = connect(&house, &dial, RING).await.map_err(|error| error.to_string())?;
    let dialog = agreement.dialog.clone();
    match Live::begin_guest(&house, agreement, tts) {
        Ok((live, guest)) => {
            house.keep(live.run());
            guest.ask(&brief).await
        }
        Err(error) => {
            let _ = dialog.bye().await;
            house.forget(&dialog);
            Err(error.to_string())
        }
    }
}

/// As a header in a SIP address (RFC 3261, 25.1).
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_address_cannot_hold_is_escaped() {
        assert_eq!(escaped("a1@b;to-tag=x y"), "a1%40b%3Bto-tag%3Dx%20y");
    }
}
