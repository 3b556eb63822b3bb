//! The confirmation ledger over HTTP, for apps that ask their users themselves: a yes is recorded, and a call that needs
//! one is checked and uses it up.
//!
//! | route | role | |
//! |---|---|---|
//! | `POST /v1/confirmations` | `app` | records a yes |
//! | `POST /v1/confirmations/check` | `app` | whether a call may be made |
//!
//! Each token is an app of its own: what one records, another never sees.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use sayback_runtime::clock::unix_millis;
use sayback_runtime::ledger::{
    Actor, Age, Args, Call, Checked, Context, Explicit, Kind, LedgerError, LedgerFault, Mode, Moment, Reason,
    Recorded, Rule, Said, Unledgered,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::access::Who;
use crate::body::{Body, Object};
use crate::{Api, Problem};

/// Largest body, in bytes: arguments of 256 KiB, and others that come with them.
pub(crate) const LARGEST: usize = 1024 * 1024;
/// Confirmations that may come with a call.
const MOST_BROUGHT: usize = 50;

/// A yes, as an app records it. Arguments are kept as they were written, so that a key that is there twice is seen.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenYes {
    tool: String,
    args: Option<Box<RawValue>>,
    session: Option<String>,
    trace: Option<String>,
}

/// A call that is to be checked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenCall {
    tool: String,
    args: Option<Box<RawValue>>,
    session: Option<String>,
    trace: Option<String>,
    rule: Option<Object<Rule>>,
    /// `false`: the app keeps no confirmations here, so there is no data.
    ledger: Option<bool>,
    #[serde(default)]
    confirmations: Vec<Object<WrittenBrought>>,
}

/// A confirmation from another process.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenBrought {
    #[serde(rename = "ref")]
    reference: String,
    tool: String,
    args: Option<Box<RawValue>>,
    age_ms: Option<i64>,
    at: Option<i64>,
}

impl WrittenBrought {
    fn read(&self) -> Result<Explicit<'_>, Problem> {
        let age = match (self.age_ms, self.at) {
            (None, None) => Age::New,
            (Some(age), None) => Age::Millis(age),
            (None, Some(at)) => Age::At(at),
            (Some(_), Some(_)) => {
                let detail =
                    format!("the confirmation {:?} has both age_ms and at: send one", self.reference);
                return Err(Problem::bad("invalid-input", detail));
            }
        };
        Ok(Explicit {
            reference: &self.reference,
            tool: &self.tool,
            args: self.args.as_deref().map(args),
            age,
            kind: Kind::Confirmation,
            by: Actor::User,
        })
    }
}

fn args(raw: &RawValue) -> Args<'_> {
    Args::Json(raw.get())
}

pub(crate) async fn record(
    State(api): State<Api>,
    who: Who,
    Body(body): Body<WrittenYes>,
) -> Result<Json<Recorded>, Problem> {
    let yes = body;
    let context = Context { session: yes.session, trace: yes.trace };
    let args = yes.args.as_deref().map(args);
    let said = Said { tool: &yes.tool, args, kind: Kind::Confirmation, by: Actor::User };
    let recorded = api.ledger.of_app(who.name()).record(&context, &said, now()).await?;
    if recorded.reason == Some(Unledgered::InvalidInput) {
        let detail = "nothing is recorded: a tool, a session or a trace has a name of 1 to 200 bytes without \
                      control characters";
        return Err(Problem::bad("invalid-input", detail));
    }
    Ok(Json(recorded))
}

pub(crate) async fn check(
    State(api): State<Api>,
    who: Who,
    Body(body): Body<WrittenCall>,
) -> Result<Json<Checked>, Problem> {
    let call = body;
    if call.confirmations.len() > MOST_BROUGHT {
        return Err(Problem::bad(
            "invalid-input",
            format!("a call brings at most {MOST_BROUGHT} confirmations"),
        ));
    }
    let rule = call.rule.map(|Object(rule)| rule).unwrap_or_default();
    if call.ledger == Some(false) && call.confirmations.is_empty() {
        return Ok(Json(Checked::of(Reason::NoData, rule.mode)));
    }
    let context = match call.ledger {
        // Nothing of the ledger is looked at: only what came with the call.
        Some(false) => Context::default(),
        Some(true) | None => Context { session: call.session, trace: call.trace },
    };
    let explicit =
        call.confirmations.iter().map(|Object(brought)| brought.read()).collect::<Result<Vec<_>, _>>()?;
    let asked = Call { tool: &call.tool, args: call.args.as_deref().map(args), context, explicit };
    let checked = api.ledger.of_app(who.name()).check(Some(&rule), &asked, now()).await?;
    if !checked.confirmed && rule.mode == Mode::Observe && checked.reason.blocks() {
        tracing::info!(
            "{}: {} was called without a confirmation: {}",
            who.name(),
            call.tool,
            checked.reason.code()
        );
    }
    Ok(Json(checked))
}

fn now() -> Moment {
    Moment(unix_millis())
}

impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        let unavailable = |kind, detail| Self::new(StatusCode::SERVICE_UNAVAILABLE, kind, detail).after(1);
        match error {
            LedgerError::Invalid(detail) => Self::bad("invalid-input", detail),
            // An app is not told of hosts and users of a database.
            LedgerError::Store(fault @ LedgerFault::Unreachable(_)) => {
                tracing::error!("{fault}");
                unavailable(
                    "ledger-unreachable",
                    "the ledger's store cannot be reached; nothing is confirmed",
                )
            }
            LedgerError::Store(fault @ LedgerFault::Failed(_)) => {
                tracing::error!("{fault}");
                unavailable(
                    "ledger-failed",
                    "the ledger's store failed; nothing is confirmed. See the server's log",
                )
            }
            LedgerError::NoRandom(error) => unavailable("ledger-failed", &error.to_string()),
        }
    }
}
