use serde::Deserialize;

use super::*;

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
struct Booking {
    start: String,
    #[serde(default = "one")]
    seats: u32,
}

fn one() -> u32 {
    1
}

fn question(start: &str, seats: u64) -> Result<String, ToolInputError> {
    if seats > 8 {
        return Err(ToolInputError("at most 8 seats".to_owned()));
    }
    Ok(format!("Shall I book {seats} seats at {start}?"))
}

fn typed_tool() -> Tool {
    ToolBuilder::new("book")
        .input::<Booking>()
        .describe("Books.")
        .confirm(|b: &Booking, _| question(&b.start, b.seats.into()))
        .on_submit(|b: Booking, _| async move { Ok::<_, ToolInputError>(format!("{} {}", b.start, b.seats)) })
        .build()
        .unwrap()
}

fn field_tool() -> Tool {
    ToolBuilder::new("book")
        .describe("Books.")
        .field("start", Field::string())
        .field("seats", Field::integer().default(json!(1)).with("minimum", json!(0)))
        .confirm_async(|b: Value, _| async move {
            question(b["start"].as_str().unwrap_or_default(), b["seats"].as_u64().unwrap_or(0))
        })
        .on_submit(|b: Value, _| async move {
            Ok::<_, ToolInputError>(format!("{} {}", b["start"].as_str().unwrap_or_default(), b["seats"]))
        })
        .build()
        .unwrap()
}

fn confirmed(tool: &Tool) -> &ConfirmedTool {
    match tool {
        Tool::Confirmed(tool) => tool,
        Tool::Plain(_) => panic!("not confirmed"),
    }
}

// VC-09, VC-10, VC-11
#[tokio::test]
async fn a_typed_tool_and_one_of_fields_behave_alike() {
    for tool in [typed_tool(), field_tool(), field_tool().clone()] {
        let tool = confirmed(&tool);
        let validate = |input| tool.info.validate.validate(input);
        let input = validate(json!({"start": "noon", "seats": "3"})).unwrap();
        assert_eq!(input, json!({"start": "noon", "seats": 3}));
        assert_eq!(validate(json!({"start": "noon"})), Ok(json!({"start": "noon", "seats": 1})));
        assert!(validate(json!({"seats": 1})).is_err());
        assert!(validate(json!({"start": "noon", "seats": -1})).is_err());
        let asked = tool.confirm.question(&input, &AskContext::default()).await;
        assert_eq!(asked.as_deref(), Ok("Shall I book 3 seats at noon?"));
        let refused = tool.confirm.question(&json!({"start": "x", "seats": 9}), &AskContext::default()).await;
        assert_eq!(refused, Err(ConfirmError::Input("at most 8 seats".to_owned())));
        assert!(tool.info.description.contains("asks the caller"));
    }
}

// VC-13, VC-14
#[tokio::test]
async fn a_question_that_panics_is_empty_or_too_long_is_a_failed_one() {
    let build = |ask: fn() -> String| {
        ToolBuilder::new("t")
            .confirm(move |_, _| Ok::<_, ToolInputError>(ask()))
            .on_submit(|_, _| async { Ok::<_, ToolInputError>("") })
            .build()
            .unwrap()
    };
    for ask in [|| panic!("of the author's"), || " \n".to_owned(), || "x".repeat(401)] as [fn() -> String; 3]
    {
        let tool = build(ask);
        let asked = confirmed(&tool).confirm.question(&json!({}), &AskContext::default()).await;
        assert!(matches!(asked, Err(ConfirmError::Failed(_))), "{asked:?}");
    }
}

#[tokio::test]
async fn a_run_that_panics_does_not_take_the_call_with_it() {
    let tool = ToolBuilder::new("t")
        .on_submit(|_, _| async {
            if true {
                panic!("of the author's");
            }
            Ok::<_, ToolInputError>("")
        })
        .build()
        .unwrap();
    let Tool::Plain(tool) = tool else { panic!("not plain") };
    let frozen = crate::canonical(&json!({})).unwrap();
    let outcome = tool.run(&frozen, RunContext::default()).await;
    assert_eq!(outcome, sayback_core::ToolOutcome::Unknown, "what it had done by then nobody knows (VC-62)");
}

#[test]
fn what_cannot_be_built_says_why() {
    let run = |_: Value, _: RunContext| async { Ok::<_, ToolInputError>("") };
    for (built, says) in [
        (ToolBuilder::new("end_call").on_submit(run).build(), "built in"),
        (ToolBuilder::new("t").build(), "no `on_submit`"),
        (ToolBuilder::new("t").on_submit(run).irreversible().build(), "no meaning without `confirm`"),
        (ToolBuilder::new("t").schema(json!({"type": "array"})).on_submit(run).build(), "must be an object"),
        (ToolBuilder::new("t").field("a", Field::of("strng")).on_submit(run).build(), "strng"),
    ] {
        let error = built.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn the_revision_is_part_of_the_definition() {
    let build = |revision: &str| {
        let builder = ToolBuilder::new("t").on_submit(|_, _| async { Ok::<_, ToolInputError>("") });
        builder.revision(revision).build().unwrap().info().definition.clone()
    };
    assert_eq!(build("1"), build("1"));
    assert_ne!(build("1"), build("2"));
}
