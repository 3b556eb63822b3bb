//! Validate first, ask second: a model's call becomes a frozen input and, if its tool asks, a question.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use sayback_core::{Prepared, Refusal, ToolCall};

use crate::agent::{Agent, AskContext, ConfirmError, ConfirmedTool, Tool, needs_approval};
use crate::frozen::{canonical, parse_strict};
use crate::unheard;

/// A question may be built this long.
pub const QUESTION_LIMIT: Duration = Duration::from_secs(5);
/// Longest question in characters: about half a minute of speech, far more than a caller can check.
pub const QUESTION_LENGTH: usize = 400;

/// Validates a call and builds its question. `confirm` is called once, and only on valid input (VC-03, VC-15).
pub async fn prepare(agent: &Agent, call: &ToolCall, context: &AskContext) -> Prepared {
    let Some((skill, tool)) = find(agent, &call.name) else {
        let known: Vec<&str> =
            agent.skills.iter().flat_map(|s| &s.tools).map(|t| t.info().name.as_str()).collect();
        let message = format!("There is no tool {:?}. The tools are: {}.", call.name, known.join(", "));
        return refused(Refusal::UnknownTool, message, false);
    };
    let confirms = matches!(tool, Tool::Confirmed(_));
    let text = if call.input.trim().is_empty() { "{}" } else { call.input.as_str() };
    let validated = parse_strict(text).and_then(|value| tool.info().validate.validate(value));
    let value = match validated {
        Ok(value) => value,
        Err(message) => return refused(Refusal::InvalidInput, format!("Invalid input: {message}"), confirms),
    };
    let input = match canonical(&value) {
        Ok(input) => input,
        Err(error) => return refused(Refusal::InvalidInput, format!("Invalid input: {error}"), confirms),
    };
    let reference = tool.reference(skill);
    let hint = needs_approval(tool.approval(), &call.name, &value).then(|| hint(tool, &value));
    let asks = matches!(tool, Tool::Confirmed(tool) if tool.confirm.needed(&value));
    if let Some(fault) = unheard::fault(&value).filter(|_| asks || hint.is_some()) {
        return refused(Refusal::InvalidInput, format!("Invalid input: {fault}"), confirms);
    }
    let prepared = match tool {
        Tool::Plain(_) => Prepared::Plain { tool: reference, input },
        // Running it looks at the same condition again, on the same bytes: see `ConfirmedTool::run_exempt`.
        Tool::Confirmed(_) if !asks => Prepared::Plain { tool: reference, input },
        Tool::Confirmed(tool) => match question(tool, &value, context).await {
            Ok(question) => Prepared::Ask {
                tool: reference,
                input,
                question,
                language: context.language.clone(),
                terms: tool.terms,
            },
            Err((reason, message)) => refused(reason, message, true),
        },
    };
    match (hint, prepared) {
        (Some(hint), then @ (Prepared::Plain { .. } | Prepared::Ask { .. })) => {
            Prepared::Approve { hint, then: Box::new(then) }
        }
        (_, prepared) => prepared,
    }
}

/// What an operator is told: the author's words, or which tool wants to run.
fn hint(tool: &Tool, input: &serde_json::Value) -> String {
    let own =
        std::panic::catch_unwind(AssertUnwindSafe(|| tool.approval().and_then(|rule| rule.hint(input))));
    let own = own.ok().flatten().map(|text| plain_text(&text)).filter(|text| !text.is_empty());
    own.unwrap_or_else(|| {
        // The words of Google ADK, which other programs know (ADK-08).
        format!(
            "Please approve or reject the tool call {}() by responding with a FunctionResponse with an expected \
             ToolConfirmation payload.",
            tool.info().name
        )
    })
}

async fn question(
    tool: &ConfirmedTool,
    value: &serde_json::Value,
    context: &AskContext,
) -> Result<String, (Refusal, String)> {
    let building = AssertUnwindSafe(tool.confirm.question(value, context)).catch_unwind();
    let built = match tokio::time::timeout(QUESTION_LIMIT, building).await {
        Ok(Ok(built)) => built,
        Ok(Err(_)) => Err(ConfirmError::Failed("its code panicked".to_owned())),
        Err(_) => Err(ConfirmError::Failed("it took too long".to_owned())),
    };
    let failed = |why: &str| {
        let message = format!("The question for {} could not be built: {why}. Nothing ran.", tool.info.name);
        (Refusal::QuestionFailed, message)
    };
    match built {
        Ok(text) if !unheard::has_content(&text) => Err(failed("it is empty")),
        Ok(text) if text.chars().count() > QUESTION_LENGTH => Err(failed("it is too long to be heard")),
        Ok(text) => Ok(plain_text(&text)),
        Err(ConfirmError::Input(message)) => Err((Refusal::InputError, message)),
        Err(ConfirmError::Failed(why)) => Err(failed(&why)),
    }
}

/// One line of plain text: control characters and line breaks can end an utterance early (VC-06).
fn plain_text(text: &str) -> String {
    unheard::without_unheard(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A tool and the skill that owns it, by the tool's name.
pub fn find<'a>(agent: &'a Agent, name: &str) -> Option<(&'a str, &'a Tool)> {
    agent
        .skills
        .iter()
        .find_map(|skill| Some((skill.name.as_str(), skill.tools.iter().find(|t| t.info().name == name)?)))
}

fn refused(reason: Refusal, message: String, confirms: bool) -> Prepared {
    Prepared::Refused { reason, message, confirms }
}
