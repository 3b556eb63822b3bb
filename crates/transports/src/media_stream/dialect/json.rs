//! What the services that write JSON have in common.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Format, Heard, Sound, StreamFault, key};

/// Variables that a service passes on: so many at most, and so long each. More is cut off.
const VARS: usize = 64;
const LONGEST: usize = 1_024;

/// A message and what it is about.
pub(super) fn parse(text: &str) -> Result<Value, StreamFault> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| StreamFault::Malformed(error.to_string()))?;
    if value["event"].is_string() {
        return Ok(value);
    }
    Err(StreamFault::Malformed("it has no \"event\"".to_owned()))
}

/// A text, cut to a sane length; empty if it is not there.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().chars().take(LONGEST).collect()
}

/// A number, written as one or as text.
pub(super) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Texts by name.
pub(super) fn vars(value: &Value) -> BTreeMap<String, String> {
    let Some(fields) = value.as_object() else { return BTreeMap::new() };
    let shown = |value: &Value| match value {
        Value::String(_) => text(value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string().chars().take(LONGEST).collect()
        }
    };
    fields.iter().take(VARS).map(|(name, value)| (name.chars().take(64).collect(), shown(value))).collect()
}

/// The caller's sound in a message; what they were sent comes along on some streams, and is none.
pub(super) fn sound(media: &Value, format: Option<Format>) -> Result<Heard, StreamFault> {
    let format = format.ok_or(StreamFault::TooEarly)?;
    if media["track"].as_str().is_some_and(|track| track.starts_with("outbound")) {
        return Ok(Heard::Nothing);
    }
    let position = position(number(&media["timestamp"]), format.rate);
    Ok(Heard::Sound(Sound { position, samples: format.read(&payload(&media["payload"])?) }))
}

/// A key that was pressed.
pub(super) fn digit(value: &Value) -> Heard {
    key(&text(value)).map_or(Heard::Nothing, |digit| Heard::Digit { digit })
}

/// The bytes of a payload.
fn payload(value: &Value) -> Result<Vec<u8>, StreamFault> {
    let text = value.as_str().ok_or_else(|| StreamFault::Malformed("media without a payload".to_owned()))?;
    STANDARD.decode(text).map_err(|error| StreamFault::Malformed(format!("payload: {error}")))
}

/// Bytes as a payload.
pub(super) fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// A time in milliseconds as samples.
fn position(ms: Option<u64>, rate: u32) -> Option<u64> {
    Some(ms?.min(u64::from(u32::MAX) * 1_000) * u64::from(rate) / 1_000)
}
