//! Telnyx media streaming, `stream_bidirectional_mode` of `rtp`:
//! <https://developers.telnyx.com/api-reference/websockets/stream-call-media-over-websocket>.
//!
//! Frames may come out of order. A `clear` sends back the marks that were queued. Our sound is written in the format
//! that the start message names: `stream_bidirectional_codec` must be the same.

use serde_json::json;

use super::json::{digit, encoded, number, parse, sound, text, vars};
use super::{Dialect, Format, Heard, Message, StreamFault, StreamStart};

/// Telnyx's language.
#[derive(Debug, Default)]
pub struct Telnyx {
    format: Option<Format>,
}

impl Dialect for Telnyx {
    fn on_text(&mut self, message: &str) -> Result<Heard, StreamFault> {
        let value = parse(message)?;
        match value["event"].as_str().unwrap_or_default() {
            "start" => {
                let start = &value["start"];
                let media = &start["media_format"];
                let rate = number(&media["sample_rate"]).unwrap_or(8_000);
                let format = Format::named(media["encoding"].as_str().unwrap_or("PCMU"), rate)?;
                self.format = Some(format);
                Ok(Heard::Started(StreamStart {
                    call: text(&start["call_control_id"]),
                    from: text(&start["from"]),
                    to: text(&start["to"]),
                    vars: vars(&start["custom_parameters"]),
                    format,
                }))
            }
            "media" => sound(&value["media"], self.format),
            "mark" => Ok(Heard::Mark { name: text(&value["mark"]["name"]) }),
            "dtmf" => Ok(digit(&value["dtmf"]["digit"])),
            "stop" => Ok(Heard::Ended),
            _ => Ok(Heard::Nothing),
        }
    }

    fn sound(&mut self, samples: &[f32]) -> Message {
        let bytes = self.format.map(|format| format.write(samples)).unwrap_or_default();
        Message::Text(json!({ "event": "media", "media": { "payload": encoded(&bytes) } }).to_string())
    }

    fn mark(&mut self, name: &str) -> Message {
        Message::Text(json!({ "event": "mark", "mark": { "name": name } }).to_string())
    }

    fn clear(&mut self) -> Message {
        Message::Text(json!({ "event": "clear" }).to_string())
    }

    fn reorders(&self) -> bool {
        true
    }
}
