//! Inputs frozen: strict JSON in, canonical JSON (RFC 8785) and its SHA-256 out.
//!
//! What a caller says yes to and what runs are compared by this hash, so everything that two readers could read
//! differently is refused: duplicate keys, lone surrogates, integers that binary64 cannot hold, depths and sizes that
//! some parser would cut.

use std::fmt;

use sayback_core::Frozen;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

/// Deepest nesting of arrays and objects.
pub const MAX_DEPTH: usize = 32;
/// Largest JSON text in bytes, as received and as written out.
pub const MAX_BYTES: usize = 256 * 1024;
/// Largest integer that every reader of JSON reads alike: 2^53 − 1.
pub const MAX_INTEGER: u64 = 9_007_199_254_740_991;

/// Why a value cannot be frozen. The text is fit for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FreezeError {
    /// An integer that binary64 cannot hold exactly.
    #[error("the integer {0} is too large (most is 9007199254740991); send it as text in quotes")]
    Integer(String),
    /// Too deep.
    #[error("the input is nested deeper than 32 levels")]
    Deep,
    /// Too large.
    #[error("the input is larger than 256 KiB")]
    Large,
    /// Not JSON, or JSON that two parsers would read differently.
    #[error("the input is not valid JSON: {0}")]
    NotJson(String),
}

/// Reads JSON text and refuses what another reader could read differently. Errors are fit for the model.
pub fn parse_strict(text: &str) -> Result<Value, String> {
    strict(text).map_err(|error| error.to_string())
}

/// The value as canonical JSON with its hash.
pub fn canonical(value: &Value) -> Result<Frozen, FreezeError> {
    inspect(value, 0)?;
    let json = serde_jcs::to_string(value).map_err(|error| FreezeError::NotJson(error.to_string()))?;
    if json.len() > MAX_BYTES {
        return Err(FreezeError::Large);
    }
    let hash = sha256(json.as_bytes());
    Ok(Frozen { json, hash })
}

/// `sha256:` and 64 hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// A digest in that form.
pub(crate) fn hex(digest: &[u8]) -> String {
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

pub(crate) fn strict(text: &str) -> Result<Value, FreezeError> {
    if text.len() > MAX_BYTES {
        return Err(FreezeError::Large);
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let not_json = |error: serde_json::Error| FreezeError::NotJson(error.to_string());
    let value = Strict { depth: 0 }.deserialize(&mut reader).map_err(not_json)?;
    reader.end().map_err(not_json)?;
    check_literals(text)?;
    inspect(&value, 0)?;
    Ok(value)
}

fn inspect(value: &Value, depth: usize) -> Result<(), FreezeError> {
    match value {
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(n), _) if n > MAX_INTEGER => Err(FreezeError::Integer(n.to_string())),
            (None, Some(n)) if n.unsigned_abs() > MAX_INTEGER => Err(FreezeError::Integer(n.to_string())),
            _ => Ok(()),
        },
        Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH => Err(FreezeError::Deep),
        Value::Array(items) => items.iter().try_for_each(|item| inspect(item, depth + 1)),
        Value::Object(fields) => fields.values().try_for_each(|field| inspect(field, depth + 1)),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

/// Integer literals beyond 64 bits arrive as floats, so only the text shows them. The text is valid JSON here.
fn check_literals(text: &str) -> Result<(), FreezeError> {
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = &rest[start..];
        let length = if rest.starts_with('"') { string_length(rest) } else { number_length(rest) };
        let literal = &rest[..length];
        let whole = !literal.starts_with('"') && !literal.contains(['.', 'e', 'E']);
        let digits = literal.trim_start_matches('-');
        if whole && digits.parse::<u64>().map_or(true, |n| n > MAX_INTEGER) {
            return Err(FreezeError::Integer(literal.chars().take(40).collect()));
        }
        rest = &rest[length..];
    }
    Ok(())
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return at + 1,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

fn number_length(text: &str) -> usize {
    text.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(text.len())
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom("nested deeper than 32 levels"));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut object = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} is there twice")));
            }
            object.insert(key, fields.next_value_seed(inner)?);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Value> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/conformance/hash.jsonl");
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn source(row: &Value) -> String {
        match row["make"]["string_of_bytes"].as_u64() {
            Some(bytes) => format!("\"{}\"", "x".repeat(bytes as usize)),
            None => row["json"].as_str().unwrap().to_owned(),
        }
    }

    #[test]
    fn every_row_of_the_hash_cases_comes_out_as_stated() {
        let rows = rows();
        assert!(rows.len() > 30, "{}", rows.len());
        for row in rows {
            let frozen = parse_strict(&source(&row)).and_then(|v| canonical(&v).map_err(|e| e.to_string()));
            let name = &row["name"];
            match row["canonical"].as_str() {
                None => assert!(frozen.is_err(), "{name} was accepted: {frozen:?}"),
                Some(canonical) => {
                    let frozen = frozen.unwrap_or_else(|error| panic!("{name}: {error}"));
                    assert_eq!(frozen.json, canonical, "{name}");
                    assert_eq!(frozen.hash, format!("sha256:{}", row["sha256"].as_str().unwrap()), "{name}");
                }
            }
        }
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for (text, says) in [
            (r#"{"a":1,"a":1}"#, "twice"),
            (r#"{"a":1,"\u0061":1}"#, "twice"),
            (r#"{"a":"\ud800"}"#, "escape"),
            (r#"{"a":123456789012345678901234567890}"#, "too large"),
            (r#"{"a":-9007199254740992}"#, "too large"),
            (r#"{"a":1e999}"#, "out of range"),
            ("{\"a\":1} x", "trailing"),
            ("", "EOF"),
        ] {
            let error = parse_strict(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn digits_within_strings_are_no_integers() {
        let value =
            parse_strict(r#"{"iban":"say \"99999999999999999999\" ok","n":9007199254740991}"#).unwrap();
        assert_eq!(value["n"], 9_007_199_254_740_991_u64);
    }
}
