//! The server: started on its own sockets, ended with everything it started.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::FOLDER;

/// Names of the ALSA devices, each a way to the server.
const ALSA_DEVICES: &str = r#"
pcm.!default { type asym playback.pcm "speaker" capture.pcm "microphone" hint { show on description "Default" } }
pcm.speaker { type pulse device "speaker" hint { show on description "Virtual speaker" } }
pcm.microphone { type pulse device "microphone" hint { show on description "Virtual microphone" } }
pcm.speaker_tap { type pulse device "speaker.monitor" hint { show on description "What the speaker plays" } }
pcm.feed { type pulse device "feed" hint { show on description "Into the virtual microphone" } }
ctl.!default { type pulse }
"#;

/// Without `norewinds` the start of a stream is rewritten into what the null sink has rendered ahead, and everything
/// begins 300 to 600 ms off.
const MODULES: &str = "\
load-module module-null-sink sink_name=speaker norewinds=1 rate=48000 channels=2 format=s16le
load-module module-null-sink sink_name=feed norewinds=1 rate=48000 channels=1 format=s16le
load-module module-remap-source source_name=microphone master=feed.monitor channels=1
set-default-sink speaker
set-default-source microphone
";

/// The programs without which there is no rig.
const PROGRAMS: [&str; 4] = ["pulseaudio", "pactl", "paplay", "parec"];

/// A private sound server.
///
/// The process that started it ends it on drop; a test inside only talks to it.
#[derive(Debug)]
pub struct Rig {
    folder: PathBuf,
    owner: Option<(Child, TempDir)>,
}

/// Why there is no virtual sound.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    /// A program is missing.
    #[error(
        "{0} is missing; install it with: apt-get install pulseaudio pulseaudio-utils libasound2-plugins"
    )]
    MissingProgram(&'static str),
    /// A file could not be made or a program not be started.
    #[error("the virtual sound server cannot be set up: {0}")]
    Io(#[from] std::io::Error),
    /// The server ended before it was ready.
    #[error("pulseaudio did not start: {0}")]
    NotStarted(String),
}

impl Rig {
    /// Starts a server and waits until its devices are there.
    ///
    /// # Errors
    /// If a program is missing or the server ends instead.
    pub fn start() -> Result<Self, RigError> {
        if let Some(missing) = PROGRAMS.into_iter().find(|p| !is_installed(p)) {
            return Err(RigError::MissingProgram(missing));
        }
        let folder = tempfile::Builder::new().prefix("sayback-rig-").tempdir()?;
        let path = folder.path().to_path_buf();
        for sub in ["home", "run", "tmp"] {
            std::fs::create_dir(path.join(sub))?;
        }
        std::fs::write(path.join("home/.asoundrc"), ALSA_DEVICES)?;
        let socket = path.join("run/native");
        let protocol =
            format!("load-module module-native-protocol-unix auth-anonymous=1 socket={}\n", socket.display());
        // The socket comes last: who can connect finds the devices.
        std::fs::write(path.join("server.pa"), format!("{MODULES}{protocol}"))?;
        let mut rig = Self { folder: path, owner: None };
        let child = rig.spawn_server()?;
        rig.owner = Some((child, folder));
        rig.await_ready()?;
        Ok(rig)
    }

    /// The server that the surrounding test started, if there is one.
    pub fn from_env() -> Option<Self> {
        let folder = std::env::var_os(FOLDER)?;
        Some(Self { folder: folder.into(), owner: None })
    }

    /// Where the server's files are; gone with it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What a process must have in its environment to use this server's devices and no others.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("HOME", self.folder.join("home")),
            ("XDG_RUNTIME_DIR", self.folder.join("run")),
            ("XDG_CONFIG_HOME", self.folder.join("home")),
            ("PULSE_SERVER", PathBuf::from(format!("unix:{}", self.folder.join("run/native").display()))),
            ("TMPDIR", self.folder.join("tmp")),
        ]
    }

    /// Sends a command to the server, such as `["suspend-sink", "speaker", "1"]`.
    ///
    /// # Errors
    /// If `pactl` cannot be started or refuses.
    pub fn pactl(&self, arguments: &[&str]) -> Result<String, RigError> {
        let Output { status, stdout, stderr } = self.command("pactl").args(arguments).output()?;
        if status.success() {
            return Ok(String::from_utf8_lossy(&stdout).into_owned());
        }
        Err(RigError::NotStarted(format!("pactl {arguments:?}: {}", String::from_utf8_lossy(&stderr).trim())))
    }

    /// A program with this server as its sound.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.envs(self.environment());
        command
    }

    fn spawn_server(&self) -> std::io::Result<Child> {
        let mut words: Vec<&str> = Vec::new();
        if is_installed("setpriv") {
            // A test that is killed does not reach its drop.
            words.extend(["setpriv", "--pdeathsig", "KILL"]);
        }
        if may_be_favoured() {
            words.extend(["nice", "-n", "-20"]);
        }
        words.extend(["pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no"]);
        words.extend(["--disallow-exit", "--log-level=warning", "--log-target=stderr", "-F"]);
        let mut command = self.command(words[0]);
        command.args(&words[1..]).arg(self.folder.join("server.pa"));
        let log = std::fs::File::create(self.folder.join("server.log"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0).spawn()
    }

    /// `pactl subscribe` connects only to a server that listens; its first line is the wake-up.
    fn await_ready(&mut self) -> Result<(), RigError> {
        let started = || {
            let info = self.command("pactl").arg("info").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
            let Ok(mut info) = info else { return false };
            let line = info.stdout.take().and_then(|out| BufReader::new(out).lines().next());
            info.wait().is_ok_and(|s| s.success()) && line.is_some()
        };
        let socket = self.folder.join("run/native");
        let (never, wait) = std::sync::mpsc::channel::<()>();
        for _ in 0..500 {
            if socket.exists() && started() {
                return Ok(());
            }
            // A pause that nothing cuts short: the file system gives no notice of a new socket.
            let _ = wait.recv_timeout(std::time::Duration::from_millis(20));
        }
        drop(never);
        let log = std::fs::read_to_string(self.folder.join("server.log")).unwrap_or_default();
        Err(RigError::NotStarted(log))
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let Some((child, _)) = &mut self.owner else { return };
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // It may have gone by itself; then there is nobody to kill.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = child.wait();
    }
}

fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// Whether a test may go before the other programs of this machine.
pub(crate) fn may_be_favoured() -> bool {
    // `nice` runs its program even if it may not raise its priority, and then complains.
    let trial = Command::new("nice").args(["-n", "-15", "true"]).output();
    trial.is_ok_and(|output| output.status.success() && output.stderr.is_empty())
}
