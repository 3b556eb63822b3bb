//! What a ledger keeps: who said yes to which call, in which session, and when.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::digest::Digest;

/// Longest name of a tool, a session, a trace, an app or a reference, in bytes.
pub const LONGEST_NAME: usize = 200;
/// How long an entry is kept, whatever a rule's limit says (LED-11).
pub const KEPT: Duration = Duration::from_secs(3_600);
/// Entries sent per check; the newest (LED-06, LED-14).
pub const MOST_OFFERED: usize = 10;
/// How far clocks of servers that share a store may be apart: an entry from further ahead does not count.
const SKEW: Duration = Duration::from_secs(5);

/// A moment in milliseconds since 1970. Entries outlive calls and cross machines, so this is not the call clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    /// So much later.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(millis(span)))
    }

    /// So much earlier; not before 1970.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(millis(span)))
    }

    /// How long ago another moment was; nothing, if it is still to come.
    pub fn since(self, then: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(then.0))
    }

    /// The oldest entry that is still kept, and the newest that is not from the future.
    pub fn window(self) -> (Self, Self) {
        (self.before(KEPT), self.after(SKEW))
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// What kind of yes it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The user said yes at the point of use.
    Confirmation,
    /// Somebody of the team decided in a queue.
    HumanReview,
}

/// Who said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// The one whom the app serves.
    User,
    /// One of the team.
    Reviewer,
}

impl Kind {
    /// As it is written in spans and stores.
    pub fn name(self) -> &'static str {
        match self {
            Self::Confirmation => "confirmation",
            Self::HumanReview => "human_review",
        }
    }

    /// From what a store has.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Confirmation, Self::HumanReview].into_iter().find(|kind| kind.name() == name)
    }
}

impl Actor {
    /// As it is written in spans and stores.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Reviewer => "reviewer",
        }
    }

    /// From what a store has.
    pub fn named(name: &str) -> Option<Self> {
        [Self::User, Self::Reviewer].into_iter().find(|actor| actor.name() == name)
    }
}

/// What a confirmation or a call is part of. A session goes before a trace (LED-12).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The session, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The trace, which counts only without a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

impl Context {
    /// A session.
    pub fn session(id: impl Into<String>) -> Self {
        Self { session: Some(id.into()), trace: None }
    }

    /// A trace without a session.
    pub fn trace(id: impl Into<String>) -> Self {
        Self { session: None, trace: Some(id.into()) }
    }

    /// Whose entries these are; `None` if nobody's: an entry that no session owns could unlock another user's call.
    pub fn scope(&self) -> Option<Scope> {
        let there = |id: &&str| !id.trim().is_empty();
        let session = self.session.as_deref().filter(there).map(|id| format!("session:{id}"));
        session.or_else(|| Some(format!("trace:{}", self.trace.as_deref().filter(there)?))).map(Scope)
    }
}

/// Whose entries: one session's, or one trace's without a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(pub(super) String);

impl Scope {
    /// As a store keeps it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A yes as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Yes {
    /// The tool.
    pub tool: String,
    /// What it covers; `None`: whatever arguments this tool is called with.
    pub digest: Option<Digest>,
    /// What kind of yes.
    pub kind: Kind,
    /// Whose.
    pub by: Actor,
    /// When it was said.
    pub at: Moment,
}

/// The number of an entry in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub i64);

/// An entry that is not used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub id: EntryId,
    /// What it says.
    pub yes: Yes,
}

/// Whether a text can name something: not empty, not endless, and without control characters, which databases and logs
/// take ill.
pub fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= LONGEST_NAME && !text.chars().any(char::is_control)
}
