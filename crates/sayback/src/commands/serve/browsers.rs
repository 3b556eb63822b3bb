//! Calls from browsers: the HTTP side's wishes, in the transport's words.

use sayback_runtime::switchboard::Switchboard;
use sayback_server::{BrowserAnswer, BrowserError, BrowserOffer, Browsers};
use sayback_transports::webrtc::{
    NoOffer, NotAnswered, NotPatched, Opened, Patched, WebRtcOffer, WebRtcOptions, WebRtcServer,
};

/// The browsers' side of the server.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    server: WebRtcServer,
}

impl Pages {
    pub(crate) fn new(options: WebRtcOptions, board: Switchboard) -> Self {
        Self { server: WebRtcServer::new(options, board) }
    }
}

#[async_trait::async_trait]
impl Browsers for Pages {
    async fn offer(&self, offer: BrowserOffer) -> Result<BrowserAnswer, BrowserError> {
        let BrowserOffer { sdp, agent, from, vars } = offer;
        let opened = self.server.offer(WebRtcOffer { sdp, to: agent, from, vars }).await;
        let Opened { id, answer, session } = opened.map_err(|error| {
            let told = error.to_string();
            match error {
                NotAnswered::NotNow(error) => BrowserError::NotNow(error),
                NotAnswered::Offer(NoOffer::NothingInCommon(_)) => BrowserError::NothingInCommon(told),
                NotAnswered::Offer(NoOffer::Malformed(_)) | NotAnswered::Refused(_) => {
                    BrowserError::BadDescription(told)
                }
                NotAnswered::Ours(_) => BrowserError::Busy(told),
            }
        })?;
        Ok(BrowserAnswer { call: id, sdp: answer, session })
    }

    async fn patch(
        &self,
        call: &str,
        session: Option<&str>,
        fragment: &str,
    ) -> Result<Option<(String, String)>, BrowserError> {
        match self.server.patch(call, session, fragment).await {
            Ok(Patched::Taken) => Ok(None),
            Ok(Patched::Restarted { fragment, session }) => Ok(Some((fragment, session))),
            Err(error) => {
                let told = error.to_string();
                Err(match error {
                    NotPatched::Unknown(_) => BrowserError::NoSuchCall(told),
                    NotPatched::OtherSession => BrowserError::OtherSession(told),
                    NotPatched::Fragment(_) => BrowserError::BadDescription(told),
                    NotPatched::Busy => BrowserError::Busy(told),
                })
            }
        }
    }

    async fn end(&self, call: &str) -> bool {
        self.server.end(call).await
    }
}
