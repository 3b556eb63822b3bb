//! `approval`, `approval_when` and `approval_hint`: which calls an operator must approve first.

use sayback_runtime::agent::{ApprovalRule, AskContext};
use serde_json::{Value, json};

use crate::condition::Condition;
use crate::reader::Section;
use crate::schema::Schema;
use crate::template::{Template, View};
use crate::tools::read_condition;

/// Who may be asked. One kind so far: whoever has the role `approve`.
const WHO: [(&str, Reviewer); 1] = [("reviewer", Reviewer::Reviewer)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reviewer {
    Reviewer,
}

/// A tool's rule as the file has it.
#[derive(Clone, Debug)]
pub(crate) struct OperatorRule {
    /// Absent: every call.
    when: Option<Condition>,
    /// Absent: the runtime's own words.
    hint: Option<Template>,
    written: Value,
}

impl OperatorRule {
    /// What of it makes the tool what it is.
    pub(crate) fn written(&self) -> Value {
        self.written.clone()
    }
}

impl ApprovalRule for OperatorRule {
    fn needed(&self, input: &Value) -> Result<Value, String> {
        Ok(Value::Bool(self.when.as_ref().is_none_or(|condition| condition.asks(input))))
    }

    fn hint(&self, input: &Value) -> Option<String> {
        let context = AskContext::default();
        let view = View { input, vars: &context.vars, language: "en" };
        self.hint.as_ref()?.render(view).ok()
    }
}

pub(crate) fn read_approval(section: &Section<'_>, schema: Option<&Schema>) -> Option<OperatorRule> {
    let who = section.one_of("approval", &WHO);
    let (fields, open) = schema.map_or((Vec::new(), true), |schema| (schema.fields(), schema.is_open()));
    if !section.has("approval") {
        for key in ["approval_when", "approval_hint"] {
            section.node(key);
            if section.has(key) {
                let hint = "add `approval = \"reviewer\"`, or remove it";
                section.fault_at(key, format!("`{key}` has no meaning without `approval`"), hint);
            }
        }
        return None;
    }
    let when = read_condition(section, "approval_when", &fields, open);
    let hint = section.text("approval_hint").and_then(|text| match Template::compile(&text, &fields, open) {
        Ok(template) => Some(template),
        Err((message, hint)) => {
            section.fault_at("approval_hint", format!("the hint is broken: {message}"), hint);
            None
        }
    });
    // The hint is for people and may change; the condition may not.
    let written = json!({ "by": "reviewer", "when": section.text("approval_when") });
    who.map(|Reviewer::Reviewer| OperatorRule { when, hint, written })
}
