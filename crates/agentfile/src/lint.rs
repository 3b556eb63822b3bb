//! The linter: questions that a caller cannot answer well, and yeses that cover less than what runs (VC-16).

mod offers;
mod sample;
mod wording;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::Value;

pub use offers::lint_offers;

use crate::AgentFile;
use crate::question::TemplateQuestion;
use crate::template::{Template, View};
use crate::tools::Origin;

/// The kinds of findings; each has a page in `docs/lints`.
pub const CODES: [&str; 19] = [
    "either-or",
    "free-text",
    "long-question",
    "long-tail",
    "markup",
    "mcp-destructive",
    "mcp-input-differs",
    "mcp-no-such-tool",
    "mcp-unreachable",
    "missing-language",
    "negation",
    "no-question-mark",
    "open-input",
    "partly-spoken",
    "sample-failed",
    "two-actions",
    "ungrouped-digits",
    "unknown-language",
    "unspoken-field",
];

/// A question this long is hard to hold in mind.
const LONG: f32 = 8.0;
/// A question this long is answered before it ends.
const TOO_LONG: f32 = 12.0;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth a look.
    Warning,
    /// Will go wrong in a call.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// One thing that the linter found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its kind: one of [`CODES`].
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The line in the agent file.
    pub line: usize,
    /// What was found.
    pub message: String,
    /// How to mend it.
    pub fix: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, severity, line, message, fix } = self;
        write!(f, "line {line}: {severity} [{code}]: {message}; {fix}")
    }
}

/// Everything there is to say about an agent's questions, in the order of the file.
pub fn lint(file: &AgentFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let asked = || file.origins.iter().filter_map(|origin| Some((origin, origin.question.as_ref()?)));
    let spoken: Vec<&str> =
        asked().flat_map(|(_, question)| question.by_language.keys()).map(String::as_str).collect();
    for (origin, question) in asked() {
        lint_languages(origin, question, &spoken, &mut findings);
        lint_openness(origin, &mut findings);
        for (tag, template) in &question.by_language {
            let line = origin.lines.get(tag).copied().unwrap_or(origin.line);
            let place = Place { origin, tag, template, line };
            lint_fields(&place, &mut findings);
            lint_sound(&place, &mut findings);
        }
    }
    findings.sort_by(|a, b| (a.line, a.code, &a.message).cmp(&(b.line, b.code, &b.message)));
    findings.dedup();
    findings
}

struct Place<'a> {
    origin: &'a Origin,
    tag: &'a str,
    template: &'a Template,
    line: usize,
}

impl Place<'_> {
    fn finding(&self, code: &'static str, severity: Severity, message: String, fix: &str) -> Finding {
        let message = format!("the question of `{}` ({}) {message}", self.origin.name, self.tag);
        Finding { code, severity, line: self.line, message, fix: fix.to_owned() }
    }
}

/// Each tool asks in the agent's language, and in every other one that any tool of the agent asks in.
fn lint_languages(
    origin: &Origin,
    question: &TemplateQuestion,
    spoken: &[&str],
    findings: &mut Vec<Finding>,
) {
    let mut others: Vec<&str> = spoken.to_vec();
    others.sort_unstable();
    others.dedup();
    for other in others.into_iter().filter(|tag| !question.by_language.contains_key(*tag)) {
        findings.push(Finding {
            code: "missing-language",
            severity: Severity::Warning,
            line: origin.line,
            message: format!("`{}` has no question in `{other}`, though another tool has one", origin.name),
            fix: format!("add `confirm.{other} = \"…\"`: else a call in it changes its language to ask"),
        });
    }
    if question.choose("").is_none() {
        let language = &question.language;
        findings.push(Finding {
            code: "missing-language",
            severity: Severity::Error,
            line: origin.line,
            message: format!("`{}` has no question in the agent's language `{language}`", origin.name),
            fix: format!("add `confirm.{language} = \"…\"`"),
        });
    }
}

fn lint_openness(origin: &Origin, findings: &mut Vec<Finding>) {
    if origin.schema.is_open() {
        findings.push(Finding {
            code: "open-input",
            severity: Severity::Warning,
            line: origin.line,
            message: format!(
                "the input of `{}` can carry fields that its question does not know of",
                origin.name
            ),
            fix: "add `additionalProperties = false` (or `unevaluatedProperties = false`) to it".to_owned(),
        });
    }
}

fn lint_fields(place: &Place<'_>, findings: &mut Vec<Finding>) {
    let schema = &place.origin.schema;
    let spoken = heard(place);
    let whole_input = spoken.contains("input");
    for field in schema.fields() {
        if spoken.contains(field) && schema.field(field).is_some_and(is_free_text) {
            let message = format!("speaks `{field}`, which can be any text");
            let fix = "give the field a `format`, `enum`, `pattern` or `maxLength`";
            findings.push(place.finding("free-text", Severity::Warning, message, fix));
        }
        let used =
            place.origin.uses.as_ref().is_none_or(|uses| uses.contains(field) || uses.contains("input"));
        if used && !whole_input && !spoken.contains(field) {
            let message = format!("leaves out `{field}`, which the run uses");
            let fix = "say it in the question, or remove the field: a yes must cover all of what runs";
            findings.push(place.finding("unspoken-field", Severity::Warning, message, fix));
        }
    }
}

/// The fields that the question reads by name, and those with which it changes: a slice reads its field without its
/// template saying so.
fn heard(place: &Place<'_>) -> BTreeSet<String> {
    let mut fields = place.template.fields();
    let render =
        |input: &Value| place.template.render(View { input, vars: &BTreeMap::new(), language: place.tag });
    let input = sample::sample(place.origin);
    let Ok(text) = render(&input) else { return fields };
    let changes = sample::changes(place.origin, &input);
    let moved = changes.into_iter().filter(|change| render(&change.input).is_ok_and(|other| other != text));
    fields.extend(moved.map(|change| change.field));
    fields
}

fn is_free_text(field: &Value) -> bool {
    let is_text = field.get("type").is_none_or(|kind| {
        kind == "string" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "string"))
    });
    is_text && !["format", "enum", "const", "pattern", "maxLength"].iter().any(|key| field.get(key).is_some())
}

/// What the question sounds like with a made-up input, and whether each change of the input can be heard (VC-16).
fn lint_sound(place: &Place<'_>, findings: &mut Vec<Finding>) {
    let input = sample::sample(place.origin);
    let render =
        |input: &Value| place.template.render(View { input, vars: &BTreeMap::new(), language: place.tag });
    let text = match render(&input) {
        Ok(text) => text,
        // Call variables have no sample.
        Err(_) if place.template.names().contains("vars") => {
            return wording::lint_wording(place, &wording::without_values(place.template.source()), findings);
        }
        Err(why) => {
            let message = format!("cannot be built from the sample input {input}: {why}");
            let fix = "give its fields a `format` or `examples` that fits the filter";
            findings.push(place.finding("sample-failed", Severity::Warning, message, fix));
            return wording::lint_wording(place, &wording::without_values(place.template.source()), findings);
        }
    };
    wording::lint_wording(place, &text, findings);
    lint_length(place, &text, findings);
    lint_changes(place, &input, &text, findings);
}

fn lint_length(place: &Place<'_>, text: &str, findings: &mut Vec<Finding>) {
    let seconds = wording::seconds(place.tag, text.chars().count());
    let severity = if seconds > TOO_LONG { Severity::Error } else { Severity::Warning };
    if seconds > LONG {
        let message = format!("takes about {seconds:.0} s to say: \"{text}\"");
        let fix = "ask in fewer words; callers answer long questions before they end";
        findings.push(place.finding("long-question", severity, message, fix));
    }
}

/// Changes each field that the run uses, and listens whether the question changes with it.
fn lint_changes(place: &Place<'_>, input: &Value, text: &str, findings: &mut Vec<Finding>) {
    let spoken = heard(place);
    let whole = spoken.contains("input");
    for change in sample::changes(place.origin, input) {
        let used = place.origin.uses.as_ref().is_none_or(|uses| uses.contains(&change.field));
        // A field that cannot be heard at all has a finding of its own.
        if !used || !(whole || spoken.contains(&change.field)) {
            continue;
        }
        let view = View { input: &change.input, vars: &BTreeMap::new(), language: place.tag };
        if place.template.render(view).as_deref() == Ok(text) {
            let (field, from, to) = (&change.path, &change.from, &change.to);
            let message = format!("is the same for `{field}` = {from} and {to}");
            let fix = "speak the whole value (another filter, or `{{ field }}` itself): a yes must cover exactly what runs";
            findings.push(place.finding("partly-spoken", Severity::Warning, message, fix));
        }
    }
}
