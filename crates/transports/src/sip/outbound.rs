//! A call that we make.

use std::sync::Arc;
use std::time::Duration;

use rsipstack::dialog::authenticate::Credential;
use rsipstack::dialog::dialog::{DialogState, DialogStateReceiver};
use rsipstack::dialog::invitation::InviteOption;
use rsipstack::sip::prelude::HeadersExt;
use rsipstack::sip::{Header, HostWithPort, Response, StatusCodeKind, Uri};
use sayback_runtime::clock::Clock;
use sayback_runtime::switchboard::{Asked, NotNow};

use super::call::{Agreement, Live};
use super::messages::{
    abilities, header, least_interval, least_is, lists, other, response_description, session_expires,
};
use super::offer::{Agreed, Ours, offer, take_answer};
use super::refresh::Refresh;
use super::sdp::{Description, Direction};
use super::server::House;
use super::timer::{SessionTimer, TimerTerms};
use crate::wire::Far;

/// Headers of the caller's own that may be sent along.
const MOST_HEADERS: usize = 32;

/// Whom to call, and as whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dial {
    /// A SIP address: `sip:+49301234567@trunk.example`.
    pub to: String,
    /// Who we say that we are: a SIP address, or nothing for the server's own.
    pub from: Option<String>,
    /// Which agent speaks, as `[agents]` names it.
    pub agent: String,
    /// Headers to be sent along; only `X-…` ones are.
    pub headers: Vec<(String, String)>,
    /// Call variables for questions and tools; `voicemail` is said to an answering machine.
    pub vars: std::collections::BTreeMap<String, String>,
}

/// Why no call came about.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// An address that is none.
    #[error("{0:?} is no SIP address; write one like sip:100@pbx.example")]
    Address(String),
    /// There is no room, or no such agent.
    #[error(transparent)]
    NotNow(#[from] NotNow),
    /// The far end does not want to.
    #[error("{to} answered {status}")]
    Refused {
        /// Whom.
        to: String,
        /// What it said.
        status: String,
    },
    /// It rings, and nobody answers.
    #[error("{to} was not answered within {} s", within.as_secs())]
    Unanswered {
        /// Whom.
        to: String,
        /// How long it rang.
        within: Duration,
    },
    /// It cannot be reached, or its answer cannot be used.
    #[error("{to} cannot be called: {reason}")]
    Failed {
        /// Whom.
        to: String,
        /// Why.
        reason: String,
    },
}

/// Calls, and waits until the call is up; it then goes on by itself. Gives its id.
pub(super) async fn dial(house: Arc<House>, dial: Dial) -> Result<String, DialError> {
    let asked = Asked {
        transport: "sip".to_owned(),
        to: dial.agent.clone(),
        from: dial.to.clone(),
        outbound: true,
        vars: dial.vars.clone(),
    };
    callee(&dial)?;
    let admitted = house.board.admit(asked).await?;
    let agreement = connect(&house, &dial, house.options.ring).await?;
    let (id, dialog) = (admitted.id().to_owned(), agreement.dialog.clone());
    match Live::begin(Arc::clone(&house), admitted, agreement) {
        Ok(live) => {
            house.keep(live.run());
            Ok(id)
        }
        Err(error) => {
            let _ = dialog.bye().await;
            house.forget(&dialog);
            Err(DialError::Failed { to: dial.to, reason: error.to_string() })
        }
    }
}

fn callee(dial: &Dial) -> Result<Uri, DialError> {
    let named = dial.to.starts_with("sip:") || dial.to.starts_with("sips:");
    let callee = Uri::try_from(dial.to.as_str()).ok().filter(|_| named);
    callee.ok_or_else(|| DialError::Address(dial.to.clone()))
}

/// Calls, and waits for the answer. Dropped while it waits, it cancels the call.
pub(super) async fn connect(house: &House, dial: &Dial, ring: Duration) -> Result<Agreement, DialError> {
    let failed = |reason: String| DialError::Failed { to: dial.to.clone(), reason };
    let callee = callee(dial)?;
    let towards = house.resolve(&callee).await.ok_or_else(|| failed("its host is not known".to_owned()))?;
    let (sockets, ours) = house.sound(towards).await.map_err(failed)?;
    let clock = Clock::start();
    let terms = house.timer_terms();
    let mut invite = invite(house, dial, callee, &ours)?;
    let mut wanted = terms;
    let (dialog, mut states, answer) = loop {
        let (sender, states) = house.layer.new_dialog_state_channel();
        invite.headers = Some(headers(dial, wanted));
        let ringing = house.layer.do_invite(invite.clone(), sender);
        let answered = tokio::time::timeout(ring, ringing).await;
        let unanswered = |_| DialError::Unanswered { to: dial.to.clone(), within: ring };
        let (dialog, answer) = answered.map_err(unanswered)?.map_err(|error| failed(error.to_string()))?;
        let answer = answer.ok_or_else(|| failed("it did not answer".to_owned()))?;
        match longer(&answer, wanted) {
            // Somebody on the way wants longer sessions (RFC 4028, 7.4).
            Some(longer) => wanted = longer,
            None => break (dialog, states, answer),
        }
    };
    if answer.status_code.kind() != StatusCodeKind::Successful {
        return Err(DialError::Refused { to: dial.to.clone(), status: answer.status_code.to_string() });
    }
    let body = response_description(&answer).or_else(|| early_description(&mut states, &answer));
    let agreed = match agreed(body, &ours) {
        Ok(agreed) => agreed,
        Err(reason) => {
            let _ = dialog.bye().await;
            house.forget(&dialog);
            return Err(failed(reason));
        }
    };
    let timer = SessionTimer::asking(session_expires(&answer), wanted, clock.now());
    let refresh = Some(Refresh::new(timer, lists(&answer, "Allow", "UPDATE")));
    // Where the sound ends somewhere else than the call was sent to, nothing is known of it.
    let far = if agreed.remote.ip() == towards.ip() { house.options.far } else { Far::Trunk };
    Ok(Agreement { dialog, states, sockets, ours, agreed, refresh, far, clock })
}

/// What is to be asked for instead, where an answer says that a session was too short.
fn longer(answer: &Response, wanted: TimerTerms) -> Option<TimerTerms> {
    let least = least_interval(answer).filter(|_| u16::from(answer.status_code.clone()) == 422)?;
    // Once they have what they want there is nothing left to ask for.
    (least > wanted.wish).then_some(TimerTerms { wish: least, shortest: least })
}

/// The answer that came early and reliably, where the last one brings none (RFC 3262, 5).
fn early_description(states: &mut DialogStateReceiver, answer: &Response) -> Option<Vec<u8>> {
    let tag = |response: &Response| response.to_header().ok()?.tag().ok()?.map(|tag| tag.to_string());
    let mut found = None;
    while let Ok(state) = states.try_recv() {
        match state {
            DialogState::Early(_, early) => {
                let ours = header(&early, "RSeq").is_some() && tag(&early) == tag(answer);
                found = response_description(&early).filter(|_| ours).or(found);
            }
            DialogState::Calling(_) | DialogState::Trying(_) => {}
            // The answer itself. What comes behind it belongs to the call.
            DialogState::WaitAck(..)
            | DialogState::Confirmed(..)
            | DialogState::Updated(..)
            | DialogState::Publish(..)
            | DialogState::Notify(..)
            | DialogState::Refer(..)
            | DialogState::Message(..)
            | DialogState::Info(..)
            | DialogState::Options(..)
            | DialogState::Terminated(..) => break,
        }
    }
    found
}

/// The INVITE with our offer.
fn invite(house: &House, dial: &Dial, callee: Uri, ours: &Ours) -> Result<InviteOption, DialError> {
    let failed = |reason: String| DialError::Failed { to: dial.to.clone(), reason };
    let host_with_port = HostWithPort { host: ours.address.into(), port: house.own_port() };
    let own = Uri::try_from("sip:sayback@localhost").map_err(|error| failed(error.to_string()))?;
    let own = Uri { host_with_port, ..own };
    let caller = match &dial.from {
        Some(from) => Uri::try_from(from.as_str()).map_err(|_| DialError::Address(from.clone()))?,
        None => own.clone(),
    };
    Ok(InviteOption {
        caller,
        callee,
        contact: own,
        content_type: Some("application/sdp".to_owned()),
        offer: Some(offer(ours, Direction::SendRecv).into_bytes()),
        credential: credential(house),
        ..InviteOption::default()
    })
}

fn agreed(body: Option<Vec<u8>>, ours: &Ours) -> Result<Agreed, String> {
    let body = body.ok_or_else(|| "its answer has no session description".to_owned())?;
    let theirs = Description::parse(&body).map_err(|error| error.to_string())?;
    take_answer(&theirs, ours).map_err(|error| error.to_string())
}

/// Our name and password at the registrar open its way out too.
fn credential(house: &House) -> Option<Credential> {
    house.options.registrar.as_ref().map(|registrar| Credential {
        username: registrar.user.clone(),
        password: registrar.password.clone(),
        realm: None,
        auth_username: None,
    })
}

fn headers(dial: &Dial, wanted: TimerTerms) -> Vec<Header> {
    let mut headers = abilities();
    headers.push(other("Session-Expires", format!("{};refresher=uac", wanted.wish.as_secs())));
    headers.push(least_is(wanted.shortest));
    let own = dial.headers.iter().filter(|(name, value)| {
        let token = |c: char| c.is_ascii_alphanumeric() || c == '-';
        name.len() > 2
            && name[..2].eq_ignore_ascii_case("x-")
            && name.chars().all(token)
            && !value.contains(['\r', '\n'])
    });
    headers.extend(own.take(MOST_HEADERS).map(|(name, value)| other(name, value.clone())));
    headers
}
