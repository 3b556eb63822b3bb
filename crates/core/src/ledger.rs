//! The confirmation ledger of one call: a yes is written down, and used up by the one run that it allows.
//!
//! A second layer behind the gate: it can only add a block. A [`Confirmation`](crate::Confirmation) is made from a
//! [`Used`] entry, so that no run begins without one.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::ids::HoldId;
use crate::time::Time;

/// Entries kept at most; the oldest goes first (LED-14).
const MOST_ENTRIES: usize = 50;
/// How long an entry counts; at exactly this age it still does (LED-10).
const LONGEST: Duration = Duration::from_secs(600);

/// One yes, not used yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    hold: HoldId,
    tool: String,
    input_hash: String,
    at: Time,
}

/// A yes that has been used up. Made by the ledger alone, and taken by value.
#[derive(Debug)]
pub(crate) struct Used {
    hold: HoldId,
    attempt: u32,
}

impl Used {
    pub(crate) fn hold(&self) -> HoldId {
        self.hold
    }

    /// Which run of this hold it is, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }
}

/// The yeses of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ledger {
    entries: Vec<Entry>,
    /// The hold of each run so far.
    runs: Vec<HoldId>,
}

impl Ledger {
    /// The hold of each run so far, in order.
    pub(crate) fn runs(&self) -> &[HoldId] {
        &self.runs
    }

    /// The runs of an earlier part of the conversation.
    pub(crate) fn ran_before(&mut self, runs: Vec<HoldId>) {
        self.runs = runs;
    }

    /// Writes a yes down.
    pub(crate) fn record(&mut self, hold: HoldId, tool: &str, input_hash: &str, at: Time) {
        if self.entries.len() >= MOST_ENTRIES {
            self.entries.remove(0);
        }
        self.entries.push(Entry { hold, tool: tool.into(), input_hash: input_hash.into(), at });
    }

    /// Uses a yes up: for this hold, this tool and this very input, and not too old.
    pub(crate) fn consume(&mut self, hold: HoldId, tool: &str, input_hash: &str, now: Time) -> Option<Used> {
        let fits = |e: &Entry| e.hold == hold && e.tool == tool && e.input_hash == input_hash;
        let at = self.entries.iter().position(|e| fits(e) && now.since(e.at) <= LONGEST)?;
        let hold = self.entries.remove(at).hold;
        self.runs.push(hold);
        let attempt = self.runs.iter().filter(|ran| **ran == hold).count();
        Some(Used { hold, attempt: u32::try_from(attempt).unwrap_or(u32::MAX) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_000);

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        ledger.record(HoldId(1), "book", "sha256:a", NOW);
        ledger
    }

    #[test]
    fn led_07_one_entry_is_one_run() {
        let mut ledger = ledger();
        assert!(ledger.consume(HoldId(1), "book", "sha256:a", NOW).is_some());
        assert!(ledger.consume(HoldId(1), "book", "sha256:a", NOW).is_none());
    }

    #[test]
    fn vc_76_a_second_yes_to_the_same_hold_is_its_second_run() {
        let mut ledger = ledger();
        assert_eq!(ledger.consume(HoldId(1), "book", "sha256:a", NOW).unwrap().attempt(), 1);
        ledger.record(HoldId(2), "book", "sha256:a", NOW);
        assert_eq!(ledger.consume(HoldId(2), "book", "sha256:a", NOW).unwrap().attempt(), 1);
        ledger.record(HoldId(1), "book", "sha256:a", NOW);
        assert_eq!(ledger.consume(HoldId(1), "book", "sha256:a", NOW).unwrap().attempt(), 2);
        assert_eq!(ledger.runs(), [HoldId(1), HoldId(2), HoldId(1)]);
    }

    #[test]
    fn led_17_other_arguments_another_tool_or_another_hold_do_not_match() {
        let mut ledger = ledger();
        assert!(ledger.consume(HoldId(1), "book", "sha256:b", NOW).is_none());
        assert!(ledger.consume(HoldId(1), "pay", "sha256:a", NOW).is_none());
        assert!(ledger.consume(HoldId(2), "book", "sha256:a", NOW).is_none());
    }

    #[test]
    fn led_10_an_entry_counts_up_to_its_limit_and_not_a_millisecond_more() {
        let later = NOW + LONGEST;
        assert!(ledger().consume(HoldId(1), "book", "sha256:a", later).is_some());
        assert!(ledger().consume(HoldId(1), "book", "sha256:a", later + Duration::from_millis(1)).is_none());
    }

    #[test]
    fn led_14_the_oldest_entry_goes_first() {
        let mut ledger = ledger();
        for _ in 0..MOST_ENTRIES {
            ledger.record(HoldId(2), "book", "sha256:a", NOW);
        }
        assert!(ledger.consume(HoldId(1), "book", "sha256:a", NOW).is_none());
    }
}
