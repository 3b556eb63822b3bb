//! A call's voice: utterances spoken one after the other on a thread of their own while there are any, and handed to
//! whatever plays them.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use sayback_core::{Speak, UtteranceId};

use crate::on_demand::OnDemand;
use crate::tts::Synthesize;

/// What plays utterances, as the voice needs it. Nothing in here waits.
pub trait Player: Send + Sync {
    /// An utterance comes, `rate` mono samples a second; behind what is queued.
    fn begin(&self, utterance: UtteranceId, rate: u32);
    /// More of it. `Break`: it is not wanted any more.
    fn push(&self, utterance: UtteranceId, samples: &[i16]) -> ControlFlow<()>;
    /// That was all.
    fn finish(&self, utterance: UtteranceId);
    /// The voice failed.
    fn fail(&self, utterance: UtteranceId);
    /// Throws away all that has not sounded; later pushes of it are not wanted.
    fn clear(&self);
}

/// A voice for one call.
pub struct Voice {
    queue: OnDemand<(u64, Speak)>,
    player: Arc<dyn Player>,
    /// How often everything was thrown away; utterances queued before the last time are not begun any more. Held
    /// while an utterance begins, so that none can begin between the clear and its taking effect.
    epoch: Arc<Mutex<u64>>,
}

impl std::fmt::Debug for Voice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Voice").finish_non_exhaustive()
    }
}

impl Voice {
    /// A voice that speaks through `player`.
    pub fn new(tts: Arc<dyn Synthesize>, player: Arc<dyn Player>) -> Self {
        let epoch = Arc::new(Mutex::new(0));
        let (current, speaker) = (Arc::clone(&epoch), Arc::clone(&player));
        let queue = OnDemand::new("voice", move |(epoch, speak): (u64, Speak)| {
            let begun = {
                let current = current.lock().unwrap_or_else(PoisonError::into_inner);
                let wanted = *current == epoch;
                if wanted {
                    speaker.begin(speak.utterance, tts.sample_rate());
                }
                wanted
            };
            if begun {
                say(tts.as_ref(), speaker.as_ref(), &speak);
            }
        });
        Self { queue, player, epoch }
    }

    /// Says this behind what is queued.
    pub fn speak(&self, speak: Speak) {
        let epoch = *self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        // As many as the core says, and no more than it waits for.
        self.queue.put((epoch, speak));
    }

    /// Throws away all that has not sounded.
    pub fn clear(&self) {
        let mut epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        *epoch += 1;
        self.player.clear();
    }
}

fn say(tts: &dyn Synthesize, player: &dyn Player, speak: &Speak) {
    let utterance = speak.utterance;
    let spoken = tts.synthesize(&speak.text, &speak.language, &mut |samples| player.push(utterance, samples));
    match spoken {
        Ok(()) => player.finish(utterance),
        Err(error) => {
            tracing::error!("{error}");
            player.fail(utterance);
        }
    }
}
