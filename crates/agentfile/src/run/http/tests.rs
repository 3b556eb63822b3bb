use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::json;

use super::*;

/// A server that gives one answer per connection and hands back what it was asked.
fn server(answers: Vec<String>) -> (Url, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/book", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let answer_one = |answer: &String| {
            let (mut stream, _) = listener.accept().unwrap();
            let request = read_request(&mut stream);
            stream.write_all(answer.as_bytes()).ok();
            request
        };
        answers.iter().map(answer_one).collect()
    });
    (Url::parse(&url).unwrap(), thread)
}

fn read_request(stream: &mut std::net::TcpStream) -> String {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let n = stream.read(&mut piece).unwrap();
        request.extend_from_slice(&piece[..n]);
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
        if n == 0 || body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}

fn response(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

async fn run(url: Url, method: Method, headers: Vec<(String, Header)>) -> Result<ToolOutput, RunError> {
    let tool = Http { url, method, headers, limit: Duration::from_secs(20) };
    let context = RunContext::keyed("h_01".to_owned());
    tool.run(json!({"day": "a&b", "n": 2}), context).await
}

#[tokio::test]
async fn the_input_is_posted_with_the_key() {
    let (url, served) = server(vec![response("200 OK", r#"{"ok": true, "message": "Booked."}"#)]);
    let headers = vec![("X-Desk".to_owned(), Header::Text("7".to_owned()))];
    let output = run(url, Method::Post, headers).await;
    assert_eq!(output, Ok(ToolOutput { ok: true, message: "Booked.".to_owned() }));
    let request = served.join().unwrap().remove(0);
    for part in ["post /book ", "idempotency-key: h_01", "x-desk: 7", r#"{"day":"a&b","n":2}"#] {
        assert!(request.contains(part), "{part}\n{request}");
    }
}

#[tokio::test]
async fn get_puts_the_input_into_the_query() {
    let (url, served) = server(vec![response("200 OK", "three slots")]);
    let output = run(url, Method::Get, vec![]).await;
    assert_eq!(output, Ok(ToolOutput { ok: true, message: "three slots".to_owned() }));
    assert!(served.join().unwrap()[0].starts_with("get /book?day=a%26b&n=2 "));
}

#[tokio::test]
async fn a_status_of_failure_is_a_failed_tool() {
    let (url, served) = server(vec![response("503 Busy", "")]);
    let output = run(url, Method::Post, vec![]).await.unwrap();
    assert_eq!((output.ok, output.message.as_str()), (false, "The service answered with status 503."));
    served.join().unwrap();
}

/// Whether a server's answer leaves it open what happened.
async fn is_unknown(method: Method, answer: &str) -> bool {
    let (url, served) = server(vec![answer.to_owned()]);
    let result = run(url, method, vec![]).await;
    served.join().unwrap();
    matches!(result, Err(RunError::Unknown(_)))
}

#[tokio::test]
async fn vc_62_what_broke_off_in_the_middle_may_have_happened() {
    let half = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 900\r\n\r\n{{\"ok\": tr");
    let elsewhere = |status: &str| {
        format!("HTTP/1.1 {status}\r\nLocation: http://127.0.0.2:9/x\r\nContent-Length: 0\r\n\r\n")
    };
    for (answer, unknown) in [
        (String::new(), true),
        (String::from("HTTP/1.1 200"), true),
        (half("200 OK"), true),
        (response("200 OK", &"x".repeat(70_000)), true),
        (response("504 Late", "<html>"), true),
        (response("502 Bad", ""), true),
        (elsewhere("303 See"), true),
        // That it failed was said.
        (half("503 Busy"), false),
        (response("504 Late", r#"{"ok": false, "message": "closed"}"#), false),
        (response("500 Broken", ""), false),
        (elsewhere("307 Moved"), false),
    ] {
        assert_eq!(is_unknown(Method::Post, &answer).await, unknown, "{:.60}", answer);
    }
    assert!(!is_unknown(Method::Get, &elsewhere("303 See")).await, "what only reads has done nothing");
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let moved = "HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.2:9/x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let (url, served) = server(vec![moved.to_owned()]);
    let error = run(url, Method::Post, vec![]).await.unwrap_err().to_string();
    assert!(error.contains("another host"), "{error}");
    served.join().unwrap();
}

fn failed(result: Result<ToolOutput, RunError>) -> String {
    match result {
        Err(RunError::Failed(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_cannot_be_reached_or_lacks_its_key_was_not_done() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = Url::parse(&format!("http://{closed}/")).unwrap();
    let error = failed(run(url.clone(), Method::Post, vec![]).await);
    assert!(error.contains("cannot be reached; nothing was done"), "{error}");
    let header = Header::Env { name: "SAYBACK_TEST_ABSENT".to_owned(), prefix: "Bearer ".to_owned() };
    let error = failed(run(url, Method::Post, vec![("Authorization".to_owned(), header)]).await);
    assert!(error.contains("SAYBACK_TEST_ABSENT is not set"), "{error}");
}
