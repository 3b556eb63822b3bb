//! The vetoes, and the order in which they are tried.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::Reply;
use super::asked::asked;
use super::grammar::{Item, Kind, items, said};
use super::lexicon::{self, Class, Language, Lexicon};
use super::text::{Token, is_one_of, tokens};
use super::value::{Found, Known};

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
    let tokens = tokens(&despelled(reply.words));
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

/// Marks that nobody speaks: JSON, tags, and the colon of a role, though not of a time.
fn markup(words: &str) -> Option<char> {
    let mut before = ' ';
    words.chars().find(|&c| {
        let role = matches!(c, ':' | '：') && !before.is_numeric();
        before = c;
        role || "{}<>`|\\=#".contains(c)
    })
}

/// "Y-E-S" is "yes": letters joined by hyphens are one word if all are single.
fn despelled(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    for (index, word) in words.split(' ').enumerate() {
        if index > 0 {
            out.push(' ');
        }
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let spelled = bare.contains('-') && bare.split('-').all(|part| part.chars().count() == 1);
        let joined: String = bare.chars().filter(|c| *c != '-').collect();
        if spelled && is_one_of(&joined.to_lowercase(), "yes|ja|oui|sí|sim") {
            out.push_str(&joined)
        } else {
            out.push_str(word)
        }
    }
    out
}

struct Judge<'a> {
    language: Language,
    lexicon: &'a Lexicon,
    tokens: &'a [Token],
    items: Vec<Item>,
    question: Vec<Token>,
    input: Vec<Token>,
    known: Known,
}

impl<'a> Judge<'a> {
    fn new(reply: &Reply<'_>, language: Language, lexicon: &'a Lexicon, tokens: &'a [Token]) -> Self {
        let cut = |text: &str| text.chars().take(LONGEST_CONTEXT).collect::<String>();
        let question = super::text::tokens(&cut(reply.question));
        let input = reply.input_json.map(|json| values_of(&cut(json))).unwrap_or_default();
        let mut known = Known::default();
        known.add(language, &question);
        known.add(language, &input);
        Self { language, lexicon, tokens, items: items(language, lexicon, tokens), question, input, known }
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
            (!self.repeats(item)).then(|| self.on(kind, item))
        })
    }

    /// "Yes, cancel it" where cancelling was asked: the words of the question are no denial of it.
    fn repeats(&self, item: &Item) -> bool {
        let before = self.items.iter().take_while(|other| other.start < item.start);
        let led = before.into_iter().any(|other| matches!(other.class(), Some(Class::Yes | Class::Grant)));
        let kind =
            matches!(item.class(), Some(Class::Negation | Class::Correction | Class::Hold | Class::Relay));
        let asked = |token: &Token| {
            let denies = is_one_of(&token.text, self.lexicon.negators)
                || is_one_of(&token.text, "no|non|nein|nicht|pas|without|sin|sem|ohne|sans|or|but");
            let pronoun = is_one_of(&token.text, "it|that|es|das|eso|ça|isso");
            !denies && (pronoun || self.question.iter().any(|t| t.text == token.text))
        };
        led && kind && self.language != Language::Ja && self.tokens[item.start..item.end].iter().all(asked)
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

    /// Values and words that were not asked.
    fn contents(&self) -> Option<Veto> {
        self.items.iter().find_map(|item| match &item.kind {
            Kind::Value(found) => (!self.is_known(item, found)).then(|| self.on(VetoKind::Value, item)),
            Kind::Word => {
                let said = &self.tokens[item.start];
                let known = self.question.iter().any(|t| same_word(t, said)) || self.is_in_input(&said.text);
                (!known).then(|| self.on(VetoKind::Unrelated, item))
            }
            Kind::Phrase(_) => None,
        })
    }

    /// A value that was asked, and where it was asked: after "cancel" only what the question has after "cancel".
    fn is_known(&self, item: &Item, found: &Found) -> bool {
        let leads = item.start > 0 && !self.tokens[item.start].starts_clause;
        let before = if leads { self.tokens[item.start - 1].text.as_str() } else { "" };
        self.known.covers(found) && self.known.fits_after(before, found)
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
        let first = match (strong, weak) {
            (None, None) => return plain(VetoKind::NoAffirmation),
            (None, Some(_)) if !asked.leave => return plain(VetoKind::Acknowledgement),
            (None, Some(_)) if self.gushes() => return plain(VetoKind::Idiom),
            (strong, weak) => strong.unwrap_or(usize::MAX).min(weak.unwrap_or(usize::MAX)),
        };
        if self.items.iter().take(first).any(Item::is_content) {
            return plain(VetoKind::Partial);
        }
        if let Some(last) = self.items.last().filter(|item| item.class() == Some(Class::And)) {
            return Some(self.on(VetoKind::Unfinished, last));
        }
        if asked.choice {
            return plain(VetoKind::Choice);
        }
        if asked.denial { plain(VetoKind::NegatedQuestion) } else { None }
    }

    /// "Perfect. Just perfect": praise said twice is seldom praise.
    fn gushes(&self) -> bool {
        let praise: Vec<&Item> = self.items.iter().filter(|i| i.class() == Some(Class::Weak)).collect();
        let text = |item: &Item| self.tokens[item.start].text.as_str();
        praise.iter().enumerate().any(|(at, item)| praise[..at].iter().any(|other| text(other) == text(item)))
    }
}

/// The values of a JSON text, not its keys' punctuation: names, numbers, dates.
fn values_of(json: &str) -> Vec<Token> {
    let spaced: String = json.chars().map(|c| if "{}[]\"".contains(c) { ' ' } else { c }).collect();
    tokens(&spaced)
}

/// The same word, or another form of it ("book", "booking") unless it is a name or a single letter.
fn same_word(asked: &Token, said: &Token) -> bool {
    if asked.text == said.text {
        return true;
    }
    if asked.capital || said.capital || asked.text.contains(['@', '.']) || said.text.contains(['@', '.']) {
        return false;
    }
    let (a, b) = (asked.text.chars().count(), said.text.chars().count());
    let shared = asked.text.chars().zip(said.text.chars()).take_while(|(x, y)| x == y).count();
    let alphabetic = |word: &str| word.chars().all(char::is_alphabetic);
    shared >= 4
        && a.max(b) - shared <= 4
        && shared * 2 > a.max(b)
        && (alphabetic(&asked.text) || !said.text.is_ascii())
}
