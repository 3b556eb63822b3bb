//! What goes between programs: confirmations that were recorded elsewhere, and the two fields that a check carries.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::{Args, Hasher};
use super::entry::{Actor, Kind, Moment, Yes, is_name};
use super::store::Claim;

/// How old a confirmation from elsewhere is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Age {
    /// Nothing is said: it counts as just recorded (LED-19).
    #[default]
    New,
    /// So many milliseconds.
    Millis(i64),
    /// It was said then, in milliseconds since 1970.
    At(i64),
}

/// A confirmation that was recorded in another process and came with the call. It brings arguments and not a hash: they
/// are hashed here, the way the call is (LED-18).
#[derive(Clone, Debug)]
pub struct Explicit<'a> {
    /// What it is called: each works once, so each attempt needs a new one (LED-20).
    pub reference: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// What was confirmed; `None`: whatever this tool is called with.
    pub args: Option<Args<'a>>,
    /// How old it is.
    pub age: Age,
    /// What kind of yes.
    pub kind: Kind,
    /// Whose.
    pub by: Actor,
}

impl<'a> Explicit<'a> {
    /// A user's yes that has just been recorded.
    pub fn new(reference: &'a str, tool: &'a str, args: Args<'a>) -> Self {
        Self { reference, tool, args: Some(args), age: Age::New, kind: Kind::Confirmation, by: Actor::User }
    }

    /// As an entry would have it; the error says what is wrong with it.
    pub(super) fn read(&self, hasher: &Hasher, now: Moment) -> Result<(Claim, Yes), String> {
        if !is_name(self.reference) || !is_name(self.tool) {
            return Err(
                "a confirmation has a tool and a ref, each of 1 to 200 bytes without control characters"
                    .to_owned(),
            );
        }
        let wrong =
            || format!("the confirmation {:?} has a negative age, or is from the future", self.reference);
        let at = match self.age {
            Age::New => now,
            Age::Millis(age) => Moment(now.0.saturating_sub(u64::try_from(age).map_err(|_| wrong())?)),
            Age::At(at) => Moment(u64::try_from(at).map_err(|_| wrong())?),
        };
        if at > now {
            return Err(wrong());
        }
        let digest = match self.args.map(|args| hasher.digest(args)) {
            Some(Ok(digest)) => Some(digest),
            Some(Err(error)) => {
                return Err(format!("the arguments of the confirmation {:?}: {error}", self.reference));
            }
            None => None,
        };
        let yes = Yes { tool: self.tool.to_owned(), digest, kind: self.kind, by: self.by, at };
        Ok((Claim::Reference(self.reference.to_owned(), yes.clone()), yes))
    }
}

/// The two fields that a tool-call check carries to whoever holds a rule. One who does not know them passes them over;
/// a check without them brings no data, and a rule then blocks nothing (LED-32, LED-33).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Whether a ledger stands behind the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<bool>,
    /// Confirmations that came with the call, as they were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmations: Option<Vec<Value>>,
}

impl Sent {
    /// Whether anything was sent that a rule could be held against.
    pub fn is_data(&self) -> bool {
        self.ledger == Some(true) || self.confirmations.is_some()
    }
}
