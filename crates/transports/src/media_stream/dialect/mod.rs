//! What each telephone service writes on its WebSocket, as one small language.
//!
//! Pure: a message in gives what happened, what is to be done gives a message. Each file names the page that describes
//! its service's messages. What a service may send tomorrow and we do not know is passed over; what makes no sense is
//! an error, and the connection is closed.

mod json;
mod plain;
mod plivo;
mod telnyx;
mod twilio;
mod vonage;

use std::collections::BTreeMap;

use sayback_media::{pcm, telephone};

pub use plain::Plain;
pub use plivo::Plivo;
pub use telnyx::Telnyx;
pub use twilio::Twilio;
pub use vonage::Vonage;

/// A message on the WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

/// What a message said.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// The call is there.
    Started(StreamStart),
    /// Sound.
    Sound(Sound),
    /// A mark came back.
    Mark {
        /// Its name.
        name: String,
    },
    /// A key was pressed.
    Digit {
        /// `0`-`9`, `*`, `#`, `A`-`D`.
        digit: char,
    },
    /// The call is over.
    Ended,
    /// Nothing that matters here.
    Nothing,
}

/// A piece of caller sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    /// At which of the sender's samples it begins; `None`: right behind the one before.
    pub position: Option<u64>,
    /// Samples at the stream's rate.
    pub samples: Vec<f32>,
}

/// How samples are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// μ-law, one byte each.
    Mulaw,
    /// A-law, one byte each.
    Alaw,
    /// 16 bits, low byte first.
    Linear,
}

/// How sound is written on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Of each sample.
    pub encoding: Encoding,
    /// Samples a second.
    pub rate: u32,
}

/// What is known of the call when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStart {
    /// The service's own name of the call.
    pub call: String,
    /// Who calls, if it says so.
    pub from: String,
    /// What was called, if it says so.
    pub to: String,
    /// What the service passes on.
    pub vars: BTreeMap<String, String>,
    /// How sound is written, both ways.
    pub format: Format,
}

/// Why a connection is closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamFault {
    /// No JSON, or not the shape that its event has.
    #[error("a message makes no sense: {0}")]
    Malformed(String),
    /// Sound in a form that is not taken.
    #[error("{0} is not taken; ask for 8 or 16 kHz mono in mulaw, alaw or l16")]
    Format(String),
    /// Sound before the call was announced.
    #[error("sound came before the start message")]
    TooEarly,
    /// Too much.
    #[error("{0}")]
    TooMuch(&'static str),
}

/// A service's language.
pub trait Dialect: Send + std::fmt::Debug {
    /// A text message came.
    ///
    /// # Errors
    /// If it makes no sense.
    fn on_text(&mut self, text: &str) -> Result<Heard, StreamFault>;

    /// Bytes came.
    ///
    /// # Errors
    /// If this service sends none, or not such.
    fn on_binary(&mut self, _bytes: &[u8]) -> Result<Heard, StreamFault> {
        Err(StreamFault::Malformed("bytes, where text is spoken".to_owned()))
    }

    /// Sound to be played.
    fn sound(&mut self, samples: &[f32]) -> Message;
    /// A mark behind the sound so far.
    fn mark(&mut self, name: &str) -> Message;
    /// Play nothing of what was sent.
    fn clear(&mut self) -> Message;
    /// The call ends from our side; `None`: closing the connection says so.
    fn end(&mut self) -> Option<Message> {
        None
    }
    /// Keys are to be pressed; `None`: this service has no word for it.
    fn digits(&mut self, _digits: &str) -> Option<Message> {
        None
    }
    /// Whether keys can be pressed at all.
    fn has_keys(&self) -> bool {
        false
    }
    /// Whether pieces of sound may come in another order than they were made in.
    fn reorders(&self) -> bool {
        false
    }
}

impl Format {
    /// From the words that services use.
    fn named(encoding: &str, rate: u64) -> Result<Self, StreamFault> {
        let lower = encoding.to_ascii_lowercase();
        let name = lower.trim_start_matches("audio/").trim_start_matches("x-");
        let known = match name {
            "mulaw" | "pcmu" | "ulaw" => Some(Encoding::Mulaw),
            "alaw" | "pcma" => Some(Encoding::Alaw),
            "l16" | "linear16" | "pcm_s16le" => Some(Encoding::Linear),
            _ => None,
        };
        let shown: String = encoding.chars().take(40).collect();
        let fault = || StreamFault::Format(format!("{shown} at {rate} Hz"));
        let encoding = known.ok_or_else(fault)?;
        let rate =
            u32::try_from(rate).ok().filter(|rate| matches!(rate, 8_000 | 16_000)).ok_or_else(fault)?;
        Ok(Self { encoding, rate })
    }

    /// Samples from bytes; a byte too many is left out.
    pub fn read(self, bytes: &[u8]) -> Vec<f32> {
        match self.encoding {
            Encoding::Mulaw => bytes.iter().map(|byte| pcm::to_f32(telephone::mulaw_decode(*byte))).collect(),
            Encoding::Alaw => bytes.iter().map(|byte| pcm::to_f32(telephone::alaw_decode(*byte))).collect(),
            Encoding::Linear => {
                let sample = |pair: &[u8]| pcm::to_f32(i16::from_le_bytes([pair[0], pair[1]]));
                bytes.chunks_exact(2).map(sample).collect()
            }
        }
    }

    /// Bytes from samples.
    pub fn write(self, samples: &[f32]) -> Vec<u8> {
        let whole = samples.iter().map(|sample| pcm::to_i16(*sample));
        match self.encoding {
            Encoding::Mulaw => whole.map(telephone::mulaw_encode).collect(),
            Encoding::Alaw => whole.map(telephone::alaw_encode).collect(),
            Encoding::Linear => whole.flat_map(i16::to_le_bytes).collect(),
        }
    }
}

/// A key by its name; long names and unknown ones are none.
fn key(name: &str) -> Option<char> {
    let mut letters = name.chars();
    let digit = letters.next().filter(|_| letters.next().is_none())?.to_ascii_uppercase();
    matches!(digit, '0'..='9' | '*' | '#' | 'A'..='D').then_some(digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_all_their_names() {
        for (name, rate, encoding) in [
            ("audio/x-mulaw", 8_000, Encoding::Mulaw),
            ("PCMU", 8_000, Encoding::Mulaw),
            ("PCMA", 8_000, Encoding::Alaw),
            ("audio/x-l16", 16_000, Encoding::Linear),
            ("L16", 8_000, Encoding::Linear),
        ] {
            assert_eq!(Format::named(name, rate), Ok(Format { encoding, rate: rate as u32 }));
        }
        assert!(Format::named("OPUS", 48_000).is_err() && Format::named("l16", 44_100).is_err());
        assert!(Format::named("mulaw", u64::MAX).is_err());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let sound: Vec<f32> = (0..160).map(|n| (n as f32 * 0.2).sin() * 0.5).collect();
        for encoding in [Encoding::Mulaw, Encoding::Alaw, Encoding::Linear] {
            let format = Format { encoding, rate: 8_000 };
            let read = format.read(&format.write(&sound));
            assert!(read.iter().zip(&sound).all(|(a, b)| (a - b).abs() < 0.02), "{encoding:?}");
        }
    }

    #[test]
    fn keys_are_what_a_telephone_has() {
        assert_eq!((key("1"), key("#"), key("a")), (Some('1'), Some('#'), Some('A')));
        assert_eq!((key(""), key("12"), key("x")), (None, None, None));
    }
}
