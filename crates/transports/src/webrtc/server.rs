//! Calls from browsers, as the HTTP side sees them: opened, changed, ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sayback_core::{EvidenceClass, LoopDelay};
use sayback_runtime::clock::Clock;
use sayback_runtime::switchboard::{Admitted, Asked, NotNow, Switchboard};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

use super::call::{BrowserCall, FRAME, Order, Terms, Witness, connected};
use super::description::{AgreedSound, NoOffer, Wanted};
use super::fragment::Fragment;
use super::line::{MESSAGES, PageEvents};
use super::peer::{Peer, PeerError};
use super::settings::WebRtcOptions;
use crate::wire::rtp::stream_start;
use crate::wire::{Far, LoopEvidence, Proof, WireOptions, open};

/// A call that is not connected by then is given up.
const CONNECT: Duration = Duration::from_secs(25);
/// Orders that may wait.
const ORDERS: usize = 32;
/// An order that is not obeyed by then is told to be late.
const OBEY: Duration = Duration::from_secs(10);

/// What a page asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebRtcOffer {
    /// Its session description.
    pub sdp: String,
    /// Who is called.
    pub to: String,
    /// Who calls, as far as known.
    pub from: String,
    /// Call variables.
    pub vars: BTreeMap<String, String>,
}

/// A call that was answered. It begins once it is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The call's id.
    pub id: String,
    /// Our session description.
    pub answer: String,
    /// The ICE session's name, for `ETag`.
    pub session: String,
}

/// What came of a PATCH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Patched {
    /// The candidates were taken.
    Taken,
    /// The way is looked for anew, under these names.
    Restarted {
        /// A fragment for the far end.
        fragment: String,
        /// The ICE session's new name.
        session: String,
    },
}

/// Why there is no call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnswered {
    /// The switchboard says no.
    #[error(transparent)]
    NotNow(#[from] NotNow),
    /// The offer is at fault.
    #[error(transparent)]
    Offer(#[from] NoOffer),
    /// The stack does not take the offer.
    #[error("{0}")]
    Refused(String),
    /// We cannot.
    #[error("{0}")]
    Ours(String),
}

/// Why a call is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPatched {
    /// There is none.
    #[error("there is no call {0:?}, or it is over")]
    Unknown(String),
    /// It speaks of another ICE session.
    #[error(
        "this is not the ICE session of now; send If-Match with the ETag of the last answer, or * to restart"
    )]
    OtherSession,
    /// What it brings makes no sense.
    #[error("{0}")]
    Fragment(String),
    /// It was not done in time.
    #[error("the call does not take it now; try again")]
    Busy,
}

/// One call, as it is reached over HTTP.
#[derive(Debug)]
struct Reached {
    orders: Sender<Order>,
    /// The far end's ICE name.
    name: String,
    /// How often the way was looked for anew.
    restarts: u32,
    /// What the far end was told the last time, if it was: the answer may be lost with the network that it was for.
    told: Option<String>,
}

impl Reached {
    fn session(&self, id: &str) -> String {
        format!("{id}.{}", self.restarts)
    }
}

#[derive(Debug, Default)]
struct Live {
    calls: Mutex<BTreeMap<String, Reached>>,
}

impl Live {
    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Reached>) -> T) -> T {
        work(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Takes calls from browsers.
#[derive(Clone, Debug)]
pub struct WebRtcServer {
    board: Switchboard,
    options: Arc<WebRtcOptions>,
    live: Arc<Live>,
}

impl WebRtcServer {
    /// Nobody has called yet.
    pub fn new(options: WebRtcOptions, board: Switchboard) -> Self {
        Self { board, options: Arc::new(options), live: Arc::default() }
    }

    /// Answers an offer. The call has a place from now on, and begins when sound can flow.
    ///
    /// # Errors
    /// If the call is not taken; nothing is left of it then.
    pub async fn offer(&self, offer: WebRtcOffer) -> Result<Opened, NotAnswered> {
        let wanted = Wanted::read(&offer.sdp)?;
        let WebRtcOffer { sdp, to, from, vars } = offer;
        let asked = Asked { transport: "webrtc".to_owned(), to, from, outbound: false, vars };
        let admitted = self.board.admit(asked).await?;
        let start = stream_start().ok_or_else(|| NotAnswered::Ours("no random numbers".to_owned()))?;
        let options = Arc::clone(&self.options);
        let name = super::description::value(&sdp, "a=ice-ufrag:").unwrap_or_default().to_owned();
        // In a task of its own: whatever a description does to the stack, it does to this call only.
        let work = async move { Peer::answer(&options, (wanted, &sdp), start.ssrc).await };
        let answered = tokio::spawn(work).await.map_err(|error| {
            tracing::error!("the stack broke over an offer: {error}");
            NotAnswered::Refused("the offer could not be worked on".to_owned())
        })?;
        let (peer, answer) = answered.map_err(|error| match error {
            PeerError::Theirs(_) => NotAnswered::Refused(error.to_string()),
            PeerError::Ours(_) => NotAnswered::Ours(error.to_string()),
        })?;
        let Some(agreed) = AgreedSound::read(&answer, wanted.codec) else {
            peer.close().await;
            return Err(NoOffer::NothingInCommon("of the codecs, Opus and PCMU are spoken here").into());
        };
        let id = admitted.id().to_owned();
        let (sender, orders) = channel(ORDERS);
        let reached = Reached { orders: sender, name, restarts: 0, told: None };
        let session = reached.session(&id);
        self.live.with(|calls| calls.insert(id.clone(), reached));
        let witness = if wanted.messages { Witness::Awaited } else { Witness::Reports };
        let evidence = LoopEvidence {
            far: Far::Endpoint,
            assumed: admitted.desk().assumed_loop,
            own: Duration::ZERO,
            proven: false,
        };
        let patience = self.options.patience;
        let terms = Terms { codec: wanted.codec, agreed, start, evidence, witness, patience };
        let (live, call) = (Arc::clone(&self.live), id.clone());
        tokio::spawn(async move {
            hold(peer, admitted, terms, orders).await;
            live.with(|calls| calls.remove(&call));
        });
        Ok(Opened { id, answer, session })
    }

    /// Takes a fragment of a session description: candidates, or new names. `session` is the ICE session that it speaks
    /// of; `None`: whichever is. New names are a new session, so they are taken without one only. The same names again get
    /// the same answer: it may have been lost.
    ///
    /// # Errors
    /// If it is for another session, makes no sense, or there is no such call.
    pub async fn patch(&self, id: &str, session: Option<&str>, text: &str) -> Result<Patched, NotPatched> {
        let fragment = Fragment::read(text).map_err(|error| NotPatched::Fragment(error.to_string()))?;
        let unknown = || NotPatched::Unknown(id.to_owned());
        let (orders, known, current, told) = self.live.with(|calls| {
            let call = calls.get(id).ok_or_else(unknown)?;
            Ok((call.orders.clone(), call.name.clone(), call.session(id), call.told.clone()))
        })?;
        let name = fragment.names.as_ref().map(|names| names.0.clone());
        let anew = name.as_ref().filter(|name| **name != known).cloned();
        if session.is_some_and(|session| session != current || anew.is_some()) {
            return Err(NotPatched::OtherSession);
        }
        if let Some(name) = anew {
            let (answer, answered) = oneshot::channel();
            let fragment = obeyed(&orders, Order::Restart(fragment, answer), answered).await?;
            let session = self.live.with(|calls| {
                let call = calls.get_mut(id).ok_or_else(unknown)?;
                call.name = name;
                call.restarts += 1;
                call.told = Some(fragment.clone());
                Ok(call.session(id))
            })?;
            return Ok(Patched::Restarted { fragment, session });
        }
        let (answer, answered) = oneshot::channel();
        obeyed(&orders, Order::Candidates(fragment, answer), answered).await?;
        let again = told.filter(|_| session.is_none() && name.is_some());
        Ok(again.map_or(Patched::Taken, |fragment| Patched::Restarted { fragment, session: current }))
    }

    /// The page hangs up. False: there is no such call any more.
    pub async fn end(&self, id: &str) -> bool {
        let orders = self.live.with(|calls| calls.get(id).map(|call| call.orders.clone()));
        match orders {
            Some(orders) => orders.send(Order::Stop).await.is_ok(),
            None => false,
        }
    }
}

/// Has an order obeyed.
async fn obeyed<T>(
    orders: &Sender<Order>,
    order: Order,
    answered: oneshot::Receiver<Result<T, PeerError>>,
) -> Result<T, NotPatched> {
    orders.try_send(order).map_err(|_| NotPatched::Busy)?;
    let answer = tokio::time::timeout(OBEY, answered).await;
    let answer = answer.map_err(|_| NotPatched::Busy)?.map_err(|_| NotPatched::Busy)?;
    answer.map_err(|error| NotPatched::Fragment(error.to_string()))
}

/// Holds a call from its answer to its end.
async fn hold(mut peer: Peer, admitted: Admitted, terms: Terms, mut orders: Receiver<Order>) {
    let waits = Clock::start();
    let until = waits.instant(waits.now() + CONNECT);
    if !connected(&mut peer, &mut orders, until).await {
        tracing::debug!("the call {} was not connected", admitted.id());
        peer.close().await;
        return;
    }
    let clock = Clock::start();
    let rate = terms.codec.sample_rate();
    let options = WireOptions {
        rate,
        frame: FRAME,
        lead: Duration::ZERO,
        proof: Proof::Marks,
        delay: LoopDelay { at_least: Duration::ZERO, at_most: terms.evidence.assumed },
        evidence: EvidenceClass::Unproven,
        telephone: rate == 8_000,
        continuous: true,
    };
    let (line, wire_end) = open(options, clock, Arc::clone(&admitted.desk().tts));
    let control = wire_end.control("a call from a browser", terms.agreed.events.is_some());
    let (page, told) = channel(MESSAGES);
    let started = admitted.start(Box::new(line.with(PageEvents(page))), Some(control), clock);
    let call = started.call.clone();
    match BrowserCall::new(peer, wire_end.join(started.call, started.ears), told, terms) {
        Ok(held) => held.hold(&mut orders).await,
        Err(error) => {
            tracing::error!("{error}");
            let _ = call.send(sayback_core::Event::HungUp).await;
        }
    }
}
