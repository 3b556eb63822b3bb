//! The model's own thread: one answer at a time, from the prompt's cache, under a grammar.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anyhow::Context;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

use crate::answer::{Answer, Part};
use crate::api::ChatRequest;
use crate::grammar;
use crate::prompt::{Piece, prompt};
use crate::slots::Slots;

/// Tokens read at once: a caller who hangs up is noticed between two batches, so about once a second.
const BATCH: usize = 64;
/// Most tokens of an answer for which the request names no limit.
const MOST_TOKENS: u32 = 512;
/// Answers that wait for their turn; more are refused, since their callers would wait in vain.
const WAITING: usize = 8;

/// What the engine is started with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) model: PathBuf,
    pub(crate) threads: i32,
    pub(crate) slots: u16,
    /// Tokens per slot.
    pub(crate) context: u32,
}

/// One answer to give.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: ChatRequest,
    /// Where the pieces go; when nobody listens any more, the answer is given up.
    pub(crate) pieces: tokio::sync::mpsc::Sender<Output>,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Output {
    /// Speech, or a whole call.
    Part(Part),
    /// The end.
    End(Ending),
    /// It cannot be answered: whose fault as HTTP says it, and why.
    Failed(u16, String),
}

/// How an answer ended and what it took.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ending {
    pub(crate) was_cut: bool,
    pub(crate) called: bool,
    pub(crate) prompt_tokens: usize,
    pub(crate) cached_tokens: usize,
    pub(crate) answer_tokens: usize,
    pub(crate) prompt_us: i64,
    pub(crate) answer_us: i64,
}

/// Where jobs are handed in.
pub(crate) type Jobs = SyncSender<Job>;

/// Loads the model on a thread of its own; returns once it has computed its first token.
pub(crate) fn start(settings: Settings) -> anyhow::Result<Jobs> {
    let (jobs, waiting) = sync_channel(WAITING);
    let (ready, is_ready) = sync_channel(1);
    std::thread::Builder::new().name("model".to_owned()).spawn(move || {
        if let Err(error) = load_and_answer(&settings, &waiting, &ready) {
            // If it failed after loading, nobody waits for this; the closed channel tells the server.
            let _ = ready.send(Err(error));
        }
    })?;
    is_ready.recv().context("the model's thread ended while loading")??;
    Ok(jobs)
}

fn load_and_answer(
    settings: &Settings,
    waiting: &Receiver<Job>,
    ready: &SyncSender<anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let mut backend = LlamaBackend::init()?;
    backend.void_logs();
    let model = LlamaModel::load_from_file(&backend, &settings.model, &LlamaModelParams::default())
        .with_context(|| format!("cannot load {}: is it a whole GGUF file?", settings.model.display()))?;
    let tokens = settings.context.saturating_mul(u32::from(settings.slots));
    let batch = u32::try_from(BATCH).context("the batch size fits")?;
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(tokens))
        .with_n_seq_max(u32::from(settings.slots))
        .with_n_batch(batch)
        .with_n_ubatch(batch)
        .with_n_threads(settings.threads)
        .with_n_threads_batch(settings.threads);
    let context = model.new_context(&backend, params).context("cannot set up the model")?;
    let slots = Slots::new(usize::from(settings.slots));
    let limit = usize::try_from(settings.context).context("the context size fits")?;
    let mut engine = Engine { model: &model, context, slots, limit, batch: LlamaBatch::new(BATCH, 1) };
    engine.touch()?;
    // Nobody waits any more only if the program is ending.
    let _ = ready.send(Ok(()));
    while let Ok(job) = waiting.recv() {
        engine.serve(&job);
    }
    Ok(())
}

struct Engine<'a> {
    model: &'a LlamaModel,
    context: LlamaContext<'a>,
    slots: Slots<LlamaToken>,
    limit: usize,
    batch: LlamaBatch<'static>,
}

/// Why an answer ended early.
enum Stop {
    NobodyListens,
    Failed(u16, String),
}

impl<E: std::error::Error> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(500, error.to_string())
    }
}

impl Engine<'_> {
    /// Has the whole model read from disk once, so that the first caller does not wait for it.
    fn touch(&mut self) -> anyhow::Result<()> {
        let tokens = self.model.vocab().tokenize(b"Hello", false, false);
        for (at, token) in (0..).zip(&tokens) {
            self.batch.add(*token, at, &[0], false)?;
        }
        self.context.decode(&mut self.batch)?;
        self.batch.clear();
        self.context.clear_kv_cache();
        Ok(())
    }

    fn serve(&mut self, job: &Job) {
        let last = match self.answer(job) {
            Ok(ending) => Output::End(ending),
            Err(Stop::Failed(status, message)) => Output::Failed(status, message),
            Err(Stop::NobodyListens) => return,
        };
        // Whoever does not listen needs no ending.
        let _ = job.pieces.blocking_send(last);
    }

    fn answer(&mut self, job: &Job) -> Result<Ending, Stop> {
        let request = &job.request;
        let prompt = self.tokens(&prompt(request));
        let most = request.max_tokens.unwrap_or(MOST_TOKENS);
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(self.limit.saturating_sub(prompt.len()));
        if prompt.len() >= self.limit {
            let message = format!("the conversation has {} tokens, the context {}", prompt.len(), self.limit);
            return Err(Stop::Failed(400, message));
        }
        let mut sampler = Sampler::new(self.model, request)?;
        let began = llama_cpp_2::ggml_time_us();
        let place = self.slots.place(&prompt);
        self.forget_after(place.slot, place.kept);
        self.read(place.slot, place.kept, &prompt[place.kept..], job)?;
        let read = llama_cpp_2::ggml_time_us();
        let mut ending =
            Ending { prompt_tokens: prompt.len(), cached_tokens: place.kept, ..Ending::default() };
        self.generate(place.slot, prompt.len(), most, &mut sampler, (job, &mut ending))?;
        ending.prompt_us = read - began;
        ending.answer_us = llama_cpp_2::ggml_time_us() - read;
        Ok(ending)
    }

    fn generate(
        &mut self,
        slot: usize,
        from: usize,
        most: usize,
        sampler: &mut Sampler,
        (job, ending): (&Job, &mut Ending),
    ) -> Result<(), Stop> {
        let mut answer = Answer::new(!job.request.tools.is_empty());
        let vocab = self.model.vocab();
        for at in 0..most {
            let token = sampler.next(&self.context);
            if vocab.is_eog(token) {
                return Ok(());
            }
            ending.answer_tokens += 1;
            let bytes = vocab.detokenize(&[token], false, true);
            if let Some(part) = answer.push(&bytes) {
                ending.called = matches!(part, Part::Call { .. });
                job.pieces.blocking_send(Output::Part(part)).map_err(|_| Stop::NobodyListens)?;
            }
            if ending.called || is_decided(&job.request.choices, answer.text()) {
                return Ok(());
            }
            self.read(slot, from + at, &[token], job)?;
        }
        ending.was_cut = true;
        Ok(())
    }

    /// Reads tokens into the slot's cache, the first at position `from`.
    fn read(&mut self, slot: usize, from: usize, tokens: &[LlamaToken], job: &Job) -> Result<(), Stop> {
        let sequence = i32::try_from(slot)?;
        let mut position = i32::try_from(from)?;
        for piece in tokens.chunks(BATCH) {
            if job.pieces.is_closed() {
                return Err(Stop::NobodyListens);
            }
            self.batch.clear();
            for (at, token) in piece.iter().enumerate() {
                self.batch.add(*token, position, &[sequence], at + 1 == piece.len())?;
                position += 1;
            }
            if let Err(error) = self.context.decode(&mut self.batch) {
                self.forget_after(slot, 0);
                self.slots.clear(slot);
                return Err(error.into());
            }
            self.slots.extend(slot, piece);
        }
        Ok(())
    }

    fn forget_after(&mut self, slot: usize, kept: usize) {
        let sequence = u32::try_from(slot).ok();
        let kept = u32::try_from(kept).ok();
        // Removing a tail always succeeds with this model family's cache, and an invalid range removes nothing.
        let _ = self.context.clear_kv_cache_seq(sequence, kept, None);
    }

    fn tokens(&self, pieces: &[Piece]) -> Vec<LlamaToken> {
        let vocab = self.model.vocab();
        let mut tokens = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Markup(text) => vocab.tokenize_into(text.as_bytes(), &mut tokens, false, true),
                Piece::Words(text) if text.is_empty() => {}
                Piece::Words(text) => vocab.tokenize_into(text.as_bytes(), &mut tokens, false, false),
            }
        }
        tokens
    }
}

/// Whether the answer is one of `choices` and no longer one begins with it.
fn is_decided(choices: &[String], text: &str) -> bool {
    let mut beginning = choices.iter().filter(|choice| choice.starts_with(text));
    beginning.next().is_some_and(|choice| choice == text) && beginning.next().is_none()
}

/// Chooses tokens under a grammar.
struct Sampler {
    grammar: Option<LlamaSampler>,
    chooser: Option<LlamaSampler>,
}

impl Sampler {
    fn new(model: &LlamaModel, request: &ChatRequest) -> Result<Self, Stop> {
        let rules = match (request.choices.is_empty(), request.tools.is_empty()) {
            (false, _) => Some(grammar::one_of(&request.choices)),
            (true, false) => Some(grammar::speech_or_call(&request.tools)),
            (true, true) => None,
        };
        let grammar = rules.map(|rules| LlamaSampler::grammar(model, &rules, "root")).transpose();
        let grammar =
            grammar.map_err(|error| Stop::Failed(400, format!("no grammar for these tools: {error}")))?;
        let warmth = request.temperature.filter(|warmth| warmth.is_finite() && *warmth > 0.0);
        let chooser = warmth.map(|warmth| {
            let seed = request.seed.unwrap_or(0);
            let steps =
                [LlamaSampler::top_k(40), LlamaSampler::top_p(0.9, 1), LlamaSampler::temp(warmth.min(2.0))];
            LlamaSampler::chain_simple(steps.into_iter().chain([LlamaSampler::dist(seed)]))
        });
        Ok(Self { grammar, chooser })
    }

    /// The next token.
    ///
    /// A grammar looks at all 150,000 tokens, which takes longer than the model itself does. The model nearly
    /// always wants what the grammar allows, so its choice is made first and only checked; all others are looked
    /// at where the check fails.
    fn next(&mut self, context: &LlamaContext<'_>) -> LlamaToken {
        let mut token = self.choose(context.token_data_array());
        if let Some(grammar) = &mut self.grammar {
            let mut wanted = LlamaTokenDataArray::new(vec![LlamaTokenData::new(token, 1.0, 0.0)], false);
            wanted.apply_sampler(grammar);
            if wanted.data.first().is_none_or(|data| data.logit() == f32::NEG_INFINITY) {
                let mut allowed = context.token_data_array();
                allowed.apply_sampler(grammar);
                token = self.choose(allowed);
            }
        }
        if let Some(grammar) = &mut self.grammar {
            grammar.accept(token);
        }
        token
    }

    fn choose(&mut self, mut candidates: LlamaTokenDataArray) -> LlamaToken {
        if let Some(chooser) = &mut self.chooser {
            candidates.apply_sampler(chooser);
            if let Some(token) = candidates.selected_token() {
                chooser.accept(token);
                return token;
            }
        }
        let likeliest = candidates.data.iter().max_by(|a, b| a.logit().total_cmp(&b.logit()));
        likeliest.map_or(LlamaToken::new(0), LlamaTokenData::id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The letters of a model, without its weights; `None` where no model is at hand.
    fn letters() -> Option<(LlamaBackend, LlamaModel)> {
        let Some(path) = std::env::var_os("SAYBACK_LLM_MODEL") else {
            eprintln!("SKIPPED: SAYBACK_LLM_MODEL names no model, so the grammars are not tried");
            return None;
        };
        let mut backend = LlamaBackend::init().unwrap();
        backend.void_logs();
        let only_letters = LlamaModelParams::default().with_vocab_only(true);
        let model = LlamaModel::load_from_file(&backend, &path, &only_letters).unwrap();
        Some((backend, model))
    }

    /// Whether the grammar lets `text` through and an answer may end there.
    fn lets_through(model: &LlamaModel, rules: &str, text: &str) -> bool {
        let mut grammar = LlamaSampler::grammar(model, rules, "root").unwrap();
        let vocab = model.vocab();
        let tokens = vocab.tokenize(text.as_bytes(), false, true);
        tokens.into_iter().chain([vocab.eos()]).all(|token| {
            let mut wanted = LlamaTokenDataArray::new(vec![LlamaTokenData::new(token, 1.0, 0.0)], false);
            wanted.apply_sampler(&mut grammar);
            let is_allowed = wanted.data.first().is_some_and(|data| data.logit().is_finite());
            if is_allowed {
                grammar.accept(token);
            }
            is_allowed
        })
    }

    #[test]
    fn grammars_let_through_what_the_schemas_allow_and_nothing_else() {
        let Some((_backend, model)) = letters() else { return };
        let tools = serde_json::json!([
            {"function": {"name": "book", "parameters": {"type": "object", "required": ["name", "date"], "properties": {
                "name": {"type": "string"}, "date": {"type": "string", "format": "date"},
                "time": {"type": "string", "format": "time"}, "kind": {"enum": ["a", "b"]},
                "guests": {"type": "array", "items": {"type": "integer"}}}}}},
            {"function": {"name": "hang_up", "parameters": {"type": "object", "properties": {}}}},
        ]);
        let rules = grammar::speech_or_call(&serde_json::from_value::<Vec<crate::api::Tool>>(tools).unwrap());
        for text in [
            "Für wen, bitte?",
            "<tool_call>\n{\"name\": \"hang_up\", \"arguments\": {}}",
            "One moment. ```json\n{\"name\": \"hang_up\", \"arguments\": {}}",
            "{\"name\": \"book\", \"arguments\": {\"name\": \"Zoë \\\"Z\\\" 山田\", \"date\": \"2026-12-03\"}}",
            "{\"name\": \"book\", \"arguments\": {\"name\":\"A\",\"date\":\"2026-12-03\",\"time\":\"15:30\",\"guests\":[1, -2]}}",
            "{\"name\": \"book\", \"arguments\": {\"name\": \"A\", \"date\": \"2026-12-03\", \"kind\": \"b\"}}",
        ] {
            assert!(lets_through(&model, &rules, text), "{text}");
        }
        for text in [
            "",
            "a < b",
            "{\"name\": \"fly\", \"arguments\": {}}",
            "{\"name\": \"book\", \"arguments\": {\"name\": \"A\"}}",
            "{\"name\": \"book\", \"arguments\": {\"name\": \"A\", \"date\": \"Thursday\"}}",
            "{\"name\": \"book\", \"arguments\": {\"name\": \"A\", \"date\": \"2026-12-03\", \"kind\": \"c\"}}",
            "{\"name\": \"hang_up\", \"arguments\": {}} and more",
        ] {
            assert!(!lets_through(&model, &rules, text), "{text}");
        }
    }

    #[test]
    fn a_choice_is_decided_once_no_longer_one_is_possible() {
        let choices = ["no".to_owned(), "not sure".to_owned(), "yes".to_owned()];
        assert!(is_decided(&choices, "yes") && is_decided(&choices, "not sure"));
        for open in ["", "ye", "no", "maybe"] {
            assert!(!is_decided(&choices, open), "{open}");
        }
        assert!(!is_decided(&[], ""));
    }
}
