//! `confirm_when`: whether this input needs a yes at all. It fails closed: only a clear `false` skips the question.
//!
//! The expression language compares anything with anything: text with a number, something absent with a number, and the
//! answer is a `false` that means nothing. So every field that the expression names must be there, and a comparison
//! must have the types that it looks like; otherwise the caller is asked.

use crate::template::{near, place_of};
use minijinja::{Environment, UndefinedBehavior};
use serde_json::Value;

/// A compiled `confirm_when`.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    source: String,
    tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Path(String),
    Text,
    Number,
    /// An operator, a bracket, or one of the words `and or not in is if else`.
    Mark(String),
}

const WORDS: [&str; 7] = ["and", "or", "not", "in", "is", "if", "else"];
const LITERALS: [&str; 6] = ["true", "false", "none", "True", "False", "None"];
/// Filters that give a number; behind an ordering, no others are trusted.
const NUMERIC: [&str; 5] = ["float", "int", "abs", "round", "length"];

impl Condition {
    pub(crate) fn compile(source: &str) -> Result<Self, String> {
        if let Some(fault) = crate::template::too_long(source) {
            return Err(fault);
        }
        let tokens = tokens(source)?;
        environment()
            .compile_expression(source)
            .map_err(|error| format!("it cannot be read at {}", near(source, place_of(source, &error))))?;
        for pair in tokens.windows(2) {
            if let [Token::Path(path), Token::Mark(mark)] = pair
                && (mark == "[" || mark == "(")
            {
                return Err(format!(
                    "`{path}{mark}` is not allowed; name fields with dots, like `order.amount`"
                ));
            }
        }
        Ok(Self { source: source.to_owned(), tokens })
    }

    /// The top-level fields that it reads.
    pub(crate) fn fields(&self) -> Vec<&str> {
        let paths = (0..self.tokens.len()).filter_map(|at| self.path(at));
        paths.map(|path| path.split('.').next().unwrap_or(path)).collect()
    }

    /// Whether the caller must be asked.
    pub(crate) fn asks(&self, input: &Value) -> bool {
        !(self.is_clear(input) && self.evaluate(input) == Some(false))
    }

    fn evaluate(&self, input: &Value) -> Option<bool> {
        let environment = environment();
        let value = environment.compile_expression(&self.source).ok()?.eval(input).ok()?;
        (value.kind() == minijinja::value::ValueKind::Bool).then(|| value.is_true())
    }

    fn is_clear(&self, input: &Value) -> bool {
        let ordered = self.tokens.iter().any(|t| matches!(t, Token::Mark(m) if m.starts_with(['<', '>'])));
        (0..self.tokens.len()).all(|at| match self.path(at) {
            None => true,
            Some(path) => lookup(input, path).is_some_and(|value| {
                self.equal_types(at, value) && (!ordered || value.is_number() || self.is_beside_order(at))
            }),
        })
    }

    /// The path at this token, if it is one and not the name of a filter or a test.
    fn path(&self, at: usize) -> Option<&str> {
        let Token::Path(path) = self.tokens.get(at)? else { return None };
        let named = matches!(self.before(at, 1), Some(Token::Mark(mark)) if mark == "|" || mark == "is")
            || matches!((self.before(at, 1), self.before(at, 2)),
                (Some(Token::Mark(not)), Some(Token::Mark(is))) if not == "not" && is == "is");
        (!named).then_some(path)
    }

    fn before(&self, at: usize, steps: usize) -> Option<&Token> {
        at.checked_sub(steps).and_then(|at| self.tokens.get(at))
    }

    /// Whether a value that is no number takes no part in an ordering.
    fn is_beside_order(&self, at: usize) -> bool {
        let follows = match self.tokens.get(at + 1) {
            None => true,
            Some(Token::Mark(mark)) if mark == "|" => {
                matches!(self.tokens.get(at + 2), Some(Token::Path(f)) if NUMERIC.contains(&f.as_str()))
            }
            Some(Token::Mark(mark)) => {
                ["==", "!=", "in", "not", "is", "and", "or", ")"].contains(&mark.as_str())
            }
            Some(Token::Path(_) | Token::Text | Token::Number) => false,
        };
        let leads = match self.before(at, 1) {
            Some(Token::Mark(mark)) => ["==", "!=", "in", "not", "and", "or", "("].contains(&mark.as_str()),
            Some(Token::Path(_) | Token::Text | Token::Number) => false,
            None => true,
        };
        let piped = matches!(self.tokens.get(at + 1), Some(Token::Mark(mark)) if mark == "|");
        follows && (leads || piped)
    }

    /// Whether a field that is compared with a literal is of the literal's type.
    fn equal_types(&self, at: usize, value: &Value) -> bool {
        let is_equality =
            |token: Option<&Token>| matches!(token, Some(Token::Mark(m)) if m == "==" || m == "!=");
        let fits = |literal: Option<&Token>| match literal {
            Some(Token::Text) => value.is_string(),
            Some(Token::Number) => value.is_number(),
            Some(Token::Path(_) | Token::Mark(_)) | None => true,
        };
        (!is_equality(self.tokens.get(at + 1)) || fits(self.tokens.get(at + 2)))
            && (!is_equality(self.before(at, 1)) || fits(self.before(at, 2)))
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(10_000));
    environment.add_filter("float", |value: minijinja::Value| number(&value, true));
    environment.add_filter("int", |value: minijinja::Value| number(&value, false));
    environment
}

/// A number of a number, or of a text that is one to the last figure. The engine's own filters make something of
/// everything: "nan", which is above nothing and below nothing, or a figure behind the point less.
fn number(value: &minijinja::Value, fraction: bool) -> Result<f64, minijinja::Error> {
    let cannot =
        || minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, "this is not plainly a number");
    let text = match value.as_str() {
        Some(text) => text.trim().to_owned(),
        None if value.is_number() => value.to_string(),
        None => return Err(cannot()),
    };
    let digits = text.strip_prefix(['-', '+']).unwrap_or(&text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let figures = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // As many as a binary fraction of 64 bits keeps.
    let exact = whole.len() + part.len() <= 15;
    let is_whole = part.bytes().all(|byte| byte == b'0');
    if !figures(whole) || !figures(part) || !exact || !(fraction || is_whole) {
        return Err(cannot());
    }
    text.parse().map_err(|_| cannot())
}

fn lookup<'v>(input: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(input, |value, key| value.get(key)).filter(|value| !value.is_null())
}

fn tokens(source: &str) -> Result<Vec<Token>, String> {
    if source.contains('\\') {
        return Err("a backslash has no meaning here".to_owned());
    }
    let mut tokens = Vec::new();
    let mut rest = source.trim();
    while let Some(first) = rest.chars().next() {
        let length = token_length(rest, first)?;
        let (token, tail) = rest.split_at(length);
        tokens.push(match first {
            '"' | '\'' => Token::Text,
            c if c.is_ascii_digit() => Token::Number,
            c if (c.is_alphabetic() || c == '_') && LITERALS.contains(&token) => {
                Token::Mark(token.to_owned())
            }
            c if (c.is_alphabetic() || c == '_') && !WORDS.contains(&token) => Token::Path(token.to_owned()),
            _ => Token::Mark(token.to_owned()),
        });
        rest = tail.trim_start();
    }
    if tokens.is_empty() { Err("it is empty".to_owned()) } else { Ok(tokens) }
}

fn token_length(rest: &str, first: char) -> Result<usize, String> {
    let run = |keep: fn(char) -> bool| rest.find(|c| !keep(c)).unwrap_or(rest.len());
    Ok(match first {
        '"' | '\'' => rest[1..].find(first).ok_or("a text is not closed")? + 2,
        c if c.is_ascii_digit() => run(|c| c.is_ascii_digit() || c == '.' || c == '_'),
        c if c.is_alphabetic() || c == '_' => run(|c| c.is_alphanumeric() || c == '_' || c == '.'),
        _ if ["==", "!=", "<=", ">=", "//", "**"].iter().any(|two| rest.starts_with(two)) => 2,
        c => c.len_utf8(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asks(source: &str, input: &Value) -> bool {
        Condition::compile(source).unwrap_or_else(|error| panic!("{source}: {error}")).asks(input)
    }

    #[test]
    fn a_clear_no_skips_the_question() {
        let input =
            json!({"amount": 50, "kind": "a", "urgent": false, "text": "50", "o": {"n": 1}, "l": ["x"]});
        for source in [
            "amount > 100",
            "100 < amount",
            "amount > 100 or urgent",
            "urgent",
            "kind == \"b\"",
            "kind == 'b' and amount > 1",
            "text | float > 100",
            "o.n >= 2",
            "kind in [\"b\", \"c\"]",
            "not (amount < 100)",
            "amount > 100 or kind == 'b'",
            "l | length > 3",
        ] {
            assert!(!asks(source, &input), "{source}");
        }
    }

    #[test]
    fn anything_but_a_clear_no_asks() {
        let input =
            json!({"amount": 500, "small": 5, "text": "5000", "bad": "a lot", "gone": null, "zero": 0});
        for source in [
            "amount > 100",
            "missing > 100",
            "missing == 1",
            "o.missing",
            "gone > 1",
            "text > 100",
            "text < 100 and text > 9999",
            "100 < text",
            "text + text > 100",
            "bad | float > 100",
            "text | upper > 100",
            "zero",
            "none",
            "''",
            "small == \"5\"",
            "\"5\" == small",
            "text == 5000",
            "small / 0",
            "small > 100 or missing",
            "text in small",
            "missing is defined and small > 100",
        ] {
            assert!(asks(source, &input), "{source}");
        }
    }

    #[test]
    fn a_text_that_is_not_plainly_a_number_asks() {
        for text in
            ["nan", "-nan", "inf", "-inf", "1e3", "0x10", "", "100.0000000000000000001", "1,5", "5 euros"]
        {
            for source in ["x | float > 100", "x | int > 100", "100 < x | float"] {
                assert!(Condition::compile(source).unwrap().asks(&json!({ "x": text })), "{source} {text}");
            }
        }
        for (source, text, asks) in [
            ("x | float > 100", "99.5", false),
            ("x | float > 100", " 100.5", true),
            ("x | int > 100", "100", false),
            ("x | int > 100", "100.9", true),
            ("x | float > 100", "-250", false),
        ] {
            assert_eq!(
                Condition::compile(source).unwrap().asks(&json!({ "x": text })),
                asks,
                "{source} {text}"
            );
        }
    }

    #[test]
    fn what_cannot_be_followed_does_not_compile() {
        for source in
            ["", "amount >", "items[0] == 1", "f(amount)", "a.get('x')", "'open", "a = 1", "{% if %}"]
        {
            let why = Condition::compile(source).unwrap_err();
            assert!(!why.contains("in <") && !why.contains("syntax error"), "{source}: {why}");
        }
    }
}
