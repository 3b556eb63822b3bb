use std::path::{Path, PathBuf};

use proptest::prelude::*;
use sayback_core::{EvidenceClass, QuestionBargeIn};
use sayback_runtime::agent::{AskContext, RunContext, Tool};
use serde_json::json;

use super::*;

const HEAD: &str = "[agent]\nname = \"Desk\"\n";
/// Line 3 on: one skill; tools follow from line 5.
const SKILL: &str = "[agent]\nname = \"Desk\"\n[[skill]]\nname = \"s\"\n";
const REPLY: &str = "run = { reply = { message = \"Done.\" } }\n";
const INPUT: &str = "input = { type = \"object\", required = [\"day\"], properties = { day = { type = \"string\", format = \
\"date\" }, amount = { type = \"number\" } } }\n";

fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs")
}

fn faults(text: &str) -> String {
    match parse(text, "desk.toml") {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

fn tool_faults(tool: &str) -> String {
    faults(&format!("{SKILL}[[skill.tool]]\nname = \"t\"\ndescription = \"d\"\n{tool}"))
}

fn tool(text: &str) -> AgentFile {
    let text = format!("{SKILL}[[skill.tool]]\nname = \"t\"\ndescription = \"Does it\"\n{text}");
    parse(&text, "desk.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn a_local_model_has_the_threads_that_the_file_gives_it() {
    let threads = |llm: &str| parse(&format!("{HEAD}[llm]\n{llm}"), "desk.toml").map(|file| file.llm.threads);
    assert_eq!(threads("threads = 6\n"), Ok(Some(6)));
    assert_eq!(threads("model = \"m\"\n"), Ok(None));
    assert!(threads("threads = 0\n").unwrap_err().to_string().contains("use 1 to 256"));
}

#[test]
fn every_shipped_agent_file_loads_and_its_questions_pass_the_linter() {
    for name in ["clinic.toml", "bank.toml", "restaurant.de.toml"] {
        let file = load(configs().join(name)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(lint(&file), [], "{name}");
        assert!(
            file.agent.skills.iter().any(|s| s.tools.iter().any(|t| matches!(t, Tool::Confirmed(_)))),
            "{name}"
        );
    }
}

#[test]
fn an_agent_that_says_nothing_has_the_defaults() {
    let file = parse(HEAD, "desk.toml").unwrap();
    assert_eq!(file.agent.policy, sayback_core::Policy::default());
    assert_eq!((file.llm.provider, file.stt.model.as_str()), (LlmProvider::Local, "tiny.en"));
    assert_eq!((file.line.far, file.privacy.record), (FarEnd::Trunk, false));
    assert!(file.hash.starts_with("sha256:") && file.hash.len() == 71);
}

#[test]
fn settings_are_read_as_written() {
    let file = parse(
        "[agent]\nname = \"D\"\nlanguage = \"de\"\n[llm]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:1/v1/\"\n\
         api_key_env = \"KEY_1\"\ntemperature = 1\n[turn]\nendpoint = \"1.5s\"\nsilence_followup = \"none\"\n\
         [confirm]\nquestion_barge_in = \"continuers\"\nttl = \"60s\"\nrounds = 2\nevidence = \"rtcp\"\n\
         silence_followup = \"Sind Sie noch da?\"\n[line]\nfar = \"endpoint\"\n[privacy]\nredact = []\nrecord = true\n",
        "desk.toml",
    )
    .unwrap();
    let (turn, confirm) = (&file.agent.policy.turn, &file.agent.policy.confirm);
    assert_eq!((turn.endpoint.as_millis(), turn.silence_followup), (1_500, None));
    assert_eq!((confirm.question_barge_in, confirm.rounds), (QuestionBargeIn::Continuers, 2));
    assert_eq!((confirm.ttl.unwrap().as_secs(), confirm.evidence), (60, EvidenceClass::Rtcp));
    assert_eq!(confirm.silence_text.as_deref(), Some("Sind Sie noch da?"));
    assert_eq!(
        (file.llm.base_url.as_deref(), file.llm.temperature),
        (Some("http://127.0.0.1:1/v1"), Some(1.0))
    );
    assert_eq!((file.stt.model.as_str(), file.privacy.redact.len()), ("base", 0));
    assert!(turn.apology.starts_with("Entschuldigung"));
}

#[test]
fn faults_of_the_head_show_their_place_and_the_mending_step() {
    for (text, says) in [
        ("", "desk.toml:1:1: the file has no [agent]; begin it with `[agent]`"),
        ("x", "desk.toml:1:2: this is not TOML"),
        ("[agent]\nname = 3", "desk.toml:2:8: `name` must be text in quotes, not integer"),
        (
            "[agent]\nname = \" \"",
            "desk.toml:2:1: `name` is empty; write for example `name = \"Clinic desk\"`",
        ),
        ("[agent]\nlanguage = \"en\"", "desk.toml:1:1: [agent] has no `name`; add `name = \"Clinic desk\"`"),
        ("[agent]\nname = \"ü\"\nlanguage = \"English\"", "desk.toml:3:1: `English` is not a language tag"),
        ("agent = 5", "desk.toml:1:9: `agent` must be a table, not integer"),
        ("[agent]\nname = \"D\"\nname = \"E\"", "desk.toml:3:1: this is not TOML: duplicate key"),
    ] {
        assert!(faults(text).contains(says), "{text}\n{}", faults(text));
    }
}

#[test]
fn faults_of_settings_show_their_place_and_the_mending_step() {
    for (text, says) in [
        (
            "confrim = 1",
            "3:1: unknown key `confrim` in [agent]; known here: `greeting`, `instructions`, `language`, `name`",
        ),
        ("[confrim]", "3:2: unknown key `confrim`; did you mean `confirm`?"),
        ("[confirm]\ngrcae = \"1s\"", "4:1: unknown key `grcae` in [confirm]; did you mean `grace`?"),
        ("[confirm]\ngrace = \"250\"", "4:9: `grace`: `250` has no unit; write it like \"350ms\" or \"8s\""),
        (
            "[confirm]\ngrace = 250",
            "4:9: `grace` must be a duration in quotes, like \"350ms\" or \"8s\", not integer",
        ),
        ("[confirm]\nrounds = 0", "4:10: `rounds` is out of range; use 1 to 10"),
        (
            "[confirm]\nadjacency = \"of\"",
            "4:13: `adjacency` does not know `of`; did you mean `off`? (`strict`, `off`)",
        ),
        ("[confirm]\nkeypad = \"yes\"", "4:10: `keypad` must be true or false, not string"),
        ("[confirm]\nevidence = \"unproven\"", "4:12: `evidence` does not know `unproven`"),
        ("[turn]\nsilence_followup = \"8 minutes\"", "4:20: `silence_followup`: `8 minutes` is no duration"),
        ("[llm]\nprovider = \"opnai\"", "4:12: `provider` does not know `opnai`; did you mean `openai`?"),
        ("[llm]\nprovider = \"openai\"", "3:1: [llm] has no `model`; add `model = \"gpt-4o-mini\"`"),
        ("[llm]\napi_key = \"sk-1\"", "4:1: unknown key `api_key` in [llm]; keys stay out of files"),
        ("[llm]\nbase_url = \"localhost\"", "4:1: `base_url` is no http or https address"),
        ("[llm]\ntemperature = 3.5", "4:15: `temperature` is out of range; use 0 to 2"),
        ("[tts]\nprovider = \"pipre\"", "4:12: `provider` does not know `pipre`; did you mean `piper`?"),
        ("[line]\nfar = \"trnuk\"", "4:7: `far` does not know `trnuk`; did you mean `trunk`?"),
        ("[privacy]\nredact = [\"phon\"]", "4:11: `redact` does not know `phon`; use `phone`"),
        ("language = \"de\"\n[stt]\nmodel = \"tiny.en\"", "5:1: the model `tiny.en` knows English only"),
        ("[skill]\nname = \"s\"", "3:1: `skill` must be a list of tables; write it as `[[skill]]`"),
    ] {
        let all = faults(&format!("{HEAD}{text}"));
        assert!(all.contains(&format!("desk.toml:{says}")), "{text}\n{all}");
    }
}

#[test]
fn a_key_in_place_of_its_variable_is_not_shown() {
    let all = faults(&format!("{HEAD}[llm]\napi_key_env = \"sk-verysecret\""));
    assert!(all.contains("desk.toml:4:1: `api_key_env` is not the name of an environment variable"), "{all}");
    assert!(!all.contains("verysecret"), "{all}");
}

#[test]
fn faults_of_tools_show_their_place_and_the_mending_step() {
    for (text, says) in [
        (String::new(), "desk.toml:5:1: the tool has no `run`; add for example"),
        (
            format!("{REPLY}confrim = \"Shall I?\""),
            "desk.toml:9:1: unknown key `confrim` in [skill.tool]; did you mean `confirm`?",
        ),
        ("run = { replay = 1 }".into(), "unknown key `replay` in [skill.tool.run]; did you mean `reply`?"),
        ("run = { mcp = {} }".into(), "desk.toml:8:15: [skill.tool.run.mcp] has no `tool`"),
        ("run = { reply = { message = \"a\" }, command = [\"b\"] }".into(), "exactly one of"),
        (
            "run = { reply = { message = \"{{ x }}\" } }".into(),
            "the message is broken: the template reads `x`",
        ),
        (
            "run = { command = \"rm -rf\" }".into(),
            "8:19: `command` must be a program and its arguments; write a list",
        ),
        ("run = { command = [] }".into(), "`command` must be a program and its arguments"),
        ("run = { http = { url = \"ftp://x\" } }".into(), "`url` is no http or https address"),
        (
            "run = { http = { url = \"http://x\", headers = { Authorization = \"Bearer k\" } } }".into(),
            "keys stay out of files",
        ),
        (format!("{REPLY}approval = \"boss\""), "desk.toml:9:"),
        (
            format!("{REPLY}approval_when = \"true\""),
            "9:1: `approval_when` has no meaning without `approval`",
        ),
        (
            format!("{REPLY}approval = \"reviewer\"\napproval_when = \"amuont > 3\""),
            "10:1: `approval_when` reads `amuont`, which the input does not have",
        ),
        (
            format!("{REPLY}keypad = true\nconfirm = \"Go?\""),
            "9:1: a tool cannot have a `keypad` setting that differs",
        ),
        (format!("{REPLY}irreversible = true"), "9:1: `irreversible` has no meaning without `confirm`"),
        (format!("{REPLY}confirm_when = \"true\""), "9:1: `confirm_when` has no meaning without `confirm`"),
    ] {
        let all = tool_faults(&text);
        assert!(all.contains(says), "{text}\n{all}");
    }
}

#[test]
fn faults_of_questions_and_inputs_show_their_place_and_the_mending_step() {
    let input = INPUT.trim_end();
    for (text, says) in [
        (format!("{REPLY}confirm = \"\""), "9:11: the question is empty"),
        (
            format!("{REPLY}confirm = 5"),
            "9:11: `confirm` must be the question, or a table of questions by language, not integer",
        ),
        (format!("{REPLY}confirm = {{}}"), "9:11: `confirm` has no question"),
        (format!("{REPLY}confirm.english = \"Go?\""), "9:19: `english` is not a language tag"),
        (
            format!("{REPLY}{input}\nconfirm = \"On {{{{ dya }}}}?\""),
            "10:11: the question is broken: the template reads `dya`, which the input does not have; did you mean `day`?",
        ),
        (
            format!("{REPLY}{input}\nconfirm = \"On {{{{ day | spoken_dat }}}}?\""),
            "there is no filter `spoken_dat`; did you mean `spoken_date`?",
        ),
        (format!("{REPLY}{input}\nconfirm = \"On {{{{ day?\""), "10:11: the question is broken"),
        (
            format!("{REPLY}{input}\nconfirm = \"Go?\"\nconfirm_when = \"amuont > 1\""),
            "11:1: `confirm_when` reads `amuont`, which the input does not have; did you mean `amount`?",
        ),
        (
            format!("{REPLY}{input}\nconfirm = \"Go?\"\nconfirm_when = \"amount >\""),
            "11:1: `confirm_when` is broken",
        ),
        (format!("{REPLY}input = {{ type = \"strng\" }}"), "9:9: the input's schema is broken"),
        (format!("{REPLY}input = \"nowhere.json\""), "9:1: the schema ./nowhere.json cannot be read"),
        (format!("{REPLY}input = 5"), "9:9: `input` must be a JSON Schema as a table"),
        (
            format!("{REPLY}input = {{ type = \"object\", properties = {{ vars = {{}} }} }}"),
            "an input field cannot be named `vars`",
        ),
        (format!("{REPLY}limit = \"soon\""), "9:9: `limit`: `soon` is no duration"),
    ] {
        let all = tool_faults(&text);
        assert!(all.contains(says), "{text}\n{all}");
    }
}

#[test]
fn tool_names_are_unique_usable_and_not_built_in() {
    let named = |name: &str| format!("[[skill.tool]]\nname = \"{name}\"\ndescription = \"d\"\n{REPLY}");
    let all = faults(&format!(
        "{SKILL}{}{}[[skill]]\nname = \"o\"\n{}",
        named("end_call"),
        named("a b"),
        named("end_call")
    ));
    for says in [
        "desk.toml:6:1: the name `end_call` cannot be used; `end_call` is built in",
        "desk.toml:10:1: the name `a b` cannot be used; a tool's name has 1 to 64 letters",
        "desk.toml:16:1: there are two tools named `end_call`; the other is in line 6",
    ] {
        assert!(all.contains(says), "{all}");
    }
}

#[test]
fn all_faults_are_reported_in_the_order_of_the_file() {
    let all = faults("[agent]\nnam = \"D\"\n[turn]\nendpoint = 1\nbarge = \"1s\"\n[confirm]\nrounds = 99\n");
    let lines: Vec<&str> = all.lines().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(
        lines,
        ["desk.toml:1:1", "desk.toml:2:1", "desk.toml:4:12", "desk.toml:5:1", "desk.toml:7:10"],
        "{all}"
    );
}

#[test]
fn a_schema_in_a_file_of_its_own_counts_in_the_hash_and_shows_its_own_place() {
    let folder = tempfile::tempdir().unwrap();
    let agent = folder.path().join("a.toml");
    let text =
        format!("{SKILL}[[skill.tool]]\nname = \"t\"\ndescription = \"d\"\n{REPLY}input = \"in.json\"\n");
    std::fs::write(&agent, text).unwrap();
    let schema = |text: &str| std::fs::write(folder.path().join("in.json"), text).unwrap();
    schema(r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#);
    let first = load(&agent).unwrap();
    schema(r#"{"type":"object","properties":{"a":{"type":"number"}}}"#);
    assert_ne!(first.hash, load(&agent).unwrap().hash);
    schema("{\n  \"type\": objekt }");
    let error = load(&agent).unwrap_err().to_string();
    assert!(error.contains("in.json:2:11: this is no JSON"), "{error}");
    assert!(load(folder.path().join("b.toml")).unwrap_err().to_string().contains("b.toml: cannot be read"));
}

// VC-04, VC-09
#[tokio::test]
async fn a_confirmed_tool_asks_about_the_very_value_that_it_runs_with() {
    let file = tool(&format!(
        "{REPLY}{INPUT}confirm = \"On {{{{ day | spoken_date }}}}, {{{{ amount }}}}?\"\nconfirm_when = \"amount > 100\"\n"
    ));
    let [Tool::Confirmed(tool)] = file.agent.skills[0].tools.as_slice() else { panic!("not confirmed") };
    let input = tool.info.validate.validate(json!({"day": "2026-12-03", "amount": "150.0"})).unwrap();
    assert_eq!(input, json!({"amount": 150, "day": "2026-12-03"}));
    assert!(tool.confirm.needed(&input));
    assert!(!tool.confirm.needed(&json!({"day": "2026-12-03", "amount": 5})));
    assert!(tool.confirm.needed(&json!({"day": "2026-12-03"})));
    let question = tool.confirm.question(&input, &AskContext::default()).await;
    assert_eq!(question.as_deref(), Ok("On Thursday the 3rd of December, 150?"));
    assert!(
        tool.info.description.starts_with("Does it. Calling this asks the caller"),
        "{}",
        tool.info.description
    );
}

// VC-01
#[tokio::test]
async fn a_plain_tool_runs_at_once() {
    let file =
        tool(&format!("run = {{ reply = {{ ok = false, message = \"No on {{{{ day }}}}.\" }} }}\n{INPUT}"));
    let [Tool::Plain(tool)] = file.agent.skills[0].tools.as_slice() else { panic!("not plain") };
    let input = canonical(&json!({"day": "2026-12-03"})).unwrap();
    let outcome = tool.run(&input, RunContext::default()).await;
    assert_eq!(outcome, sayback_core::ToolOutcome::Failed { message: "No on 2026-12-03.".to_owned() });
    assert_eq!(tool.info.description, "Does it");
}

// VC-72
#[test]
fn the_definition_changes_with_anything_that_matters() {
    let definition = |text: &str| tool(text).agent.skills[0].tools[0].info().definition.clone();
    let base = format!("{REPLY}{INPUT}confirm = \"On {{{{ day }}}}?\"\n");
    let again = definition(&base);
    assert_eq!(definition(&format!("# a comment\n{base}")), again);
    for other in [
        format!("{REPLY}{INPUT}confirm = \"At {{{{ day }}}}?\"\n"),
        format!("{base}irreversible = true\n"),
        format!("{base}evidence = \"device\"\n"),
        format!("{base}confirm_when = \"amount > 1\"\n"),
        base.replace("Done.", "Did it."),
        base.replace("number", "integer"),
    ] {
        assert_ne!(definition(&other), again, "{other}");
    }
}

// VC-16
#[test]
fn the_linter_finds_questions_that_callers_cannot_answer_well() {
    let long = "very ".repeat(40);
    let input = "input = { type = \"object\", properties = { a = { type = \"string\" }, d = { type = \"string\", format = \"date\" } } }\n";
    let command = "run = { command = [\"x\"] }\n";
    for (text, code, says) in [
        (
            "confirm = \"For {{ a }} on {{ d }}?\"",
            "free-text",
            "line 10: warning [free-text]: the question of `t` (en) speaks `a`",
        ),
        ("confirm = \"On {{ d }}?\"", "unspoken-field", "leaves out `a`, which the run uses"),
        ("confirm = \"I book {{ d }}.\"", "no-question-mark", "does not end in a question"),
        ("confirm = \"On {{ d }}, is that right?\"", "long-tail", "after its last value"),
        (&format!("confirm = \"A {long} day, {{{{ d }}}}?\""), "long-question", "error [long-question]"),
        (
            "confirm = \"On {{ a | spoken_email }}?\"",
            "sample-failed",
            "cannot be built from the sample input",
        ),
        ("confirm.de = \"Am {{ d }}?\"", "missing-language", "no question in the agent's language `en`"),
    ] {
        let findings = lint(&tool(&format!("{command}{input}{text}\n")));
        let shown: Vec<String> = findings.iter().filter(|f| f.code == code).map(Finding::to_string).collect();
        assert!(shown.iter().any(|finding| finding.contains(says)), "{text}\n{findings:#?}");
    }
    let open = input.replace("properties", "additionalProperties = true, properties");
    let findings = lint(&tool(&format!("{command}{open}confirm = \"On {{{{ d }}}}?\"\n")));
    assert!(findings.iter().any(|f| f.code == "open-input" && f.line == 6), "{findings:#?}");
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,200}") {
        drop(parse(&text, "desk.toml"));
    }

    #[test]
    fn no_arrangement_of_known_words_makes_the_reader_panic(
        words in proptest::collection::vec(prop_oneof![
            Just("[agent]\n"), Just("name = \"x\"\n"), Just("[[skill]]\n"), Just("[[skill.tool]]\n"), Just("[confirm]\n"),
            Just("confirm = \"{{ a | spoken_date }}\"\n"), Just("confirm_when = \"a > 1\"\n"), Just("input = {"), Just("}"),
            Just("run = { reply = { message = \"\" } }\n"), Just("type = \"object\","), Just("\"\"\""), Just("grace = \"1\""),
            Just("description = \"d\"\n"), Just("\n"), Just("[skill.tool.input]\n"), Just("type = [1979-05-27, 1e9]\n"),
        ], 0..24)
    ) {
        drop(parse(&words.concat(), "desk.toml"));
    }

    #[test]
    fn no_value_makes_a_spoken_form_panic(text in "\\PC{0,40}", tag in "(en|de|es|fr|pt|ja|hi|xx)") {
        let language = spoken::Language::of(&tag);
        for say in [spoken::time, spoken::email, spoken::digits, spoken::phone, spoken::number] {
            drop(say(&text, language));
        }
        drop((spoken::date(&text, language, true), spoken::date_time(&text, language, true)));
        drop(spoken::money(&text, "EUR", language));
    }

    #[test]
    fn no_expression_makes_a_condition_panic(text in "[a-c0-9<>=!|()\\[\\]\"'. +*/-]{0,30}") {
        if let Ok(condition) = condition::Condition::compile(&text) {
            condition.asks(&json!({"a": 1, "b": "x", "c": null}));
        }
    }

    #[test]
    fn strict_json_reads_what_it_wrote(text in "\\PC{0,60}", number in -9_007_199_254_740_991_i64..9_007_199_254_740_991) {
        let frozen = canonical(&json!({"t": text, "n": number})).unwrap();
        prop_assert_eq!(canonical(&parse_strict(&frozen.json).unwrap()).unwrap(), frozen);
        drop(parse_strict(&text));
    }
}
