//! Our own format, for whoever has no telephone service: see `docs/media-streams.md`.
//!
//! JSON text for control, bytes for sound. Bytes begin with the sender's count of samples, eight bytes, low byte first;
//! the same is sent back, so that either side can tell what is missing.

use serde_json::json;

use super::json::{digit, number, parse, text, vars};
use super::{Dialect, Encoding, Format, Heard, Message, Sound, StreamFault, StreamStart};

/// Bytes of the count.
const COUNT: usize = 8;

/// Our own language.
#[derive(Debug, Default)]
pub struct Plain {
    format: Option<Format>,
    sent: u64,
}

impl Dialect for Plain {
    fn on_text(&mut self, message: &str) -> Result<Heard, StreamFault> {
        let value = parse(message)?;
        match value["event"].as_str().unwrap_or_default() {
            "start" => {
                let rate = number(&value["rate"]).unwrap_or(16_000);
                let format = Format::named(value["encoding"].as_str().unwrap_or("l16"), rate)?;
                self.format = Some(format);
                Ok(Heard::Started(StreamStart {
                    call: text(&value["call"]),
                    from: text(&value["from"]),
                    to: text(&value["to"]),
                    vars: vars(&value["vars"]),
                    format,
                }))
            }
            "played" => Ok(Heard::Mark { name: text(&value["name"]) }),
            "digit" => Ok(digit(&value["digit"])),
            "end" => Ok(Heard::Ended),
            other => Err(StreamFault::Malformed(format!(
                "the event {:?} is none of start, played, digit, end",
                other.chars().take(40).collect::<String>()
            ))),
        }
    }

    fn on_binary(&mut self, bytes: &[u8]) -> Result<Heard, StreamFault> {
        let format = self.format.ok_or(StreamFault::TooEarly)?;
        let (count, sound) = bytes
            .split_first_chunk::<COUNT>()
            .ok_or_else(|| StreamFault::Malformed("sound without its count".to_owned()))?;
        let position = Some(u64::from_le_bytes(*count));
        Ok(Heard::Sound(Sound { position, samples: format.read(sound) }))
    }

    fn sound(&mut self, samples: &[f32]) -> Message {
        let format = self.format.unwrap_or(Format { encoding: Encoding::Linear, rate: 16_000 });
        let mut bytes = self.sent.to_le_bytes().to_vec();
        bytes.extend(format.write(samples));
        self.sent += samples.len() as u64;
        Message::Binary(bytes)
    }

    fn mark(&mut self, name: &str) -> Message {
        Message::Text(json!({ "event": "mark", "name": name }).to_string())
    }

    fn clear(&mut self) -> Message {
        Message::Text(json!({ "event": "clear" }).to_string())
    }

    fn end(&mut self) -> Option<Message> {
        Some(Message::Text(json!({ "event": "end" }).to_string()))
    }

    fn has_keys(&self) -> bool {
        true
    }

    fn digits(&mut self, digits: &str) -> Option<Message> {
        Some(Message::Text(json!({ "event": "digits", "digits": digits }).to_string()))
    }
}
