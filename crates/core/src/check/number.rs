//! Spoken numbers: from words to figures, per language.

use alloc::format;
use alloc::string::{String, ToString};

use super::lexicon::Language;
use super::text::{Token, is_one_of};

/// One number as it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// Its figures: "5000", "249.99", "0151".
    pub(super) figures: String,
    /// Its value if it is whole and not absurdly large.
    pub(super) value: Option<u64>,
    /// One past its last token.
    pub(super) next: usize,
    /// "the twelfth", "12th".
    pub(super) ordinal: bool,
}

impl Number {
    fn whole(value: u64, next: usize, ordinal: bool) -> Self {
        Self { figures: value.to_string(), value: Some(value), next, ordinal }
    }

    /// A single figure, as in a spelled number.
    pub(super) fn is_figure(&self) -> bool {
        self.figures.len() == 1 && !self.ordinal
    }
}

/// What one word contributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// 0 to 99, or a language's own hundreds.
    Count(u64),
    /// Times one hundred.
    Hundred,
    /// Times a thousand or more.
    Scale(u64),
    /// A word that is a whole ordinal or ends one.
    Ordinal(u64),
}

/// Largest value a spoken number may have; above it the words are not taken as one number.
const LARGEST: u64 = 1_000_000_000_000_000;

/// The number that begins at `at`.
pub(super) fn number(language: Language, tokens: &[Token], at: usize) -> Option<Number> {
    let token = tokens.get(at)?;
    if token.text.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(figures(language, tokens, at));
    }
    if language == Language::Ja {
        return kanji(tokens, at);
    }
    if is_article(language, tokens, at) {
        return None;
    }
    compose(language, tokens, at)
}

/// "12", "5,000", "249.99", with the ordinal ending that may follow.
fn figures(language: Language, tokens: &[Token], at: usize) -> Number {
    let figures = normalise(&tokens[at].text);
    let mut next = at + 1;
    let mut ordinal = false;
    if tokens.get(next).is_some_and(|t| is_one_of(&t.text, "st|nd|rd|th|er|re|eme|ª|º"))
        && !tokens[next].starts_clause
    {
        (ordinal, next) = (true, next + 1);
    }
    let mut value = whole(&figures);
    // "5k" is five thousand; "5 K" may be a code.
    if let (Some(v), Some(token)) = (value, tokens.get(next))
        && token.glued
        && token.text == "k"
        && v < LARGEST / 1_000
    {
        return Number::whole(v * 1_000, next + 1, false);
    }
    let japanese = [("百", 100), ("千", 1_000), ("万", 10_000)];
    let scale = japanese.iter().find(|(name, _)| tokens.get(next).is_some_and(|t| t.text == *name));
    if let (Some(v), Some((_, by)), Language::Ja) = (value.filter(|v| *v < 10_000), scale, language) {
        return Number::whole(v * by, next + 1, false);
    }
    if let (Some(v), Some(token)) = (value, tokens.get(next))
        && let Some(Part::Scale(by)) = part(language, &token.text)
    {
        let value_scaled = v.saturating_mul(by);
        if value_scaled <= LARGEST {
            value = Some(value_scaled);
            return Number { figures: value_scaled.to_string(), value, next: next + 1, ordinal: false };
        }
    }
    Number { figures, value, next, ordinal }
}

fn whole(figures: &str) -> Option<u64> {
    if figures.len() > 15 { None } else { figures.parse().ok() }
}

/// Group marks out, the decimal mark a point, "15.00" as "15".
fn normalise(text: &str) -> String {
    let last = text.rfind(['.', ',']);
    let Some(last) = last else { return text.to_string() };
    let decimals = text.len() - last - 1;
    let marks = text.matches(['.', ',']).count();
    let bare = |part: &str| part.chars().filter(char::is_ascii_digit).collect::<String>();
    if decimals == 3 || marks > 1 && decimals != 2 || text.contains(':') {
        return bare(text);
    }
    let fraction = &text[last + 1..];
    if fraction.bytes().all(|b| b == b'0') {
        return bare(&text[..last]);
    }
    format!("{}.{fraction}", bare(&text[..last]))
}

/// "ein", "un", "uma": numbers only beside another number, before a currency, or with nothing behind them.
fn is_article(language: Language, tokens: &[Token], at: usize) -> bool {
    let articles = match language {
        Language::De => "ein|eine|einen|einem|einer",
        Language::Es => "un|una",
        Language::Fr => "un|une",
        Language::Pt => "um|uma",
        Language::Hi => "दो",
        Language::En | Language::Ja => return false,
    };
    if !is_one_of(&tokens[at].text, articles) {
        return false;
    }
    let near = |i: usize| {
        tokens.get(i).is_some_and(|t| {
            part(language, &t.text).is_some() || t.text.starts_with(|c: char| c.is_ascii_digit())
        })
    };
    let ends = tokens.get(at + 1).is_none_or(|t| t.starts_clause);
    if language == Language::Hi {
        // "दो" is "two" and "give"; it gives where it ends a clause behind a verb.
        let verb = !tokens[at].starts_clause && at > 0 && !is_one_of(&tokens[at - 1].text, "हाँ|जी|हां");
        return ends && verb && !near(at - 1);
    }
    let counted = tokens.get(at + 1).is_some_and(|t| super::value::currency(&t.text).is_some());
    !(ends || counted || near(at + 1) || at > 0 && near(at - 1))
}

/// Words into one number, as far as they go together.
fn compose(language: Language, tokens: &[Token], at: usize) -> Option<Number> {
    let (mut total, mut current) = (0_u64, None::<u64>);
    let mut index = at;
    let mut used = at;
    while let Some(token) = tokens.get(index) {
        if index > at && is_joint(language, &token.text) && current.map_or(total > 0, |c| c >= 20) {
            index += 1;
            continue;
        }
        let Some(found) = part(language, &token.text) else { break };
        match found {
            Part::Count(n) | Part::Ordinal(n) => {
                let Some(sum) = add(language, current, n) else { break };
                current = Some(sum);
                if matches!(found, Part::Ordinal(_)) {
                    return Some(Number::whole(total + sum, index + 1, true));
                }
            }
            Part::Hundred if current.is_none_or(|c| c < 100) => current = Some(current.unwrap_or(1) * 100),
            Part::Scale(by) if total == 0 || by < total => {
                total = total.saturating_add(current.unwrap_or(1).saturating_mul(by));
                current = None;
                if total > LARGEST {
                    return None;
                }
            }
            Part::Hundred | Part::Scale(_) => break,
        }
        index += 1;
        used = index;
    }
    (used > at).then(|| Number::whole(total + current.unwrap_or(0), used, false))
}

/// "twenty" + "four", but not "four" + "four".
fn add(language: Language, current: Option<u64>, n: u64) -> Option<u64> {
    let Some(now) = current else { return Some(n) };
    let rest = now % 100;
    if n == 0 {
        return None;
    }
    if now >= 100 && rest == 0 && n < 100 {
        return Some(now + n);
    }
    if language == Language::Fr {
        if rest == 4 && n == 20 {
            return Some(now + 76);
        }
        if (rest == 60 || rest == 80) && n < 20 || rest == 10 && (7..=9).contains(&n) {
            return Some(now + n);
        }
        if (rest == 70 || rest == 90) && (7..=9).contains(&n) {
            return Some(now + n);
        }
    }
    (rest >= 20 && rest.is_multiple_of(10) && n < 10 && language != Language::Hi && language != Language::De)
        .then_some(now + n)
}

fn is_joint(language: Language, word: &str) -> bool {
    match language {
        Language::En => word == "and",
        Language::Es => word == "y",
        Language::Fr => word == "et",
        Language::Pt => word == "e",
        Language::De | Language::Ja | Language::Hi => false,
    }
}

fn part(language: Language, word: &str) -> Option<Part> {
    let table = match language {
        Language::En => EN,
        Language::De => return german(word),
        Language::Es => ES,
        Language::Fr => FR,
        Language::Pt => PT,
        Language::Hi => return hindi(word),
        Language::Ja => return None,
    };
    table.iter().find(|(words, _)| is_one_of(word, words)).map(|(_, part)| *part)
}

use Part::{Count, Hundred, Ordinal, Scale};

const EN: &[(&str, Part)] = &[
    ("zero|nought", Count(0)),
    ("one", Count(1)),
    ("two", Count(2)),
    ("three", Count(3)),
    ("four", Count(4)),
    ("five", Count(5)),
    ("six", Count(6)),
    ("seven", Count(7)),
    ("eight", Count(8)),
    ("nine|niner", Count(9)),
    ("ten", Count(10)),
    ("eleven", Count(11)),
    ("twelve", Count(12)),
    ("thirteen", Count(13)),
    ("fourteen", Count(14)),
    ("fifteen", Count(15)),
    ("sixteen", Count(16)),
    ("seventeen", Count(17)),
    ("eighteen", Count(18)),
    ("nineteen", Count(19)),
    ("twenty", Count(20)),
    ("thirty", Count(30)),
    ("forty|fourty", Count(40)),
    ("fifty", Count(50)),
    ("sixty", Count(60)),
    ("seventy", Count(70)),
    ("eighty", Count(80)),
    ("ninety", Count(90)),
    ("hundred", Hundred),
    ("thousand", Scale(1_000)),
    ("million", Scale(1_000_000)),
    ("billion", Scale(1_000_000_000)),
    ("first", Ordinal(1)),
    ("second", Ordinal(2)),
    ("third", Ordinal(3)),
    ("fourth", Ordinal(4)),
    ("fifth", Ordinal(5)),
    ("sixth", Ordinal(6)),
    ("seventh", Ordinal(7)),
    ("eighth", Ordinal(8)),
    ("ninth", Ordinal(9)),
    ("tenth", Ordinal(10)),
    ("eleventh", Ordinal(11)),
    ("twelfth", Ordinal(12)),
    ("thirteenth", Ordinal(13)),
    ("fourteenth", Ordinal(14)),
    ("fifteenth", Ordinal(15)),
    ("sixteenth", Ordinal(16)),
    ("seventeenth", Ordinal(17)),
    ("eighteenth", Ordinal(18)),
    ("nineteenth", Ordinal(19)),
    ("twentieth", Ordinal(20)),
    ("thirtieth", Ordinal(30)),
];

const ES: &[(&str, Part)] = &[
    ("cero", Count(0)),
    ("uno|un|una", Count(1)),
    ("dos", Count(2)),
    ("tres", Count(3)),
    ("cuatro", Count(4)),
    ("cinco", Count(5)),
    ("seis", Count(6)),
    ("siete", Count(7)),
    ("ocho", Count(8)),
    ("nueve", Count(9)),
    ("diez", Count(10)),
    ("once", Count(11)),
    ("doce", Count(12)),
    ("trece", Count(13)),
    ("catorce", Count(14)),
    ("quince", Count(15)),
    ("dieciseis", Count(16)),
    ("diecisiete", Count(17)),
    ("dieciocho", Count(18)),
    ("diecinueve", Count(19)),
    ("veinte", Count(20)),
    ("veintiuno|veintiun|veintiuna", Count(21)),
    ("veintidos", Count(22)),
    ("veintitres", Count(23)),
    ("veinticuatro", Count(24)),
    ("veinticinco", Count(25)),
    ("veintiseis", Count(26)),
    ("veintisiete", Count(27)),
    ("veintiocho", Count(28)),
    ("veintinueve", Count(29)),
    ("treinta", Count(30)),
    ("cuarenta", Count(40)),
    ("cincuenta", Count(50)),
    ("sesenta", Count(60)),
    ("setenta", Count(70)),
    ("ochenta", Count(80)),
    ("noventa", Count(90)),
    ("cien|ciento", Count(100)),
    ("doscientos|doscientas", Count(200)),
    ("trescientos|trescientas", Count(300)),
    ("cuatrocientos|cuatrocientas", Count(400)),
    ("quinientos|quinientas", Count(500)),
    ("seiscientos|seiscientas", Count(600)),
    ("setecientos|setecientas", Count(700)),
    ("ochocientos|ochocientas", Count(800)),
    ("novecientos|novecientas", Count(900)),
    ("mil", Scale(1_000)),
    ("millon|millones", Scale(1_000_000)),
    ("primero|primera|primer", Ordinal(1)),
    ("segundo|segunda", Ordinal(2)),
    ("tercero|tercera|tercer", Ordinal(3)),
    ("cuarto|cuarta", Ordinal(4)),
    ("quinto|quinta", Ordinal(5)),
];

const FR: &[(&str, Part)] = &[
    ("zero", Count(0)),
    ("un|une", Count(1)),
    ("deux", Count(2)),
    ("trois", Count(3)),
    ("quatre", Count(4)),
    ("cinq", Count(5)),
    ("six", Count(6)),
    ("sept", Count(7)),
    ("huit", Count(8)),
    ("neuf", Count(9)),
    ("dix", Count(10)),
    ("onze", Count(11)),
    ("douze", Count(12)),
    ("treize", Count(13)),
    ("quatorze", Count(14)),
    ("quinze", Count(15)),
    ("seize", Count(16)),
    ("vingt|vingts", Count(20)),
    ("trente", Count(30)),
    ("quarante", Count(40)),
    ("cinquante", Count(50)),
    ("soixante", Count(60)),
    ("septante", Count(70)),
    ("huitante|octante", Count(80)),
    ("nonante", Count(90)),
    ("cent|cents", Hundred),
    ("mille", Scale(1_000)),
    ("million|millions", Scale(1_000_000)),
    ("premier|premiere", Ordinal(1)),
    ("deuxieme|second|seconde", Ordinal(2)),
    ("troisieme", Ordinal(3)),
    ("quatrieme", Ordinal(4)),
    ("cinquieme", Ordinal(5)),
];

const PT: &[(&str, Part)] = &[
    ("zero", Count(0)),
    ("um|uma", Count(1)),
    ("dois|duas", Count(2)),
    ("tres", Count(3)),
    ("quatro", Count(4)),
    ("cinco", Count(5)),
    ("seis|meia", Count(6)),
    ("sete", Count(7)),
    ("oito", Count(8)),
    ("nove", Count(9)),
    ("dez", Count(10)),
    ("onze", Count(11)),
    ("doze", Count(12)),
    ("treze", Count(13)),
    ("catorze|quatorze", Count(14)),
    ("quinze", Count(15)),
    ("dezesseis|dezasseis", Count(16)),
    ("dezessete|dezassete", Count(17)),
    ("dezoito", Count(18)),
    ("dezenove|dezanove", Count(19)),
    ("vinte", Count(20)),
    ("trinta", Count(30)),
    ("quarenta", Count(40)),
    ("cinquenta", Count(50)),
    ("sessenta", Count(60)),
    ("setenta", Count(70)),
    ("oitenta", Count(80)),
    ("noventa", Count(90)),
    ("cem|cento", Count(100)),
    ("duzentos|duzentas", Count(200)),
    ("trezentos|trezentas", Count(300)),
    ("quatrocentos|quatrocentas", Count(400)),
    ("quinhentos|quinhentas", Count(500)),
    ("seiscentos|seiscentas", Count(600)),
    ("setecentos|setecentas", Count(700)),
    ("oitocentos|oitocentas", Count(800)),
    ("novecentos|novecentas", Count(900)),
    ("mil", Scale(1_000)),
    ("milhao|milhoes", Scale(1_000_000)),
    ("primeiro|primeira", Ordinal(1)),
    ("segundo", Ordinal(2)),
    ("terceiro|terceira", Ordinal(3)),
];

const DE_SMALL: &[(&str, u64)] = &[
    ("null", 0),
    ("eins", 1),
    ("ein", 1),
    ("eine", 1),
    ("einen", 1),
    ("einem", 1),
    ("einer", 1),
    ("zwei", 2),
    ("zwo", 2),
    ("drei", 3),
    ("vier", 4),
    ("funf", 5),
    ("fuenf", 5),
    ("sechs", 6),
    ("sieben", 7),
    ("acht", 8),
    ("neun", 9),
    ("zehn", 10),
    ("elf", 11),
    ("zwolf", 12),
    ("zwoelf", 12),
    ("dreizehn", 13),
    ("vierzehn", 14),
    ("funfzehn", 15),
    ("fuenfzehn", 15),
    ("sechzehn", 16),
    ("siebzehn", 17),
    ("achtzehn", 18),
    ("neunzehn", 19),
    ("zwanzig", 20),
    ("dreisig", 30),
    ("dreissig", 30),
    ("vierzig", 40),
    ("funfzig", 50),
    ("fuenfzig", 50),
    ("sechzig", 60),
    ("siebzig", 70),
    ("achtzig", 80),
    ("neunzig", 90),
    ("erst", 1),
    ("dritt", 3),
    ("siebt", 7),
];

/// German writes a number as one word: "dreiundzwanzigtausendfünfhundert".
fn german(word: &str) -> Option<Part> {
    match word {
        "hundert" => return Some(Hundred),
        "tausend" => return Some(Scale(1_000)),
        "million" | "millionen" => return Some(Scale(1_000_000)),
        _ => {}
    }
    if let Some(value) = german_value(word) {
        return Some(Count(value));
    }
    let stem = [
        "sten", "ster", "stes", "stem", "ste", "ten", "ter", "tes", "tem", "te", "en", "er", "es", "em", "e",
    ]
    .iter()
    .filter_map(|ending| word.strip_suffix(ending))
    .find(|stem| {
        german_value(stem).is_some_and(|v| v >= 20 || v == 8)
            || german_value(stem).is_some_and(|v| v != 1 || *stem == "erst")
    })?;
    german_value(stem).map(Ordinal)
}

fn german_value(word: &str) -> Option<u64> {
    if word.is_empty() || word.len() > 64 {
        return None;
    }
    if let Some((_, value)) = DE_SMALL.iter().find(|(name, _)| *name == word) {
        return Some(*value);
    }
    for (scale, by) in [("tausend", 1_000), ("hundert", 100)] {
        if let Some(at) = word.find(scale) {
            let (left, right) = (&word[..at], &word[at + scale.len()..]);
            let left = if left.is_empty() { 1 } else { german_value(left)? };
            let right = right.strip_prefix("und").unwrap_or(right);
            let right = if right.is_empty() { 0 } else { german_value(right)? };
            return Some(left * by + right);
        }
    }
    let at = word.find("und")?;
    let small = |w: &str| DE_SMALL.iter().find(|(name, _)| *name == w).map(|(_, value)| *value);
    let (unit, tens) = (small(&word[..at])?, small(&word[at + 3..])?);
    (unit < 10 && tens >= 20).then_some(unit + tens)
}

/// Hindi has a word of its own for each number up to a hundred.
const HI: &str = "शून्य/ज़ीरो/जीरो एक/वन दो तीन चार पाँच/पांच छह/छः/छे/छ सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह/पन्द्रह सोलह सत्रह अठारह उन्नीस \
    बीस इक्कीस बाईस तेईस चौबीस पच्चीस छब्बीस सत्ताईस अट्ठाईस/अठाईस उनतीस तीस इकतीस/इकत्तीस बत्तीस तैंतीस चौंतीस पैंतीस छत्तीस सैंतीस अड़तीस उनतालीस \
    चालीस इकतालीस बयालीस तैंतालीस चौवालीस/चवालीस पैंतालीस छियालीस सैंतालीस अड़तालीस उनचास पचास इक्यावन बावन तिरपन चौवन पचपन छप्पन सत्तावन अट्ठावन उनसठ \
    साठ इकसठ बासठ तिरसठ चौंसठ पैंसठ छियासठ सड़सठ अड़सठ उनहत्तर सत्तर इकहत्तर बहत्तर तिहत्तर चौहत्तर पचहत्तर छिहत्तर सतहत्तर अठहत्तर उन्यासी \
    अस्सी इक्यासी बयासी तिरासी चौरासी पचासी छियासी सत्तासी/सतासी अट्ठासी नवासी नब्बे इक्यानवे बानवे तिरानवे चौरानवे पचानवे छियानवे सत्तानवे अट्ठानवे निन्यानवे";

fn hindi(word: &str) -> Option<Part> {
    let scale =
        [("सौ", Hundred), ("हज़ार", Scale(1_000)), ("लाख", Scale(100_000)), ("करोड़", Scale(10_000_000))];
    if let Some((_, part)) = scale.iter().find(|(name, _)| is_one_of(word, name)) {
        return Some(*part);
    }
    let cardinal = |word: &str| {
        let mut names = HI.split_whitespace();
        let found = names.position(|names| names.split('/').any(|name| is_one_of(word, name)));
        found.and_then(|value| u64::try_from(value).ok())
    };
    let ordinals = [
        ("पहला|पहली|पहले", 1),
        ("दूसरा|दूसरी|दूसरे", 2),
        ("तीसरा|तीसरी|तीसरे", 3),
        ("चौथा|चौथी|चौथे", 4),
        ("छठा|छठी|छठे", 6),
    ];
    if let Some((_, value)) = ordinals.iter().find(|(names, _)| is_one_of(word, names)) {
        return Some(Ordinal(*value));
    }
    if let Some(value) = cardinal(word) {
        return Some(Count(value));
    }
    let stem = ["वीं", "वां", "वें"].iter().find_map(|ending| word.strip_suffix(ending))?;
    cardinal(stem).map(Ordinal)
}

/// 三千五百, 十二, or figures one by one (〇一五).
fn kanji(tokens: &[Token], at: usize) -> Option<Number> {
    let (mut total, mut section, mut unit) = (0_u64, 0_u64, None::<u64>);
    let mut index = at;
    let mut figures = String::new();
    let mut positional = true;
    while let Some(c) = tokens.get(index).and_then(|t| t.text.chars().next()) {
        if let Some(figure) = "〇一二三四五六七八九".chars().position(|k| k == c) {
            figures.push(char::from(b'0' + u8::try_from(figure).ok()?));
            unit = u64::try_from(figure).ok();
        } else {
            let by = match c {
                '十' => 10,
                '百' => 100,
                '千' => 1_000,
                '万' => 10_000,
                _ => break,
            };
            positional = false;
            if by == 10_000 {
                total += (section + unit.unwrap_or(0)).max(1) * by;
                section = 0;
            } else {
                section += unit.unwrap_or(1) * by;
            }
            unit = None;
        }
        index += 1;
        if index - at > 12 {
            return None;
        }
    }
    if index == at {
        return None;
    }
    if positional {
        let value = whole(&figures);
        return Some(Number { figures, value, next: index, ordinal: false });
    }
    Some(Number::whole(total.saturating_add(section).saturating_add(unit.unwrap_or(0)), index, false))
}
