//! Questions of two deeds: "Shall I keep Monday and cancel Tuesday?" What a reply puts together must stand together in the
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

/// Two halves of a question, as ranges of its tokens.
struct Halves<'a> {
    asked: &'a [Token],
    /// The word that joins them.
    join: usize,
}

/// Says that one takes the other's place, so that both may be named at once.
const INSTEAD: &str = "instead|statt|anstatt|anstelle|lugar|vez|lieu|place";

/// The words of a reply, as `(start, end)`, that the question has on two sides of its "and".
pub(super) fn crossed(language: Language, asked: &[Token], reply: &[Token]) -> Option<(usize, usize)> {
    let halves = Halves::of(language, asked)?;
    let mut start = 0;
    for end in 1..=reply.len() {
        let cut = reply.get(end).is_none_or(|t| t.starts_clause || is_one_of(&t.text, JOINS));
        if !cut {
            continue;
        }
        let votes: Vec<usize> = (start..end).filter_map(|at| halves.side(reply, at)).collect();
        let instead = reply[start..end].iter().any(|t| is_one_of(&t.text, INSTEAD));
        if votes.contains(&0) && votes.contains(&1) && !instead {
            return Some((start, end));
        }
        start = end;
    }
    None
}

impl<'a> Halves<'a> {
    fn of(language: Language, asked: &'a [Token]) -> Option<Self> {
        let values = spans(language, asked);
        (1..asked.len()).filter(|at| is_one_of(&asked[*at].text, JOINS)).find_map(|join| {
            let (before, after) = (0..join, join + 1..asked.len());
            let does = |half: &core::ops::Range<usize>| half.clone().any(|at| deed(asked, at).is_some());
            let deeds = does(&before) && does(&after);
            let kinds = |half: &core::ops::Range<usize>| -> Vec<_> {
                let inside = |span: &&Span| half.contains(&span.start);
                values.iter().filter(inside).filter(|span| is_number(span)).collect()
            };
            let named = |half: &core::ops::Range<usize>| half.clone().any(|at| asked[at].capital);
            let alike = named(&before) && named(&after);
            let shares = alike && !kinds(&before).is_empty() && !kinds(&after).is_empty();
            (deeds || shares).then_some(Self { asked, join })
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
        let (before, after) = ((0..self.join).any(same), (self.join + 1..self.asked.len()).any(same));
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
