//! The vetoes over labelled replies, with a model that says yes to everything.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use sayback_core::check::{
    Reply, VetoKind, is_affirmation, is_continuer, is_hold_word, is_trailing, parse_verdict, veto,
};
use sayback_core::event::Verdict;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    lang: String,
    question: String,
    reply: String,
    label: String,
    also_ok: Vec<String>,
    #[expect(dead_code, reason = "for people")]
    note: String,
    tags: Vec<String>,
    #[expect(dead_code, reason = "for people")]
    hard: bool,
    #[serde(default)]
    context: Context,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Context {
    #[serde(default)]
    since_question: Vec<String>,
    speakers: Option<u8>,
}

/// What came of a file.
#[derive(Default)]
struct Tally {
    table: BTreeMap<(String, &'static str), usize>,
    rules: BTreeMap<&'static str, usize>,
    not_yes: usize,
    false_yes: Vec<String>,
    plain: usize,
    missed: Vec<String>,
    yes: usize,
    lost: Vec<String>,
}

fn rows(name: &str) -> Vec<Row> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: {error}: {line}")))
        .collect()
}

fn tally(rows: &[Row]) -> Tally {
    let mut tally = Tally::default();
    for row in rows {
        let fired = veto(&Reply {
            language: &row.lang,
            question: &row.question,
            words: &row.reply,
            input_json: None,
            speakers: row.context.speakers,
            confidence: None,
            agent_speech_after: !row.context.since_question.is_empty(),
        });
        let verdict = if fired.is_some() { "unclear" } else { "yes" };
        let why = fired.as_ref().map(ToString::to_string).unwrap_or_default();
        let line =
            format!("{} {} {:?} -> {:?} {why} ({})", row.id, row.lang, row.question, row.reply, row.label);
        *tally.table.entry((row.label.clone(), verdict)).or_default() += 1;
        if let Some(fired) = fired {
            *tally.rules.entry(fired.kind.name()).or_default() += 1;
        }
        let fits = row.label == verdict || row.also_ok.iter().any(|ok| ok == verdict);
        if row.label == "yes" {
            tally.yes += 1;
            let plain = row.lang == "en" && row.tags.iter().any(|tag| tag == "plain-yes");
            tally.plain += usize::from(plain);
            if !fits {
                tally.lost.push(line.clone());
                if plain {
                    tally.missed.push(line);
                }
            }
        } else {
            tally.not_yes += 1;
            if verdict == "yes" {
                tally.false_yes.push(line);
            }
        }
    }
    tally
}

fn print(name: &str, tally: &Tally) {
    println!("{name}");
    for ((label, verdict), count) in &tally.table {
        println!("  label {label:8} verdict {verdict:8} {count}");
    }
    println!("  false yes {}/{}", tally.false_yes.len(), tally.not_yes);
    tally.false_yes.iter().for_each(|line| println!("    {line}"));
    println!(
        "  plain English yes missed {}/{}; any yes missed {}/{}",
        tally.missed.len(),
        tally.plain,
        tally.lost.len(),
        tally.yes
    );
    tally.lost.iter().for_each(|line| println!("    {line}"));
    println!("  rules {:?}", tally.rules);
}

#[test]
fn the_labelled_replies_pass_only_with_a_yes() {
    let tally = tally(&rows("replies.jsonl"));
    print("replies.jsonl", &tally);
    assert!(tally.not_yes >= 150 && tally.plain >= 20, "the file is not the one this test is about");
    assert!(tally.false_yes.len() <= 4, "{} false yeses", tally.false_yes.len());
    assert!(
        tally.missed.len() * 20 <= tally.plain,
        "{} of {} plain yeses missed",
        tally.missed.len(),
        tally.plain
    );
}

#[test]
fn replies_that_were_not_tuned_on_pass_only_with_a_yes() {
    let (seen, held_out): (Vec<Row>, Vec<Row>) = rows("replies_own.jsonl")
        .into_iter()
        .partition(|row| row.id.as_bytes().last().is_some_and(|b| b % 2 == 1));
    for (name, half) in [("replies_own.jsonl, odd", seen), ("replies_own.jsonl, even (held out)", held_out)] {
        let tally = tally(&half);
        print(name, &tally);
        assert!(tally.not_yes >= 60 && tally.yes >= 40);
        assert!(tally.false_yes.len() * 20 <= tally.not_yes, "{name}: {} false yeses", tally.false_yes.len());
        assert!(tally.missed.len() * 20 <= tally.plain, "{name}: {} plain yeses missed", tally.missed.len());
    }
}
