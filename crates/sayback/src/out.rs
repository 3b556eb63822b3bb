//! Standard output and files that are written along. A reader that has gone away is no error; a full disk is one.

use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

/// The first thing that could not be written.
static LOST: OnceLock<String> = OnceLock::new();

/// Notes that `what` could not be written, if that is more than a reader who has gone away. What is done goes on; the
/// command's end tells of it (see [`lost`]).
pub(crate) fn note(what: &str, written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _ =
            LOST.set(format!("{what} could not be written: {error}\n  hint: check the space on that disk"));
    }
}

/// Writes out what waits for standard output, and says what was lost on the way, if anything was.
pub(crate) fn lost() -> Option<&'static str> {
    note("standard output", std::io::stdout().flush());
    LOST.get().map(String::as_str)
}

/// `1 tool`, `2 tools`.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Prints a line.
macro_rules! out {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        $crate::out::note("standard output", writeln!(std::io::stdout(), $($arg)*));
    }};
}
