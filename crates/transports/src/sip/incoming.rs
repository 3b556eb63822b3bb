//! A call that comes in: from its INVITE to the ACK of our answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rsipstack::dialog::dialog::{DialogState, DialogStateReceiver};
use rsipstack::dialog::invite_dialog::InviteDialog;
use rsipstack::sip::{Header, Request, StatusCode};
use rsipstack::transaction::transaction::Transaction;
use sayback_core::Time;
use sayback_runtime::clock::Clock;
use sayback_runtime::switchboard::{Admitted, Asked, NotNow};

use super::auth::{Caller, Verdict};
use super::call::{Agreement, Live};
use super::media::Sockets;
use super::messages::{
    abilities, address, asked_timer, called, content_is_sdp, header, least_is, lists, request_description,
    timer_headers, unknown_extensions, values,
};
use super::offer::{Agreed, Ours, answer, offer, take_answer};
use super::refresh::Refresh;
use super::sdp::{Description, Direction};
use super::server::House;
use super::timer::SessionTimer;

/// Whoever waits longer for an answer is told that its INVITE has come (RFC 3261, 17.2.1): it neither sends it again nor,
/// if it is a proxy, gives the call to another server.
const TRYING: Duration = Duration::from_millis(200);
/// A caller who finds all places taken may try again after so many seconds.
const RETRY_AFTER: &str = "15";
/// Headers that an agent's templates may use are those that begin like this.
const VARS: &str = "x-";
/// At most so many.
const MOST_VARS: usize = 32;

/// A "no" in the words of SIP.
#[derive(Debug)]
struct Refusal(StatusCode, Vec<Header>);

impl Refusal {
    fn plain(status: StatusCode) -> Self {
        Self(status, Vec::new())
    }

    fn because(status: StatusCode, why: &str) -> Self {
        let why: String = why.chars().filter(|c| !matches!(c, '"' | '\\' | '\r' | '\n')).collect();
        Self(status, vec![Header::Warning(format!("399 sayback \"{why}\"").into())])
    }
}

/// What was made ready for a call that will be answered.
struct Ready {
    admitted: Admitted,
    sockets: Sockets,
    ours: Ours,
    /// `None`: the INVITE had no offer; ours goes with the answer.
    agreed: Option<Agreed>,
    body: String,
    timer: SessionTimer,
    caller: Caller,
}

/// Takes an INVITE that begins a call, and holds the call to its end.
pub(super) async fn take(house: Arc<House>, mut tx: Transaction) {
    let request = tx.original.clone();
    let Some(source) = house.source(&tx) else { return };
    let Some(_merged) = house.begin_once(&request) else {
        // The same INVITE came a second way (RFC 3261, 8.2.2.2).
        let _ = tx.reply(StatusCode::LoopDetected).await;
        return;
    };
    let clock = Clock::start();
    let mut preparing = std::pin::pin!(prepare(&house, &request, source, clock.now()));
    let prepared = match tokio::time::timeout(TRYING, &mut preparing).await {
        Ok(prepared) => prepared,
        Err(_) => {
            if let Err(error) = tx.send_trying().await {
                tracing::debug!("100: {error}");
            }
            preparing.await
        }
    };
    match prepared {
        Ok(ready) => {
            if let Err(error) = hold(Arc::clone(&house), tx, ready, clock).await {
                tracing::warn!("a call could not be held: {error}");
            }
        }
        Err(Refusal(status, headers)) => {
            tracing::info!("a call from {source} was refused: {status}");
            let _ = tx.reply_with(status, headers, None).await;
        }
    }
}

async fn prepare(house: &House, request: &Request, source: SocketAddr, now: Time) -> Result<Ready, Refusal> {
    let missing = unknown_extensions(request);
    if !missing.is_empty() {
        let unsupported = Header::Unsupported(missing.join(", ").into());
        return Err(Refusal(StatusCode::BadExtension, vec![unsupported]));
    }
    let caller = match house.door.ask(&house.options, request, source.ip(), house.clock.now()) {
        Verdict::Known(caller) => caller,
        Verdict::Challenge(header) => return Err(Refusal(StatusCode::Unauthorized, vec![header])),
        Verdict::Stranger => return Err(Refusal::plain(StatusCode::Forbidden)),
    };
    let timer = timer(house, request, now)?;
    let body = request_description(request).map_err(|_| {
        Refusal(StatusCode::UnsupportedMediaType, vec![Header::Accept("application/sdp".into())])
    })?;
    let theirs = match body {
        Some(body) => Some(
            Description::parse(&body)
                .map_err(|e| Refusal::because(StatusCode::BadRequest, &e.to_string()))?,
        ),
        None => None,
    };
    let admitted = house.board.admit(asked(request, &caller)).await.map_err(refusal)?;
    let sound = theirs.as_ref().and_then(|theirs| theirs.address(theirs.media.first()?)).unwrap_or(source);
    let (sockets, ours) = house.sound(sound).await.map_err(|error| {
        tracing::error!("{error}");
        Refusal::because(StatusCode::ServiceUnavailable, &error)
    })?;
    let (agreed, body) = match &theirs {
        Some(theirs) => {
            let (agreed, text) = answer(theirs, &ours)
                .map_err(|error| Refusal::because(StatusCode::NotAcceptableHere, &error.to_string()))?;
            (Some(agreed), text)
        }
        None => (None, offer(&ours, Direction::SendRecv)),
    };
    Ok(Ready { admitted, sockets, ours, agreed, body, timer, caller })
}

fn timer(house: &House, request: &Request, now: Time) -> Result<SessionTimer, Refusal> {
    SessionTimer::answering(asked_timer(request), house.timer_terms(), now).map_err(|_| {
        let least = least_is(house.options.shortest_session);
        Refusal(StatusCode::SessionIntervalTooSmall, vec![least])
    })
}

fn asked(request: &Request, caller: &Caller) -> Asked {
    let to = called(request.uri());
    let from = header(request, "P-Asserted-Identity").or_else(|| header(request, "From"));
    let mut asked = Asked {
        transport: "sip".to_owned(),
        to,
        from: from.as_deref().map(address).unwrap_or_default(),
        ..Asked::default()
    };
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            asked.vars.insert(name.to_owned(), value);
        }
    };
    put("sip_call_id", header(request, "Call-ID"));
    put("sip_to", header(request, "To").as_deref().map(address));
    put("sip_diversion", values(request, "Diversion").first().map(|value| address(value)));
    put("sip_peer", caller.name.clone());
    for line in request.headers.iter().map(ToString::to_string).take(200) {
        let Some((name, value)) = line.split_once(':') else { continue };
        let name = name.trim().to_ascii_lowercase();
        if name.starts_with(VARS) && asked.vars.len() < MOST_VARS {
            let value: String = value.trim().chars().take(400).collect();
            asked.vars.insert(format!("header_{}", name.replace('-', "_")), value);
        }
    }
    asked
}

fn refusal(not_now: NotNow) -> Refusal {
    let retry = || Header::RetryAfter(RETRY_AFTER.into());
    match &not_now {
        NotNow::Full { .. } => Refusal(StatusCode::BusyHere, vec![retry()]),
        NotNow::Draining => Refusal(StatusCode::ServiceUnavailable, vec![retry()]),
        NotNow::Unknown { .. } => Refusal::plain(StatusCode::NotFound),
        NotNow::Broken { .. } => {
            tracing::error!("{not_now}");
            Refusal(StatusCode::ServiceUnavailable, vec![retry()])
        }
    }
}

/// Answers, waits for the ACK, and holds the call.
async fn hold(
    house: Arc<House>,
    mut tx: Transaction,
    ready: Ready,
    clock: Clock,
) -> Result<(), rsipstack::Error> {
    let (sender, mut states) = house.layer.new_dialog_state_channel();
    let contact = house.contact(&tx, &ready.ours);
    let dialog = house.layer.get_or_create_server_invite(&tx, sender, None, contact)?;
    let known = house.awaits_ack(&dialog);
    let mut driven = dialog.clone();
    let driving = tokio::spawn(async move { driven.handle(&mut tx).await });
    let mut headers = abilities();
    headers.push(content_is_sdp());
    let request = dialog.initial_request();
    headers.extend(timer_headers(&ready.timer, asked_timer(&request).supported));
    if let Err(error) = dialog.accept(Some(headers), Some(ready.body.clone().into_bytes())) {
        house.forget(&dialog);
        return Err(error);
    }
    match acknowledged(&dialog, &mut states, &ready).await {
        Some(agreed) => {
            known.send_replace(true);
            let Ready { admitted, sockets, ours, timer, caller, .. } = ready;
            let far = caller.far;
            let refresh = Some(Refresh::new(timer, lists(&request, "Allow", "UPDATE")));
            let agreement =
                Agreement { dialog: dialog.clone(), states, sockets, ours, agreed, refresh, far, clock };
            match Live::begin(Arc::clone(&house), admitted, agreement) {
                Ok(live) => live.run().await,
                Err(error) => {
                    tracing::error!("a call could not begin: {error}");
                    let _ = dialog.bye().await;
                }
            }
        }
        // Cancelled, or never acknowledged: the place and the ports are free again.
        None => drop(ready),
    }
    house.forget(&dialog);
    if let Ok(Err(error)) = driving.await {
        tracing::debug!("INVITE: {error}");
    }
    Ok(())
}

/// Waits for the ACK; gives what was agreed on.
async fn acknowledged(
    dialog: &InviteDialog,
    states: &mut DialogStateReceiver,
    ready: &Ready,
) -> Option<Agreed> {
    loop {
        match states.recv().await? {
            DialogState::Confirmed(..) => break,
            DialogState::Terminated(..) => return None,
            DialogState::Calling(_)
            | DialogState::Trying(_)
            | DialogState::Early(..)
            | DialogState::WaitAck(..)
            | DialogState::Updated(..)
            | DialogState::Publish(..)
            | DialogState::Notify(..)
            | DialogState::Refer(..)
            | DialogState::Message(..)
            | DialogState::Info(..)
            | DialogState::Options(..) => {}
        }
    }
    if let Some(agreed) = &ready.agreed {
        return Some(agreed.clone());
    }
    let body = dialog.last_remote_ack().map(|ack| ack.body().clone()).unwrap_or_default();
    let agreed = Description::parse(&body).map_err(|error| error.to_string());
    let agreed =
        agreed.and_then(|theirs| take_answer(&theirs, &ready.ours).map_err(|error| error.to_string()));
    match agreed {
        Ok(agreed) => Some(agreed),
        Err(why) => {
            tracing::info!("an ACK brought no answer to our offer: {why}");
            let _ = dialog.bye().await;
            None
        }
    }
}
