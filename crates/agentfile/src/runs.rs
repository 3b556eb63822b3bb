//! `run`: which of the back ends, and its settings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::reader::{Node, Section, json, shown};
use crate::run::{Command, Header, Http, Mcp, McpServer, Method, Reach, Reply, web_address};
use crate::schema::Schema;
use crate::settings::env_name;
use crate::template::Template;
use crate::tools::{Run, Surroundings};

pub(crate) fn read(
    tool: &Section<'_>,
    schema: Option<&Schema>,
    around: &mut Surroundings<'_>,
    limit: Duration,
) -> Option<Run> {
    let hint = "add for example `run = { reply = { message = \"Booked.\" } }`; also `http`, `command`, `mcp`";
    let Some(node) = tool.node("run") else {
        tool.fault_here("the tool has no `run`", hint);
        return None;
    };
    let run = tool.open("run", node)?;
    let written = json(node);
    let given = ["reply", "http", "command", "mcp"].iter().filter(|kind| run.has(kind)).count();
    if given != 1 {
        run.fault_here(
            "`run` must have exactly one of `reply`, `http`, `command`, `mcp`",
            if given == 0 { hint } else { "" },
        );
    }
    let reply = run.child("reply").and_then(|section| read_reply(section, schema, around, &written));
    let http = run.child("http").and_then(|section| read_http(section, limit, &written));
    let command = run.node("command").and_then(|node| read_command(&run, node, around, limit, &written));
    let mcp = run.child("mcp").and_then(|section| read_mcp(section, around, limit, &written));
    run.finish();
    if given == 1 { reply.or(http).or(command).or(mcp) } else { None }
}

fn read_reply(
    section: Section<'_>,
    schema: Option<&Schema>,
    around: &Surroundings<'_>,
    written: &Value,
) -> Option<Run> {
    let ok = section.boolean("ok").unwrap_or(true);
    let message = section.required_text("message", "Booked.");
    let (fields, open) = schema.map_or((Vec::new(), true), |s| (s.fields(), s.is_open()));
    let template = Template::compile(&message, &fields, open)
        .map_err(|(why, hint)| section.fault_at("message", format!("the message is broken: {why}"), hint))
        .ok();
    section.finish();
    let message = template?;
    let uses = Some(message.fields());
    let handler = Arc::new(Reply { ok, message, language: around.language.clone() });
    Some(Run { handler, written: written.clone(), uses, offer: None })
}

fn read_http(section: Section<'_>, limit: Duration, written: &Value) -> Option<Run> {
    let url = section.required_text("url", "https://api.example.com/bookings");
    let methods = [
        ("GET", Method::Get),
        ("POST", Method::Post),
        ("PUT", Method::Put),
        ("PATCH", Method::Patch),
        ("DELETE", Method::Delete),
    ];
    let method = section.one_of("method", &methods).unwrap_or(Method::Post);
    let headers = read_headers(&section);
    let parsed = web_address(&url);
    if parsed.is_none() && !url.is_empty() {
        let hint = "write it like \"https://api.example.com/bookings\"; values go into the body, not into the address";
        section.fault_at("url", "`url` is no http or https address", hint);
    }
    section.finish();
    let handler = Arc::new(Http { url: parsed?, method, headers, limit });
    Some(Run { handler, written: written.clone(), uses: None, offer: None })
}

/// `headers = { Authorization = { env = "API_TOKEN", prefix = "Bearer " }, X-Desk = "1" }`.
fn read_headers(section: &Section<'_>) -> Vec<(String, Header)> {
    let node = section.node("headers");
    let opened = node.and_then(|node| section.open("headers", node)).and(node);
    let Some(table) = opened.and_then(|node| node.get_ref().as_table()) else { return Vec::new() };
    let mut headers = BTreeMap::new();
    for (name, node) in table.iter() {
        let name = name.get_ref().to_string();
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            section.fault_value(node, format!("`{}` is no header's name", shown(&name)), "");
            continue;
        }
        if let Some(value) = read_header(section, &name, node) {
            headers.insert(name, value);
        }
    }
    headers.into_iter().collect()
}

fn read_header(section: &Section<'_>, name: &str, node: Node<'_>) -> Option<Header> {
    if let Some(text) = node.get_ref().as_str() {
        let secret = ["authorization", "cookie", "x-api-key"].contains(&name.to_ascii_lowercase().as_str());
        if secret || HeaderValue::from_str(text).is_err() {
            let hint = "keys stay out of files: `{ env = \"API_TOKEN\", prefix = \"Bearer \" }`";
            section.fault_value(node, format!("the header `{name}` cannot have this value here"), hint);
            return None;
        }
        return Some(Header::Text(text.to_owned()));
    }
    let Some(table) = node.get_ref().as_table() else {
        return section.wrong_type(name, node, "text, or { env = \"NAME\" }");
    };
    let inner = section.reader().section(table, format!("the header {name}"), node.span());
    let prefix = inner.text("prefix").unwrap_or_default();
    let env = env_name(&inner, "env");
    if !inner.has("env") {
        inner.fault_here(format!("the header `{name}` names no variable"), "write `{ env = \"API_TOKEN\" }`");
    }
    inner.finish();
    env.map(|name| Header::Env { name, prefix })
}

fn read_command(
    run: &Section<'_>,
    node: Node<'_>,
    around: &Surroundings<'_>,
    limit: Duration,
    written: &Value,
) -> Option<Run> {
    let mut words = program_words(run, node)?;
    let program = words.remove(0);
    let handler = Arc::new(Command { program, arguments: words, folder: around.folder.clone(), limit });
    Some(Run { handler, written: written.clone(), uses: None, offer: None })
}

/// A program and its arguments: at least one word.
fn program_words(run: &Section<'_>, node: Node<'_>) -> Option<Vec<String>> {
    let hint = "write a list, the program first: `command = [\"./book.py\", \"--room\", \"1\"]`; no shell is involved";
    let items = node.get_ref().as_array().map(|items| items.iter().map(|item| item.get_ref().as_str()));
    let words: Option<Vec<String>> =
        items.and_then(|words| words.map(|word| word.map(str::to_owned)).collect());
    let usable = words.filter(|words| {
        words.first().is_some_and(|program| !program.trim().is_empty())
            && words.iter().all(|w| !w.contains('\0'))
    });
    if usable.is_none() {
        run.fault_value(node, "`command` must be a program and its arguments", hint);
    }
    usable
}

/// `mcp = { command = ["./calendar.py"], tool = "create_event" }`, or `url` and `headers` instead of the program.
fn read_mcp(
    section: Section<'_>,
    around: &mut Surroundings<'_>,
    limit: Duration,
    written: &Value,
) -> Option<Run> {
    let tool = section.required_text("tool", "create_event");
    let reach = match (section.node("command"), section.node("url").is_some()) {
        (Some(node), false) => program_words(&section, node).map(|mut words| {
            let program = words.remove(0);
            Reach::Program { program, arguments: words, folder: around.folder.clone() }
        }),
        (None, true) => {
            let url = web_address(&section.text("url").unwrap_or_default());
            if url.is_none() {
                let hint = "write it like \"https://tools.example.com/mcp\"";
                section.fault_at("url", "`url` is no http or https address", hint);
            }
            let headers = read_headers(&section);
            url.map(|url| Reach::Address { url, headers })
        }
        _ => {
            let hint = "`command = [\"./calendar.py\"]` starts the server, `url = \"https://…/mcp\"` calls one that runs";
            section.fault_here("`mcp` must have one of `command`, `url`", hint);
            None
        }
    };
    section.finish();
    let mut place = written.get("mcp").cloned().unwrap_or_default();
    if let Some(fields) = place.as_object_mut() {
        fields.remove("tool");
    }
    let reach = reach?;
    let server = around.servers.entry(place.to_string()).or_insert_with(|| Arc::new(McpServer::new(reach)));
    let server = Arc::clone(server);
    let offer = Some((Arc::clone(&server), tool.clone()));
    Some(Run { handler: Arc::new(Mcp { server, tool, limit }), written: written.clone(), uses: None, offer })
}
