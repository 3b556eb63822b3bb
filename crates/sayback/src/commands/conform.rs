//! `sayback conform timing|replies|hash|adk FILE`: conformance cases.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use sayback_core::check::{Reply, parse_verdict, veto};
use sayback_core::{CheckId, CheckRequest, HoldId, Verdict};
use sayback_replay::conform::run_timing;
use sayback_replay::timing::{
    CaseError, HashExpect, ReplyCase, Speakers, load_cases, parse_hashes, parse_replies, parse_timing,
};
use sayback_runtime::clock::Clock;
use sayback_runtime::frozen::{canonical, parse_strict};
use sayback_runtime::ledger::{Args as HashedArgs, Hasher, Key};
use sayback_runtime::llm::Llm;

use crate::answered::Answered;
use crate::engines::{Waits, checking_llm, said_to_check};
use crate::exit::{FAULTS, Stop};

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// One question and what the caller does, on a clock
    Timing {
        /// JSON lines
        file: PathBuf,
    },
    /// Labelled replies, through check and vetoes
    Replies {
        /// JSON lines
        file: PathBuf,
        /// The agent whose own model is asked
        #[arg(long)]
        agent: Option<PathBuf>,
        /// Over a model that says yes to everything
        #[arg(long)]
        vetoes_only: bool,
    },
    /// Canonical JSON and its hashes
    Hash {
        /// JSON lines
        file: PathBuf,
    },
    /// Transcripts of Google's ADK, over the wire of text sessions
    #[cfg(feature = "serve")]
    Adk {
        /// JSON lines
        file: PathBuf,
    },
}

pub(crate) fn run(args: &Args) -> Result<u8, Stop> {
    match &args.what {
        What::Timing { file } => timing(file),
        What::Replies { file, agent, vetoes_only } => {
            let model = match (agent, vetoes_only) {
                (_, true) => None,
                (Some(agent), false) => Some(agent),
                (None, false) => {
                    return Err(Stop::unusable("say whose model: --agent FILE, or --vetoes-only"));
                }
            };
            replies(file, model)
        }
        What::Hash { file } => hashes(file),
        #[cfg(feature = "serve")]
        What::Adk { file } => super::conform_adk::run(file).map(|(passed, failed)| tally(passed, failed)),
    }
}

fn unusable(error: CaseError) -> Stop {
    Stop::unusable(error)
}

fn tally(passed: usize, failed: usize) -> u8 {
    out!("{passed} passed, {failed} failed");
    if failed > 0 { FAULTS } else { 0 }
}

fn timing(file: &std::path::Path) -> Result<u8, Stop> {
    let cases = load_cases(file, parse_timing).map_err(unusable)?;
    let mut failed = 0;
    for case in &cases {
        let mismatches = run_timing(case);
        failed += usize::from(!mismatches.is_empty());
        for mismatch in mismatches {
            out!("{}: {mismatch}\n  ({})", case.id, case.note);
        }
    }
    Ok(tally(cases.len() - failed, failed))
}

fn hashes(file: &std::path::Path) -> Result<u8, Stop> {
    let cases = load_cases(file, parse_hashes).map_err(unusable)?;
    let mut failed = 0;
    for case in &cases {
        let text = case.input.json();
        let frozen =
            parse_strict(&text).and_then(|value| canonical(&value).map_err(|error| error.to_string()));
        let right = match (&case.expect, &frozen) {
            (HashExpect::Refused(_), Err(_)) => true,
            (HashExpect::Hashes { canonical, sha256, hmac_sha256_key_00ff }, Ok(frozen)) => {
                let keyed = Hasher::Keyed(Key::known(&[0x00, 0xff])).digest(HashedArgs::Json(&text));
                let keyed = keyed.map(|digest| digest.hash).unwrap_or_default();
                canonical.as_ref().is_none_or(|json| *json == frozen.json)
                    && sha256.as_ref().is_none_or(|hash| frozen.hash == format!("sha256:{hash}"))
                    && hmac_sha256_key_00ff.as_ref().is_none_or(|hash| keyed == format!("hmac-sha256:{hash}"))
            }
            (HashExpect::Refused(_), Ok(_)) | (HashExpect::Hashes { .. }, Err(_)) => false,
        };
        if !right {
            failed += 1;
            out!("{}: expected {:?}, found {frozen:?}", case.name, case.expect);
        }
    }
    Ok(tally(cases.len() - failed, failed))
}

/// What came of the replies of one language.
#[derive(Default)]
struct Tally {
    /// Rows whose label is not yes, and those of them that came out as yes.
    other: usize,
    false_yes: usize,
    /// Rows whose label is yes, and those whose verdict is neither that nor one that is all right too.
    yes: usize,
    missed: usize,
    /// The same of the plain yeses alone.
    plain: usize,
    plain_missed: usize,
}

fn replies(file: &std::path::Path, agent: Option<&PathBuf>) -> Result<u8, Stop> {
    let cases = load_cases(file, parse_replies).map_err(unusable)?;
    let waits = Waits::new()?;
    let model = match agent {
        Some(path) => Some(Answered::new(checking_llm(&waits, path)?)),
        None => None,
    };
    let mut table: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut took = Vec::new();
    for case in &cases {
        let clock = Clock::start();
        let asked = model.as_ref().map(|model| Arc::clone(model) as Arc<dyn Llm>);
        let (verdict, why) = judge(case, asked.as_ref(), &waits);
        // A model that is not there says yes to nothing: that would look like a good one.
        model.as_ref().map_or(Ok(()), |model| model.ever())?;
        took.push(Duration::from_micros(clock.now().as_micros()));
        *table.entry((name(case.label), name(verdict))).or_default() += 1;
        note(case, verdict, &why, tallies.entry(&case.lang).or_default());
    }
    print_tables(&table, &tallies);
    if model.is_some() {
        print_times(took);
    }
    let false_yes: usize = tallies.values().map(|tally| tally.false_yes).sum();
    Ok(tally(cases.len() - false_yes, false_yes))
}

/// Counts a verdict, and prints each that is a fault in full.
fn note(case: &ReplyCase, verdict: Verdict, why: &str, tally: &mut Tally) {
    if case.label != Verdict::Yes {
        tally.other += 1;
        if verdict == Verdict::Yes {
            tally.false_yes += 1;
            let (id, lang, label) = (&case.id, &case.lang, name(case.label));
            out!("false yes: {id} [{lang}] \"{}\" -> \"{}\" ({label})", case.question, case.reply);
        }
        return;
    }
    let plain = case.tags.iter().any(|tag| tag == "plain-yes");
    let missed = verdict != case.label && !case.also_ok.contains(&verdict);
    tally.yes += 1;
    tally.plain += usize::from(plain);
    tally.missed += usize::from(missed);
    tally.plain_missed += usize::from(plain && missed);
    if missed {
        let (id, lang) = (&case.id, &case.lang);
        out!("missed yes: {id} [{lang}] \"{}\" -> \"{}\" ({why})", case.question, case.reply);
    }
}

fn print_tables(table: &BTreeMap<(String, String), usize>, tallies: &BTreeMap<&str, Tally>) {
    out!("label \\ verdict      yes       no  unclear");
    for label in [Verdict::Yes, Verdict::No, Verdict::Unclear] {
        let count = |verdict| table.get(&(name(label), name(verdict))).copied().unwrap_or(0);
        let (yes, no, unclear) = (count(Verdict::Yes), count(Verdict::No), count(Verdict::Unclear));
        out!("{:<16} {yes:>8} {no:>8} {unclear:>8}", name(label));
    }
    out!("language   false yes   yes missed   plain yes missed");
    for (lang, t) in tallies {
        let of = |part: usize, whole: usize| format!("{part} of {whole}");
        let (false_yes, missed) = (of(t.false_yes, t.other), of(t.missed, t.yes));
        out!("{lang:<8} {false_yes:>11} {missed:>12} {:>19}", of(t.plain_missed, t.plain));
    }
    let english = tallies.get("en").map_or((0, 0), |tally| (tally.plain_missed, tally.plain));
    out!("plain English yeses missed: {} of {}", english.0, english.1);
}

/// How long the checks took. The prompt that they share was read before the first.
fn print_times(mut took: Vec<Duration>) {
    if took.is_empty() {
        return;
    }
    took.sort_unstable();
    let at =
        |percent: usize| took.get(took.len() * percent / 100).or(took.last()).map_or(0, Duration::as_millis);
    out!("a check took {} ms in the median, {} at 95 %, {} at most", at(50), at(95), at(100));
}

fn name(verdict: Verdict) -> String {
    serde_json::to_value(verdict).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

fn judge(case: &ReplyCase, model: Option<&Arc<dyn Llm>>, waits: &Waits) -> (Verdict, String) {
    let said = match model {
        None => Verdict::Yes,
        Some(model) => match waits.runtime().block_on(said_to_check(model, &request(case))) {
            Ok(text) => parse_verdict(&text).unwrap_or(Verdict::Unclear),
            Err(error) => return (Verdict::Unclear, error),
        },
    };
    if said != Verdict::Yes {
        return (said, "the model".to_owned());
    }
    let reply = Reply {
        language: &case.lang,
        question: &case.question,
        words: &case.reply,
        input_json: None,
        speakers: match case.context.speakers {
            Some(Speakers::Count(count)) => Some(u8::try_from(count).unwrap_or(u8::MAX)),
            Some(Speakers::Word(_)) | None => None,
        },
        confidence: None,
        agent_speech_after: !case.context.since_question.is_empty(),
    };
    veto(&reply).map_or((Verdict::Yes, String::new()), |veto| (Verdict::Unclear, veto.to_string()))
}

fn request(case: &ReplyCase) -> CheckRequest {
    CheckRequest {
        check: CheckId(1),
        hold: HoldId(1),
        question: case.question.clone(),
        words: case.reply.clone(),
        language: case.lang.clone(),
        input: String::new(),
        sounded: sayback_core::Sounded::default(),
        limit: Duration::from_secs(30),
    }
}
