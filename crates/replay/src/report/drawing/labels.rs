//! Labels that do not lie on each other.

/// How far a label may be moved to the right of what it names.
const FARTHEST: f64 = 90.0;
/// Between two labels of a row, so that they do not read as one.
const GAP: f64 = 8.0;

/// Rows of labels, filled from the left.
pub(super) struct Rows {
    ends: Vec<f64>,
}

impl Rows {
    pub(super) fn new(rows: usize) -> Self {
        Self { ends: vec![0.0; rows] }
    }

    /// The row and the x of a label that would like to begin at `x`; `None`: it would lie too far away.
    pub(super) fn place(&mut self, x: f64, width: f64) -> Option<(usize, f64)> {
        let free = (0..self.ends.len()).find(|row| self.ends[*row] <= x);
        let soonest = || (0..self.ends.len()).min_by(|a, b| self.ends[*a].total_cmp(&self.ends[*b]));
        let row = free.or_else(soonest)?;
        let moved = x.max(self.ends[row]);
        if moved - x > FARTHEST {
            return None;
        }
        self.ends[row] = moved + width + GAP;
        Some((row, moved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_take_the_first_free_row_and_give_up_far_away() {
        let mut rows = Rows::new(2);
        assert_eq!(rows.place(0.0, 100.0), Some((0, 0.0)));
        assert_eq!(rows.place(10.0, 100.0), Some((1, 10.0)));
        assert_eq!(rows.place(50.0, 300.0), Some((0, 108.0)));
        assert_eq!(rows.place(120.0, 300.0), Some((1, 120.0)));
        assert_eq!(rows.place(130.0, 10.0), None);
    }
}
