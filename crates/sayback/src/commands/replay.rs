//! `sayback replay PATH…`: scenarios and recorded calls on a virtual clock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};
use sayback_agentfile::AgentFile;
use sayback_replay::bundle::is_bundle;
use sayback_replay::engines::{BlockOn, Engines, SoundEngines};
use sayback_replay::report::{
    CallPage, EventLog, Outcome, Recording, RunResult, Tally, call_page, junit_xml, outcome_json,
    write_outcome,
};
use sayback_replay::run::{CallRun, SoundError, run_scenario};
use sayback_replay::scenario::{
    Fault, Matcher, Scenario, ScenarioError, SpeechMode, check_expectations, load_scenario,
};
use sayback_runtime::driver::Screen;
use sayback_runtime::llm::Llm;
use serde_json::Value;

use crate::answered::Answered;
use crate::engines::{Grounding, Waits, load_agent, read_in_llm, sound};
use crate::exit::{MISSING, Stop, unwritable};
use crate::kinds::{Kind, other_than};
use crate::tuned::wait_for_the_model;

mod recorded;

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Scenario files (*.call.toml), recorded calls (folders), or folders to search for both
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Writes the event log as JSON lines; `-` is standard output
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Prints one JSON object a scenario instead of text
    #[arg(long)]
    json: bool,
    /// Writes a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Writes a page a call
    #[arg(long, value_name = "DIR")]
    html: Option<PathBuf>,
    /// Writes each call's sound, in audio mode: caller left, agent right
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// What stands for the caller's voice; default: what the file says
    #[arg(long, value_enum)]
    speech: Option<Speech>,
    /// Another agent than the file's
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// The agent's own language model answers, whatever the file scripts
    #[arg(long)]
    live_model: bool,
    /// Writes a scenario which reproduces a recorded call's decisions, personal details replaced, and runs it
    #[arg(long, value_name = "FILE")]
    as_scenario: Option<PathBuf>,
    /// Scenarios at a time
    #[arg(long, default_value_t = 1, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    jobs: usize,
    /// Accepted for repeatable runs; scenarios draw nothing at random
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Speech {
    Audio,
    Text,
}

impl From<Speech> for SpeechMode {
    fn from(speech: Speech) -> Self {
        match speech {
            Speech::Audio => Self::Audio,
            Speech::Text => Self::Text,
        }
    }
}

/// One scenario's outcome with what is written of it.
struct Done {
    outcome: Outcome,
    run: CallRun,
}

pub(crate) fn run(args: &Args) -> Result<u8, Stop> {
    let files = match &args.as_scenario {
        Some(file) => vec![recorded::tell(&find(&args.paths)?, file, args.agent.as_deref())?],
        None => find(&args.paths)?,
    };
    can_be_written(args)?;
    let shared = Shared::new()?;
    let done = run_all(&files, args, &shared);
    let status = report(args, &done)?;
    for silent in shared.unanswering() {
        eprintln!("sayback: {silent}");
    }
    Ok(if shared.is_missing() { MISSING } else { status })
}

/// Things by the file that they were made from, or why they could not be.
type Cache<T> = Mutex<BTreeMap<PathBuf, Result<T, String>>>;

/// What scenarios share: agents, engines, and the executor.
pub(super) struct Shared {
    waits: Arc<Waits>,
    agents: Cache<Arc<AgentFile>>,
    sounds: Cache<SoundEngines>,
    llms: Cache<Arc<Answered>>,
    /// Something that is needed is not here.
    missing: AtomicBool,
}

impl Shared {
    pub(super) fn new() -> Result<Self, Stop> {
        Ok(Self {
            waits: Arc::new(Waits::new()?),
            agents: Mutex::default(),
            sounds: Mutex::default(),
            llms: Mutex::default(),
            missing: AtomicBool::new(false),
        })
    }

    fn cached<T: Clone>(
        &self,
        cache: &Cache<T>,
        path: &Path,
        make: impl FnOnce() -> Result<T, Stop>,
    ) -> Result<T, String> {
        let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = cache.get(path) {
            return found.clone();
        }
        let made = make().map_err(|stop| {
            self.missing.fetch_or(stop.code == MISSING, Ordering::Relaxed);
            stop.to_string()
        });
        cache.insert(path.to_owned(), made.clone());
        made
    }

    fn agent(&self, path: &Path) -> Result<Arc<AgentFile>, String> {
        self.cached(&self.agents, path, || load_agent(path).map(Arc::new))
    }

    fn sound(&self, file: &AgentFile) -> Result<SoundEngines, String> {
        self.cached(&self.sounds, &file.path, || sound(file))
    }

    fn llm(&self, file: &AgentFile) -> Result<Arc<dyn Llm>, String> {
        let made = || read_in_llm(&self.waits, file).map(Answered::new);
        self.cached(&self.llms, &file.path, made).map(|model| model as Arc<dyn Llm>)
    }

    /// Something that was needed is not here.
    pub(super) fn is_missing(&self) -> bool {
        self.missing.load(Ordering::Relaxed) || self.unanswering().next().is_some()
    }

    /// The models that were asked and never answered, each with why.
    fn unanswering(&self) -> impl Iterator<Item = Stop> + use<> {
        let llms = self.llms.lock().unwrap_or_else(PoisonError::into_inner);
        let silent: Vec<Stop> = llms.values().flatten().filter_map(|model| model.ever().err()).collect();
        silent.into_iter()
    }

    pub(super) fn engines(
        &self,
        scenario: &Scenario,
        mode: SpeechMode,
        agent: &Path,
    ) -> Result<Engines, String> {
        let file = self.agent(agent)?;
        let live = scenario.model.is_none();
        let local = file.llm.may_be_local();
        let mut agent = file.agent.clone();
        if live && local {
            wait_for_the_model(&mut agent.policy);
        }
        Ok(Engines {
            waits: Arc::clone(&self.waits) as Arc<dyn BlockOn>,
            agent: Arc::new(agent),
            llm: if live && !scenario.callers.is_empty() { Some(self.llm(&file)?) } else { None },
            today: if live { sayback_runtime::clock::calendar() } else { String::new() },
            screen: (live && local).then(|| Arc::new(Grounding::new()) as Arc<dyn Screen>),
            sound: if mode == SpeechMode::Audio { Some(self.sound(&file)?) } else { None },
            assumed_loop: file.line.assumed_loop,
        })
    }
}

fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Stop> {
    let mut files = Vec::new();
    for path in paths {
        if is_bundle(path) {
            files.push(path.clone());
        } else if path.is_dir() {
            search(path, &mut files)?;
        } else if path.exists() {
            other_than(Kind::Scenario, path)?;
            files.push(path.clone());
        } else {
            let hint = "name a *.call.toml file, a recorded call, or a folder of them";
            return Err(Stop::unusable(format!("{}: there is no such file\n  hint: {hint}", path.display())));
        }
    }
    if files.is_empty() {
        let looked: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        let looked = looked.join(", ");
        return Err(Stop::unusable(format!(
            "{looked}: no *.call.toml file and no recorded call is in there"
        )));
    }
    Ok(files)
}

fn search(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Stop> {
    let unreadable = |error: std::io::Error| Stop::unusable(format!("{}: {error}", folder.display()));
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(unreadable)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    entries.sort();
    for path in entries {
        if is_bundle(&path) {
            files.push(path);
        } else if path.is_dir() {
            search(&path, files)?;
        } else if path.to_string_lossy().ends_with(".call.toml") {
            files.push(path);
        }
    }
    Ok(())
}

/// Runs all, in order of the files whatever the number of jobs; progress is printed in that order too.
fn run_all(files: &[PathBuf], args: &Args, shared: &Shared) -> Vec<Done> {
    let next = Mutex::new(0);
    let results: Mutex<BTreeMap<usize, Done>> = Mutex::default();
    let work = || loop {
        let index = {
            let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
            let index = *next;
            *next += 1;
            index
        };
        let Some(file) = files.get(index) else { break };
        let done = run_one(file, args, shared);
        results.lock().unwrap_or_else(PoisonError::into_inner).insert(index, done);
    };
    std::thread::scope(|scope| {
        for _ in 1..args.jobs {
            scope.spawn(work);
        }
        work();
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

fn run_one(file: &Path, args: &Args, shared: &Shared) -> Done {
    if is_bundle(file) {
        return recorded::decide_again(file, args.html.is_some() || args.record.is_some());
    }
    let unusable = |title: String, faults: Vec<Fault>| Done {
        outcome: Outcome {
            path: file.to_owned(),
            title,
            result: RunResult::Unusable(faults),
            call_ms: 0.0,
            events: 0,
        },
        run: CallRun::default(),
    };
    let name = || file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut scenario = match load_scenario(file) {
        Ok(scenario) => scenario,
        Err(error @ ScenarioError::Unreadable { .. }) => {
            return unusable(name(), vec![fault(file, (1, 1), &error.to_string())]);
        }
        Err(error) => return unusable(name(), error.faults().to_vec()),
    };
    if args.live_model {
        scenario.model = None;
        scenario.checks = None;
    }
    let mode = args.speech.map_or(scenario.speech, SpeechMode::from);
    let agent = args.agent.as_ref().unwrap_or(&scenario.agent);
    let strangers = unknown_tools(file, &scenario, shared, agent);
    if !strangers.is_empty() {
        return unusable(scenario.title.clone(), strangers);
    }
    let ran = shared
        .engines(&scenario, mode, agent)
        .map_err(|message| fault(file, scenario.agent_at, &message))
        .and_then(|engines| run_scenario(&scenario, mode, &engines).map_err(|error| unheard(file, &error)));
    let run = match ran {
        Ok(run) => run,
        Err(found) => {
            let faults = agent_faults(shared, agent).unwrap_or_else(|| vec![found]);
            return unusable(scenario.title.clone(), faults);
        }
    };
    let failures = check_expectations(file, &scenario.expects, &run.events);
    say_what_was_in_the_way(file, &scenario, &run, failures.is_empty());
    let result = if failures.is_empty() { RunResult::Passed } else { RunResult::Failed(failures) };
    let outcome = Outcome {
        path: file.to_owned(),
        title: scenario.title,
        result,
        call_ms: ms(run.length),
        events: run.events.len(),
    };
    Done { outcome, run }
}

/// What is not found by looking at what was expected: a call that was cut, and a model that failed.
fn say_what_was_in_the_way(file: &Path, scenario: &Scenario, run: &CallRun, passed: bool) {
    if run.cut {
        eprintln!(
            "sayback: {}: cut at its limit of {} s of call time; what comes behind it was not looked at (`limit`)",
            file.display(),
            scenario.limit.as_secs_f64()
        );
    }
    let failed = run.events.iter().find(|event| event["event"] == "model.failed" && !passed);
    if let Some(error) = failed.and_then(|event| event["error"].as_str()) {
        eprintln!("sayback: {}: the language model failed: {error}", file.display());
    }
}

/// Tools that the file answers for or expects, and its agent does not have: a slip that would answer nothing, or let a
/// `never` hold for ever.
fn unknown_tools(file: &Path, scenario: &Scenario, shared: &Shared, agent: &Path) -> Vec<Fault> {
    let Ok(loaded) = shared.agent(agent) else { return Vec::new() };
    let tools = loaded.agent.skills.iter().flat_map(|skill| &skill.tools);
    let known: Vec<String> = tools.map(|tool| tool.info().name.clone()).collect();
    let fault = |(line, column, what, name): (usize, usize, &str, &str)| Fault {
        path: file.to_owned(),
        line,
        column,
        message: format!("{what} {name}: {} has no such tool", agent.display()),
        hint: if known.is_empty() {
            "it has none".to_owned()
        } else {
            format!("it has: {}", known.join(", "))
        },
    };
    let answering = scenario.tools.iter().map(|tool| (tool.line, 1, "[[tool]]", tool.name.as_str()));
    // A model may call what is not there, and a scenario may expect what comes of it.
    let steps = scenario.model.iter().flatten();
    let called: Vec<&str> = steps.flat_map(|step| &step.calls).map(|call| call.tool.as_str()).collect();
    let expected = scenario.expects.iter().flat_map(|expect| {
        expect.fields.iter().filter_map(move |(key, matcher)| match matcher {
            Matcher::Exact(Value::String(name)) if key == "tool" => {
                Some((expect.line, expect.column, "[[expect]] of", name.as_str()))
            }
            Matcher::Exact(_) | Matcher::Range { .. } | Matcher::Contains(_) | Matcher::Subset(_) => None,
        })
    });
    let expected = expected.filter(|(_, _, _, name)| !called.contains(name));
    let stranger = |(_, _, _, name): &(usize, usize, &str, &str)| !known.iter().any(|one| one == name);
    answering.chain(expected).filter(stranger).map(fault).collect()
}

/// The faults of an agent file that cannot be used, each at its own place.
fn agent_faults(shared: &Shared, agent: &Path) -> Option<Vec<Fault>> {
    if shared.agent(agent).is_ok() {
        return None;
    }
    let error = sayback_agentfile::load(agent).err()?;
    Some(error.faults().to_vec()).filter(|faults| !faults.is_empty())
}

fn ms(span: Duration) -> f64 {
    span.as_micros() as f64 / 1_000.0
}

/// A fault of something that the file names: the message brings its own place and hint.
fn fault(file: &Path, (line, column): (usize, usize), message: &str) -> Fault {
    let (message, hint) = message.split_once("\n  hint: ").unwrap_or((message, "see the message"));
    Fault { path: file.to_owned(), line, column, message: message.to_owned(), hint: hint.to_owned() }
}

/// A scenario that cannot be run on sound, at the line that is to blame.
fn unheard(file: &Path, error: &SoundError) -> Fault {
    let line = error.line().unwrap_or(1);
    let message = error.to_string();
    let place = format!("{}:{line}: ", file.display());
    fault(file, (line, 1), message.strip_prefix(&place).unwrap_or(&message))
}

fn report(args: &Args, done: &[Done]) -> Result<u8, Stop> {
    let mut tally = Tally::default();
    let stdout = std::io::stdout();
    // The event log may go to standard output: then the lines for people go to standard error.
    let log_to_stdout = args.events.as_deref() == Some(Path::new("-"));
    for Done { outcome, .. } in done {
        tally.add(outcome);
        let written = match (args.json, log_to_stdout) {
            (true, _) => writeln!(stdout.lock(), "{}", outcome_json(outcome)),
            (false, true) => write_outcome(&mut std::io::stderr().lock(), outcome),
            (false, false) => write_outcome(&mut stdout.lock(), outcome),
        };
        crate::out::note("standard output", written);
    }
    if let Some(path) = &args.events {
        write_events(path, done)?;
    }
    let outcomes: Vec<Outcome> = done.iter().map(|d| d.outcome.clone()).collect();
    if let Some(path) = &args.junit {
        std::fs::write(path, junit_xml(&outcomes)).map_err(|error| unwritable(path, &error))?;
    }
    if let Some(folder) = &args.html {
        write_pages(folder, done)?;
    }
    if let Some(folder) = &args.record {
        write_recordings(folder, done)?;
    }
    let written = match log_to_stdout {
        true => writeln!(std::io::stderr(), "{tally}"),
        false => writeln!(stdout.lock(), "{tally}"),
    };
    crate::out::note("standard output", written);
    Ok(tally.exit_status())
}

/// Tries every place that is written to behind the calls: they may take long, and would have been for nothing.
fn can_be_written(args: &Args) -> Result<(), Stop> {
    let log = args.events.as_deref().filter(|path| *path != Path::new("-"));
    for file in [log, args.junit.as_deref()].into_iter().flatten() {
        try_file(file)?;
    }
    for folder in [args.html.as_deref(), args.record.as_deref()].into_iter().flatten() {
        std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        try_file(&folder.join(".sayback-writes-here"))?;
    }
    Ok(())
}

/// Opens a file to write to it, and leaves everything as it was.
fn try_file(path: &Path) -> Result<(), Stop> {
    let new = !path.exists();
    File::options().append(true).create(true).open(path).map_err(|error| unwritable(path, &error))?;
    if new {
        // What it is there for is written over it later.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn write_events(path: &Path, done: &[Done]) -> Result<(), Stop> {
    let out: Box<dyn Write> = if path == Path::new("-") {
        Box::new(std::io::stdout())
    } else {
        Box::new(File::create(path).map_err(|error| unwritable(path, &error))?)
    };
    let mut log = EventLog::new(std::io::BufWriter::new(out));
    for line in done.iter().flat_map(|d| &d.run.events) {
        log.write(line).map_err(|error| unwritable(path, &error))?;
    }
    log.flush().map_err(|error| unwritable(path, &error))
}

fn stem(path: &Path) -> String {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    name.strip_suffix(".call.toml").unwrap_or(&name).to_owned()
}

/// A name for what is written of each call: that of its own file, with a number behind it where another call has that
/// name already. A recording and the scenario made from it often do.
fn names(done: &[Done]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |call: &Done| {
        let stem = stem(&call.outcome.path);
        let numbered = (2..).map(|n| format!("{stem}-{n}"));
        let free = std::iter::once(stem.clone()).chain(numbered).find(|name| taken.insert(name.clone()));
        free.unwrap_or(stem)
    };
    done.iter().map(name).collect()
}

fn write_pages(folder: &Path, done: &[Done]) -> Result<(), Stop> {
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    for (Done { outcome, run }, name) in done.iter().zip(names(done)) {
        let failures = match &outcome.result {
            RunResult::Failed(failures) => failures.as_slice(),
            RunResult::Passed | RunResult::Unusable(_) => &[],
        };
        let sound = (!run.caller.is_empty()).then(|| flac(run)).transpose()?;
        let page = call_page(&CallPage {
            title: &outcome.title,
            events: &run.events,
            caller: (!run.caller.is_empty()).then_some(run.caller.as_slice()),
            agent: (!run.agent.is_empty()).then_some(run.agent.as_slice()),
            recording: sound.as_deref().map(|bytes| Recording { mime: "audio/flac", bytes }),
            failures,
        });
        let path = folder.join(format!("{name}.html"));
        std::fs::write(&path, page).map_err(|error| unwritable(&path, &error))?;
    }
    Ok(())
}

fn write_recordings(folder: &Path, done: &[Done]) -> Result<(), Stop> {
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let sounding = done.iter().zip(names(done)).filter(|(call, _)| !call.run.caller.is_empty());
    for (Done { run, .. }, name) in sounding {
        let path = folder.join(format!("{name}.flac"));
        std::fs::write(&path, flac(run)?).map_err(|error| unwritable(&path, &error))?;
    }
    Ok(())
}

/// Caller left, agent right, 16 kHz.
fn flac(run: &CallRun) -> Result<Vec<u8>, Stop> {
    let channel =
        |samples: &[i16]| samples.iter().map(|s| sayback_media::pcm::to_f32(*s)).collect::<Vec<f32>>();
    let clip =
        sayback_media::Clip { rate: 16_000, channels: vec![channel(&run.caller), channel(&run.agent)] };
    sayback_media::flac::encode(&clip).map_err(Stop::unusable)
}
