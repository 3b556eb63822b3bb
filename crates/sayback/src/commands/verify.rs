//! `sayback verify BUNDLE…`: the evidence of recorded calls.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args as ClapArgs;
use sayback_core::{CheckAnswer, Verdict};
use sayback_replay::bundle::{AskedCheck, Bundle, Finding, Verified, recompute, verify};
use sayback_runtime::llm::Llm;
use sayback_runtime::prompt::check_answer;
use sayback_runtime::record::JOURNAL;
use sayback_runtime::redact::is_redacted;
use serde_json::json;

use crate::engines::{Waits, checking_llm, said_to_check};
use crate::exit::{FAULTS, Stop};
use crate::kinds::{Kind, other_than};
use crate::out::count;

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Recorded calls: folders with a call.json
    #[arg(required = true)]
    bundles: Vec<PathBuf>,
    /// Prints one JSON object a recording instead of text
    #[arg(long)]
    json: bool,
    /// Asks this agent's own model about each answer again, and compares
    #[arg(long, value_name = "AGENT")]
    check_model: Option<PathBuf>,
}

/// The model that is asked again.
struct Again {
    waits: Waits,
    model: Arc<dyn Llm>,
}

/// What came of asking it about a recording's answers.
#[derive(Default)]
struct Compared {
    asked: usize,
    /// Those that nothing can be compared for: their words were taken out, or the model had not answered in time.
    passed_over: usize,
}

pub(crate) fn run(args: &Args) -> Result<u8, Stop> {
    let again = args.check_model.as_deref().map(Again::new).transpose()?;
    let mut faults = 0;
    for folder in &args.bundles {
        other_than(Kind::Recording, folder)?;
        let mut verified = verify(folder).map_err(Stop::unusable)?;
        let compared = again.as_ref().map(|again| again.compare(folder, &mut verified)).transpose()?;
        // A recording that breaks off may lack anything behind its last line: that is a fault too.
        faults += verified.findings.len() + usize::from(verified.seal.is_none());
        if args.json {
            print_json(folder, &verified, compared.as_ref());
        } else {
            print(folder, &verified, compared.as_ref());
        }
    }
    if !args.json {
        out!("{} verified, {}", args.bundles.len(), count(faults, "fault"));
    }
    Ok(if faults == 0 { 0 } else { FAULTS })
}

impl Again {
    fn new(agent: &Path) -> Result<Self, Stop> {
        let waits = Waits::new()?;
        let model = checking_llm(&waits, agent)?;
        Ok(Self { waits, model })
    }

    /// Asks about each answer of a recording; another verdict than the recorded one is a fault of it.
    fn compare(&self, folder: &Path, verified: &mut Verified) -> Result<Compared, Stop> {
        let mut done = Compared::default();
        // A recording that cannot be read has its fault already.
        let Ok(checks) = Bundle::open(folder).and_then(|bundle| recompute(&bundle)).map(|again| again.checks)
        else {
            return Ok(done);
        };
        for AskedCheck { request, answer } in checks {
            let Some(recorded) = answer.as_ref().and_then(verdict) else {
                done.passed_over += 1;
                continue;
            };
            if [&request.words, &request.question, &request.input].into_iter().any(|text| is_redacted(text)) {
                done.passed_over += 1;
                continue;
            }
            let said = self.waits.runtime().block_on(said_to_check(&self.model, &request));
            let said =
                said.map_err(|error| Stop::missing(format!("the model was asked and failed: {error}")))?;
            done.asked += 1;
            let now = check_answer(&request, &said);
            if verdict(&now) != Some(recorded) {
                let what = format!(
                    "{:?} to {:?} was recorded as {recorded:?}; the model says {:?} now",
                    request.words,
                    request.question,
                    said.trim()
                );
                verified.findings.push(Finding { file: JOURNAL.to_owned(), line: None, what });
            }
        }
        Ok(done)
    }
}

/// What an answer of a check comes to; `None` if there was none to speak of.
fn verdict(answer: &CheckAnswer) -> Option<Verdict> {
    match answer {
        CheckAnswer::Verdict { verdict } => Some(*verdict),
        CheckAnswer::Vetoed { .. } => Some(Verdict::Unclear),
        CheckAnswer::Failed { .. } => None,
    }
}

fn print(folder: &Path, verified: &Verified, compared: Option<&Compared>) {
    match &verified.seal {
        Some(seal) => out!("{}: sealed {seal}", folder.display()),
        None => {
            out!("{}: unsealed: the recording was not finished; its end may be missing", folder.display())
        }
    }
    for decision in &verified.decisions {
        out!("  {decision}");
    }
    let Verified { sounds, vetoes, .. } = verified;
    out!("  {sounds} stretches of sound and the vetoes of {vetoes} checks were compared");
    if let Some(Compared { asked, passed_over }) = compared {
        out!("  the model was asked about {asked} answers again; {passed_over} could not be compared");
    }
    for finding in &verified.findings {
        out!("  FAULT {finding}");
    }
}

fn print_json(folder: &Path, verified: &Verified, compared: Option<&Compared>) {
    let findings: Vec<_> =
        verified.findings.iter().map(|f| json!({"file": f.file, "line": f.line, "what": f.what})).collect();
    out!(
        "{}",
        json!({
            "path": folder.to_string_lossy(), "sealed": verified.seal, "decisions": verified.decisions.len(),
            "sounds": verified.sounds, "vetoes": verified.vetoes, "findings": findings,
            "asked_again": compared.map(|compared| compared.asked),
        })
    );
}
