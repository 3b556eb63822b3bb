//! The rule: which confirmations let a call through. Pure: it is handed the call, the entries and the time.
//!
//! No text is read in here, in any language (LED-35): an app, or our own gate, has judged the words before.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::digest::{Digest, pointer};
use super::entry::{Actor, KEPT, Kind, Moment, Yes};

/// What a rule does with a call that nobody confirmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It is said, and the call goes through.
    Observe,
    /// The call is blocked.
    #[default]
    Enforce,
}

/// What an entry must be to count: its kind and its actor must both be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accepted {
    /// A yes at the point of use.
    Confirmation,
    /// A decision in a queue.
    HumanReview,
    /// By the one whom the app serves.
    User,
    /// By one of the team.
    Reviewer,
}

/// When a call needs a confirmation, and which ones count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// What happens to a call without one.
    pub mode: Mode,
    /// How old one may be, in milliseconds; at exactly this age it counts (LED-10).
    pub within_ms: u64,
    /// Whose, and of what kind.
    pub accept: BTreeSet<Accepted>,
    /// Fields that must be equal: `amount`, `to.iban`, or JSON pointers. Empty: the whole arguments.
    pub bind_fields: Vec<String>,
    /// Whether an entry without a hash counts, whatever the arguments (LED-17). Never for tools with a question.
    pub tool_only: bool,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            mode: Mode::Enforce,
            within_ms: 600_000,
            accept: BTreeSet::from([Accepted::Confirmation, Accepted::User]),
            bind_fields: Vec::new(),
            tool_only: true,
        }
    }
}

impl Rule {
    fn accepts(&self, yes: &Yes) -> bool {
        let kind = match yes.kind {
            Kind::Confirmation => Accepted::Confirmation,
            Kind::HumanReview => Accepted::HumanReview,
        };
        let actor = match yes.by {
            Actor::User => Accepted::User,
            Actor::Reviewer => Accepted::Reviewer,
        };
        self.accept.contains(&kind) && self.accept.contains(&actor)
    }
}

/// Why a call goes through or not; a stable code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// An entry confirmed it, and is used up.
    Confirmed,
    /// There is no rule for it.
    NoRule,
    /// The ledger is off, or nothing was sent: nothing is known, and nothing is blocked (LED-03, LED-32).
    NoData,
    /// The rule binds fields and the hash is keyed: nothing is blocked (LED-25).
    CouldNotCompare,
    /// There is no entry for this tool.
    NoConfirmation,
    /// The call has neither session nor trace, so no entry can be its own.
    NoContext,
    /// Entries for the tool there are, but none of a kind and an actor that the rule accepts.
    NotAccepted,
    /// What would have confirmed it was used by another call.
    AlreadyUsed,
    /// The call's arguments cannot be hashed, so nothing can be compared with them.
    UnhashableArgs,
    /// What was confirmed had other arguments.
    ArgsMismatch,
    /// What would have confirmed it is too old.
    Expired,
}

impl Reason {
    /// Its stable code, `args_mismatch`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::NoRule => "no_rule",
            Self::NoData => "no_data",
            Self::CouldNotCompare => "could_not_compare",
            Self::NoConfirmation => "no_confirmation",
            Self::NoContext => "no_context",
            Self::NotAccepted => "not_accepted",
            Self::AlreadyUsed => "already_used",
            Self::UnhashableArgs => "unhashable_args",
            Self::ArgsMismatch => "args_mismatch",
            Self::Expired => "expired",
        }
    }

    /// Whether a rule that enforces blocks the call for it.
    pub fn blocks(self) -> bool {
        match self {
            Self::Confirmed | Self::NoRule | Self::NoData | Self::CouldNotCompare => false,
            Self::NoConfirmation
            | Self::NoContext
            | Self::NotAccepted
            | Self::AlreadyUsed
            | Self::UnhashableArgs
            | Self::ArgsMismatch
            | Self::Expired => true,
        }
    }
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Whether the call may go on.
    pub allowed: bool,
    /// Whether an entry confirmed it.
    pub confirmed: bool,
    /// Why.
    pub reason: Reason,
    /// What the rule does with a call that is not confirmed.
    pub mode: Mode,
}

impl Checked {
    /// What a reason means under a mode (LED-34).
    pub fn of(reason: Reason, mode: Mode) -> Self {
        let allowed = match mode {
            Mode::Observe => true,
            Mode::Enforce => !reason.blocks(),
        };
        Self { allowed, confirmed: reason == Reason::Confirmed, reason, mode }
    }
}

/// What a call's arguments are to a rule.
#[derive(Clone, Debug)]
pub(super) enum Called {
    /// The call has none.
    Bare,
    /// They were hashed.
    Hashed(Digest),
    /// They cannot be.
    Unhashable,
}

impl Called {
    pub(super) fn hash(&self) -> Option<&str> {
        match self {
            Self::Hashed(digest) => Some(&digest.hash),
            Self::Bare | Self::Unhashable => None,
        }
    }
}

/// What a rule makes of entries: those that confirm the call, in the order given; and why not, if there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) accepted: Vec<usize>,
    pub(super) otherwise: Reason,
}

/// Holds entries against a rule. The reason is that of the entry that came nearest.
pub(super) fn judge(rule: &Rule, called: &Called, entries: &[&Yes], now: Moment) -> Verdict {
    let mut verdict = Verdict { accepted: Vec::new(), otherwise: Reason::NoConfirmation };
    let mut misses = BTreeSet::new();
    for (at, yes) in entries.iter().enumerate() {
        let reason = fit(rule, called, yes, now);
        if reason == Reason::Confirmed {
            verdict.accepted.push(at);
        } else {
            misses.insert(reason);
        }
    }
    // What cannot be compared blocks nothing, so it goes before whatever would.
    let open = misses.get(&Reason::CouldNotCompare).copied();
    verdict.otherwise = open.or(misses.last().copied()).unwrap_or(verdict.otherwise);
    verdict
}

fn fit(rule: &Rule, called: &Called, yes: &Yes, now: Moment) -> Reason {
    if !rule.accepts(yes) {
        return Reason::NotAccepted;
    }
    // What is older than anything is kept would be gone, wherever it was kept (LED-11).
    let fresh = now.since(yes.at) <= Duration::from_millis(rule.within_ms).min(KEPT);
    let compared = compare(rule, called, yes.digest.as_ref());
    if compared.blocks() || fresh { compared } else { Reason::Expired }
}

fn compare(rule: &Rule, called: &Called, confirmed: Option<&Digest>) -> Reason {
    let same = |equal: bool| if equal { Reason::Confirmed } else { Reason::ArgsMismatch };
    let Some(confirmed) = confirmed else { return same(rule.tool_only) };
    let called = match called {
        Called::Bare => return Reason::ArgsMismatch,
        Called::Unhashable => return Reason::UnhashableArgs,
        Called::Hashed(digest) => digest,
    };
    if rule.bind_fields.is_empty() {
        return same(called.hash == confirmed.hash);
    }
    if called.is_keyed() || confirmed.is_keyed() {
        return Reason::CouldNotCompare;
    }
    let (Some(ours), Some(theirs)) = (&called.fields, &confirmed.fields) else {
        // Too many fields for a hash each: only equal arguments have equal fields for sure.
        return same(called.hash == confirmed.hash);
    };
    let equal = |name: &String| ours.get(&pointer(name)) == theirs.get(&pointer(name));
    same(rule.bind_fields.iter().all(equal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::digest::{Args, Hasher, Key};

    const NOW: Moment = Moment(10_000_000);

    fn digest(json: &str) -> Digest {
        Hasher::Plain.digest(Args::Json(json)).unwrap()
    }

    fn yes(json: &str, age_ms: u64) -> Yes {
        Yes {
            tool: "pay".to_owned(),
            digest: Some(digest(json)),
            kind: Kind::Confirmation,
            by: Actor::User,
            at: Moment(NOW.0 - age_ms),
        }
    }

    fn reason(rule: &Rule, called: &Called, entries: &[&Yes]) -> Reason {
        let verdict = judge(rule, called, entries, NOW);
        if verdict.accepted.is_empty() { verdict.otherwise } else { Reason::Confirmed }
    }

    #[test]
    fn led_10_an_entry_of_exactly_the_limit_counts_and_one_millisecond_more_does_not() {
        let (rule, called) = (Rule::default(), Called::Hashed(digest("{}")));
        assert_eq!(rule.within_ms, 10 * 60 * 1_000);
        assert_eq!(reason(&rule, &called, &[&yes("{}", 600_000)]), Reason::Confirmed);
        assert_eq!(reason(&rule, &called, &[&yes("{}", 600_001)]), Reason::Expired);
    }

    #[test]
    fn led_17_other_arguments_do_not_match_and_an_entry_without_a_hash_matches_the_tool_only() {
        let called = Called::Hashed(digest(r#"{"amount":5000}"#));
        let tool_only = Yes { digest: None, ..yes("{}", 0) };
        let strict = Rule { tool_only: false, ..Rule::default() };
        let rule = Rule::default();
        assert_eq!(reason(&rule, &called, &[&yes(r#"{"amount":50}"#, 0)]), Reason::ArgsMismatch);
        assert_eq!(reason(&rule, &called, &[&yes(r#"{"amount":"5000"}"#, 0)]), Reason::ArgsMismatch);
        assert_eq!(reason(&rule, &called, &[&tool_only]), Reason::Confirmed);
        assert_eq!(reason(&strict, &called, &[&tool_only]), Reason::ArgsMismatch, "a tool with a question");
        assert_eq!(reason(&rule, &Called::Bare, &[&yes("{}", 0)]), Reason::ArgsMismatch);
        assert_eq!(reason(&rule, &Called::Unhashable, &[&yes("{}", 0)]), Reason::UnhashableArgs);
    }

    #[test]
    fn led_25_bound_fields_are_compared_and_a_keyed_hash_cannot_be() {
        let rule = Rule { bind_fields: vec!["amount".into(), "to.iban".into()], ..Rule::default() };
        let called = Called::Hashed(digest(r#"{"amount":5,"to":{"iban":"x"},"note":"b"}"#));
        let same = yes(r#"{"note":"a","to":{"iban":"x","name":"n"},"amount":5.0}"#, 0);
        assert_eq!(reason(&rule, &called, &[&same]), Reason::Confirmed);
        let other = yes(r#"{"amount":5,"to":{"iban":"y"}}"#, 0);
        assert_eq!(reason(&rule, &called, &[&other]), Reason::ArgsMismatch);
        let lacking = yes(r#"{"amount":5,"to":{}}"#, 0);
        assert_eq!(reason(&rule, &called, &[&lacking]), Reason::ArgsMismatch);
        let hasher = Hasher::Keyed(Key::known(b"k"));
        let keyed = |json: &str| hasher.digest(Args::Json(json)).unwrap();
        let entry = Yes { digest: Some(keyed("{}")), ..yes("{}", 0) };
        let called = Called::Hashed(keyed(r#"{"amount":5}"#));
        assert_eq!(reason(&rule, &called, &[&entry]), Reason::CouldNotCompare);
        assert!(Checked::of(Reason::CouldNotCompare, Mode::Enforce).allowed, "nothing is blocked");
        assert_eq!(reason(&rule, &called, &[]), Reason::NoConfirmation);
    }

    #[test]
    fn too_many_fields_bind_the_whole_arguments() {
        let rule = Rule { bind_fields: vec!["0".into()], ..Rule::default() };
        let many = |last: u32| serde_json::to_string(&(0..300).chain([last]).collect::<Vec<u32>>()).unwrap();
        let called = Called::Hashed(digest(&many(1)));
        assert_eq!(reason(&rule, &called, &[&yes(&many(1), 0)]), Reason::Confirmed);
        assert_eq!(reason(&rule, &called, &[&yes(&many(2), 0)]), Reason::ArgsMismatch);
    }

    #[test]
    fn led_28_a_review_counts_only_where_the_rule_names_both_it_and_the_reviewer() {
        let review = Yes { kind: Kind::HumanReview, by: Actor::Reviewer, ..yes("{}", 0) };
        let called = Called::Hashed(digest("{}"));
        let accepting =
            |accept: &[Accepted]| Rule { accept: accept.iter().copied().collect(), ..Rule::default() };
        use Accepted::{Confirmation, HumanReview, Reviewer, User};
        for accept in
            [vec![Confirmation, User], vec![HumanReview, User], vec![Reviewer, Confirmation], vec![]]
        {
            assert_eq!(reason(&accepting(&accept), &called, &[&review]), Reason::NotAccepted, "{accept:?}");
        }
        let both = accepting(&[HumanReview, Reviewer]);
        assert_eq!(reason(&both, &called, &[&review]), Reason::Confirmed);
        assert_eq!(reason(&Rule::default(), &called, &[&review]), Reason::NotAccepted, "the default");
    }

    #[test]
    fn led_34_observing_reports_and_enforcing_blocks_with_a_reason() {
        let all = [
            Reason::NoConfirmation,
            Reason::NoContext,
            Reason::NotAccepted,
            Reason::AlreadyUsed,
            Reason::UnhashableArgs,
            Reason::ArgsMismatch,
            Reason::Expired,
        ];
        for reason in all {
            let observed = Checked::of(reason, Mode::Observe);
            assert!(observed.allowed && !observed.confirmed && observed.reason == reason);
            assert!(!Checked::of(reason, Mode::Enforce).allowed, "{reason:?}");
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.code());
        }
    }

    #[test]
    fn the_reason_is_that_of_the_nearest_entry() {
        let called = Called::Hashed(digest("{}"));
        let review = Yes { kind: Kind::HumanReview, ..yes("{}", 0) };
        let (old, other) = (yes("{}", 700_000), yes("[]", 0));
        assert_eq!(reason(&Rule::default(), &called, &[&old, &other, &review]), Reason::Expired);
        assert_eq!(reason(&Rule::default(), &called, &[&review, &other]), Reason::ArgsMismatch);
    }

    #[test]
    fn a_rule_is_read_strictly() {
        let rule: Rule =
            serde_json::from_str(r#"{"mode":"observe","accept":["human_review","reviewer"]}"#).unwrap();
        assert_eq!((rule.mode, rule.within_ms), (Mode::Observe, 600_000));
        for broken in [r#"{"mod":"observe"}"#, r#"{"accept":["anybody"]}"#, r#"{"within_ms":-1}"#] {
            assert!(serde_json::from_str::<Rule>(broken).is_err(), "{broken}");
        }
    }
}
