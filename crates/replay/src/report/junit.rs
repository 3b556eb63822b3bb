//! Results as JUnit XML, which build servers read.

use std::fmt::Write as _;

use super::escape::escaped;
use super::{Outcome, RunResult, Tally};

/// One `testsuite` with a `testcase` per scenario. Times are those of the calls, not of the run: the file does not
/// depend on the machine.
pub fn junit_xml(outcomes: &[Outcome]) -> String {
    let mut tally = Tally::default();
    outcomes.iter().for_each(|outcome| tally.add(outcome));
    let seconds: f64 = outcomes.iter().map(|outcome| outcome.call_ms).sum::<f64>() / 1_000.0;
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{seconds:.3}\"",
        outcomes.len(),
        tally.failed - tally.unusable,
        tally.unusable
    );
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"sayback replay\" \
         {counts}>\n"
    );
    outcomes.iter().for_each(|outcome| test_case(&mut xml, outcome));
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn test_case(xml: &mut String, outcome: &Outcome) {
    let path = attribute(&outcome.path.to_string_lossy());
    let title = attribute(&outcome.title);
    let seconds = outcome.call_ms / 1_000.0;
    let _ = write!(
        xml,
        "    <testcase classname=\"{path}\" name=\"{title}\" file=\"{path}\" time=\"{seconds:.3}\""
    );
    let (tag, problems): (_, Vec<(String, String)>) = match &outcome.result {
        RunResult::Passed => return xml.push_str("/>\n"),
        RunResult::Failed(failures) => {
            ("failure", failures.iter().map(|f| (f.expected.clone(), f.to_string())).collect())
        }
        RunResult::Unusable(faults) => {
            ("error", faults.iter().map(|f| (f.message.clone(), format!("{f:#}"))).collect())
        }
    };
    xml.push_str(">\n");
    for (message, text) in problems {
        let _ = writeln!(xml, "      <{tag} message=\"{}\">{}</{tag}>", attribute(&message), escaped(&text));
    }
    xml.push_str("    </testcase>\n");
}

/// Attribute values hold no line breaks: a parser would turn them into spaces.
fn attribute(text: &str) -> String {
    escaped(&text.replace(['\n', '\t', '\r'], " "))
}
