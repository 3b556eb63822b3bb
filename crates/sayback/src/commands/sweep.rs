//! `sayback sweep FILE…`: the caller's answer moved across the end of the question.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as ClapArgs;
use sayback_replay::scenario::{Scenario, SpeechMode, load_scenario};
use sayback_replay::sweep::{Sweep, SweepError, SweepPlan, parse_offset, sweep, sweep_json, write_sweep};

use super::replay::{Shared, Speech};
use crate::exit::{FAULTS, MISSING, Stop, UNUSABLE};
use crate::kinds::{Kind, other_than};

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Scenario files (*.call.toml)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// First onset, from the horizon
    #[arg(long, default_value = "-600ms", value_parser = offset, allow_hyphen_values = true)]
    from: i64,
    /// Last onset, from the horizon
    #[arg(long, default_value = "300ms", value_parser = offset, allow_hyphen_values = true)]
    to: i64,
    /// From one onset to the next; in text mode each flip is then closed in on to the microsecond
    #[arg(long, default_value = "10ms", value_parser = step)]
    step: Duration,
    /// The line of the file at which the answer's [[caller]] entry stands; default: the first that answers a question
    #[arg(long, value_name = "LINE")]
    answer: Option<usize>,
    /// Prints one JSON object a file instead of a table
    #[arg(long)]
    json: bool,
    /// What stands for the caller's voice; default: what the file says
    #[arg(long, value_enum)]
    speech: Option<Speech>,
    /// Another agent than the file's
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
}

fn offset(text: &str) -> Result<i64, String> {
    parse_offset(text).ok_or_else(|| "no time; write it like -600ms, 0.3s or 0".to_owned())
}

fn step(text: &str) -> Result<Duration, String> {
    match parse_offset(text).map(u64::try_from) {
        Some(Ok(micros)) if micros > 0 => Ok(Duration::from_micros(micros)),
        Some(_) | None => Err("no step; write it like 10ms or 0.5ms".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> Result<u8, Stop> {
    let shared = Shared::new()?;
    let mut worst = 0;
    for file in &args.files {
        worst = worst.max(match one(file, args, &shared) {
            Ok(faults) => faults,
            // The other files are swept all the same.
            Err(stop) if args.files.len() > 1 => {
                eprintln!("sayback: {stop}");
                stop.code
            }
            Err(stop) => return Err(stop),
        });
    }
    Ok(worst)
}

fn one(file: &Path, args: &Args, shared: &Shared) -> Result<u8, Stop> {
    other_than(Kind::Scenario, file)?;
    let scenario = load_scenario(file).map_err(Stop::unusable)?;
    let found = found(file, &scenario, args, shared)?;
    if args.json {
        out!("{}", sweep_json(file, &scenario.title, &found));
    } else {
        let mut stdout = std::io::stdout().lock();
        // A reader that has gone away is no error.
        let _ = write_sweep(&mut stdout, file, &scenario.title, &found).and_then(|()| writeln!(stdout));
    }
    Ok(if found.faults().is_empty() { 0 } else { FAULTS })
}

fn found(file: &Path, scenario: &Scenario, args: &Args, shared: &Shared) -> Result<Sweep, Stop> {
    let mode = args.speech.map_or(scenario.speech, SpeechMode::from);
    let agent = args.agent.as_ref().unwrap_or(&scenario.agent);
    let failed = |message: String| {
        let code = if shared.is_missing() { MISSING } else { UNUSABLE };
        Stop::with_code(code, format!("{}: {message}", file.display()))
    };
    let engines = shared.engines(scenario, mode, agent).map_err(failed)?;
    let plan = SweepPlan { answer: args.answer, from_micros: args.from, to_micros: args.to, step: args.step };
    sweep(scenario, mode, &engines, &plan).map_err(|error: SweepError| failed(error.to_string()))
}
