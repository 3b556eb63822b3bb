//! A tool's input schema: compiled once, and then coerces, fills in defaults and validates (VC-03, VC-04).
//!
//! A small model writes `"5"` where `5` is wanted and `null` where nothing is. Where only one reading is possible it is
//! taken; all else is an error that names the field and the rule, for the model to mend.

use std::fmt;

use jsonschema::{ValidationError, Validator};
use sayback_runtime::agent::Validate;
use sayback_runtime::fault::nearest;
use serde_json::{Map, Number, Value};

use crate::frozen::canonical;

/// Deepest schema that coercion follows; references may loop.
const MAX_DEPTH: usize = 32;
/// How many faults the model is told at once.
const MAX_ERRORS: usize = 5;
/// What schemas derived from Rust types say of numbers. They bind no text; the type itself refuses what does not fit.
const NUMBER_FORMATS: [&str; 14] = [
    "int", "int8", "int16", "int32", "int64", "int128", "uint", "uint8", "uint16", "uint32", "uint64",
    "uint128", "float", "double",
];

/// A compiled input schema.
pub struct Schema {
    source: Value,
    validator: Validator,
}

/// The formats that texts are checked against.
const FORMATS: [&str; 20] = [
    "date",
    "date-time",
    "time",
    "duration",
    "local-date-time",
    "local-time",
    "phone",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "uri-template",
    "iri",
    "iri-reference",
    "json-pointer",
    "relative-json-pointer",
    "regex",
    "uuid",
];
const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "object", "array", "null"];
/// What stands below these keys is data, and no schema.
const DATA: [&str; 4] = ["default", "enum", "const", "examples"];
/// What stands below these keys is schemas by name.
const BY_NAME: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// Names that are most often misspelt, said better than a validator says it.
fn written_well(schema: &Value, at: &mut String, depth: usize) -> Result<(), String> {
    let below = |name: &str, inner: &Value, at: &mut String| {
        let length = at.len();
        at.push_str(&format!("/{name}"));
        let result = written_well(inner, at, depth + 1);
        at.truncate(length);
        result
    };
    match schema {
        _ if depth >= MAX_DEPTH => Ok(()),
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(index, item)| below(&index.to_string(), item, at))
        }
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| match (key.as_str(), value) {
            ("format", Value::String(name)) => {
                known("format", name, &[FORMATS.as_slice(), NUMBER_FORMATS.as_slice()], at)
            }
            ("type", Value::String(name)) => known("type", name, &[TYPES.as_slice()], at),
            (key, Value::Object(named)) if BY_NAME.contains(&key) => {
                let length = at.len();
                at.push_str(&format!("/{key}"));
                let result = named.iter().try_for_each(|(name, inner)| below(name, inner, at));
                at.truncate(length);
                result
            }
            (key, _) if DATA.contains(&key) => Ok(()),
            (key, value) => below(key, value, at),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn known(what: &str, name: &str, lists: &[&[&str]], at: &str) -> Result<(), String> {
    if lists.iter().any(|list| list.contains(&name)) {
        return Ok(());
    }
    // What schemas derived from Rust types use is no advice to an author.
    let list = lists.first().copied().unwrap_or_default();
    let meant = match nearest(name, list.iter().copied()) {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("there are: {}", list.join(", ")),
    };
    Err(format!("there is no {what} `{}` (at {at}/{what}); {meant}", crate::reader::shown(name)))
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Schema {
    /// Compiles it. Objects are closed unless the schema says otherwise: what the question does not know of cannot ride
    /// along with a yes. References to other documents are never fetched.
    pub fn compile(mut source: Value) -> Result<Self, String> {
        if source.get("type").and_then(Value::as_str) != Some("object") {
            return Err("a tool's input must be an object: `type = \"object\"`".to_owned());
        }
        written_well(&source, &mut String::new(), 0)?;
        close(&mut source, 0);
        let mut options = jsonschema::options()
            .offline()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(false)
            .with_format("local-date-time", |text: &str| crate::spoken::is_local_date_time(text))
            .with_format("local-time", |text: &str| crate::spoken::is_local_time(text))
            .with_format("phone", |text: &str| crate::spoken::is_phone(text));
        for name in NUMBER_FORMATS {
            options = options.with_format(name, |_: &str| true);
        }
        let validator = options
            .build(&source)
            .map_err(|error| format!("{error}{}", at(error.instance_path().as_str())))?;
        let schema = Self { source, validator };
        schema.check_defaults()?;
        Ok(schema)
    }

    /// The schema as the model sees it.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// The names of the input's fields, in the schema's order.
    pub fn fields(&self) -> Vec<&str> {
        let properties = self.source.get("properties").and_then(Value::as_object);
        properties.map(|p| p.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    /// Whether inputs may carry fields that the schema does not name.
    pub(crate) fn is_open(&self) -> bool {
        let closed = |key: &str| self.source.get(key) == Some(&Value::Bool(false));
        !closed("additionalProperties") && !closed("unevaluatedProperties")
    }

    /// Where an input is refused, as JSON pointers.
    pub(crate) fn refusals(&self, input: &Value) -> Vec<String> {
        let errors = self.validator.iter_errors(input).take(MAX_ERRORS);
        errors.map(|error| error.instance_path().as_str().to_owned()).collect()
    }

    /// A field's own schema, references followed.
    pub(crate) fn field(&self, name: &str) -> Option<&Value> {
        self.source.get("properties")?.get(name).map(|field| self.follow(field))
    }

    fn follow<'s>(&'s self, mut schema: &'s Value) -> &'s Value {
        for _ in 0..MAX_DEPTH {
            let target = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix('#'));
            match target.and_then(|pointer| self.source.pointer(pointer)) {
                Some(next) => schema = next,
                None => break,
            }
        }
        schema
    }

    fn check_defaults(&self) -> Result<(), String> {
        for name in self.fields() {
            let Some(default) = self.field(name).and_then(|field| field.get("default")) else { continue };
            let mut probe = Map::new();
            probe.insert(name.to_owned(), default.clone());
            let probe = Value::Object(probe);
            let broken = self.validator.iter_errors(&probe).find(|e| !e.instance_path().as_str().is_empty());
            if let Some(error) = broken {
                return Err(format!("the default of `{name}` does not fit its own schema: {error}"));
            }
        }
        Ok(())
    }

    fn mend(&self, schema: &Value, value: &mut Value, depth: usize) {
        if depth >= MAX_DEPTH {
            return;
        }
        let schema = self.follow(schema);
        coerce(schema, value);
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.mend(part, value, depth + 1);
        }
        match value {
            Value::Object(fields) => self.mend_fields(schema, fields, depth),
            Value::Array(items) => {
                if let Some(inner) = schema.get("items").filter(|inner| inner.is_object()) {
                    items.iter_mut().for_each(|item| self.mend(inner, item, depth + 1));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn mend_fields(&self, schema: &Value, fields: &mut Map<String, Value>, depth: usize) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        for (name, inner) in properties {
            let target = self.follow(inner);
            if fields.get(name) == Some(&Value::Null) && !allows(target, "null") {
                fields.remove(name);
            }
            if !fields.contains_key(name)
                && let Some(default) = inner.get("default").or_else(|| target.get("default"))
            {
                fields.insert(name.clone(), default.clone());
            }
            if let Some(value) = fields.get_mut(name) {
                self.mend(inner, value, depth + 1);
            }
        }
    }
}

impl Validate for Schema {
    fn validate(&self, mut input: Value) -> Result<Value, String> {
        canonical(&input).map_err(|error| error.to_string())?;
        self.mend(&self.source, &mut input, 0);
        let faults: Vec<String> =
            self.validator.iter_errors(&input).take(MAX_ERRORS).map(|e| told(&e)).collect();
        if !faults.is_empty() {
            return Err(format!("The input is not valid. {}", faults.join(" ")));
        }
        let frozen = canonical(&input).map_err(|error| error.to_string())?;
        serde_json::from_str(&frozen.json).map_err(|error| error.to_string())
    }
}

fn told(error: &ValidationError<'_>) -> String {
    let path = error.instance_path().as_str().trim_start_matches('/').replace('/', ".");
    let field = if path.is_empty() { "input".to_owned() } else { format!("`{path}`") };
    let value = error.instance().to_string();
    let message = if value.chars().count() > 80 {
        error.masked_with("the value").to_string()
    } else {
        error.to_string()
    };
    format!("{field}: {message} (rule: {}).", error.kind().keyword())
}

fn at(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" at {pointer}") }
}

/// Whether the schema's `type` lets a value of this type through; a schema without a type lets all through.
fn allows(schema: &Value, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == wanted,
        Some(Value::Array(names)) => names.iter().any(|name| name == wanted),
        _ => true,
    }
}

/// Text to number or boolean, where the schema has no place for text.
fn coerce(schema: &Value, value: &mut Value) {
    let Value::String(text) = value else { return };
    if allows(schema, "string") {
        return;
    }
    let (integer, number) = (allows(schema, "integer"), allows(schema, "number"));
    let text = text.trim();
    let mended = match text {
        "true" | "false" if allows(schema, "boolean") => Some(Value::Bool(text == "true")),
        _ if (integer || number) && is_plain_number(text) => plain_number(text, number),
        _ => None,
    };
    if let Some(mended) = mended {
        *value = mended;
    }
}

/// Digits as a person writes a number: no leading zeros, no exponent, no thousands.
fn is_plain_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    all_digits(whole) && all_digits(fraction) && (whole == "0" || !whole.starts_with('0'))
}

fn plain_number(text: &str, fractions: bool) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    let number = text.parse::<f64>().ok().filter(|n| fractions && n.is_finite())?;
    Number::from_f64(number).map(Value::Number)
}

fn close(schema: &mut Value, depth: usize) {
    const OPENERS: [&str; 7] = [
        "additionalProperties",
        "unevaluatedProperties",
        "patternProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "$ref",
    ];
    let Value::Object(fields) = schema else { return };
    if depth >= MAX_DEPTH {
        return;
    }
    let is_object = fields.get("type").is_some_and(|t| {
        t == "object" || t.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
    });
    if is_object && !OPENERS.iter().any(|key| fields.contains_key(*key)) {
        let named = fields.contains_key("properties") || depth == 0;
        if named {
            fields.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
    }
    for key in ["properties", "$defs", "definitions"] {
        if let Some(Value::Object(inner)) = fields.get_mut(key) {
            inner.values_mut().for_each(|schema| close(schema, depth + 1));
        }
    }
    if let Some(items) = fields.get_mut("items") {
        close(items, depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::compile(json!({
            "type": "object", "required": ["n"],
            "properties": {
                "n": {"type": "integer"}, "x": {"type": "number"}, "on": {"type": "boolean"},
                "s": {"type": "string"}, "either": {"type": ["string", "integer"]},
                "day": {"type": "string", "format": "date"},
                "o": {"type": "object", "default": {}, "properties": {"m": {"type": "integer", "default": 2}}},
                "l": {"type": "array", "items": {"$ref": "#/$defs/i"}},
            },
            "$defs": {"i": {"type": "integer"}},
        }))
        .unwrap()
    }

    #[test]
    fn only_unambiguous_text_is_coerced() {
        let checked =
            schema().validate(json!({"n": "5", "x": "2.50", "on": "true", "either": "7", "l": ["1"]}));
        assert_eq!(
            checked,
            Ok(json!({"n": 5, "x": 2.5, "on": true, "either": "7", "l": [1], "o": {"m": 2}}))
        );
        for n in ["05", "5 apples", "1e3", "", "0x5", "1,000", "5.5"] {
            assert!(schema().validate(json!({"n": n})).is_err(), "{n}");
        }
        assert!(schema().validate(json!({"n": 1, "on": "yes"})).is_err());
        assert!(schema().validate(json!({"n": 1, "s": 5})).is_err());
    }

    #[test]
    fn defaults_are_filled_in_at_every_depth_and_null_means_absent() {
        assert_eq!(schema().validate(json!({"n": 1.0, "s": null})), Ok(json!({"n": 1, "o": {"m": 2}})));
        assert_eq!(schema().validate(json!({"n": 1, "o": {}})), Ok(json!({"n": 1, "o": {"m": 2}})));
    }

    // VC-04
    #[test]
    fn a_validated_value_stays_the_same_when_validated_again() {
        let once = schema().validate(json!({"n": "5", "x": "1"})).unwrap();
        assert_eq!(schema().validate(once.clone()), Ok(once));
    }

    // VC-03
    #[test]
    fn errors_name_the_field_and_the_rule() {
        for (input, says) in [
            (json!({}), "\"n\" is a required property (rule: required)"),
            (json!({"n": "many"}), "`n`: \"many\" is not of type \"integer\" (rule: type)"),
            (json!({"n": 1, "day": "2026-02-30"}), "`day`: \"2026-02-30\" is not a \"date\" (rule: format)"),
            (json!({"n": 1, "confirmed": true}), "'confirmed' was unexpected"),
            (json!({"n": 1, "o": {"m": []}}), "`o.m`: [] is not of type"),
            (json!({"n": 9_007_199_254_740_993_u64}), "too large"),
            (json!([]), "input: [] is not of type \"object\""),
        ] {
            let error = schema().validate(input.clone()).unwrap_err();
            assert!(error.contains(says), "{input}: {error}");
        }
    }

    #[test]
    fn fields_and_data_may_have_the_names_of_keywords() {
        let source = json!({"type": "object", "properties": {
            "format": {"type": "string", "default": "pdf", "enum": ["pdf", "text"]},
            "type": {"const": {"format": "none", "type": "none"}},
            "on": {"type": ["string", "null"], "format": "local-date-time"},
        }});
        Schema::compile(source).unwrap();
        for name in FORMATS.iter().chain(&NUMBER_FORMATS) {
            Schema::compile(json!({"type": "object", "properties": {"a": {"format": name}}})).unwrap();
        }
    }

    #[test]
    fn broken_schemas_do_not_compile() {
        for (source, says) in [
            (json!({"type": "string"}), "must be an object"),
            (json!({"type": "object", "properties": {"a": {"type": "strin"}}}), "/properties/a/type"),
            (json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/x"}}}), "127.0.0.1"),
            (
                json!({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}),
                "default of `a`",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "string", "format": "dat"}}}),
                "no format `dat` (at /properties/a/format); did you mean `date`?",
            ),
            (
                json!({"type": "object", "properties": {"a": {"items": [{"format": "colour"}]}}}),
                "no format `colour` (at /properties/a/items/0/format); there are: date, date-time,",
            ),
            (
                json!({"type": "object", "$defs": {"type": {"type": "strin"}}}),
                "no type `strin` (at /$defs/type/type); did you mean `string`?",
            ),
        ] {
            let error = Schema::compile(source).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
