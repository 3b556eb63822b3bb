//! Characters that a voice does not say and a screen does not show. In a value they would run without anybody having
//! said yes to them, so a call that asks or waits for an approval does not take them.

use serde_json::Value;

/// The first character of a text that is neither said nor shown; `None` if there is none. Line breaks and tabs are heard
/// as the space they are. A joiner between two letters of another script or two emoji, and the variation of an emoji,
/// are part of how they are written.
#[must_use]
pub fn unheard(text: &str) -> Option<char> {
    marked(text).find_map(|(c, is_unheard)| is_unheard.then_some(c))
}

/// The text with a space in the place of each such character.
#[must_use]
pub fn without_unheard(text: &str) -> String {
    marked(text).map(|(c, is_unheard)| if is_unheard { ' ' } else { c }).collect()
}

/// Each character, and whether it is one that nobody hears where it stands.
fn marked(text: &str) -> impl Iterator<Item = (char, bool)> {
    let visible = |c: &char| !c.is_ascii() && !c.is_whitespace() && !is_unheard(*c);
    let mut before = None;
    let mut rest = text.chars().peekable();
    std::iter::from_fn(move || {
        let c = rest.next()?;
        let written = match c {
            '\u{200c}' | '\u{200d}' => {
                before.as_ref().is_some_and(visible) && rest.peek().is_some_and(visible)
            }
            '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(|b: char| visible(&b) && !b.is_alphanumeric()),
            _ => false,
        };
        // An emoji stays in sight behind its own variation, for the joiner that may follow.
        if !(written && c >= '\u{fe0e}') {
            before = Some(c);
        }
        Some((c, is_unheard(c) && !written))
    })
}

/// Whether a text has something that is said or shown: not only spaces and characters that nobody hears.
#[must_use]
pub fn has_content(text: &str) -> bool {
    text.chars().any(|c| !c.is_whitespace() && !c.is_control() && !is_unheard(c))
}

/// Unicode's `Default_Ignorable_Code_Point`, and what else has no sign of its own: controls but the white ones, marks of
/// annotations, the empty Braille cell, private characters and those that are none.
fn is_unheard(c: char) -> bool {
    let control = c.is_control() && !c.is_whitespace();
    let none = u32::from(c) & 0xfffe == 0xfffe || matches!(c, '\u{fdd0}'..='\u{fdef}');
    control || none || is_ignorable(c) || is_private(c) || matches!(c, '\u{2800}' | '\u{fff9}'..='\u{fffb}')
}

fn is_private(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

fn is_ignorable(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}')
        || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
        || matches!(c, '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}')
        || matches!(c, '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// What the model is told about an input that has such a character, in a value or a key; `None` if it has none.
pub(crate) fn fault(input: &Value) -> Option<String> {
    let (at, c) = find(input, &mut String::new())?;
    let place = if at.is_empty() { "the input".to_owned() } else { format!("`{at}`") };
    Some(format!(
        "{place} has the invisible character U+{:04X}, which the caller can neither hear nor see; leave it out.",
        u32::from(c)
    ))
}

/// The path and the character. Inputs are at most 32 levels deep (`parse_strict`).
fn find(value: &Value, path: &mut String) -> Option<(String, char)> {
    match value {
        Value::String(text) => unheard(text).map(|c| (path.clone(), c)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(at, item)| within(path, &at.to_string(), |path| find(item, path))),
        Value::Object(fields) => fields.iter().find_map(|(key, field)| match unheard(key) {
            Some(c) => Some((path.clone(), c)),
            None => within(path, key, |path| find(field, path)),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn within<T>(path: &mut String, step: &str, look: impl FnOnce(&mut String) -> T) -> T {
    let length = path.len();
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(step);
    let found = look(path);
    path.truncate(length);
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_so_in_its_script_is_taken() {
        for text in [
            "Bob",
            "a\tb\r\nc",
            "Zoë Müller",
            "می‌خواهم", // Persian, with a non-joiner within a word
            "क्‍ष",      // Devanagari, with a joiner
            "👩‍⚕️ ❤️",   // an emoji of two, and one with its variation
            "日本語の名前",
            "C# & 50 % + 1",
            "",
        ] {
            assert_eq!(unheard(text), None, "{text:?}");
            assert_eq!(without_unheard(text), text);
        }
    }

    #[test]
    fn what_nobody_hears_is_found_wherever_it_hides() {
        let kinds = "\u{0}\u{1b}\u{7f}\u{85}\u{ad}\u{34f}\u{61c}\u{115f}\u{17b4}\u{180e}\u{200b}\u{200c}\u{200d}\u{200f}\
                     \u{202e}\u{2060}\u{2066}\u{2800}\u{3164}\u{e000}\u{fdd0}\u{fe0f}\u{feff}\u{ffa0}\u{fffa}\u{ffff}\
                     \u{1bca0}\u{1d173}\u{e0041}\u{e0100}\u{f0000}\u{10ffff}";
        for c in kinds.chars().filter(|c| !c.is_whitespace()) {
            assert_eq!(unheard(&format!("Bob{c}")), Some(c), "U+{:04X}", u32::from(c));
            assert!(!has_content(&format!(" {c}\n")), "U+{:04X}", u32::from(c));
        }
        // Joiners and variations where there is nothing for them to join or vary.
        for text in ["é\u{200d}", "é\u{200d}\u{200d}é", " \u{200d}", "é\u{200c}a", "\u{fe0f}", "é\u{fe0f}"]
        {
            assert!(unheard(text).is_some(), "{text:?}");
        }
    }

    #[test]
    fn the_model_is_told_where() {
        let input = json!({"to": {"names": ["Ann", "Bob\u{200b}"]}});
        let told = fault(&input).unwrap();
        assert!(told.starts_with("`to.names.1` has the invisible character U+200B"), "{told}");
        let told = fault(&json!({"t\u{e0041}o": 1})).unwrap();
        assert!(told.starts_with("the input has the invisible character U+E0041"), "{told}");
        assert_eq!(fault(&json!({"to": "Bob", "amount": 5, "note": null, "ok": true})), None);
    }
}
