//! From an agent file's settings to engines: which files, which key, which server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use sayback_agentfile::{AgentFile, LlmProvider, LlmSettings};
use sayback_core::{CheckId, CheckRequest, HoldId, Session, ToolCall};
use sayback_media::{Earshot, EndOfTurn, Silero, SileroModel, SpeechProbability};
use sayback_providers::failover::FailoverLlm;
use sayback_providers::grounding::ungrounded;
use sayback_providers::local_llm::{LocalLlm, LocalLlmConfig};
use sayback_providers::models::Manifest;
use sayback_providers::openai::{OpenAi, OpenAiConfig};
use sayback_providers::scripted::Scripted;
use sayback_replay::engines::{BlockOn, NewVad, SoundEngines};
use sayback_runtime::agent::Agent;
use sayback_runtime::driver::Screen;
use sayback_runtime::llm::{Llm, LlmEvent, LlmRequest};
use sayback_runtime::prepare;
use sayback_runtime::prompt::{check_request, step_request};

use crate::exit::Stop;
use crate::kinds::{Kind, other_than};
use crate::tuned::{Tuned, fit_limits};
use crate::vendors;

/// Waits on the binary's own executor.
#[derive(Debug)]
pub(crate) struct Waits(tokio::runtime::Runtime);

impl Waits {
    pub(crate) fn new() -> Result<Self, Stop> {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map(Self)
            .map_err(|error| Stop::missing(format!("cannot start threads: {error}")))
    }

    pub(crate) fn runtime(&self) -> &tokio::runtime::Runtime {
        &self.0
    }
}

impl BlockOn for Waits {
    fn block_on(&self, future: BoxFuture<'_, ()>) {
        self.0.block_on(future);
    }
}

/// How long a model may read before a call that waits for it; behind it nobody expects it to speak any more.
const READING_IN: Duration = Duration::from_secs(900);

/// Reads an agent file; every fault in it is in the message.
pub(crate) fn load_agent(path: &Path) -> Result<AgentFile, Stop> {
    other_than(Kind::Agent, path)?;
    let mut file = sayback_agentfile::load(path).map_err(Stop::unusable)?;
    fit_limits(&mut file);
    Ok(file)
}

fn manifest() -> Result<Manifest, Stop> {
    Manifest::load().map_err(Stop::unusable)
}

/// Where a model's file is; if it is not there, how to get it.
pub(crate) fn model_path(name: &str) -> Result<PathBuf, Stop> {
    let manifest = manifest()?;
    let there = manifest.is_present(name).map_err(Stop::unusable)?;
    if !there {
        return Err(Stop::missing(format!(
            "the model {name} is not here\n  hint: get it with: sayback models fetch {name}"
        )));
    }
    manifest.path(name).map_err(Stop::unusable)
}

/// The agent's own language model, and the one that stands in for it.
pub(crate) async fn llm(settings: &LlmSettings, script: Option<&Path>) -> Result<Arc<dyn Llm>, Stop> {
    let first: Arc<dyn Llm> = Arc::new(Tuned::new(bare_llm(settings, script).await?, settings));
    let Some(fallback) = &settings.fallback else { return Ok(first) };
    let second = Tuned::new(bare_llm(&fallback.engine, script).await?, &fallback.engine);
    Ok(Arc::new(FailoverLlm::new(first, vec![Arc::new(second)], fallback.after)))
}

/// The agent's own model, which reads the prompts that every request of a call begins with while the call starts.
pub(crate) fn warmed_llm(
    waits: &Waits,
    file: &AgentFile,
    script: Option<&Path>,
) -> Result<Arc<dyn Llm>, Stop> {
    waits.runtime().block_on(async {
        let model = llm(&file.llm, script).await?;
        warm(&model, &file.agent);
        Ok(model)
    })
}

/// Has a model read the prompts that every request of a call begins with, beside what else is done.
pub(crate) fn warm(model: &Arc<dyn Llm>, agent: &Agent) {
    let (warming, requests) = (Arc::clone(model), first_requests(agent));
    tokio::spawn(async move { read_in(&warming, requests).await });
}

/// The agent's own model once it has read those prompts: where time is virtual a call can wait until then, however busy
/// the machine is, and is the same for it.
pub(crate) fn read_in_llm(waits: &Waits, file: &AgentFile) -> Result<Arc<dyn Llm>, Stop> {
    waits.runtime().block_on(async {
        let model = llm(&file.llm, None).await?;
        let patient = |request| LlmRequest { first_token: Some(READING_IN), ..request };
        read_in(&model, first_requests(&file.agent).map(patient)).await;
        Ok(model)
    })
}

async fn read_in(model: &Arc<dyn Llm>, requests: impl IntoIterator<Item = LlmRequest>) {
    for request in requests {
        if let Err(error) = model.warm(request).await {
            tracing::warn!("the model could not be warmed: {error}");
        }
    }
}

/// A step and a check as a call's first ones will begin.
fn first_requests(agent: &Agent) -> [LlmRequest; 2] {
    let session = Session::new(agent.policy.clone());
    let check = CheckRequest {
        check: CheckId(0),
        hold: HoldId(0),
        question: String::new(),
        words: String::new(),
        language: agent.language.clone(),
        input: String::new(),
        sounded: sayback_core::Sounded::default(),
        limit: Duration::from_secs(90),
    };
    [step_request(agent, &session, &sayback_runtime::clock::calendar()), check_request(&check)]
}

/// The agent's own model for checks alone, which has read what every check begins with: in a call that is read while the
/// call starts, so no check waits for it.
pub(crate) fn checking_llm(waits: &Waits, agent: &Path) -> Result<Arc<dyn Llm>, Stop> {
    let file = load_agent(agent)?;
    waits.runtime().block_on(async {
        let model = llm(&file.llm, None).await?;
        let [_, check] = first_requests(&file.agent);
        read_in(&model, [check]).await;
        Ok(model)
    })
}

/// What a model says to a check, word for word.
///
/// # Errors
/// What the model's side says if it fails.
pub(crate) async fn said_to_check(model: &Arc<dyn Llm>, request: &CheckRequest) -> Result<String, String> {
    let mut stream = model.stream(check_request(request)).await.map_err(|error| error.to_string())?;
    let mut text = String::new();
    while let Some(event) = stream.next().await {
        if let LlmEvent::Text(piece) = event.map_err(|error| error.to_string())? {
            text.push_str(&piece);
        }
    }
    Ok(text)
}

/// One language model, without the one that stands in for it.
pub(crate) async fn bare_llm(settings: &LlmSettings, script: Option<&Path>) -> Result<Arc<dyn Llm>, Stop> {
    match settings.provider {
        LlmProvider::OpenAi => open_ai(settings),
        LlmProvider::Local => {
            let name = if settings.model.is_empty() { "qwen2.5-coder-1.5b" } else { settings.model.as_str() };
            let path = model_path(local_name(name))?;
            let mut config = LocalLlmConfig::new(path);
            config.threads = settings.threads.unwrap_or(config.threads);
            let started = LocalLlm::start(config).await;
            Ok(Arc::new(started.map_err(Stop::missing)?))
        }
        LlmProvider::Scripted => scripted(script),
        LlmProvider::Anthropic => vendors::anthropic(settings),
    }
}

fn local_name(name: &str) -> &str {
    name.strip_suffix("-instruct").unwrap_or(name)
}

fn open_ai(settings: &LlmSettings) -> Result<Arc<dyn Llm>, Stop> {
    let url = settings.base_url.clone().unwrap_or_else(|| "https://api.openai.com/v1".to_owned());
    let mut config = OpenAiConfig::new(url, settings.model.clone());
    config.key = vendors::key(settings.api_key_env.as_deref())?;
    Ok(Arc::new(OpenAi::new(config).map_err(Stop::unusable)?))
}

/// A scripted model: see [`crate::script`].
fn scripted(script: Option<&Path>) -> Result<Arc<dyn Llm>, Stop> {
    let Some(path) = script else {
        return Err(Stop::unusable(
            "[llm] provider = \"scripted\" needs a script\n  hint: give one with --script FILE, or name another provider",
        ));
    };
    let (steps, verdicts) = crate::script::load(path)?;
    Ok(Arc::new(Scripted::new(steps, verdicts)))
}

/// Engines that hear and speak.
pub(crate) fn sound(file: &AgentFile) -> Result<SoundEngines, Stop> {
    let stt = vendors::stt(&file.stt, &file.agent.language)?;
    let tts = vendors::tts(&file.tts, &file.agent.language)?;
    let end_of_turn = match model_path("smart-turn") {
        Ok(path) => Some(Arc::new(EndOfTurn::load(&path, 1).map_err(Stop::missing)?)),
        Err(_) => None,
    };
    Ok(SoundEngines { vad: vad()?, stt, tts, end_of_turn })
}

/// Silero where its file is, the light model with weights inside elsewhere.
pub(crate) fn vad() -> Result<NewVad, Stop> {
    let Ok(path) = model_path("silero-vad") else {
        return Ok(Arc::new(|| Box::new(Earshot::default()) as Box<dyn SpeechProbability>));
    };
    let model = SileroModel::load(&path, 1).map_err(Stop::missing)?;
    Ok(Arc::new(move || Box::new(Silero::new(&model)) as Box<dyn SpeechProbability>))
}

/// Refuses arguments that the caller never said: small models invent them.
#[derive(Debug)]
pub(crate) struct Grounding {
    today: String,
}

impl Grounding {
    pub(crate) fn new() -> Self {
        Self { today: sayback_runtime::clock::today() }
    }
}

impl Screen for Grounding {
    fn refuse(&self, agent: &Agent, call: &ToolCall, said: &[String]) -> Option<String> {
        let (_, tool) = prepare::find(agent, &call.name)?;
        let input = sayback_runtime::frozen::parse_strict(&call.input).ok()?;
        let invented = ungrounded(&input, &tool.info().schema, said, Some(&self.today));
        let shown = |path: &String| match input.pointer(path) {
            Some(value) => format!("{} = {value}", path.trim_start_matches('/')),
            None => path.clone(),
        };
        let list: Vec<String> = invented.iter().map(shown).collect();
        (!list.is_empty()).then(|| {
            format!(
                "The caller has not said this: {}. Do not make values up: take them from what the caller said, or ask.{}",
                list.join(", "),
                sayback_runtime::clock::days_named(&said.join(" "))
            )
        })
    }
}
