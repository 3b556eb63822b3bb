//! The suite of the language model, on Anthropic's protocol.

use futures::StreamExt;
use sayback_providers::anthropic::{Anthropic, AnthropicConfig};
use sayback_providers::hosted::ApiKey;
use sayback_runtime::llm::{Llm, LlmCall, LlmError, LlmEvent, LlmMessage, LlmRequest};
use serde_json::{Value, json};

use super::http::{Act, Server, http_chunk, response, stream_head, stream_in_pieces};
use super::{AMPLE, KEY, SHORT};

fn client(base_url: &str) -> Anthropic {
    let config = AnthropicConfig {
        base_url: base_url.to_owned(),
        ..AnthropicConfig::new("claude-x", Some(ApiKey::new(KEY)))
    };
    Anthropic::new(config).unwrap()
}

fn request() -> LlmRequest {
    LlmRequest {
        messages: vec![LlmMessage::User { text: "Hello".into() }],
        first_token: Some(AMPLE),
        between_tokens: Some(AMPLE),
        ..LlmRequest::default()
    }
}

async fn ask(server: &Server, request: LlmRequest) -> Vec<Result<LlmEvent, LlmError>> {
    match client(&server.base_url).stream(request).await {
        Ok(stream) => stream.collect().await,
        Err(error) => vec![Err(error)],
    }
}

async fn answer(acts: Vec<Act>) -> Vec<Result<LlmEvent, LlmError>> {
    let server = Server::start(acts).await;
    ask(&server, request()).await
}

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

fn text(text: &str) -> String {
    event(&json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}))
}

fn begin_call(index: u32, id: &str) -> String {
    event(&json!({"type": "content_block_start", "index": index,
        "content_block": {"type": "tool_use", "id": id, "name": "book", "input": {}}}))
}

fn input(index: u32, piece: &str) -> String {
    event(&json!({"type": "content_block_delta", "index": index,
        "delta": {"type": "input_json_delta", "partial_json": piece}}))
}

fn stop(reason: &str) -> String {
    event(&json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}))
        + &event(&json!({"type": "message_stop"}))
}

/// A whole answer with all that the documentation shows: pings, thoughts, text, two calls that are interleaved.
fn whole() -> String {
    [
        event(&json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}})),
        event(&json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
        event(&json!({"type": "ping"})),
        text("Für Zoë "),
        text("😀 明日"),
        event(&json!({"type": "content_block_stop", "index": 0})),
        event(&json!({"type": "content_block_delta", "index": 9, "delta": {"type": "thinking_delta", "thinking": "hm"}})),
        begin_call(1, "toolu_1"),
        input(1, ""),
        input(1, "{\"name\": \"Z"),
        begin_call(2, "toolu_2"),
        input(1, "oë\"}"),
        event(&json!({"type": "content_block_stop", "index": 1})),
        event(&json!({"type": "a_kind_of_tomorrow", "new": true})),
        stop("tool_use"),
    ]
    .concat()
}

#[tokio::test]
async fn an_answer_cut_anywhere_says_the_same() {
    let call = |id: &str, arguments: &str| {
        let (name, id) = ("book".to_owned(), id.to_owned());
        Ok(LlmEvent::Call(LlmCall { id, name, arguments: arguments.to_owned() }))
    };
    for size in [1, 2, 3, 5, 7, 64, 1021, usize::MAX] {
        let body = whole();
        let mut events = answer(stream_in_pieces(&body, size.min(body.len()))).await;
        let said: String = events
            .iter()
            .filter_map(|event| match event {
                Ok(LlmEvent::Text(text)) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(said, "Für Zoë 😀 明日", "in pieces of {size} bytes");
        events.retain(|event| !matches!(event, Ok(LlmEvent::Text(_))));
        let expected = [call("toolu_1", "{\"name\": \"Zoë\"}"), call("toolu_2", "{}"), Ok(LlmEvent::Done)];
        assert_eq!(events, expected, "in pieces of {size} bytes");
    }
}

#[tokio::test]
async fn the_request_is_what_the_api_expects() {
    let server = Server::start(stream_in_pieces(&whole(), 4096)).await;
    ask(&server, request()).await;
    let requests = server.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{head}");
    let head = head.to_ascii_lowercase();
    assert!(
        head.contains("x-api-key: sk-secret-7") && head.contains("anthropic-version: 2023-06-01"),
        "{head}"
    );
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["messages"], json!([{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]));
}

#[tokio::test]
async fn half_an_answer_broke_off_and_half_a_call_is_never_delivered() {
    let half = [begin_call(0, "toolu_1"), input(0, "{\"sum\": 1")].concat();
    for ending in [String::new(), stop("max_tokens")] {
        let events = answer(stream_in_pieces(&format!("{half}{ending}"), 4096)).await;
        assert!(matches!(events[..], [Err(LlmError::BrokeOff(_))]), "{events:?}");
    }
    let events = answer(stream_in_pieces(&text("One "), 4096)).await;
    assert!(matches!(events[..], [Ok(LlmEvent::Text(_)), Err(LlmError::BrokeOff(_))]), "{events:?}");
    let events = answer(stream_in_pieces(&format!("{}{}", text("I "), stop("refusal")), 4096)).await;
    assert!(matches!(events[..], [Ok(LlmEvent::Text(_)), Err(LlmError::BrokeOff(_))]), "{events:?}");
}

#[tokio::test]
async fn text_that_the_limit_cut_is_an_answer() {
    let events = answer(stream_in_pieces(&format!("{}{}", text("yes"), stop("max_tokens")), 4096)).await;
    assert_eq!(events, [Ok(LlmEvent::Text("yes".into())), Ok(LlmEvent::Done)]);
}

#[tokio::test]
async fn refusals_keep_their_kind_and_never_show_the_key() {
    let body = format!(r#"{{"type":"error","error":{{"type":"x","message":"invalid x-api-key {KEY}"}}}}"#);
    for (status, expected) in [
        ("401 Unauthorized", LlmError::Unauthorised("invalid x-api-key [key]".into())),
        ("429 Too Many Requests", LlmError::RateLimited { retry_after: None }),
        ("529 Overloaded", LlmError::Refused { status: 529, message: "invalid x-api-key [key]".into() }),
    ] {
        assert_eq!(answer(response(status, "application/json", "", &body)).await, [Err(expected)]);
    }
    for (kind, expected) in [
        ("overloaded_error", LlmError::Refused { status: 529, message: "Busy [key]".into() }),
        ("rate_limit_error", LlmError::RateLimited { retry_after: None }),
        ("authentication_error", LlmError::Unauthorised("Busy [key]".into())),
    ] {
        let error =
            event(&json!({"type": "error", "error": {"type": kind, "message": format!("Busy {KEY}")}}));
        let events = answer(stream_in_pieces(&format!("{}{error}", text("One ")), 4096)).await;
        assert_eq!(events, [Ok(LlmEvent::Text("One ".into())), Err(expected)]);
    }
}

#[tokio::test]
async fn a_model_that_wants_no_temperature_is_asked_without() {
    let body =
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"temperature: not supported"}}"#;
    let mut acts = response("400 Bad Request", "application/json", "", body);
    for _ in 0..2 {
        acts.push(Act::NextRequest);
        acts.extend(stream_in_pieces(&whole(), 4096));
    }
    let server = Server::start(acts).await;
    let client = client(&server.base_url);
    let check = || LlmRequest { one_of: vec!["yes".into(), "no".into()], ..request() };
    for _ in 0..2 {
        let events: Vec<_> = client.stream(check()).await.unwrap().collect().await;
        assert_eq!(events.last(), Some(&Ok(LlmEvent::Done)));
    }
    let sent: Vec<bool> = server.requests().iter().map(|request| request.contains("temperature")).collect();
    assert_eq!(sent, [true, false, false]);

    let refusal = || response("400 Bad Request", "application/json", "", body);
    let twice = [refusal(), vec![Act::NextRequest], refusal()].concat();
    let server = Server::start(twice).await;
    let events = ask(&server, check()).await;
    assert!(matches!(&events[..], [Err(LlmError::Refused { status: 400, .. })]), "{events:?}");
    assert_eq!(server.requests().len(), 2, "and no third time");
}

#[tokio::test]
async fn rubbish_is_called_rubbish_without_showing_the_key() {
    let orphan = input(3, "{}");
    for body in ["data: <html> sk-secret-7\n\n", "data: [1]\n\n", orphan.as_str(), ""] {
        let events = answer(response("200 OK", "text/event-stream", "", body)).await;
        assert!(matches!(&events[..], [Err(LlmError::Garbage(_))]), "{events:?}");
        assert!(!format!("{events:?}").contains("secret"), "{events:?}");
    }
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    let events = answer(vec![stream_head(), Act::SendForEver(http_chunk(&[b'a'; 65_536]))]).await;
    assert!(matches!(&events[..], [Err(LlmError::Garbage(why))] if why.contains("line")), "{events:?}");
}

#[tokio::test]
async fn two_steps_share_one_connection() {
    let mut acts = stream_in_pieces(&whole(), 4096);
    acts.push(Act::NextRequest);
    acts.extend(stream_in_pieces(&whole(), 4096));
    let server = Server::start(acts).await;
    let client = client(&server.base_url);
    for _ in 0..2 {
        let events: Vec<_> = client.stream(request()).await.unwrap().collect().await;
        assert_eq!(events.last(), Some(&Ok(LlmEvent::Done)));
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 2));
}

#[tokio::test]
async fn a_slow_server_is_given_up_at_each_deadline() {
    let hurried = || LlmRequest { first_token: Some(SHORT), between_tokens: Some(SHORT), ..request() };
    let ping = event(&json!({"type": "ping"}));
    for acts in [
        vec![Act::Stall],
        // A ping is no piece of an answer.
        vec![stream_head(), Act::Send(http_chunk(ping.as_bytes())), Act::Stall],
    ] {
        let server = Server::start(acts).await;
        assert_eq!(ask(&server, hurried()).await, [Err(LlmError::TimedOut(SHORT))]);
        tokio::time::timeout(AMPLE, server.hung_up()).await.expect("the connection is closed");
    }
    let server =
        Server::start(vec![stream_head(), Act::Send(http_chunk(text("One").as_bytes())), Act::Stall]).await;
    assert_eq!(
        ask(&server, hurried()).await,
        [Ok(LlmEvent::Text("One".into())), Err(LlmError::TimedOut(SHORT))]
    );
}
