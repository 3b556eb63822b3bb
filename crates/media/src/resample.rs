//! Conversion between sample rates, streaming and in one piece.

use audioadapter_buffers::direct::SequentialSlice;
use rubato::{
    Async, FixedAsync, Resampler as _, SincInterpolationParameters, SincInterpolationType, WindowFunction,
};

use crate::clip::RATES;

/// Half the length of the filter, in samples of the lower rate: 40 keep the passband to 92 % of its width with
/// aliases 90 dB down, and cost 5 ms at 8,000 Hz.
const HALF_TAPS: u32 = 40;

/// Filters that are kept for the places between two samples; two rates with more phases are interpolated.
const MOST_PHASES: u32 = 320;

/// A rate that is not converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot convert {from} Hz to {to} Hz: rates of 4000 to 384000 Hz are taken")]
pub struct ResampleError {
    /// The rate of the input.
    pub from: u32,
    /// The rate of the output.
    pub to: u32,
}

/// A streaming converter of one channel.
///
/// Takes chunks of any size; what it gives does not depend on how the input was cut, so there is no click where two
/// chunks meet. Every sample that comes out is [`output_delay`](Self::output_delay) late: whoever computes when a
/// sample sounds subtracts it.
pub struct Resampler {
    from: u32,
    to: u32,
    /// `None` if both rates are the same: samples pass as they are.
    engine: Option<Engine>,
    output: Vec<f32>,
}

struct Engine {
    sinc: Async<f32>,
    /// Output rate by input rate.
    ratio: f64,
    /// By how many output samples the engine's filters are ahead of their place: one phase, where there is one filter
    /// for each.
    ahead: f64,
    /// From the filter's first tap to its middle, in input samples.
    half: u64,
    chunk: usize,
    pending: Vec<f32>,
    scratch: Vec<f32>,
}

impl std::fmt::Debug for Resampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resampler").field("from", &self.from).field("to", &self.to).finish_non_exhaustive()
    }
}

impl Resampler {
    /// A converter between two rates in Hz.
    ///
    /// # Errors
    /// If either rate is outside `clip::RATES`.
    pub fn new(from: u32, to: u32) -> Result<Self, ResampleError> {
        let error = ResampleError { from, to };
        if !RATES.contains(&from) || !RATES.contains(&to) {
            return Err(error);
        }
        let engine = if from == to { None } else { Some(Engine::new(from, to).ok_or(error)?) };
        Ok(Self { from, to, engine, output: Vec::new() })
    }

    /// By how many samples of the output rate a sound comes out later than it went in, to the nearest; the time that
    /// a chunk waits for its rest is not counted.
    pub fn output_delay(&self) -> usize {
        self.engine.as_ref().map_or(0, |engine| engine.exact_delay(0).round() as usize)
    }

    /// Converts more samples and gives what is ready, which may be nothing.
    pub fn push(&mut self, samples: &[f32]) -> &[f32] {
        self.output.clear();
        match &mut self.engine {
            None => self.output.extend_from_slice(samples),
            Some(engine) => engine.push(samples, &mut self.output),
        }
        &self.output
    }

    /// Forgets all state, as if nothing had been pushed.
    pub fn reset(&mut self) {
        if let Some(engine) = &mut self.engine {
            engine.sinc.reset();
            engine.pending.clear();
        }
    }
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

impl Engine {
    fn new(from: u32, to: u32) -> Option<Self> {
        // The filter is as long in time for either direction: the lower rate decides. The engine wants fours.
        let half =
            (u64::from(HALF_TAPS) * u64::from(from)).div_ceil(u64::from(from.min(to))).next_multiple_of(4);
        let mut parameters =
            SincInterpolationParameters::new(half as usize * 2, WindowFunction::BlackmanHarris2);
        // Between two rates samples fall on a few phases only: with one filter for each nothing is interpolated, which
        // is exact and costs a quarter.
        let phases = to / common_divisor(from, to);
        let mut ahead = 0.0;
        if phases <= MOST_PHASES {
            ahead = f64::from(common_divisor(from, to)) / f64::from(from);
            parameters =
                parameters.oversampling_factor(phases as usize).interpolation(SincInterpolationType::Nearest);
        }
        // 5 ms at a time: every frame length in use is a multiple of it.
        let chunk = (from / 200) as usize;
        let ratio = f64::from(to) / f64::from(from);
        let sinc = Async::new_sinc(ratio, 1.0, &parameters, chunk, 1, FixedAsync::Input).ok()?;
        let scratch = vec![0.0; sinc.output_frames_max()];
        Some(Self { sinc, ratio, ahead, half, chunk, pending: Vec::with_capacity(chunk), scratch })
    }

    /// The delay in output samples if so many samples of silence went in first. The engine steps on before it
    /// computes, so its first output is one step in.
    fn exact_delay(&self, silence: u64) -> f64 {
        (self.half + silence) as f64 * self.ratio - 1.0 - self.ahead
    }

    /// The least silence in front that makes the delay a whole number of output samples.
    fn aligning_silence(&self, from: u32) -> u64 {
        let off = |silence: &u64| {
            let delay = self.exact_delay(*silence);
            (delay - delay.round()).abs()
        };
        (0..u64::from(from)).find(|silence| off(silence) < 1e-6).unwrap_or(0)
    }

    fn push(&mut self, mut samples: &[f32], output: &mut Vec<f32>) {
        while !samples.is_empty() {
            let (head, rest) = samples.split_at(samples.len().min(self.chunk - self.pending.len()));
            self.pending.extend(head.iter().map(|s| if s.is_finite() { *s } else { 0.0 }));
            samples = rest;
            if self.pending.len() == self.chunk {
                self.convert(output);
                self.pending.clear();
            }
        }
    }

    fn convert(&mut self, output: &mut Vec<f32>) {
        let room = self.scratch.len();
        let input = SequentialSlice::new(&self.pending, 1, self.chunk).expect("pending holds a whole chunk");
        let mut out =
            SequentialSlice::new_mut(&mut self.scratch, 1, room).expect("scratch holds what it is long");
        let (_, written) = self
            .sinc
            .process_into_buffer(&input, &mut out, None)
            .expect("both buffers are as long as asked for");
        output.extend_from_slice(&self.scratch[..written]);
    }
}

/// Converts a whole recording: no delay, and exactly as long as its duration is at the new rate, rounded up.
///
/// # Errors
/// If either rate is outside `clip::RATES`.
pub fn resample(samples: &[f32], from: u32, to: u32) -> Result<Vec<f32>, ResampleError> {
    let mut resampler = Resampler::new(from, to)?;
    let Some(engine) = &resampler.engine else { return Ok(samples.to_vec()) };
    let silence = engine.aligning_silence(from);
    let delay = engine.exact_delay(silence).round() as usize;
    let len = (samples.len() as u64 * u64::from(to)).div_ceil(u64::from(from)) as usize;
    let mut out = Vec::with_capacity(len + delay);
    out.extend_from_slice(resampler.push(&vec![0.0; silence as usize]));
    out.extend_from_slice(resampler.push(samples));
    let tail = vec![0.0; (from / 50) as usize];
    while out.len() < len + delay {
        out.extend_from_slice(resampler.push(&tail));
    }
    out.drain(..delay);
    out.truncate(len);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcm;
    use proptest::prelude::*;

    const RATES: [u32; 6] = [8_000, 11_025, 16_000, 24_000, 44_100, 48_000];

    fn sine(rate: u32, hz: f64, len: usize) -> Vec<f32> {
        (0..len)
            .map(|n| (0.5 * (n as f64 * hz * std::f64::consts::TAU / f64::from(rate)).sin()) as f32)
            .collect()
    }

    /// The sine that fits best: how late it is in samples, and how far below it everything else is in dB.
    fn fit(out: &[f32], rate: u32, hz: f64) -> (f64, f32) {
        let phase = |n: usize| n as f64 * hz * std::f64::consts::TAU / f64::from(rate);
        // A whole number of periods, clear of both ends.
        let range = rate as usize / 10..rate as usize * 9 / 10;
        let scale = 2.0 / range.len() as f64;
        let sin = range.clone().map(|n| f64::from(out[n]) * phase(n).sin()).sum::<f64>() * scale;
        let cos = range.clone().map(|n| f64::from(out[n]) * phase(n).cos()).sum::<f64>() * scale;
        let fitted = |n: usize| sin * phase(n).sin() + cos * phase(n).cos();
        let rest: Vec<f32> = range.clone().map(|n| out[n] - fitted(n) as f32).collect();
        let late = (-cos).atan2(sin) / std::f64::consts::TAU * f64::from(rate) / hz;
        (late, pcm::level_dbfs(&rest) - pcm::level_dbfs(&out[range]))
    }

    #[test]
    fn a_sine_stays_a_sine_where_it_was() {
        for from in RATES {
            for to in RATES {
                let out = resample(&sine(from, 1_000.0, from as usize), from, to).unwrap();
                assert_eq!(out.len(), to as usize, "{from} to {to}");
                let (late, distortion) = fit(&out, to, 1_000.0);
                assert!(late.abs() < 0.05, "{from} to {to}: {late} samples late");
                assert!(distortion < -80.0, "{from} to {to}: {distortion} dB");
            }
        }
    }

    #[test]
    fn what_the_new_rate_cannot_hold_is_gone() {
        let out = resample(&sine(48_000, 6_000.0, 48_000), 48_000, 8_000).unwrap();
        assert!(pcm::level_dbfs(&out[800..7_200]) < -70.0);
    }

    #[test]
    fn an_impulse_comes_out_after_the_stated_delay() {
        for (from, to) in
            [(48_000, 16_000), (16_000, 48_000), (8_000, 16_000), (44_100, 16_000), (16_000, 8_000)]
        {
            let mut resampler = Resampler::new(from, to).unwrap();
            let mut input = vec![0.0; from as usize / 10];
            input[from as usize / 50] = 1.0;
            let out = resampler.push(&input).to_vec();
            let loudest = (0..out.len()).max_by(|a, b| out[*a].total_cmp(&out[*b])).unwrap();
            let expected = to as usize / 50 + resampler.output_delay();
            assert!(loudest.abs_diff(expected) <= 1, "{from} to {to}: at {loudest}, stated {expected}");
        }
    }

    #[test]
    fn rates_that_no_sound_has_are_refused() {
        assert_eq!(Resampler::new(0, 16_000).unwrap_err(), ResampleError { from: 0, to: 16_000 });
        assert!(Resampler::new(16_000, u32::MAX).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn chunks_of_any_size_give_what_the_whole_gives(
            from in prop::sample::select(&RATES[..]),
            to in prop::sample::select(&RATES[..]),
            cuts in prop::collection::vec(1usize..700, 1..40),
        ) {
            let input = sine(from, 440.0, cuts.iter().sum());
            let whole = Resampler::new(from, to).unwrap().push(&input).to_vec();
            let mut resampler = Resampler::new(from, to).unwrap();
            let mut rest = &input[..];
            let mut pieces = Vec::new();
            for cut in cuts {
                let (piece, tail) = rest.split_at(cut);
                pieces.extend_from_slice(resampler.push(piece));
                rest = tail;
            }
            prop_assert_eq!(pieces, whole);
        }
    }
}
