//! E-mail addresses, digits, telephone numbers and lists.

use super::Language;

/// `anna@example.com` as `anna at example dot com`; what is no word is spelled.
pub(crate) fn email(text: &str, language: Language) -> Result<String, String> {
    let wrong = || format!("\"{text}\" is not an e-mail address");
    let (local, domain) = text.split_once('@').ok_or_else(wrong)?;
    let usable = |part: &str, marks: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.contains("..")
            && part.chars().all(|c| c.is_alphanumeric() || marks.contains(c))
    };
    if text.len() > 254 || !usable(local, "._-+'%") || !usable(domain, ".-") || !domain.contains('.') {
        return Err(wrong());
    }
    if language == Language::Neutral {
        return Ok(text.to_owned());
    }
    let at = mark('@', language);
    let joint = if language == Language::Japanese { "、" } else { " " };
    let domain = domain.to_lowercase();
    let (name, top) = domain.rsplit_once('.').ok_or_else(wrong)?;
    let top = if is_known_top(top) { top.to_owned() } else { say_pieces(top, language) };
    let dot = mark('.', language);
    Ok(format!(
        "{}{joint}{at} {} {dot} {top}",
        say_pieces(&local.to_lowercase(), language),
        say_pieces(name, language)
    ))
}

/// `5551234` as `5 5 5, 1 2 3 4`; the author's own groups are kept.
pub(crate) fn digits(text: &str, _language: Language) -> Result<String, String> {
    let groups: Vec<&str> = text.split([' ', '-', '.', '/']).filter(|g| !g.is_empty()).collect();
    let plain = groups.iter().all(|group| group.chars().all(char::is_alphanumeric));
    if groups.is_empty() || !plain || text.len() > 64 {
        return Err(format!("\"{text}\" is not a row of digits or letters"));
    }
    Ok(say_groups(&groups))
}

/// `+49 30 1234567` as `plus 4 9, 3 0, 1 2 3, 4 5 6 7`.
pub(crate) fn phone(text: &str, language: Language) -> Result<String, String> {
    let trimmed = text.trim();
    let (plus, rest) = trimmed.strip_prefix('+').map_or((false, trimmed), |rest| (true, rest));
    let groups: Vec<&str> = rest.split([' ', '-', '.', '/', '(', ')']).filter(|g| !g.is_empty()).collect();
    let count: usize = groups.iter().map(|group| group.len()).sum();
    let plain = groups.iter().all(|group| group.bytes().all(|b| b.is_ascii_digit()));
    if !plain || !(3..=20).contains(&count) || text.len() > 40 {
        return Err(format!("\"{text}\" is not a telephone number"));
    }
    let said = say_groups(&groups);
    Ok(match (plus, language) {
        (false, _) => said,
        (true, Language::Neutral) => format!("+ {said}"),
        (true, _) => format!("{} {said}", mark('+', language)),
    })
}

/// `a, b and c`.
pub(crate) fn list(items: &[String], language: Language) -> Result<String, String> {
    let Some((last, rest)) = items.split_last() else {
        return Err("an empty list cannot be spoken".to_owned());
    };
    if rest.is_empty() {
        return Ok(last.clone());
    }
    Ok(match language {
        Language::English => format!("{} and {last}", rest.join(", ")),
        Language::German => format!("{} und {last}", rest.join(", ")),
        Language::Spanish => format!("{} y {last}", rest.join(", ")),
        Language::French => format!("{} et {last}", rest.join(", ")),
        Language::Portuguese => format!("{} e {last}", rest.join(", ")),
        Language::Japanese => format!("{}と{last}", rest.join("、")),
        Language::Hindi => format!("{} और {last}", rest.join(", ")),
        Language::Neutral => format!("{}, {last}", rest.join(", ")),
    })
}

fn say_groups(groups: &[&str]) -> String {
    let split: Vec<String> = groups.iter().flat_map(|group| split_group(group)).collect();
    split.join(", ")
}

/// Fours where they come out even (cards), else threes with what is left over in the last.
fn split_group(group: &str) -> Vec<String> {
    let letters: Vec<String> = group.chars().map(|c| c.to_uppercase().collect()).collect();
    let size =
        if letters.len() <= 4 || (letters.len() >= 8 && letters.len().is_multiple_of(4)) { 4 } else { 3 };
    let mut chunks: Vec<Vec<String>> = letters.chunks(size).map(<[String]>::to_vec).collect();
    if let Some(last) = chunks.pop_if(|chunk| chunk.len() == 1) {
        match chunks.last_mut() {
            Some(chunk) => chunk.extend(last),
            None => chunks.push(last),
        }
    }
    chunks.into_iter().map(|chunk| chunk.join(" ")).collect()
}

fn say_pieces(part: &str, language: Language) -> String {
    let mut pieces: Vec<String> = Vec::new();
    let mut run = String::new();
    for c in part.chars() {
        let breaks = run.chars().last().is_some_and(|last| last.is_numeric() != c.is_numeric());
        if !c.is_alphanumeric() || breaks {
            pieces.extend(say_run(&run));
            run.clear();
        }
        match c {
            _ if c.is_alphanumeric() => run.push(c),
            _ => pieces.push(mark(c, language).to_owned()),
        }
    }
    pieces.extend(say_run(&run));
    pieces.join(" ")
}

/// A word as it is, anything else letter by letter.
fn say_run(run: &str) -> Option<String> {
    if run.is_empty() {
        return None;
    }
    if is_sayable(run) {
        return Some(run.to_owned());
    }
    Some(run.chars().map(String::from).collect::<Vec<_>>().join(" "))
}

fn is_sayable(run: &str) -> bool {
    let is_vowel = |c: char| "aeiouyäöüáéíóúàèìòùâêîôûãõåæøœ".contains(c);
    let consonants = run.split(is_vowel).map(|part| part.chars().count()).max().unwrap_or(0);
    let foreign = run.chars().any(|c| c.is_alphabetic() && c > '\u{24f}');
    let letters = run.chars().all(char::is_alphabetic);
    let length = run.chars().count();
    letters && (foreign || ((3..=14).contains(&length) && consonants <= 4 && run.chars().any(is_vowel)))
}

fn is_known_top(top: &str) -> bool {
    ["com", "org", "net", "info", "gov", "edu", "app", "shop", "online", "example", "test", "invalid"]
        .contains(&top)
}

fn mark(c: char, language: Language) -> &'static str {
    // At, dot, dash, underscore, plus.
    let words = match language {
        Language::English => ["at", "dot", "dash", "underscore", "plus"],
        Language::German => ["at", "Punkt", "Bindestrich", "Unterstrich", "plus"],
        Language::Spanish => ["arroba", "punto", "guion", "guion bajo", "más"],
        Language::French => ["arobase", "point", "tiret", "tiret bas", "plus"],
        Language::Portuguese => ["arroba", "ponto", "hífen", "sublinhado", "mais"],
        Language::Japanese => ["アットマーク", "ドット", "ハイフン", "アンダーバー", "プラス"],
        Language::Hindi => ["एट", "डॉट", "डैश", "अंडरस्कोर", "प्लस"],
        Language::Neutral => ["@", ".", "-", "_", "+"],
    };
    match c {
        '@' => words[0],
        '.' => words[1],
        '-' => words[2],
        '_' => words[3],
        '+' => words[4],
        '\'' => "'",
        _ => "%",
    }
}
