//! Our request as the Messages API wants it: turns that alternate, beginning and ending with the caller.

use sayback_runtime::llm::{LlmCall, LlmMessage, LlmRequest, ToolSpec};
use serde_json::{Map, Value, json};

/// Most tokens where the request names no limit: the API demands one.
const MOST_TOKENS: u32 = 1024;
/// Enough for one word in any language.
const ONE_WORD_TOKENS: u32 = 16;

/// The request body.
pub(super) fn body(request: &LlmRequest, model: &str) -> Value {
    let mut body = Map::new();
    let one_word = !request.one_of.is_empty();
    let most = request.max_tokens.unwrap_or(if one_word { ONE_WORD_TOKENS } else { MOST_TOKENS });
    body.insert("model".to_owned(), json!(model));
    body.insert("max_tokens".to_owned(), json!(most));
    body.insert("stream".to_owned(), json!(true));
    let leading = request.messages.iter().take_while(|m| matches!(m, LlmMessage::System { .. })).count();
    let (instructions, conversation) = request.messages.split_at(leading);
    let system: Vec<&str> = instructions.iter().filter_map(system_text).collect();
    if !system.is_empty() {
        body.insert("system".to_owned(), json!(system.join("\n\n")));
    }
    body.insert("messages".to_owned(), turns(conversation));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    if let Some(temperature) = request.temperature.or(one_word.then_some(0.0)) {
        // This API ends at 1, where others end at 2.
        body.insert("temperature".to_owned(), json!(temperature.min(1.0)));
    }
    Value::Object(body)
}

fn system_text(message: &LlmMessage) -> Option<&str> {
    match message {
        LlmMessage::System { text } if !text.trim().is_empty() => Some(text),
        LlmMessage::System { .. }
        | LlmMessage::User { .. }
        | LlmMessage::Assistant { .. }
        | LlmMessage::Tool { .. } => None,
    }
}

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Caller,
    Agent,
}

/// The conversation as turns; neighbours of one side are one turn, as the API wants it.
fn turns(messages: &[LlmMessage]) -> Value {
    let mut turns: Vec<(Side, Vec<Value>)> = Vec::new();
    for message in messages {
        let (side, blocks) = blocks(message);
        if blocks.is_empty() {
            continue;
        }
        match turns.last_mut() {
            Some((last, turn)) if *last == side => turn.extend(blocks),
            _ => turns.push((side, blocks)),
        }
    }
    if turns.first().is_none_or(|(side, _)| *side == Side::Agent) {
        turns.insert(0, (Side::Caller, vec![text("(The call begins.)")]));
    }
    if turns.last().is_some_and(|(side, _)| *side == Side::Agent) {
        turns.push((Side::Caller, vec![text("(The caller says nothing.)")]));
    }
    let written = turns.into_iter().map(|(side, blocks)| {
        let role = if side == Side::Caller { "user" } else { "assistant" };
        json!({"role": role, "content": blocks})
    });
    written.collect()
}

fn blocks(message: &LlmMessage) -> (Side, Vec<Value>) {
    match message {
        // Only some models take instructions between turns; a caller cannot say brackets.
        LlmMessage::System { text: said } => (
            Side::Caller,
            text_unless_blank(&format!("[From the phone system, not from the caller: {said}]")),
        ),
        LlmMessage::User { text } => (Side::Caller, text_unless_blank(text)),
        LlmMessage::Assistant { text, calls } => {
            let mut blocks = text_unless_blank(text);
            blocks.extend(calls.iter().map(call));
            (Side::Agent, blocks)
        }
        LlmMessage::Tool { call_id, text } => {
            let block = json!({"type": "tool_result", "tool_use_id": id(call_id), "content": text});
            (Side::Caller, vec![block])
        }
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Blank text is refused by the API.
fn text_unless_blank(words: &str) -> Vec<Value> {
    if words.trim().is_empty() { Vec::new() } else { vec![text(words)] }
}

fn call(call: &LlmCall) -> Value {
    // The API takes objects only, and refuses the whole conversation over one broken call.
    let input = serde_json::from_str::<Map<String, Value>>(&call.arguments).unwrap_or_default();
    json!({"type": "tool_use", "id": id(&call.id), "name": call.name, "input": input})
}

/// An id in the letters that the API allows: another vendor's may have others, after a failover.
fn id(id: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    id.chars().map(allowed).collect()
}

fn tool(tool: &ToolSpec) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": tool.input})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(text: &str) -> LlmMessage {
        LlmMessage::System { text: text.into() }
    }

    fn user(text: &str) -> LlmMessage {
        LlmMessage::User { text: text.into() }
    }

    fn agent(text: &str, calls: Vec<LlmCall>) -> LlmMessage {
        LlmMessage::Assistant { text: text.into(), calls }
    }

    #[test]
    fn a_conversation_is_written_as_the_api_wants_it() {
        let made = LlmCall { id: "c:1".into(), name: "book".into(), arguments: r#"{"day":"Thu"}"#.into() };
        let request = LlmRequest {
            messages: vec![
                system("Be brief."),
                agent("Hello.", vec![]),
                user("Book Thursday."),
                system("Thursday is 2026-12-03."),
                agent("", vec![made]),
                LlmMessage::Tool { call_id: "c:1".into(), text: "ok".into() },
                system("Waiting."),
            ],
            tools: vec![ToolSpec {
                name: "book".into(),
                description: "Books.".into(),
                input: json!({"type": "object"}),
            }],
            ..LlmRequest::default()
        };
        let note = |words: &str| text(&format!("[From the phone system, not from the caller: {words}]"));
        let expected = json!({
            "model": "m",
            "max_tokens": 1024,
            "stream": true,
            "system": "Be brief.",
            "messages": [
                {"role": "user", "content": [text("(The call begins.)")]},
                {"role": "assistant", "content": [text("Hello.")]},
                {"role": "user", "content": [text("Book Thursday."), note("Thursday is 2026-12-03.")]},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "c_1", "name": "book", "input": {"day": "Thu"}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c_1", "content": "ok"}, note("Waiting.")]},
            ],
            "tools": [{"name": "book", "description": "Books.", "input_schema": {"type": "object"}}],
        });
        assert_eq!(body(&request, "m"), expected);
    }

    #[test]
    fn a_conversation_never_ends_with_the_agent_and_is_never_empty() {
        for messages in [vec![], vec![user(" ")], vec![agent("Hello.", vec![])]] {
            let body = body(&LlmRequest { messages, ..LlmRequest::default() }, "m");
            let turns = body["messages"].as_array().unwrap();
            assert_eq!(turns.first().unwrap()["role"], "user");
            assert_eq!(turns.last().unwrap()["role"], "user");
        }
    }

    #[test]
    fn one_word_is_asked_for_with_few_tokens_and_no_chance() {
        let request = LlmRequest { one_of: vec!["yes".into(), "no".into()], ..LlmRequest::default() };
        let body = body(&request, "m");
        assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(16), &json!(0.0)));
    }

    #[test]
    fn broken_arguments_of_the_past_are_not_sent_again() {
        let broken = LlmCall { id: "c".into(), name: "n".into(), arguments: "{\"a\":".into() };
        assert_eq!(call(&broken)["input"], json!({}));
    }
}
