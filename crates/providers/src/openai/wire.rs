//! What goes over the wire: our request as JSON, and the chunks that come back.

use reqwest::Url;
use sayback_runtime::llm::{LlmCall, LlmMessage, LlmRequest, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::OpenAiConfig;

/// Enough for one word in any language, little enough that a model which explains itself is cut off at once.
const ONE_WORD_TOKENS: u32 = 16;

/// The field that bounds the answer: OpenAI's newer models refuse the name that everybody else understands.
pub(super) fn limit_field(url: &Url) -> &'static str {
    if url.host_str() == Some("api.openai.com") { "max_completion_tokens" } else { "max_tokens" }
}

/// The request body.
pub(super) fn body(request: &LlmRequest, config: &OpenAiConfig, limit_field: &str) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(config.model));
    body.insert("messages".to_owned(), request.messages.iter().map(message).collect());
    body.insert("stream".to_owned(), json!(true));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    let one_word = !request.one_of.is_empty();
    if let Some(most) = request.max_tokens.or(one_word.then_some(ONE_WORD_TOKENS)) {
        body.insert(limit_field.to_owned(), json!(most));
    }
    if let Some(temperature) = request.temperature.or(one_word.then_some(0.0)) {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if one_word && config.choices_field {
        body.insert("choices".to_owned(), json!(request.one_of));
    }
    Value::Object(body)
}

fn message(message: &LlmMessage) -> Value {
    match message {
        LlmMessage::System { text } => json!({"role": "system", "content": text}),
        LlmMessage::User { text } => json!({"role": "user", "content": text}),
        LlmMessage::Assistant { text, calls } if calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        LlmMessage::Assistant { text, calls } => {
            let content = if text.is_empty() { Value::Null } else { json!(text) };
            let calls: Vec<Value> = calls.iter().map(call).collect();
            json!({"role": "assistant", "content": content, "tool_calls": calls})
        }
        LlmMessage::Tool { call_id, text } => {
            json!({"role": "tool", "tool_call_id": call_id, "content": text})
        }
    }
}

fn call(call: &LlmCall) -> Value {
    // Servers that parse the arguments of the past refuse the whole conversation over one broken call.
    let is_object = serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
    let arguments = if is_object { call.arguments.as_str() } else { "{}" };
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn tool(tool: &ToolSpec) -> Value {
    let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.input});
    json!({"type": "function", "function": function})
}

/// One event of the answer, as leniently read as it must be: four servers, four dialects.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Chunk {
    /// Only the first one counts. Empty in usage reports.
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) choices: Vec<Choice>,
    /// A failure in the middle of the stream.
    pub(super) error: Option<Value>,
}

/// One alternative answer.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice {
    /// What is new.
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) delta: Delta,
    /// Why it ended, in the last chunk.
    pub(super) finish_reason: Option<String>,
}

/// What is new in a chunk.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta {
    /// Text.
    pub(super) content: Option<Value>,
    /// Pieces of tool calls.
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) tool_calls: Vec<CallDelta>,
}

/// A piece of a tool call.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CallDelta {
    /// Which call of the answer; some servers leave it out, some always write 0.
    pub(super) index: Option<u32>,
    /// Usually in the first piece only; some servers leave it out.
    pub(super) id: Option<String>,
    /// Name and arguments.
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) function: FunctionDelta,
}

/// Name and arguments of a piece of a tool call.
#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionDelta {
    /// Usually in the first piece only.
    pub(super) name: Option<String>,
    /// A piece of JSON text; from a few servers a whole JSON object.
    pub(super) arguments: Option<Value>,
}

fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(choices_field: bool) -> OpenAiConfig {
        OpenAiConfig { choices_field, ..OpenAiConfig::new("http://h/v1", "m") }
    }

    #[test]
    fn a_conversation_is_written_as_the_api_wants_it() {
        let call = LlmCall { id: "c1".into(), name: "book".into(), arguments: r#"{"day":"Thu"}"#.into() };
        let request = LlmRequest {
            messages: vec![
                LlmMessage::System { text: "Be brief.".into() },
                LlmMessage::User { text: "Book Thursday.".into() },
                LlmMessage::Assistant { text: String::new(), calls: vec![call] },
                LlmMessage::Tool { call_id: "c1".into(), text: "ok".into() },
                LlmMessage::Assistant { text: "Done.".into(), calls: vec![] },
            ],
            tools: vec![ToolSpec {
                name: "book".into(),
                description: "Books.".into(),
                input: json!({"type": "object"}),
            }],
            max_tokens: Some(100),
            ..LlmRequest::default()
        };
        let expected = json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Book Thursday."},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{\"day\":\"Thu\"}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "ok"},
                {"role": "assistant", "content": "Done."},
            ],
            "stream": true,
            "tools": [{"type": "function", "function":
                {"name": "book", "description": "Books.", "parameters": {"type": "object"}}}],
            "max_tokens": 100,
        });
        assert_eq!(body(&request, &config(false), "max_tokens"), expected);
    }

    #[test]
    fn one_word_is_asked_for_with_few_tokens_and_no_chance() {
        let request = LlmRequest { one_of: vec!["yes".into(), "no".into()], ..LlmRequest::default() };
        let plain = body(&request, &config(false), "max_tokens");
        assert_eq!((&plain["max_tokens"], &plain["temperature"]), (&json!(16), &json!(0.0)));
        assert_eq!(plain.get("choices"), None, "no server but our own knows the field");
        assert_eq!(body(&request, &config(true), "max_tokens")["choices"], json!(["yes", "no"]));
    }

    #[test]
    fn broken_arguments_of_the_past_are_not_sent_again() {
        let broken = LlmCall { id: "c".into(), name: "n".into(), arguments: "{\"a\":".into() };
        assert_eq!(call(&broken)["function"]["arguments"], "{}");
    }

    #[test]
    fn openai_itself_gets_the_newer_limit_field() {
        let field = |url: &str| limit_field(&Url::parse(url).unwrap());
        assert_eq!(field("https://api.openai.com/v1"), "max_completion_tokens");
        assert_eq!(field("http://127.0.0.1:8080/v1"), "max_tokens");
    }
}
