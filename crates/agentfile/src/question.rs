//! A tool's question from templates, one per language.

use std::collections::BTreeMap;

use async_trait::async_trait;
use sayback_runtime::agent::{AskContext, Confirm, ConfirmError};
use serde_json::Value;

use crate::blank;
use crate::condition::Condition;
use crate::template::{Template, View, plain};

/// Longest question in characters. At 15 characters a second it is past what anybody can hold in mind.
pub const MAX_QUESTION: usize = 400;

/// Templates and, if there is one, the condition.
#[derive(Clone, Debug)]
pub(crate) struct TemplateQuestion {
    /// By language tag; a single text stands under the agent's own language.
    pub(crate) by_language: BTreeMap<String, Template>,
    /// The agent's language.
    pub(crate) language: String,
    /// Absent: every input needs a yes.
    pub(crate) when: Option<Condition>,
}

impl TemplateQuestion {
    /// The template for a language: its own, its base language's, the agent's.
    pub(crate) fn choose(&self, language: &str) -> Option<(&str, &Template)> {
        [language, base(language), &self.language, base(&self.language)]
            .into_iter()
            .find_map(|tag| self.by_language.get_key_value(tag))
            .map(|(tag, template)| (tag.as_str(), template))
    }

    pub(crate) fn ask(&self, input: &Value, context: &AskContext) -> Result<String, ConfirmError> {
        let (language, template) = self.choose(&context.language).ok_or_else(|| {
            ConfirmError::Failed(format!("there is no question in the language `{}`", context.language))
        })?;
        let view = View { input, vars: &context.vars, language };
        let text = template.render(view).map_err(ConfirmError::Failed)?;
        match blank::fault(template, view, &text) {
            Some(fault) => Err(ConfirmError::Input(fault)),
            None => usable(&text),
        }
    }
}

#[async_trait]
impl Confirm for TemplateQuestion {
    fn needed(&self, input: &Value) -> bool {
        self.when.as_ref().is_none_or(|condition| condition.asks(input))
    }

    async fn question(&self, input: &Value, context: &AskContext) -> Result<String, ConfirmError> {
        self.ask(input, context)
    }
}

/// The question as plain text, if it is one that can be asked (VC-06, VC-14).
pub(crate) fn usable(text: &str) -> Result<String, ConfirmError> {
    let question = plain(text);
    match question.chars().count() {
        0 => Err(ConfirmError::Failed("it is empty".to_owned())),
        length if length > MAX_QUESTION => {
            Err(ConfirmError::Failed(format!("it has {length} characters, most is {MAX_QUESTION}")))
        }
        _ => Ok(question),
    }
}

fn base(tag: &str) -> &str {
    tag.split(['-', '_']).next().unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIELDS: [&str; 4] = ["start", "email", "amount", "items"];

    fn question(templates: &[(&str, &str)]) -> TemplateQuestion {
        let compile = |source| Template::compile(source, &FIELDS, false).unwrap();
        TemplateQuestion {
            by_language: templates.iter().map(|(tag, source)| ((*tag).to_owned(), compile(source))).collect(),
            language: "en".to_owned(),
            when: None,
        }
    }

    fn ask(question: &TemplateQuestion, language: &str, input: &Value) -> Result<String, ConfirmError> {
        question.ask(input, &AskContext { language: language.to_owned(), ..AskContext::default() })
    }

    fn failed(template: &str, input: &Value) -> String {
        match ask(&question(&[("en", template)]), "en", input) {
            Err(ConfirmError::Failed(reason)) => reason,
            other => panic!("{template}: {other:?}"),
        }
    }

    #[test]
    fn a_question_speaks_its_values() {
        let q =
            question(&[("en", "Shall I book {{ start | spoken_datetime }} for {{ email | spoken_email }}?")]);
        let asked = ask(&q, "en", &json!({"start": "2026-12-03T15:00", "email": "anna@example.com"}));
        let want = "Shall I book Thursday the 3rd of December at 3 pm for anna at example dot com?";
        assert_eq!(asked.as_deref(), Ok(want));
    }

    // VC-07
    #[test]
    fn the_language_in_force_then_its_base_then_the_agents() {
        let q = question(&[
            ("en", "Pay {{ amount | spoken_number }}?"),
            ("de", "{{ amount | spoken_number }} zahlen?"),
        ]);
        let input = json!({"amount": 1250.5});
        for (language, want) in [
            ("de", "1.250,5 zahlen?"),
            ("de-CH", "1.250,5 zahlen?"),
            ("fr", "Pay 1,250.5?"),
            ("", "Pay 1,250.5?"),
        ] {
            assert_eq!(ask(&q, language, &input).as_deref(), Ok(want), "{language}");
        }
        let german = question(&[("de", "Ja?")]);
        let missing = ask(&german, "fr", &input).unwrap_err().to_string();
        assert!(missing.contains("language `fr`"), "{missing}");
    }

    // VC-06
    #[test]
    fn values_cannot_carry_markup_or_controls_into_the_question() {
        let q = question(&[("en", "Send \"{{ email }}\"?")]);
        let asked =
            ask(&q, "en", &json!({"email": "a\n\r\tb\u{202e}\u{200b}c\u{0} [[h@]] [[[ <break/> & 😀"}));
        assert_eq!(asked.as_deref(), Ok("Send \"a b c [ [h@]] [ [ [ <break/> & 😀\"?"));
    }

    #[test]
    fn half_a_question_is_none() {
        let input = json!({"start": "soon", "amount": null, "items": ["a"]});
        for (template, says) in [
            ("At {{ start | spoken_datetime }}?", "is not a date and time"),
            ("For {{ email }}?", "undefined"),
            ("For {{ email | spoken_email }}?", "undefined"),
            ("For {{ amount }}?", "null"),
            ("For {{ amount | spoken_number }}?", "cannot be said"),
            ("For {{ items }}?", "use spoken_list"),
            ("For {{ input }}?", "an object"),
            ("{{ start | spoken_list }}?", "wants a list"),
            ("{{ items | spoken_date(years=true) }}?", "years"),
            ("  \n ", "empty"),
            ("{% for i in range(200) %}abc{% endfor %}?", "characters, most is 400"),
            ("{% for i in range(9000) %}{% for j in range(9000) %}a{% endfor %}{% endfor %}", "fuel"),
        ] {
            let reason = failed(template, &input);
            assert!(reason.contains(says), "{template}: {reason}");
        }
    }

    #[test]
    fn templates_that_cannot_work_do_not_compile() {
        for (source, says) in [
            ("{{ strat }}", "did you mean `start`?"),
            ("{{ xyzzy }}", "the input has: start"),
            ("{{ start | spoken_dat }}", "did you mean `spoken_date`?"),
            ("Book {{ start", "`{{` is not closed at character 6, \"{{ start\"; close it with `}}`"),
            ("Für {{ start } {{ email }}", "`{{` is not closed at character 5"),
            ("Book {% if start }?", "`{%` is not closed at character 6"),
            ("Book {{ start email }}?", "it cannot be read at character"),
            ("Book {{ }}?", "it cannot be read at character"),
            ("Book {% if start %}?", "it cannot be read at"),
        ] {
            let (message, hint) = Template::compile(source, &FIELDS, false).unwrap_err();
            let all = format!("{message}; {hint}");
            assert!(all.contains(says), "{source}: {all}");
        }
    }
}
