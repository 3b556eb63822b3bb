//! A call that we make.

use std::sync::Arc;

use rsipstack::dialog::authenticate::Credential;
use rsipstack::dialog::invitation::InviteOption;
use rsipstack::sip::{Header, HostWithPort, Response, StatusCodeKind, Uri};
use sayback_runtime::clock::Clock;
use sayback_runtime::switchboard::{Asked, NotNow};

use super::call::{Agreement, Live};
use super::messages::{SUPPORTED, other, response_description, session_expires};
use super::offer::{Agreed, Ours, offer, take_answer};
use super::sdp::{Description, Direction};
use super::server::House;
use super::timer::SessionTimer;
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
    let named = dial.to.starts_with("sip:") || dial.to.starts_with("sips:");
    let callee = Uri::try_from(dial.to.as_str()).ok().filter(|_| named);
    let callee = callee.ok_or_else(|| DialError::Address(dial.to.clone()))?;
    let failed = |reason: String| DialError::Failed { to: dial.to.clone(), reason };
    let asked = Asked {
        transport: "sip".to_owned(),
        to: dial.agent.clone(),
        from: dial.to.clone(),
        outbound: true,
        vars: dial.vars.clone(),
    };
    let admitted = house.board.admit(asked).await?;
    let towards = house.resolve(&callee).await.ok_or_else(|| failed("its host is not known".to_owned()))?;
    let (sockets, ours) = house.sound(towards).await.map_err(failed)?;
    let clock = Clock::start();
    let invite = invite(&house, &dial, callee, &ours)?;
    let (sender, states) = house.layer.new_dialog_state_channel();
    let (dialog, answer) =
        house.layer.do_invite(invite, sender).await.map_err(|error| failed(error.to_string()))?;
    let answer = answer.ok_or_else(|| failed("it did not answer".to_owned()))?;
    if answer.status_code.kind() != StatusCodeKind::Successful {
        return Err(DialError::Refused { to: dial.to.clone(), status: answer.status_code.to_string() });
    }
    let agreed = match agreed(&answer, &ours) {
        Ok(agreed) => agreed,
        Err(reason) => {
            let _ = dialog.bye().await;
            return Err(failed(reason));
        }
    };
    let timer = SessionTimer::asking(session_expires(&answer), house.options.session_timer, clock.now());
    let id = admitted.id().to_owned();
    // Where the sound ends somewhere else than the call was sent to, nothing is known of it.
    let far = if agreed.remote.ip() == towards.ip() { house.options.far } else { Far::Trunk };
    let timer = Some(timer);
    let agreement = Agreement { dialog: dialog.clone(), states, sockets, ours, agreed, timer, far, clock };
    match Live::begin(Arc::clone(&house), admitted, agreement) {
        Ok(live) => {
            house.keep(live.run());
            Ok(id)
        }
        Err(error) => {
            let _ = dialog.bye().await;
            Err(failed(error.to_string()))
        }
    }
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
        headers: Some(headers(house, dial)),
        ..InviteOption::default()
    })
}

fn agreed(answer: &Response, ours: &Ours) -> Result<Agreed, String> {
    let body =
        response_description(answer).ok_or_else(|| "its answer has no session description".to_owned())?;
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

fn headers(house: &House, dial: &Dial) -> Vec<Header> {
    let seconds = house.options.session_timer.as_secs();
    let mut headers = vec![
        Header::Supported(SUPPORTED.into()),
        other("Session-Expires", format!("{seconds};refresher=uac")),
    ];
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
