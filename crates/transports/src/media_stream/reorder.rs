//! Puts pieces of sound back into the order in which they were made.

use std::collections::BTreeMap;

/// Pieces that may wait for one before them.
const WAITING: usize = 4;

/// A short buffer for services that do not keep the order.
#[derive(Debug, Default)]
pub(super) struct Reorder {
    waiting: BTreeMap<u64, Vec<f32>>,
}

impl Reorder {
    /// Takes a piece, and gives those whose turn it is: what follows `expected` at once, and when too many wait, the
    /// oldest, over the gap before it.
    pub(super) fn push(
        &mut self,
        position: u64,
        samples: Vec<f32>,
        expected: Option<u64>,
    ) -> Vec<(u64, Vec<f32>)> {
        self.waiting.insert(position, samples);
        let mut next = expected.unwrap_or(position);
        let mut ready = Vec::new();
        while let Some((first, _)) = self.waiting.first_key_value() {
            if *first > next && self.waiting.len() <= WAITING {
                break;
            }
            if let Some((position, samples)) = self.waiting.pop_first() {
                next = position.saturating_add(samples.len() as u64).max(next);
                ready.push((position, samples));
            }
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_in_order_and_a_lost_one_is_not_waited_for_long() {
        let mut reorder = Reorder::default();
        let mut expected = None;
        let mut order = Vec::new();
        for n in [0_u64, 1, 3, 2, 4, 6, 7, 8, 9, 10] {
            for (position, samples) in reorder.push(n * 160, vec![0.0; 160], expected) {
                expected = Some(position + samples.len() as u64);
                order.push(position / 160);
            }
        }
        // The fifth never came: when five wait for it, they go on without it.
        assert_eq!(order, [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]);
    }
}
