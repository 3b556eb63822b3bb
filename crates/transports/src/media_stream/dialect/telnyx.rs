//! Telnyx media streaming, `stream_bidirectional_mode` of `rtp`:
//! <https://developers.telnyx.com/api-reference/websockets/stream-call-media-over-websocket>.
//!
//! Frames may come out of order. A `clear` sends back the marks that were queued. Our sound is written in the format
//! that the start message names: `stream_bidirectional_codec` must be the same.

use serde_json::json;

use super::json::{encoded, number, parse, payload, position, text, vars};
use super::{Dialect, Format, Heard, Message, Sound, StreamFault, StreamStart, key};

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
            "media" => {
                let format = self.format.ok_or(StreamFault::TooEarly)?;
                let media = &value["media"];
                if media["track"].as_str().is_some_and(|track| track.starts_with("outbound")) {
                    return Ok(Heard::Nothing);
                }
                let position = position(number(&media["timestamp"]), format.rate);
                Ok(Heard::Sound(Sound { position, samples: format.read(&payload(&media["payload"])?) }))
            }
            "mark" => Ok(Heard::Mark { name: text(&value["mark"]["name"]) }),
            "dtmf" => {
                Ok(key(&text(&value["dtmf"]["digit"])).map_or(Heard::Nothing, |digit| Heard::Digit { digit }))
            }
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
