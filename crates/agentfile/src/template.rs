//! Templates over a tool's input, with the spoken-form filters.
//!
//! What comes out is plain text on one line. A value that cannot be said, is absent or is null is an error: half a
//! question must not be asked.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior, Value};
use sayback_runtime::fault::nearest;
use sayback_runtime::unheard::without_unheard;

use crate::spoken::{self, Language};

/// Names that a template can use besides the input's fields.
pub(crate) const RESERVED: [&str; 3] = ["input", "vars", "language"];
/// The filters that speak values, for hints and documentation.
const FILTERS: [&str; 9] = [
    "spoken_date",
    "spoken_time",
    "spoken_datetime",
    "spoken_money",
    "spoken_email",
    "spoken_digits",
    "spoken_phone",
    "spoken_list",
    "spoken_number",
];
const BUILTINS: [&str; 7] = ["range", "dict", "debug", "namespace", "joiner", "cycler", "lipsum"];
const MAIN: &str = "template";

/// One compiled template.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    environment: Environment<'static>,
    source: String,
}

/// What a template sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) input: &'a serde_json::Value,
    pub(crate) vars: &'a BTreeMap<String, String>,
    pub(crate) language: &'a str,
}

/// Longest template or expression in bytes. The engine's parser goes as deep as the text is long.
const LONGEST_SOURCE: usize = 2_000;

/// Why a template or an expression is not compiled, if it is too long for that.
pub(crate) fn too_long(source: &str) -> Option<String> {
    (source.len() > LONGEST_SOURCE)
        .then(|| format!("it has {} bytes; at most {LONGEST_SOURCE} are taken", source.len()))
}

impl Template {
    /// Compiles it and checks that it reads only fields that exist. The error is a message and a hint.
    pub(crate) fn compile(source: &str, fields: &[&str], open: bool) -> Result<Self, (String, String)> {
        if let Some(fault) = too_long(source) {
            return Err((fault, String::from("split it, or build it in the tool")));
        }
        let mut environment = environment();
        environment
            .add_template_owned(MAIN, source.to_owned())
            .map_err(|error| unreadable(source, &error))?;
        let template = Self { environment, source: source.to_owned() };
        template.check_filters()?;
        let known: Vec<&str> = fields.iter().copied().chain(RESERVED).collect();
        for name in template.names() {
            if open || known.contains(&name.as_str()) || BUILTINS.contains(&name.as_str()) {
                continue;
            }
            let hint = match nearest(&name, known.iter().copied()) {
                Some(field) => format!("did you mean `{field}`?"),
                None => format!("the input has: {}", fields.join(", ")),
            };
            return Err((format!("the template reads `{name}`, which the input does not have"), hint));
        }
        Ok(template)
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// The names that it reads from outside.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let template = self.environment.get_template(MAIN);
        template.map(|t| t.undeclared_variables(false).into_iter().collect()).unwrap_or_default()
    }

    /// The input's fields that it reads: by name or as `input.name`.
    pub(crate) fn fields(&self) -> BTreeSet<String> {
        let Ok(template) = self.environment.get_template(MAIN) else { return BTreeSet::new() };
        let nested = template.undeclared_variables(true);
        let first =
            |path: &str| path.strip_prefix("input.").unwrap_or(path).split('.').next().map(str::to_owned);
        nested.iter().filter_map(|path| first(path)).collect()
    }

    /// The text, on one line, without anything that a voice could take for markup or control.
    pub(crate) fn render(&self, view: View<'_>) -> Result<String, String> {
        self.render_value(Value::from_serialize(view.input), view)
    }

    /// The same with another input in the place of the view's own.
    pub(crate) fn render_value(&self, input: Value, view: View<'_>) -> Result<String, String> {
        let mut context = BTreeMap::new();
        if let Some(fields) = view.input.as_object() {
            let field = |key: &String| Some((key.clone(), input.get_attr(key).ok()?));
            context.extend(fields.keys().filter_map(field));
        }
        // Last, so that no field of an open input can stand in for them.
        context.insert("vars".to_owned(), Value::from_serialize(view.vars));
        context.insert("input".to_owned(), input);
        context.insert("language".to_owned(), view.language.into());
        let template = self.environment.get_template(MAIN).map_err(|error| error.to_string())?;
        template.render(context).map(|text| plain(&text)).map_err(|error| reason(&error))
    }

    /// Unknown filters fail only when rendered, and a rendering stops at its first fault: so each is tried by itself.
    fn check_filters(&self) -> Result<(), (String, String)> {
        for filter in filters_in(&self.source) {
            let probe = format!("0 | {filter}");
            let outcome = self.environment.compile_expression(&probe).and_then(|e| e.eval(()));
            if outcome.is_err_and(|error| error.kind() == ErrorKind::UnknownFilter) {
                let hint = match nearest(&filter, FILTERS) {
                    Some(known) => format!("did you mean `{known}`?"),
                    None => format!("filters that speak values: {}", FILTERS.join(", ")),
                };
                return Err((format!("there is no filter `{filter}`"), hint));
            }
        }
        Ok(())
    }
}

/// Why a template or an expression cannot be read, in an author's words, and how it is mended.
fn unreadable(source: &str, error: &Error) -> (String, String) {
    for (opens, closes) in [("{{", "}}"), ("{%", "%}"), ("{#", "#}")] {
        if let Some(at) = unclosed(source, opens, closes) {
            let near = near(source, at);
            return (format!("`{opens}` is not closed at {near}"), format!("close it with `{closes}`"));
        }
    }
    let hint = "write `{{ field }}`, or `{{ field | spoken_date }}`".to_owned();
    (format!("it cannot be read at {}", near(source, place_of(source, error))), hint)
}

/// Where the engine stopped reading, in bytes.
pub(crate) fn place_of(source: &str, error: &Error) -> usize {
    let line = || -> usize {
        let lines = source.split_inclusive('\n').take(error.line().unwrap_or(1).saturating_sub(1));
        lines.map(str::len).sum()
    };
    error.range().map_or_else(line, |range| range.start)
}

/// A place for people: `character 12, "{{ start"`.
pub(crate) fn near(source: &str, mut at: usize) -> String {
    at = at.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    let (before, rest) = source.split_at(at);
    let shown: String = rest.chars().take(20).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let number = before.chars().count() + 1;
    if shown.trim().is_empty() { "its end".to_owned() } else { format!("character {number}, \"{shown}\"") }
}

/// Where the first tag begins that has no end, in bytes.
fn unclosed(source: &str, opens: &str, closes: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = source[from..].find(opens).map(|at| from + at) {
        let inside = at + opens.len();
        let end = source[inside..].find(closes).map(|end| inside + end);
        let next = source[inside..].find(opens).map(|next| inside + next);
        match (end, next) {
            (Some(end), None) => from = end + closes.len(),
            (Some(end), Some(next)) if end < next => from = end + closes.len(),
            (Some(_) | None, _) => return Some(at),
        }
    }
    None
}

/// The words behind a bar within `{{ }}` and `{% %}`, texts in quotes left out.
fn filters_in(source: &str) -> BTreeSet<String> {
    let mut filters = BTreeSet::new();
    for tag in source.split(['{', '}']).filter(|tag| tag.contains('|')) {
        for (at, outside) in tag.split(['"', '\'']).enumerate() {
            if at % 2 == 1 {
                continue;
            }
            for behind in outside.split('|').skip(1) {
                let is_name = |c: char| c.is_alphanumeric() || c == '_';
                let name: String = behind.trim_start().chars().take_while(|c| is_name(*c)).collect();
                if !name.is_empty() {
                    filters.insert(name);
                }
            }
        }
    }
    filters
}

/// Plain text on one line: control and invisible characters become spaces, and `[[`, which a phoneme-reading
/// voice takes for phonemes, is pulled apart.
pub(crate) fn plain(text: &str) -> String {
    let mut line = without_unheard(text).split_whitespace().collect::<Vec<_>>().join(" ");
    while line.contains("[[") {
        line = line.replace("[[", "[ [");
    }
    line
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_fuel(Some(100_000));
    environment.set_formatter(|out, state, value| match unsayable(value.kind()) {
        Some(why) => Err(cannot(why)),
        None => minijinja::escape_formatter(out, state, value),
    });
    environment.add_filter("spoken_date", |state: &State<'_, '_>, value: Value, options: Kwargs| {
        let year = year(&options)?;
        said(state, &value, |text, language| spoken::date(text, language, year))
    });
    environment.add_filter("spoken_datetime", |state: &State<'_, '_>, value: Value, options: Kwargs| {
        let year = year(&options)?;
        said(state, &value, |text, language| spoken::date_time(text, language, year))
    });
    environment.add_filter("spoken_time", |s: &State<'_, '_>, v: Value| said(s, &v, spoken::time));
    environment.add_filter("spoken_email", |s: &State<'_, '_>, v: Value| said(s, &v, spoken::email));
    environment.add_filter("spoken_digits", |s: &State<'_, '_>, v: Value| said(s, &v, spoken::digits));
    environment.add_filter("spoken_phone", |s: &State<'_, '_>, v: Value| said(s, &v, spoken::phone));
    environment.add_filter("spoken_number", |s: &State<'_, '_>, v: Value| said(s, &v, spoken::number));
    environment.add_filter("spoken_money", |state: &State<'_, '_>, value: Value, currency: Value| {
        let currency = scalar(&currency)?;
        said(state, &value, |text, language| spoken::money(text, &currency, language))
    });
    environment.add_filter("spoken_list", spoken_list);
    environment
}

/// Why a value of this kind cannot stand in a text as it is.
fn unsayable(kind: ValueKind) -> Option<&'static str> {
    if kind == ValueKind::None {
        Some("a value that is null cannot be said")
    } else if matches!(kind, ValueKind::Seq | ValueKind::Iterable) {
        Some("a list cannot be said as it is; use spoken_list")
    } else if kind == ValueKind::Map {
        Some("an object cannot be said as it is; name one of its fields")
    } else {
        None
    }
}

fn spoken_list(state: &State<'_, '_>, value: Value) -> Result<String, Error> {
    if value.kind() == ValueKind::String {
        return Err(cannot("spoken_list wants a list"));
    }
    let items: Vec<String> = value.try_iter()?.map(|item| scalar(&item)).collect::<Result<_, _>>()?;
    spoken::list(&items, language(state)).map_err(cannot)
}

fn said(
    state: &State<'_, '_>,
    value: &Value,
    say: impl Fn(&str, Language) -> Result<String, String>,
) -> Result<String, Error> {
    say(&scalar(value)?, language(state)).map_err(cannot)
}

fn language(state: &State<'_, '_>) -> Language {
    let tag = state.lookup("language");
    Language::of(tag.as_ref().and_then(Value::as_str).unwrap_or_default())
}

fn year(options: &Kwargs) -> Result<bool, Error> {
    let year: Option<bool> = options.get("year")?;
    options.assert_all_used()?;
    Ok(year.unwrap_or(false))
}

fn scalar(value: &Value) -> Result<String, Error> {
    if let Some(text) = value.as_str() {
        Ok(text.to_owned())
    } else if value.is_undefined() {
        Err(Error::from(ErrorKind::UndefinedError))
    } else if value.is_integer() {
        Ok(value.to_string())
    } else if value.is_number() {
        f64::try_from(value.clone()).map(|number| number.to_string())
    } else {
        Err(cannot(format!("{value} cannot be said")))
    }
}

fn cannot(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason.into())
}

fn reason(error: &Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), str::to_owned)
}
