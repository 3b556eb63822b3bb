//! The time axis.

use super::{Canvas, HEIGHT};

impl Canvas<'_> {
    pub(super) fn axis(&mut self, width: f64) {
        // About a hundred pixels between two marks, at a step that people count in.
        let steps = [100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0, 30_000.0, 60_000.0, 300_000.0];
        let step = steps.into_iter().find(|step| step * self.scale >= 90.0).unwrap_or(600_000.0);
        let marks = (self.end / step) as usize;
        for mark in 0..=marks {
            let ms = mark as f64 * step;
            let x = self.x(ms);
            self.line("grid", (x, 26.0), (x, HEIGHT));
            self.text("axis", x + 4.0, 17.0, &clock(ms, step < 1_000.0));
        }
        self.line("base", (0.0, 26.0), (width, 26.0));
    }
}

/// `4 s`, `4.2 s`, `1:04`.
fn clock(ms: f64, fine: bool) -> String {
    let seconds = ms / 1_000.0;
    match (seconds >= 60.0, fine) {
        (false, true) => format!("{seconds:.1} s"),
        (false, false) => format!("{seconds:.0} s"),
        (true, _) => {
            let whole = seconds as u64;
            format!("{}:{:02}", whole / 60, whole % 60)
        }
    }
}
