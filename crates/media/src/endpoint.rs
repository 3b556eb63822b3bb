//! Has the caller finished? What the voice itself says about it.
//!
//! A pause alone does not tell a thought from its end; the melody and the rhythm before it do. The model (Smart Turn)
//! hears the last eight seconds and gives a probability. It is asked once a pause, not once a frame, and takes tens of
//! milliseconds: a caller's place is a thread where that may happen.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rten::{Model, NodeId, RunOptions, ThreadPool};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, NdTensorView};

use crate::mel::{BANDS, HOP, LogMel};

/// Samples that the model hears, eight seconds at 16,000 Hz.
pub const HEARD: usize = 128_000;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The file is missing or is not a model.
    #[error("{}: cannot be loaded as a model ({reason}); fetch it with `sayback models fetch`", path.display())]
    Load {
        /// Which file.
        path: PathBuf,
        /// What the engine said.
        reason: String,
    },
    /// The model does not take or give what the end-of-turn model does.
    #[error("not a working end-of-turn model ({reason}); fetch it with `sayback models fetch`")]
    Run {
        /// What went wrong.
        reason: String,
    },
}

/// The end-of-turn model: weights and tables, shared by all calls.
pub struct EndOfTurn {
    model: Model,
    input: NodeId,
    output: NodeId,
    pool: Arc<ThreadPool>,
}

impl std::fmt::Debug for EndOfTurn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndOfTurn").finish_non_exhaustive()
    }
}

impl EndOfTurn {
    /// Loads the weights from an ONNX file; a decision is computed on so many threads.
    ///
    /// # Errors
    /// If the file is missing, or is not this model.
    pub fn load(path: &Path, threads: usize) -> Result<Self, EndpointError> {
        let load = |reason: String| EndpointError::Load { path: path.to_path_buf(), reason };
        let model = Model::load_file(path).map_err(|e| load(e.to_string()))?;
        let (Some(&input), Some(&output)) = (model.input_ids().first(), model.output_ids().first()) else {
            return Err(load("no input or no output".into()));
        };
        let pool = Arc::new(ThreadPool::with_num_threads(threads.max(1)));
        let endpoint = Self { model, input, output, pool };
        // A model of another shape shows itself now, not in a call.
        endpoint.probability(&[])?;
        Ok(endpoint)
    }

    /// Probability from 0 to 1 that whoever speaks here has finished, given the sound of the turn so far at 16,000 Hz
    /// up to the present pause. Only the last eight seconds count.
    ///
    /// # Errors
    /// If the model is broken; the sound itself cannot cause one.
    pub fn probability(&self, sound: &[f32]) -> Result<f32, EndpointError> {
        let failed = |reason: String| EndpointError::Run { reason };
        let features = LogMel::new().features(&prepare(sound));
        let input = NdTensorView::from_data([1, BANDS, HEARD / HOP], &features[..]);
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.pool)));
        let [output] = self
            .model
            .run_n(vec![(self.input, input.into())], [self.output], Some(options))
            .map_err(|e| failed(e.to_string()))?;
        let output: NdTensor<f32, 2> =
            output.try_into().map_err(|_| failed("the output is no table".into()))?;
        let probability = output.iter().next().copied().ok_or_else(|| failed("no output".into()))?;
        Ok(probability.clamp(0.0, 1.0))
    }
}

/// The last eight seconds, silence in front if there is less, with mean zero and variance one.
fn prepare(sound: &[f32]) -> Vec<f32> {
    let sound = &sound[sound.len().saturating_sub(HEARD)..];
    let mut prepared = vec![0.0; HEARD - sound.len()];
    prepared.extend(sound.iter().map(|s| if s.is_finite() { *s } else { 0.0 }));
    let len = HEARD as f64;
    let mean = prepared.iter().map(|s| f64::from(*s)).sum::<f64>() / len;
    let variance = prepared.iter().map(|s| (f64::from(*s) - mean).powi(2)).sum::<f64>() / len;
    let scale = 1.0 / (variance + 1e-7).sqrt();
    for sample in &mut prepared {
        *sample = ((f64::from(*sample) - mean) * scale) as f32;
    }
    prepared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_hears_the_last_eight_seconds() {
        let long: Vec<f32> = (0..HEARD + 100).map(|n| n as f32 / HEARD as f32).collect();
        assert_eq!(prepare(&long), prepare(&long[100..]));
        let short = prepare(&[1.0]);
        assert_eq!(short.len(), HEARD);
        assert!(short[0] < 0.0 && short[HEARD - 1] > 100.0);
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = EndOfTurn::load(Path::new("no/such.onnx"), 1).unwrap_err().to_string();
        assert!(error.contains("no/such.onnx") && error.contains("models fetch"), "{error}");
    }
}
