//! The Silero network, computed directly.
//!
//! ```text
//! 64 + 512 samples ─ spectrum: 4 × 129 ─ conv ─ 4 × 128 ─ conv ─ 2 × 64 ─ conv ─ 64 ─ conv ─ 128 ─ LSTM ─ 1
//! ```
//!
//! It has 0.7 million multiplications, which take 50 µs. A general engine needs ten times that: its tiles are made for
//! large tables, and here are four columns. Tables are kept so that the innermost loop runs over what comes out, side by
//! side in memory.

use crate::vad::FRAME;

/// Samples of the frame before that the network wants in front of each frame.
pub(super) const CONTEXT: usize = 64;
/// Numbers of either half of the state.
pub(super) const HIDDEN: usize = 128;

/// Spectra of a frame, their width, and the samples from one to the next.
const SPECTRA: usize = 4;
const BINS: usize = 129;
const WINDOW: usize = 256;
const STEP: usize = 128;

/// One layer: three taps in time.
#[derive(Debug)]
pub(super) struct Conv {
    /// Tap, input, output.
    weights: Vec<f32>,
    bias: Vec<f32>,
    from: usize,
    stride: usize,
}

impl Conv {
    /// `weight`: output, input, tap.
    pub(super) fn new(weight: &[f32], bias: Vec<f32>, from: usize, stride: usize) -> Self {
        let to = bias.len();
        let mut weights = vec![0.0; weight.len()];
        for (n, value) in weight.iter().enumerate() {
            let (output, input, tap) = (n / (from * 3), n / 3 % from, n % 3);
            weights[(tap * from + input) * to + output] = *value;
        }
        Self { weights, bias, from, stride }
    }

    /// What comes out of columns, one after the other, negative values cut off. Before and behind them is nothing.
    fn apply(&self, input: &[f32], output: &mut Vec<f32>) {
        let columns = input.len() / self.from;
        output.clear();
        for middle in (0..columns).step_by(self.stride) {
            let begin = output.len();
            output.extend_from_slice(&self.bias);
            let out = &mut output[begin..];
            for (tap, weights) in self.weights.chunks_exact(self.from * self.bias.len()).enumerate() {
                let Some(column) = (middle + tap).checked_sub(1).filter(|column| *column < columns) else {
                    continue;
                };
                add_product(&input[column * self.from..][..self.from], weights, out);
            }
            for value in out {
                *value = value.max(0.0);
            }
        }
    }
}

/// Adds to `out` what `table` (input, output) makes of `input`.
fn add_product(input: &[f32], table: &[f32], out: &mut [f32]) {
    let len = out.len();
    // Four inputs at a time: what comes out is loaded and stored once for them.
    let (fours, rest) = input.as_chunks::<4>();
    for (four, rows) in fours.iter().zip(table.chunks_exact(len * 4)) {
        let (a, rows) = rows.split_at(len);
        let (b, rows) = rows.split_at(len);
        let (c, d) = rows.split_at(len);
        for ((((out, a), b), c), d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            *out += four[0] * a + four[1] * b + four[2] * c + four[3] * d;
        }
    }
    for (value, row) in rest.iter().zip(table[fours.len() * 4 * len..].chunks_exact(len)) {
        for (out, weight) in out.iter_mut().zip(row) {
            *out += value * weight;
        }
    }
}

/// A table of `rows` by `columns`, turned round.
fn transposed(table: &[f32], columns: usize) -> Vec<f32> {
    let rows = table.len() / columns;
    (0..table.len()).map(|n| table[(n % rows) * columns + n / rows]).collect()
}

/// The layer that remembers.
#[derive(Debug)]
pub(super) struct Lstm {
    input: Vec<f32>,
    hidden: Vec<f32>,
    bias: Vec<f32>,
}

impl Lstm {
    /// Tables of gates (in, forget, cell, out) by inputs.
    pub(super) fn new(input: &[f32], hidden: &[f32], biases: [&[f32]; 2]) -> Self {
        let bias = biases[0].iter().zip(biases[1]).map(|(a, b)| a + b).collect();
        Self { input: transposed(input, HIDDEN), hidden: transposed(hidden, HIDDEN), bias }
    }

    /// One step; `state` is what it says, then what it remembers.
    fn step(&self, input: &[f32], state: &mut [f32; 2 * HIDDEN], gates: &mut Vec<f32>) {
        gates.clear();
        gates.extend_from_slice(&self.bias);
        add_product(input, &self.input, gates);
        let (says, remembers) = state.split_at_mut(HIDDEN);
        add_product(says, &self.hidden, gates);
        for n in 0..HIDDEN {
            let gate = |at: usize| gates[at * HIDDEN + n];
            let kept = sigmoid(gate(1)) * remembers[n] + sigmoid(gate(0)) * gate(2).tanh();
            remembers[n] = kept;
            says[n] = sigmoid(gate(3)) * kept.tanh();
        }
    }
}

fn sigmoid(value: f32) -> f32 {
    1.0 / (1.0 + (-value).exp())
}

/// The whole network.
#[derive(Debug)]
pub(super) struct Network {
    /// Sample, then cosines and sines of all bins.
    spectrum: Vec<f32>,
    encoder: [Conv; 4],
    lstm: Lstm,
    last: (Vec<f32>, f32),
}

/// What is computed on the way; kept, so that a frame takes no new memory.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    padded: Vec<f32>,
    waves: Vec<f32>,
    here: Vec<f32>,
    there: Vec<f32>,
}

impl Network {
    /// `spectrum`: bins by samples.
    pub(super) fn new(spectrum: &[f32], encoder: [Conv; 4], lstm: Lstm, last: (Vec<f32>, f32)) -> Self {
        Self { spectrum: transposed(spectrum, WINDOW), encoder, lstm, last }
    }

    /// Probability of speech in a frame with its context in front.
    pub(super) fn run(
        &self,
        sound: &[f32; CONTEXT + FRAME],
        state: &mut [f32; 2 * HIDDEN],
        scratch: &mut Scratch,
    ) -> f32 {
        let Scratch { padded, waves, here, there } = scratch;
        padded.clear();
        padded.extend_from_slice(sound);
        // Mirrored at the end, without the last sample itself.
        padded.extend(sound.iter().rev().skip(1).take(CONTEXT));
        here.clear();
        for window in 0..SPECTRA {
            waves.clear();
            waves.resize(2 * BINS, 0.0);
            add_product(&padded[window * STEP..][..WINDOW], &self.spectrum, waves);
            let (cosines, sines) = waves.split_at(BINS);
            here.extend(cosines.iter().zip(sines).map(|(c, s)| (c * c + s * s).sqrt()));
        }
        for layer in &self.encoder {
            layer.apply(here, there);
            std::mem::swap(here, there);
        }
        self.lstm.step(here, state, there);
        let (weights, bias) = &self.last;
        let sum: f32 = state[..HIDDEN].iter().zip(weights).map(|(value, w)| value.max(0.0) * w).sum();
        sigmoid(sum + bias)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_turned_round_and_multiplied() {
        // Two rows of three.
        let table = transposed(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3);
        assert_eq!(table, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        let mut out = vec![100.0, 200.0];
        add_product(&[1.0, 10.0, 100.0], &table, &mut out);
        assert_eq!(out, [100.0 + 321.0, 200.0 + 654.0]);
        let wide: Vec<f32> = (0..10).map(|n| n as f32).collect();
        let mut out = vec![0.0];
        add_product(&wide, &[1.0; 10], &mut out);
        assert_eq!(out, [45.0]);
    }

    #[test]
    fn a_layer_sees_one_column_to_either_side() {
        // One input, one output: taps 1, 10, 100.
        let layer = Conv::new(&[1.0, 10.0, 100.0], vec![0.5], 1, 1);
        let mut out = Vec::new();
        layer.apply(&[1.0, 2.0, 3.0], &mut out);
        assert_eq!(out, [210.5, 321.5, 32.5]);
        let half = Conv::new(&[1.0, 10.0, 100.0], vec![-1_000.0], 1, 2);
        half.apply(&[1.0, 2.0, 3.0], &mut out);
        assert_eq!(out, [0.0, 0.0], "negative values are cut off");
    }
}
