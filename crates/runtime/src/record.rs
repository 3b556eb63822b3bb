//! A recorded call: everything that the core was told and everything that it wanted, as it came.
//!
//! A recording is a folder. What is written to it is written at once and in whole lines, so that a program that is
//! killed leaves a recording that ends early and can be read. A recorder that can no longer write says so once, and the
//! call goes on without it: [`Recorder::finish`] gives the error again.
//!
//! It may not decide anything, nor change what it is told.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sayback_core::{Command, Event, EvidenceRecord, Output, Time};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::driver::Observer;
use crate::frozen::{hex, sha256};
use crate::redact::Redactor;

mod chain;
mod shadow;
mod sheet;
mod tracks;

pub use chain::{CHAIN, canonical_text, config_hash, facts, line_hash, prompt_hash};
use chain::{Chain, Sounds};
use shadow::Shadow;
pub use sheet::{AgentSheet, CallSheet, EngineSheet, FORMAT, SoundSheet};
use tracks::{Side, Tracks};

/// The file that makes a folder a recording: which call it is, and how it was run.
pub const SHEET: &str = "call.json";
/// Every input with its time, and every command, in order.
pub const JOURNAL: &str = "journal.jsonl";
/// The event log.
pub const EVENTS: &str = "events.jsonl";
/// A line per decision, chained by hashes, and the seal.
pub const EVIDENCE: &str = "evidence.jsonl";
/// Caller left, agent right, on the call clock.
pub const SOUND: &str = "call.flac";
/// The call as a page.
pub const PAGE: &str = "timeline.html";

/// Why a call is not recorded, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// There is a recording already, and none is ever written over.
    #[error("{}: there is a recording in this folder already\n  hint: name another folder", .0.display())]
    Exists(PathBuf),
    /// The folder or a file in it cannot be made.
    #[error("{}: cannot be made: {source}\n  hint: check the path and its permissions", path.display())]
    Unusable {
        /// The folder or the file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The disk is full, or the file can no longer be written for another reason.
    #[error("{}: the recording ends here: {reason}\n  hint: is the disk full? what was written can still be read", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        reason: String,
    },
}

/// Writes one call. Clones write the same one.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    folder: PathBuf,
    journal: Lines,
    events: Lines,
    evidence: Lines,
    chain: Chain,
    /// Where details are not kept: what is written in place of the real.
    shadow: Option<Shadow>,
    sound: Option<Tracks>,
    /// Why it has stopped.
    broken: Option<(PathBuf, String)>,
    finished: bool,
}

/// A file of lines, each written in one piece.
#[derive(Debug)]
struct Lines {
    path: PathBuf,
    file: File,
}

impl Lines {
    fn create(folder: &Path, name: &str) -> Result<Self, RecordError> {
        let path = folder.join(name);
        let file = create(&path)?;
        Ok(Self { path, file })
    }

    fn write(&mut self, mut line: String) -> Result<(), (PathBuf, String)> {
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(|error| (self.path.clone(), error.to_string()))
    }
}

/// A file that was not there before: a recording is never written over.
fn create(path: &Path) -> Result<File, RecordError> {
    OpenOptions::new().write(true).create_new(true).open(path).map_err(|source| {
        if source.kind() == std::io::ErrorKind::AlreadyExists {
            RecordError::Exists(path.parent().unwrap_or(path).to_owned())
        } else {
            RecordError::Unusable { path: path.to_owned(), source }
        }
    })
}

/// What the core was told.
#[derive(Serialize)]
struct Input<'a> {
    t_us: Time,
    r#in: &'a Event,
}

/// What it wanted.
#[derive(Serialize)]
struct Wish<'a> {
    t_us: Time,
    out: &'a Command,
}

/// A command as the journal has it: what a replay is held against.
pub fn journal_line(output: &Output) -> String {
    // Commands have no maps with keys that are not texts, and no numbers that JSON lacks.
    serde_json::to_string(&Wish { t_us: output.at, out: &output.command }).unwrap_or_default()
}

impl Recorder {
    /// Begins the recording of a call in a folder, which is made if it is not there.
    ///
    /// # Errors
    /// If there is a recording in it already, or it cannot be written to.
    pub fn create(folder: &Path, sheet: &CallSheet) -> Result<Self, RecordError> {
        Self::create_redacted(folder, sheet, None)
    }

    /// The same without the details that `redactor` takes out.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_redacted(
        folder: &Path,
        sheet: &CallSheet,
        redactor: Option<Redactor>,
    ) -> Result<Self, RecordError> {
        let mut sheet = sheet.clone();
        let kinds = redactor.as_ref().map(|r| r.kinds().iter().map(|kind| kind.name().to_owned()).collect());
        sheet.redacted = kinds.unwrap_or_default();
        let sheet = &sheet;
        std::fs::create_dir_all(folder)
            .map_err(|source| RecordError::Unusable { path: folder.to_owned(), source })?;
        let mut first = Lines::create(folder, SHEET)?;
        let text = serde_json::to_string_pretty(sheet).unwrap_or_default();
        let (chain, opening) = Chain::open(sheet, &sha256(format!("{text}\n").as_bytes()));
        first.write(text).map_err(broken)?;
        let mut evidence = Lines::create(folder, EVIDENCE)?;
        evidence.write(opening).map_err(broken)?;
        let sound = match sheet.sound {
            Some(_) => Some(Tracks::create(folder.join(SOUND))?),
            None => None,
        };
        let state = State {
            folder: folder.to_owned(),
            journal: Lines::create(folder, JOURNAL)?,
            events: Lines::create(folder, EVENTS)?,
            evidence,
            chain,
            shadow: redactor.map(|redactor| Shadow::new(&sheet.policy, redactor)),
            sound,
            broken: None,
            finished: false,
        };
        Ok(Self(Arc::new(Mutex::new(state))))
    }

    /// What listens to the call for it.
    pub fn observer(&self) -> Box<dyn Observer> {
        Box::new(self.clone())
    }

    /// The folder.
    pub fn folder(&self) -> PathBuf {
        self.state().folder.clone()
    }

    /// A block of sound at 16 kHz: what the caller said, and what the agent's voice played at the same time. To be
    /// handed in before the call's ears get it, so that no decision is ahead of its sound.
    pub fn hear(&self, start: Time, caller: &[f32], agent: &[f32]) {
        self.write(|state| match &mut state.sound {
            Some(tracks) => tracks.add(start, caller, agent),
            None => Ok(()),
        });
    }

    /// The sound is over: from here on its file is whole, and can be listened to.
    pub fn end_sound(&self) {
        self.write(|state| state.sound.take().map_or(Ok(()), Tracks::finish));
    }

    /// Ends the recording and seals it. `page` is the call as a page, if there is to be one. Gives the seal's hash: kept
    /// elsewhere, it shows whether the recording is still the same.
    ///
    /// # Errors
    /// If any of it could not be written.
    pub fn finish(&self, page: Option<&str>) -> Result<String, RecordError> {
        self.end_sound();
        if let Some(page) = page {
            self.write(|state| {
                let path = state.folder.join(PAGE);
                std::fs::write(&path, page).map_err(|error| (path, error.to_string()))
            });
        }
        self.write(State::seal);
        let mut state = self.state();
        state.finished = true;
        match &state.broken {
            Some(found) => Err(broken(found.clone())),
            None => Ok(state.chain.head().to_owned()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes, unless it is over or something failed before; a failure is told once.
    fn write(&self, how: impl FnOnce(&mut State) -> Result<(), (PathBuf, String)>) {
        let mut state = self.state();
        if state.broken.is_some() || state.finished {
            return;
        }
        if let Err(found) = how(&mut state) {
            state.broken = Some(found.clone());
            tracing::error!("{}", broken(found));
        }
    }
}

impl State {
    fn seal(&mut self) -> Result<(), (PathBuf, String)> {
        let mut files = BTreeMap::new();
        for name in [SHEET, JOURNAL, EVENTS, SOUND, PAGE] {
            let path = self.folder.join(name);
            if path.exists() {
                let digest = file_hash(&path).map_err(|error| (path, error.to_string()))?;
                files.insert(name.to_owned(), digest);
            }
        }
        let line = self.chain.seal(&files);
        self.evidence.write(line)
    }

    fn record(&mut self, record: &EvidenceRecord) -> Result<(), (PathBuf, String)> {
        let mut sounds = Sounds::default();
        if let Some(tracks) = &self.sound {
            let until = record.heard.map_or(record.decided_at, |heard| heard.ended);
            sounds.question = record.began.map(|began| tracks.stretch(Side::Agent, began, until));
            let answer = record.segments.iter().filter(|s| record.answer_segments.contains(&s.segment));
            let from = answer.clone().map(|s| s.onset.earliest).min();
            let to = answer.map(|s| s.offset.unwrap_or(record.decided_at)).max();
            sounds.answer = from.zip(to).map(|(from, to)| tracks.stretch(Side::Caller, from, to));
        }
        let line = self.chain.decision(record, &sounds);
        self.evidence.write(line)
    }
}

/// SHA-256 of a file.
///
/// # Errors
/// If it cannot be read.
pub fn file_hash(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut block = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            return Ok(hex(&digest.finalize()));
        }
        digest.update(&block[..read]);
    }
}

fn broken((path, reason): (PathBuf, String)) -> RecordError {
    RecordError::Broken { path, reason }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl Observer for Recorder {
    fn on_input(&mut self, at: Time, event: &Event) {
        self.write(|state| {
            let told = state.shadow.as_mut().map(|shadow| shadow.take(at, event));
            let event = told.as_ref().unwrap_or(event);
            state.chain.on_input(at, event);
            state.journal.write(json(&Input { t_us: at, r#in: event }))
        });
    }

    fn on_output(&mut self, output: &Output) {
        self.write(|state| {
            let Some(shadow) = &mut state.shadow else {
                state.chain.on_output(output);
                return state.journal.write(journal_line(output));
            };
            let Some(own) = shadow.answer(output) else {
                let reason = "without the personal details the call takes another course".to_owned();
                return Err((state.journal.path.clone(), reason));
            };
            state.chain.on_output(&own);
            state.journal.write(journal_line(&own))
        });
    }

    fn on_event(&mut self, line: &Value) {
        self.write(|state| {
            let told = state.shadow.as_ref().map(|shadow| shadow.redactor().line(line));
            state.events.write(told.as_ref().unwrap_or(line).to_string())
        });
    }

    fn on_record(&mut self, record: &EvidenceRecord) {
        self.write(|state| {
            let told = state.shadow.as_mut().and_then(Shadow::record);
            state.record(told.as_ref().unwrap_or(record))
        });
    }
}
