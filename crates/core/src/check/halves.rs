//! Questions of two halves: "Shall I keep Monday and cancel Tuesday?", "from Thursday at 3 to Friday at 4?" What a reply puts together must stand together in the
//! question: not "cancel Monday". (A reply that names one of the two with its own is taken for both, as people mean it.)

use alloc::vec::Vec;

use super::lexicon::Language;
use super::scope;
use super::text::{Token, is_ideograph, is_one_of};
use super::value::{Span, Value, spans};

/// Words that join two deeds.
const JOINS: &str = "and|und|y|e|et|और|करके|कर";

/// Words without a content of their own, which one half may have and the other not.
const EMPTY: &str = "the|your|our|their|his|her|from|for|with|and|please|one|ones|that|this|to|shall|should|would|will|\
    der|die|das|den|dem|des|ein|eine|einen|einem|ihren|ihr|ihre|mein|meinen|mit|nach|bei|zum|zur|fur|soll|ich|und|bitte|\
    los|las|una|uno|para|con|por|del|que|quiere|les|des|une|pour|avec|dans|sur|celui|celle|dois|faut|votre|uma|com|\
    quer|posso|को|का|की|के|से|में|पर|है|हैं|हूं|मैं|क्या|दूं|वाली|वाला";

/// Two halves of a question.
struct Halves<'a> {
    asked: &'a [Token],
    /// Where the first one begins.
    from: usize,
    /// The word between them.
    join: usize,
    /// The second takes the first one's place: "from Thursday to Friday".
    moves: bool,
}

/// Says that one takes the other's place, so that both may be named at once.
const INSTEAD: &str = "instead|statt|anstatt|anstelle|lugar|vez|lieu|place";

/// The words before what is left behind and before what takes its place, where both are values.
fn leads(language: Language) -> (&'static str, &'static str) {
    match language {
        Language::En => ("from", "to"),
        Language::De => ("von|vom", "auf|nach|zu|zum"),
        Language::Es => ("del|de|desde", "al|hasta"),
        Language::Fr => ("du|depuis", "au|vers"),
        Language::Pt => ("do|da|desde", "para|pro|pra"),
        Language::Ja | Language::Hi => ("", ""),
    }
}

/// The words of a reply, as `(start, end)`, that the question has on two sides of its "and", or of its "from … to", or
/// that name nothing but what is to be left behind.
pub(super) fn crossed(language: Language, asked: &[Token], reply: &[Token]) -> Option<(usize, usize)> {
    let halves = Halves::of(language, asked)?;
    let (from, to) = if halves.moves { leads(language) } else { ("", "") };
    let is_lead = |t: &Token| is_one_of(&t.text, from) || is_one_of(&t.text, to);
    let (mut start, mut sides, mut led) = (0, [false; 2], false);
    for end in 1..=reply.len() {
        let cut = |t: &Token| t.starts_clause || is_one_of(&t.text, JOINS) || is_lead(t);
        if !reply.get(end).is_none_or(cut) {
            continue;
        }
        let lead = |at: usize| {
            let word = &reply[at].text;
            (is_one_of(word, from).then_some(0)).or(is_one_of(word, to).then_some(1))
        };
        let votes: Vec<usize> =
            (start..end).filter_map(|at| lead(at).or_else(|| halves.side(reply, at))).collect();
        let instead = reply[start..end].iter().any(|t| is_one_of(&t.text, INSTEAD));
        if votes.contains(&0) && votes.contains(&1) && !instead {
            return Some((start, end));
        }
        votes.iter().for_each(|side| sides[*side] = true);
        led |= instead || reply[start..end].iter().any(is_lead);
        start = end;
    }
    (halves.moves && !led && sides == [true, false]).then_some((0, reply.len()))
}

impl<'a> Halves<'a> {
    fn of(language: Language, asked: &'a [Token]) -> Option<Self> {
        let values = spans(language, asked);
        let moved = Self::moved(language, asked, &values);
        moved.or_else(|| Self::joined(asked, &values))
    }

    /// "From Thursday at 3 to Friday at 4".
    fn moved(language: Language, asked: &'a [Token], values: &[Span]) -> Option<Self> {
        let (before, behind) = leads(language);
        let from = asked.iter().position(|t| is_one_of(&t.text, before))?;
        (from + 1..asked.len()).filter(|at| is_one_of(&asked[*at].text, behind)).find_map(|join| {
            let inside = |span: &&Span| (from..join).contains(&span.start);
            let taken = |span: &Span| values.iter().any(|o| o.start > join && o.kind() == span.kind());
            values.iter().filter(inside).any(taken).then_some(Self { asked, from, join, moves: true })
        })
    }

    /// "Keep Monday and cancel Tuesday".
    fn joined(asked: &'a [Token], values: &[Span]) -> Option<Self> {
        (1..asked.len()).filter(|at| is_one_of(&asked[*at].text, JOINS)).find_map(|join| {
            let (before, after) = (0..join, join + 1..asked.len());
            let does = |half: &core::ops::Range<usize>| half.clone().any(|at| deed(asked, at).is_some());
            let number = |half: &core::ops::Range<usize>| {
                values.iter().any(|span| half.contains(&span.start) && is_number(span))
            };
            let named = |half: &core::ops::Range<usize>| half.clone().any(|at| asked[at].capital);
            let shares = named(&before) && named(&after) && number(&before) && number(&after);
            let deeds = does(&before) && does(&after);
            (deeds || shares).then_some(Self { asked, from: 0, join, moves: false })
        })
    }

    /// The half that has this word, if only one has it.
    fn side(&self, reply: &[Token], at: usize) -> Option<usize> {
        let said = &reply[at];
        let short = said.text.chars().count() < 3 && !said.capital && !said.text.chars().any(is_sign);
        let told = deed(reply, at);
        if told.is_none() && (short || is_one_of(&said.text, EMPTY)) {
            return None;
        }
        let same = |i: usize| {
            let word = &self.asked[i];
            let inflected = !word.capital && super::veto::is_inflected(&word.text, &said.text);
            word.text == said.text || inflected || told.is_some() && deed(self.asked, i) == told
        };
        let (before, after) = ((self.from..self.join).any(same), (self.join + 1..self.asked.len()).any(same));
        match (before, after) {
            (true, false) => Some(0),
            (false, true) => Some(1),
            (true, true) | (false, false) => None,
        }
    }
}

fn is_number(span: &Span) -> bool {
    matches!(span.value(), Some(Value::Figures { .. } | Value::Money { .. }))
}

/// A character that is a word of its own, or a figure.
fn is_sign(c: char) -> bool {
    c.is_numeric() || is_ideograph(c) || matches!(c, '\u{900}'..='\u{97f}')
}

/// More deeds than those that [`scope`] compares, by the beginnings of words for them, with numbers behind its own.
const MORE: &[&str] = &[
    "keep|leave|behalt|lass|mantén|mante|mantener|conserv|dejar|deje|gard|laiss|manter|deix|रख",
    "add|hinzufüg|añad|agreg|ajout|adicion|जोड़",
    "remov|entfern|quit|retir|enlev|remover|हटा",
    "close|schließ|cerr|cierr|ferm|fech",
    "open|öffn|abr|ouvr",
    "call|anruf|llam|appel|lig",
];

/// Words that only begin like one of those.
const NONE: &str = "address|addresses|adresse|adressen|light|lights|garden|gardens|callas|closet";

fn deed(tokens: &[Token], at: usize) -> Option<usize> {
    if is_one_of(&tokens[at].text, NONE) {
        return None;
    }
    scope::deed(tokens, at).or_else(|| {
        let begins = |row: &&&str| {
            row.split('|').any(|stem| tokens[at].text.starts_with(super::text::fold_text(stem).as_str()))
        };
        MORE.iter().position(|row| begins(&row)).map(|row| 100 + row)
    })
}
