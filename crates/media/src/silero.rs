//! The Silero voice activity model.
//!
//! It is computed by code of our own where its file is the one that this was written for, and by rten otherwise. At load
//! both judge the same sound, and only if they agree the quicker one is used.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rten::{Model, NodeId, RunOptions, ThreadPool};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, NdTensorView};

use crate::noise::WhiteNoise;
use crate::vad::{FRAME, SpeechProbability, VadError};

mod network;
mod weights;

use network::{CONTEXT, HIDDEN, Network, Scratch};

/// Numbers in the model's state.
const STATE: usize = 2 * HIDDEN;
/// Frames that both ways of computing it judge at load, and how far apart they may be.
const TRIAL_FRAMES: usize = 6;
const TRIAL_OFF: f32 = 2e-3;

/// Why the model could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum SileroError {
    /// The file is missing or is not a model.
    #[error("{}: cannot be loaded as a model ({reason}); fetch it with `sayback models fetch`", path.display())]
    Load {
        /// Which file.
        path: PathBuf,
        /// What the engine said.
        reason: String,
    },
    /// It is a model, but another one.
    #[error("{}: not the Silero voice activity model ({reason}); fetch it with `sayback models fetch`", path.display())]
    Other {
        /// Which file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
}

/// The weights, loaded once and shared by all calls.
#[derive(Debug)]
pub struct SileroModel {
    engine: Engine,
}

#[derive(Debug)]
enum Engine {
    Own(Box<Network>),
    General(Box<General>),
}

/// The model in a general engine.
struct General {
    model: Model,
    inputs: [NodeId; 3],
    outputs: [NodeId; 2],
    /// One thread each: a frame is far too small to be split, and the engine would otherwise try.
    pools: Vec<Arc<ThreadPool>>,
    next: AtomicUsize,
}

impl std::fmt::Debug for General {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("General").field("pools", &self.pools.len()).finish_non_exhaustive()
    }
}

impl SileroModel {
    /// Loads the weights from an ONNX file and tries them. `lanes` is how many frames may be judged at the same time
    /// where a general engine has to do it; one lane a core is enough for any number of calls.
    ///
    /// # Errors
    /// If the file is missing, or is not this model.
    pub fn load(path: &Path, lanes: usize) -> Result<Arc<Self>, SileroError> {
        let general = Self::load_general(path, lanes)?;
        let Some(network) = std::fs::read(path).ok().and_then(|file| weights::read(&file)) else {
            return Ok(general);
        };
        let own = Arc::new(Self { engine: Engine::Own(Box::new(network)) });
        let off = difference(&own, &general);
        if off.is_ok_and(|off| off <= TRIAL_OFF) {
            return Ok(own);
        }
        Ok(general)
    }

    /// Whether it is computed by code of our own.
    pub fn is_computed_directly(&self) -> bool {
        matches!(self.engine, Engine::Own(_))
    }

    /// The same, computed by the general engine in any case. For comparison.
    ///
    /// # Errors
    /// If the file is missing, or is not this model.
    pub fn load_general(path: &Path, lanes: usize) -> Result<Arc<Self>, SileroError> {
        let load = |reason: String| SileroError::Load { path: path.to_path_buf(), reason };
        let other = |reason: String| SileroError::Other { path: path.to_path_buf(), reason };
        let model = Model::load_file(path).map_err(|e| load(e.to_string()))?;
        let node = |name: &str| model.node_id(name).map_err(|e| other(e.to_string()));
        let inputs = [node("input")?, node("state")?, node("sr")?];
        let outputs = [node("output")?, node("stateN")?];
        let pools = (0..lanes.max(1)).map(|_| Arc::new(ThreadPool::with_num_threads(1))).collect();
        let general = General { model, inputs, outputs, pools, next: AtomicUsize::new(0) };
        let silero = Arc::new(Self { engine: Engine::General(Box::new(general)) });
        // A model of another shape shows itself now, not in a call.
        Silero::new(&silero).probability(&[0.0; FRAME]).map_err(|e| other(e.to_string()))?;
        Ok(silero)
    }
}

/// How far apart two ways to compute it are at most, on a sound that swells out of noise.
fn difference(a: &Arc<SileroModel>, b: &Arc<SileroModel>) -> Result<f32, VadError> {
    let (mut a, mut b) = (Silero::new(a), Silero::new(b));
    let mut noise = WhiteNoise::new(1);
    let mut most = 0.0_f32;
    for number in 0..TRIAL_FRAMES {
        let noise = noise.samples(FRAME, -50.0);
        let hum = |n: usize| (((number * FRAME + n) as f32) * 0.06).sin() * 0.05 * number as f32;
        let frame: [f32; FRAME] = std::array::from_fn(|n| noise[n] + hum(n));
        most = most.max((a.probability(&frame)? - b.probability(&frame)?).abs());
    }
    let states = a.state.iter().zip(&b.state).map(|(a, b)| (a - b).abs());
    Ok(states.fold(most, f32::max))
}

/// One call's use of the model: its state, and nothing shared but the weights.
#[derive(Debug)]
pub struct Silero {
    model: Arc<SileroModel>,
    lane: usize,
    /// The context, then the frame.
    input: [f32; CONTEXT + FRAME],
    state: [f32; STATE],
    scratch: Scratch,
}

impl Silero {
    /// A fresh state.
    pub fn new(model: &Arc<SileroModel>) -> Self {
        let lane = match &model.engine {
            Engine::General(general) => general.next.fetch_add(1, Ordering::Relaxed) % general.pools.len(),
            Engine::Own(_) => 0,
        };
        let (input, state) = ([0.0; CONTEXT + FRAME], [0.0; STATE]);
        Self { model: Arc::clone(model), lane, input, state, scratch: Scratch::default() }
    }
}

impl General {
    fn run(
        &self,
        lane: usize,
        input: &[f32; CONTEXT + FRAME],
        state: &mut [f32; STATE],
    ) -> Result<f32, VadError> {
        let failed = |reason: String| VadError { reason };
        let input = NdTensorView::from_data([1, CONTEXT + FRAME], &input[..]);
        let before = NdTensorView::from_data([2, 1, HIDDEN], &state[..]);
        let rate = NdTensor::<i32, 0>::from_scalar(16_000);
        let inputs = vec![
            (self.inputs[0], input.into()),
            (self.inputs[1], before.into()),
            (self.inputs[2], rate.into()),
        ];
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.pools[lane])));
        let [output, after] =
            self.model.run_n(inputs, self.outputs, Some(options)).map_err(|e| failed(e.to_string()))?;
        let output: NdTensor<f32, 2> = output.try_into().map_err(|_| failed("output is no table".into()))?;
        let after: NdTensor<f32, 3> =
            after.try_into().map_err(|_| failed("state has no three sides".into()))?;
        let after = after.to_vec();
        if after.len() != STATE {
            return Err(failed(format!("a state of {} numbers", after.len())));
        }
        state.copy_from_slice(&after);
        output.iter().next().copied().ok_or_else(|| failed("no output".into()))
    }
}

impl SpeechProbability for Silero {
    fn probability(&mut self, frame: &[f32; FRAME]) -> Result<f32, VadError> {
        self.input.copy_within(FRAME.., 0);
        self.input[CONTEXT..].copy_from_slice(frame);
        match &self.model.engine {
            Engine::Own(network) => Ok(network.run(&self.input, &mut self.state, &mut self.scratch)),
            Engine::General(general) => general.run(self.lane, &self.input, &mut self.state),
        }
    }

    fn reset(&mut self) {
        self.input = [0.0; CONTEXT + FRAME];
        self.state = [0.0; STATE];
    }
}
