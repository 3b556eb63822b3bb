//! Calls from a browser, with everything real but the model: Chromium, the client for pages, `sayback serve`, its
//! recognition and its voice. The model is scripted and its check says yes, so only the clock stands in the way of a
//! wrong booking.

#![cfg(feature = "webrtc")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate, whose figures are wanted")]
#![expect(clippy::disallowed_methods, reason = "the browser is waited for on a clock")]

mod chromium;
mod peers;
mod server;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chromium::Chromium;
use serde_json::{Value, json};
use server::{Server, has_models, repository};

/// The caller, as a script of its own.
const CALLER: &str = include_str!("caller.js");

fn plan(more: Value) -> Value {
    let clip =
        |name: &str| STANDARD.encode(std::fs::read(repository().join("tests/audio").join(name)).unwrap());
    let mut plan = json!({ "clips": { "book": clip("book.wav"), "yes": clip("yes-please.wav") } });
    plan.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    plan
}

fn names(result: &Value) -> Vec<&str> {
    result["events"].as_array().unwrap().iter().filter_map(|line| line["event"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_in_a_page_books_behind_the_question_and_not_over_it() {
    let Some(program) = chromium::program().filter(|_| has_models()) else { return };
    let server = Server::start("[webrtc]\n");
    for over in [false, true] {
        let mut browser = Chromium::open(program, &server.page("/healthz"), None).await;
        let result = browser.run(&format!("{CALLER}({})", plan(json!({ "over": over })))).await;
        let log = server.log(result["id"].as_str().unwrap());
        let booked = names(&result).contains(&"tool.finished");
        assert_eq!(booked, !over, "{result:#}\n{log}");
        if over {
            assert!(log.contains("\"reason\":\"barge_in\""), "{log}");
        } else {
            assert_eq!(result["evidence"], "page", "{log}");
            let [measured, told, latest] =
                ["measured", "told", "latest"].map(|key| result[key].as_f64().unwrap());
            println!(
                "end of the question: heard {measured:.0} ms, told {told:.0} ms: error {:+.1} ms; \
                 an answer counts from {latest:.0} ms: {:+.1} ms; {}",
                told - measured,
                latest - measured,
                result["report"],
            );
            assert!((told - measured).abs() <= 60.0, "{result:#}");
            assert!(latest >= measured, "an answer would count before the question was heard: {result:#}");
        }
        assert_eq!(result["ended"]["reason"], "hung-up");
    }
}
