//! Sound into the virtual microphone, and out of the virtual speaker.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use sayback_media::{Clip, wav};

use crate::{Rig, RigError};

/// A clip on its way into the virtual microphone; stops on drop.
#[derive(Debug)]
pub struct Player {
    child: Child,
}

impl Player {
    /// Waits until all of it has been played.
    ///
    /// # Errors
    /// If `paplay` fails.
    pub fn finish(mut self) -> Result<(), RigError> {
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(RigError::NotStarted(format!("paplay: {status}"))) }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A piece of recorded sound and when it came out of the server.
#[derive(Clone, Debug)]
pub struct Stamped {
    /// When it was read, on the real clock: later than it sounded.
    pub at: Instant,
    /// 48 kHz mono.
    pub samples: Vec<i16>,
}

/// What the virtual speaker plays, as it plays it.
#[derive(Debug)]
pub struct Recording {
    child: Child,
    reader: Option<JoinHandle<()>>,
    pieces: Arc<Mutex<Vec<Stamped>>>,
}

impl Recording {
    /// Samples per second of a recording.
    pub const RATE: u32 = 48_000;

    /// Ends the recording and gives all of it.
    pub fn stop(mut self) -> Vec<Stamped> {
        self.end();
        std::mem::take(&mut self.pieces.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.end();
    }
}

impl Rig {
    /// Plays a clip into the virtual microphone.
    ///
    /// # Errors
    /// If the clip cannot be written or `paplay` not be started.
    pub fn play(&self, name: &str, clip: &Clip) -> Result<Player, RigError> {
        let path = self.folder().join(format!("{name}.wav"));
        std::fs::write(&path, wav::encode(clip))?;
        self.play_file(&path)
    }

    /// Plays a file into the virtual microphone.
    ///
    /// # Errors
    /// If `paplay` cannot be started.
    pub fn play_file(&self, path: &Path) -> Result<Player, RigError> {
        let mut command = self.command("paplay");
        // A short buffer runs dry on a busy machine, and then the clip is stretched.
        command.args(["--device=feed", "--latency-msec=200"]).arg(path);
        Ok(Player { child: command.stdin(Stdio::null()).spawn()? })
    }

    /// Records what the virtual speaker plays from now on.
    ///
    /// # Errors
    /// If `parec` cannot be started.
    pub fn record_speaker(&self) -> Result<Recording, RigError> {
        let mut command = self.command("parec");
        command.args(["--device=speaker.monitor", "--format=s16le", "--rate=48000", "--channels=1", "--raw"]);
        let mut child =
            command.arg("--latency-msec=10").stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let pieces = Arc::new(Mutex::new(Vec::new()));
        let reader = child.stdout.take().map(|out| {
            let pieces = Arc::clone(&pieces);
            std::thread::spawn(move || read_all(out, &pieces))
        });
        Ok(Recording { child, reader, pieces })
    }
}

fn read_all(mut out: impl Read, pieces: &Mutex<Vec<Stamped>>) {
    let mut bytes = [0u8; 4_096];
    let mut kept = 0;
    while let Ok(read) = out.read(&mut bytes[kept..]) {
        if read == 0 {
            return;
        }
        let whole = (kept + read) / 2 * 2;
        let samples = bytes[..whole].chunks_exact(2).map(|b| i16::from_le_bytes([b[0], b[1]])).collect();
        #[expect(
            clippy::disallowed_methods,
            reason = "a recording from outside the product is stamped on the real clock"
        )]
        let at = Instant::now();
        pieces.lock().unwrap_or_else(PoisonError::into_inner).push(Stamped { at, samples });
        // An odd byte is the first half of the next sample.
        bytes[0] = bytes[whole.min(bytes.len() - 1)];
        kept += read;
        kept -= whole;
    }
}
