//! Words of the question that a reply repeats in another order: "from checking to savings", a letter or a separator
//! changed in an address, the characters of a Japanese name the other way round.

use alloc::string::String;
use alloc::vec::Vec;

use super::grammar::{Item, Kind};
use super::lexicon::Language;
use super::number::number;
use super::text::{Token, is_ideograph, is_one_of, longest};

/// Words before a noun that give it its part in what is done, per language; behind the noun in Japanese and Hindi.
fn roles(language: Language) -> &'static str {
    match language {
        Language::En => "from|to|into|onto|with|without|under|for|instead of|as|by|until|before|after",
        Language::De => "von|vom|aus|nach|zu|zum|zur|auf|an|für|mit|bei|beim|statt|als",
        Language::Es => "de|del|desde|a|al|hasta|para|con|por|en lugar de",
        Language::Fr => "de|du|des|depuis|à|au|aux|vers|pour|avec|chez|d",
        Language::Pt => "de|do|da|desde|a|ao|à|para|pra|com|por|até",
        Language::Ja => "から|まで|より|へ|に|を|と|が",
        Language::Hi => "से|को|तक|का|की|के|पर|में",
    }
}

/// Articles and the like between such a word and its noun.
const BETWEEN: &str = "the|a|an|my|our|your|his|her|der|die|das|dem|den|des|ein|eine|einen|einem|einer|mein|meine|\
    meinem|meiner|meinen|ihr|ihre|ihrem|ihrer|ihren|el|la|los|las|un|una|mi|su|mis|sus|le|les|une|mon|ma|mes|votre|\
    vos|l|o|os|as|um|uma|meu|minha|seu|sua|conta|account|konto|cuenta|compte|table|tisch|mesa";

/// The role that the words around `start..end` give them, as the place of its entry in [`roles`].
fn role(language: Language, tokens: &[Token], start: usize, end: usize) -> Option<usize> {
    let entry = |at: usize, len: usize| {
        roles(language).split('|').position(|role| super::text::matches(tokens, at, role) == len)
    };
    if matches!(language, Language::Ja | Language::Hi) {
        let len = longest(tokens, end, roles(language));
        return if len > 0 { entry(end, len) } else { None };
    }
    let mut at = start;
    while at > 0 && !tokens[at].starts_clause {
        at -= 1;
        let len = longest(&tokens[..start], at, roles(language));
        if len > 0 {
            return entry(at, len);
        }
        if !is_one_of(&tokens[at].text, BETWEEN) {
            return None;
        }
    }
    None
}

/// Whether the words `start..end` of the reply have another part in it than in the question.
///
/// Only if the question gives them a part at all, and that part to something else.
pub(super) fn swapped(
    language: Language,
    question: &[Token],
    reply: &[Token],
    start: usize,
    end: usize,
) -> bool {
    let Some(said) = role(language, reply, start, end) else { return false };
    let len = end - start;
    let same = |at: usize| {
        (0..len).all(|i| question.get(at + i).is_some_and(|token| token.text == reply[start + i].text))
    };
    let asked: Vec<usize> = (0..question.len())
        .filter(|at| same(*at))
        .filter_map(|at| role(language, question, at, at + len))
        .collect();
    let taken = (0..question.len()).any(|at| role(language, question, at, at + 1) == Some(said) && !same(at));
    !asked.is_empty() && !asked.contains(&said) && taken
}

/// Japanese words are runs of characters: each run that no list knows, as `(start, end)` in tokens.
pub(super) fn runs(items: &[Item], tokens: &[Token]) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    for item in items.iter().filter(|item| matches!(item.kind, Kind::Word)) {
        let ideograph = tokens[item.start].text.chars().all(is_ideograph);
        match out.last_mut() {
            Some((_, end)) if ideograph && *end == item.start && !tokens[item.start].starts_clause => {
                *end = item.end;
            }
            _ => out.push((item.start, item.end)),
        }
    }
    out
}

/// Whether the tokens occur in a row in `text`.
pub(super) fn occurs(text: &[Token], run: &[Token]) -> bool {
    text.windows(run.len().max(1)).any(|window| window.iter().zip(run).all(|(a, b)| a.text == b.text))
}

/// The address parts of a text: words and the separators between them, spoken or written.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// `(word, separator, word)`, by the token at which the separator was said.
    joints: Vec<(String, char, String, usize)>,
}

impl Addresses {
    /// Reads a text.
    pub(super) fn of(tokens: &[Token]) -> Self {
        let mut pieces: Vec<(String, usize)> = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            if let Some(mark) = separator(&token.text) {
                pieces.push((String::from(mark), at));
                continue;
            }
            let mut word = String::new();
            for c in token.text.chars() {
                if matches!(c, '.' | '@' | '_' | '-' | '+') {
                    pieces.push((core::mem::take(&mut word), at));
                    pieces.push((String::from(c), at));
                } else {
                    word.push(c);
                }
            }
            pieces.push((word, at));
        }
        let mut joints: Vec<(String, char, String, usize)> = Vec::new();
        for window in pieces.windows(3) {
            let [(before, _), (mark, at), (after, _)] = window else { continue };
            let mut marks = mark.chars();
            let (Some(c), None) = (marks.next(), marks.next()) else { continue };
            let word = |piece: &String| piece.chars().next().is_some_and(char::is_alphanumeric);
            // Two separators in a row ("anna underscore at example") are a joint of their own.
            let doubled = separator(after).is_some() || matches!(after.as_str(), "." | "@" | "_" | "-" | "+");
            if matches!(c, '.' | '@' | '_' | '-' | '+') && word(before) && (word(after) || doubled) {
                joints.push((before.clone(), c, after.clone(), *at));
            }
        }
        Self { joints }
    }

    /// The token of the first joint that is not one of `known`, if both have the parts of an address at all.
    ///
    /// "At" is also a word of time and place: it counts only where a dot follows soon.
    pub(super) fn strange(&self, known: &Self, tokens: &[Token]) -> Option<usize> {
        let dotted = |at: usize| {
            self.joints.iter().any(|(_, mark, _, other)| *mark == '.' && *other > at && other - at <= 4)
        };
        let joint = self.joints.iter().find(|(before, mark, after, at)| {
            let written = tokens[*at].text.contains(['@', '.', '_']);
            let number = before.chars().chain(after.chars()).all(|c| c.is_ascii_digit());
            let counts = *mark != '@' || written || dotted(*at);
            counts && !number && !known.has(before, *mark, after)
        })?;
        Some(joint.3)
    }

    fn has(&self, before: &str, mark: char, after: &str) -> bool {
        let single = |word: &str| word.chars().count() == 1;
        self.joints.iter().any(|(left, known, right, _)| {
            let fits_left = left == before || single(before) && left.ends_with(before);
            let fits_right = right == after || single(after) && right.starts_with(after);
            *known == mark && fits_left && fits_right
        })
    }

    /// Whether a token of the text belongs to an address: then no other form of its word will do.
    pub(super) fn holds(&self, word: &str) -> bool {
        self.joints.iter().any(|(before, _, after, _)| before == word || after == word)
    }
}

/// Separators of an address as they are said.
fn separator(word: &str) -> Option<char> {
    let names = [
        ('.', "dot|punkt|punto|point|ponto|ドット|डॉट"),
        ('@', "at|@|arroba|arobase|アットマーク|アット|ऐट|एट"),
        ('_', "underscore|unterstrich|sublinhado|アンダースコア|अंडरस्कोर|guion bajo"),
        ('-', "hyphen|dash|bindestrich|guion|tiret|hífen|traço|ハイフン|हाइफ़न|minus"),
        ('+', "plus|más|mais"),
    ];
    names.into_iter().find(|(_, list)| is_one_of(word, list)).map(|(mark, _)| mark)
}

/// Whether the words before `at` say that something ends in what follows: "ending in 4 4 1 7".
pub(super) fn is_after_ending(language: Language, tokens: &[Token], at: usize) -> bool {
    let endings = match language {
        Language::En => {
            "ending|ending in|ending with|ends in|ends with|end in|finishing in|last four|last four digits|last digits"
        }
        Language::De => "endet auf|endend auf|mit der endung|am ende|endung|zum schluss",
        Language::Es => "termina en|terminada en|terminado en|acaba en|acabada en|acabado en",
        Language::Fr => "se termine par|se terminant par|finit par|finissant par|terminant par",
        Language::Pt => "termina em|terminado em|terminada em|final|acaba em",
        Language::Ja => "末尾|末尾は|末尾が",
        Language::Hi => "आखिरी|अंत में",
    };
    (at.saturating_sub(4)..at).any(|start| start + longest(tokens, start, endings) == at)
}

/// All of it, whatever it comes to: no answer to a question that names a sum.
pub(super) fn whole(language: Language) -> &'static str {
    match language {
        Language::En => "all of it|all of that|everything|the lot|the whole thing|the whole amount",
        Language::De => "alles davon|alles was da ist|das ganze|den ganzen betrag|alles geld",
        Language::Es => "todo el dinero|todo eso|todo lo que hay|la totalidad",
        Language::Fr => "la totalité|tout l argent|tout ce qu il y a|l intégralité",
        Language::Pt => "todo o dinheiro|tudo isso|tudo o que há|a totalidade",
        Language::Ja => "全額|全部",
        Language::Hi => "पूरा|सारा|सारे|सब",
    }
}

/// "One room" where another number of rooms was asked: the article at `at` counts what stands behind it.
pub(super) fn miscounts(language: Language, question: &[Token], reply: &[Token], at: usize) -> bool {
    let articles = match language {
        Language::De => "ein|eine|einen|einem|einer",
        Language::Es => "un|una",
        Language::Fr => "un|une",
        Language::Pt => "um|uma",
        Language::En => "a|an|another",
        Language::Ja | Language::Hi => return false,
    };
    let (true, Some(noun)) = (is_one_of(&reply[at].text, articles), reply.get(at + 1)) else { return false };
    let shared = |word: &str| word.chars().zip(noun.text.chars()).take_while(|(a, b)| a == b).count();
    let same = |word: &str| {
        shared(word) >= 3 && shared(word) + 3 >= word.chars().count().max(noun.text.chars().count())
    };
    let counted = |at: usize| {
        (at.saturating_sub(3)..at).any(|start| {
            number(language, question, start)
                .is_some_and(|n| n.next == at && !n.ordinal && n.value.is_some_and(|value| value > 1))
        })
    };
    (1..question.len()).any(|at| same(&question[at].text) && counted(at))
}

/// Words that bring in something new: "send a taxi" is an order of its own, "send the taxi" repeats one.
pub(super) const INDEFINITE: &str = "a|an|another|some|ein|eine|einen|un|una|une|um|uma|एक";
