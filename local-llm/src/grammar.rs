//! JSON schemas as GBNF, the grammars that llama.cpp samples under.
//!
//! A grammar only keeps the model from writing what could never be valid; the caller validates against the schema
//! itself. So keywords that have no simple grammar (`pattern`, `minimum`, `allOf`, …) are left out, and the grammar
//! is then wider than the schema, never narrower, apart from the order of members, which is the schema's.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::api::Tool;

/// Deeper schemas than this are taken as "any value".
const DEEPEST: usize = 16;

/// Rules that every grammar may use.
const BASE: &str = r#"
ws ::= " "?
char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
string ::= "\"" char* "\""
integer ::= "-"? ("0" | [1-9] [0-9]{0,14})
number ::= integer ("." [0-9]{1,9})?
boolean ::= "true" | "false"
null ::= "null"
value ::= object | array | string | number | boolean | null
object ::= "{" (string ":" ws value ("," ws string ":" ws value)*)? "}"
array ::= "[" (value ("," ws value)*)? "]"
day ::= [0-9]{4} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [1-2] [0-9] | "3" [0-1])
clock ::= ([0-1] [0-9] | "2" [0-3]) ":" [0-5] [0-9] (":" [0-5] [0-9])?
zone ::= "Z" | [+-] [0-9]{2} ":" [0-9]{2}
date ::= "\"" day "\""
time ::= "\"" clock zone? "\""
date-time ::= "\"" day "T" clock zone? "\""
"#;

/// An answer that is speech, or a call of one of the tools, or speech and then a call.
///
/// Speech holds no `<`, `{` or backtick, so the first of them begins a call. Small models open calls in several
/// ways, and each of them is accepted, or else the model would be pushed from the call that it wants into words.
pub(crate) fn speech_or_call(tools: &[Tool]) -> String {
    let mut rules = Rules::default();
    let mut calls = Vec::new();
    for (at, tool) in tools.iter().enumerate() {
        rules.root = tool.function.parameters.clone();
        rules.scope = at;
        let arguments = rules.arguments(&tool.function.parameters);
        let name = literal(&format!("\"name\": {}, \"arguments\": ", json!(tool.function.name)));
        calls.push(format!("\"{{\" {name} {arguments} \"}}\""));
    }
    let mut text = String::from("root ::= speech | speech? open call\nspeech ::= [^<{`]+\n");
    text.push_str("open ::= \"<tool_call>\" \"\\n\"? | \"```\" \"json\"? \"\\n\" | \"\"\n");
    // Writing to a text cannot fail.
    let _ = writeln!(text, "call ::= {}", calls.join(" | "));
    rules.write_to(&mut text);
    text
}

/// An answer that is exactly one of `words`.
pub(crate) fn one_of(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| literal(word)).collect();
    format!("root ::= {}\n", words.join(" | "))
}

#[derive(Default)]
struct Rules {
    /// Name to body.
    rules: BTreeMap<String, String>,
    /// The schema whose `$ref`s are being read.
    root: Value,
    /// Which tool it belongs to: two tools may use the same definition names.
    scope: usize,
    depth: usize,
}

impl Rules {
    fn write_to(&self, text: &mut String) {
        for (name, body) in &self.rules {
            let _ = writeln!(text, "{name} ::= {body}");
        }
        text.push_str(BASE.trim_start());
    }

    /// Arguments are always an object.
    fn arguments(&mut self, schema: &Value) -> String {
        match schema.get("properties").and_then(Value::as_object) {
            Some(properties) => self.object(schema, &properties.clone()),
            None if schema.get("$ref").is_some() => self.expression(schema),
            None => "\"{}\"".to_owned(),
        }
    }

    /// What a schema allows, as an expression that needs no parentheses.
    fn expression(&mut self, schema: &Value) -> String {
        if self.depth >= DEEPEST {
            return "value".to_owned();
        }
        self.depth += 1;
        let expression = self.expression_within(schema);
        self.depth -= 1;
        expression
    }

    fn expression_within(&mut self, schema: &Value) -> String {
        if let Some(constant) = schema.get("const") {
            return literal(&constant.to_string());
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return alternatives(values.iter().map(|value| literal(&value.to_string())).collect());
        }
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            return self.definition(name);
        }
        if let Some(schemas) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array()) {
            return alternatives(schemas.iter().map(|schema| self.expression(schema)).collect());
        }
        match schema.get("type") {
            Some(Value::Array(types)) => {
                alternatives(types.iter().map(|kind| self.typed(kind, schema)).collect())
            }
            Some(kind) => self.typed(kind, schema),
            None if schema.get("properties").is_some() => self.typed(&json!("object"), schema),
            None => "value".to_owned(),
        }
    }

    fn typed(&mut self, kind: &Value, schema: &Value) -> String {
        match kind.as_str().unwrap_or_default() {
            "string" => string(schema),
            "integer" => "integer".to_owned(),
            "number" => "number".to_owned(),
            "boolean" => "boolean".to_owned(),
            "null" => "null".to_owned(),
            "array" => match schema.get("items") {
                Some(items) => {
                    let item = self.expression(items);
                    format!("(\"[\" ({item} (\",\" ws {item})*)? \"]\")")
                }
                None => "array".to_owned(),
            },
            "object" => match schema.get("properties").and_then(Value::as_object) {
                Some(properties) if !properties.is_empty() => self.object(schema, &properties.clone()),
                _ => "object".to_owned(),
            },
            _ => "value".to_owned(),
        }
    }

    fn definition(&mut self, reference: &str) -> String {
        let Some(definition) = reference.strip_prefix('#').and_then(|path| self.root.pointer(path)).cloned()
        else {
            return "value".to_owned();
        };
        let letters = reference.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        let name = format!("ref{}{}", self.scope, letters.collect::<String>());
        if !self.rules.contains_key(&name) {
            // The name is there before the body, so that a definition may hold itself.
            self.rules.insert(name.clone(), "value".to_owned());
            let body = self.expression(&definition);
            self.rules.insert(name.clone(), body);
        }
        name
    }

    /// Members in the schema's order; those not required may be left out.
    fn object(&mut self, schema: &Value, properties: &Map<String, Value>) -> String {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let object = format!("obj{}-{}", self.scope, self.rules.len());
        self.rules.insert(object.clone(), String::new());
        let member = |at: usize, first: bool| format!("{object}-{at}{}", if first { "f" } else { "" });
        for (at, (name, property)) in properties.iter().enumerate() {
            let value = self.expression(property);
            let name_and_value = format!("{} ws {value}", literal(&format!("{}:", json!(name))));
            for first in [true, false] {
                let comma = if first { "" } else { "\",\" ws " };
                let with = format!("{comma}{name_and_value} {}", member(at + 1, false));
                let is_required = required.contains(&name.as_str());
                let body = if is_required { with } else { format!("{with} | {}", member(at + 1, first)) };
                self.rules.insert(member(at, first), body);
            }
        }
        for first in [true, false] {
            self.rules.insert(member(properties.len(), first), "\"\"".to_owned());
        }
        self.rules.insert(object.clone(), format!("\"{{\" {} \"}}\"", member(0, true)));
        object
    }
}

fn string(schema: &Value) -> String {
    if let Some(format @ ("date" | "time" | "date-time")) = schema.get("format").and_then(Value::as_str) {
        return format.to_owned();
    }
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64).filter(|bound| *bound <= 64);
    match (bound("minLength").filter(|least| *least > 0), bound("maxLength")) {
        (None, None) => "string".to_owned(),
        (least, None) => format!("(\"\\\"\" char{{{},}} \"\\\"\")", least.unwrap_or(0)),
        (least, Some(most)) => format!("(\"\\\"\" char{{{},{most}}} \"\\\"\")", least.unwrap_or(0).min(most)),
    }
}

fn alternatives(expressions: Vec<String>) -> String {
    if expressions.is_empty() { "value".to_owned() } else { format!("({})", expressions.join(" | ")) }
}

/// A text as GBNF writes it.
fn literal(text: &str) -> String {
    let mut written = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => written.push_str("\\\""),
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            // The library reads texts as C does.
            '\0' => {}
            c => written.push(c),
        }
    }
    written.push('"');
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules_of(parameters: &Value) -> String {
        let tool = json!({"function": {"name": "f", "parameters": parameters}});
        speech_or_call(&[serde_json::from_value(tool).unwrap()])
    }

    #[test]
    fn words_are_literals() {
        let words = ["yes".to_owned(), "say \"no\"".to_owned()];
        assert_eq!(one_of(&words), "root ::= \"yes\" | \"say \\\"no\\\"\"\n");
    }

    #[test]
    fn required_members_stay_and_optional_ones_may_go() {
        let schema = json!({"type": "object", "required": ["b"],
            "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", 1]}}});
        let rules = rules_of(&schema);
        for rule in [
            "call ::= \"{\" \"\\\"name\\\": \\\"f\\\", \\\"arguments\\\": \" obj0-0 \"}\"\n",
            "obj0-0 ::= \"{\" obj0-0-0f \"}\"\n",
            "obj0-0-0f ::= \"\\\"a\\\":\" ws integer obj0-0-1 | obj0-0-1f\n",
            "obj0-0-1f ::= \"\\\"b\\\":\" ws (\"\\\"x\\\"\" | \"1\") obj0-0-2\n",
            "obj0-0-1 ::= \",\" ws \"\\\"b\\\":\" ws (\"\\\"x\\\"\" | \"1\") obj0-0-2\n",
            "obj0-0-2 ::= \"\"\n",
        ] {
            assert!(rules.contains(rule), "{rule} is not in\n{rules}");
        }
    }

    #[test]
    fn a_definition_may_hold_itself() {
        let schema = json!({"properties": {"tree": {"$ref": "#/$defs/tree"}}, "$defs": {"tree":
            {"type": "object", "properties": {"more": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}}});
        let rules = rules_of(&schema);
        assert!(rules.contains("ref0---defs-tree ::= obj0-"), "{rules}");
        assert!(rules.contains("(\"[\" (ref0---defs-tree (\",\" ws ref0---defs-tree)*)? \"]\")"), "{rules}");
    }

    #[test]
    fn strange_schemas_become_any_value() {
        for schema in
            [json!(true), json!({"$ref": "http://elsewhere"}), json!({"type": 7}), json!({"anyOf": []})]
        {
            let rules = rules_of(&json!({"properties": {"a": schema}, "required": ["a"]}));
            assert!(rules.contains("obj0-0-0f ::= \"\\\"a\\\":\" ws value obj0-0-1\n"), "{schema}: {rules}");
        }
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"type": "array", "items": deep});
        }
        assert!(rules_of(&json!({"properties": {"a": deep}})).contains("value"));
    }

    #[test]
    fn dates_and_lengths_are_kept() {
        let schema = json!({"properties": {"d": {"type": "string", "format": "date"},
            "s": {"type": "string", "minLength": 2, "maxLength": 4}, "n": {"type": ["number", "null"]}}});
        let rules = rules_of(&schema);
        assert!(rules.contains("ws date obj0-0-1 "), "{rules}");
        assert!(rules.contains("ws (\"\\\"\" char{2,4} \"\\\"\") obj0-0-2 "), "{rules}");
        assert!(rules.contains("ws (number | null) obj0-0-3 "), "{rules}");
    }
}
