//! Speech recognition on this machine with whisper.cpp.
//!
//! One model serves all calls; each running call borrows a state from a pool. The recogniser gets no prompt: words
//! it was told to expect would come back as words it heard, and a confirmation would hang on them. What it makes up
//! on noise, music or foreign speech is kept and marked as a phantom (see `phantom`), so that the log shows it.

mod phantom;
mod words;

use sayback_runtime::stt::{Cancel, SttError, Transcribe, Transcription};
use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use whisper_rs::{FullParams, SamplingStrategy, WhisperContext, WhisperContextParameters, WhisperState};

/// Samples per second of what goes in.
pub const SAMPLE_RATE: usize = 16_000;
/// The least length that whisper.cpp gives words for, with room: shorter sound is padded with silence.
const SHORTEST: usize = SAMPLE_RATE * 5 / 4;
/// Silence put before the sound: without it the no-speech probability of a word that begins at once doubles, and
/// some short words are not found.
const LEAD: usize = SAMPLE_RATE / 10;
/// Encoder positions per second.
const POSITIONS: usize = 50;
/// Below this many positions word errors grow from 6 to 53 in a hundred.
const LEAST_CONTEXT: usize = 512;
const WHOLE_CONTEXT: usize = 1500;
/// Sound up to this length fits the least context with room; longer finals get more, for quality.
const SHORT_FINAL: usize = 5 * SAMPLE_RATE;
const LONG_CONTEXT: usize = 768;
const SECOND_CONTEXT: usize = 1024;

/// More threads than this wait for each other longer than they compute, with models of this size.
const MOST_THREADS: usize = 4;

/// How recognition is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhisperOptions {
    /// The language spoken, as in ISO 639-1; a model for English alone knows no other.
    pub language: String,
    /// Threads of one recognition; `None` shares the free cores between the recognitions that run.
    pub threads: Option<usize>,
}

impl Default for WhisperOptions {
    fn default() -> Self {
        Self { language: "en".to_owned(), threads: None }
    }
}

/// A Whisper model. Cloning is cheap, and all clones share one model and one pool of states.
#[derive(Clone, Debug)]
pub struct Whisper {
    engine: Arc<Engine>,
    options: WhisperOptions,
}

struct Engine {
    context: WhisperContext,
    name: String,
    idle: Mutex<Vec<WhisperState>>,
    running: AtomicUsize,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Engine").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Whisper {
    /// Loads the model at `path`, a ggml file such as `ggml-tiny.en-q8_0.bin`.
    pub fn load(path: &Path, options: WhisperOptions) -> Result<Self, SttError> {
        let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let short = stem.strip_prefix("ggml-").unwrap_or(&stem);
        if !path.is_file() {
            let size = short.split("-q").next().unwrap_or(short);
            return Err(SttError::MissingModel { model: format!("whisper-{size}") });
        }
        // Neither log feature of the crate is on, so this sends whisper.cpp's own lines nowhere.
        whisper_rs::install_logging_hooks();
        let bad = |reason: String| SttError::BadModel { path: path.display().to_string(), reason };
        let mut parameters = WhisperContextParameters::default();
        // Flash attention saves memory and costs time on a CPU (a tenth here).
        parameters.use_gpu(false).flash_attn(false);
        let context =
            WhisperContext::new_with_params(path, parameters).map_err(|error| bad(error.to_string()))?;
        let engine = Engine {
            context,
            name: format!("whisper/{short}"),
            idle: Mutex::new(Vec::new()),
            running: AtomicUsize::new(0),
        };
        let whisper = Self { engine: Arc::new(engine), options };
        whisper.check_language().map_err(bad)?;
        Ok(whisper)
    }

    /// The same model for another language, sharing memory with this one.
    pub fn with_language(&self, language: &str) -> Result<Self, SttError> {
        let options = WhisperOptions { language: language.to_owned(), ..self.options.clone() };
        let other = Self { engine: self.engine.clone(), options };
        other.check_language().map_err(SttError::Failed)?;
        Ok(other)
    }

    fn check_language(&self) -> Result<(), String> {
        let language = self.options.language.as_str();
        if whisper_rs::get_lang_id(language).is_none() {
            return Err(format!(
                "Whisper knows no language {language:?}; write it as in ISO 639-1, such as en or de"
            ));
        }
        if language != "en" && !self.engine.context.is_multilingual() {
            return Err(format!("this model knows English alone, not {language:?}; take whisper-base"));
        }
        Ok(())
    }

    fn parameters<'a>(&'a self, samples: usize, pass: Pass, cancel: &'a Cancel) -> FullParams<'a, 'a> {
        let partial = pass == Pass::Partial;
        let mut parameters = FullParams::new(SamplingStrategy::Greedy { best_of: 1 });
        parameters.set_language(Some(&self.options.language));
        parameters.set_n_threads(i32::try_from(self.threads()).unwrap_or(1));
        parameters.set_audio_ctx(i32::try_from(audio_context(samples, pass)).unwrap_or(0));
        parameters.set_max_tokens(i32::try_from(most_tokens(samples)).unwrap_or(0));
        parameters.set_single_segment(true);
        parameters.set_no_context(true);
        parameters.set_temperature(0.0);
        parameters.set_temperature_inc(0.0);
        // Nothing is dropped inside: what is doubtful comes out and is marked.
        parameters.set_no_speech_thold(2.0);
        parameters.set_suppress_blank(true);
        parameters.set_suppress_nst(false);
        parameters.set_no_timestamps(partial);
        parameters.set_token_timestamps(!partial);
        parameters.set_print_special(false);
        parameters.set_print_progress(false);
        parameters.set_print_realtime(false);
        parameters.set_print_timestamps(false);
        abort_when(&mut parameters, cancel);
        parameters
    }

    /// The free cores shared between running recognitions. ggml's threads wait for each other spinning: on busy
    /// cores two threads take several times as long as one.
    fn threads(&self) -> usize {
        let running = self.engine.running.load(Ordering::Relaxed).max(1);
        self.options.threads.unwrap_or_else(|| (free_cores() / running).clamp(1, MOST_THREADS))
    }

    /// One pass over the sound, judged.
    fn run(&self, pcm: &[f32], pass: Pass, cancel: &Cancel) -> Result<Transcription, SttError> {
        let engine = &*self.engine;
        let failed = |error: whisper_rs::WhisperError| match cancel.is_cancelled() {
            true => SttError::Cancelled,
            false => SttError::Failed(error.to_string()),
        };
        let idle = || engine.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let borrowed = idle().pop();
        let mut state = match borrowed {
            Some(state) => state,
            None => engine.context.create_state().map_err(failed)?,
        };
        let padded = padded(pcm);
        let outcome = state.full(self.parameters(padded.len(), pass, cancel), &padded);
        let transcription =
            outcome.map(|()| words::read(&state, &engine.context, pcm.len(), pass != Pass::Partial));
        idle().push(state);
        if cancel.is_cancelled() {
            return Err(SttError::Cancelled);
        }
        let mut heard = transcription.map_err(failed)?;
        heard.phantom = phantom::reason(&heard, pcm, &self.options.language).map(str::to_owned);
        Ok(heard)
    }
}

impl Transcribe for Whisper {
    fn name(&self) -> String {
        self.engine.name.clone()
    }

    fn transcribe(&self, pcm: &[f32], partial: bool, cancel: &Cancel) -> Result<Transcription, SttError> {
        if cancel.is_cancelled() {
            return Err(SttError::Cancelled);
        }
        if phantom::is_silent(pcm) {
            return Ok(Transcription { no_speech: 1.0, ..Transcription::default() });
        }
        let _running = Running::new(&self.engine.running);
        let first = self.run(pcm, if partial { Pass::Partial } else { Pass::Final }, cancel)?;
        if partial || first.phantom.as_deref() != Some("loop") {
            return Ok(first);
        }
        // A real phrase loops now and then for want of context; final words are worth a second look.
        self.run(pcm, Pass::Again, cancel)
    }
}

/// What a pass over the sound is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// The caller still speaks.
    Partial,
    /// The caller has spoken.
    Final,
    /// The words of the final pass went round in circles.
    Again,
}

/// Counts a running recognition for as long as it lives.
struct Running<'a>(&'a AtomicUsize);

impl<'a> Running<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Cores that nothing runs on at this moment, where the system tells; else all of them.
fn free_cores() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    // The fourth field is "runnable/all", and this thread is one of the runnable.
    let runnable = load.split(' ').nth(3).and_then(|field| field.split('/').next()?.parse().ok());
    cores.saturating_sub(runnable.unwrap_or(1_usize).saturating_sub(1)).max(1)
}

/// The sound with a little silence before it and some behind it, long enough for whisper.cpp. Values that are no
/// numbers become silence.
fn padded(pcm: &[f32]) -> Vec<f32> {
    let finite = |&sample: &f32| if sample.is_finite() { sample.clamp(-1.0, 1.0) } else { 0.0 };
    let mut samples = vec![0.0; LEAD];
    samples.extend(pcm.iter().map(finite));
    samples.resize(samples.len().max(SHORTEST), 0.0);
    samples
}

fn audio_context(samples: usize, pass: Pass) -> usize {
    let needed = (samples * POSITIONS).div_ceil(SAMPLE_RATE) + POSITIONS / 2;
    let least = match pass {
        Pass::Again => SECOND_CONTEXT,
        Pass::Final if samples > SHORT_FINAL => LONG_CONTEXT,
        Pass::Final | Pass::Partial => LEAST_CONTEXT,
    };
    needed.next_multiple_of(64).clamp(least, WHOLE_CONTEXT)
}

/// No caller says more than eight tokens a second; a loop that is cut there costs little time.
fn most_tokens(samples: usize) -> usize {
    8 * samples.min(30 * SAMPLE_RATE) / SAMPLE_RATE + 8
}

/// Has a recognition ask `cancel` between the steps of its computation.
#[expect(
    unsafe_code,
    reason = "whisper-rs's safe setter reads its closure through a wrong type and leaks it"
)]
fn abort_when<'a>(parameters: &mut FullParams<'a, 'a>, cancel: &'a Cancel) {
    unsafe extern "C" fn asked_to_stop(cancel: *mut c_void) -> bool {
        // SAFETY: the pointer is the one set below, which comes from a reference that outlives the parameters.
        unsafe { &*cancel.cast::<Cancel>() }.is_cancelled()
    }
    // SAFETY: the callback reads an atomic flag through the pointer set with it; both live as long as `parameters`.
    unsafe {
        parameters.set_abort_callback(Some(asked_to_stop));
        parameters.set_abort_callback_user_data(std::ptr::from_ref(cancel).cast_mut().cast());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_covers_the_sound_and_is_never_below_the_least() {
        for tenths in 0..300 {
            let samples = tenths * SAMPLE_RATE / 10;
            for pass in [Pass::Partial, Pass::Final, Pass::Again] {
                let context = audio_context(samples, pass);
                assert!((LEAST_CONTEXT..=WHOLE_CONTEXT).contains(&context));
                assert!(context * SAMPLE_RATE >= samples * POSITIONS, "{tenths}: {context}");
            }
        }
    }

    #[test]
    fn rubbish_samples_become_silence_and_short_sound_is_padded() {
        let samples = padded(&[f32::NAN, f32::INFINITY, 7.0, 0.5]);
        assert_eq!((samples.len(), &samples[LEAD..LEAD + 4]), (SHORTEST, &[0.0, 0.0, 1.0, 0.5][..]));
    }
}
