//! A whole stretch over a connection of its own, for callers that have all of it.

use sayback_runtime::stt::{Cancel, Live, LiveEvent, OnHeard, SttError, Transcription};
use tokio::sync::mpsc::channel;

use super::RATE;
use crate::hosted::wait;

/// Sound is handed over in pieces of 100 ms.
const PIECE: usize = RATE as usize / 10;

/// Recognises `pcm` with an engine that hears along. Sound goes out as fast as the connection takes it.
pub(crate) fn once(
    live: impl FnOnce(OnHeard) -> Box<dyn Live>,
    pcm: &[f32],
    cancel: &Cancel,
) -> Result<Transcription, SttError> {
    let (sender, mut heard) = channel(64);
    let mut engine = live(Box::new(move |event| {
        // Partials that nobody takes in time are not missed, and of the others there is one.
        let _ = sender.try_send(event);
    }));
    for piece in pcm.chunks(PIECE) {
        if cancel.is_cancelled() {
            return Err(SttError::Cancelled);
        }
        engine.push(0, piece);
    }
    engine.flush(0);
    loop {
        match wait(heard.recv()) {
            Some(LiveEvent::Final { found, .. }) => return Ok(found),
            Some(LiveEvent::Unplaced { text }) => {
                // There is one stretch only.
                return Ok(Transcription { text, ..Transcription::default() });
            }
            Some(LiveEvent::Failed { error }) => return Err(error),
            Some(LiveEvent::Partial { .. }) if cancel.is_cancelled() => return Err(SttError::Cancelled),
            Some(LiveEvent::Partial { .. }) => {}
            None => return Err(SttError::Failed("the connection is gone".to_owned())),
        }
    }
}

/// Samples as 16-bit little-endian bytes.
pub(crate) fn pcm16(pcm: &[f32]) -> Vec<u8> {
    let sample = |s: &f32| ((s.clamp(-1.0, 1.0) * 32_767.0).round() as i16).to_le_bytes();
    pcm.iter().flat_map(sample).collect()
}
