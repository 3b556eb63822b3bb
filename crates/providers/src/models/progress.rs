//! How far a fetch is, and a line on the terminal that shows it.

use std::io::{IsTerminal, Write};

/// What a fetch is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The file is here and its checksum is right.
    Present {
        /// The file.
        file: &'a str,
    },
    /// A source is being asked.
    Asking {
        /// The file.
        file: &'a str,
        /// The source.
        source: &'a str,
    },
    /// Bytes came.
    Advanced {
        /// The file.
        file: &'a str,
        /// Bytes that are here.
        done: u64,
        /// Bytes of the whole file.
        total: u64,
    },
    /// A source did not give the file; the next is asked.
    Failed {
        /// The file.
        file: &'a str,
        /// Which source, and why not.
        reason: &'a str,
    },
    /// The bytes are being turned into the form that the engine reads.
    Converting {
        /// The file.
        file: &'a str,
    },
    /// The file is in place.
    Finished {
        /// The file.
        file: &'a str,
        /// Its length in bytes.
        bytes: u64,
    },
}

/// Shows a fetch on standard error: one moving line per file on a terminal, plain lines elsewhere.
#[derive(Debug)]
pub struct ProgressBar {
    terminal: bool,
    open: bool,
    tenths: u64,
}

impl Default for ProgressBar {
    fn default() -> Self {
        Self::new()
    }
}

impl ProgressBar {
    /// A bar for this process's standard error.
    pub fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), open: false, tenths: 0 }
    }

    /// Shows one step; pass `&mut |step| bar.show(step)` to [`super::Manifest::fetch`].
    /// A closed standard error is ignored: it is no reason to stop a fetch.
    pub fn show(&mut self, step: Progress<'_>) {
        let mut out = std::io::stderr().lock();
        let _ = match self.line(step) {
            Some(Line::Moving(text)) => {
                self.open = true;
                write!(out, "\r\x1b[2K{text}").and_then(|()| out.flush())
            }
            Some(Line::Plain(text)) if self.open => {
                self.open = false;
                writeln!(out, "\r\x1b[2K{text}")
            }
            Some(Line::Plain(text)) => writeln!(out, "{text}"),
            None => Ok(()),
        };
    }

    fn line(&mut self, step: Progress<'_>) -> Option<Line> {
        Some(Line::Plain(match step {
            Progress::Present { file } => format!("{file}: already here"),
            Progress::Asking { file, source } => {
                self.tenths = 0;
                format!("{file}: from {source}")
            }
            Progress::Advanced { file, done, total } => return self.advanced(file, done, total),
            Progress::Failed { reason, .. } => reason.to_owned(),
            Progress::Converting { file } => format!("{file}: converting"),
            Progress::Finished { file, bytes } => format!("{file}: done, {}", megabytes(bytes)),
        }))
    }

    fn advanced(&mut self, file: &str, done: u64, total: u64) -> Option<Line> {
        let done = done.min(total);
        let percent = (done * 100).checked_div(total).unwrap_or(100);
        if self.terminal {
            let filled = usize::try_from(percent / 4).unwrap_or(0);
            let bar = "#".repeat(filled) + &".".repeat(25 - filled);
            let text = format!("{file} [{bar}] {percent:3} %  {} of {}", megabytes(done), megabytes(total));
            return Some(Line::Moving(text));
        }
        let tenths = percent / 10;
        let crossed = tenths > self.tenths;
        self.tenths = self.tenths.max(tenths);
        crossed.then(|| Line::Plain(format!("{file}: {percent} % of {}", megabytes(total))))
    }
}

enum Line {
    Moving(String),
    Plain(String),
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(terminal: bool, steps: &[(u64, u64)]) -> Vec<String> {
        let mut bar = ProgressBar { terminal, open: false, tenths: 0 };
        let shown = steps.iter().filter_map(|&(done, total)| bar.advanced("a", done, total));
        shown
            .map(|line| match line {
                Line::Moving(text) | Line::Plain(text) => text,
            })
            .collect()
    }

    #[test]
    fn a_pipe_gets_a_line_per_tenth_and_no_more() {
        let shown = lines(false, &[(0, 100), (9, 100), (10, 100), (15, 100), (100, 100), (100, 100)]);
        assert_eq!(shown, ["a: 10 % of 0.0 MB", "a: 100 % of 0.0 MB"]);
    }

    #[test]
    fn a_terminal_bar_never_runs_over_and_bears_an_empty_file() {
        let shown = lines(true, &[(0, 0), (5_000_000, 1_000_000)]);
        assert!(shown[1].contains("#########################] 100 %  1.0 MB of 1.0 MB"), "{shown:?}");
    }
}
