//! The Silero network, computed directly.
//!
//! ```text
//! 64 + 512 samples ─ spectrum: 4 × 129 ─ conv ─ 4 × 128 ─ conv ─ 2 × 64 ─ conv ─ 64 ─ conv ─ 128 ─ LSTM ─ 1
//! ```
//!
//! It has 0.4 million multiplications. A general engine takes far longer for them: its tiles are made for large tables,
//! and here are four columns. Tables are kept so that the innermost loop runs over what comes out, side by
//! side in memory.

use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp, SimdUnaryOp};
use rten_vecmath::{Sigmoid, Tanh};

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
/// How far the model's own table may be off what the transform computes.
const WINDOW_OFF: f32 = 1e-4;

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
    AddProduct { input, table, out }.dispatch();
}

/// The same, for whatever vectors the processor has.
struct AddProduct<'a> {
    input: &'a [f32],
    table: &'a [f32],
    out: &'a mut [f32],
}

/// Vectors of what comes out that are kept in registers while all inputs pass: as many as their sums take to be ready.
const SIDE_BY_SIDE: usize = 4;

impl SimdOp for AddProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Self { input, table, out } = self;
        let (ops, len) = (isa.f32(), out.len());
        let wide = ops.len() * SIDE_BY_SIDE;
        for (n, out) in out.chunks_mut(wide).enumerate() {
            let here = n * wide..n * wide + out.len();
            let rows = table.chunks_exact(len).map(|row| &row[here.clone()]);
            if out.len() < wide {
                add_narrow(input, rows, out);
                continue;
            }
            let mut sums = ops.load_many::<SIDE_BY_SIDE>(out);
            for (value, row) in input.iter().zip(rows) {
                let (value, row) = (ops.splat(*value), ops.load_many::<SIDE_BY_SIDE>(row));
                for (sum, weight) in sums.iter_mut().zip(row) {
                    *sum = ops.mul_add(value, weight, *sum);
                }
            }
            for (sum, out) in sums.into_iter().zip(out.chunks_exact_mut(ops.len())) {
                ops.store(sum, out);
            }
        }
    }
}

/// What is left at the side of a table that is not a multiple of the vectors wide.
#[inline(always)]
fn add_narrow<'a>(input: &[f32], rows: impl Iterator<Item = &'a [f32]>, out: &mut [f32]) {
    for (value, row) in input.iter().zip(rows) {
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
        Sigmoid {}.map_mut(&mut gates[..2 * HIDDEN]);
        Tanh {}.map_mut(&mut gates[2 * HIDDEN..3 * HIDDEN]);
        Sigmoid {}.map_mut(&mut gates[3 * HIDDEN..]);
        for n in 0..HIDDEN {
            let gate = |at: usize| gates[at * HIDDEN + n];
            remembers[n] = gate(1) * remembers[n] + gate(0) * gate(2);
        }
        says.copy_from_slice(remembers);
        Tanh {}.map_mut(says);
        for (says, gate) in says.iter_mut().zip(&gates[3 * HIDDEN..]) {
            *says *= gate;
        }
    }
}

fn sigmoid(value: f32) -> f32 {
    1.0 / (1.0 + (-value).exp())
}

/// The spectrum of a window of samples, by a quick transform: the table that the model has for it is a third of all its
/// multiplications.
pub(super) struct Spectrum {
    window: [f32; WINDOW],
    transform: Arc<dyn RealToComplex<f32>>,
}

impl std::fmt::Debug for Spectrum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spectrum").finish_non_exhaustive()
    }
}

impl Spectrum {
    /// `table`: cosines of all bins, then sines of all bins, by samples. `None` if it is something else.
    pub(super) fn new(table: &[f32]) -> Option<Self> {
        // The first bin's cosines are all one.
        let window: [f32; WINDOW] = table.first_chunk().copied()?;
        let (cosines, sines) = table.split_at_checked(BINS * WINDOW)?;
        let (cosines, sines) = (cosines.chunks_exact(WINDOW), sines.chunks_exact(WINDOW));
        let is_one = cosines.zip(sines).enumerate().all(|(bin, (cosines, sines))| {
            (0..WINDOW).all(|n| {
                let angle = (bin * n % WINDOW) as f32 / WINDOW as f32 * std::f32::consts::TAU;
                let off = |stated: f32, is: f32| (stated - window[n] * is).abs() > WINDOW_OFF;
                !off(cosines[n], angle.cos()) && !off(sines[n], -angle.sin())
            })
        });
        let transform = RealFftPlanner::new().plan_fft_forward(WINDOW);
        is_one.then_some(Self { window, transform })
    }

    /// Appends the strength of each bin of some sound as long as the window.
    fn append(&self, sound: &[f32], scratch: &mut Waves, out: &mut Vec<f32>) {
        let Waves { samples, bins, rest } = scratch;
        samples.clear();
        samples.extend(sound.iter().zip(&self.window).map(|(sample, window)| sample * window));
        bins.resize(BINS, Complex::default());
        rest.resize(self.transform.get_scratch_len(), Complex::default());
        // All lengths are those that were asked for; otherwise it would be silence.
        if self.transform.process_with_scratch(samples, bins, rest).is_err() {
            bins.fill(Complex::default());
        }
        out.extend(bins.iter().map(|bin| bin.norm_sqr().sqrt()));
    }
}

/// The whole network.
#[derive(Debug)]
pub(super) struct Network {
    spectrum: Spectrum,
    encoder: [Conv; 4],
    lstm: Lstm,
    last: (Vec<f32>, f32),
}

/// What is computed on the way; kept, so that a frame takes no new memory.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    padded: Vec<f32>,
    waves: Waves,
    here: Vec<f32>,
    there: Vec<f32>,
}

/// The same of one transform.
#[derive(Debug, Default)]
struct Waves {
    samples: Vec<f32>,
    bins: Vec<Complex<f32>>,
    rest: Vec<Complex<f32>>,
}

impl Network {
    pub(super) fn new(spectrum: Spectrum, encoder: [Conv; 4], lstm: Lstm, last: (Vec<f32>, f32)) -> Self {
        Self { spectrum, encoder, lstm, last }
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
            self.spectrum.append(&padded[window * STEP..][..WINDOW], waves, here);
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
    fn a_product_is_the_same_however_wide_it_is() {
        for len in [1, 7, 64, 130, 512] {
            let input: Vec<f32> = (0..33).map(|n| (n as f32 * 0.7).sin()).collect();
            let table: Vec<f32> = (0..33 * len).map(|n| (n as f32 * 0.3).cos()).collect();
            let mut out = vec![0.5; len];
            add_product(&input, &table, &mut out);
            for (n, out) in out.iter().enumerate() {
                let sum: f32 = input.iter().enumerate().map(|(k, value)| value * table[k * len + n]).sum();
                assert!((out - sum - 0.5).abs() < 1e-4, "{len} wide, {n}: {out} {sum}");
            }
        }
    }

    #[test]
    fn a_spectrum_is_what_the_models_table_makes_it_and_another_table_is_refused() {
        let hann = |n: usize| 0.5 - 0.5 * (n as f32 / WINDOW as f32 * std::f32::consts::TAU).cos();
        let angle = |row: usize, n: usize| (row * n % WINDOW) as f32 / WINDOW as f32 * std::f32::consts::TAU;
        let cosines = (0..BINS).flat_map(|bin| (0..WINDOW).map(move |n| hann(n) * angle(bin, n).cos()));
        let sines = (0..BINS).flat_map(|bin| (0..WINDOW).map(move |n| -hann(n) * angle(bin, n).sin()));
        let mut table: Vec<f32> = cosines.chain(sines).collect();
        let spectrum = Spectrum::new(&table).unwrap();
        let sound: Vec<f32> = (0..WINDOW).map(|n| (n as f32 * 0.31).sin() + 0.2).collect();
        let mut out = Vec::new();
        spectrum.append(&sound, &mut Waves::default(), &mut out);
        let along =
            |row: usize| table[row * WINDOW..][..WINDOW].iter().zip(&sound).map(|(a, b)| a * b).sum::<f32>();
        for (bin, strength) in out.iter().enumerate() {
            assert!((strength - along(bin).hypot(along(BINS + bin))).abs() < 1e-3, "bin {bin}");
        }
        table[5 * WINDOW + 100] += 0.01;
        assert!(Spectrum::new(&table).is_none() && Spectrum::new(&[]).is_none());
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
