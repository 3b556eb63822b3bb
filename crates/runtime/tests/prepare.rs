//! Validate first, ask second: what `prepare` makes of a call, and how often it asks the author's code.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sayback_core::{AskTerms, CallId, Policy, Prepared, Refusal, ToolCall};
use sayback_runtime::agent::{
    Agent, AskContext, Confirm, ConfirmError, ConfirmedTool, Handler, RunContext, RunError, Skill, Tool,
    ToolInfo, ToolOutput, Validate,
};
use sayback_runtime::prepare::prepare;
use serde_json::{Value, json};

/// Wants a `day`, and fills in one seat.
#[derive(Debug)]
struct Booking;

impl Validate for Booking {
    fn validate(&self, mut input: Value) -> Result<Value, String> {
        if !input["day"].is_string() {
            return Err("day: a text is wanted".to_owned());
        }
        input["seats"] = json!(1);
        Ok(input)
    }
}

/// Builds questions one way or another, and counts them.
#[derive(Debug)]
struct Asks {
    how: How,
    asked: Arc<AtomicU32>,
}

#[derive(Clone, Copy, Debug)]
enum How {
    Well,
    InputError,
    Fails,
    Panics,
    Never,
    Empty,
    Unheard,
    Endless,
    Marked,
}

#[async_trait]
impl Confirm for Asks {
    async fn question(&self, input: &Value, context: &AskContext) -> Result<String, ConfirmError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.how {
            How::Well => {
                Ok(format!("[{}] Shall I book {} for {}?", context.language, input["day"], input["seats"]))
            }
            How::InputError => Err(ConfirmError::Input("That day is full; offer another.".to_owned())),
            How::Fails => Err(ConfirmError::Failed("no calendar".to_owned())),
            How::Panics => panic!("of the author's"),
            How::Never => std::future::pending().await,
            How::Empty => Ok(" \n ".to_owned()),
            How::Unheard => Ok("\u{200b}\u{3164} \u{e0041}".to_owned()),
            How::Endless => Ok("x".repeat(401)),
            How::Marked => Ok("Shall I book\n<break/> for \"A & B\"\u{7}?".to_owned()),
        }
    }
}

#[async_trait]
impl Handler for Booking {
    async fn run(&self, _input: Value, _context: RunContext) -> Result<ToolOutput, RunError> {
        unreachable!("nothing here is confirmed")
    }
}

/// What comes of a call, and how often a question was built.
async fn prepared(how: How, input: &str, language: &str) -> (Prepared, u32) {
    let asked = Arc::new(AtomicU32::new(0));
    let info = ToolInfo {
        name: "book".to_owned(),
        description: "Books.".to_owned(),
        schema: json!({}),
        validate: Arc::new(Booking),
        limit: Duration::from_secs(1),
        definition: "sha256:1".to_owned(),
    };
    let confirm = Arc::new(Asks { how, asked: Arc::clone(&asked) });
    let tool = Tool::Confirmed(ConfirmedTool::new(info, confirm, AskTerms::default(), Arc::new(Booking)));
    let skill = Skill { name: "desk".to_owned(), instructions: String::new(), tools: vec![tool] };
    let agent = Agent {
        name: "Desk".to_owned(),
        language: "en".to_owned(),
        greeting: None,
        instructions: String::new(),
        policy: Policy::default(),
        skills: vec![skill],
    };
    let call = ToolCall { id: CallId("c1".to_owned()), name: "book".to_owned(), input: input.to_owned() };
    let context = AskContext { language: language.to_owned(), ..AskContext::default() };
    let outcome = prepare(&agent, &call, &context).await;
    (outcome, asked.load(Ordering::SeqCst))
}

const FRIDAY: &str = "{\"day\":\"Friday\"}";

#[tokio::test]
async fn vc_03_what_does_not_fit_is_refused_before_any_question_is_built() {
    for input in ["{}", "{\"day\":5}", "{\"day\":", "{\"day\":\"a\",\"day\":\"b\"}", "[]"] {
        let (outcome, asked) = prepared(How::Well, input, "en").await;
        let Prepared::Refused { reason: Refusal::InvalidInput, confirms: true, message } = outcome else {
            panic!("{input}: {outcome:?}")
        };
        assert!(message.starts_with("Invalid input"), "{message}");
        assert_eq!(asked, 0, "{input}");
    }
}

#[tokio::test]
async fn vc_04_vc_15_the_question_is_built_once_from_the_value_that_is_frozen() {
    let (outcome, asked) = prepared(How::Well, FRIDAY, "en").await;
    let Prepared::Ask { question, input, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(question, "[en] Shall I book \"Friday\" for 1?");
    assert_eq!((input.json.as_str(), asked), ("{\"day\":\"Friday\",\"seats\":1}", 1));
}

#[tokio::test]
async fn vc_07_the_question_is_in_the_language_in_force() {
    for language in ["en", "de"] {
        let (outcome, _) = prepared(How::Well, FRIDAY, language).await;
        let Prepared::Ask { question, language: held, .. } = outcome else { panic!("{outcome:?}") };
        assert!(question.starts_with(&format!("[{language}]")) && held == language, "{question}");
    }
}

#[tokio::test]
async fn vc_11_the_authors_input_error_reaches_the_model_as_it_is() {
    let (outcome, _) = prepared(How::InputError, FRIDAY, "en").await;
    let expected = "That day is full; offer another.";
    assert!(
        matches!(&outcome, Prepared::Refused { reason: Refusal::InputError, message, .. } if message == expected),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn vc_13_vc_14_a_question_that_fails_in_any_way_holds_nothing() {
    for (how, says) in [
        (How::Fails, "no calendar"),
        (How::Panics, "panicked"),
        (How::Never, "too long"),
        (How::Empty, "empty"),
        (How::Unheard, "empty"),
        (How::Endless, "too long"),
    ] {
        let (outcome, asked) = prepared(how, FRIDAY, "en").await;
        let Prepared::Refused { reason: Refusal::QuestionFailed, message, .. } = outcome else {
            panic!("{how:?}: {outcome:?}")
        };
        assert!(message.contains(says) && message.contains("Nothing ran"), "{how:?}: {message}");
        assert_eq!(asked, 1, "{how:?}");
    }
}

#[tokio::test]
async fn vc_06_a_question_is_one_line_of_plain_text() {
    let (outcome, _) = prepared(How::Marked, FRIDAY, "en").await;
    let Prepared::Ask { question, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(question, "Shall I book <break/> for \"A & B\" ?");
}

// What a yes to the question cannot have meant: it is not in what was heard.
#[tokio::test]
async fn vc_06_a_value_with_characters_that_nobody_hears_is_not_asked_about() {
    for hidden in ["\u{200b}", "\u{0}", "\u{202e}", "\u{e0042}", "\u{ad}", "\u{3164}"] {
        for input in
            [json!({"day": format!("Fri{hidden}day")}), json!({"day": "Friday", "notes": [{"a": hidden}]})]
        {
            let (outcome, asked) = prepared(How::Well, &input.to_string(), "en").await;
            let Prepared::Refused { reason: Refusal::InvalidInput, confirms: true, message } = outcome else {
                panic!("{input}: {outcome:?}")
            };
            assert!(message.contains("invisible character U+"), "{message}");
            assert_eq!(asked, 0, "{input}");
        }
    }
}
