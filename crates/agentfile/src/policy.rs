//! `[turn]` and `[confirm]`: how the agent's calls are run.

use std::time::Duration;

use sayback_core::{
    Adjacency, AfterHangup, ConfirmPolicy, EvidenceClass, NearEnd, Policy, QuestionBargeIn, TurnPolicy,
};

use crate::reader::Section;

/// Classes of evidence by their names in files and logs. What is merely unproven cannot be asked for.
pub(crate) const EVIDENCE: [(&str, EvidenceClass); 8] = [
    ("virtual", EvidenceClass::Virtual),
    ("device", EvidenceClass::Device),
    ("page", EvidenceClass::Page),
    ("echo", EvidenceClass::Echo),
    ("xr", EvidenceClass::Xr),
    ("rtcp", EvidenceClass::Rtcp),
    ("mark", EvidenceClass::Mark),
    ("assumed", EvidenceClass::Assumed),
];

pub(crate) fn policy(turn: Option<Section<'_>>, confirm: Option<Section<'_>>, language: &str) -> Policy {
    let mut policy = Policy::default();
    (policy.turn.silence_text, policy.turn.apology) = phrases(language);
    policy.confirm.approval_text = please_wait(language).to_owned();
    if let Some(section) = turn {
        read_turn(section, &mut policy.turn);
    }
    if let Some(section) = confirm {
        read_confirm(section, &mut policy.confirm);
    }
    policy
}

fn read_turn(section: Section<'_>, turn: &mut TurnPolicy) {
    set(&mut turn.endpoint, section.duration("endpoint"));
    set(&mut turn.endpoint_unsure, section.duration("endpoint_unsure"));
    set(&mut turn.endpoint_trailing, section.duration("endpoint_trailing"));
    set(&mut turn.sure_percent, small(&section, "sure_percent", 1, 99));
    set(&mut turn.barge_in, section.duration("barge_in"));
    set(&mut turn.resume, section.duration("resume"));
    let mut text = None;
    read_followup(&section, &mut turn.silence_followup, &mut text);
    set(&mut turn.silence_text, text);
    set(&mut turn.silence_limit, small(&section, "silence_limit", 1, 20));
    set(&mut turn.transcript_limit, section.duration("transcript_limit"));
    set(&mut turn.model_limit, section.duration("model_limit"));
    set(&mut turn.tool_limit, section.duration("tool_limit"));
    set(&mut turn.apology, section.text("apology"));
    section.finish();
}

fn read_confirm(section: Section<'_>, confirm: &mut ConfirmPolicy) {
    let barge_in = [
        ("drop", QuestionBargeIn::Drop),
        ("continuers", QuestionBargeIn::Continuers),
        ("ignore", QuestionBargeIn::Ignore),
    ];
    set(&mut confirm.question_barge_in, section.one_of("question_barge_in", &barge_in));
    set(&mut confirm.barge_in, section.duration("barge_in"));
    set(&mut confirm.no_pause_before_end, section.duration("no_pause_before_end"));
    set(&mut confirm.resume, section.duration("resume"));
    set(&mut confirm.max_gap, section.duration("max_gap"));
    let near_end = [("model", NearEnd::Model), ("again", NearEnd::Again)];
    set(&mut confirm.near_end, section.one_of("near_end", &near_end));
    let adjacency = [("strict", Adjacency::Strict), ("off", Adjacency::Off)];
    set(&mut confirm.adjacency, section.one_of("adjacency", &adjacency));
    set(&mut confirm.grace, section.duration("grace"));
    set(&mut confirm.rounds, small(&section, "rounds", 1, 10));
    let after_hangup = [("run", AfterHangup::Run), ("drop", AfterHangup::Drop)];
    set(&mut confirm.after_hangup, section.one_of("after_hangup", &after_hangup));
    set(&mut confirm.keypad, section.boolean("keypad"));
    set(&mut confirm.ttl, section.duration_or_none("ttl"));
    set(&mut confirm.max_loss, section.duration("max_loss"));
    set(&mut confirm.check_limit, section.duration("check_limit"));
    read_followup(&section, &mut confirm.silence_followup, &mut confirm.silence_text);
    set(&mut confirm.silence_again, section.duration("silence_again"));
    set(&mut confirm.hold_wait, section.duration("hold_wait"));
    set(&mut confirm.evidence, section.one_of("evidence", &EVIDENCE));
    set(&mut confirm.quiet, section.duration("quiet"));
    set(&mut confirm.quiet_irreversible, section.duration("quiet_irreversible"));
    set(&mut confirm.approval_wait, section.duration_or_none("approval_wait"));
    set(&mut confirm.approval_text, section.text("approval_text"));
    section.finish();
}

/// `silence_followup` is a duration, `none`, or a text of its own; `silence_text` is that text beside a duration.
fn read_followup(section: &Section<'_>, after: &mut Option<Duration>, text: &mut Option<String>) {
    let own = section.node("silence_followup").and_then(|node| node.get_ref().as_str());
    match own.filter(|words| words.contains(' ') && !words.starts_with(|c: char| c.is_ascii_digit())) {
        Some(words) => *text = Some(words.to_owned()),
        None => set(after, section.duration_or_none("silence_followup")),
    }
    if let Some(words) = section.text("silence_text") {
        *text = Some(words);
    }
}

fn small(section: &Section<'_>, key: &'static str, least: u8, most: u8) -> Option<u8> {
    section.integer(key, least.into(), most.into()).and_then(|n| u8::try_from(n).ok())
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// What a caller hears while an operator is asked, unless the author says otherwise.
fn please_wait(language: &str) -> &'static str {
    match language.split('-').next().unwrap_or_default() {
        "de" => "Einen Moment bitte, das lasse ich gerade freigeben.",
        "es" => "Un momento, por favor: lo están autorizando.",
        "fr" => "Un instant, s'il vous plaît, je le fais valider.",
        "pt" => "Um momento, por favor, estou a pedir a aprovação.",
        "ja" => "少々お待ちください。ただいま承認を確認しております。",
        "hi" => "एक क्षण रुकिए, मैं इसकी मंज़ूरी ले रहा हूँ।",
        _ => "One moment please, I am having this approved.",
    }
}

/// What is said after silence, and after a failure, unless the author says otherwise.
fn phrases(language: &str) -> (String, String) {
    let (silence, apology) = match language.split('-').next().unwrap_or_default() {
        "de" => (
            "Sind Sie noch da?",
            "Entschuldigung, bei mir ist etwas schiefgegangen. Können Sie das noch einmal sagen?",
        ),
        "es" => ("¿Sigue ahí?", "Perdón, algo ha fallado por mi parte. ¿Puede repetirlo?"),
        "fr" => (
            "Vous êtes toujours là ?",
            "Pardon, une erreur s'est produite de mon côté. Pouvez-vous répéter ?",
        ),
        "pt" => ("Ainda está aí?", "Desculpe, algo correu mal do meu lado. Pode repetir?"),
        "ja" => (
            "もしもし、聞こえますか。",
            "申し訳ございません。こちらで問題が起きました。もう一度お願いします。",
        ),
        "hi" => ("क्या आप अभी भी लाइन पर हैं?", "माफ़ कीजिए, मेरी तरफ़ कुछ गड़बड़ हुई। क्या आप दोबारा कह सकते हैं?"),
        _ => {
            let TurnPolicy { silence_text, apology, .. } = TurnPolicy::default();
            return (silence_text, apology);
        }
    };
    (silence.to_owned(), apology.to_owned())
}
