//! How a command stops: one line, a hint, and the exit status.

use std::fmt;

/// An expectation failed or a check found faults.
pub(crate) const FAULTS: u8 = 1;
/// The input cannot be used.
pub(crate) const UNUSABLE: u8 = 2;
/// A needed device, model, network peer or key is missing.
pub(crate) const MISSING: u8 = 3;

/// Why a command stops before its end.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) code: u8,
    message: String,
}

impl Stop {
    /// The input cannot be used.
    pub(crate) fn unusable(message: impl fmt::Display) -> Self {
        Self { code: UNUSABLE, message: message.to_string() }
    }

    /// With the exit status given.
    pub(crate) fn with_code(code: u8, message: impl fmt::Display) -> Self {
        Self { code, message: message.to_string() }
    }

    /// Something is missing.
    pub(crate) fn missing(message: impl fmt::Display) -> Self {
        Self { code: MISSING, message: message.to_string() }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A file could not be written.
pub(crate) fn unwritable(path: &std::path::Path, error: &std::io::Error) -> Stop {
    let hint = if error.kind() == std::io::ErrorKind::AlreadyExists {
        "nothing is written over; name another, or move this one away"
    } else {
        "check the folder and its permissions"
    };
    Stop::unusable(format!("{}: cannot be written: {error}\n  hint: {hint}", path.display()))
}
