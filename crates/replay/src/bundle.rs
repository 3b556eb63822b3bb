//! Recorded calls: reading a bundle, and deciding it again.
//!
//! A bundle is a folder with a `call.json`, written by [`sayback_runtime::record`]. Its journal has all that the core was
//! told, with times, so the call can be decided again on any machine, without a model, a voice or a clock.

use std::path::{Path, PathBuf};

use sayback_core::{CheckRequest, Command, Event, EvidenceRecord, Output, Policy, Session, Time};
use sayback_media::{Clip, pcm};
use sayback_runtime::events::event_line;
use sayback_runtime::record::{CallSheet, EVENTS, FORMAT, JOURNAL, Recorder, SHEET, SOUND};
use serde_json::Value;

use crate::run::CallRun;

mod recompute;
mod retell;
mod verify;

pub use recompute::{AskedCheck, Divergence, Recomputed, recompute};
pub use retell::as_scenario;
pub use verify::{Finding, Verified, verify};

/// Largest journal that is read, in bytes: days of a call.
const LARGEST_JOURNAL: u64 = 2 << 30;

/// A recorded call.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The folder.
    pub folder: PathBuf,
    /// Which call it is, and how it was run.
    pub sheet: CallSheet,
    /// The journal's text, as far as it is text.
    pub(crate) journal: String,
}

/// Why a bundle cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// There is no `call.json`.
    #[error("{}: this folder is no recorded call: it has no call.json\n  hint: record one with: sayback chat AGENT --record {}", .0.display(), .0.display())]
    NotOne(PathBuf),
    /// It was recorded before evidence was kept in a chain.
    #[error("{}: this recording is of format 1, which has no chain of evidence\n  hint: sayback replay still decides it again", .0.display())]
    NoChain(PathBuf),
    /// A file of it cannot be read.
    #[error("{}: cannot be read: {source}\n  hint: check the path and its permissions", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A newer program wrote it.
    #[error("{}: written in format {format}, and this program reads up to {FORMAT}\n  hint: use a newer sayback", path.display())]
    Newer {
        /// Its `call.json`.
        path: PathBuf,
        /// Its format.
        format: u64,
    },
    /// A file of it says something that cannot be.
    #[error("{}:{line}: {reason}\n  hint: the file was changed, or the disk is bad; sayback verify says more", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

/// Whether a folder is a recorded call.
pub fn is_bundle(folder: &Path) -> bool {
    folder.join(SHEET).is_file()
}

impl Bundle {
    /// Reads a recorded call, whole or cut off.
    ///
    /// # Errors
    /// If it is none, a newer program wrote it, or its first page cannot be understood.
    pub fn open(folder: &Path) -> Result<Self, BundleError> {
        if !is_bundle(folder) {
            return Err(BundleError::NotOne(folder.to_owned()));
        }
        let sheet = read_sheet(&folder.join(SHEET))?;
        let bytes = read(&folder.join(JOURNAL))?;
        // A call that was cut off may end within a letter; a line that is no text is told with its number.
        let journal = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Self { folder: folder.to_owned(), sheet, journal })
    }

    /// The path of one of its files.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What it is called in reports.
    pub fn title(&self) -> String {
        format!("{} with {}, {}", self.sheet.call, self.sheet.agent.name, self.sheet.start)
    }

    /// The sound: the caller's and the agent's, 16 bits, at the sheet's rate. Empty where none was kept.
    ///
    /// # Errors
    /// If there should be sound and it cannot be read. A file that was cut off is read as far as it goes.
    pub fn sound(&self) -> Result<(Vec<i16>, Vec<i16>), BundleError> {
        if self.sheet.sound.is_none() {
            return Ok((Vec::new(), Vec::new()));
        }
        let path = self.path(SOUND);
        let clip = sayback_media::flac::decode(read(&path)?).map_err(|error| BundleError::Broken {
            path,
            line: 1,
            reason: error.to_string(),
        })?;
        Ok((side(&clip, 0), side(&clip, 1)))
    }

    /// The event log for people: as decided now, or, where details were taken out, as it was written. The journal of such a
    /// call has no whole sentences of the model's.
    pub fn shown_events(&self, again: &Recomputed) -> Vec<Value> {
        let written =
            std::fs::read_to_string(self.path(EVENTS)).ok().filter(|_| !self.sheet.redacted.is_empty());
        match written {
            Some(text) => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
            None => again.events.clone(),
        }
    }

    /// The bytes of its sound as they are.
    ///
    /// # Errors
    /// If there should be sound and it cannot be read.
    pub fn sound_file(&self) -> Result<Option<Vec<u8>>, BundleError> {
        self.sheet.sound.as_ref().map(|_| read(&self.path(SOUND))).transpose()
    }
}

fn side(clip: &Clip, index: usize) -> Vec<i16> {
    let mut samples = Vec::new();
    if let Some(channel) = clip.channels.get(index) {
        pcm::extend_i16(&mut samples, channel);
    }
    samples
}

fn read(path: &Path) -> Result<Vec<u8>, BundleError> {
    let unreadable = |source| BundleError::Unreadable { path: path.to_owned(), source };
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > LARGEST_JOURNAL {
        return Err(unreadable(std::io::Error::other("it is larger than 2 GiB")));
    }
    std::fs::read(path).map_err(unreadable)
}

fn read_sheet(path: &Path) -> Result<CallSheet, BundleError> {
    let bytes = read(path)?;
    let broken = |line: usize, reason: String| BundleError::Broken { path: path.to_owned(), line, reason };
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|error| broken(error.line().max(1), error.to_string()))?;
    match value["format"].as_u64() {
        Some(format) if format > u64::from(FORMAT) => {
            Err(BundleError::Newer { path: path.to_owned(), format })
        }
        Some(1..) => serde_json::from_value(value).map_err(|error| broken(1, error.to_string())),
        Some(0) | None => Err(broken(1, "it has no `format`".to_owned())),
    }
}

/// What a wish of the core leaves behind, apart from itself.
enum Left<'a> {
    /// A line of the event log.
    Event(Value),
    /// A decision's record.
    Record(&'a EvidenceRecord),
    /// A question to the model, whose answer is to be compared.
    Check(&'a CheckRequest),
    Nothing,
}

fn left(output: &Output) -> Left<'_> {
    match &output.command {
        Command::Report(report) => Left::Event(event_line(output.at, report)),
        Command::Record(record) => Left::Record(record),
        Command::Check(request) => Left::Check(request),
        Command::OpenSegment { .. }
        | Command::CloseSegment { .. }
        | Command::JudgeEnd { .. }
        | Command::Speak(_)
        | Command::Pause
        | Command::Resume
        | Command::Clear
        | Command::Generate { .. }
        | Command::CancelGeneration { .. }
        | Command::Prepare { .. }
        | Command::RunPlain(_)
        | Command::RunConfirmed(_)
        | Command::RequestApproval(_)
        | Command::WithdrawApproval { .. }
        | Command::EndCall { .. }
        | Command::Transfer { .. } => Left::Nothing,
    }
}

/// Writes a call that was run on a virtual clock as a recording: the same events at the same times, decided once more.
/// `sound` is called before each event with its time, so that the recorder gets the sound up to it. The recording of a
/// process that was killed ends there, though the scenario goes on in another one.
pub fn write_run(run: &CallRun, policy: &Policy, recorder: &Recorder, mut sound: impl FnMut(Time)) {
    let mut session = Session::new(policy.clone());
    let mut observer = recorder.observer();
    let mut up = false;
    for (at, event) in &run.journal {
        if up && matches!(event, Event::Reopened(_)) {
            break;
        }
        up |= matches!(event, Event::CallStarted(_));
        sound(*at);
        observer.on_input(*at, event);
        session.handle(*at, event.clone());
        while let Some(output) = session.poll_output() {
            observer.on_output(&output);
            match left(&output) {
                Left::Event(line) => observer.on_event(&line),
                Left::Record(record) => observer.on_record(record),
                Left::Check(_) | Left::Nothing => {}
            }
        }
    }
}
