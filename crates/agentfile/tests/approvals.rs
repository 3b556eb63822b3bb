//! Which calls an operator must approve, for tools in Rust and tools of a file.

#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

use std::path::Path;
use std::sync::Arc;

use sayback_agentfile::{ToolBuilder, ToolInputError, parse};
use sayback_core::{CallId, PlainRun, Policy, Prepared, ToolCall, ToolOutcome};
use sayback_runtime::agent::{Agent, ApprovalRule, AskContext, RunContext, Skill, Tool, run_plain};
use sayback_runtime::prepare::prepare;
use serde_json::{Value, json};

#[derive(Debug)]
struct Rule(fn(&Value) -> Result<Value, String>);

impl ApprovalRule for Rule {
    fn needed(&self, input: &Value) -> Result<Value, String> {
        self.0(input)
    }
}

fn pay(rule: Option<Rule>) -> Tool {
    let tool = ToolBuilder::new("pay")
        .schema(json!({
            "type": "object",
            "required": ["amount"],
            "properties": { "amount": { "type": "integer" }, "currency": { "type": "string", "default": "EUR" } },
        }))
        .on_submit(|_: Value, _| async { Ok::<_, ToolInputError>("Paid.") });
    match rule {
        Some(rule) => tool.approval(Arc::new(rule)).build().unwrap(),
        None => tool.build().unwrap(),
    }
}

fn agent(tool: Tool) -> Agent {
    Agent {
        name: "bank".to_owned(),
        language: "en".to_owned(),
        greeting: None,
        instructions: String::new(),
        policy: Policy::default(),
        skills: vec![Skill { name: "bank".to_owned(), instructions: String::new(), tools: vec![tool] }],
    }
}

async fn prepared(agent: &Agent, input: &str) -> Prepared {
    let call = ToolCall { id: CallId("c1".to_owned()), name: "pay".to_owned(), input: input.to_owned() };
    prepare(agent, &call, &AskContext::default()).await
}

fn is_asked(prepared: &Prepared) -> bool {
    matches!(prepared, Prepared::Approve { then, .. } if matches!(**then, Prepared::Plain { .. }))
}

#[tokio::test]
async fn adk_01_without_a_rule_it_runs_at_once_and_a_plain_yes_asks_every_time() {
    assert!(matches!(prepared(&agent(pay(None)), "{\"amount\":1}").await, Prepared::Plain { .. }));
    let always = agent(pay(Some(Rule(|_| Ok(json!(true))))));
    assert!(is_asked(&prepared(&always, "{\"amount\":1}").await));
}

#[tokio::test]
async fn adk_03_the_rule_sees_what_would_run() {
    // A number as text is a number by then, and the default is there.
    let rule = Rule(|input| match (&input["amount"], &input["currency"]) {
        (Value::Number(amount), Value::String(currency)) if currency == "EUR" => {
            Ok(json!(amount.as_i64().is_none_or(|amount| amount > 100)))
        }
        _ => Err("that is not what would run".to_owned()),
    });
    let bank = agent(pay(Some(rule)));
    assert!(!is_asked(&prepared(&bank, "{\"amount\":\"50\"}").await));
    assert!(is_asked(&prepared(&bank, "{\"amount\":\"5000\"}").await));
    let wrong = prepared(&bank, "{\"amount\":\"lots\"}").await;
    assert!(matches!(wrong, Prepared::Refused { .. }), "ADK-09: {wrong:?}");
}

#[tokio::test]
async fn adk_04_only_a_clear_no_lets_it_run() {
    type Decides = fn(&Value) -> Result<Value, String>;
    let rules: [Decides; 7] = [
        |_| Ok(Value::Null),
        |_| Ok(json!(0)),
        |_| Ok(json!("")),
        |_| Ok(json!("no")),
        |_| Ok(json!([])),
        |_| Err("the rule's own service is down".to_owned()),
        |_| panic!("a rule of a test breaks down"),
    ];
    for rule in rules {
        let bank = agent(pay(Some(Rule(rule))));
        assert!(is_asked(&prepared(&bank, "{\"amount\":1}").await));
    }
    let bank = agent(pay(Some(Rule(|_| Ok(json!(false))))));
    assert!(!is_asked(&prepared(&bank, "{\"amount\":1}").await));
}

#[tokio::test]
async fn what_needs_an_approval_does_not_run_without_one_whoever_asks() {
    let bank = agent(pay(Some(Rule(|_| Ok(json!(true))))));
    let Prepared::Approve { then, hint } = prepared(&bank, "{\"amount\":1}").await else { panic!() };
    // ADK-08
    assert!(
        hint.starts_with(
            "Please approve or reject the tool call pay() by responding with a FunctionResponse"
        )
    );
    let Prepared::Plain { tool, input } = *then else { panic!() };
    let run =
        PlainRun { call: CallId("c1".to_owned()), tool, input, limit: std::time::Duration::from_secs(1) };
    let outcome = run_plain(&bank, &run, RunContext::default()).await;
    assert!(
        matches!(&outcome, ToolOutcome::Failed { message } if message.contains("approval")),
        "{outcome:?}"
    );
}

const FILE: &str = r#"
[agent]
name = "bank"
[[skill]]
name = "bank"
[[skill.tool]]
name = "pay"
description = "Pays."
approval = "reviewer"
approval_when = "amount > 100"
approval_hint = "{{ amount }} euros"
input = { type = "object", required = ["amount"], properties = { amount = { type = "integer" }, to = { type = "string" } } }
run = { reply = { message = "Paid." } }
"#;

#[tokio::test]
async fn adk_02_a_files_condition_lets_small_amounts_through() {
    let file = parse(FILE, Path::new("bank.toml")).unwrap();
    assert!(!is_asked(&prepared(&file.agent, "{\"amount\":100}").await));
    let Prepared::Approve { hint, .. } = prepared(&file.agent, "{\"amount\":101}").await else { panic!() };
    assert_eq!(hint, "101 euros");
    // A condition over something that is not there is no clear no.
    let file = parse(&FILE.replace("amount > 100", "to == 'x'"), Path::new("bank.toml")).unwrap();
    assert!(is_asked(&prepared(&file.agent, "{\"amount\":1}").await));
}

#[test]
fn another_rule_is_another_tool() {
    let definition = |text: &str| {
        let file = parse(text, Path::new("bank.toml")).unwrap();
        file.agent.tool_refs()[0].definition.clone()
    };
    assert_ne!(definition(FILE), definition(&FILE.replace("> 100", "> 200")));
    assert_eq!(
        definition(FILE),
        definition(&FILE.replace("{{ amount }} euros", "Money")),
        "a hint is for people"
    );
}
