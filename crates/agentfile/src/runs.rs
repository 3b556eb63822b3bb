//! `run`: which of the back ends, and its settings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::reader::{Node, Section, json, shown};
use crate::run::{Command, Header, Http, Method, Reply};
use crate::schema::Schema;
use crate::settings::env_name;
use crate::template::Template;
use crate::tools::{Run, Surroundings};

pub(crate) fn read(
    tool: &Section<'_>,
    schema: Option<&Schema>,
    around: &Surroundings<'_>,
    limit: Duration,
) -> Option<Run> {
    let hint = "add for example `run = { reply = { message = \"Booked.\" } }`; also `http`, `command`";
    let Some(node) = tool.node("run") else {
        tool.fault_here("the tool has no `run`", hint);
        return None;
    };
    let run = tool.open("run", node)?;
    let written = json(node);
    let given = ["reply", "http", "command", "mcp"].iter().filter(|kind| run.has(kind)).count();
    if given != 1 {
        run.fault_here(
            "`run` must have exactly one of `reply`, `http`, `command`",
            if given == 0 { hint } else { "" },
        );
    }
    if run.node("mcp").is_some() {
        run.fault_at("mcp", "`mcp` is not supported yet", "use `http` or `command`");
    }
    let reply = run.child("reply").and_then(|section| read_reply(section, schema, around, &written));
    let http = run.child("http").and_then(|section| read_http(section, limit, &written));
    let command = run.node("command").and_then(|node| read_command(&run, node, around, limit, &written));
    run.finish();
    if given == 1 { reply.or(http).or(command) } else { None }
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
    Some(Run { handler, written: written.clone(), uses })
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
    let headers = section.node("headers").and_then(|node| section.open("headers", node)).map(|_| ());
    let headers = headers.map(|()| read_headers(&section)).unwrap_or_default();
    let parsed =
        Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if parsed.is_none() && !url.is_empty() {
        let hint = "write it like \"https://api.example.com/bookings\"; values go into the body, not into the address";
        section.fault_at("url", "`url` is no http or https address", hint);
    }
    section.finish();
    let handler = Arc::new(Http { url: parsed?, method, headers, limit });
    Some(Run { handler, written: written.clone(), uses: None })
}

/// `headers = { Authorization = { env = "API_TOKEN", prefix = "Bearer " }, X-Desk = "1" }`.
fn read_headers(section: &Section<'_>) -> Vec<(String, Header)> {
    let Some(table) = section.node("headers").and_then(|node| node.get_ref().as_table()) else {
        return Vec::new();
    };
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
    let hint = "write a list, the program first: `command = [\"./book.py\", \"--room\", \"1\"]`; no shell is involved";
    let items = node.get_ref().as_array().map(|items| items.iter().map(|item| item.get_ref().as_str()));
    let words: Option<Vec<String>> =
        items.and_then(|words| words.map(|word| word.map(str::to_owned)).collect());
    let usable = words.filter(|words| {
        words.first().is_some_and(|program| !program.trim().is_empty())
            && words.iter().all(|w| !w.contains('\0'))
    });
    let Some(mut words) = usable else {
        run.fault_value(node, "`command` must be a program and its arguments", hint);
        return None;
    };
    let program = words.remove(0);
    let handler = Arc::new(Command { program, arguments: words, folder: around.folder.clone(), limit });
    Some(Run { handler, written: written.clone(), uses: None })
}
