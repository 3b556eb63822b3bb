//! The linter: questions that a caller cannot answer well, and yeses that cover less than what runs (VC-16).

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::AgentFile;
use crate::question::TemplateQuestion;
use crate::template::{Template, View};
use crate::tools::Origin;

/// How fast a voice speaks, in characters a second.
const CHARACTERS_PER_SECOND: f32 = 15.0;
/// A question this long is hard to hold in mind.
const LONG: f32 = 8.0;
/// A question this long is answered before it ends.
const TOO_LONG: f32 = 12.0;
/// Callers answer once they have heard the last value: what follows it invites a yes that comes too early.
const TAIL: f32 = 0.3;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth a look.
    Warning,
    /// Will go wrong in a call.
    Error,
}

/// One thing that the linter found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its kind: `free-text`, `unspoken-field`, `open-input`, `no-question-mark`, `long-tail`, `long-question`,
    /// `missing-language`, `sample-failed`.
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
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "line {}: {severity} [{}]: {}; {}", self.line, self.code, self.message, self.fix)
    }
}

/// Everything there is to say about an agent's questions, in the order of the file.
pub fn lint(file: &AgentFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for origin in &file.origins {
        let Some(question) = &origin.question else { continue };
        lint_languages(origin, question, &mut findings);
        lint_openness(origin, &mut findings);
        for (tag, template) in &question.by_language {
            let line = origin.lines.get(tag).copied().unwrap_or(origin.line);
            let place = Place { origin, tag, template, line };
            lint_fields(&place, &mut findings);
            lint_wording(&place, &mut findings);
            lint_length(&place, &mut findings);
        }
    }
    findings.sort_by(|a, b| (a.line, a.code).cmp(&(b.line, b.code)));
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

fn lint_languages(origin: &Origin, question: &TemplateQuestion, findings: &mut Vec<Finding>) {
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
    let spoken = place.template.fields();
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

fn is_free_text(field: &Value) -> bool {
    let is_text = field.get("type").is_none_or(|kind| {
        kind == "string" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "string"))
    });
    is_text && !["format", "enum", "const", "pattern", "maxLength"].iter().any(|key| field.get(key).is_some())
}

fn lint_wording(place: &Place<'_>, findings: &mut Vec<Finding>) {
    let source = place.template.source();
    if !source.contains(['?', '？', '؟']) && !source.trim_end().ends_with(['か', '。']) {
        let fix = "end it with a question mark, so that the voice asks";
        findings.push(place.finding("no-question-mark", Severity::Warning, "does not ask".to_owned(), fix));
    }
    let Some((_, tail)) = source.rsplit_once("}}") else { return };
    let spoken = tail.chars().filter(|c| c.is_alphanumeric() || *c == ' ').count();
    let seconds = spoken as f32 / CHARACTERS_PER_SECOND;
    if seconds > TAIL {
        let message = format!("goes on for about {:.0} ms after its last value", seconds * 1_000.0);
        let fix =
            "put the value last: callers say yes once they have heard it, and a yes before the end is no yes";
        findings.push(place.finding("long-tail", Severity::Warning, message, fix));
    }
}

fn lint_length(place: &Place<'_>, findings: &mut Vec<Finding>) {
    let input = sample(place.origin);
    let view = View { input: &input, vars: &BTreeMap::new(), language: place.tag };
    let text = match place.template.render(view) {
        Ok(text) => text,
        // Call variables have no sample.
        Err(_) if place.template.names().contains("vars") => return,
        Err(why) => {
            let message = format!("cannot be built from the sample input {input}: {why}");
            let fix = "give its fields a `format` or `examples` that fits the filter";
            findings.push(place.finding("sample-failed", Severity::Warning, message, fix));
            return;
        }
    };
    let seconds = text.chars().count() as f32 / CHARACTERS_PER_SECOND;
    let severity = if seconds > TOO_LONG { Severity::Error } else { Severity::Warning };
    if seconds > LONG {
        let message = format!("takes about {seconds:.0} s to say: \"{text}\"");
        let fix = "ask in fewer words; callers answer long questions before they end";
        findings.push(place.finding("long-question", severity, message, fix));
    }
}

/// An input that fits the schema, as far as one can be made up.
fn sample(origin: &Origin) -> Value {
    let field = |name: &str| origin.schema.field(name).map_or(Value::Null, sample_of);
    let fields = origin.schema.fields().into_iter().map(|name| (name.to_owned(), field(name)));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn sample_of(field: &Value) -> Value {
    let first = |key: &str| field.get(key).and_then(|list| list.get(0)).cloned();
    let given = first("examples").or_else(|| field.get("const").cloned()).or_else(|| first("enum"));
    if let Some(value) = given.or_else(|| field.get("default").cloned()) {
        return value;
    }
    let least = field.get("minimum").and_then(Value::as_i64);
    match field.get("type").and_then(Value::as_str).unwrap_or("string") {
        "integer" | "number" => json!(least.unwrap_or(2)),
        "boolean" => Value::Bool(true),
        "array" => {
            let item = field.get("items").map_or(Value::Null, sample_of);
            Value::Array(vec![item.clone(), item])
        }
        "object" => {
            let properties = field.get("properties").and_then(Value::as_object);
            let fields =
                properties.into_iter().flatten().map(|(name, inner)| (name.clone(), sample_of(inner)));
            Value::Object(fields.collect())
        }
        _ => Value::String(sample_text(field.get("format").and_then(Value::as_str))),
    }
}

fn sample_text(format: Option<&str>) -> String {
    let text = match format {
        Some("date") => "2026-12-03",
        Some("local-date-time") => "2026-12-03T15:30",
        Some("date-time") => "2026-12-03T15:30:00+01:00",
        Some("time") => "15:30:00+01:00",
        Some("local-time") => "15:30",
        Some("email" | "idn-email") => "anna.smith@example.com",
        Some("phone") => "+49 30 1234567",
        _ => "something",
    };
    text.to_owned()
}
