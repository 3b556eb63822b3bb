//! What an ADK client sends: a message, or answers to requests for confirmation.

use sayback_runtime::approvals::Decision;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::body::Object;

/// The name under which confirmations are asked for and answered.
pub(super) const REQUEST: &str = "adk_request_confirmation";

/// `google.genai.types.Content`. What it has besides is not needed here.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Content {
    /// Its parts, in order.
    #[serde(default)]
    pub parts: Vec<Part>,
}

/// A part: a text or a function response. Others are refused.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Part {
    /// Words of the user's.
    #[serde(default)]
    pub text: Option<String>,
    /// An answer.
    #[serde(
        default,
        alias = "function_response",
        rename = "functionResponse",
        deserialize_with = "with_names"
    )]
    pub function_response: Option<FunctionResponse>,
    /// Pictures and the like.
    #[serde(flatten)]
    others: serde_json::Map<String, Value>,
}

fn with_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<FunctionResponse>, D::Error> {
    Ok(Option::<Object<FunctionResponse>>::deserialize(deserializer)?.map(|Object(response)| response))
}

/// `google.genai.types.FunctionResponse`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct FunctionResponse {
    /// What it answers.
    #[serde(default)]
    pub id: Option<String>,
    /// Whose answer it is.
    #[serde(default)]
    pub name: Option<String>,
    /// What is answered.
    #[serde(default)]
    pub response: Option<Value>,
}

/// A message, understood.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// Words.
    Text(String),
    /// Answers, in the order in which they stand.
    Answers(Vec<Answer>),
}

/// One function response.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) id: String,
    /// The body, if it is named as an answer to a request for confirmation.
    pub(super) body: Option<Value>,
}

/// Why a message cannot be taken. Nothing has happened then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// There is nothing in it.
    #[error("the message is empty: send a part with a text, or with a functionResponse")]
    Empty,
    /// Words and answers cannot be told apart in what follows (ADK-14).
    #[error("a message holds either text or function responses, not both; nothing ran")]
    Mixed,
    /// Something that cannot be understood here.
    #[error("a part with {0:?} cannot be taken here: send text or a functionResponse")]
    Unknown(String),
    /// An answer without an id.
    #[error("a functionResponse has no id: send that of the adk_request_confirmation call")]
    NoId,
    /// There is no such call in this session (ADK-12).
    #[error("{0:?} is no function call of this session; send the id of the adk_request_confirmation call")]
    UnknownId(String),
    /// It is no answer (ADK-13). The request stays open.
    #[error("the response to {id} is no ToolConfirmation: {why}; the request stays open")]
    NoAnswer {
        /// Which request.
        id: String,
        /// What is wrong.
        why: String,
    },
}

impl Part {
    /// As it is shown among a session's events.
    pub(super) fn shown(&self) -> Value {
        match (&self.text, &self.function_response) {
            (Some(text), _) => serde_json::json!({ "text": text }),
            (None, Some(FunctionResponse { id, name, response })) => {
                serde_json::json!({ "functionResponse": { "id": id, "name": name, "response": response } })
            }
            (None, None) => serde_json::json!({}),
        }
    }
}

impl Content {
    /// What it says.
    pub(super) fn said(&self) -> Result<Said, MessageError> {
        let (mut texts, mut answers) = (Vec::new(), Vec::new());
        for part in &self.parts {
            if let Some((name, _)) = part.others.iter().find(|(_, value)| !value.is_null()) {
                return Err(MessageError::Unknown(name.clone()));
            }
            texts.extend(part.text.as_deref().map(str::trim).filter(|text| !text.is_empty()));
            if let Some(response) = &part.function_response {
                let named = response.name.as_deref() == Some(REQUEST);
                let body = named.then(|| response.response.clone().unwrap_or_default());
                let id = response.id.clone().filter(|id| !id.is_empty()).ok_or(MessageError::NoId)?;
                answers.push(Answer { id, body });
            }
        }
        match (texts.is_empty(), answers.is_empty()) {
            (true, true) => Err(MessageError::Empty),
            (false, false) => Err(MessageError::Mixed),
            (false, true) => Ok(Said::Text(texts.join("\n"))),
            (true, false) => Ok(Said::Answers(answers)),
        }
    }
}

/// A `ToolConfirmation`. `confirmed` is a boolean and nothing else; what is left out is a no.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolConfirmation {
    #[serde(default)]
    #[expect(dead_code, reason = "the hint is ours; a client may send it back")]
    hint: Option<String>,
    #[serde(default)]
    confirmed: bool,
    #[serde(default)]
    payload: Option<Value>,
}

/// Reads an answer's body: itself, or as text under `response`, as the ADK's own page sends it.
pub(super) fn decision(id: &str, body: &Value, by: &str) -> Result<Decision, MessageError> {
    let wrong =
        |error: serde_json::Error| MessageError::NoAnswer { id: id.to_owned(), why: error.to_string() };
    let wrapped =
        body.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.get("response"));
    let Object(read) = match wrapped.and_then(Value::as_str) {
        Some(text) => serde_json::from_str(text).map_err(wrong)?,
        None if body.is_null() => Object(ToolConfirmation { hint: None, confirmed: false, payload: None }),
        None => serde_json::from_value(body.clone()).map_err(wrong)?,
    };
    let ToolConfirmation { confirmed, payload, .. } = read;
    Ok(Decision { confirmed, payload, reason: None, by: Some(by.to_owned()) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(parts: Value) -> Result<Said, MessageError> {
        serde_json::from_value::<Content>(json!({ "role": "user", "parts": parts })).unwrap().said()
    }

    fn answered(body: Value) -> Result<(bool, Option<Value>), MessageError> {
        decision("r1", &body, "u").map(|decision| (decision.confirmed, decision.payload))
    }

    #[test]
    fn adk_13_only_a_boolean_answers() {
        assert_eq!(answered(json!({})), Ok((false, None)));
        assert_eq!(
            answered(json!({ "confirmed": true, "payload": { "n": 1 } })),
            Ok((true, Some(json!({ "n": 1 }))))
        );
        assert_eq!(answered(json!({ "response": "{\"confirmed\": true}" })), Ok((true, None)));
        assert_eq!(answered(json!({ "hint": "", "confirmed": false, "payload": null })), Ok((false, None)));
        for wrong in [
            json!({ "confirmed": "yes" }),
            json!({ "confirmed": "true" }),
            json!({ "confirmed": 1 }),
            json!({ "confirmed": null }),
            json!({ "ok": true }),
            json!({ "response": "yes" }),
            json!({ "response": "{\"confirmed\": \"true\"}" }),
            json!("yes"),
            json!(true),
            // The fields' values in a list are none of its fields.
            json!(["", true]),
            json!(["", true, null]),
            json!({ "response": "[\"\", true]" }),
        ] {
            let error = answered(wrong.clone()).unwrap_err();
            assert!(matches!(error, MessageError::NoAnswer { .. }), "{wrong} {error}");
        }
    }

    #[test]
    fn adk_14_words_beside_an_answer_are_refused() {
        let answer =
            json!({ "functionResponse": { "id": "r", "name": REQUEST, "response": { "confirmed": true } } });
        assert_eq!(said(json!([{ "text": "yes" }, answer])), Err(MessageError::Mixed));
        assert!(matches!(said(json!([answer])), Ok(Said::Answers(answers)) if answers.len() == 1));
        assert_eq!(said(json!([{ "text": "a" }, { "text": "b" }])), Ok(Said::Text("a\nb".to_owned())));
        assert_eq!(said(json!([])), Err(MessageError::Empty));
        assert_eq!(said(json!([{ "inlineData": {} }])), Err(MessageError::Unknown("inlineData".to_owned())));
    }
}
