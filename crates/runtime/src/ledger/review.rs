//! Waiting for somebody of the team: the approval queue, and what it leaves in the ledger.
//!
//! A decision by a reviewer is not a confirmation by the user. It is written down as `human_review` by `reviewer`, and a
//! rule counts it only if it names both (LED-27, LED-28).

use std::time::Duration;

use serde_json::Value;

use super::digest::random_name;
use super::entry::{Actor, Context, Kind, Moment, Yes, is_name};
use super::{Args, Ledger, LedgerError, Recorded, Said, span};
use crate::approvals::{ApprovalError, ApprovalQueue, ApprovalRequest, ApprovalState, Asker};

/// How long a decision is waited for, unless something else is said.
pub const WAIT: Duration = Duration::from_secs(300);
/// How much longer a request stays open than anybody waits, should whoever waits be gone without a word.
const LEFT_OPEN: Duration = Duration::from_secs(60);

/// What a reviewer is asked.
#[derive(Clone, Debug)]
pub struct Review<'a> {
    /// The project that asks; without one nobody is asked (LED-30).
    pub project: &'a str,
    /// The tool that is to be called.
    pub tool: &'a str,
    /// Its arguments.
    pub args: &'a Value,
    /// What the reviewer is told.
    pub hint: &'a str,
    /// What it is part of.
    pub context: Context,
    /// From when an answer is too late; `None`: as long as it is waited for.
    pub expires_after: Option<Duration>,
    /// How long it is waited for.
    pub wait: Duration,
}

impl<'a> Review<'a> {
    /// A request that is waited for as long as usual.
    pub fn new(project: &'a str, tool: &'a str, args: &'a Value, context: Context) -> Self {
        Self { project, tool, args, hint: "", context, expires_after: None, wait: WAIT }
    }
}

/// Why a call may not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// It is not said which project asks; nothing was sent (LED-30).
    #[error("an approval needs a project: say which one asks")]
    NoProject,
    /// The tool's name is none; nothing was sent.
    #[error("an approval needs a tool, by a name of 1 to 200 bytes without control characters")]
    NoTool,
    /// The reviewer said no (LED-29).
    #[error("{tool} was rejected{}", reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Rejected {
        /// The tool.
        tool: String,
        /// Why, if the reviewer said.
        reason: Option<String>,
    },
    /// The request is over without a decision, as a rejection (LED-29).
    #[error("the approval of {tool} expired before anybody decided")]
    Expired {
        /// The tool.
        tool: String,
    },
    /// No decision came while it was waited for (LED-29).
    #[error("nobody decided about {tool} within {} s", waited.as_secs())]
    TimedOut {
        /// The tool.
        tool: String,
        /// How long.
        waited: Duration,
    },
    /// The queue did not answer.
    #[error(transparent)]
    Queue(#[from] ApprovalError),
    /// It was approved, and the ledger did not answer.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// A request that is waited for. Dropped in the middle, because the call hung up or the wait was cancelled, it takes the
/// request back: an approval that comes later runs nothing (LED-31).
struct Waiting<'a> {
    queue: &'a ApprovalQueue,
    id: String,
    yes: Yes,
    over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        span::approval(&self.yes, "cancelled");
        let (queue, id) = (self.queue.clone(), std::mem::take(&mut self.id));
        // Without an executor nobody waits in the first place.
        if let Ok(executor) = tokio::runtime::Handle::try_current() {
            executor.spawn(async move {
                if let Err(error) = queue.cancel(&id, "whoever asked waits no longer").await {
                    tracing::warn!("the approval {id} could not be taken back: {error}");
                }
            });
        }
    }
}

impl Ledger {
    /// Asks the team and waits for the decision. An approval is written down for this tool and these arguments.
    ///
    /// # Errors
    /// It was rejected, nobody decided in time, or it could not be asked: then the call may not be made. Each outcome
    /// leaves a span.
    pub async fn await_approval(
        &self,
        queue: &ApprovalQueue,
        review: &Review<'_>,
        now: Moment,
    ) -> Result<Recorded, ReviewError> {
        if review.project.trim().is_empty() {
            return Err(ReviewError::NoProject);
        }
        if !is_name(review.tool) {
            return Err(ReviewError::NoTool);
        }
        let request = request(review, now)?;
        queue.request(&request).await?;
        let args = Args::Value(review.args);
        let digest = self.hasher.digest(args).ok();
        let (kind, by) = (Kind::HumanReview, Actor::Reviewer);
        let yes = Yes { tool: review.tool.to_owned(), digest, kind, by, at: now };
        let mut waiting = Waiting { queue, id: request.id, yes, over: false };
        let settled = match tokio::time::timeout(review.wait, queue.wait(&waiting.id, None)).await {
            Ok(approval) => approval?.state,
            Err(_) => {
                queue.cancel(&waiting.id, "nobody decided in time").await?;
                // A decision that came at the last moment counts.
                queue.get(&waiting.id).await?.state
            }
        };
        waiting.over = true;
        let (outcome, error) = match settled {
            ApprovalState::Answered { decision, at_ms } if decision.confirmed => {
                let said = Said { tool: review.tool, args: Some(args), kind, by };
                return Ok(self.record(&review.context, &said, Moment(at_ms)).await?);
            }
            ApprovalState::Answered { decision, .. } => {
                let tool = review.tool.to_owned();
                ("rejected", ReviewError::Rejected { tool, reason: decision.reason })
            }
            ApprovalState::Expired { .. } => {
                ("expired", ReviewError::Expired { tool: review.tool.to_owned() })
            }
            ApprovalState::Cancelled { .. } | ApprovalState::Open => {
                let (tool, waited) = (review.tool.to_owned(), review.wait);
                ("timed_out", ReviewError::TimedOut { tool, waited })
            }
        };
        span::approval(&waiting.yes, outcome);
        Err(error)
    }
}

fn request(review: &Review<'_>, now: Moment) -> Result<ApprovalRequest, ReviewError> {
    let id = format!("review-{}", random_name().map_err(LedgerError::from)?);
    let session = review.context.session.clone().or_else(|| review.context.trace.clone());
    let expires = review.expires_after.unwrap_or(review.wait + LEFT_OPEN);
    Ok(ApprovalRequest {
        id,
        asker: Asker::Session {
            app: review.project.to_owned(),
            user: String::new(),
            id: session.unwrap_or_default(),
        },
        agent: review.project.to_owned(),
        tool: review.tool.to_owned(),
        input: review.args.clone(),
        hint: review.hint.to_owned(),
        payload: None,
        asked_ms: now.0,
        expires_ms: Some(now.after(expires).0),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{Spans, watched};
    use super::super::{Accepted, Call, LedgerOptions, Reason, Rule};
    use super::*;
    use crate::approvals::Decision;
    use crate::clock::unix_millis;

    fn args() -> Value {
        json!({ "amount": 5000 })
    }

    fn ledger() -> Ledger {
        Ledger::in_memory(LedgerOptions::default()).unwrap()
    }

    /// Answers the one request that is open, once there is one.
    async fn answer(queue: &ApprovalQueue, confirmed: bool) {
        let open = loop {
            let open = queue.open().await.unwrap();
            if !open.is_empty() {
                break open;
            }
            tokio::task::yield_now().await;
        };
        let decision = Decision { confirmed, reason: Some("too much".to_owned()), ..Decision::default() };
        queue.answer(&open[0].request.id, decision).await.unwrap();
    }

    fn now() -> Moment {
        Moment(unix_millis())
    }

    fn outcomes(spans: &Spans) -> Vec<String> {
        let lines = spans.0.lock().unwrap();
        let of = |line: &String| {
            let outcome = line.split("outcome=\"").nth(1)?.split('"').next()?.to_owned();
            line.contains("kind=\"human_review\"").then_some(outcome)
        };
        lines.iter().filter_map(of).collect()
    }

    #[tokio::test]
    async fn led_27_an_approval_returns_and_is_recorded_as_a_review_of_these_arguments() {
        let (ledger, queue, args, spans) = (ledger(), ApprovalQueue::default(), args(), Spans::default());
        let _watched = watched(&spans);
        let review = Review::new("shop", "pay", &args, Context::session("s"));
        let (recorded, ()) =
            tokio::join!(ledger.await_approval(&queue, &review, now()), answer(&queue, true));
        assert!(recorded.unwrap().recorded);
        assert_eq!(outcomes(&spans), ["approved"]);
        let call = Call::new("pay", Args::Value(&args), Context::session("s"));
        let default = ledger.check(Some(&Rule::default()), &call, now()).await.unwrap();
        assert_eq!(default.reason, Reason::NotAccepted, "LED-28: not by default");
        let accept = [Accepted::HumanReview, Accepted::Reviewer].into();
        let rule = Rule { accept, ..Rule::default() };
        let other = json!({ "amount": 5001 });
        let mismatched = Call::new("pay", Args::Value(&other), Context::session("s"));
        assert_eq!(ledger.check(Some(&rule), &mismatched, now()).await.unwrap().reason, Reason::ArgsMismatch);
        assert_eq!(ledger.check(Some(&rule), &call, now()).await.unwrap().reason, Reason::Confirmed);
    }

    #[tokio::test]
    async fn led_29_rejected_expired_and_timed_out_are_errors_and_each_leaves_a_span() {
        assert_eq!(WAIT, Duration::from_secs(300));
        let (ledger, queue, args, spans) = (ledger(), ApprovalQueue::default(), args(), Spans::default());
        let _watched = watched(&spans);
        let review = Review::new("shop", "pay", &args, Context::session("s"));
        assert_eq!(review.wait, WAIT);
        let (rejected, ()) =
            tokio::join!(ledger.await_approval(&queue, &review, now()), answer(&queue, false));
        let rejected = rejected.unwrap_err();
        assert!(
            matches!(rejected, ReviewError::Rejected { .. }) && rejected.to_string().contains("too much")
        );
        let brief = Review { expires_after: Some(Duration::from_millis(5)), ..review.clone() };
        let expired = ledger.await_approval(&queue, &brief, now()).await.unwrap_err();
        assert!(matches!(expired, ReviewError::Expired { .. }), "{expired}");
        let brief = Review { wait: Duration::from_millis(5), ..review };
        let timed_out = ledger.await_approval(&queue, &brief, now()).await.unwrap_err();
        assert!(matches!(timed_out, ReviewError::TimedOut { .. }), "{timed_out}");
        assert_eq!(outcomes(&spans), ["rejected", "expired", "timed_out"]);
        assert!(queue.open().await.unwrap().is_empty(), "nothing is left to be answered");
    }

    #[tokio::test]
    async fn led_30_without_a_project_nobody_is_asked() {
        let (ledger, queue, args) = (ledger(), ApprovalQueue::default(), args());
        for project in ["", "  "] {
            let review = Review::new(project, "pay", &args, Context::session("s"));
            let error = ledger.await_approval(&queue, &review, now()).await.unwrap_err();
            assert!(matches!(error, ReviewError::NoProject), "{error}");
        }
        let review = Review::new("shop", "", &args, Context::session("s"));
        assert!(ledger.await_approval(&queue, &review, now()).await.is_err());
        assert!(queue.open().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn led_31_a_cancelled_wait_takes_its_request_back_and_a_late_approval_does_nothing() {
        let (ledger, queue, args, spans) = (ledger(), ApprovalQueue::default(), args(), Spans::default());
        let _watched = watched(&spans);
        let review = Review::new("shop", "pay", &args, Context::session("s"));
        let asked = async {
            while queue.open().await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            queue.open().await.unwrap()[0].request.id.clone()
        };
        // The call hangs up: what it waited for is dropped.
        let id = tokio::select! {
            _ = ledger.await_approval(&queue, &review, now()) => panic!("nobody decided"),
            id = asked => id,
        };
        while !queue.open().await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let late = queue.answer(&id, Decision { confirmed: true, ..Decision::default() }).await.unwrap_err();
        assert!(matches!(late, ApprovalError::Gone { .. }), "{late}");
        assert_eq!(outcomes(&spans), ["cancelled"]);
        let accept = [Accepted::HumanReview, Accepted::Reviewer].into();
        let rule = Rule { accept, ..Rule::default() };
        let call = Call::new("pay", Args::Value(&args), Context::session("s"));
        assert!(!ledger.check(Some(&rule), &call, now()).await.unwrap().allowed);
    }
}
