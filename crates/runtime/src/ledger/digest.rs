//! What a yes covers, as hashes: of the whole arguments, and of each field of them.
//!
//! Plain hashes (SHA-256 of canonical JSON) can be compared anywhere. Where small arguments could be guessed back from
//! one, a keyed hash is used instead: its key is random, stays within this process and is never stored, so it matches
//! nothing that was made elsewhere (LED-23, LED-24).

use std::collections::BTreeMap;
use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use crate::frozen::{FreezeError, canonical, strict};

/// Fields that have a hash of their own, at most. With more, a rule can bind the whole arguments only.
const MOST_FIELDS: usize = 256;

/// Arguments of a call, as text or as a value. Other types are not taken: what cannot be JSON (a number that is none, a
/// cycle) would be written as something else on the way.
#[derive(Clone, Copy, Debug)]
pub enum Args<'a> {
    /// JSON text, read strictly: a key that is there twice or a number that two readers could read differently is
    /// refused.
    Json(&'a str),
    /// A value.
    Value(&'a Value),
}

impl Args<'_> {
    pub(super) fn read(&self) -> Result<Value, FreezeError> {
        match self {
            Self::Json(text) => strict(text),
            Self::Value(value) => Ok((*value).clone()),
        }
    }
}

/// What arguments were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// `sha256:` or `hmac-sha256:` and 64 hexadecimal digits.
    pub hash: String,
    /// Of each field by its JSON pointer; none for a keyed hash, and none where there are too many.
    pub fields: Option<BTreeMap<String, String>>,
}

impl Digest {
    /// Whether it can be compared in this process only.
    pub fn is_keyed(&self) -> bool {
        self.hash.starts_with("hmac-")
    }
}

/// The key of keyed hashes; never shown.
#[derive(Clone)]
pub struct Key(Vec<u8>);

impl Key {
    /// A key that nobody can guess.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn random() -> Result<Self, NoRandom> {
        let mut bytes = vec![0; 32];
        getrandom::fill(&mut bytes).map_err(|error| NoRandom(error.to_string()))?;
        Ok(Self(bytes))
    }

    /// A known key, for cases whose hashes are known.
    pub fn known(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The operating system gave no random numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no key for hashes could be made: the system has no random numbers ({0})")]
pub struct NoRandom(String);

/// How arguments are hashed.
#[derive(Clone, Debug)]
pub enum Hasher {
    /// SHA-256: equal everywhere.
    Plain,
    /// HMAC-SHA256: equal under this key only.
    Keyed(Key),
}

impl Hasher {
    /// The digest of arguments.
    ///
    /// # Errors
    /// They cannot be hashed (LED-04, LED-26).
    pub fn digest(&self, args: Args<'_>) -> Result<Digest, FreezeError> {
        let value = args.read()?;
        let frozen = canonical(&value)?;
        match self {
            Self::Plain => Ok(Digest { hash: frozen.hash, fields: fields(&value) }),
            Self::Keyed(key) => Ok(Digest { hash: keyed(key, &frozen.json), fields: None }),
        }
    }

    /// What stands for a hash that is known already: itself, or where that could give something away, a keyed hash of it.
    pub(super) fn of_hash(&self, hash: &str) -> Digest {
        match self {
            Self::Plain => Digest { hash: hash.to_owned(), fields: None },
            Self::Keyed(key) => Digest { hash: keyed(key, hash), fields: None },
        }
    }
}

/// A name that nobody else makes.
pub(super) fn random_name() -> Result<String, NoRandom> {
    let key = Key::random()?;
    Ok(key.0.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

fn keyed(key: &Key, json: &str) -> String {
    let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(&key.0) else {
        // HMAC takes keys of any length.
        return String::from("hmac-sha256:none");
    };
    mac.update(json.as_bytes());
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("hmac-sha256:{hex}")
}

/// A hash for each field at each depth, by its JSON pointer; none at all if there are too many.
fn fields(value: &Value) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    walk(value, "", &mut found).then_some(found)
}

fn walk(value: &Value, at: &str, found: &mut BTreeMap<String, String>) -> bool {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (format!("{at}/{}", escaped(name)), value)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(n, v)| (format!("{at}/{n}"), v)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    members.into_iter().all(|(pointer, value)| {
        let Ok(frozen) = canonical(value) else { return false };
        found.insert(pointer.clone(), frozen.hash);
        found.len() <= MOST_FIELDS && walk(value, &pointer, found)
    })
}

/// A field as a rule names it (`amount`, `to.iban`, `/to/iban`) as a JSON pointer.
pub(super) fn pointer(name: &str) -> String {
    if name.starts_with('/') {
        return name.to_owned();
    }
    name.split('.').map(|part| format!("/{}", escaped(part))).collect()
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(json: &str) -> String {
        Hasher::Plain.digest(Args::Json(json)).unwrap().hash
    }

    #[test]
    fn led_21_equal_arguments_have_one_hash_however_they_are_written() {
        for (one, other) in [
            (r#"{"to":"bob","amount":1}"#, r#"{"amount":1.0,"to":"bob"}"#),
            (r#"{"amount":1}"#, r#"{"amount":1e0}"#),
            ("{\"name\":\"Zo\u{eb}\"}", r#"{"name":"Zo\u00eb"}"#),
        ] {
            assert_eq!(plain(one), plain(other), "{one} {other}");
        }
        assert_ne!(plain("\"\u{e9}\""), plain("\"e\u{301}\""), "composed and decomposed letters differ");
        assert_ne!(plain(r#"{"a":5000}"#), plain(r#"{"a":"5000"}"#));
        let value: Value = serde_json::from_str(r#"{"a":5000}"#).unwrap();
        assert_eq!(Hasher::Plain.digest(Args::Value(&value)).unwrap().hash, plain(r#"{"a":5e3}"#));
    }

    #[test]
    fn led_26_what_two_readers_could_read_differently_has_no_hash() {
        for json in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":NaN}"#,
            r#"{"a":Infinity}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":9007199254740993}"#,
            r#"{"a":100000000000000000000000}"#,
        ] {
            assert!(Hasher::Plain.digest(Args::Json(json)).is_err(), "{json}");
        }
        let large = Value::from(u64::MAX);
        assert!(Hasher::Plain.digest(Args::Value(&large)).is_err());
    }

    #[test]
    fn led_04_arguments_of_33_levels_or_more_than_256_kib_have_no_hash() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Hasher::Plain.digest(Args::Json(&nested(32))).is_ok());
        assert!(Hasher::Plain.digest(Args::Json(&nested(33))).is_err());
        let mut deep = Value::Null;
        (0..33).for_each(|_| deep = Value::Array(vec![std::mem::take(&mut deep)]));
        assert_eq!(Hasher::Plain.digest(Args::Value(&deep)), Err(FreezeError::Deep));
        let text = |bytes: usize| Value::String("x".repeat(bytes - 2));
        assert!(Hasher::Plain.digest(Args::Value(&text(256 * 1024))).is_ok());
        assert_eq!(Hasher::Plain.digest(Args::Value(&text(256 * 1024 + 1))), Err(FreezeError::Large));
    }

    #[test]
    fn led_23_a_keyed_hash_is_equal_under_its_own_key_only() {
        let args = Args::Json(r#"{"pin":"1234"}"#);
        let (one, other) = (Hasher::Keyed(Key::random().unwrap()), Hasher::Keyed(Key::random().unwrap()));
        assert_eq!(one.digest(args), one.clone().digest(args));
        assert_ne!(one.digest(args), other.digest(args));
        let digest = one.digest(args).unwrap();
        assert!(digest.is_keyed() && digest.fields.is_none(), "no field can be guessed back either");
        assert!(!format!("{one:?}").contains("1234") && format!("{one:?}").contains(".."), "{one:?}");
    }

    #[test]
    fn the_keyed_hashes_of_the_hash_cases_come_out_as_stated() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/conformance/hash.jsonl");
        let text = std::fs::read_to_string(path).unwrap();
        let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let hasher = Hasher::Keyed(Key::known(&[0x00, 0xff]));
        let hashed: Vec<_> = rows.iter().filter(|row| row["hmac_sha256_key_00ff"].is_string()).collect();
        assert!(hashed.len() > 25, "{}", hashed.len());
        for row in hashed {
            let digest = hasher.digest(Args::Json(row["json"].as_str().unwrap())).unwrap();
            let expected = format!("hmac-sha256:{}", row["hmac_sha256_key_00ff"].as_str().unwrap());
            assert_eq!(digest.hash, expected, "{}", row["name"]);
        }
    }

    #[test]
    fn fields_are_named_by_pointers() {
        let digest = Hasher::Plain.digest(Args::Json(r#"{"a/b":1,"to":{"iban":"x"},"l":[2]}"#)).unwrap();
        let fields = digest.fields.unwrap();
        let names: Vec<&str> = fields.keys().map(String::as_str).collect();
        assert_eq!(names, ["/a~1b", "/l", "/l/0", "/to", "/to/iban"]);
        assert_eq!((pointer("to.iban"), pointer("/to/iban"), pointer("a/b")), {
            ("/to/iban".to_owned(), "/to/iban".to_owned(), "/a~1b".to_owned())
        });
        let many: Vec<u32> = (0..300).collect();
        let many = Value::from(many);
        assert!(Hasher::Plain.digest(Args::Value(&many)).unwrap().fields.is_none());
    }
}
