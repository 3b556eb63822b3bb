//! Recognisers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sayback_runtime::stt::{Cancel, Live, LiveEvent, OnHeard, SttError, Transcribe, Transcription};

use super::Ring;
use super::whole::Whole;

/// Recognisers that stand in for each other.
///
/// If one of them hears along, all do: one that takes whole segments is given each when its words are wanted. A
/// connection that had worked and then ends, as they do after some minutes, is opened again before the next recogniser
/// is asked; one that is slow is not.
#[derive(Debug)]
pub struct FailoverStt {
    ring: Arc<Ring<Arc<dyn Transcribe>>>,
}

impl FailoverStt {
    /// Recognisers in the order in which they are tried. With no others, only a connection that ended is opened again.
    pub fn new(first: Arc<dyn Transcribe>, others: Vec<Arc<dyn Transcribe>>) -> Self {
        Self { ring: Arc::new(Ring::new(first, others)) }
    }
}

impl Transcribe for FailoverStt {
    fn name(&self) -> String {
        self.ring.names(|stt| stt.name())
    }

    fn transcribe(&self, pcm: &[f32], partial: bool, cancel: &Cancel) -> Result<Transcription, SttError> {
        let mut failed = SttError::Failed("there is no recogniser".to_owned());
        for (at, stt) in self.ring.round() {
            match stt.transcribe(pcm, partial, cancel) {
                Ok(found) => {
                    self.ring.works(at);
                    return Ok(found);
                }
                Err(SttError::Cancelled) => return Err(SttError::Cancelled),
                Err(error) => {
                    tracing::warn!("{}: {error}", stt.name());
                    failed = error;
                }
            }
        }
        Err(failed)
    }

    fn live(&self, heard: OnHeard) -> Option<Box<dyn Live>> {
        if !self.hears_along() {
            return None;
        }
        let at = self.ring.front();
        let state = State {
            engine: None,
            resting: None,
            at,
            epoch: 0,
            worked: false,
            begun: 0,
            held: BTreeMap::new(),
        };
        let call = Arc::new(Call {
            ring: Arc::clone(&self.ring),
            state: Mutex::new(state),
            heard: Mutex::new(heard),
        });
        call.state().begin(&call, at);
        Some(Box::new(Standby { call }))
    }

    fn hears_along(&self) -> bool {
        self.ring.engines.iter().any(|stt| stt.hears_along())
    }
}

/// One call's recogniser, whichever it is.
#[derive(Debug)]
struct Standby {
    call: Arc<Call>,
}

struct Call {
    ring: Arc<Ring<Arc<dyn Transcribe>>>,
    state: Mutex<State>,
    /// Called without `state` held: whoever hears may push from within.
    heard: Mutex<OnHeard>,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct State {
    /// `None`: all have failed, or it rests.
    engine: Option<Box<dyn Live>>,
    /// Its connection ended while nobody spoke: who begins once somebody does.
    resting: Option<usize>,
    /// Which it is.
    at: usize,
    /// Which beginning: what one says that was given up is not taken.
    epoch: u64,
    /// Whether it has said anything.
    worked: bool,
    /// Engines begun since anything was heard.
    begun: usize,
    /// Sound of stretches that are waited for.
    held: BTreeMap<u32, Held>,
}

#[derive(Debug, Default)]
struct Held {
    pcm: Vec<f32>,
    /// How much of it a flush has asked for.
    flushed: Option<usize>,
}

impl Call {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(self: &Arc<Self>, epoch: u64, event: LiveEvent) {
        let mut state = self.state();
        if state.epoch != epoch {
            return;
        }
        if let LiveEvent::Failed { error } = &event {
            tracing::warn!("{error}");
            match state.next(error, self.ring.engines.len()) {
                Some(next) if state.held.is_empty() => {
                    // Nothing is lost: opening it again now would only have it closed again.
                    state.engine = None;
                    state.resting = Some(next);
                    return;
                }
                Some(next) => {
                    state.begin(self, next);
                    return;
                }
                None => state.engine = None,
            }
        } else {
            state.worked = true;
            self.ring.works(state.at);
        }
        drop(state);
        (self.heard.lock().unwrap_or_else(PoisonError::into_inner))(event);
    }
}

impl State {
    /// Who takes over. A connection that had worked and ended is opened again, and begins a new round; otherwise it is
    /// the next one's turn, until each has had one.
    fn next(&mut self, error: &SttError, engines: usize) -> Option<usize> {
        if self.worked {
            self.begun = 0;
        }
        let again = self.worked && !matches!(error, SttError::Slow(_));
        let next = if again { self.at } else { (self.at + 1) % engines.max(1) };
        (self.begun < engines && (again || engines > 1)).then_some(next)
    }

    /// Begins this engine, and hands it all sound that is waited for.
    fn begin(&mut self, call: &Arc<Call>, at: usize) {
        self.epoch += 1;
        self.begun += 1;
        self.at = at;
        self.worked = false;
        let (epoch, listener) = (self.epoch, Arc::downgrade(call));
        let heard: OnHeard = Box::new(move |event| {
            if let Some(call) = Weak::upgrade(&listener) {
                call.take(epoch, event);
            }
        });
        let Some(stt) = call.ring.engines.get(at) else { return };
        let mut engine: Box<dyn Live> = if stt.hears_along() {
            let Some(engine) = stt.live(heard) else { return };
            engine
        } else {
            Box::new(Whole::begin(Arc::clone(stt), heard))
        };
        for (stretch, held) in &self.held {
            let (asked, rest) = held.pcm.split_at(held.flushed.unwrap_or(0).min(held.pcm.len()));
            if held.flushed.is_some() {
                engine.push(*stretch, asked);
                engine.flush(*stretch);
            }
            if !rest.is_empty() {
                engine.push(*stretch, rest);
            }
        }
        self.engine = Some(engine);
    }
}

impl Live for Standby {
    fn push(&mut self, stretch: u32, pcm: &[f32]) {
        let mut state = self.call.state();
        state.held.entry(stretch).or_default().pcm.extend_from_slice(pcm);
        if let Some(next) = state.resting.take() {
            state.begin(&self.call, next);
            return;
        }
        if let Some(engine) = state.engine.as_mut() {
            engine.push(stretch, pcm);
        }
    }

    fn flush(&mut self, stretch: u32) {
        let mut state = self.call.state();
        let Some(held) = state.held.get_mut(&stretch) else { return };
        held.flushed = Some(held.pcm.len());
        if let Some(engine) = state.engine.as_mut() {
            engine.flush(stretch);
        }
    }

    fn forget(&mut self, stretch: u32) {
        let mut state = self.call.state();
        state.held.remove(&stretch);
        if let Some(engine) = state.engine.as_mut() {
            engine.forget(stretch);
        }
    }
}
