//! The confirmation ledger: an app writes down that its user said yes, and a call that needs a yes uses it up.
//!
//! ```text
//! record ─▶ open ──────────────── check: confirmed ───────────▶ used
//!             │  ▲                                               ▲
//!             │  └──── release, or the reservation lapses ──┐    │
//!             └─ reserve ─▶ reserved ───────────────────────┴────┘ consume
//! ```
//! One entry lets one call through, within its session, for a while. A second layer: the gate of a call stands on its
//! own and cannot be opened from here (LED-36). The ledger may not read a clock or an environment: it is handed the time
//! and its options. Where entries are kept is a [`LedgerStore`]'s matter: this process ([`InMemory`]), a file or a
//! database.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use sayback_runtime::ledger::{Args, Call, Context, Ledger, LedgerOptions, Moment, Reason, Rule, Said};
//!
//! let ledger = Ledger::in_memory(LedgerOptions::default())?;
//! let (session, now) = (Context::session("s-1"), Moment(1_000));
//! let args = Args::Json(r#"{"to": "bob", "amount": 5000}"#);
//!
//! // The user pressed "yes".
//! let recorded = ledger.record(&session, &Said::by_user("transfer", args), now).await?;
//! assert!(recorded.recorded && recorded.reason.is_none());
//!
//! // The model calls the tool: the yes lets it through, once.
//! let call = Call::new("transfer", args, session);
//! let first = ledger.check(Some(&Rule::default()), &call, now).await?;
//! assert!(first.allowed && first.reason == Reason::Confirmed);
//! let second = ledger.check(Some(&Rule::default()), &call, now).await?;
//! assert!(!second.allowed && second.reason == Reason::NoConfirmation);
//! # Ok::<(), sayback_runtime::ledger::LedgerError>(())
//! # }).unwrap();
//! ```

mod digest;
mod entry;
mod gate;
mod memory;
mod review;
mod rule;
mod span;
mod store;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use digest::{Args, Digest, Hasher, Key, NoRandom};
pub use entry::{
    Actor, Context, Entry, EntryId, KEPT, Kind, LONGEST_NAME, MOST_OFFERED, Moment, Scope, Yes, is_name,
};
pub use gate::{NotedRuns, Unnoted};
pub use memory::InMemory;
pub use review::{Review, ReviewError, WAIT};
pub use rule::{Accepted, Checked, Mode, Reason, Rule};
pub use store::{Bounds, Claim, Lease, LedgerFault, LedgerStore, Owner, Settled, Want, Wanted};
pub use wire::{Age, Explicit, Sent};

use crate::frozen::FreezeError;
use rule::{Called, Verdict, judge};

/// The variable that switches ledgers off: `off`.
pub const SWITCH: &str = "SAYBACK_CONFIRMATION_LEDGER";
/// How often a check looks again because others took what it was offered.
const ROUNDS: usize = 8;

/// Whether a ledger keeps anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switch {
    /// It does.
    #[default]
    On,
    /// Confirmations leave a span and nothing else; rules have no data and block nothing (LED-03).
    Off,
}

impl Switch {
    /// What a variable of the environment says: `off`, in any case, is off; everything else is on.
    pub fn said(value: Option<&str>) -> Self {
        if value.is_some_and(|value| value.trim().eq_ignore_ascii_case("off")) { Self::Off } else { Self::On }
    }

    /// What [`SWITCH`] says.
    pub fn of_environment() -> Self {
        Self::said(std::env::var(SWITCH).ok().as_deref())
    }
}

/// How a ledger works.
#[derive(Clone, Debug, Default)]
pub struct LedgerOptions {
    /// Whose entries it sees. Those of other apps on the same store it never does.
    pub app: String,
    /// Whether hashes could give something away: where arguments are not captured, or personal details are left out of
    /// what is kept. Hashes are keyed then, and can be compared in this process only.
    pub private: bool,
    /// Whether it keeps anything.
    pub switch: Switch,
    /// How much it keeps.
    pub bounds: Bounds,
}

/// A ledger. Clones share entries and key. It cannot be written out and read back: a copy could let two calls through
/// on one yes. After a fork, make a new one in each child (LED-16).
#[derive(Clone, Debug)]
pub struct Ledger {
    store: Arc<dyn LedgerStore>,
    hasher: Arc<Hasher>,
    options: Arc<LedgerOptions>,
}

/// Why a ledger says neither yes nor no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// What was asked makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// Its store did not answer: nothing counts as confirmed.
    #[error(transparent)]
    Store(#[from] LedgerFault),
    /// It could not be made.
    #[error(transparent)]
    NoRandom(#[from] NoRandom),
}

/// What an app says about a yes.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The arguments that were confirmed; `None`: whatever this tool is called with.
    pub args: Option<Args<'a>>,
    /// What kind of yes.
    pub kind: Kind,
    /// Whose.
    pub by: Actor,
}

impl<'a> Said<'a> {
    /// The user said yes to this very call.
    pub fn by_user(tool: &'a str, args: Args<'a>) -> Self {
        Self { tool, args: Some(args), kind: Kind::Confirmation, by: Actor::User }
    }
}

/// What came of a confirmation that was to be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Whether its span was.
    pub recorded: bool,
    /// What is less than it could be, if anything is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Unledgered>,
}

/// Why a confirmation is not in the ledger, or not tied to its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unledgered {
    /// Neither session nor trace: an entry that nobody owns could unlock another user's call (LED-02).
    NoContext,
    /// The ledger is off (LED-03).
    LedgerOff,
    /// The arguments cannot be hashed: the entry is tied to the tool only (LED-04).
    UnhashableArgs,
    /// The tool's name, or the context's, is none. Nothing was written, no span either (LED-05).
    InvalidInput,
    /// There is no ledger. Nothing was written (LED-05).
    NoClient,
}

/// A call that is about to be made.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub args: Option<Args<'a>>,
    /// What it is part of.
    pub context: Context,
    /// Confirmations that were recorded elsewhere and came with the call (LED-18).
    pub explicit: Vec<Explicit<'a>>,
}

impl<'a> Call<'a> {
    /// A call of a tool in a context.
    pub fn new(tool: &'a str, args: Args<'a>, context: Context) -> Self {
        Self { tool, args: Some(args), context, explicit: Vec::new() }
    }
}

/// A run that our own gate has allowed.
#[derive(Clone, Copy, Debug)]
pub struct OwnRun<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The hash of its frozen input.
    pub input_hash: &'a str,
    /// Which run it is, the same wherever it is tried.
    pub id: &'a str,
}

/// An entry that is held for a call which may still not be made.
#[derive(Clone, Debug)]
pub struct Reserved {
    claim: Claim,
    lease: Lease,
}

/// Records a confirmation where a program may have no ledger (LED-05).
///
/// # Errors
/// The store did not answer.
pub async fn record(
    ledger: Option<&Ledger>,
    context: &Context,
    said: &Said<'_>,
    now: Moment,
) -> Result<Recorded, LedgerError> {
    match ledger {
        Some(ledger) => ledger.record(context, said, now).await,
        None => Ok(Recorded { recorded: false, reason: Some(Unledgered::NoClient) }),
    }
}

impl Ledger {
    /// A ledger within this process.
    ///
    /// # Errors
    /// It needs a key and the system has no random numbers.
    pub fn in_memory(options: LedgerOptions) -> Result<Self, LedgerError> {
        Self::on(Arc::new(InMemory::default()), options)
    }

    /// A ledger on a store, which others may share.
    ///
    /// # Errors
    /// It needs a key and the system has no random numbers.
    pub fn on(store: Arc<dyn LedgerStore>, options: LedgerOptions) -> Result<Self, LedgerError> {
        let hasher = if options.private { Hasher::Keyed(Key::random()?) } else { Hasher::Plain };
        Ok(Self { store, hasher: Arc::new(hasher), options: Arc::new(options) })
    }

    /// The same store and key for another app: a server has one of these for each of its clients.
    #[must_use]
    pub fn of_app(&self, app: &str) -> Self {
        let options = LedgerOptions { app: app.to_owned(), ..(*self.options).clone() };
        Self { options: Arc::new(options), ..self.clone() }
    }

    /// Whether it keeps anything.
    pub fn switch(&self) -> Switch {
        self.options.switch
    }

    /// The hash that a confirmation of these arguments would carry: of the arguments as they are, before anything is
    /// left out of them (LED-22).
    ///
    /// # Errors
    /// They cannot be hashed.
    pub fn args_hash(&self, args: Args<'_>) -> Result<String, FreezeError> {
        self.hasher.digest(args).map(|digest| digest.hash)
    }

    /// Writes a yes down: a span always, and an entry where there is a context to own it (LED-01).
    ///
    /// # Errors
    /// The store did not answer: the span is there, the entry may be.
    pub async fn record(
        &self,
        context: &Context,
        said: &Said<'_>,
        now: Moment,
    ) -> Result<Recorded, LedgerError> {
        if !is_name(said.tool) || !names_fit(context) {
            return Ok(Recorded { recorded: false, reason: Some(Unledgered::InvalidInput) });
        }
        let (digest, unhashable) = match said.args.map(|args| self.hasher.digest(args)) {
            Some(Ok(digest)) => (Some(digest), None),
            Some(Err(_)) => (None, Some(Unledgered::UnhashableArgs)),
            None => (None, None),
        };
        let yes = Yes { tool: said.tool.to_owned(), digest, kind: said.kind, by: said.by, at: now };
        span::approval(&yes, "approved");
        let reason = match (self.options.switch, context.scope()) {
            (Switch::Off, _) => Some(Unledgered::LedgerOff),
            (Switch::On, None) => Some(Unledgered::NoContext),
            (Switch::On, Some(scope)) => {
                let owner = Owner { app: self.options.app.clone(), scope };
                self.store.put(&owner, &yes, &self.options.bounds).await?;
                unhashable
            }
        };
        Ok(Recorded { recorded: true, reason })
    }

    /// Whether a call may be made. An entry that confirms it is used up; nothing else is.
    ///
    /// # Errors
    /// The call makes no sense, or the store did not answer: then it is not confirmed.
    pub async fn check(
        &self,
        rule: Option<&Rule>,
        call: &Call<'_>,
        now: Moment,
    ) -> Result<Checked, LedgerError> {
        self.decide(rule, call, Want::Use, now).await.map(|(checked, _)| checked)
    }

    /// As [`Self::check`], but what confirms the call is held until [`Self::settle`] says whether it was made. What is
    /// not settled in time is free again.
    ///
    /// # Errors
    /// As for [`Self::check`].
    pub async fn reserve(
        &self,
        rule: Option<&Rule>,
        call: &Call<'_>,
        now: Moment,
        held_for: Duration,
    ) -> Result<(Checked, Option<Reserved>), LedgerError> {
        self.decide(rule, call, Want::Reserve { until: now.after(held_for) }, now).await
    }

    /// Uses up what was reserved, or gives it back; `false` if it had lapsed and somebody else has it.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn settle(&self, reserved: Reserved, settled: Settled) -> Result<bool, LedgerError> {
        let Reserved { claim, lease } = reserved;
        Ok(self.store.settle(&self.options.app, &claim, lease, settled).await?)
    }

    /// Notes a run that our own gate has allowed: in one step it is written down and used up (LED-37). `false` if a run
    /// of this very yes was noted before, here or by another server.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn note_run(&self, run: &OwnRun<'_>, now: Moment) -> Result<bool, LedgerError> {
        let digest = Some(self.hasher.of_hash(run.input_hash));
        let (kind, by) = (Kind::Confirmation, Actor::User);
        let yes = Yes { tool: run.tool.to_owned(), digest, kind, by, at: now };
        span::approval(&yes, "approved");
        if self.options.switch == Switch::Off {
            return Ok(true);
        }
        let claim = Claim::Reference(run.id.to_owned(), yes);
        Ok(self.store.claim(&self.options.app, &claim, Want::Use, now).await?.is_some())
    }

    /// Lets go of what is too old to count.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn forget(&self, now: Moment) -> Result<u64, LedgerError> {
        Ok(self.store.forget(now).await?)
    }

    async fn decide(
        &self,
        rule: Option<&Rule>,
        call: &Call<'_>,
        want: Want,
        now: Moment,
    ) -> Result<(Checked, Option<Reserved>), LedgerError> {
        if !is_name(call.tool) || !names_fit(&call.context) {
            let what = "a tool, a session or a trace has a name of 1 to 200 bytes without control characters";
            return Err(LedgerError::Invalid(what.to_owned()));
        }
        let Some(rule) = rule else { return Ok((Checked::of(Reason::NoRule, Mode::Observe), None)) };
        let brought = call.explicit.iter().map(|explicit| explicit.read(&self.hasher, now));
        let brought = brought.collect::<Result<Vec<_>, _>>().map_err(LedgerError::Invalid)?;
        let (reason, reserved) = match self.options.switch {
            Switch::Off => (Reason::NoData, None),
            Switch::On => self.find(rule, call, brought, (want, now)).await?,
        };
        let checked = Checked::of(reason, rule.mode);
        span::checked(&self.options.app, call.tool, checked);
        Ok((checked, reserved))
    }

    /// Looks for a yes and takes it. Where others are faster, it looks again.
    async fn find(
        &self,
        rule: &Rule,
        call: &Call<'_>,
        mut brought: Vec<(Claim, Yes)>,
        (want, now): (Want, Moment),
    ) -> Result<(Reason, Option<Reserved>), LedgerError> {
        let called = match call.args.map(|args| self.hasher.digest(args)) {
            None => Called::Bare,
            Some(Ok(digest)) => Called::Hashed(digest),
            Some(Err(_)) => Called::Unhashable,
        };
        brought.retain(|(_, yes)| yes.tool == call.tool);
        let owner = call.context.scope().map(|scope| Owner { app: self.options.app.clone(), scope });
        let mut lost = false;
        for _ in 0..ROUNDS {
            let mut claims = brought.clone();
            if let Some(owner) = &owner {
                let wanted = Wanted { tool: call.tool, hash: called.hash(), now };
                let entries = self.store.offers(owner, &wanted).await?;
                claims.extend(entries.into_iter().map(|entry| (Claim::Entry(entry.id), entry.yes)));
            }
            let yeses: Vec<&Yes> = claims.iter().map(|(_, yes)| yes).collect();
            let Verdict { accepted, otherwise } = judge(rule, &called, &yeses, now);
            if accepted.is_empty() {
                let nothing = owner.is_none() && otherwise == Reason::NoConfirmation;
                let why = if nothing { Reason::NoContext } else { otherwise };
                return Ok((if lost { Reason::AlreadyUsed } else { why }, None));
            }
            for (claim, _) in accepted.into_iter().filter_map(|at| claims.get(at)) {
                if let Some(lease) = self.store.claim(&self.options.app, claim, want, now).await? {
                    return Ok((Reason::Confirmed, Some(Reserved { claim: claim.clone(), lease })));
                }
                lost = true;
                brought.retain(|(other, _)| other != claim);
            }
        }
        Ok((Reason::AlreadyUsed, None))
    }
}

/// An empty id is no id, and passes; anything else must be fit to be kept.
fn names_fit(context: &Context) -> bool {
    let ids = [&context.session, &context.trace];
    ids.into_iter().flatten().all(|id| id.trim().is_empty() || is_name(id))
}

#[cfg(test)]
mod tests;
