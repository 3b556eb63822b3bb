//! The OpenAI client against a server that behaves as servers do, and as they should not.

#![cfg(feature = "openai")]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test, and says where")]

mod flavours;
mod server;

use std::time::Duration;

use futures::StreamExt;
use sayback_providers::openai::{ApiKey, OpenAi, OpenAiConfig};
use sayback_runtime::llm::{Llm, LlmCall, LlmError, LlmEvent, LlmMessage, LlmRequest};

use flavours::{end, text};
use server::{Act, Server, http_chunk, response, stream_head, stream_in_pieces};

/// Longer than any healthy answer on this machine takes.
const AMPLE: Duration = Duration::from_secs(20);
/// Short enough not to be waited for.
const SHORT: Duration = Duration::from_millis(60);

fn client(base_url: &str) -> OpenAi {
    let mut config = OpenAiConfig::new(base_url, "gpt-4o-mini");
    config.key = Some(ApiKey::new("sk-secret-7"));
    OpenAi::new(config).unwrap()
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

/// The events, texts joined, of a server that plays `acts`.
async fn answer(acts: Vec<Act>) -> (String, Vec<LlmCall>, Vec<Result<LlmEvent, LlmError>>) {
    let server = Server::start(acts).await;
    let (mut said, mut calls, mut rest) = (String::new(), Vec::new(), Vec::new());
    for event in ask(&server, request()).await {
        match event {
            Ok(LlmEvent::Text(text)) => said.push_str(&text),
            Ok(LlmEvent::Call(call)) => calls.push(call),
            Ok(LlmEvent::Done) | Err(_) => rest.push(event),
        }
    }
    (said, calls, rest)
}

async fn error(acts: Vec<Act>) -> LlmError {
    answer(acts).await.2.remove(0).expect_err("the answer is no success")
}

fn call(id: &str, name: &str, arguments: &str) -> LlmCall {
    LlmCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

#[tokio::test]
async fn four_flavours_cut_anywhere_say_the_same() {
    for flavour in [flavours::OPENAI, flavours::OLLAMA, flavours::LLAMA_CPP, flavours::VLLM] {
        for size in [1, 2, 3, 5, 7, 64, 1021, usize::MAX] {
            let (said, calls, rest) = answer(stream_in_pieces(flavour, size.min(flavour.len()))).await;
            assert_eq!(said, "Für Zoë 😀 明日", "in pieces of {size} bytes: {flavour}");
            let expected = [
                call("call_Zb1", "book_meeting", "{\"name\":\"Zoë\"}"),
                call("call_Zb2", "cancel_meeting", "{\"id\":7}"),
            ];
            assert_eq!(calls, expected, "in pieces of {size} bytes: {flavour}");
            assert_eq!(rest, [Ok(LlmEvent::Done)]);
        }
    }
}

#[tokio::test]
async fn the_request_is_what_servers_expect() {
    let server = Server::start(stream_in_pieces(flavours::OPENAI, 4096)).await;
    ask(&server, request()).await;
    let requests = server.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains("authorization: bearer sk-secret-7"), "{head}");
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(body).unwrap(),
        serde_json::json!({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hello"}], "stream": true})
    );
}

#[tokio::test]
async fn two_steps_share_one_connection() {
    let mut acts = stream_in_pieces(flavours::OLLAMA, 4096);
    acts.push(Act::NextRequest);
    acts.extend(stream_in_pieces(flavours::OLLAMA, 4096));
    let server = Server::start(acts).await;
    let client = client(&server.base_url);
    for _ in 0..2 {
        let events: Vec<_> = client.stream(request()).await.unwrap().collect().await;
        assert_eq!(events.last(), Some(&Ok(LlmEvent::Done)));
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 2));
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_at_the_first_token_deadline() {
    for acts in [
        vec![Act::Stall],
        vec![stream_head(), Act::Stall],
        vec![stream_head(), Act::Send(http_chunk(b": ping\n\n")), Act::Stall],
        // The role alone is no piece of an answer.
        vec![stream_head(), Act::Send(http_chunk(text("").as_bytes())), Act::Stall],
        vec![Act::Send(b"HTTP/1.1 500 Oh\r\ncontent-length: 9\r\n\r\n".to_vec()), Act::Stall],
    ] {
        let server = Server::start(acts).await;
        let events = ask(&server, LlmRequest { first_token: Some(SHORT), ..request() }).await;
        assert_eq!(events, [Err(LlmError::TimedOut(SHORT))]);
        tokio::time::timeout(AMPLE, server.hung_up()).await.expect("the connection is closed");
    }
}

#[tokio::test]
async fn a_pause_between_two_pieces_is_waited_for_so_long_and_no_longer() {
    let server =
        Server::start(vec![stream_head(), Act::Send(http_chunk(text("One").as_bytes())), Act::Stall]).await;
    let events = ask(&server, LlmRequest { between_tokens: Some(SHORT), ..request() }).await;
    assert_eq!(events, [Ok(LlmEvent::Text("One".into())), Err(LlmError::TimedOut(SHORT))]);
}

#[tokio::test]
async fn a_listener_who_is_slow_to_ask_misses_no_deadline() {
    let server = Server::start(stream_in_pieces(flavours::OLLAMA, 4096)).await;
    let hurried = LlmRequest { first_token: Some(AMPLE), between_tokens: Some(Duration::ZERO), ..request() };
    let events = ask(&server, hurried).await;
    assert_eq!(
        events.last(),
        Some(&Ok(LlmEvent::Done)),
        "what has arrived is taken before the clock is asked"
    );
}

#[tokio::test]
async fn dropping_the_stream_hangs_up() {
    let server =
        Server::start(vec![stream_head(), Act::Send(http_chunk(text("One").as_bytes())), Act::Stall]).await;
    let mut stream = client(&server.base_url).stream(request()).await.unwrap();
    assert_eq!(stream.next().await, Some(Ok(LlmEvent::Text("One".into()))));
    drop(stream);
    tokio::time::timeout(AMPLE, server.hung_up()).await.expect("the connection is closed");
}

#[tokio::test]
async fn nobody_there_is_unreachable_and_names_the_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = client(&format!("http://{address}/v1")).stream(request()).await.err().unwrap();
    let LlmError::Unreachable { url, reason } = error else { panic!("{error:?}") };
    assert_eq!(url, format!("http://{address}/v1/chat/completions"));
    assert!(reason.contains("refused"), "{reason}");
}

#[tokio::test]
async fn refusals_keep_their_kind_and_the_servers_words() {
    let refusal = |status, body| error(response(status, "application/json", "", body));
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let body = r#"{"error":{"message":"Incorrect API key provided: sk-secret-7."}}"#;
        assert_eq!(
            refusal(status, body).await,
            LlmError::Unauthorised("Incorrect API key provided: [key].".into())
        );
    }
    let refused = |status, message: &str| LlmError::Refused { status, message: message.into() };
    let body =
        r#"{"error":{"message":"Invalid schema for function 'book'","code":"invalid_function_parameters"}}"#;
    assert_eq!(refusal("400 Bad Request", body).await, refused(400, "Invalid schema for function 'book'"));
    assert_eq!(
        refusal("404 Not Found", r#"{"error":"model \"x\" not found"}"#).await,
        refused(404, "model \"x\" not found")
    );
    assert_eq!(refusal("503 Service Unavailable", "Loading model").await, refused(503, "Loading model"));
    assert_eq!(
        error(response("307 Temporary Redirect", "text/plain", "location: http://127.0.0.1:1/\r\n", ""))
            .await,
        refused(307, "307 Temporary Redirect")
    );
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_back() {
    let limited = |extra| error(response("429 Too Many Requests", "application/json", extra, "{}"));
    assert_eq!(
        limited("retry-after: 20\r\n").await,
        LlmError::RateLimited { retry_after: Some(Duration::from_secs(20)) }
    );
    assert_eq!(limited("").await, LlmError::RateLimited { retry_after: None });
}

#[tokio::test]
async fn an_answer_that_stops_halfway_broke_off() {
    let half = text("One ");
    let cut_chunk = vec![stream_head(), Act::Send(http_chunk(half.as_bytes()))];
    let clean_end = stream_in_pieces(&half, 4096);
    let until_close = vec![Act::Send([b"HTTP/1.1 200 OK\r\n\r\n", half.as_bytes()].concat())];
    for acts in [cut_chunk, clean_end, until_close] {
        let (said, calls, rest) = answer(acts).await;
        assert_eq!((said.as_str(), calls.len()), ("One ", 0));
        assert!(matches!(rest[..], [Err(LlmError::BrokeOff(_))]), "{rest:?}");
    }
    let before_the_head = error(vec![Act::Send(b"HTTP/1.1 2".to_vec())]).await;
    assert!(matches!(before_the_head, LlmError::BrokeOff(_)), "{before_the_head:?}");
}

#[tokio::test]
async fn a_half_call_is_never_delivered() {
    let half = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"pay\",\"arguments\":\"{\\\"sum\\\":1\"}}]}}]}\n\n";
    for ending in [String::new(), end("length")] {
        let (_, calls, rest) = answer(stream_in_pieces(&format!("{half}{ending}"), 4096)).await;
        assert_eq!(calls, []);
        assert!(matches!(rest[..], [Err(LlmError::BrokeOff(_))]), "{rest:?}");
    }
}

#[tokio::test]
async fn either_a_finish_reason_or_done_is_an_end() {
    let done_only = format!("{}data: [DONE]\n\n", text("One"));
    let reason_only = format!("{}{}", text("One"), end("stop"));
    for body in [done_only, reason_only.clone()] {
        let (said, _, rest) = answer(stream_in_pieces(&body, 4096)).await;
        assert_eq!((said.as_str(), rest), ("One", vec![Ok(LlmEvent::Done)]));
    }
    // A server that then holds the connection open, or drops it, has answered all the same.
    for last in [vec![Act::Stall], vec![]] {
        let acts = [vec![stream_head(), Act::Send(http_chunk(reason_only.as_bytes()))], last].concat();
        assert_eq!(answer(acts).await.2, [Ok(LlmEvent::Done)]);
    }
}

#[tokio::test]
async fn rubbish_is_called_rubbish() {
    let page = "<!doctype html><title>Welcome to the captive portal</title>";
    let rubbish = [
        response("200 OK", "text/html", "", page),
        response("200 OK", "text/event-stream", "", page),
        response("200 OK", "text/event-stream", "", "data: <html>\n\n"),
        response("200 OK", "text/event-stream", "", "data: [1,2]\n\n"),
        response("200 OK", "text/event-stream", "", ""),
        response("200 OK", "application/json", "", "{\"choices\":[{\"message\":{\"content\":\"Hi\"}}]}"),
        vec![Act::Send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 8\r\n\r\ndata:\xff\n\n"
                .to_vec(),
        )],
    ];
    for acts in rubbish {
        let shown = format!("{acts:?}");
        let error = error(acts).await;
        assert!(matches!(error, LlmError::Garbage(_)), "{error:?} for {shown}");
    }
}

#[tokio::test]
async fn an_error_within_the_stream_ends_it() {
    let body =
        format!("{}data: {{\"error\":{{\"message\":\"out of memory\",\"code\":500}}}}\n\n", text("One "));
    let (said, _, rest) = answer(stream_in_pieces(&body, 4096)).await;
    assert_eq!(said, "One ");
    assert_eq!(rest, [Err(LlmError::Refused { status: 500, message: "out of memory".into() })]);
}

#[tokio::test]
async fn endless_lines_and_endless_answers_are_cut_off() {
    let line = vec![stream_head(), Act::SendForEver(http_chunk(&[b'a'; 65_536]))];
    let error_of_line = error(line).await;
    assert!(matches!(&error_of_line, LlmError::Garbage(why) if why.contains("line")), "{error_of_line:?}");
    let silence =
        vec![stream_head(), Act::SendForEver(http_chunk(": still here\n\n".repeat(2048).as_bytes()))];
    let error_of_answer = error(silence).await;
    assert!(
        matches!(&error_of_answer, LlmError::Garbage(why) if why.contains("answer")),
        "{error_of_answer:?}"
    );
}

#[tokio::test]
async fn no_error_shows_the_key() {
    for acts in [
        response("200 OK", "text/html", "", "<p>sk-secret-7</p>"),
        response("200 OK", "text/event-stream", "", "data: sk-secret-7\n\n"),
        response("500 Oh", "text/plain", "", "you sent sk-secret-7"),
        response("200 OK", "text/event-stream", "", "data: {\"error\":\"sk-secret-7\"}\n\n"),
    ] {
        let error = error(acts).await;
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    }
}
