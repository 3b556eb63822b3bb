//! `sayback doctor`: what works here, what is missing, and the command that mends it.

use std::path::PathBuf;

use sayback_agentfile::{AgentFile, LlmProvider, SttProvider, TtsProvider};
use sayback_providers::local_llm::find_program;
use sayback_providers::models::Manifest;
use sayback_runtime::llm::LlmRequest;

use crate::answered::{mend, one_word};
use crate::engines::{Waits, bare_llm, load_agent};
use crate::exit::{MISSING, Stop};
use crate::vendors::BUILT_IN;

/// What to look at.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// An agent file: its models, vendors and keys are looked at, and nothing else
    #[arg(value_name = "AGENT")]
    agent: Option<PathBuf>,
    /// Do not ask the agent's language model for a word
    #[arg(long)]
    offline: bool,
}

/// What was found so far.
#[derive(Default)]
struct Findings {
    missing: Vec<String>,
    /// Nothing is printed.
    quiet: bool,
}

impl Findings {
    fn say(&mut self, works: bool, what: &str, mend: &str) {
        if !works {
            self.missing.push(format!("{what}: {mend}"));
        }
        if self.quiet {
            return;
        }
        let mend = if works { String::new() } else { format!("\n        mend: {mend}") };
        out!("{} {what}{mend}", if works { "ok     " } else { "missing" });
    }

    /// What a spoken call uses where it is there, and can do without: it is named, and not counted.
    fn better(&self, here: bool, what: &str, without: &str, mend: &str) {
        match (self.quiet, here) {
            (true, _) => {}
            (false, true) => out!("ok      {what}"),
            (false, false) => out!("without {what}: {without}\n        mend: {mend}"),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<u8, Stop> {
    let manifest = Manifest::load().map_err(Stop::unusable)?;
    let mut findings = Findings::default();
    match &args.agent {
        Some(path) => {
            let file = load_agent(path)?;
            agent(&file, &manifest, &mut findings)?;
            if !args.offline {
                language_models(&file, &mut findings)?;
            }
        }
        None => machine(&manifest, &mut findings)?,
    }
    out!("{} missing", findings.missing.len());
    Ok(if findings.missing.is_empty() { 0 } else { MISSING })
}

/// What an agent needs and is not here, each with the step that mends it. Nobody is asked over the network.
#[cfg(feature = "serve")]
pub(crate) fn missing(file: &AgentFile) -> Result<Vec<String>, Stop> {
    let manifest = Manifest::load().map_err(Stop::unusable)?;
    let mut findings = Findings { quiet: true, ..Findings::default() };
    agent(file, &manifest, &mut findings)?;
    Ok(findings.missing)
}

fn machine(manifest: &Manifest, findings: &mut Findings) -> Result<(), Stop> {
    for entry in manifest.list() {
        model(&entry.name, &format!(" ({})", entry.role), manifest, findings)?;
    }
    espeak(findings);
    local_llm(findings);
    #[cfg(feature = "mic")]
    {
        use sayback_transports::mic::{Direction, devices};
        let found = devices().unwrap_or_default();
        for direction in [Direction::Input, Direction::Output] {
            let any = found.iter().any(|device| device.direction == direction && device.problem.is_none());
            let mend = "plug one in; `sayback devices` lists what is there";
            findings.say(any, &format!("a device for {direction:?}"), mend);
        }
    }
    let built: Vec<&str> = BUILT_IN.iter().filter(|(_, here)| *here).map(|(name, _)| *name).collect();
    // Which of them are needed, only an agent says.
    out!("ok      vendors built in: {}", if built.is_empty() { "none".to_owned() } else { built.join(", ") });
    Ok(())
}

fn model(name: &str, more: &str, manifest: &Manifest, findings: &mut Findings) -> Result<(), Stop> {
    let here = manifest.is_present(name).map_err(Stop::unusable)?;
    findings.say(here, &format!("model {name}{more}"), &format!("sayback models fetch {name}"));
    Ok(())
}

fn espeak(findings: &mut Findings) {
    let here = std::process::Command::new("espeak-ng").arg("--version").output().is_ok();
    findings.say(here, "espeak-ng, which gives the voice its phonemes", "apt-get install espeak-ng");
}

fn local_llm(findings: &mut Findings) {
    findings.say(find_program().is_ok(), "the local language model's program", "scripts/setup --llm");
}

/// What one agent needs, its fallbacks included.
fn agent(file: &AgentFile, manifest: &Manifest, findings: &mut Findings) -> Result<(), Stop> {
    for llm in [Some(&file.llm), file.llm.fallback.as_ref().map(|f| &f.engine)].into_iter().flatten() {
        match llm.provider {
            LlmProvider::Local => {
                local_llm(findings);
                let name = llm.model.strip_suffix("-instruct").unwrap_or(&llm.model);
                model(name, "", manifest, findings)?;
            }
            LlmProvider::OpenAi => key("openai", llm.api_key_env.as_deref(), findings),
            LlmProvider::Anthropic => vendor("anthropic", llm.api_key_env.as_deref(), findings),
            LlmProvider::Scripted => {}
        }
    }
    for (name, without) in [
        ("silero-vad", "a lighter model that is built in tells speech from noise"),
        ("smart-turn", "pauses alone tell when the caller is done"),
    ] {
        let here = manifest.is_present(name).map_err(Stop::unusable)?;
        findings.better(here, &format!("model {name}"), without, &format!("sayback models fetch {name}"));
    }
    for stt in [Some(&file.stt), file.stt.fallback.as_ref().map(|f| &f.engine)].into_iter().flatten() {
        let key = stt.api_key_env.as_deref();
        match stt.provider {
            SttProvider::Whisper => model(&format!("whisper-{}", stt.model), "", manifest, findings)?,
            SttProvider::Deepgram => vendor("deepgram", key, findings),
            SttProvider::Soniox => vendor("soniox", key, findings),
            SttProvider::OpenAi | SttProvider::OpenAiRealtime => vendor("openai-speech", key, findings),
        }
    }
    for tts in [Some(&file.tts), file.tts.fallback.as_ref().map(|f| &f.engine)].into_iter().flatten() {
        let key = tts.api_key_env.as_deref();
        match tts.provider {
            TtsProvider::Piper => {
                espeak(findings);
                model(&format!("piper-{}", tts.voice), "", manifest, findings)?;
            }
            TtsProvider::ElevenLabs => vendor("elevenlabs", key, findings),
            TtsProvider::Cartesia => vendor("cartesia", key, findings),
            TtsProvider::Deepgram => vendor("deepgram", key, findings),
            TtsProvider::OpenAi => vendor("openai-speech", key, findings),
        }
    }
    Ok(())
}

/// Asks each hosted model that nothing else is missing for, the fallback included, for a word: whether a server is there
/// and knows the key and the model, only it can say. The local one is started by a call, and takes its time for that.
fn language_models(file: &AgentFile, findings: &mut Findings) -> Result<(), Stop> {
    let waits = Waits::new()?;
    for llm in [Some(&file.llm), file.llm.fallback.as_ref().map(|f| &f.engine)].into_iter().flatten() {
        let hosted = match llm.provider {
            LlmProvider::OpenAi => true,
            LlmProvider::Anthropic => is_built_in("anthropic"),
            LlmProvider::Local | LlmProvider::Scripted => false,
        };
        if !hosted || llm.api_key_env.as_deref().is_some_and(|variable| !is_set(variable)) {
            continue;
        }
        let asked = waits.runtime().block_on(async {
            let model = bare_llm(llm, None).await?;
            let request = LlmRequest { first_token: Some(llm.first_token), ..LlmRequest::default() };
            Ok::<_, Stop>(one_word(model.as_ref(), request).await)
        })?;
        let at = llm.base_url.as_ref().map_or_else(String::new, |url| format!(" at {url}"));
        let what = format!("an answer from the language model {}{at}", llm.model);
        match asked {
            Ok(()) => findings.say(true, &what, ""),
            Err(error) => findings.say(false, &format!("{what}: {error}"), mend(&error)),
        }
    }
    Ok(())
}

fn is_built_in(feature: &str) -> bool {
    BUILT_IN.iter().any(|(name, here)| *here && *name == feature)
}

fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|key| !key.trim().is_empty())
}

fn vendor(feature: &str, variable: Option<&str>, findings: &mut Findings) {
    let here = is_built_in(feature);
    findings.say(here, &format!("{feature} in this build"), &format!("build with `--features {feature}`"));
    key(feature, variable, findings);
}

/// Whether the variable is set; what is in it is nobody's business, and only the vendor knows whether it is right.
fn key(vendor: &str, variable: Option<&str>, findings: &mut Findings) {
    let Some(variable) = variable else { return };
    findings.say(
        is_set(variable),
        &format!("a key for {vendor} in {variable}"),
        &format!("export {variable}=…"),
    );
}
