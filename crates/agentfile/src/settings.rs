//! What an agent file says besides the agent: models, voice, line, privacy. Resolved: every field has its value.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::reader::Section;

mod speech;

pub use speech::{SttProvider, SttSettings, TtsProvider, TtsSettings};
pub(crate) use speech::{stt, tts};

/// Who answers for the language model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlmProvider {
    /// Any server that speaks OpenAI's chat completions.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// A model that runs beside us, without a key.
    Local,
    /// The steps that a scenario gives.
    Scripted,
}

impl LlmProvider {
    /// Its name in agent files and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Local => "local",
            Self::Scripted => "scripted",
        }
    }
}

/// The language model.
#[derive(Clone, Debug, PartialEq)]
pub struct LlmSettings {
    /// Who answers.
    pub provider: LlmProvider,
    /// Where, without a trailing slash; `None`: the provider's own address.
    pub base_url: Option<String>,
    /// Which model.
    pub model: String,
    /// The environment variable that holds the key; `None`: no key is sent.
    pub api_key_env: Option<String>,
    /// Sampling temperature; `None`: the provider's default.
    pub temperature: Option<f32>,
    /// Most tokens of a step; `None`: the provider's default.
    pub max_tokens: Option<u32>,
    /// Threads of the local model; `None`: its own two.
    pub threads: Option<u16>,
    /// Longest wait for the first piece of a step.
    pub first_token: Duration,
    /// Longest wait between two pieces.
    pub between_tokens: Duration,
    /// Who answers when this one does not.
    pub fallback: Option<Box<Fallback<LlmSettings>>>,
}

impl LlmSettings {
    /// Whether the model beside us may answer, be it as a fallback: small models need more time and a closer look.
    pub fn may_be_local(&self) -> bool {
        let local = |settings: &Self| settings.provider == LlmProvider::Local;
        local(self) || self.fallback.as_ref().is_some_and(|fallback| local(&fallback.engine))
    }
}

/// An engine that takes over when the first one fails or is slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback<T> {
    /// The engine.
    pub engine: T,
    /// How long the first one may take.
    pub after: Duration,
}

/// What stands at the other end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// A carrier's gateway: what it reports says nothing about the caller's ear.
    Trunk,
    /// The caller's own device.
    Endpoint,
}

/// The telephone line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineSettings {
    /// What stands at the other end.
    pub far: FarEnd,
    /// The loop from our output to our input where nothing measures it.
    pub assumed_loop: Duration,
}

/// A kind of personal detail that is replaced in logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Redact {
    /// Telephone numbers.
    Phone,
    /// E-mail addresses.
    Email,
    /// Card numbers.
    Card,
    /// Bank account numbers.
    Iban,
}

/// What is kept of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privacy {
    /// What is replaced in logs.
    pub redact: Vec<Redact>,
    /// Whether sound is recorded.
    pub record: bool,
}

/// The built-in model of `provider = "local"`, by its name in the models' manifest.
const LOCAL_MODEL: &str = "qwen2.5-coder-1.5b-instruct";

/// How long a language model that has a fallback may take for its first piece.
const LLM_AFTER: Duration = Duration::from_secs(4);

pub(crate) fn llm(section: Option<Section<'_>>) -> LlmSettings {
    let Some(section) = section else { return llm_defaults() };
    let mut settings = llm_engine(&section);
    settings.fallback = fallback(&section, LLM_AFTER, llm_engine);
    section.finish();
    settings
}

fn llm_defaults() -> LlmSettings {
    LlmSettings {
        provider: LlmProvider::Local,
        base_url: None,
        model: LOCAL_MODEL.to_owned(),
        api_key_env: None,
        temperature: None,
        max_tokens: None,
        threads: None,
        first_token: Duration::from_secs(15),
        between_tokens: Duration::from_secs(10),
        fallback: None,
    }
}

fn llm_engine(section: &Section<'_>) -> LlmSettings {
    let mut settings = llm_defaults();
    let providers = [
        ("openai", LlmProvider::OpenAi),
        ("anthropic", LlmProvider::Anthropic),
        ("local", LlmProvider::Local),
        ("scripted", LlmProvider::Scripted),
    ];
    settings.provider = section.one_of("provider", &providers).unwrap_or(settings.provider);
    settings.base_url = base_url(section, &["http", "https"]);
    settings.api_key_env = match settings.provider {
        LlmProvider::OpenAi => api_key_env(section, "OPENAI_API_KEY"),
        LlmProvider::Anthropic => api_key_env(section, "ANTHROPIC_API_KEY"),
        LlmProvider::Local | LlmProvider::Scripted => env_name(section, "api_key_env"),
    };
    settings.temperature = section.number("temperature", 0.0, 2.0).map(|t| t as f32);
    settings.max_tokens = section.integer("max_tokens", 1, 100_000).and_then(|n| u32::try_from(n).ok());
    settings.first_token = section.duration("first_token").unwrap_or(settings.first_token);
    settings.between_tokens = section.duration("between_tokens").unwrap_or(settings.between_tokens);
    match settings.provider {
        LlmProvider::OpenAi => settings.model = section.required_text("model", "gpt-4o-mini"),
        LlmProvider::Anthropic => settings.model = section.required_text("model", "claude-haiku-4-5"),
        LlmProvider::Local | LlmProvider::Scripted => {
            settings.model = section.text("model").unwrap_or(settings.model);
            settings.threads = section.integer("threads", 1, 256).and_then(|n| u16::try_from(n).ok());
        }
    }
    settings
}

/// The table `fallback`: an engine like the one beside it, and how long that one may take.
fn fallback<T>(
    section: &Section<'_>,
    after: Duration,
    engine: impl Fn(&Section<'_>) -> T,
) -> Option<Box<Fallback<T>>> {
    let table = section.child("fallback")?;
    if !table.has("provider") {
        table.fault_here("a fallback has no `provider`", "say which engine takes over");
    }
    let fallback = Fallback { after: table.duration("after").unwrap_or(after), engine: engine(&table) };
    table.finish();
    Some(Box::new(fallback))
}

/// The variable that holds the key: as written, or the vendor's usual one where the vendor itself is asked. A server of
/// one's own is sent a key only if the file says so.
fn api_key_env(section: &Section<'_>, usual: &str) -> Option<String> {
    let named = env_name(section, "api_key_env");
    named.or_else(|| (!section.has("base_url") && !section.has("api_key_env")).then(|| usual.to_owned()))
}

fn base_url(section: &Section<'_>, schemes: &[&str]) -> Option<String> {
    let text = section.text("base_url")?;
    let usable = reqwest::Url::parse(&text).is_ok_and(|url| schemes.contains(&url.scheme()));
    if !usable {
        let hint = "write it like \"http://127.0.0.1:11434/v1\"";
        section.fault_at("base_url", format!("`base_url` is no {} address", schemes.join(" or ")), hint);
    }
    usable.then(|| text.trim_end_matches('/').to_owned())
}

/// The name of an environment variable; a key in its place is refused without being shown.
pub(crate) fn env_name(section: &Section<'_>, key: &'static str) -> Option<String> {
    let name = section.text(key)?;
    let usable = !name.is_empty()
        && name.len() <= 100
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if !usable {
        let hint = "write the variable's name in capitals, like \"OPENAI_API_KEY\"; the key itself stays out of the file";
        section.fault_at(key, format!("`{key}` is not the name of an environment variable"), hint);
    }
    usable.then_some(name)
}

pub(crate) fn line(section: Option<Section<'_>>) -> LineSettings {
    let mut settings = LineSettings { far: FarEnd::Trunk, assumed_loop: Duration::from_millis(350) };
    let Some(section) = section else { return settings };
    let ends = [("trunk", FarEnd::Trunk), ("endpoint", FarEnd::Endpoint)];
    settings.far = section.one_of("far", &ends).unwrap_or(settings.far);
    settings.assumed_loop = section.duration("assumed_loop").unwrap_or(settings.assumed_loop);
    section.finish();
    settings
}

pub(crate) fn privacy(section: Option<Section<'_>>) -> Privacy {
    let kinds = BTreeMap::from([
        ("phone", Redact::Phone),
        ("email", Redact::Email),
        ("card", Redact::Card),
        ("iban", Redact::Iban),
    ]);
    let mut settings = Privacy { redact: vec![Redact::Phone, Redact::Email, Redact::Card], record: false };
    let Some(section) = section else { return settings };
    if let Some(words) = section.texts("redact") {
        settings.redact.clear();
        for (word, span) in words {
            match kinds.get(word.as_str()) {
                Some(kind) => settings.redact.push(*kind),
                None => section.reader().fault(
                    span,
                    format!("`redact` does not know `{word}`"),
                    "use `phone`, `email`, `card` or `iban`",
                ),
            }
        }
    }
    settings.record = section.boolean("record").unwrap_or(false);
    section.finish();
    settings
}
