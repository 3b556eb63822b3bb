//! How a question is worded: whether a yes to it means one thing, and whether callers let it end.

use sayback_core::check::{Unanswerable, unanswerable};

use super::{Finding, Place, Severity};

/// Callers answer once they have heard the last value: what follows it invites a yes that comes too early.
const TAIL: f32 = 0.3;
/// Figures in a row that nobody can follow.
const UNGROUPED: usize = 5;
/// Languages whose verb comes last: there something always follows the last value.
const VERB_LAST: [&str; 3] = ["ja", "hi", "ko"];
/// Languages in which a reply can be judged.
const JUDGED: [&str; 7] = ["en", "de", "es", "fr", "pt", "ja", "hi"];

/// How long so many characters take: a syllable is two or three letters, or one kana.
pub(super) fn seconds(tag: &str, characters: usize) -> f32 {
    let per_second = match base(tag) {
        "ja" | "zh" | "ko" => 7.5,
        _ => 15.0,
    };
    characters as f32 / per_second
}

fn base(tag: &str) -> &str {
    tag.split(['-', '_']).next().unwrap_or(tag)
}

/// A template's own words, each value replaced by one word that means nothing.
pub(super) fn without_values(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{{").or_else(|| rest.find("{%")) {
        let at = rest.find("{%").map_or(at, |other| at.min(other));
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let value = tag.starts_with("{{");
        let close = if value { "}}" } else { "%}" };
        if value {
            out.push('X');
        }
        rest = tag.find(close).map_or("", |end| &tag[end + 2..]);
    }
    out + rest
}

/// Everything about the words; `text` is the question with a made-up input.
pub(super) fn lint_wording(place: &Place<'_>, text: &str, findings: &mut Vec<Finding>) {
    let own = without_values(place.template.source());
    lint_answer(place, &own, findings);
    lint_actions(place, &own, findings);
    lint_ending(place, text, findings);
    lint_marks(place, &own, text, findings);
}

/// Questions to which no yes can stand.
fn lint_answer(place: &Place<'_>, own: &str, findings: &mut Vec<Finding>) {
    if !JUDGED.contains(&base(place.tag)) {
        let message = "is in a language in which no reply can be judged: every yes stays unclear".to_owned();
        let fix = "ask in one of en, de, es, fr, pt, ja, hi; or take keypad answers";
        findings.push(place.finding("unknown-language", Severity::Error, message, fix));
    }
    match unanswerable(place.tag, own) {
        Some(Unanswerable::Denial) => {
            let message =
                "asks of a denial, to which a yes has two readings: every yes stays unclear".to_owned();
            let fix = "say what will be done, not what will not";
            findings.push(place.finding("negation", Severity::Error, message, fix));
        }
        Some(Unanswerable::Choice) => {
            let message = "offers a choice, to which a yes is no answer: every yes stays unclear".to_owned();
            let fix = "let the model find out which, and ask of that one alone";
            findings.push(place.finding("either-or", Severity::Error, message, fix));
        }
        None => {}
    }
}

/// "And" between two of these is two actions, per language: conjunctions, then verbs.
fn actions(language: &str) -> (&'static str, &'static str) {
    match language {
        "en" => (
            "and|then",
            "book|cancel|send|pay|move|charge|transfer|order|delete|add|change|confirm|call|email|text|close|open|renew|\
             refund|update|remove|reserve|schedule|block|register|subscribe|buy|sell|ship|submit|start|stop",
        ),
        "de" => (
            "und|dann",
            "buchen|stornieren|senden|schicken|bezahlen|zahlen|überweisen|verschieben|reservieren|absagen|ändern|löschen|\
             bestellen|anrufen|kündigen|schließen|eröffnen|eintragen|sperren|kaufen|buche|storniere|sende|schicke|zahle|\
             überweise|verschiebe|reserviere|ändere|lösche|bestelle|kündige|trage|sperre",
        ),
        "es" => (
            "y|e|luego",
            "reservo|cancelo|envío|pago|muevo|transfiero|cambio|borro|pido|confirmo|anulo|añado|cierro|abro|bloqueo|\
             reservar|cancelar|enviar|pagar|mover|transferir|cambiar|borrar|pedir|anular|añadir|cerrar|abrir|bloquear",
        ),
        "fr" => (
            "et|puis",
            "réserve|annule|envoie|paie|déplace|vire|change|supprime|commande|ajoute|ferme|ouvre|bloque|réserver|annuler|\
             envoyer|payer|déplacer|virer|changer|supprimer|commander|ajouter|fermer|ouvrir|bloquer",
        ),
        "pt" => (
            "e|depois",
            "reservo|cancelo|envio|pago|movo|transfiro|mudo|apago|peço|marco|fecho|abro|bloqueio|reservar|cancelar|enviar|\
             pagar|mover|transferir|mudar|apagar|pedir|marcar|fechar|abrir|bloquear",
        ),
        "ja" => ("て|し", "予約|取り消し|キャンセル|送信|送金|支払|変更|注文|削除"),
        "hi" => ("और|फिर", "बुक|रद्द|भेज|भुगतान|बदल|ऑर्डर|हटा"),
        _ => ("", ""),
    }
}

fn lint_actions(place: &Place<'_>, own: &str, findings: &mut Vec<Finding>) {
    let (joints, verbs) = actions(base(place.tag));
    let found: Vec<&str> = if base(place.tag) == "ja" {
        verbs.split('|').filter(|verb| own.contains(verb)).collect()
    } else {
        let words: Vec<String> = own
            .split(|c: char| !c.is_alphanumeric() && !('\u{900}'..='\u{97f}').contains(&c))
            .filter(|w| !w.is_empty())
            .map(str::to_lowercase)
            .collect();
        let is_verb = |word: &String| verbs.split('|').find(|verb| verb == word);
        let joint = words.iter().position(|word| joints.split('|').any(|joint| joint == word));
        joint.map_or_else(Vec::new, |joint| {
            let before = words[..joint].iter().filter_map(is_verb).next_back();
            let after = words[joint..].iter().find_map(is_verb);
            before.into_iter().chain(after).collect()
        })
    };
    if let [first, second, ..] = found.as_slice() {
        let message = format!("asks of two actions at once, \"{first}\" and \"{second}\"");
        let fix = "make two tools of it: a caller may want the one and not the other";
        findings.push(place.finding("two-actions", Severity::Warning, message, fix));
    }
}

fn lint_ending(place: &Place<'_>, text: &str, findings: &mut Vec<Finding>) {
    let end = text.trim_end_matches(|c: char| c.is_whitespace() || "\"'”»)」".contains(c));
    let asks = end.ends_with(['?', '？', '؟'])
        || base(place.tag) == "ja" && end.trim_end_matches('。').ends_with('か');
    if !asks {
        let fix =
            "end it with its question and a question mark: the last thing heard must be what is answered";
        findings.push(place.finding(
            "no-question-mark",
            Severity::Warning,
            "does not end in a question".to_owned(),
            fix,
        ));
    }
    let Some((_, tail)) = place.template.source().rsplit_once("}}") else { return };
    let spoken = without_values(tail).chars().filter(|c| c.is_alphanumeric() || *c == ' ').count();
    let seconds = seconds(place.tag, spoken);
    if seconds > TAIL && !VERB_LAST.contains(&base(place.tag)) {
        let message = format!("goes on for about {:.0} ms after its last value", seconds * 1_000.0);
        let fix =
            "put the value last: callers say yes once they have heard it, and a yes before the end is no yes";
        findings.push(place.finding("long-tail", Severity::Warning, message, fix));
    }
}

/// Marks that a voice cannot say, and figures that a caller cannot follow.
fn lint_marks(place: &Place<'_>, own: &str, text: &str, findings: &mut Vec<Finding>) {
    let marks = ["<", ">", "*", "_", "#", "`", "[[", "](", "://", "&amp;", "&lt;", "|", "~"];
    if let Some(mark) = marks.iter().find(|mark| own.contains(**mark)) {
        let message = format!("has markup in it: `{mark}`");
        let fix = "write what is to be heard: a question is spoken word for word, and marks are no words";
        findings.push(place.finding("markup", Severity::Warning, message, fix));
    }
    let longest = text.split(|c: char| !c.is_ascii_digit()).max_by_key(|run| run.len()).unwrap_or_default();
    if longest.len() >= UNGROUPED {
        let message = format!("says {} figures in one go: `{longest}`", longest.len());
        let fix = "group them: `spoken_digits`, `spoken_phone`, `spoken_number` or `spoken_money`";
        findings.push(place.finding("ungrouped-digits", Severity::Warning, message, fix));
    }
}
