//! What tests need and a machine does not have: an [authority](Authority) for certificates, a [browser](Browser), and
//! sound without hardware: a private PulseAudio server with a virtual speaker and a virtual microphone.
//!
//! ```text
//! product ── ALSA "speaker" ──> null sink speaker ── monitor ──> ALSA "speaker_tap", Recording
//! Player ──────────────────────> null sink feed ── remap ──────> ALSA "microphone" ──> product
//! ```
//!
//! ALSA finds its devices through `HOME` and PulseAudio its server through `XDG_RUNTIME_DIR`, and a running process
//! cannot change its own environment safely. So a test runs [`inside`]: the test starts the server and then itself
//! again as a child with that environment. Servers of different tests do not know each other.
//!
//! A sound that is played by [`Rig::play`] is stamped on the real clock, which is why this crate may read it.

mod authority;
mod browser;
mod needs;
mod player;
mod server;

use std::process::{Command, ExitStatus};
use std::sync::Mutex;

pub use authority::Authority;
pub use browser::{Browser, pictures};
pub use needs::{has_models, has_program, models, runs, skip};
pub use player::{Player, Recording, Stamped};
pub use server::{Rig, RigError};

/// Set in the child that [`inside`] starts: the folder of the server.
pub(crate) const FOLDER: &str = "SAYBACK_RIG";

/// Two servers at a time would disturb each other's timing on a small machine.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs `test` in a child process whose sound devices are those of a fresh private server.
///
/// `name` is the whole name of the test function, by which the child is told to run nothing else. The server is gone
/// when this returns, however the test ended.
///
/// # Panics
/// If the test fails, and in continuous integration (`CI` is set) if a program that the rig needs is missing.
/// Elsewhere a missing program is said loudly and the test is left out.
pub fn inside(name: &str, test: impl FnOnce(&Rig)) {
    inside_with(name, &[], test);
}

/// The same for a program of one's own with arguments that the child is to have too.
///
/// # Panics
/// As [`inside`].
pub fn inside_with(name: &str, arguments: &[String], test: impl FnOnce(&Rig)) {
    if let Some(rig) = Rig::from_env() {
        return test(&rig);
    }
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match Rig::start() {
        Ok(rig) => {
            let status = run_again(name, arguments, &rig).expect("a test can run its own program");
            assert!(status.success(), "{name} failed on the virtual devices: {status}");
        }
        Err(error) => {
            skip(&format!("{name}: {error}"));
        }
    }
}

fn run_again(name: &str, arguments: &[String], rig: &Rig) -> std::io::Result<ExitStatus> {
    let program = std::env::current_exe()?;
    let mut command = if server::may_be_favoured() {
        // What else runs on this machine must not be what is measured. Not real-time: a device thread that polls in a
        // loop would then keep its own sound client from ever answering.
        let mut command = Command::new("nice");
        command.args(["-n", "-15"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).args(arguments);
    // As an ignored test runs only when asked for, so does its child.
    if std::env::args().any(|arg| arg == "--ignored" || arg == "--include-ignored") {
        command.arg("--include-ignored");
    }
    command.envs(rig.environment()).env(FOLDER, rig.folder()).status()
}
