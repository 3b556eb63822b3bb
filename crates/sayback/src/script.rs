//! The script of a scripted model: one JSON object a line, a step or the verdict of a check.
//!
//! ```text
//! {"say": "One moment.", "call": {"tool": "book_meeting", "input": {"start": "2026-12-03T15:00"}}}
//! {"verdict": "yes"}
//! ```
//!
//! Read strictly: a misspelt key that is passed over would be a script that does something else than it says.

use std::path::Path;

use sayback_providers::scripted::ScriptedStep;
use sayback_runtime::fault::slip;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::exit::Stop;

/// Steps of the model, and verdicts of its checks, each in order.
pub(crate) type Script = (Vec<ScriptedStep>, Vec<String>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    say: Option<String>,
    call: Option<Call>,
    verdict: Option<Verdict>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    #[serde(default)]
    input: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Yes,
    No,
    Unclear,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unclear => "unclear",
        }
    }
}

/// Reads a script; a fault is told with its line.
pub(crate) fn load(path: &Path) -> Result<Script, Stop> {
    let bytes = std::fs::read(path)
        .map_err(|error| Stop::unusable(format!("{}: cannot be read: {error}", path.display())))?;
    read(&bytes).map_err(|(line, wrong)| Stop::unusable(format!("{}:{line}: {wrong}{HINT}", path.display())))
}

const HINT: &str = "\n  hint: a line is {\"say\": \"…\"}, {\"call\": {\"tool\": \"…\", \"input\": {…}}}, both, or \
                    {\"verdict\": \"yes\"} (or no, unclear)";

fn read(bytes: &[u8]) -> Result<Script, (usize, String)> {
    let (mut steps, mut verdicts) = (Vec::new(), Vec::new());
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let wrong = |what: String| (index + 1, what);
        let text = std::str::from_utf8(line).map_err(|_| wrong("is not UTF-8 text".to_owned()))?.trim();
        if text.is_empty() {
            continue;
        }
        let line: Line = serde_json::from_str(text).map_err(|error| wrong(shown(&error)))?;
        match line {
            Line { say: None, call: None, verdict: Some(verdict) } => {
                verdicts.push(verdict.word().to_owned())
            }
            Line { say: None, call: None, verdict: None } => return Err(wrong("says nothing".to_owned())),
            Line { verdict: Some(_), .. } => {
                return Err(wrong("a verdict answers a check, so it has a line of its own".to_owned()));
            }
            Line { say, call, verdict: None } => {
                let mut step = ScriptedStep::say(say.unwrap_or_default());
                if let Some(Call { tool, input }) = call {
                    let id = format!("call_{}", steps.len() + 1);
                    step.calls = ScriptedStep::call(id, tool, Value::Object(input).to_string()).calls;
                }
                steps.push(step);
            }
        }
    }
    Ok((steps, verdicts))
}

/// The parser counts lines within the one line that it gets: only the column is of use.
fn shown(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    let meant = slip(what).map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
    format!("{what} (column {}){meant}", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_verdicts_are_told_apart() {
        let text = "{\"say\": \"Hi.\"}\n\n{\"call\": {\"tool\": \"book\", \"input\": {\"n\": 1}}}\r\n{\"verdict\": \"no\"}";
        let (steps, verdicts) = read(text.as_bytes()).unwrap();
        assert_eq!(steps[0], ScriptedStep::say("Hi."));
        assert_eq!(steps[1], ScriptedStep::call("call_2", "book", "{\"n\":1}"));
        assert_eq!(verdicts, ["no"]);
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        for (line, says) in [
            ("{\"sya\": \"Hi.\"}", "did you mean `say`?"),
            ("{\"say\": 5}", "expected a string"),
            ("{\"say\": \"Hi.\", \"verdict\": \"yes\"}", "a line of its own"),
            ("{\"verdict\": \"yep\"}", "unknown variant `yep`"),
            ("{\"verdict\": true}", "(column"),
            ("{\"call\": {\"tol\": \"book\"}}", "unknown field `tol`"),
            ("{\"call\": {\"input\": {}}}", "missing field `tool`"),
            ("{\"call\": {\"tool\": \"book\", \"input\": \"{}\"}}", "expected a map"),
            ("{\"call\": \"book\"}", "expected struct Call"),
            ("{}", "says nothing"),
            ("[]", "(column"),
            ("hello", "(column"),
            ("{\"say\": \"Hi.\"} {\"say\": \"there\"}", "trailing characters"),
        ] {
            let (at, wrong) = read(format!("{{\"say\": \"One.\"}}\n{line}").as_bytes()).unwrap_err();
            assert!(at == 2 && wrong.contains(says), "{line}: {at} {wrong}");
        }
        assert_eq!(read(b"{\"say\": \"Hi.\"}\n\xff").unwrap_err(), (2, "is not UTF-8 text".to_owned()));
    }
}
