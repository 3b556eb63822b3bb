//! The agent's own voice in the caller's sound: taking it out, and recognising it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use realfft::RealFftPlanner;
use realfft::num_complex::Complex;
use sonora::config::{Config, EchoCanceller as CancellerConfig};
use sonora::{AudioProcessing, StreamConfig};

use crate::filter::Cascade;
use crate::pcm;

/// A rate that the canceller does not work at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("echo is cancelled at 16000, 32000 or 48000 Hz, not at {0} Hz; convert the sound first")]
pub struct EchoRateError(pub u32);

/// Takes the agent's own voice out of what the microphone hears.
///
/// Feed it what was *played*, frame by frame as it was played, pauses and underruns as silence, and not what was
/// synthesised: it can only find what really left. It needs a second or two of agent speech to learn the room.
pub struct EchoCanceller {
    processing: AudioProcessing,
    frame: usize,
    render: Vec<f32>,
    capture: Vec<f32>,
    scratch: Vec<f32>,
    cleaned: Vec<f32>,
}

impl std::fmt::Debug for EchoCanceller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EchoCanceller").field("frame", &self.frame).finish_non_exhaustive()
    }
}

impl EchoCanceller {
    /// A canceller of one channel for a sample rate.
    ///
    /// # Errors
    /// If it does not work at that rate.
    pub fn new(rate: u32) -> Result<Self, EchoRateError> {
        if ![16_000, 32_000, 48_000].contains(&rate) {
            return Err(EchoRateError(rate));
        }
        let config = Config { echo_canceller: Some(CancellerConfig::default()), ..Config::default() };
        let stream = StreamConfig::new(rate, 1);
        let processing =
            AudioProcessing::builder().config(config).capture_config(stream).render_config(stream).build();
        let frame = stream.num_frames();
        Ok(Self {
            processing,
            frame,
            render: Vec::with_capacity(frame),
            capture: Vec::with_capacity(frame),
            scratch: vec![0.0; frame],
            cleaned: Vec::new(),
        })
    }

    /// Takes what was played, in any amount.
    pub fn render(&mut self, samples: &[f32]) {
        for sample in samples {
            self.render.push(finite(*sample));
            if self.render.len() == self.frame {
                // Frames are as long as the configuration says, so they are not refused.
                let _ = self.processing.process_render_f32(&[&self.render], &mut [&mut self.scratch]);
                self.render.clear();
            }
        }
    }

    /// Takes what was heard, in any amount, and gives it without the echo in whole frames of 10 ms: what is short of
    /// one comes with the next call.
    pub fn capture(&mut self, samples: &[f32]) -> &[f32] {
        self.cleaned.clear();
        for sample in samples {
            self.capture.push(finite(*sample));
            if self.capture.len() == self.frame {
                let done = self.processing.process_capture_f32(&[&self.capture], &mut [&mut self.scratch]);
                self.cleaned.extend_from_slice(if done.is_ok() { &self.scratch } else { &self.capture });
                self.capture.clear();
            }
        }
        &self.cleaned
    }

    /// How much it takes out at present in dB, as far as it knows.
    pub fn echo_removed_db(&self) -> Option<f64> {
        self.processing.statistics().echo_return_loss_enhancement
    }
}

fn finite(sample: f32) -> f32 {
    if sample.is_finite() { sample } else { 0.0 }
}

/// Samples a second that the detector takes.
const RATE: u32 = 16_000;
/// It compares every fourth sample: a voice's strong part lies below 1,800 Hz.
const THINNING: usize = 4;
/// The longest way from the loudspeaker back that is looked for.
pub const LONGEST_DELAY: Duration = Duration::from_millis(800);
/// How much earlier than it was played it may seem to be heard: the times of two devices are not told exactly.
const EARLIEST: Duration = Duration::from_millis(20);
/// The longest segment that is compared; of a longer one its first part.
const LONGEST_SEGMENT: usize = 6_000;
/// What is remembered: the longest segment, the longest delay and some seconds to ask about them in.
const MEMORY: usize = 10 * RATE as usize / THINNING;
/// Samples that are thinned at a time.
const PIECE: usize = RATE as usize;
/// Where what was played is this much quieter (in energy) than its loudest part, nothing is compared: what is left there
/// is the rounding of the comparison.
const FAINT: f64 = 1e-6;
/// From this strength on a segment is the agent's own voice. Two voices reach 0.3 by chance.
pub const ECHO_STRENGTH: f32 = 0.5;

/// What was found of the agent's own voice in a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EchoFound {
    /// From being played to being heard; none where the devices' times make it less than nothing.
    pub delay: Duration,
    /// How alike the two are, from 0 to 1: the share of the segment's amplitude that the played sound explains.
    pub strength: f32,
}

impl EchoFound {
    /// Whether the segment is the agent's own voice.
    pub fn is_echo(&self) -> bool {
        self.strength >= ECHO_STRENGTH
    }
}

/// Recognises a segment as the agent's own voice by comparing it with what was played.
#[derive(Debug)]
pub struct EchoDetector {
    played: Thinned,
    heard: Thinned,
}

impl Default for EchoDetector {
    fn default() -> Self {
        Self::new()
    }
}

impl EchoDetector {
    /// Nothing was played or heard yet. Both sides are fed at 16,000 Hz and counted from the same moment: whatever is
    /// not played or heard is pushed as silence.
    pub fn new() -> Self {
        Self { played: Thinned::new(), heard: Thinned::new() }
    }

    /// Takes what was played.
    pub fn played(&mut self, samples: &[f32]) {
        self.played.push(samples);
    }

    /// Takes what was heard.
    pub fn heard(&mut self, samples: &[f32]) {
        self.heard.push(samples);
    }

    /// The same for the last sound that was heard.
    pub fn find_recent(&self, length: Duration) -> Option<EchoFound> {
        let to = self.heard.pushed * THINNING as u64;
        self.find(to.saturating_sub(length.as_millis() as u64 * u64::from(RATE) / 1_000), to)
    }

    /// Looks for what was played in what was heard between two samples, counted from the first one pushed. Of a long
    /// segment whose beginning is forgotten, what is left is compared. `None` if there is nothing to compare: silence on
    /// either side, a segment of less than 50 ms, or one that is forgotten altogether.
    pub fn find(&self, from: u64, to: u64) -> Option<EchoFound> {
        let thinned = |time: Duration| time.as_millis() as u64 * u64::from(RATE) / 1_000 / THINNING as u64;
        let remembered = match self.heard.first() {
            0 => 0,
            first => first + thinned(LONGEST_DELAY),
        };
        let (from, to) = ((from / THINNING as u64).max(remembered), to / THINNING as u64);
        let segment = self.heard.between(from, to.min(from + LONGEST_SEGMENT as u64))?;
        let loud: f32 = segment.iter().map(|s| s * s).sum();
        if segment.len() < RATE as usize / THINNING / 20 || loud < 1e-7 * segment.len() as f32 {
            return None;
        }
        let earliest = from.saturating_sub(thinned(LONGEST_DELAY)).max(self.played.first());
        let played = self.played.between(earliest, from + segment.len() as u64 + thinned(EARLIEST))?;
        let (at, strength) = likest(&segment, f64::from(loud), &played)?;
        let delay = from.saturating_sub(earliest + at as u64) * THINNING as u64 * 1_000_000 / u64::from(RATE);
        Some(EchoFound { delay: Duration::from_micros(delay), strength })
    }
}

/// Where in what was played the segment fits best, and how well. All places are compared at once by their spectra: one
/// by one takes longer than the line has time.
fn likest(segment: &[f32], loud: f64, played: &[f32]) -> Option<(usize, f32)> {
    let places = (played.len() + 1).checked_sub(segment.len()).filter(|places| *places > 0)?;
    let mut sums = Vec::with_capacity(played.len() + 1);
    let mut sum = 0.0;
    sums.push(sum);
    sums.extend(played.iter().map(|sample| {
        sum += f64::from(*sample) * f64::from(*sample);
        sum
    }));
    let energy = |at: usize| sums[at + segment.len()] - sums[at];
    let loudest = (0..places).map(energy).fold(0.0, f64::max);
    let least = (loudest * FAINT).max(1e-14 / loud);
    if loudest <= least {
        return None;
    }
    let products = correlate(segment, played)?;
    let likeness = |at: usize| {
        let energy = energy(at);
        if energy > least { (f64::from(products[at].abs()) / (loud * energy).sqrt()) as f32 } else { 0.0 }
    };
    (0..places).map(|at| (at, likeness(at))).max_by(|a, b| a.1.total_cmp(&b.1))
}

thread_local! {
    /// Factors of the transforms, which take longer to reckon than the transforms themselves.
    static PLANNER: RefCell<RealFftPlanner<f32>> = RefCell::new(RealFftPlanner::new());
}

/// The products of the segment with what was played from each of its samples on.
fn correlate(segment: &[f32], played: &[f32]) -> Option<Vec<f32>> {
    let size = played.len().next_power_of_two();
    let (forward, back) =
        PLANNER.with_borrow_mut(|planner| (planner.plan_fft_forward(size), planner.plan_fft_inverse(size)));
    let spectrum = |samples: &[f32]| -> Option<Vec<Complex<f32>>> {
        let mut padded = samples.to_vec();
        padded.resize(size, 0.0);
        let mut spectrum = forward.make_output_vec();
        forward.process(&mut padded, &mut spectrum).ok()?;
        Some(spectrum)
    };
    let (segment, mut product) = (spectrum(segment)?, spectrum(played)?);
    for (there, here) in product.iter_mut().zip(&segment) {
        *there *= here.conj();
    }
    // The two ends of a real sound's spectrum are real; rounding says otherwise.
    for end in [0, size / 2] {
        if let Some(end) = product.get_mut(end) {
            end.im = 0.0;
        }
    }
    let mut products = back.make_output_vec();
    back.process(&mut product, &mut products).ok()?;
    let scale = 1.0 / size as f32;
    products.iter_mut().for_each(|product| *product *= scale);
    Some(products)
}

/// The last seconds of some sound in a voice's band, every fourth sample.
#[derive(Debug)]
struct Thinned {
    band: Cascade,
    /// As 16 bits: what is quieter than their steps is silence.
    samples: VecDeque<i16>,
    pushed: u64,
    phase: usize,
}

impl Thinned {
    fn new() -> Self {
        let band = Cascade::band_pass(RATE, 300.0, 1_700.0);
        Self { band, samples: VecDeque::with_capacity(MEMORY), pushed: 0, phase: 0 }
    }

    fn push(&mut self, samples: &[f32]) {
        for piece in samples.chunks(PIECE) {
            self.push_piece(piece);
        }
    }

    /// Of at most [`PIECE`] samples, so that there is always room for it.
    fn push_piece(&mut self, samples: &[f32]) {
        let came = (samples.len() + self.phase).div_ceil(THINNING) - self.phase.div_ceil(THINNING);
        let over = (self.samples.len() + came).saturating_sub(MEMORY);
        self.samples.drain(..over);
        self.pushed += came as u64;
        // Most of the time the agent says nothing, and a filter at rest makes nothing out of nothing.
        if self.band.is_at_rest() && samples.iter().all(|sample| *sample == 0.0) {
            self.samples.extend(std::iter::repeat_n(0, came));
            self.phase = (self.phase + samples.len()) % THINNING;
            return;
        }
        for sample in samples {
            let sample = self.band.step(*sample);
            if self.phase == 0 {
                self.samples.push_back(pcm::to_i16(sample));
            }
            self.phase = (self.phase + 1) % THINNING;
        }
    }

    fn first(&self) -> u64 {
        self.pushed - self.samples.len() as u64
    }

    /// Samples from one to before another, as far as they are there; `None` if the first one is not.
    fn between(&self, from: u64, to: u64) -> Option<Vec<f32>> {
        let skip = usize::try_from(from.checked_sub(self.first())?).ok()?;
        let len = usize::try_from(to.min(self.pushed).checked_sub(from)?).ok()?;
        Some(self.samples.range(skip..skip + len).map(|sample| pcm::to_f32(*sample)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::WhiteNoise;

    /// Something like a voice: noise in its band whose loudness comes and goes in syllables.
    fn voice(seed: u64, len: usize) -> Vec<f32> {
        let mut sound = WhiteNoise::new(seed).samples(len, -10.0);
        Cascade::band_pass(RATE, 200.0, 2_500.0).process(&mut sound);
        let rhythm = 0.0011 + seed as f32 * 0.0001;
        sound.iter().enumerate().map(|(n, s)| s * (n as f32 * rhythm).sin().max(0.0)).collect()
    }

    /// How the room gives it back: later, quieter, and from a second wall.
    fn room(played: &[f32], delay: usize) -> Vec<f32> {
        let at = |n: usize, back: usize| n.checked_sub(back).map_or(0.0, |n| played[n]);
        (0..played.len()).map(|n| 0.2 * at(n, delay) + 0.06 * at(n, delay + 90)).collect()
    }

    #[test]
    fn the_echo_is_taken_out_and_the_caller_is_left() {
        let played = voice(1, 10 * 16_000);
        let echo = room(&played, 1_600);
        let caller = voice(2, 16_000);
        let mut canceller = EchoCanceller::new(16_000).unwrap();
        let mut cleaned = Vec::new();
        for (n, (played, echo)) in played.chunks(160).zip(echo.chunks(160)).enumerate() {
            let mut heard = echo.to_vec();
            if n >= 900 {
                heard.iter_mut().zip(&caller[(n - 900) * 160..]).for_each(|(h, c)| *h += c * 0.3);
            }
            canceller.render(played);
            cleaned.extend_from_slice(canceller.capture(&heard));
        }
        assert_eq!(cleaned.len(), played.len());
        let (from, to) = (6 * 16_000, 9 * 16_000);
        let removed = pcm::level_dbfs(&echo[from..to]) - pcm::level_dbfs(&cleaned[from..to]);
        assert!(removed > 25.0, "{removed} dB");
        let lost = pcm::level_dbfs(&caller) - 10.46 - pcm::level_dbfs(&cleaned[to..]);
        assert!(lost < 12.0, "{lost} dB of the caller");
    }

    #[test]
    fn other_rates_are_refused() {
        assert_eq!(EchoCanceller::new(44_100).unwrap_err(), EchoRateError(44_100));
    }

    #[test]
    fn the_agents_own_voice_is_found_with_its_delay() {
        let played = voice(1, 4 * 16_000);
        for delay in [0, 800, 4_000, 11_200] {
            let mut heard = room(&played, delay);
            let noise = WhiteNoise::new(9).samples(heard.len(), -50.0);
            heard.iter_mut().zip(noise).for_each(|(h, n)| *h += n);
            let mut detector = EchoDetector::new();
            detector.played(&played);
            detector.heard(&heard);
            let found = detector.find(2 * 16_000, 3 * 16_000).unwrap();
            assert!(found.is_echo(), "{delay}: {found:?}");
            let off = found.delay.as_micros() as i64 - delay as i64 * 125 / 2;
            assert!(off.abs() <= 1_000, "{delay}: {found:?}");
        }
    }

    #[test]
    fn it_is_found_where_the_devices_times_put_it_before_it_was_played() {
        let played = voice(1, 4 * 16_000);
        for early in [1, 16, 40, 160, 320] {
            let heard: Vec<f32> = played[early..].iter().map(|sample| sample * 0.2).collect();
            let mut detector = EchoDetector::new();
            detector.played(&played);
            detector.heard(&heard);
            let found = detector.find(2 * 16_000, 3 * 16_000).unwrap();
            assert!(found.is_echo() && found.delay <= Duration::from_millis(1), "{early}: {found:?}");
        }
    }

    #[test]
    fn another_voice_is_no_echo() {
        for seed in 2..12 {
            let mut detector = EchoDetector::new();
            detector.played(&voice(1, 4 * 16_000));
            detector.heard(&voice(seed, 4 * 16_000));
            let found = detector.find(2 * 16_000, 3 * 16_000).unwrap();
            assert!(!found.is_echo(), "{seed}: {found:?}");
        }
    }

    #[test]
    fn silence_and_what_is_forgotten_have_no_answer() {
        let mut detector = EchoDetector::new();
        assert_eq!(detector.find(0, 1_600), None);
        detector.played(&[0.1; 16_000]);
        detector.heard(&[0.0; 16_000]);
        assert_eq!(detector.find(0, 16_000), None);
        detector.heard(&vec![0.0; 40 * 16_000]);
        assert_eq!(detector.find(0, 16_000), None);
    }
}
