//! Voices that are hosted: sound from a socket's thread to the thread that speaks.
//!
//! An utterance is whole or it failed. Nothing here makes a whole one of half: an error after some sound, a stream that
//! ends inside a sample, or one without any sound is a failed utterance, since a question of which the end is missing
//! must never count as asked.

use std::future::Future;
use std::ops::ControlFlow;

use sayback_runtime::tts::TtsError;
use tokio::sync::mpsc::{Sender, channel};

use crate::hosted::{Fault, spawn, wait};

mod stream;

pub(crate) use stream::{Posts, Request, stream};

/// Pieces of sound that may wait for whoever plays them.
const PIECES: usize = 64;
/// Longest utterance in seconds: a question has half a minute, a server gone mad has no end.
const MOST_SECONDS: u64 = 600;

/// Where a voice's sound goes.
pub(crate) struct Sound {
    pieces: Sender<Piece>,
    /// The first byte of a sample whose second byte has not come yet.
    half: Option<u8>,
    samples: u64,
    most: u64,
}

enum Piece {
    Samples(Vec<i16>),
    End(Result<(), Fault>),
}

/// Why a voice stops.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Nobody wants any more of it.
    Unwanted,
    /// The vendor's fault.
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Sound {
    /// Takes 16-bit little-endian samples, cut anywhere.
    pub(crate) async fn push(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let mut bytes = bytes.iter().copied();
        let mut samples = Vec::with_capacity(bytes.len() / 2 + 1);
        while let Some(low) = self.half.take().or_else(|| bytes.next()) {
            match bytes.next() {
                Some(high) => samples.push(i16::from_le_bytes([low, high])),
                None => {
                    self.half = Some(low);
                    break;
                }
            }
        }
        if samples.is_empty() {
            return Ok(());
        }
        self.samples += samples.len() as u64;
        if self.samples > self.most {
            return Err(Fault::Garbage(format!("more than {MOST_SECONDS} s of sound")).into());
        }
        self.pieces.send(Piece::Samples(samples)).await.map_err(|_| Stop::Unwanted)
    }

    /// Whether any sound came.
    pub(crate) fn has_begun(&self) -> bool {
        self.samples > 0
    }

    /// That was all of it: whole samples, and some.
    fn is_whole(&self) -> Result<(), Fault> {
        match (self.half, self.samples) {
            (Some(_), _) => Err(Fault::BrokeOff("the sound ends inside a sample".to_owned())),
            (None, 0) => Err(Fault::Garbage("no sound at all".to_owned())),
            (None, _) => Ok(()),
        }
    }
}

/// Speaks on the calling thread what `work` fetches on a socket's.
pub(crate) fn speak<F>(
    vendor: &str,
    rate: u32,
    sink: &mut dyn FnMut(&[i16]) -> ControlFlow<()>,
    work: impl FnOnce(Sound) -> F,
) -> Result<(), TtsError>
where
    F: Future<Output = (Sound, Result<(), Stop>)> + Send + 'static,
{
    let (pieces, mut fetched) = channel(PIECES);
    let end = pieces.clone();
    let fetch = work(Sound { pieces, half: None, samples: 0, most: MOST_SECONDS * u64::from(rate) });
    spawn(async move {
        let (sound, done) = fetch.await;
        let done = match done {
            Ok(()) => sound.is_whole(),
            Err(Stop::Fault(fault)) => Err(fault),
            Err(Stop::Unwanted) => return,
        };
        // Where nobody waits for the end, there is nobody to tell.
        let _ = end.send(Piece::End(done)).await;
    })
    .map_err(|fault| fault.tts(vendor))?;
    loop {
        match wait(fetched.recv()) {
            Some(Piece::Samples(samples)) => {
                if sink(&samples).is_break() {
                    return Ok(());
                }
            }
            Some(Piece::End(done)) => return done.map_err(|fault| fault.tts(vendor)),
            None => return Err(Fault::BrokeOff("the connection is gone".to_owned()).tts(vendor)),
        }
    }
}

/// Takes the meaning out of characters that a vendor reads as markup, and leaves the words (VC-06). Text without such
/// characters stays as it is, to the byte (VC-05). `marks`: what the vendor reads so. A space behind `<` makes it no
/// tag; brackets become round ones, which are silent everywhere.
pub(crate) fn without_markup(text: &str, marks: &[char]) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            _ if !marks.contains(&c) => plain.push(c),
            '<' => plain.push_str("< "),
            '[' | '{' => plain.push('('),
            ']' | '}' => plain.push(')'),
            _ => plain.push(' '),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_loses_its_meaning_and_words_stay() {
        let marks = ['<', '[', ']', '{', '}', '\\'];
        let given = r#"A <break time="9s"/> B [laughs] \{"word": "x"\} & "q""#;
        assert_eq!(
            without_markup(given, &marks),
            r#"A < break time="9s"/> B (laughs)  ("word": "x" ) & "q""#
        );
    }

    #[test]
    fn text_without_markup_stays_as_it_is_to_the_byte() {
        let given = "Shall I book Thursday at 3 pm for anna at example dot com? 😀 ü & \"x\" 5 > 4";
        assert_eq!(without_markup(given, &['<', '[', ']', '{', '}', '\\']), given);
    }
}
