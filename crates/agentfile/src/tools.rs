//! `[[skill]]` and `[[skill.tool]]`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sayback_core::{AskTerms, Policy};
use sayback_runtime::agent::{ConfirmedTool, Handler, PlainTool, Skill, Tool, ToolInfo};
use sayback_runtime::fault::{nearest, utf8};
use serde_json::json;

use crate::McpServer;
use crate::approval::{OperatorRule, read_approval};
use crate::condition::Condition;
use crate::definition::{Definition, described, name_fault};
use crate::error::Fault;
use crate::policy::EVIDENCE;
use crate::question::TemplateQuestion;
use crate::reader::{Section, json, place, shown};
use crate::schema::Schema;
use crate::template::{RESERVED, Template};

/// What tools of a file have in common.
#[derive(Debug)]
pub(crate) struct Surroundings<'s> {
    /// The agent file's folder.
    pub(crate) folder: PathBuf,
    pub(crate) language: String,
    pub(crate) policy: &'s Policy,
    /// Files that were read besides, in order: they are part of the agent's hash.
    pub(crate) referenced: Vec<String>,
    /// What the linter needs to know of each tool.
    pub(crate) origins: Vec<Origin>,
    names: BTreeMap<String, usize>,
    /// MCP servers, by what is written of them.
    pub(crate) servers: BTreeMap<String, Arc<McpServer>>,
}

/// A tool as the linter sees it.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) schema: Arc<Schema>,
    pub(crate) question: Option<TemplateQuestion>,
    /// The line of each language's template.
    pub(crate) lines: BTreeMap<String, usize>,
    /// The fields that the run uses; `None`: all of them.
    pub(crate) uses: Option<BTreeSet<String>>,
    /// The MCP server's tool that is called.
    pub(crate) offer: Option<Offer>,
}

impl<'s> Surroundings<'s> {
    pub(crate) fn new(folder: PathBuf, language: String, policy: &'s Policy) -> Self {
        let (referenced, origins, names, servers) =
            (Vec::new(), Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { folder, language, policy, referenced, origins, names, servers }
    }
}

pub(crate) fn skills(root: &Section<'_>, around: &mut Surroundings<'_>) -> Vec<Skill> {
    let mut names = BTreeSet::new();
    let mut skills = Vec::new();
    for section in root.children("skill") {
        let name = section.required_text("name", "booking");
        if !name.is_empty() && !names.insert(name.clone()) {
            section.fault_at("name", format!("there are two skills named `{}`", shown(&name)), "rename one");
        }
        let instructions = section.text("instructions").unwrap_or_default();
        let tools = section.children("tool").into_iter().filter_map(|tool| read_tool(tool, around)).collect();
        section.finish();
        skills.push(Skill { name, instructions, tools });
    }
    skills
}

/// The parts of a tool that were read, before they are put together.
struct Parts {
    name: String,
    description: String,
    schema: Option<Arc<Schema>>,
    question: Option<TemplateQuestion>,
    lines: BTreeMap<String, usize>,
    terms: AskTerms,
    approval: Option<OperatorRule>,
    run: Option<Run>,
    limit: Duration,
}

/// What a tool does, and what of that goes into its hash.
pub(crate) struct Run {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) written: serde_json::Value,
    pub(crate) uses: Option<BTreeSet<String>>,
    pub(crate) offer: Option<Offer>,
}

/// A server, and the name of a tool of its.
pub(crate) type Offer = (Arc<McpServer>, String);

fn read_tool(section: Section<'_>, around: &mut Surroundings<'_>) -> Option<Tool> {
    let name = tool_name(&section, around);
    let description = section.required_text("description", "Books the chosen slot.");
    let limit = section.duration("limit").unwrap_or(around.policy.turn.tool_limit);
    let schema = read_schema(&section, around).map(Arc::new);
    let (question, lines) = read_question(&section, schema.as_deref(), around);
    let terms = read_terms(&section, around);
    let approval = read_approval(&section, schema.as_deref());
    let run = crate::runs::read(&section, schema.as_deref(), around, limit);
    let line = section.reader().place(section.span_of("name").start).0;
    let parts = Parts { name, description, schema, question, lines, terms, approval, run, limit };
    let tool = assemble(&section, parts, line, around);
    section.finish();
    tool
}

fn tool_name(section: &Section<'_>, around: &mut Surroundings<'_>) -> String {
    let name = section.required_text("name", "book_meeting");
    if name.is_empty() {
        return name;
    }
    if let Some(why) = name_fault(&name) {
        section.fault_at("name", format!("the name `{}` cannot be used", shown(&name)), why);
    }
    let line = section.reader().place(section.span_of("name").start).0;
    if let Some(first) = around.names.insert(name.clone(), line) {
        let message = format!("there are two tools named `{}`", shown(&name));
        section.fault_at("name", message, format!("the other is in line {first}; rename one"));
    }
    name
}

fn assemble(section: &Section<'_>, parts: Parts, line: usize, around: &mut Surroundings<'_>) -> Option<Tool> {
    let (schema, run) = (parts.schema?, parts.run?);
    let question = parts.question;
    if section.has("confirm") && question.is_none() {
        // Its fault is noted; a tool that wanted a question never becomes one without.
        return None;
    }
    if section.has("approval") && parts.approval.is_none() {
        // The same for one that wanted an operator.
        return None;
    }
    let confirm =
        question.iter().flat_map(|q| &q.by_language).map(|(tag, t)| (tag.as_str(), t.source())).collect();
    let when = section.text("confirm_when");
    let definition = Definition {
        name: &parts.name,
        schema: schema.source(),
        confirm,
        when: when.as_deref(),
        run: &run.written,
        terms: parts.terms,
        approval: parts.approval.as_ref().map_or(serde_json::Value::Null, OperatorRule::written),
    };
    let hash = definition
        .hash()
        .map_err(|why| section.fault_here(format!("the tool cannot be hashed: {why}"), ""))
        .ok()?;
    let info = ToolInfo {
        name: parts.name.clone(),
        description: described(&parts.description, question.is_some()),
        schema: schema.source().clone(),
        validate: Arc::clone(&schema) as _,
        limit: parts.limit,
        definition: hash,
    };
    let (uses, offer) = (run.uses, run.offer);
    around.origins.push(Origin {
        name: parts.name,
        line,
        schema,
        question: question.clone(),
        lines: parts.lines,
        uses,
        offer,
    });
    let tool = match question {
        None => Tool::Plain(PlainTool::new(info, run.handler)),
        Some(question) => {
            Tool::Confirmed(ConfirmedTool::new(info, Arc::new(question), parts.terms, run.handler))
        }
    };
    Some(match parts.approval {
        Some(rule) => tool.approved_by(Arc::new(rule)),
        None => tool,
    })
}

fn read_schema(section: &Section<'_>, around: &mut Surroundings<'_>) -> Option<Schema> {
    let Some(node) = section.node("input") else {
        return Schema::compile(json!({ "type": "object", "properties": {} })).ok();
    };
    if let Some(file) = node.get_ref().as_str() {
        return schema_file(section, file, around);
    }
    if !node.get_ref().is_table() {
        return section.wrong_type("input", node, "a JSON Schema as a table, or the name of a file with one");
    }
    let compiled = Schema::compile(json(node));
    let schema = compiled
        .map_err(|why| section.fault_value(node, format!("the input's schema is broken: {why}"), ""))
        .ok()?;
    check_fields(section, &schema);
    Some(schema)
}

fn schema_file(section: &Section<'_>, file: &str, around: &mut Surroundings<'_>) -> Option<Schema> {
    let path = around.folder.join(file);
    let text = match std::fs::read(&path).map(|bytes| utf8(&path, bytes)) {
        Ok(Ok(text)) => text,
        Ok(Err(fault)) => {
            section.reader().fault_in(fault);
            return None;
        }
        Err(error) => {
            let message = format!("the schema {} cannot be read: {error}", path.display());
            section.fault_at("input", message, "the name is relative to the agent file");
            return None;
        }
    };
    let reader = section.reader();
    let broken = |offset: (usize, usize), message: String| {
        let (line, column) = offset;
        reader.fault_in(Fault { path: path.clone(), line, column, message, hint: String::new() });
    };
    let value = serde_json::from_str(&text)
        .map_err(|error| {
            broken((error.line().max(1), error.column().max(1)), format!("this is no JSON: {error}"))
        })
        .ok()?;
    let schema = Schema::compile(value)
        .map_err(|why| broken(place(&text, 0), format!("the input's schema is broken: {why}")))
        .ok()?;
    around.referenced.push(text);
    check_fields(section, &schema);
    Some(schema)
}

/// Fields that would hide what templates see under these names.
fn check_fields(section: &Section<'_>, schema: &Schema) {
    for field in schema.fields().iter().filter(|field| RESERVED.contains(field)) {
        let message = format!("an input field cannot be named `{field}`");
        section.fault_at("input", message, "templates use that name; rename the field");
    }
}

fn read_question(
    section: &Section<'_>,
    schema: Option<&Schema>,
    around: &Surroundings<'_>,
) -> (Option<TemplateQuestion>, BTreeMap<String, usize>) {
    let Some(node) = section.node("confirm") else { return (None, BTreeMap::new()) };
    let mut written = Vec::new();
    if let Some(text) = node.get_ref().as_str() {
        written.push((around.language.clone(), text, node));
    } else if let Some(table) = node.get_ref().as_table() {
        for (tag, inner) in table.iter() {
            match inner.get_ref().as_str() {
                Some(text) => written.push((tag.get_ref().to_string(), text, inner)),
                None => drop(section.wrong_type::<()>(
                    &format!("confirm.{}", tag.get_ref()),
                    inner,
                    "text in quotes",
                )),
            }
        }
    } else {
        section.wrong_type::<()>("confirm", node, "the question, or a table of questions by language");
        return (None, BTreeMap::new());
    }
    let nothing = written.is_empty();
    let mut lines = BTreeMap::new();
    let mut by_language = BTreeMap::new();
    let (fields, open) = schema.map_or((Vec::new(), true), |s| (s.fields(), s.is_open()));
    for (tag, text, inner) in written {
        if !is_language(&tag) {
            section.fault_value(
                inner,
                format!("`{}` is not a language tag", shown(&tag)),
                "write it like `en` or `pt-BR`",
            );
        }
        if text.trim().is_empty() {
            section.fault_value(
                inner,
                "the question is empty",
                "leave `confirm` out for a tool without a question",
            );
        }
        lines.insert(tag.clone(), section.reader().place(inner.span().start).0);
        match Template::compile(text, &fields, open) {
            Ok(template) => drop(by_language.insert(tag, template)),
            Err((message, hint)) => {
                section.fault_value(inner, format!("the question is broken: {message}"), hint)
            }
        }
    }
    let when = read_condition(section, "confirm_when", &fields, open);
    if by_language.is_empty() {
        // A question that is broken has been told of.
        if nothing {
            section.fault_value(node, "`confirm` has no question", "write `confirm = \"Shall I …?\"`");
        }
        return (None, lines);
    }
    (Some(TemplateQuestion { by_language, language: around.language.clone(), when }), lines)
}

/// A condition over the input: `confirm_when`, `approval_when`.
pub(crate) fn read_condition(
    section: &Section<'_>,
    key: &'static str,
    fields: &[&str],
    open: bool,
) -> Option<Condition> {
    let source = section.text(key)?;
    match Condition::compile(&source) {
        Err(why) => {
            let hint = "write a boolean expression over the input, like \"amount > 100\"";
            section.fault_at(key, format!("`{key}` is broken: {why}"), hint);
            None
        }
        Ok(condition) => {
            for field in condition.fields() {
                if !open && !fields.contains(&field) {
                    let message = format!("`{key}` reads `{field}`, which the input does not have");
                    let hint = match nearest(field, fields.iter().copied()) {
                        Some(known) => format!("did you mean `{known}`?"),
                        None => format!("the input has: {}", fields.join(", ")),
                    };
                    section.fault_at(key, message, hint);
                }
            }
            Some(condition)
        }
    }
}

/// What a tool asks for beyond a yes. Nothing of it is ever silently ignored.
fn read_terms(section: &Section<'_>, around: &Surroundings<'_>) -> AskTerms {
    let irreversible = section.boolean("irreversible").unwrap_or(false);
    let evidence = section.one_of("evidence", &EVIDENCE);
    let agents = around.policy.confirm.keypad;
    if section.boolean("keypad").is_some_and(|own| own != agents) {
        let message = "a tool cannot have a `keypad` setting that differs from the agent's";
        section.fault_at("keypad", message, format!("set `keypad = {}` in [confirm]", !agents));
    }
    if !section.has("confirm") {
        section.node("confirm_when");
        for key in
            ["confirm_when", "irreversible", "evidence", "keypad"].iter().filter(|key| section.has(key))
        {
            let hint = "add `confirm = \"Shall I …?\"`, or remove it";
            section.fault_at(key, format!("`{key}` has no meaning without `confirm`"), hint);
        }
    }
    AskTerms { irreversible, evidence }
}

pub(crate) fn is_language(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let base = parts.next().unwrap_or_default();
    let letters = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric());
    (2..=3).contains(&base.len())
        && base.chars().all(|c| c.is_ascii_lowercase())
        && parts.all(|part| (2..=8).contains(&part.len()) && letters(part))
}
