//! Twilio Media Streams, bidirectional: <https://www.twilio.com/docs/voice/media-streams/websocket-messages>.
//!
//! μ-law at 8 kHz both ways. A `clear` sends back the marks of what it throws away, as if it had been played.

use serde_json::json;

use super::json::{digit, encoded, number, parse, sound, text, vars};
use super::{Dialect, Format, Heard, Message, StreamFault, StreamStart};

/// Twilio's language.
#[derive(Debug, Default)]
pub struct Twilio {
    stream: String,
    format: Option<Format>,
}

impl Dialect for Twilio {
    fn on_text(&mut self, message: &str) -> Result<Heard, StreamFault> {
        let value = parse(message)?;
        match value["event"].as_str().unwrap_or_default() {
            "start" => {
                let start = &value["start"];
                self.stream = text(&value["streamSid"]);
                let media = &start["mediaFormat"];
                let rate = number(&media["sampleRate"]).unwrap_or(8_000);
                let format = Format::named(media["encoding"].as_str().unwrap_or("mulaw"), rate)?;
                self.format = Some(format);
                let vars = vars(&start["customParameters"]);
                let var = |name: &str| vars.get(name).cloned().unwrap_or_default();
                let (from, to) = (var("from"), var("to"));
                Ok(Heard::Started(StreamStart { call: text(&start["callSid"]), from, to, vars, format }))
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
        let media = json!({ "payload": encoded(&bytes) });
        Message::Text(json!({ "event": "media", "streamSid": self.stream, "media": media }).to_string())
    }

    fn mark(&mut self, name: &str) -> Message {
        let mark = json!({ "name": name });
        Message::Text(json!({ "event": "mark", "streamSid": self.stream, "mark": mark }).to_string())
    }

    fn clear(&mut self) -> Message {
        Message::Text(json!({ "event": "clear", "streamSid": self.stream }).to_string())
    }
}
