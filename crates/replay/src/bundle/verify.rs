//! Checking a recording's evidence: that nothing in it was changed, and that each decision follows from it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use sayback_core::{CheckId, CheckRequest, HoldId};
use sayback_runtime::frozen::sha256;
use sayback_runtime::prompt::vetoed;
use sayback_runtime::record::{
    EVENTS, EVIDENCE, JOURNAL, PAGE, SHEET, SOUND, canonical_text, config_hash, facts, file_hash,
};
use sayback_runtime::redact::{FIELDS as SAID, is_redacted};
use serde_json::{Map, Value};

use super::recompute::{Recomputed, contains, recompute};
use super::{Bundle, BundleError, read};

mod chain;
mod rules;

use chain::{Chain, read_chain};

/// Something in a recording that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: String,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
}

impl Finding {
    fn new(file: &str, line: Option<usize>, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// What came of checking a recording.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// The seal's hash; absent in a recording that was not finished.
    pub seal: Option<String>,
    /// A line for people per decision.
    pub decisions: Vec<String>,
    /// Stretches of sound whose hash was compared.
    pub sounds: usize,
    /// Checks whose vetoes were computed again.
    pub vetoes: usize,
    /// Everything that is wrong.
    pub findings: Vec<Finding>,
}

/// Checks a recording: the chain, every file against the seal, the journal by deciding it again, each decision by the
/// rules from the record alone, vetoes anew, and the sound of questions and answers against their hashes.
///
/// # Errors
/// If the folder is no recording, or one from before there was evidence in a chain.
pub fn verify(folder: &Path) -> Result<Verified, BundleError> {
    if !super::is_bundle(folder) {
        return Err(BundleError::NotOne(folder.to_owned()));
    }
    let sheet = read(&folder.join(SHEET))?;
    let evidence = read(&folder.join(EVIDENCE))?;
    let mut done = Verified::default();
    let chain = read_chain(&evidence, &mut done.findings);
    if chain.opening.is_none() && before_chains(&sheet) && !chain.seen {
        return Err(BundleError::NoChain(folder.to_owned()));
    }
    done.seal = chain.seal.as_ref().and_then(|(_, seal)| text(seal, "hash"));
    bind_sheet(&chain, &sheet, &mut done.findings);
    bind_files(folder, &chain, &mut done.findings);
    match Bundle::open(folder) {
        Ok(bundle) => decide(&bundle, &chain, &mut done),
        Err(error) => done.findings.push(told(folder, &error)),
    }
    Ok(done)
}

fn text(line: &Map<String, Value>, key: &str) -> Option<String> {
    line.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// Whether a first page says that there was no chain yet.
fn before_chains(sheet: &[u8]) -> bool {
    serde_json::from_slice::<Value>(sheet).is_ok_and(|sheet| sheet["format"] == 1)
}

fn told(folder: &Path, error: &BundleError) -> Finding {
    let (file, line) = match error {
        BundleError::Broken { path, line, .. } => (path.as_path(), Some(*line)),
        BundleError::Newer { path, .. } | BundleError::Unreadable { path, .. } => (path.as_path(), None),
        BundleError::NotOne(path) | BundleError::NoChain(path) => (path.as_path(), None),
    };
    let name = file.strip_prefix(folder).unwrap_or(file).display().to_string();
    let said = error.to_string();
    let said = said.lines().next().unwrap_or_default();
    let place = match line {
        Some(line) => format!("{}:{line}: ", file.display()),
        None => format!("{}: ", file.display()),
    };
    Finding::new(&name, line, said.strip_prefix(&place).unwrap_or(said))
}

/// The first page is bound by the first line, so that it is checked in a recording without a seal too.
fn bind_sheet(chain: &Chain, sheet: &[u8], findings: &mut Vec<Finding>) {
    let stated = chain.opening.as_ref().and_then(|opening| text(opening, "sheet"));
    if stated.is_some_and(|stated| stated != sha256(sheet)) {
        findings.push(Finding::new(SHEET, None, "it was changed after the call began"));
    }
}

fn bind_files(folder: &Path, chain: &Chain, findings: &mut Vec<Finding>) {
    let Some((number, seal)) = &chain.seal else { return };
    let none = Map::new();
    let files = seal.get("files").and_then(Value::as_object).unwrap_or(&none);
    let known = [SHEET, JOURNAL, EVENTS, SOUND, PAGE];
    for name in files.keys().filter(|name| !known.contains(&name.as_str())) {
        findings.push(Finding::new(
            EVIDENCE,
            Some(*number),
            format!("the seal names an unknown file {name:?}"),
        ));
    }
    for name in known {
        let stated = files.get(name).and_then(Value::as_str);
        let what = match (file_hash(&folder.join(name)), stated) {
            (Ok(found), Some(stated)) if found == stated => continue,
            (Err(_), None) => continue,
            (Ok(_), Some(_)) => "it was changed after it was sealed".to_owned(),
            (Ok(_), None) => "it was added after the recording was sealed".to_owned(),
            (Err(error), Some(_)) => format!("it was sealed, and cannot be read now: {error}"),
        };
        findings.push(Finding::new(name, None, what));
    }
}

/// Decides everything again.
fn decide(bundle: &Bundle, chain: &Chain, done: &mut Verified) {
    if chain.opening.as_ref().and_then(|o| text(o, "config")).is_some_and(|c| c != config_hash(&bundle.sheet))
    {
        done.findings.push(Finding::new(SHEET, None, "the settings are not those that were in force"));
    }
    let again = match recompute(bundle) {
        Ok(again) => again,
        Err(error) => return done.findings.push(told(&bundle.folder, &error)),
    };
    if let Some(divergence) = &again.divergence {
        let what = format!("decided again, it takes another course: {}", divergence.got);
        done.findings.push(Finding::new(JOURNAL, Some(divergence.line), what));
    }
    compare_events(bundle, &again, done);
    compare_records(chain, &again, done);
    let sound = bundle.sound().map_err(|error| done.findings.push(told(&bundle.folder, &error)));
    for (number, line) in &chain.decisions {
        done.decisions.push(rules::shown(line));
        for what in rules::broken(line, &bundle.sheet.policy) {
            done.findings.push(Finding::new(EVIDENCE, Some(*number), what));
        }
        veto_again(*number, line, done);
        if let Ok((caller, agent)) = &sound {
            let tracks = BTreeMap::from([("caller", caller.as_slice()), ("agent", agent.as_slice())]);
            compare_sound(*number, line, &tracks, done);
        }
    }
}

/// The event log is what the journal's commands report, line by line.
fn compare_events(bundle: &Bundle, again: &Recomputed, done: &mut Verified) {
    let Ok(bytes) = read(&bundle.path(EVENTS)) else { return };
    let log = String::from_utf8_lossy(&bytes);
    let redacted = !bundle.sheet.redacted.is_empty();
    // The log has whole texts without details, the journal has masked pieces of the model's: they differ in words only.
    let bare = |mut event: Value| {
        if let Some(fields) = event.as_object_mut().filter(|_| redacted) {
            fields.retain(|key, _| !SAID.contains(&key.as_str()));
        }
        event.to_string()
    };
    let shown = |line: &str| match serde_json::from_str::<Value>(line) {
        Ok(event) if redacted => bare(event),
        Ok(_) | Err(_) => line.to_owned(),
    };
    let mut expected = again.events.iter();
    for (index, line) in log.split_inclusive('\n').enumerate() {
        // A call that was cut off may end within a line.
        let Some(line) = line.strip_suffix('\n') else { return };
        match expected.next().map(|event| bare(event.clone())) {
            Some(event) if event == shown(line) => {}
            // What follows a divergence is not known.
            None if again.divergence.is_some() => return,
            _ => {
                let what = "this line is not what the journal says";
                return done.findings.push(Finding::new(EVENTS, Some(index + 1), what));
            }
        }
    }
}

fn compare_records(chain: &Chain, again: &Recomputed, done: &mut Verified) {
    let exact = |value: &Map<String, Value>| -> Value {
        // The same numbers in the same form, whatever they were computed from.
        serde_json::from_str(&canonical_text(&Value::Object(value.clone()))).unwrap_or_default()
    };
    for ((number, line), record) in chain.decisions.iter().zip(&again.records) {
        let facts = exact(&facts(record));
        let differs = facts
            .as_object()
            .into_iter()
            .flatten()
            .find(|(key, value)| !line.get(key.as_str()).is_some_and(|line| contains(line, value)));
        if let Some((key, _)) = differs {
            let what = format!("`{key}` is not what the journal gives");
            done.findings.push(Finding::new(EVIDENCE, Some(*number), what));
        }
    }
    let (kept, found) = (chain.decisions.len(), again.records.len());
    if again.divergence.is_none() && !again.torn && kept != found {
        let what = format!("it has {kept} decisions, and the journal gives {found}");
        done.findings.push(Finding::new(EVIDENCE, None, what));
    }
}

/// Vetoes are computed again from the words, the question and the input.
fn veto_again(number: usize, line: &Map<String, Value>, done: &mut Verified) {
    let check = &line.get("check").cloned().unwrap_or_default();
    let said_yes = check["raw"] == "yes";
    let (Some(words), Some(question), Some(language)) =
        (check["words"].as_str(), text(line, "question"), text(line, "lang"))
    else {
        return;
    };
    // What stands for a detail is no word to judge: the outcome is checked by the rules, not computed again.
    let input = canonical_text(line.get("input").unwrap_or(&Value::Null));
    if !said_yes || [words, question.as_str(), input.as_str()].iter().any(|text| is_redacted(text)) {
        return;
    }
    let request = CheckRequest {
        check: CheckId(0),
        hold: HoldId(0),
        question,
        words: words.to_owned(),
        language,
        input,
        sounded: serde_json::from_value(check["sounded"].clone()).unwrap_or_default(),
        limit: std::time::Duration::ZERO,
    };
    let found = vetoed(&request);
    done.vetoes += 1;
    if found.as_deref() != check["veto"].as_str() {
        let shown = |veto: Option<&str>| veto.map_or("none".to_owned(), |veto| format!("`{veto}`"));
        let what = format!(
            "the veto was {}, and computed again it is {}",
            shown(check["veto"].as_str()),
            shown(found.as_deref())
        );
        done.findings.push(Finding::new(EVIDENCE, Some(number), what));
    }
}

fn compare_sound(
    number: usize,
    line: &Map<String, Value>,
    tracks: &BTreeMap<&str, &[i16]>,
    done: &mut Verified,
) {
    for (what, span) in [("question", line.get("question_audio")), ("answer", line.get("answer"))] {
        let Some(span) = span else { continue };
        let sample = |key: &str| span[key].as_u64().and_then(|n| usize::try_from(n).ok());
        let (Some(from), Some(to), Some(stated)) =
            (sample("from_sample"), sample("to_sample"), span["sha256"].as_str())
        else {
            continue;
        };
        let samples =
            span["track"].as_str().and_then(|track| tracks.get(track)).and_then(|t| t.get(from..to));
        let bytes = samples.map(|s| s.iter().flat_map(|sample| sample.to_le_bytes()).collect::<Vec<u8>>());
        done.sounds += 1;
        if bytes.is_none_or(|bytes| sha256(&bytes) != stated) {
            let said =
                format!("the sound of the {what} (samples {from} to {to}) is not in {SOUND} as it was");
            done.findings.push(Finding::new(EVIDENCE, Some(number), said));
        }
    }
}
