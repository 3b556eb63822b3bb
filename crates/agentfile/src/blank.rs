//! A question that leaves out one of its values without a word: "Shall I send 5 euros to ?"
//!
//! Only the values that are blank and stand in the question count, not those that it leaves out on purpose. A template
//! can do that in many ways (`{% if note %}`, `{{ note or "" }}`, `| default`), so it is tried, not read: rendered once
//! with something in the blank's place that knows when it is said, and once with a mark. Where the blank is said, and
//! the mark changes nothing else in the question, nobody has thought of its absence.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use minijinja::Value;
use minijinja::value::{Object, ObjectRepr};
use sayback_runtime::unheard::has_content;

use crate::template::{Template, View, plain};

/// An input with more blanks than this is not tried, but refused: each is two renderings.
const MOST: usize = 32;
/// Stands for a blank in the second rendering: nothing that a filter changes, or that anybody says.
const MARK: &str = "ꙮ⸮ꙮ";
/// Marks that a voice makes no sound of.
const SILENT: &str = ".,;:!?¡¿-_'\"`´()[]{}<>/\\|*~^";

/// What is wrong with a question that was rendered as `text`, as the model is told it; `None` if no blank is said.
pub(crate) fn fault(template: &Template, view: View<'_>, text: &str) -> Option<String> {
    let mut blanks = Blanks::default();
    blanks.copy(view.input, &mut Vec::new());
    if blanks.found.len() > MOST {
        return Some(format!("more than {MOST} texts of the input are empty; leave them out"));
    }
    let said = |at: &usize| is_said(template, view, (*at, &blanks.found[*at].1), text);
    let (path, _) = &blanks.found[(0..blanks.found.len()).find(said)?];
    Some(format!(
        "`{path}` is empty, and the caller would be asked as if it were not there; ask for it first"
    ))
}

fn is_said(template: &Template, view: View<'_>, (at, own): (usize, &str), text: &str) -> bool {
    let with = |value: Value| {
        let mut blanks = Blanks { instead: Some((at, value)), ..Blanks::default() };
        template.render_value(blanks.copy(view.input, &mut Vec::new()), view)
    };
    let blank = Arc::new(Blank { is_empty: own.is_empty(), said: AtomicBool::new(false) });
    let spoken =
        with(Value::from_dyn_object(Arc::clone(&blank))).is_err() || blank.said.load(Ordering::Relaxed);
    spoken && with(Value::from(MARK)).is_ok_and(|marked| plain(&marked.replace(MARK, own)) == text)
}

/// Whether a voice says nothing for this text.
fn is_blank(text: &str) -> bool {
    let quiet =
        |c: char| SILENT.contains(c) || matches!(c, '\u{2010}'..='\u{2027}' | '\u{3000}'..='\u{3003}');
    !has_content(text) || text.chars().all(|c| c.is_whitespace() || quiet(c) || is_mark(c))
}

/// Whether a character only marks the one before it: an accent, a ring, a stroke.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}')
        || matches!(c, '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}' | '\u{1d159}'..='\u{1d182}')
        || matches!(c, '\u{d7b0}'..='\u{d7ff}')
}

/// Copies an input, and finds or replaces its blanks on the way.
#[derive(Default)]
struct Blanks {
    /// Where they are and what they are, in the order of the copy.
    found: Vec<(String, String)>,
    /// What the copy has in the place of one of them.
    instead: Option<(usize, Value)>,
}

impl Blanks {
    fn copy(&mut self, value: &serde_json::Value, path: &mut Vec<String>) -> Value {
        match value {
            serde_json::Value::String(text) if is_blank(text) => {
                self.found.push((path.join("."), text.clone()));
                match &self.instead {
                    Some((at, with)) if at + 1 == self.found.len() => with.clone(),
                    _ => Value::from(text.as_str()),
                }
            }
            serde_json::Value::Array(items) => {
                let items = items.iter().enumerate().map(|(at, item)| self.step(at.to_string(), item, path));
                Value::from(items.collect::<Vec<_>>())
            }
            serde_json::Value::Object(fields) => {
                let fields =
                    fields.iter().map(|(key, field)| (key.clone(), self.step(key.clone(), field, path)));
                Value::from(fields.collect::<BTreeMap<_, _>>())
            }
            serde_json::Value::String(_)
            | serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_) => Value::from_serialize(value),
        }
    }

    fn step(&mut self, step: String, value: &serde_json::Value, path: &mut Vec<String>) -> Value {
        path.push(step);
        let copied = self.copy(value, path);
        path.pop();
        copied
    }
}

/// As true and as silent as the blank that it stands for, and knows whether it was said.
#[derive(Debug)]
struct Blank {
    is_empty: bool,
    said: AtomicBool,
}

impl Object for Blank {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        !self.is_empty
    }

    fn render(self: &Arc<Self>, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.said.store(true, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fault_of(source: &str, input: &serde_json::Value) -> Option<String> {
        let template =
            Template::compile(source, &["to", "note", "amount", "items", "address"], false).unwrap();
        let vars = BTreeMap::new();
        let view = View { input, vars: &vars, language: "en" };
        let text = template.render(view).unwrap_or_else(|error| panic!("{source}: {error}"));
        fault(&template, view, &text)
    }

    #[test]
    fn a_blank_that_is_said_is_found_however_it_is_written() {
        for source in [
            "Send {{ amount }} to {{ to }}?",
            "Send {{ amount }} to {{ input.to }}?",
            "Send {{ amount ~ ' to ' ~ to }}?",
            "Send {{ amount }} to {{ to | upper }}?",
            "Send {{ amount }} to {{ to | trim }}{% if note %}, {{ note }}{% endif %}?",
            "Send {{ amount }} to {{ '%s' | format(to) }}?",
            "{% set who = to %}Send {{ amount }} to {{ who }}?",
            "Send {{ amount }} to {{ to if amount else 'nobody' }}?",
        ] {
            for blank in ["", " ", "\n", "...", "–", "\u{200b}", "\u{300}", "\u{20e3}", "\"\"", "?!"] {
                let fault = fault_of(source, &json!({"to": blank, "amount": 5, "note": ""}));
                assert!(
                    fault.as_ref().is_some_and(|f| f.starts_with("`to` is empty")),
                    "{source} {blank:?}: {fault:?}"
                );
            }
            for full in ["Bob", "5", "+", "C#", "李", "😀", "O'Neil"] {
                assert_eq!(
                    fault_of(source, &json!({"to": full, "amount": 5, "note": ""})),
                    None,
                    "{source} {full}"
                );
            }
        }
    }

    #[test]
    fn a_blank_within_the_input_is_named_by_its_path() {
        let input = json!({"address": {"street": "Elm Street", "city": " "}, "items": ["tea", ""]});
        let fault = fault_of("Send it to {{ address.street }}, {{ address.city }}?", &input).unwrap();
        assert!(fault.starts_with("`address.city` is empty"), "{fault}");
        let fault = fault_of("Send {% for i in items %}{{ i }}, {% endfor %}now?", &input).unwrap();
        assert!(fault.starts_with("`items.1` is empty"), "{fault}");
    }

    #[test]
    fn a_blank_that_is_left_out_on_purpose_is_no_fault() {
        for source in [
            "Send {{ amount }}{% if note %} with the note {{ note }}{% endif %}?",
            "Send {{ amount }}{% if note %} {{ note }}{% endif %}?",
            "Send {{ amount }}{% if note != '' %} with the note {{ note }}{% endif %}?",
            "Send {{ amount }}{% if note | length > 0 %} with the note {{ note }}{% endif %}?",
            "Send {{ amount }} {{ note or '' }}?",
            "Send {{ amount }} {{ note | default('', true) }}?",
            "Send {{ amount }} {{ 'with a note' if note else '' }}?",
            "Send {{ amount }} {{ ('noted: ' ~ note) if note }}?",
            "Send {{ amount }}?",
        ] {
            assert_eq!(fault_of(source, &json!({"amount": 5, "note": ""})), None, "{source}");
        }
    }

    // The author has thought of its absence, not of a text that is there and says nothing.
    #[test]
    fn a_blank_that_passes_for_a_text_is_found_behind_a_guard() {
        let source = "Send {{ amount }}{% if note %} with the note {{ note }}{% endif %}?";
        for blank in [" ", "-", "…", "\u{200b}"] {
            let fault = fault_of(source, &json!({"amount": 5, "note": blank}));
            assert!(fault.as_ref().is_some_and(|f| f.starts_with("`note` is empty")), "{blank:?}: {fault:?}");
        }
    }

    #[test]
    fn an_input_of_blanks_is_refused_without_trying_each() {
        let fault = fault_of("Send {{ amount }}?", &json!({"amount": 5, "items": vec![""; 100]})).unwrap();
        assert!(fault.contains("more than 32"), "{fault}");
    }
}
