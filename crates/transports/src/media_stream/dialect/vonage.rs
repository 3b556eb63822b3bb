//! Vonage Voice over WebSocket: <https://developer.vonage.com/en/voice/voice-api/concepts/websockets>.
//!
//! Sound is bytes, 20 ms of 16-bit samples each, without any count of its own. A mark is a `notify` whose payload comes
//! back in `websocket:notify`.

use serde_json::json;

use super::json::{digit, parse, text, vars};
use super::{Dialect, Encoding, Format, Heard, Message, Sound, StreamFault, StreamStart};

/// Vonage's language.
#[derive(Debug, Default)]
pub struct Vonage {
    format: Option<Format>,
}

impl Dialect for Vonage {
    fn on_text(&mut self, message: &str) -> Result<Heard, StreamFault> {
        let value = parse(message)?;
        match value["event"].as_str().unwrap_or_default() {
            "websocket:connected" => {
                let content = value["content-type"].as_str().unwrap_or("audio/l16;rate=16000");
                let (encoding, rate) = content.split_once(';').unwrap_or((content, "rate=8000"));
                let rate = rate.trim().strip_prefix("rate=").and_then(|rate| rate.parse().ok());
                let format = Format::named(encoding, rate.unwrap_or(0))?;
                self.format = Some(format);
                let mut vars = vars(&value);
                vars.remove("event");
                vars.remove("content-type");
                let var = |names: [&str; 2]| names.iter().find_map(|name| vars.get(*name).cloned());
                let call = var(["uuid", "call"]).unwrap_or_default();
                let (from, to) =
                    (var(["from", "caller"]).unwrap_or_default(), var(["to", "called"]).unwrap_or_default());
                Ok(Heard::Started(StreamStart { call, from, to, vars, format }))
            }
            "websocket:notify" => Ok(Heard::Mark { name: text(&value["payload"]["name"]) }),
            "websocket:dtmf" => Ok(digit(&value["digit"])),
            _ => Ok(Heard::Nothing),
        }
    }

    fn on_binary(&mut self, bytes: &[u8]) -> Result<Heard, StreamFault> {
        let format = self.format.ok_or(StreamFault::TooEarly)?;
        Ok(Heard::Sound(Sound { position: None, samples: format.read(bytes) }))
    }

    fn sound(&mut self, samples: &[f32]) -> Message {
        let format = self.format.unwrap_or(Format { encoding: Encoding::Linear, rate: 16_000 });
        Message::Binary(format.write(samples))
    }

    fn mark(&mut self, name: &str) -> Message {
        Message::Text(json!({ "action": "notify", "payload": { "name": name } }).to_string())
    }

    fn clear(&mut self) -> Message {
        Message::Text(json!({ "action": "clear" }).to_string())
    }
}
