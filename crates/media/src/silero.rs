//! The Silero voice activity model, run by rten.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rten::{Model, NodeId, RunOptions, ThreadPool};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, NdTensorView};

use crate::vad::{FRAME, SpeechProbability, VadError};

/// Samples of the frame before that the model wants in front of each frame.
const CONTEXT: usize = 64;
/// Numbers in the model's state.
const STATE: usize = 2 * 128;

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
pub struct SileroModel {
    model: Model,
    inputs: [NodeId; 3],
    outputs: [NodeId; 2],
    /// One thread each: a frame is far too small to be split, and the engine would otherwise try.
    pools: Vec<Arc<ThreadPool>>,
    next: AtomicUsize,
}

impl std::fmt::Debug for SileroModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SileroModel").field("pools", &self.pools.len()).finish_non_exhaustive()
    }
}

impl SileroModel {
    /// Loads the weights from an ONNX file and tries them once. `lanes` is how many frames may be judged at the same
    /// time; one lane a core is enough for any number of calls.
    ///
    /// # Errors
    /// If the file is missing, or is not this model.
    pub fn load(path: &Path, lanes: usize) -> Result<Arc<Self>, SileroError> {
        let load = |reason: String| SileroError::Load { path: path.to_path_buf(), reason };
        let other = |reason: String| SileroError::Other { path: path.to_path_buf(), reason };
        let model = Model::load_file(path).map_err(|e| load(e.to_string()))?;
        let node = |name: &str| model.node_id(name).map_err(|e| other(e.to_string()));
        let inputs = [node("input")?, node("state")?, node("sr")?];
        let outputs = [node("output")?, node("stateN")?];
        let pools = (0..lanes.max(1)).map(|_| Arc::new(ThreadPool::with_num_threads(1))).collect();
        let silero = Arc::new(Self { model, inputs, outputs, pools, next: AtomicUsize::new(0) });
        // A model of another shape shows itself now, not in a call.
        Silero::new(&silero).probability(&[0.0; FRAME]).map_err(|e| other(e.to_string()))?;
        Ok(silero)
    }
}

/// One call's use of the model: its state, and nothing shared but the weights.
#[derive(Debug)]
pub struct Silero {
    model: Arc<SileroModel>,
    pool: Arc<ThreadPool>,
    /// The context, then the frame.
    input: [f32; CONTEXT + FRAME],
    state: [f32; STATE],
}

impl Silero {
    /// A fresh state.
    pub fn new(model: &Arc<SileroModel>) -> Self {
        let lane = model.next.fetch_add(1, Ordering::Relaxed) % model.pools.len();
        let pool = Arc::clone(&model.pools[lane]);
        Self { model: Arc::clone(model), pool, input: [0.0; CONTEXT + FRAME], state: [0.0; STATE] }
    }
}

impl SpeechProbability for Silero {
    fn probability(&mut self, frame: &[f32; FRAME]) -> Result<f32, VadError> {
        self.input.copy_within(FRAME.., 0);
        self.input[CONTEXT..].copy_from_slice(frame);
        let failed = |reason: String| VadError { reason };
        let model = &self.model;
        let input = NdTensorView::from_data([1, CONTEXT + FRAME], &self.input[..]);
        let state = NdTensorView::from_data([2, 1, STATE / 2], &self.state[..]);
        let rate = NdTensor::<i32, 0>::from_scalar(16_000);
        let inputs = vec![
            (model.inputs[0], input.into()),
            (model.inputs[1], state.into()),
            (model.inputs[2], rate.into()),
        ];
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.pool)));
        let [output, state] =
            model.model.run_n(inputs, model.outputs, Some(options)).map_err(|e| failed(e.to_string()))?;
        let output: NdTensor<f32, 2> = output.try_into().map_err(|_| failed("output is no table".into()))?;
        let state: NdTensor<f32, 3> =
            state.try_into().map_err(|_| failed("state has no three sides".into()))?;
        let state = state.to_vec();
        if state.len() != STATE {
            return Err(failed(format!("a state of {} numbers", state.len())));
        }
        self.state.copy_from_slice(&state);
        output.iter().next().copied().ok_or_else(|| failed("no output".into()))
    }

    fn reset(&mut self) {
        self.input = [0.0; CONTEXT + FRAME];
        self.state = [0.0; STATE];
    }
}
