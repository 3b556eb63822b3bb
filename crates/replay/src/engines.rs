//! What a virtual call is given from outside: the agent, and the engines that answer for real where a scenario asks.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use sayback_media::{EndOfTurn, SpeechProbability};
use sayback_runtime::agent::Agent;
use sayback_runtime::driver::Screen;
use sayback_runtime::llm::Llm;
use sayback_runtime::stt::Transcribe;
use sayback_runtime::tts::Synthesize;

/// Waits for a future: the virtual shell starts no executor of its own, so the binary hands one in.
pub trait BlockOn: Send + Sync {
    /// Runs it to its end.
    fn block_on(&self, future: BoxFuture<'_, ()>);
}

/// Makes a voice activity model for one call.
pub type NewVad = Arc<dyn Fn() -> Box<dyn SpeechProbability> + Send + Sync>;

/// The agent and whatever answers for real.
#[derive(Clone)]
pub struct Engines {
    /// Waits for questions, tools and models.
    pub waits: Arc<dyn BlockOn>,
    /// The agent.
    pub agent: Arc<Agent>,
    /// The agent's own model; only asked where the scenario scripts none.
    pub llm: Option<Arc<dyn Llm>>,
    /// Engines of audio mode.
    pub sound: Option<SoundEngines>,
    /// The loop that a trunk is assumed to have.
    pub assumed_loop: Duration,
    /// What a real model is told of the date; empty: nothing.
    pub today: String,
    /// What looks at a real model's calls before they are validated.
    pub screen: Option<Arc<dyn Screen>>,
}

impl std::fmt::Debug for Engines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engines").field("agent", &self.agent.name).finish_non_exhaustive()
    }
}

/// Engines of audio mode. Their answers arrive after the delay that the file gives, never after their computing time.
#[derive(Clone)]
pub struct SoundEngines {
    /// Voice activity.
    pub vad: NewVad,
    /// Recognition.
    pub stt: Arc<dyn Transcribe>,
    /// The voice.
    pub tts: Arc<dyn Synthesize>,
    /// The end-of-turn model, where there is one.
    pub end_of_turn: Option<Arc<EndOfTurn>>,
}

impl std::fmt::Debug for SoundEngines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SoundEngines").field("stt", &self.stt).field("tts", &self.tts).finish_non_exhaustive()
    }
}

impl Engines {
    /// Waits for a future and gives its value.
    pub(crate) fn wait<T: Send>(&self, future: impl Future<Output = T> + Send) -> Option<T> {
        let mut value = None;
        let slot = &mut value;
        self.waits.block_on(Box::pin(async move { *slot = Some(future.await) }));
        value
    }
}
