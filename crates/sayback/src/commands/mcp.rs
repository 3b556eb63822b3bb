//! `sayback mcp`: what an MCP server offers, written as tools of an agent file.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use sayback_agentfile::{McpServer, OfferedTool};
use serde_json::Value;

use crate::engines::Waits;
use crate::exit::Stop;

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// An http or https address, or a program that is started: `sayback mcp -- ./calendar.py --room 1`
    #[arg(required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true, value_name = "ADDRESS | PROGRAM")]
    server: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<u8, Stop> {
    let address = args.server.first().filter(|first| args.server.len() == 1 && first.contains("://"));
    let server = match address {
        Some(url) => McpServer::address(url),
        None => McpServer::program(&args.server, PathBuf::from(".")),
    };
    let Some(server) = server else {
        let hint = "give an http or https address, or a program and its arguments";
        return Err(Stop::unusable(format!("`{}` is no MCP server\n  hint: {hint}", args.server.join(" "))));
    };
    let listed = Waits::new()?.runtime().block_on(server.tools());
    let tools = listed.map_err(|why| {
        Stop::missing(format!(
            "{why}\n  hint: does it run, and does it speak MCP? SAYBACK_LOG=debug shows what it says"
        ))
    })?;
    let reach = match address {
        Some(url) => format!("url = {}", quoted(url)),
        None => {
            let words: Vec<String> = args.server.iter().map(|word| quoted(word)).collect();
            format!("command = [{}]", words.join(", "))
        }
    };
    out!(
        "# {} tools of {}. Read each question before you use it: it says what a yes covers.",
        tools.len(),
        server.name()
    );
    for tool in &tools {
        out!("{}", written(tool, &reach));
    }
    Ok(0)
}

/// A tool in the agent file's words. A tool that may destroy something gets a question to begin with.
fn written(tool: &OfferedTool, reach: &str) -> String {
    let ours: String =
        tool.name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    let description = if tool.description.trim().is_empty() { &tool.name } else { tool.description.trim() };
    let mut text =
        format!("\n[[skill.tool]]\nname = {}\ndescription = {}\n", quoted(&ours), quoted(description));
    if tool.destructive {
        text += &format!("confirm = {}\n", quoted(&tool.proposed_question()));
    }
    let input = inline(&tool.input).unwrap_or_else(|| "{ type = \"object\" }".to_owned());
    text + &format!("input = {input}\nrun = {{ mcp = {{ {reach}, tool = {} }} }}", quoted(&tool.name))
}

/// JSON as TOML on one line. TOML has no null: a field that holds one is left out.
fn inline(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().filter_map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(fields) => {
            let pairs = fields.iter().filter_map(|(name, value)| Some((name, inline(value)?)));
            let pairs: Vec<String> = pairs.map(|(name, value)| format!("{} = {value}", key(name))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
    })
}

fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { name.to_owned() } else { quoted(name) }
}

/// Text in TOML's quotes: JSON's escapes are TOML's, but for one control character.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use sayback_agentfile::parse;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_printed_is_a_tool_of_an_agent_file() {
        let input = json!({
            "type": "object", "required": ["day"], "title": null, "additionalProperties": false,
            "properties": { "day": { "type": "string", "description": "a \"day\"\n\u{7f}", "minLength": 1 },
                            "with.dot": { "enum": [1, 2.5, true] } },
        });
        let name = "calendar.delete/event".to_owned();
        let tool = OfferedTool { name, description: String::new(), input: input.clone(), destructive: true };
        let head = "[agent]\nname = \"Desk\"\ninstructions = \"Help.\"\n[[skill]]\nname = \"events\"\n";
        let text = head.to_owned() + &written(&tool, "url = \"https://example.com/mcp\"");
        let file = parse(&text, "desk.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
        let info = file.agent.skills[0].tools[0].info();
        assert_eq!(info.name, "calendar_delete_event");
        let mut expected = input;
        expected.as_object_mut().unwrap().remove("title");
        assert_eq!(info.schema, expected);
        assert!(text.contains("confirm = \"Shall I calendar delete event {{ day }}?\""), "{text}");
    }
}
