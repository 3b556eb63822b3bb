//! `sayback doctor`: what works here, what is missing, and the command that mends it.

use std::path::PathBuf;

use sayback_agentfile::{AgentFile, LlmProvider, SttProvider, TtsProvider};
use sayback_providers::local_llm::find_program;
use sayback_providers::models::Manifest;

use crate::engines::load_agent;
use crate::exit::{MISSING, Stop};
use crate::vendors::BUILT_IN;

/// What to look at.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// An agent file: its models, vendors and keys are looked at, and nothing else
    #[arg(value_name = "AGENT")]
    agent: Option<PathBuf>,
}

/// What was found so far.
#[derive(Default)]
struct Findings {
    missing: u32,
}

impl Findings {
    fn say(&mut self, works: bool, what: &str, mend: &str) {
        self.missing += u32::from(!works);
        let mend = if works { String::new() } else { format!("\n        mend: {mend}") };
        out!("{} {what}{mend}", if works { "ok     " } else { "missing" });
    }
}

pub(crate) fn run(args: &Args) -> Result<u8, Stop> {
    let manifest = Manifest::load().map_err(Stop::unusable)?;
    let mut findings = Findings::default();
    match &args.agent {
        Some(path) => agent(&load_agent(path)?, &manifest, &mut findings)?,
        None => machine(&manifest, &mut findings)?,
    }
    out!("{} missing", findings.missing);
    Ok(if findings.missing > 0 { MISSING } else { 0 })
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

fn vendor(feature: &str, variable: Option<&str>, findings: &mut Findings) {
    let here = BUILT_IN.iter().any(|(name, here)| *here && *name == feature);
    findings.say(here, &format!("{feature} in this build"), &format!("build with `--features {feature}`"));
    key(feature, variable, findings);
}

/// Whether the variable is set; what is in it is nobody's business, and only the vendor knows whether it is right.
fn key(vendor: &str, variable: Option<&str>, findings: &mut Findings) {
    let Some(variable) = variable else { return };
    let set = std::env::var(variable).is_ok_and(|key| !key.trim().is_empty());
    findings.say(set, &format!("a key for {vendor} in {variable}"), &format!("export {variable}=…"));
}
