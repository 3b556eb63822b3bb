//! What the sound libraries have to say to the terminal, kept from it.
//!
//! ALSA and JACK write to standard error whatever they try in vain while devices are listed or opened. None of it tells
//! a caller anything that our own errors do not, and JACK asks nobody before it writes. So standard error leads nowhere
//! for as long as a device is looked for; that takes milliseconds.

#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
#[cfg(target_os = "linux")]
use std::sync::{Mutex, PoisonError};

/// How many ask for quiet, and where standard error led before the first of them.
#[cfg(target_os = "linux")]
static QUIET: Mutex<(usize, Option<OwnedFd>)> = Mutex::new((0, None));

/// Standard error leads nowhere until this is dropped.
#[derive(Debug)]
pub(crate) struct Hush(());

impl Hush {
    /// From now on. If it cannot be had, there is noise, and no harm.
    pub(crate) fn new() -> Self {
        #[cfg(target_os = "linux")]
        {
            let mut quiet = QUIET.lock().unwrap_or_else(PoisonError::into_inner);
            quiet.0 += 1;
            if quiet.0 == 1 {
                quiet.1 = redirect();
            }
        }
        Self(())
    }
}

#[cfg(target_os = "linux")]
impl Drop for Hush {
    fn drop(&mut self) {
        let mut quiet = QUIET.lock().unwrap_or_else(PoisonError::into_inner);
        quiet.0 = quiet.0.saturating_sub(1);
        if quiet.0 == 0
            && let Some(kept) = quiet.1.take()
        {
            // It worked the other way a moment ago.
            let _ = rustix::stdio::dup2_stderr(kept);
        }
    }
}

#[cfg(target_os = "linux")]
fn redirect() -> Option<OwnedFd> {
    let nowhere = std::fs::File::options().write(true).open("/dev/null").ok()?;
    // A program that this one starts must not inherit a second standard error.
    let kept = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3).ok()?;
    rustix::stdio::dup2_stderr(nowhere).ok()?;
    Some(kept)
}
