//! The linter: each kind of finding is found, is gone once it is mended, and has a page.

use std::collections::BTreeSet;
use std::path::Path;

use sayback_agentfile::{AgentFile, CODES, Finding, Severity, lint, parse};

const HEAD: &str = "[agent]\nname = \"Desk\"\n[[skill]]\nname = \"s\"\n[[skill.tool]]\nname = \"t\"\n\
                    description = \"Does it\"\nrun = { command = [\"x\"] }\n";
/// The line of what a case adds.
const LINE: usize = 9;

const DAY: &str = "input = { type = \"object\", required = [\"day\"], properties = { day = { type = \"string\", \
                   format = \"date\" } } }\n";

fn with_field(field: &str) -> String {
    DAY.replace("[\"day\"]", "[\"day\", \"x\"]")
        .replace("\"date\" } }", &format!("\"date\" }}, x = {{ {field} }} }}"))
}

fn agent(tool: &str) -> AgentFile {
    let text = format!("{HEAD}{tool}");
    parse(&text, "desk.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn codes(tool: &str) -> Vec<&'static str> {
    lint(&agent(tool)).iter().map(|finding| finding.code).collect()
}

/// A tool with a day, and this line.
fn day(confirm: &str) -> String {
    format!("{DAY}{confirm}\n")
}

/// A tool that says this before its day.
fn asks(text: &str) -> String {
    day(&format!("confirm = \"{text} {{{{ day | spoken_date }}}}?\""))
}

/// The same in another language too.
fn asks_in(tag: &str, text: &str) -> String {
    let day_in = |tag: &str, text: &str| format!("confirm.{tag} = \"{text} {{{{ day | spoken_date }}}}?\"\n");
    format!("{DAY}{}{}", day_in("en", "On"), day_in(tag, text))
}

/// A tool with a day and a field `x`, and the end of its question.
fn x(field: &str, end: &str) -> String {
    format!("{}confirm = \"On {{{{ day | spoken_date }}}}, {end}?\"\n", with_field(field))
}

type Case = (&'static str, Vec<String>, Vec<String>);

/// A kind of finding, tools that have it, and the same mended, which have nothing: about what is said.
fn wording() -> Vec<Case> {
    let good = || vec![asks("Shall I book")];
    let long = "very ".repeat(26);
    vec![
        (
            "either-or",
            vec![asks("Shall I book Friday or"), asks_in("de", "Soll ich Freitag buchen oder")],
            good(),
        ),
        ("long-question", vec![asks(&format!("A {long} day,"))], good()),
        ("long-tail", vec![day("confirm = \"{{ day | spoken_date }}, is that right?\"")], good()),
        (
            "markup",
            vec![
                day("confirm = \"Shall I book <b>{{ day | spoken_date }}</b>?\""),
                asks("Shall I **book**"),
                asks("See https://example.com,"),
            ],
            good(),
        ),
        (
            "negation",
            vec![
                asks("You do not want to keep"),
                asks_in("fr", "Vous ne voulez pas garder le"),
                asks_in("es", "No quiere el"),
            ],
            good(),
        ),
        (
            "no-question-mark",
            vec![
                day("confirm = \"I book {{ day | spoken_date }}.\""),
                day("confirm = \"Shall I book? On {{ day | spoken_date }}\""),
            ],
            vec![day(
                "confirm.en = \"On {{ day | spoken_date }}?\"\nconfirm.ja = \"{{ day | spoken_date }}に予約しますか。\"",
            )],
        ),
        (
            "two-actions",
            vec![
                asks("Shall I cancel your visit and book"),
                asks_in("de", "Soll ich den Termin absagen und buchen für"),
                asks_in("pt", "Cancelo a consulta e marco para"),
            ],
            vec![asks("Shall I book it for you and your wife on"), asks("Shall I move your visit to")],
        ),
        ("unknown-language", vec![asks_in("nl", "Op")], good()),
    ]
}

/// The same about what the input holds.
fn covering() -> Vec<Case> {
    let good = || vec![asks("Shall I book")];
    let second = format!(
        "{}[[skill.tool]]\nname = \"u\"\ndescription = \"d\"\nrun = {{ command = [\"x\"] }}\n{}",
        asks_in("de", "Am"),
        asks("Shall I book"),
    );
    let time = "type = \"string\", format = \"local-date-time\"";
    let list = "type = \"array\", items = { enum = [\"ham\", \"egg\"] }";
    let number = "type = \"integer\"";
    let account = "type = \"string\", pattern = \"^[0-9]{8}$\"";
    let bounded = "type = \"string\", maxLength = 20";
    vec![
        ("free-text", vec![x("type = \"string\"", "{{ x }}")], vec![x(bounded, "{{ x }}")]),
        (
            "missing-language",
            vec![day("confirm.de = \"Soll ich buchen, {{ day | spoken_date }}?\""), second],
            vec![asks_in("de", "Am")],
        ),
        (
            "open-input",
            vec![asks("On").replace("properties", "additionalProperties = true, properties")],
            good(),
        ),
        (
            "partly-spoken",
            vec![
                x(time, "{{ x[:10] | spoken_date }}"),
                x(number, "{% if x > 1 %}for many{% else %}for one{% endif %}"),
                x(bounded, "{{ x[:3] }}"),
                x(list, "{{ x[0] }}"),
            ],
            vec![
                x(time, "{{ x | spoken_datetime }}"),
                x(number, "{{ x }}"),
                x(bounded, "{{ x }}"),
                x(list, "{{ x | spoken_list }}"),
                x("type = \"boolean\"", "{{ 'paid' if x else 'free' }}"),
            ],
        ),
        ("sample-failed", vec![day("confirm = \"On {{ day | spoken_email }}?\"")], good()),
        ("ungrouped-digits", vec![x(account, "{{ x }}")], vec![x(account, "{{ x | spoken_digits }}")]),
        (
            "unspoken-field",
            vec![with_field(number) + "confirm = \"On {{ day | spoken_date }}?\"\n"],
            vec![x(number, "{{ x }}")],
        ),
    ]
}

/// VC-16, and each other kind.
#[test]
fn vc_16_each_kind_is_found_and_gone_once_it_is_mended() {
    let mut tried = BTreeSet::new();
    for (code, faulty, mended) in wording().into_iter().chain(covering()) {
        tried.insert(code);
        for tool in faulty {
            assert!(codes(&tool).contains(&code), "{code} is not found in\n{tool}{:?}", codes(&tool));
        }
        for tool in mended {
            assert_eq!(codes(&tool), [""; 0], "{code}, mended\n{tool}{:#?}", lint(&agent(&tool)));
        }
    }
    // Those of MCP servers are found by asking one: tests/mcp.rs.
    tried.extend(CODES.iter().filter(|code| code.starts_with("mcp-")));
    assert_eq!(tried, BTreeSet::from(CODES), "each code has a case here");
}

#[test]
fn each_code_has_a_page_and_a_row_in_the_index() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lints");
    let index = std::fs::read_to_string(folder.join("README.md")).unwrap();
    for code in CODES {
        let page = std::fs::read_to_string(folder.join(format!("{code}.md"))).unwrap();
        assert!(page.starts_with(&format!("# `{code}`\n")), "{code}");
        assert!(page.contains("## Why") && page.contains("## Mended"), "{code}");
        assert!(index.contains(&format!("[`{code}`]({code}.md)")), "{code} is not in the index");
    }
    let pages = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(pages, CODES.len() + 1, "a page of no code");
}

#[test]
fn a_finding_names_its_line_and_how_bad_it_is() {
    let confirm = "confirm = \"A yes to Friday or {{ day | spoken_date }}, is that so?\"\n";
    let findings: Vec<Finding> = lint(&agent(&format!("{DAY}{confirm}")));
    let found: Vec<(&str, usize, Severity)> = findings.iter().map(|f| (f.code, f.line, f.severity)).collect();
    assert_eq!(
        found,
        [("either-or", LINE + 1, Severity::Error), ("long-tail", LINE + 1, Severity::Warning)],
        "{findings:#?}"
    );
    assert!(findings.iter().all(|f| !f.fix.is_empty()));
    let json = serde_json::to_value(&findings[0]).unwrap();
    assert_eq!((&json["severity"], &json["code"]), (&"error".into(), &"either-or".into()));
}

#[test]
fn the_changed_value_is_named() {
    let tool = x("type = \"string\", format = \"local-date-time\"", "{{ x[:10] | spoken_date }}");
    let messages: Vec<String> = lint(&agent(&tool)).into_iter().map(|finding| finding.message).collect();
    let named = |to: &str| {
        messages.iter().any(|message| message.contains(&format!("\"2026-12-03T15:30\" and \"{to}\"")))
    };
    assert!(named("2026-12-03T14:30") && named("2026-12-03T15:29"), "{messages:#?}");
}
