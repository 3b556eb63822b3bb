//! Words of a reply: folded so that accents, width and case do not matter, and cut so that phrases can be matched.

use alloc::string::String;
use alloc::vec::Vec;

use super::lexicon::Language;

/// One word, number or, in Japanese, one character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// Folded: lower case, no accents, half width.
    pub(super) text: String,
    /// As it was said, for the reader of a veto.
    pub(super) raw: String,
    /// Nothing but punctuation, or nothing, stands before it.
    pub(super) starts_clause: bool,
    /// It follows an apostrophe or is followed by one: `c` in "c'est" is a word, not a spelled letter.
    pub(super) elided: bool,
    /// Its first letter is a capital although no sentence begins here: a name.
    pub(super) capital: bool,
    /// Nothing at all stands between it and the token before it: the "B" of "4B".
    pub(super) glued: bool,
}

/// Folds one character; `None` drops it (combining marks, nukta).
pub(super) fn fold(c: char) -> Option<char> {
    let c = match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        _ => c,
    };
    let c = c.to_lowercase().next().unwrap_or(c);
    Some(match c {
        '\u{300}'..='\u{36f}' | '\u{93c}' | '\u{200b}'..='\u{200d}' => return None,
        'à'..='å' | 'ā' | 'ă' => 'a',
        'ç' => 'c',
        'è'..='ë' | 'ē' => 'e',
        'ì'..='ï' => 'i',
        'ñ' => 'n',
        'ò'..='ö' | 'ø' | 'œ' => 'o',
        'ù'..='ü' => 'u',
        'ý' | 'ÿ' => 'y',
        'ß' => 's',
        'ँ' => 'ं',
        '\u{958}' => 'क',
        '\u{959}' => 'ख',
        '\u{95a}' => 'ग',
        '\u{95b}' => 'ज',
        '\u{95c}' => 'ड',
        '\u{95d}' => 'ढ',
        '\u{95e}' => 'फ',
        '०'..='९' => char::from_u32(u32::from(c) - 0x966 + 0x30).unwrap_or(c),
        _ => c,
    })
}

/// Folds a whole text.
pub(super) fn fold_text(text: &str) -> String {
    text.chars().filter_map(fold).collect()
}

/// Characters that are words of their own: Japanese has no spaces, so phrases are matched by the character.
pub(super) fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{963}' | '\u{966}'..='\u{96f}')
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’' | '‘' | '`' | 'ʼ')
}

fn is_currency(c: char) -> bool {
    matches!(c, '€' | '$' | '£' | '¥' | '₹' | '%' | '￥')
}

/// The words of a caller: as [`tokens`], with what recognisers write in other ways put right.
pub(super) fn spoken(language: Language, words: &str) -> Vec<Token> {
    let mut out = String::with_capacity(words.len());
    for (index, word) in words.split(' ').enumerate() {
        if index > 0 {
            out.push(' ');
        }
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let spelled = bare.contains('-') && bare.split('-').all(|part| part.chars().count() == 1);
        let joined: String = bare.chars().filter(|c| *c != '-').collect();
        if spelled && is_one_of(&joined.to_lowercase(), "yes|ja|oui|sí|sim") {
            out.push_str(&joined);
        } else if let Some(at) = apostrophe(language, bare) {
            let start = word.find(bare).unwrap_or(0) + at;
            out.push_str(&word[..start]);
            out.push('\'');
            out.push_str(&word[start..]);
        } else {
            out.push_str(word);
        }
    }
    tokens(&out)
}

/// Where a word lacks its apostrophe: "im", "thats", "cest".
fn apostrophe(language: Language, word: &str) -> Option<usize> {
    let words = match language {
        Language::En => {
            "i'm|i've|i'll|i'd|you're|you've|you'll|it's|that's|that'll|there's|here's|what's|let's|he's|she's|\
             they're|everything's|who's|where's|how's"
        }
        Language::Fr => "c'est|d'accord|j'accepte|j'ai",
        Language::De | Language::Es | Language::Pt | Language::Ja | Language::Hi => return None,
    };
    // "ID" is a thing that one shows.
    if word.is_empty() || word == "ID" {
        return None;
    }
    words.split('|').find_map(|full| {
        let at = full.find('\'')?;
        let same = full.chars().filter(|c| *c != '\'').eq(word.chars().flat_map(char::to_lowercase));
        same.then_some(at)
    })
}

/// Cuts a text into tokens. Sounds in brackets (`[noise]`, `(laughs)`) are not words.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut cut =
        Cutter { chars: &chars, out: Vec::new(), clause: true, sentence: true, elided: false, end: 0 };
    let mut at = 0;
    while at < chars.len() {
        at = cut.step(at);
    }
    cut.out
}

struct Cutter<'a> {
    chars: &'a [char],
    out: Vec<Token>,
    clause: bool,
    sentence: bool,
    elided: bool,
    end: usize,
}

/// What recognisers write for sounds that are no words.
const SOUND_NOTES: &[&str] = &[
    "laughs",
    "laughing",
    "laughter",
    "laugh",
    "cough",
    "coughs",
    "coughing",
    "sigh",
    "sighs",
    "breath",
    "breathing",
    "music",
    "noise",
    "silence",
    "pause",
    "beep",
    "static",
    "applause",
    "clears throat",
    "background noise",
    "lacht",
    "husten",
    "musik",
    "rires",
    "musique",
    "risas",
    "música",
    "risos",
    "笑",
    "音楽",
    "हँसी",
];

impl Cutter<'_> {
    /// Handles what begins at `at` and says where to go on.
    fn step(&mut self, at: usize) -> usize {
        let c = self.chars[at];
        if let Some(end) = self.annotation(at) {
            return end;
        }
        if is_ideograph(c) || is_currency(c) {
            self.push(at, at + 1);
            return at + 1;
        }
        if is_word(c) {
            let end = self.word_end(at);
            self.push(at, end);
            return self.after_word(end);
        }
        if !c.is_whitespace() && c != '-' && c != '"' && !is_apostrophe(c) {
            self.clause = true;
            self.sentence |= matches!(c, '.' | '?' | '!' | '।' | '。' | '？' | '！' | '¿' | '¡' | '…' | ':');
        }
        at + 1
    }

    fn annotation(&self, at: usize) -> Option<usize> {
        let close = match self.chars[at] {
            '[' => ']',
            '(' => ')',
            '（' => '）',
            '［' => '］',
            _ => return None,
        };
        let len = self.chars[at..].iter().take(40).position(|&c| c == close)?;
        let note: String = self.chars[at + 1..at + len].iter().flat_map(|c| c.to_lowercase()).collect();
        // Only a recogniser's note of a sound is no word of the caller's; anything else in brackets is.
        SOUND_NOTES.contains(&note.trim()).then_some(at + len + 1)
    }

    fn word_end(&self, at: usize) -> usize {
        let get = |i: usize| self.chars.get(i).copied().unwrap_or(' ');
        let digits = get(at).is_ascii_digit();
        let mut end = at + 1;
        loop {
            let (c, next) = (get(end), get(end + 1));
            let more = if digits {
                c.is_numeric() || (matches!(c, '.' | ',' | ':') && next.is_numeric())
            } else if is_ideograph(c) {
                false
            } else if is_word(c) {
                !c.is_ascii_digit() || self.address(at, end)
            } else {
                match c {
                    '@' | '_' => is_word(next),
                    '.' | '+' => {
                        is_word(next) && !next.is_ascii_digit() && !next.is_uppercase()
                            || c == '.' && end == at + 1 && is_word(next)
                    }
                    '-' => self.address(at, end),
                    _ => false,
                }
            };
            if !more {
                return end;
            }
            end += 1;
        }
    }

    /// Whether the word so far is an e-mail address: then digits and hyphens belong to it.
    fn address(&self, at: usize, end: usize) -> bool {
        self.chars[at..end].contains(&'@')
    }

    /// "don't" stays one word; any other apostrophe splits.
    fn after_word(&mut self, end: usize) -> usize {
        if !self.chars.get(end).copied().is_some_and(is_apostrophe) {
            return end;
        }
        let next = self.chars.get(end + 1).copied().unwrap_or(' ');
        let after = self.chars.get(end + 2).copied().unwrap_or(' ');
        if matches!(next, 't' | 'T') && !is_word(after) {
            if let Some(last) = self.out.last_mut() {
                last.text.push('t');
                last.raw.push_str("'t");
            }
            return end + 2;
        }
        if is_word(next) {
            if let Some(last) = self.out.last_mut() {
                last.elided = true;
            }
            self.elided = true;
        }
        end + 1
    }

    fn push(&mut self, start: usize, end: usize) {
        let raw: String = self.chars[start..end].iter().collect();
        let mut text = fold_text(&raw);
        if text.len() <= 7 && text.split('.').all(|part| part.len() <= 1) {
            text.retain(|c| c != '.');
        }
        if text.is_empty() {
            return;
        }
        let capital = !self.sentence && self.chars[start].is_uppercase();
        let glued = start > 0 && self.end == start;
        let token = Token { text, raw, starts_clause: self.clause, elided: self.elided, capital, glued };
        self.out.push(token);
        self.end = end;
        (self.clause, self.sentence, self.elided) = (false, false, false);
    }
}

/// How many tokens from `at` on spell out `phrase`; 0 if they do not.
pub(super) fn matches(tokens: &[Token], at: usize, phrase: &str) -> usize {
    let mut index = at;
    let mut rest = phrase;
    while let Some(first) = rest.chars().next() {
        if first == ' ' {
            rest = &rest[1..];
            continue;
        }
        let end = if is_ideograph(first) {
            first.len_utf8()
        } else {
            rest.find(|c: char| c == ' ' || is_ideograph(c)).unwrap_or(rest.len())
        };
        if !tokens.get(index).is_some_and(|t| t.text.chars().eq(rest[..end].chars().filter_map(fold))) {
            return 0;
        }
        index += 1;
        rest = &rest[end..];
    }
    index - at
}

/// The longest of `phrases` (separated by bars) that begins at `at`.
pub(super) fn longest(tokens: &[Token], at: usize, phrases: &str) -> usize {
    let Some(first) = tokens.get(at).and_then(|t| t.text.chars().next()) else { return 0 };
    let may_match = |phrase: &&str| phrase.chars().next().and_then(fold) == Some(first);
    phrases.split('|').filter(may_match).map(|phrase| matches(tokens, at, phrase)).max().unwrap_or(0)
}

/// Whether a folded word is one of a list (separated by bars).
pub(super) fn is_one_of(word: &str, list: &str) -> bool {
    list.split('|').any(|entry| word.chars().eq(entry.chars().filter_map(fold)))
}
