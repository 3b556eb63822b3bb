//! The model itself: phoneme ids in, samples out.

use super::PiperOptions;
use super::noise::Noise;
use rten::{Model, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_tensor::Tensor;
use rten_tensor::prelude::*;
use sayback_runtime::tts::TtsError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const DURATION_NOISE: &str = "/dp/RandomNormalLike_output_0";
const SOUND_NOISE: &str = "/RandomNormalLike_output_0";
/// Below this a sample counts as silence when the ends of a clause are trimmed (-54 dB of full scale).
const QUIET: f32 = 0.002;

#[derive(Debug, Deserialize)]
struct Written {
    audio: Audio,
    espeak: Espeak,
    inference: Inference,
    phoneme_id_map: BTreeMap<char, Vec<i32>>,
}

#[derive(Debug, Deserialize)]
struct Audio {
    sample_rate: u32,
}

#[derive(Debug, Deserialize)]
struct Espeak {
    voice: String,
}

#[derive(Debug, Deserialize)]
struct Inference {
    noise_scale: f32,
    length_scale: f32,
    noise_w: f32,
}

/// A loaded voice.
#[derive(Debug)]
pub(super) struct Voice {
    model: Model,
    written: Written,
    scales: [f32; 3],
    threads: Option<Arc<ThreadPool>>,
}

impl Voice {
    pub(super) fn load(path: &Path, options: PiperOptions) -> Result<Self, TtsError> {
        let bad =
            |path: &Path, reason: String| TtsError::BadModel { path: path.display().to_string(), reason };
        let beside = path.with_extension("onnx.json");
        let text = std::fs::read_to_string(&beside).map_err(|error| bad(&beside, error.to_string()))?;
        let written: Written =
            serde_json::from_str(&text).map_err(|error| bad(&beside, error.to_string()))?;
        check(&written).map_err(|reason| bad(&beside, reason))?;
        let model = Model::load_file(path).map_err(|error| bad(path, error.to_string()))?;
        for name in ["input", "input_lengths", "scales", DURATION_NOISE, SOUND_NOISE] {
            model.node_id(name).map_err(|error| bad(path, format!("is no Piper voice: {error}")))?;
        }
        let length = written.inference.length_scale * options.length.clamp(0.5, 2.0);
        let scales = [written.inference.noise_scale, length, written.inference.noise_w];
        let threads = options.threads.map(|count| Arc::new(ThreadPool::with_num_threads(count.max(1))));
        Ok(Self { model, written, scales, threads })
    }

    pub(super) fn sample_rate(&self) -> u32 {
        self.written.audio.sample_rate
    }

    pub(super) fn espeak_voice(&self) -> &str {
        &self.written.espeak.voice
    }

    /// Samples of phonemes in IPA, decomposed (NFD), without silence at the ends; none if there is nothing to say.
    pub(super) fn speak(&self, phonemes: &str) -> Result<Vec<i16>, TtsError> {
        let ids = self.ids(phonemes);
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let samples = self.run(&ids).map_err(|error| TtsError::Failed(error.to_string()))?;
        Ok(trimmed(&samples).iter().map(|&sample| to_i16(sample)).collect())
    }

    /// The ids of phonemes between start and end marks, with a blank after each; empty if the voice knows none.
    fn ids(&self, phonemes: &str) -> Vec<i32> {
        let of = |symbol: char| self.written.phoneme_id_map.get(&symbol).map_or(&[][..], Vec::as_slice);
        let mut ids = [of('^'), of('_')].concat();
        let empty = ids.len();
        for symbol in phonemes.chars() {
            match of(symbol) {
                [] => tracing::debug!(%symbol, "the voice has no such phoneme"),
                known => ids.extend(known.iter().chain(of('_'))),
            }
        }
        if ids.len() == empty {
            return Vec::new();
        }
        ids.extend(of('$'));
        ids
    }

    /// The model draws noise twice: for the lengths of the sounds and for the sounds. Its own draws differ from run
    /// to run, so it is run up to each draw and given ours, which depends on the ids alone.
    fn run(&self, ids: &[i32]) -> Result<Vec<f32>, Box<dyn std::error::Error>> {
        let mut noise = Noise::seeded(ids);
        let length = ids.len();
        let mut known: Vec<(NodeId, Value)> = vec![
            (self.model.node_id("input")?, Tensor::from_data(&[1, length], ids.to_vec()).into()),
            (
                self.model.node_id("input_lengths")?,
                Tensor::from_data(&[1], vec![i32::try_from(length)?]).into(),
            ),
            (self.model.node_id("scales")?, Tensor::from_data(&[3], self.scales.to_vec()).into()),
            (
                self.model.node_id(DURATION_NOISE)?,
                Tensor::from_data(&[1, 2, length], noise.take(2 * length)).into(),
            ),
        ];
        known = self.model.partial_run(views(&known), self.model.output_ids(), self.options())?;
        let shape = sound_shape(&known).ok_or("the model has another structure than a Piper voice")?;
        let count = shape.iter().product();
        known.push((self.model.node_id(SOUND_NOISE)?, Tensor::from_data(&shape, noise.take(count)).into()));
        let [samples] = self.model.run_n(views(&known), [self.model.output_ids()[0]], self.options())?;
        let samples: Tensor<f32> = samples.try_into()?;
        Ok(samples.to_vec())
    }

    fn options(&self) -> Option<RunOptions> {
        Some(RunOptions::default().with_thread_pool(self.threads.clone()))
    }
}

fn check(written: &Written) -> Result<(), String> {
    let voice = &written.espeak.voice;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-+_".contains(&byte);
    if voice.is_empty() || voice.starts_with('-') || !voice.bytes().all(plain) {
        return Err(format!("espeak.voice {voice:?} is not the name of a voice"));
    }
    if !(8_000..=48_000).contains(&written.audio.sample_rate) {
        return Err(format!("audio.sample_rate {} is not from 8000 to 48000", written.audio.sample_rate));
    }
    Ok(())
}

fn views(values: &[(NodeId, Value)]) -> Vec<(NodeId, ValueOrView<'_>)> {
    values.iter().map(|(id, value)| (*id, value.as_view().into())).collect()
}

/// The shape of the sounds' noise, batch by channels by frames: that of the widest three-dimensional value that the
/// second draw leaves over.
fn sound_shape(values: &[(NodeId, Value)]) -> Option<Vec<usize>> {
    let shapes = values.iter().map(|(_, value)| value.shape().to_vec());
    shapes.filter(|shape| shape.len() == 3).max_by_key(|shape| shape[1])
}

/// Without the near-silence at both ends, but for 20 ms at 22 kHz so that no sound is cut.
fn trimmed(samples: &[f32]) -> &[f32] {
    const MARGIN: usize = 441;
    let loud = |sample: &f32| sample.abs() > QUIET;
    let (Some(first), Some(last)) = (samples.iter().position(loud), samples.iter().rposition(loud)) else {
        return &[];
    };
    &samples[first.saturating_sub(MARGIN)..(last + 1 + MARGIN).min(samples.len())]
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to the range before")]
fn to_i16(sample: f32) -> i16 {
    (sample.clamp(-1.0, 1.0) * 32_767.0) as i16
}
