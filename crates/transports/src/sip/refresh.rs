//! Our refreshes of a session (RFC 4028), beside what else happens in the call.
//!
//! A refresh is an UPDATE where the far end takes one, for it disturbs nothing; otherwise a re-INVITE with our
//! description as it is. While a re-INVITE of ours is under way, one of the far end's is refused with 491, and ours waits
//! if theirs came first (RFC 3261, 14.1 and 14.2).

use std::time::Duration;

use rsipstack::dialog::invite_dialog::InviteDialog;
use rsipstack::sip::{Response, StatusCodeKind};
use rsipstack::transaction::key::TransactionRole;
use sayback_core::Time;
use tokio::task::JoinHandle;

use super::messages::{
    abilities, content_is_sdp, least_interval, other, response_description, session_expires,
};
use super::timer::{Due, SessionTimer, glare_wait};

/// While the far end's re-INVITE is not acknowledged, ours waits for so long.
const AFTER_THEIRS: Duration = Duration::from_millis(500);

/// What came of a refresh.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refreshed {
    /// The session goes on; the description that the far end answered with, if it did.
    Done(Option<Vec<u8>>),
    /// It will be tried again.
    Later,
    /// The far end knows of no such call.
    Gone,
}

/// What came of a request of ours, or why it could not be sent.
pub(super) type Answer = Result<Option<Response>, String>;

/// The timer of a call, and the refresh that is under way.
#[derive(Debug)]
pub(super) struct Refresh {
    pub(super) timer: SessionTimer,
    /// Whether the far end takes UPDATE.
    update: bool,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    answer: JoinHandle<rsipstack::Result<Option<Response>>>,
    /// It is an INVITE.
    invite: bool,
}

impl Refresh {
    pub(super) fn new(timer: SessionTimer, update: bool) -> Self {
        Self { timer, update, running: None }
    }

    /// When something is to be done; while a refresh is under way, only the end is.
    pub(super) fn due(&self) -> (Time, Due) {
        if self.running.is_some() { (self.timer.end(), Due::Expired) } else { self.timer.due() }
    }

    /// Whether a re-INVITE of ours has no answer yet.
    pub(super) fn has_invited(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.invite)
    }

    /// Begins one, with our description `body` if it takes one. `theirs`: a re-INVITE of the far end's is not over.
    pub(super) fn begin(&mut self, dialog: &InviteDialog, body: String, theirs: bool, now: Time) {
        if theirs {
            self.timer.failed(now, AFTER_THEIRS);
            return;
        }
        let dialog = dialog.clone();
        let mut headers = vec![other("Session-Expires", self.timer.header_of_request())];
        headers.extend(abilities());
        let invite = !self.update;
        let answer = tokio::spawn(async move {
            if invite {
                headers.push(content_is_sdp());
                dialog.reinvite(Some(headers), Some(body.into_bytes())).await
            } else {
                dialog.update(Some(headers), None).await
            }
        });
        self.running = Some(Running { answer, invite });
    }

    /// Waits for the answer of the one that is under way; for ever if none is. May be dropped while it waits.
    pub(super) async fn answered(&mut self) -> Answer {
        let Some(running) = &mut self.running else { return std::future::pending().await };
        let answer = (&mut running.answer).await;
        self.running = None;
        match answer {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Takes its answer; `random` is any number.
    pub(super) fn take(
        &mut self,
        answer: Answer,
        role: TransactionRole,
        random: u16,
        now: Time,
    ) -> Refreshed {
        let response = match answer {
            Ok(Some(response)) => response,
            Ok(None) => {
                self.timer.failed(now, self.timer.patience());
                return Refreshed::Later;
            }
            Err(error) => {
                tracing::warn!("a session could not be refreshed: {error}");
                self.timer.failed(now, self.timer.patience());
                return Refreshed::Later;
            }
        };
        if response.status_code.kind() == StatusCodeKind::Successful {
            self.timer.refreshed(session_expires(&response), now);
            return Refreshed::Done(response_description(&response));
        }
        match u16::from(response.status_code.clone()) {
            408 | 481 => return Refreshed::Gone,
            422 => {
                self.timer.lengthen(least_interval(&response).unwrap_or_default());
                self.timer.failed(now, Duration::ZERO);
            }
            491 => self.timer.failed(now, glare_wait(role == TransactionRole::Client, random)),
            405 | 501 if self.update => {
                self.update = false;
                self.timer.failed(now, Duration::ZERO);
            }
            _ => self.timer.failed(now, self.timer.patience()),
        }
        Refreshed::Later
    }
}

impl Drop for Refresh {
    fn drop(&mut self) {
        // Its answer is of no use to a call that is over.
        if let Some(running) = &self.running {
            running.answer.abort();
        }
    }
}
