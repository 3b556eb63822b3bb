//! Voices.

use std::ops::ControlFlow;
use std::sync::Arc;

use sayback_media::Resampler;
use sayback_runtime::tts::{Synthesize, TtsError};

use super::Ring;

/// Voices that stand in for each other. All sound at the first one's rate.
#[derive(Debug)]
pub struct FailoverTts {
    ring: Ring<Arc<dyn Synthesize>>,
    rate: u32,
}

impl FailoverTts {
    /// Voices in the order in which they are tried.
    pub fn new(first: Arc<dyn Synthesize>, others: Vec<Arc<dyn Synthesize>>) -> Self {
        let rate = first.sample_rate();
        Self { ring: Ring::new(first, others), rate }
    }
}

/// Where an utterance goes, and how it went.
struct Utterance<'a> {
    sink: &'a mut dyn FnMut(&[i16]) -> ControlFlow<()>,
    begun: bool,
    unwanted: bool,
}

impl Utterance<'_> {
    fn hand_out(&mut self, samples: &[i16]) -> ControlFlow<()> {
        self.begun |= !samples.is_empty();
        let flow = (self.sink)(samples);
        self.unwanted |= flow.is_break();
        flow
    }
}

/// Says `text` with this voice at the wanted rate.
fn speak(
    voice: &Arc<dyn Synthesize>,
    rate: u32,
    (text, language): (&str, &str),
    utterance: &mut Utterance<'_>,
) -> Result<(), TtsError> {
    let own = voice.sample_rate();
    if own == rate {
        return voice.synthesize(text, language, &mut |samples| utterance.hand_out(samples));
    }
    let mut converter =
        Resampler::new(own, rate).map_err(|error| TtsError::Failed(format!("{}: {error}", voice.name())))?;
    let late = converter.output_delay();
    let mut convert = |samples: &[i16], utterance: &mut Utterance<'_>| {
        let samples: Vec<f32> = samples.iter().map(|s| f32::from(*s) / 32_768.0).collect();
        let whole = |s: &f32| (s * 32_768.0).round().clamp(-32_768.0, 32_767.0) as i16;
        let converted: Vec<i16> = converter.push(&samples).iter().map(whole).collect();
        if converted.is_empty() { ControlFlow::Continue(()) } else { utterance.hand_out(&converted) }
    };
    voice.synthesize(text, language, &mut |samples| convert(samples, utterance))?;
    if !utterance.unwanted {
        // What the converter still holds is the end of the last word.
        let rest = late as u64 * u64::from(own) / u64::from(rate.max(1)) + u64::from(own) / 50;
        let silence = vec![0; usize::try_from(rest).unwrap_or(0)];
        let _ = convert(&silence, utterance);
    }
    Ok(())
}

impl Synthesize for FailoverTts {
    fn name(&self) -> String {
        self.ring.names(|voice| voice.name())
    }

    fn sample_rate(&self) -> u32 {
        self.rate
    }

    fn synthesize(
        &self,
        text: &str,
        language: &str,
        sink: &mut dyn FnMut(&[i16]) -> ControlFlow<()>,
    ) -> Result<(), TtsError> {
        let mut utterance = Utterance { sink, begun: false, unwanted: false };
        let mut failed = TtsError::Failed("there is no voice".to_owned());
        for (at, voice) in self.ring.round() {
            match speak(voice, self.rate, (text, language), &mut utterance) {
                Ok(()) => {
                    self.ring.works(at);
                    return Ok(());
                }
                Err(_) if utterance.unwanted => return Ok(()),
                Err(error) if utterance.begun => return Err(error),
                Err(error) => {
                    tracing::warn!("{}: {error}", voice.name());
                    failed = error;
                }
            }
        }
        Err(failed)
    }
}
