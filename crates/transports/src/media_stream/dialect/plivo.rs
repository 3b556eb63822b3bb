//! Plivo audio streaming, bidirectional: <https://plivo.com/docs/voice/audio-streaming/audio-streaming>.
//!
//! A mark is a `checkpoint` there, and comes back as `playedStream` (older streams: `played`), only if what came before
//! it was played.

use serde_json::json;

use super::json::{digit, encoded, number, parse, sound, text};
use super::{Dialect, Encoding, Format, Heard, Message, StreamFault, StreamStart};

/// Plivo's language.
#[derive(Debug, Default)]
pub struct Plivo {
    stream: String,
    format: Option<Format>,
}

impl Dialect for Plivo {
    fn on_text(&mut self, message: &str) -> Result<Heard, StreamFault> {
        let value = parse(message)?;
        match value["event"].as_str().unwrap_or_default() {
            "start" => {
                let start = &value["start"];
                self.stream = text(&start["streamId"]);
                let media = &start["mediaFormat"];
                let rate = number(&media["sampleRate"]).unwrap_or(8_000);
                let format = Format::named(media["encoding"].as_str().unwrap_or("audio/x-mulaw"), rate)?;
                self.format = Some(format);
                let vars = extra(&text(&value["extra_headers"]));
                let var = |name: &str| vars.get(name).cloned().unwrap_or_default();
                let (from, to) = (var("from"), var("to"));
                Ok(Heard::Started(StreamStart { call: text(&start["callId"]), from, to, vars, format }))
            }
            // Its timestamps are moments since 1970; only their distance counts.
            "media" => sound(&value["media"], self.format),
            "playedStream" | "played" => Ok(Heard::Mark { name: text(&value["name"]) }),
            "dtmf" => Ok(digit(&value["dtmf"]["digit"])),
            "stop" => Ok(Heard::Ended),
            _ => Ok(Heard::Nothing),
        }
    }

    fn sound(&mut self, samples: &[f32]) -> Message {
        let format = self.format.unwrap_or(Format { encoding: Encoding::Mulaw, rate: 8_000 });
        let name = match format.encoding {
            Encoding::Mulaw => "audio/x-mulaw",
            Encoding::Alaw => "audio/x-alaw",
            Encoding::Linear => "audio/x-l16",
        };
        let payload = encoded(&format.write(samples));
        let media = json!({ "contentType": name, "sampleRate": format.rate, "payload": payload });
        Message::Text(json!({ "event": "playAudio", "media": media }).to_string())
    }

    fn mark(&mut self, name: &str) -> Message {
        let mark = json!({ "event": "checkpoint", "streamId": self.stream, "name": name });
        Message::Text(mark.to_string())
    }

    fn clear(&mut self) -> Message {
        Message::Text(json!({ "event": "clearAudio", "streamId": self.stream }).to_string())
    }
}

/// `a=1;b=2`, with or without braces around it.
fn extra(headers: &str) -> std::collections::BTreeMap<String, String> {
    let pairs = headers.trim_matches(['{', '}']).split([';', ',']);
    let pairs = pairs.filter_map(|pair| pair.split_once(['=', ':'])).take(64);
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}
