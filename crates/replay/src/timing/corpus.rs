//! Rows of the reply corpus and of the hash cases.

use sayback_core::Verdict;
use serde::Deserialize;

/// A reply to a question, and what it means.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyCase {
    /// Its name.
    pub id: String,
    /// The question as it was said.
    pub question: String,
    /// The caller's words.
    pub reply: String,
    /// Their language, a BCP 47 tag.
    pub lang: String,
    /// What they mean.
    pub label: Verdict,
    /// Other verdicts that are acceptable.
    #[serde(default)]
    pub also_ok: Vec<Verdict>,
    /// What kind of reply it is.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether people would argue over it.
    #[serde(default)]
    pub hard: bool,
    /// Why it means that.
    #[serde(default)]
    pub note: String,
    /// What else was heard.
    #[serde(default)]
    pub context: ReplyContext,
}

/// What was heard around a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReplyContext {
    /// Agent speech that was heard after the question.
    pub since_question: Vec<String>,
    /// How many voices the reply has; `None`: not measured.
    pub speakers: Option<Speakers>,
}

/// How many voices were heard.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Speakers {
    /// This many.
    Count(u32),
    /// As a word: `unknown`.
    Word(String),
}

/// An input, and its canonical form and hashes, or why it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashCase {
    /// Its name.
    pub name: String,
    /// What is hashed.
    pub input: HashInput,
    /// What must come of it.
    pub expect: HashExpect,
}

/// What is hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashInput {
    /// This JSON text.
    Json(String),
    /// A JSON object or string to build, since it is too large for a line.
    StringOfBytes(usize),
}

impl HashInput {
    /// The JSON text; a string of so many bytes is made of `a`.
    pub fn json(&self) -> String {
        match self {
            Self::Json(text) => text.clone(),
            Self::StringOfBytes(bytes) => format!("\"{}\"", "a".repeat(*bytes)),
        }
    }
}

/// What must come of hashing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashExpect {
    /// These; an absent one is not asserted.
    Hashes {
        /// The canonical JSON text.
        canonical: Option<String>,
        /// SHA-256 of it, lower-case hexadecimal.
        sha256: Option<String>,
        /// HMAC-SHA-256 of it under the two bytes `00 ff`.
        hmac_sha256_key_00ff: Option<String>,
    },
    /// It is refused; the text is for people.
    Refused(String),
}

/// A hash case as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenHash {
    name: String,
    json: Option<String>,
    make: Option<Make>,
    canonical: Option<String>,
    sha256: Option<String>,
    hmac_sha256_key_00ff: Option<String>,
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Make {
    string_of_bytes: u32,
}

impl WrittenHash {
    pub(super) fn resolve(self) -> Result<HashCase, String> {
        let input = match (self.json, self.make) {
            (Some(text), None) => HashInput::Json(text),
            // A u32 fits: the product needs a 32-bit machine at least.
            (None, Some(make)) => HashInput::StringOfBytes(make.string_of_bytes as usize),
            (None, None) => return Err("the case has neither `json` nor `make`".into()),
            (Some(_), Some(_)) => return Err("the case has both `json` and `make`".into()),
        };
        let hashed = self.canonical.is_some() || self.sha256.is_some() || self.hmac_sha256_key_00ff.is_some();
        let expect = match (self.error, hashed) {
            (Some(_), true) => return Err("the case has both hashes and an `error`".into()),
            (None, false) => {
                return Err("the case expects nothing: give `canonical`, `sha256` or `error`".into());
            }
            (Some(error), false) => HashExpect::Refused(error),
            (None, true) => HashExpect::Hashes {
                canonical: self.canonical,
                sha256: self.sha256,
                hmac_sha256_key_00ff: self.hmac_sha256_key_00ff,
            },
        };
        Ok(HashCase { name: self.name, input, expect })
    }
}
