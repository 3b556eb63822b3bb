//! The vetoes, and the order in which they are tried.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::Reply;
use super::asked::asked;
use super::grammar::{Item, Kind, items, said};
use super::halves;
use super::lexicon::{self, Class, Language, Lexicon};
use super::marks::{markup, strange};
use super::order::{self, Addresses};
use super::pairs::{Pairs, codes, lead};
use super::scope;
use super::text::{Token, is_one_of, longest, spoken, tokens};
use super::value::{Found, Known, Span, Value};

/// Longest reply that is read, in characters. No plain yes is that long.
pub const LONGEST_REPLY: usize = 2_000;

/// Least confidence of the recogniser, in percent, at which words may be a yes.
pub const LEAST_CONFIDENCE: u8 = 40;

/// Longest question and input that are read, in characters: more is cut, which can only veto more.
const LONGEST_CONTEXT: usize = 20_000;

/// Why a yes is not taken as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Veto {
    /// Which rule fired.
    pub kind: VetoKind,
    /// On which words; empty where it is not about words.
    pub words: String,
}

impl fmt::Display for Veto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.words.is_empty() {
            f.write_str(self.kind.name())
        } else {
            write!(f, "{}: {:?}", self.kind.name(), self.words)
        }
    }
}

/// The rules, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VetoKind {
    /// Nothing is known of the language.
    Language,
    /// The reply is longer than [`LONGEST_REPLY`].
    TooLong,
    /// The agent said something else after the question.
    Adjacency,
    /// More than one person spoke.
    Speakers,
    /// The recogniser was not sure.
    Confidence,
    /// There are no words.
    NoWords,
    /// The words talk to the checker.
    Injection,
    /// The same words over and over: a recogniser's loop.
    Repetition,
    /// The words ask something.
    Question,
    /// The words deny.
    Negation,
    /// The words ask for time.
    Hold,
    /// The words make it depend on something.
    Condition,
    /// The words change something.
    Correction,
    /// The words are not sure.
    Hedge,
    /// The words are somebody else's, or spoken to somebody else.
    Relayed,
    /// The words answer something else.
    Elsewhere,
    /// An idiom that often means the opposite.
    Idiom,
    /// A value that is neither in the question nor in the input.
    Value,
    /// Words that are neither politeness nor in the question or the input.
    Unrelated,
    /// No word says yes.
    NoAffirmation,
    /// The words take note, but the question asked whether something is true.
    Acknowledgement,
    /// Only one detail is confirmed.
    Partial,
    /// The sentence is not finished.
    Unfinished,
    /// The question was a denial: a yes has two readings.
    NegatedQuestion,
    /// The question offered a choice.
    Choice,
}

impl VetoKind {
    /// The rule's name, as the evidence record has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Language => "language",
            Self::TooLong => "too long",
            Self::Adjacency => "agent speech after the question",
            Self::Speakers => "several speakers",
            Self::Confidence => "low confidence",
            Self::NoWords => "no words",
            Self::Injection => "injection",
            Self::Repetition => "repetition",
            Self::Question => "question",
            Self::Negation => "negation",
            Self::Hold => "hold",
            Self::Condition => "condition",
            Self::Correction => "correction",
            Self::Hedge => "hedge",
            Self::Relayed => "relayed",
            Self::Elsewhere => "other matter",
            Self::Idiom => "idiom",
            Self::Value => "value not asked",
            Self::Unrelated => "words not asked",
            Self::NoAffirmation => "no affirmation",
            Self::Acknowledgement => "acknowledgement only",
            Self::Partial => "one detail only",
            Self::Unfinished => "unfinished",
            Self::NegatedQuestion => "negated question",
            Self::Choice => "choice",
        }
    }
}

/// Whether a yes must be taken as unclear, and why: the first rule that fires.
///
/// `None` says nothing about what the words mean; it only lets the model's yes stand.
pub fn veto(reply: &Reply<'_>) -> Option<Veto> {
    if let Some(kind) = circumstance(reply) {
        return Some(Veto { kind, words: String::new() });
    }
    let Some(language) = Language::from_tag(reply.language) else {
        return Some(Veto { kind: VetoKind::Language, words: reply.language.to_string() });
    };
    if let Some(mark) = markup(reply.words) {
        return Some(Veto { kind: VetoKind::Injection, words: mark.to_string() });
    }
    if let Some(mark) = strange(reply.words) {
        return Some(Veto { kind: VetoKind::Unrelated, words: mark.to_string() });
    }
    let tokens = spoken(language, reply.words);
    if tokens.is_empty() {
        return Some(Veto { kind: VetoKind::NoWords, words: String::new() });
    }
    let lexicon = lexicon::of(language);
    let judge = Judge::new(reply, language, lexicon, &tokens);
    judge.veto(reply)
}

/// What does not depend on the words.
fn circumstance(reply: &Reply<'_>) -> Option<VetoKind> {
    if reply.words.chars().nth(LONGEST_REPLY).is_some() {
        return Some(VetoKind::TooLong);
    }
    if reply.agent_speech_after {
        return Some(VetoKind::Adjacency);
    }
    if reply.speakers.is_some_and(|n| n > 1) {
        return Some(VetoKind::Speakers);
    }
    reply.confidence.is_some_and(|percent| percent < LEAST_CONFIDENCE).then_some(VetoKind::Confidence)
}

struct Judge<'a> {
    language: Language,
    lexicon: &'a Lexicon,
    tokens: &'a [Token],
    items: Vec<Item>,
    question: Vec<Token>,
    input: Vec<Token>,
    /// What of the question asks.
    asking: Vec<Token>,
    /// Question and input.
    held: Vec<Token>,
    known: Known,
    addresses: Addresses,
    /// The reply's values.
    said: Vec<Span>,
}

impl<'a> Judge<'a> {
    fn new(reply: &Reply<'_>, language: Language, lexicon: &'a Lexicon, tokens: &'a [Token]) -> Self {
        let cut = |text: &str| text.chars().take(LONGEST_CONTEXT).collect::<String>();
        let question = super::text::tokens(&cut(reply.question));
        let input = reply.input_json.map(|json| values_of(&cut(json))).unwrap_or_default();
        let mut known = Known::default();
        known.add(language, &question);
        known.add(language, &input);
        let held: Vec<Token> = question.iter().chain(&input).cloned().collect();
        let addresses = Addresses::of(&held);
        let items = items(language, lexicon, tokens);
        let said = items.iter().filter_map(span).collect();
        let asking = scope::asking(&cut(reply.question), &question);
        Self { language, lexicon, tokens, items, question, asking, input, held, known, addresses, said }
    }

    fn veto(&self, reply: &Reply<'_>) -> Option<Veto> {
        self.phrases(reply).or_else(|| self.contents()).or_else(|| self.answer(reply))
    }

    fn on(&self, kind: VetoKind, item: &Item) -> Veto {
        Veto { kind, words: said(self.language, &self.tokens[item.start..item.end]) }
    }

    /// Phrases that say something other than yes.
    fn phrases(&self, reply: &Reply<'_>) -> Option<Veto> {
        let of = |class: Class| self.items.iter().find(move |item| item.class() == Some(class));
        if let Some(item) = of(Class::Injection) {
            return Some(self.on(VetoKind::Injection, item));
        }
        if let Some(item) = self.loops() {
            return Some(self.on(VetoKind::Repetition, item));
        }
        if let Some(mark) = reply.words.chars().find(|c| matches!(c, '?' | '？' | '¿' | '؟')) {
            return Some(Veto { kind: VetoKind::Question, words: mark.to_string() });
        }
        self.items.iter().find_map(|item| {
            let kind = match item.class()? {
                Class::Negation => VetoKind::Negation,
                Class::Hold => VetoKind::Hold,
                Class::Question => VetoKind::Question,
                Class::Condition => VetoKind::Condition,
                Class::Correction => VetoKind::Correction,
                Class::Hedge => VetoKind::Hedge,
                Class::Relay => VetoKind::Relayed,
                Class::Elsewhere => VetoKind::Elsewhere,
                Class::Idiom => VetoKind::Idiom,
                Class::Injection => VetoKind::Injection,
                Class::Yes | Class::Grant | Class::Weak | Class::Detail | Class::Neutral | Class::And => {
                    return None;
                }
            };
            (!self.repeats(item) && !self.echoes(item)).then(|| self.on(kind, item))
        })
    }

    /// "Yes, cancel it" where cancelling was asked: the words of the question are no denial of it.
    fn repeats(&self, item: &Item) -> bool {
        let led = self.items.iter().any(|other| match other.class() {
            Some(Class::Yes) => true,
            Some(Class::Grant) => other.start < item.start,
            _ => false,
        });
        let kind =
            matches!(item.class(), Some(Class::Negation | Class::Correction | Class::Hold | Class::Relay));
        let asked = |at: usize| {
            let token = &self.tokens[at];
            // What undoes something must be what is asked, not what is said beside it.
            let undoes = scope::deed(self.tokens, at) == Some(scope::UNDOING);
            let question = if undoes { &self.asking } else { &self.question };
            let denies = is_one_of(&token.text, self.lexicon.negators)
                || is_one_of(&token.text, "no|non|nein|nicht|pas|without|sin|sem|ohne|sans|or|but");
            let pronoun = is_one_of(&token.text, "it|that|es|das|eso|ça|isso");
            !denies && (pronoun || question.iter().any(|t| t.text == token.text))
        };
        led && kind && self.language != Language::Ja && (item.start..item.end).all(asked)
    }

    /// "I will" where the question asks "will you?".
    fn echoes(&self, item: &Item) -> bool {
        let word = |at: usize| self.tokens[at].text.as_str();
        let asked =
            |verb: &str| self.question.windows(2).any(|pair| pair[0].text == verb && pair[1].text == "you");
        item.class() == Some(Class::Elsewhere)
            && self.language == Language::En
            && matches!(word(item.start), "i" | "we")
            && item.end == item.start + 2
            && asked(if word(item.start + 1) == "ll" { "will" } else { word(item.start + 1) })
    }

    /// The same phrase four times.
    fn loops(&self) -> Option<&Item> {
        let text = |item: &Item| said(self.language, &self.tokens[item.start..item.end]).to_lowercase();
        let mut seen: Vec<(String, usize)> = Vec::new();
        for item in
            self.items.iter().filter(|item| !matches!(item.class(), Some(Class::Neutral | Class::And)))
        {
            if matches!(item.kind, Kind::Value(_)) {
                continue;
            }
            let text = text(item);
            match seen.iter_mut().find(|(known, _)| *known == text) {
                Some((_, count)) if *count == 3 => return Some(item),
                Some((_, count)) => *count += 1,
                None => seen.push((text, 1)),
            }
        }
        None
    }

    /// Values and words that were not asked, or asked in another order.
    fn contents(&self) -> Option<Veto> {
        let strange = self.items.iter().find_map(|item| match &item.kind {
            Kind::Value(found) => (!self.is_known(item, found)).then(|| self.on(VetoKind::Value, item)),
            Kind::Word => {
                let said = &self.tokens[item.start];
                let known = self.question.iter().any(|t| self.same_word(t, said))
                    || self.is_in_input(&said.text)
                    || self.is_written_out(said)
                    || self.known.spells(&said.text);
                (!known).then(|| self.on(VetoKind::Unrelated, item))
            }
            Kind::Phrase(_) => None,
        });
        strange.or_else(|| self.scope()).or_else(|| self.disorder()).or_else(|| self.whole())
    }

    /// Details, deeds and people that are not those of the question.
    fn scope(&self) -> Option<Veto> {
        let strays = |item: &&Item| match item.class() {
            Some(Class::Detail) => !scope::is_asked(self.language, &self.held, self.tokens, item),
            Some(Class::Grant) => scope::is_other_deed(&self.asking, self.tokens, item),
            _ => false,
        };
        if let Some(item) = self.items.iter().find(strays) {
            return Some(self.on(VetoKind::Unrelated, item));
        }
        if let Some(at) = scope::bounds(self.language, &self.items, &self.held, self.tokens) {
            let words = said(self.language, &self.tokens[at..self.tokens.len().min(at + 2)]);
            return Some(Veto { kind: VetoKind::Value, words });
        }
        let recipient = scope::other_recipient(self.language, &self.held, self.tokens);
        let pairs = Pairs::new(self.language, &self.question, self.tokens, &self.said);
        let crossed = || halves::crossed(self.language, &self.question, self.tokens);
        let own = || scope::is_callers_own(self.language, &self.question, self.tokens);
        let found =
            recipient.or_else(own).or_else(|| pairs.mispaired()).or_else(crossed).or_else(|| self.mistyped());
        let (start, end) = found?;
        let words = said(self.language, &self.tokens[start..end.min(self.tokens.len())]);
        Some(Veto { kind: VetoKind::Value, words })
    }

    /// A row of letters and figures that is no part of the question's.
    fn mistyped(&self) -> Option<(usize, usize)> {
        let known = codes(self.language, &self.question);
        let held: String = self.input.iter().map(|t| t.text.as_str()).collect();
        let is_part = |code: &str| known.iter().any(|(row, ..)| row.contains(code)) || held.contains(code);
        let (_, start, end) = codes(self.language, self.tokens)
            .into_iter()
            .find(|(code, ..)| !known.is_empty() && !is_part(code))?;
        Some((start, end))
    }

    /// Words of the question in places where the question has others.
    fn disorder(&self) -> Option<Veto> {
        let on = |kind, start: usize, end: usize| {
            Some(Veto { kind, words: said(self.language, &self.tokens[start..end]) })
        };
        for (start, end) in order::runs(&self.items, self.tokens) {
            let run = &self.tokens[start..end];
            let in_a_row = order::occurs(&self.question, run) || order::occurs(&self.input, run);
            if end - start > 1 && !in_a_row {
                return on(VetoKind::Unrelated, start, end);
            }
            if order::swapped(self.language, &self.question, self.tokens, start, end) {
                return on(VetoKind::Value, start, end);
            }
        }
        let details = self.items.iter().filter(|item| item.class() == Some(Class::Detail));
        for item in details {
            if order::swapped(self.language, &self.question, self.tokens, item.start, item.end) {
                return on(VetoKind::Value, item.start, item.end);
            }
        }
        let miscounts = |at: &usize| order::miscounts(self.language, &self.question, self.tokens, *at);
        let phrases = self.items.iter().filter(|item| matches!(item.kind, Kind::Phrase(_)));
        if let Some(at) = phrases.map(|item| item.start).find(miscounts) {
            return on(VetoKind::Value, at, (at + 2).min(self.tokens.len()));
        }
        let at = Addresses::of(self.tokens).strange(&self.addresses, self.tokens)?;
        on(VetoKind::Value, at, at + 1)
    }

    /// "All of it" where a sum was asked.
    fn whole(&self) -> Option<Veto> {
        let item = self.items.iter().find(|item| {
            longest(self.tokens, item.start, order::whole(self.language)) == item.end - item.start
        })?;
        self.known.has_money().then(|| self.on(VetoKind::Value, item))
    }

    /// An address written where the question spells it: its joints are compared one by one.
    fn is_written_out(&self, said: &Token) -> bool {
        let mut parts = said.text.split(['@', '.', '_', '-', '+']).filter(|part| !part.is_empty());
        said.text.contains(['@', '.']) && parts.all(|part| self.addresses.holds(part))
    }

    /// A value that was asked, and where it was asked: after "cancel" only what the question has after "cancel".
    fn is_known(&self, item: &Item, found: &Found) -> bool {
        let number = matches!(found.readings.first().and_then(|r| r.first()), Some(Value::Figures { .. }));
        if number && order::is_after_ending(self.language, self.tokens, item.start) {
            return self.known.ends_in(found);
        }
        let before = lead(self.tokens, &self.said, item.start);
        self.known.covers(found) && self.known.fits_after(before, found)
    }

    /// The same word, or another form of it, unless it is a name, a single letter or part of an address.
    fn same_word(&self, asked: &Token, said: &Token) -> bool {
        if asked.text == said.text || is_abbreviation(&asked.text, &said.text) {
            return true;
        }
        let fixed = |token: &Token| {
            token.capital || token.text.contains(['@', '.']) || self.addresses.holds(&token.text)
        };
        !fixed(asked) && !fixed(said) && is_inflected(&asked.text, &said.text)
    }

    fn is_in_input(&self, word: &str) -> bool {
        let parts = |t: &Token| t.text.split(['@', '.', '_', '-', '+']).any(|part| part == word);
        let whole = word.chars().count() > 1;
        whole && (self.input.iter().any(|t| t.text == word || parts(t)) || self.question.iter().any(parts))
    }

    /// Whether what is left is a yes to this question.
    fn answer(&self, reply: &Reply<'_>) -> Option<Veto> {
        let asked = asked(self.language, self.lexicon, reply.question);
        let plain = |kind| Some(Veto { kind, words: said(self.language, self.tokens) });
        let strong = self.items.iter().position(|i| matches!(i.class(), Some(Class::Yes | Class::Grant)));
        let weak = self.items.iter().position(|i| i.class() == Some(Class::Weak));
        if super::is_continuer(reply.language, reply.words) {
            return plain(VetoKind::Acknowledgement);
        }
        let first = match (strong, weak) {
            (None, None) if self.states(reply.question) => 0,
            (None, None) => return plain(VetoKind::NoAffirmation),
            (None, Some(_)) if self.hums() => return plain(VetoKind::Hedge),
            (Some(_), None) if self.orders() => return plain(VetoKind::NoAffirmation),
            (None, Some(_)) if !asked.leave => return plain(VetoKind::Acknowledgement),
            (None, Some(_)) if self.gushes() => return plain(VetoKind::Idiom),
            (strong, weak) => strong.unwrap_or(usize::MAX).min(weak.unwrap_or(usize::MAX)),
        };
        let content = self.items.iter().take(first).any(Item::is_content);
        if content || scope::is_partial(self.language, &self.items, &self.question, self.tokens) {
            return plain(VetoKind::Partial);
        }
        let cut_off = |item: &&Item| {
            let word = item.class() == Some(Class::Neutral) && item.end == item.start + 1;
            item.class() == Some(Class::And)
                || word && scope::is_cut_off(self.language, &self.tokens[item.start])
        };
        if let Some(last) = self.items.last().filter(cut_off) {
            return Some(self.on(VetoKind::Unfinished, last));
        }
        if asked.choice {
            return plain(VetoKind::Choice);
        }
        if asked.denial { plain(VetoKind::NegatedQuestion) } else { None }
    }

    /// "That's the right number" to "is that the right number?".
    fn states(&self, question: &str) -> bool {
        let asked = tokens(question);
        let tags = "is that|is this|is it";
        let last = (0..asked.len()).rev().find(|at| longest(&asked, *at, tags) > 0);
        let Some(rest) = last.and_then(|at| asked.get(at + 2..)).filter(|rest| rest.len() > 1) else {
            return false;
        };
        let states = |at: usize| {
            let len = longest(self.tokens, at, "that is|that s|this is|it is|it s");
            let said = self.tokens.get(at + len..).unwrap_or_default();
            len > 0 && said.len() >= rest.len() && said.iter().zip(rest).all(|(a, b)| a.text == b.text)
        };
        self.language == Language::En && (0..self.tokens.len()).any(states)
    }

    /// "Hmm, okay": a sound of thinking before words that only take note.
    fn hums(&self) -> bool {
        self.items
            .iter()
            .any(|item| longest(self.tokens, item.start, self.lexicon.continuers) == item.end - item.start)
    }

    /// "Send a taxi": an order of its own, not leave for the one that was asked.
    fn orders(&self) -> bool {
        let mut affirms = self.items.iter().filter(|i| matches!(i.class(), Some(Class::Yes | Class::Grant)));
        affirms.all(|item| {
            let next = self.tokens.get(item.end);
            item.class() == Some(Class::Grant)
                && next.is_some_and(|t| !t.starts_clause && is_one_of(&t.text, order::INDEFINITE))
        })
    }

    /// "Perfect. Just perfect": praise said twice is seldom praise.
    fn gushes(&self) -> bool {
        let praise: Vec<&Item> = self.items.iter().filter(|i| i.class() == Some(Class::Weak)).collect();
        let text = |item: &Item| self.tokens[item.start].text.as_str();
        praise.iter().enumerate().any(|(at, item)| praise[..at].iter().any(|other| text(other) == text(item)))
    }
}

/// The values of a JSON text, not its keys' punctuation: names, numbers, dates. A time of an instant ("T09:30") is on
/// a 24-hour clock, so its half of the day is known.
fn values_of(json: &str) -> Vec<Token> {
    let mut spaced = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        spaced.push(if "{}[]\"".contains(c) { ' ' } else { c });
        rest = after;
        let instant = c == 'T'
            && spaced.len() > 1
            && spaced[..spaced.len() - 1].ends_with(|c: char| c.is_ascii_digit());
        if let Some(hour) = after.get(..2).and_then(|hour| hour.parse::<u8>().ok()).filter(|_| instant) {
            let len = after.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(after.len());
            spaced.push_str(&after[..len]);
            spaced.push_str(if hour < 12 { " am " } else { " pm " });
            rest = &after[len..];
        }
    }
    tokens(&spaced)
}

/// A value among the items, with its place.
fn span(item: &Item) -> Option<Span> {
    match &item.kind {
        Kind::Value(found) => {
            Some(Span { start: item.start, end: item.end, readings: found.readings.clone() })
        }
        Kind::Phrase(_) | Kind::Word => None,
    }
}

/// Titles and parts of addresses, short and written out: recognisers write either.
const ABBREVIATIONS: &[&str] = &[
    "dr|doctor|doktor|docteur|doutor",
    "dra|doctora|doutora",
    "mr|mister",
    "mrs|missus|missis",
    "prof|professor|profesor|professeur",
    "st|street|saint",
    "str|straße|strasse",
    "ave|av|avenue|avenida|avda",
    "rd|road",
    "apt|apartment",
    "blvd|boulevard",
    "sr|señor|senhor",
    "sra|señora|senhora",
    "mme|madame",
    "hr|herr",
];

fn is_abbreviation(asked: &str, said: &str) -> bool {
    ABBREVIATIONS.iter().any(|row| is_one_of(asked, row) && is_one_of(said, row))
}

/// Another form of a word ("book", "booking"), by what the two share.
pub(super) fn is_inflected(asked: &str, said: &str) -> bool {
    let (a, b) = (asked.chars().count(), said.chars().count());
    let shared = asked.chars().zip(said.chars()).take_while(|(x, y)| x == y).count();
    let alphabetic = |word: &str| word.chars().all(char::is_alphabetic);
    let ending = |word: &str| {
        word.chars().skip(shared).all(|c| matches!(c, '\u{93e}'..='\u{94c}' | '\u{900}'..='\u{903}'))
    };
    let indic = |word: &str| word.chars().any(|c| matches!(c, '\u{900}'..='\u{97f}'));
    let indic_form = !(indic(asked) || indic(said)) || ending(asked) && ending(said);
    shared >= 4
        && a.max(b) - shared <= 4
        && shared * 2 > a.max(b)
        && (alphabetic(asked) || !said.is_ascii())
        && indic_form
}
