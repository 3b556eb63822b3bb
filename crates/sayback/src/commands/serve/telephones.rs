//! Telephone calls: those that come, and those that the API asks for.

use std::sync::Arc;

use sayback_runtime::switchboard::Switchboard;
use sayback_server::{DialError, Dialer, Outbound};
use sayback_transports::sip::{Dial, DialError as SipDialError, SipOptions, SipServer, SipTransport};

use crate::exit::Stop;

/// The telephone side of the server.
#[derive(Clone, Debug)]
pub(crate) struct Telephones {
    server: Arc<SipServer>,
    /// The host that a bare number is called at: where we are registered.
    host: Option<String>,
}

impl Telephones {
    pub(crate) async fn start(options: SipOptions, board: Switchboard) -> Result<Self, Stop> {
        let host = options.registrar.as_ref().map(|registrar| {
            let server = registrar.server.split_once(':').map_or(registrar.server.as_str(), |(_, host)| host);
            server.split(['@', ';']).next_back().unwrap_or(server).to_owned()
        });
        let server = SipServer::start(options, board).await.map_err(|error| {
            Stop::missing(format!("{error}\n  hint: choose another address in [sip] of the server's file"))
        })?;
        Ok(Self { server: Arc::new(server), host })
    }

    /// Where it listens, for people.
    pub(crate) fn listening(&self) -> Vec<String> {
        let name = |transport| match transport {
            SipTransport::Udp => "udp",
            SipTransport::Tcp => "tcp",
            SipTransport::Tls => "tls",
        };
        let listening = self.server.listening().iter();
        listening.map(|listen| format!("{}:{}", name(listen.transport), listen.address)).collect()
    }

    pub(crate) async fn stop(&self) {
        self.server.shut().await;
    }
}

#[async_trait::async_trait]
impl Dialer for Telephones {
    /// Waits until the call is answered or refused: its id means that somebody is there.
    async fn dial(&self, call: Outbound) -> Result<String, DialError> {
        let bad = |reason: String| DialError::BadTarget { to: call.to.clone(), reason };
        let to = match (call.to.contains(':'), &self.host) {
            (true, _) => call.to.clone(),
            (false, Some(host)) => format!("sip:{}@{host}", call.to),
            (false, None) => {
                return Err(bad("a bare number needs [sip.registrar]; write sip:…@…".to_owned()));
            }
        };
        let dial = Dial {
            to,
            from: Some(call.from.clone()).filter(|from| !from.is_empty()),
            agent: call.agent.clone(),
            headers: call.headers.clone().into_iter().collect(),
            vars: call.vars.clone(),
        };
        self.server.dial(dial).await.map_err(|error| match error {
            SipDialError::NotNow(not_now) => DialError::NotNow(not_now),
            SipDialError::Address(_)
            | SipDialError::Refused { .. }
            | SipDialError::Unanswered { .. }
            | SipDialError::Failed { .. } => bad(error.to_string()),
        })
    }
}
