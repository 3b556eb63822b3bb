//! Who answers: agent files, read anew when they change, and their engines, loaded once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use sayback_agentfile::{AgentFile, LlmProvider};
use sayback_providers::scripted::Scripted;
use sayback_replay::engines::SoundEngines;
use sayback_runtime::llm::Llm;
use sayback_runtime::record::AgentSheet;
use sayback_runtime::switchboard::{Asked, Desk, Desks, ListedAgent, NewLlm, NotNow};
use tokio::sync::Mutex;

use super::config::AgentChoice;
use crate::engines::{Grounding, llm, load_agent, sound, warm};
use crate::exit::Stop;

/// What is called when nothing else fits.
const ANYBODY: &str = "*";

/// A desk, and the state of the file that it was made from.
#[derive(Debug)]
struct Made {
    changed: Option<SystemTime>,
    desk: Arc<Desk>,
}

/// Engines are shared by all agents that name the same ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EngineNames(String);

/// The agents of a server.
pub(crate) struct AgentDesks {
    agents: BTreeMap<String, AgentChoice>,
    /// What each is called, as its file said at the start.
    names: BTreeMap<AgentChoice, String>,
    made: Mutex<BTreeMap<AgentChoice, Made>>,
    engines: Mutex<BTreeMap<EngineNames, SoundEngines>>,
}

impl std::fmt::Debug for AgentDesks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentDesks").field("agents", &self.agents).finish_non_exhaustive()
    }
}

impl AgentDesks {
    /// All agents are read now, so that a fault in one is told before any call comes; engines are loaded later.
    pub(crate) fn new(agents: BTreeMap<String, AgentChoice>) -> Result<Self, Stop> {
        let mut names = BTreeMap::new();
        for choice in agents.values() {
            let file = load_agent(&choice.file)?;
            names.insert(choice.clone(), file.agent.name.clone());
            if let (LlmProvider::Scripted, Some(script)) = (file.llm.provider, &choice.script) {
                crate::script::load(script)?;
            }
        }
        Ok(Self { agents, names, made: Mutex::default(), engines: Mutex::default() })
    }

    /// What its agents need and is not here, each once with the step that mends it.
    pub(crate) fn missing(&self) -> Result<Vec<String>, Stop> {
        let mut all = BTreeSet::new();
        for choice in self.agents.values() {
            all.extend(crate::commands::doctor::missing(&load_agent(&choice.file)?)?);
        }
        Ok(all.into_iter().collect())
    }

    /// Loads everything that calls will need, so that the first of them does not wait for it.
    pub(crate) async fn load_all(&self) -> Result<(), Stop> {
        for choice in self.agents.values() {
            self.desk(choice).await?;
        }
        Ok(())
    }

    fn choice(&self, called: &str) -> Option<&AgentChoice> {
        self.agents.get(called).or_else(|| self.agents.get(ANYBODY))
    }

    /// The desk of an agent file as it is now. One that cannot be read any more leaves the last good one in place.
    async fn desk(&self, choice: &AgentChoice) -> Result<Arc<Desk>, Stop> {
        let changed = changed(&choice.file);
        let mut made = self.made.lock().await;
        let last = made.get(choice);
        if let Some(last) = last.filter(|last| last.changed == changed) {
            return Ok(Arc::clone(&last.desk));
        }
        let desk = match self.make(choice).await {
            Ok(desk) => Arc::new(desk),
            Err(stop) => {
                let Some(last) = last else { return Err(stop) };
                tracing::error!("the last good version goes on answering: {stop}");
                Arc::clone(&last.desk)
            }
        };
        made.insert(choice.clone(), Made { changed, desk: Arc::clone(&desk) });
        Ok(desk)
    }

    async fn make(&self, choice: &AgentChoice) -> Result<Desk, Stop> {
        let mut file = load_agent(&choice.file)?;
        let engines = self.engines_of(&file).await?;
        file.agent.policy.turn.judged = engines.end_of_turn.is_some();
        let llm = new_llm(&file, choice.script.as_deref()).await?;
        let grounded = matches!(file.llm.provider, LlmProvider::Local);
        tracing::info!("{} answers from {}", file.agent.name, choice.file.display());
        let recorded_as = file.privacy.record.then(|| AgentSheet {
            name: file.agent.name.clone(),
            file: file.path.to_string_lossy().into_owned(),
            hash: file.hash.clone(),
        });
        Ok(Desk {
            recorded_as,
            redact: crate::commands::record::redacted(&file),
            llm,
            screen: grounded.then(|| Arc::new(Grounding::new()) as _),
            vad: engines.vad,
            stt: engines.stt,
            tts: engines.tts,
            end_of_turn: engines.end_of_turn,
            assumed_loop: file.line.assumed_loop,
            agent: Arc::new(file.agent),
        })
    }

    async fn engines_of(&self, file: &AgentFile) -> Result<SoundEngines, Stop> {
        let names = EngineNames(format!("{:?} {:?} {}", file.stt, file.tts, file.agent.language));
        let mut engines = self.engines.lock().await;
        if let Some(there) = engines.get(&names) {
            return Ok(there.clone());
        }
        let file = file.clone();
        let loading = tokio::task::spawn_blocking(move || sound(&file));
        let loaded = loading.await.map_err(|error| Stop::missing(format!("engines: {error}")))??;
        engines.insert(names, loaded.clone());
        Ok(loaded)
    }
}

/// A model for each call: one for all, or a script that begins anew.
async fn new_llm(file: &AgentFile, script: Option<&Path>) -> Result<NewLlm, Stop> {
    if let (LlmProvider::Scripted, Some(script)) = (file.llm.provider, script) {
        let (steps, verdicts) = crate::script::load(script)?;
        return Ok(Arc::new(move || {
            Arc::new(Scripted::new(steps.clone(), verdicts.clone())) as Arc<dyn Llm>
        }));
    }
    let shared = llm(&file.llm, script).await?;
    // The first call need not wait for what all calls begin with.
    warm(&shared, &file.agent);
    Ok(Arc::new(move || Arc::clone(&shared)))
}

fn changed(path: &PathBuf) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|data| data.modified()).ok()
}

#[async_trait::async_trait]
impl Desks for AgentDesks {
    async fn find(&self, asked: &Asked) -> Result<Arc<Desk>, NotNow> {
        let unknown = || NotNow::Unknown { to: asked.to.clone() };
        let choice = self.choice(&asked.to).ok_or_else(unknown)?;
        self.desk(choice).await.map_err(|stop| {
            tracing::error!("{stop}");
            // A caller is not told of files and keys.
            NotNow::Broken { to: asked.to.clone(), reason: "see the server's log".to_owned() }
        })
    }

    fn listed(&self) -> Vec<ListedAgent> {
        // While models are being loaded, the names are those of the start.
        let made = self.made.try_lock().ok();
        let now = |choice| made.as_ref().and_then(|made| made.get(choice)).map(|made| &made.desk.agent.name);
        let listed = self.agents.iter().map(|(called, choice)| {
            let agent = now(choice).or_else(|| self.names.get(choice)).cloned().unwrap_or_default();
            ListedAgent { called: called.clone(), agent }
        });
        listed.collect()
    }
}
