//! Values that the question has, but not together: "Friday at ten" where Friday is cancelled and Monday at ten booked,
//! "from the 14th to the 12th", "one adult and two children", "B 4" for "4 B".

use alloc::string::String;
use alloc::vec::Vec;

use super::lexicon::Language;
use super::scope;
use super::text::{Token, is_one_of, longest};
use super::value::{Span, Value, spans};

/// Words between a value and the one that gives it its part.
const SKIPPED: &str = "the|a|an|of|der|den|dem|die|das|el|la|los|las|le|les|l|o|os|as|um|uma";

/// Words that join two values and give neither a part.
const JOINS: &str = "and|und|y|e|et|और";

/// The word before the value at `start`, behind any article and any other value that it follows directly: "to" in "to
/// March 14". Empty at the beginning of a clause.
pub(super) fn lead<'a>(tokens: &'a [Token], spans: &[Span], start: usize) -> &'a str {
    let mut at = start;
    while at > 0 && !tokens[at].starts_clause {
        if let Some(before) = spans.iter().find(|span| span.end == at) {
            at = before.start;
        } else if is_one_of(&tokens[at - 1].text, SKIPPED) {
            at -= 1;
        } else if is_one_of(&tokens[at - 1].text, JOINS) {
            return "";
        } else {
            return &tokens[at - 1].text;
        }
    }
    ""
}

/// The noun that a value counts: the word right behind it.
fn tail<'a>(tokens: &'a [Token], span: &Span) -> &'a str {
    tokens.get(span.end).filter(|t| !t.starts_clause).map_or("", |t| t.text.as_str())
}

/// The values of a reply against those of its question.
pub(super) struct Pairs<'a> {
    asked: &'a [Token],
    reply: &'a [Token],
    known: Vec<Span>,
    said: &'a [Span],
}

impl<'a> Pairs<'a> {
    pub(super) fn new(language: Language, asked: &'a [Token], reply: &'a [Token], said: &'a [Span]) -> Self {
        Self { asked, reply, known: spans(language, asked), said }
    }

    /// The first two values that the question has in another order or with others, as `(start, end)` in the reply.
    pub(super) fn mispaired(&self) -> Option<(usize, usize)> {
        let counted =
            self.said.iter().find(|span| self.miscounts(span)).map(|span| (span.start, span.end + 1));
        let reversed = || {
            self.said.iter().enumerate().find_map(|(at, first)| {
                let second = self.said[at + 1..].iter().find(|span| span.kind() == first.kind())?;
                self.is_reversed(first, second).then_some((first.start, second.end))
            })
        };
        let strayed = || {
            self.said.windows(2).find_map(|pair| {
                let [first, second] = pair else { return None };
                let strays = first.kind() != second.kind()
                    && !self.replaced(second)
                    && (self.strays(first, second) || self.strays(second, first));
                strays.then_some((first.start, second.end))
            })
        };
        let misled = || self.said.iter().find(|span| self.is_misled(span)).map(|span| (span.start, span.end));
        let undone = || self.said.iter().find(|span| self.is_undone(span)).map(|span| (span.start, span.end));
        let doubled = || {
            let doubled = |(at, first): (usize, &Span)| {
                let second = self.said[at + 1..].iter().find(|second| self.is_doubled(first, second));
                let itself = self.is_double(first).then_some(first);
                Some((first.start, second.or(itself)?.end))
            };
            self.said.iter().enumerate().find_map(doubled)
        };
        counted.or_else(reversed).or_else(strayed).or_else(misled).or_else(undone).or_else(doubled)
    }

    /// "Fifty fifty", "50 to Bob and 50 to Bob", where 50 was asked once: each of two, or half and half. Said again in a
    /// clause of its own ("fifty, yes, fifty") it is the same one.
    fn is_doubled(&self, first: &Span, second: &Span) -> bool {
        let number = matches!(first.value(), Some(Value::Figures { .. } | Value::Money { .. }));
        let between = self.reply.get(first.end..second.start).unwrap_or_default();
        let breaks = |t: &Token| t.starts_clause && !is_one_of(&t.text, JOINS);
        let joined = second.start == first.end || between.iter().any(|t| is_one_of(&t.text, JOINS));
        let apart = between.iter().any(breaks) || self.reply[second.start].starts_clause;
        let once = matches!(self.places(first).as_slice(), [_]) && self.places(first) == self.places(second);
        number && joined && !apart && once
    }

    /// "Fifty fifty" read as one: a row of the same number that the question does not have as a row.
    fn is_double(&self, said: &Span) -> bool {
        let repeats = |reading: &Vec<Value>| {
            let number = |value: &Value| matches!(value, Value::Figures { .. });
            reading.len() > 1 && reading.windows(2).all(|pair| pair[0] == pair[1] && number(&pair[0]))
        };
        let row = said.readings.iter().find(|reading| repeats(reading));
        row.is_some_and(|row| !self.known.iter().any(|known| known.readings.contains(row)))
    }

    /// "For two" where the question has "table two" and "for Friday".
    fn is_misled(&self, said: &Span) -> bool {
        let led = |known: &Span| lead(self.asked, &self.known, known.start);
        let word = lead(self.reply, self.said, said.start);
        let number = matches!(said.value(), Some(Value::Figures { .. }));
        let places = self.places(said);
        number
            && is_one_of(word, "for|für|para|pour|के")
            && !places.is_empty()
            && !places.iter().any(|at| led(&self.known[*at]) == word)
            && self.known.iter().any(|known| led(known) == word)
    }

    /// Where the question has a value.
    fn places(&self, said: &Span) -> Vec<usize> {
        (0..self.known.len()).filter(|at| self.known[*at].covers(said)).collect()
    }

    /// The same word before it, or behind it, as in the question.
    fn anchored(&self, said: &Span, place: usize) -> bool {
        let known = &self.known[place];
        let leads = (lead(self.reply, self.said, said.start), lead(self.asked, &self.known, known.start));
        let tails = (tail(self.reply, said), tail(self.asked, known));
        let same = |(a, b): (&str, &str)| !a.is_empty() && (a == b || super::veto::is_inflected(b, a));
        same(leads) || same(tails)
    }

    /// "Instead of Friday".
    fn replaced(&self, said: &Span) -> bool {
        let instead = "instead|statt|anstatt|lugar|vez|lieu|place|anstelle";
        is_one_of(lead(self.reply, self.said, said.start), instead)
    }

    /// "Yes, Friday" where Friday is cancelled and another day booked.
    fn is_undone(&self, said: &Span) -> bool {
        let places = self.places(said);
        let rival = self
            .known
            .iter()
            .enumerate()
            .any(|(at, known)| known.kind() == said.kind() && !places.contains(&at));
        let undone = |at: &usize| {
            let start = self.known[*at].start;
            (start.saturating_sub(2)..start).any(|at| scope::deed(self.asked, at) == Some(scope::UNDOING))
        };
        rival
            && !places.is_empty()
            && places.iter().all(undone)
            && !self.replaced(said)
            && !places.iter().any(|at| self.anchored(said, *at))
    }

    fn is_reversed(&self, first: &Span, second: &Span) -> bool {
        let (before, after) = (self.places(first), self.places(second));
        let known = !before.is_empty() && !after.is_empty() && before != after;
        let in_order = before.iter().any(|a| after.iter().any(|b| a < b));
        let anchored = |span: &Span, places: &[usize]| places.iter().any(|at| self.anchored(span, *at));
        let both = anchored(first, &before) && anchored(second, &after);
        known && !in_order && !both && !self.replaced(second)
    }

    /// Whether the question has another value of `value`'s kind nearer to `beside`.
    fn strays(&self, value: &Span, beside: &Span) -> bool {
        let (places, others) = (self.places(value), self.places(beside));
        let rivals: Vec<usize> = (0..self.known.len())
            .filter(|at| self.known[*at].kind() == value.kind() && !places.contains(at))
            .collect();
        if places.is_empty() || others.is_empty() || rivals.is_empty() {
            return false;
        }
        let near = |from: &[usize]| from.iter().flat_map(|a| others.iter().map(|b| a.abs_diff(*b))).min();
        near(&rivals) < near(&places) && !places.iter().any(|at| self.anchored(value, *at))
    }

    /// "Two children" where one child was asked, "two tables" where table two was.
    fn miscounts(&self, said: &Span) -> bool {
        let noun = tail(self.reply, said);
        let number = |span: &Span| matches!(span.value(), Some(Value::Figures { .. }));
        if noun.chars().count() < 3 || !number(said) {
            return false;
        }
        let counts = |known: &&Span| {
            let behind = self.asked[known.end..].iter().take(2).take_while(|t| !t.starts_clause);
            number(known)
                && behind.into_iter().any(|t| t.text == noun || super::veto::is_inflected(&t.text, noun))
        };
        let mut counted = self.known.iter().filter(counts).peekable();
        let numbered = |known: &&Span| {
            let before = known.start.checked_sub(1).map(|at| &self.asked[at]);
            number(known)
                && before.is_some_and(|t| t.text == noun || super::veto::is_inflected(&t.text, noun))
        };
        match counted.peek() {
            Some(_) => !counted.any(|known| known.covers(said)),
            None => self.known.iter().any(|known| numbered(&known)),
        }
    }
}

/// Letters and figures in a row, each row as it would be typed: "b m k 4 1 2" is "bmk412". Only rows that have both.
pub(super) fn codes(language: Language, tokens: &[Token]) -> Vec<(String, usize, usize)> {
    let values = spans(language, tokens);
    let mut out: Vec<(String, usize, usize)> = Vec::new();
    let mut row = (String::new(), 0, 0);
    let mut at = 0;
    while at < tokens.len() {
        let value = values.iter().find(|span| span.start == at);
        let piece = value.map_or_else(
            || is_letter(&tokens[at]).then(|| (tokens[at].text.clone(), at + 1)),
            |span| span.typed().map(|typed| (typed, span.end)),
        );
        if let Some((typed, next)) = piece {
            if row.0.is_empty() {
                row.1 = at;
            }
            row.0.push_str(&typed);
            row.2 = next;
            at = next;
            continue;
        }
        // "Q as in Quebec": the word only says which letter it is.
        let aid = longest(tokens, at, "as in|like|wie|comme|como|de|for");
        if !row.0.is_empty() && row.2 == at && aid > 0 && tokens.get(at + aid).is_some_and(|t| t.capital) {
            at += aid + 1;
            row.2 = at;
            continue;
        }
        out.push(core::mem::take(&mut row));
        at = value.map_or(at + 1, |span| span.end.max(at + 1));
    }
    out.push(row);
    let digit = |code: &str| code.contains(|c: char| c.is_ascii_digit());
    let letter = |code: &str| code.contains(|c: char| c.is_ascii_alphabetic());
    out.retain(|(code, ..)| digit(code) && letter(code));
    out
}

/// A single letter that is no word: not "a", "I" or the like, unless it stands right behind a figure.
fn is_letter(token: &Token) -> bool {
    let mut chars = token.text.chars();
    let single = chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && chars.next().is_none();
    single && !token.elided && (token.glued || !is_one_of(&token.text, "a|i|y|e|o|u"))
}
