//! Which conversation's cache a prompt continues.
//!
//! A prompt is read at some 70 tokens a second, and a turn adds few tokens to the prompt before. So each slot
//! remembers the tokens that its cache holds, and a prompt goes to the slot that shares the longest beginning.

use std::fmt::Debug;

/// Remembers what each slot's cache holds.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    uses: u64,
}

#[derive(Debug)]
struct Slot<T> {
    tokens: Vec<T>,
    used: u64,
}

/// Where a prompt goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The slot.
    pub(crate) slot: usize,
    /// How many of the prompt's tokens its cache already holds.
    pub(crate) kept: usize,
}

impl<T: Copy + PartialEq + Debug> Slots<T> {
    pub(crate) fn new(count: usize) -> Self {
        Self { slots: (0..count.max(1)).map(|_| Slot { tokens: Vec::new(), used: 0 }).collect(), uses: 0 }
    }

    /// Chooses a slot for `prompt` and forgets what it holds beyond the shared beginning.
    ///
    /// The slot that shares most is taken if that is at least half of the prompt or of what the slot holds;
    /// otherwise two conversations that begin alike would take turns in one slot. Then the one longest unused is.
    /// The last token is never kept: reading it again gives the scores of the next one.
    pub(crate) fn place(&mut self, prompt: &[T]) -> Place {
        let shared = |slot: &Slot<T>| {
            slot.tokens.iter().zip(prompt).take_while(|(ours, theirs)| ours == theirs).count()
        };
        let best = (0..self.slots.len()).max_by_key(|&at| (shared(&self.slots[at]), self.slots[at].used));
        let oldest = (0..self.slots.len()).min_by_key(|&at| self.slots[at].used).unwrap_or(0);
        let slot = match best {
            Some(at) if is_same(shared(&self.slots[at]), prompt.len(), self.slots[at].tokens.len()) => at,
            _ => oldest,
        };
        let kept = shared(&self.slots[slot]).min(prompt.len().saturating_sub(1));
        self.uses += 1;
        self.slots[slot].used = self.uses;
        self.slots[slot].tokens.truncate(kept);
        Place { slot, kept }
    }

    /// Notes tokens that the slot's cache holds now as well.
    pub(crate) fn extend(&mut self, slot: usize, tokens: &[T]) {
        self.slots[slot].tokens.extend_from_slice(tokens);
    }

    /// Notes that the slot's cache was emptied.
    pub(crate) fn clear(&mut self, slot: usize) {
        self.slots[slot].tokens.clear();
    }
}

fn is_same(shared: usize, prompt: usize, held: usize) -> bool {
    shared > 0 && shared * 2 >= prompt.min(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(slots: &mut Slots<u8>, prompt: &[u8]) -> Place {
        let place = slots.place(prompt);
        slots.extend(place.slot, &prompt[place.kept..]);
        place
    }

    #[test]
    fn a_conversation_and_its_checks_keep_their_own_slots() {
        let mut slots = Slots::new(2);
        let talk = put(&mut slots, b"<talk>a b c");
        let check = put(&mut slots, b"<judge>q1");
        assert_ne!(talk.slot, check.slot);
        assert_eq!(put(&mut slots, b"<talk>a b c d e"), Place { slot: talk.slot, kept: 11 });
        assert_eq!(put(&mut slots, b"<judge>q2"), Place { slot: check.slot, kept: 8 });
        assert_eq!(put(&mut slots, b"<talk>a b x"), Place { slot: talk.slot, kept: 10 });
    }

    #[test]
    fn a_stranger_takes_the_slot_longest_unused() {
        let mut slots = Slots::new(2);
        let first = put(&mut slots, b"aaaa");
        let second = put(&mut slots, b"bbbb");
        assert_eq!(put(&mut slots, b"cccc"), Place { slot: first.slot, kept: 0 });
        assert_eq!(put(&mut slots, b"dddd"), Place { slot: second.slot, kept: 0 });
    }

    #[test]
    fn the_last_token_is_read_again() {
        let mut slots = Slots::new(1);
        put(&mut slots, b"abc");
        assert_eq!(put(&mut slots, b"abc").kept, 2);
        assert_eq!(slots.place(b"").kept, 0);
    }

    #[test]
    fn a_cleared_slot_shares_nothing() {
        let mut slots = Slots::new(1);
        let place = put(&mut slots, b"abc");
        slots.clear(place.slot);
        assert_eq!(slots.place(b"abcd").kept, 0);
    }
}
