//! A call's voice: utterances spoken one after the other on a thread of their own, and handed to whatever plays them.

use std::ops::ControlFlow;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use sayback_core::{Speak, UtteranceId};

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
    queue: Sender<(u64, Speak)>,
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
        let (queue, wanted) = channel::<(u64, Speak)>();
        let epoch = Arc::new(Mutex::new(0));
        let (current, speaker) = (Arc::clone(&epoch), Arc::clone(&player));
        let work = move || {
            while let Ok((epoch, speak)) = wanted.recv() {
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
            }
        };
        if let Err(error) = std::thread::Builder::new().name("voice".to_owned()).spawn(work) {
            tracing::error!("cannot start the voice thread: {error}");
        }
        Self { queue, player, epoch }
    }

    /// Says this behind what is queued.
    pub fn speak(&self, speak: Speak) {
        let epoch = *self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        if self.queue.send((epoch, speak)).is_err() {
            tracing::error!("the voice has stopped");
        }
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
