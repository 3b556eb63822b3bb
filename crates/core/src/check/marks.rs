//! Signs in a reply that are neither words nor punctuation.

/// What may stand between words: punctuation as people and recognisers write it, and the marks of currencies.
const PUNCTUATION: &str =
    ".,;:!?¡¿'\"()[]/&@_+-–—‐‑…·•‘’ʼ“”„«»‹›。、？！：；，．（）［］「」『』〜～।॥؟%€$£¥₹￥°";

/// Pictures that only agree, greet or thank.
const FRIENDLY: &str = "👍👌✅✔☑🙏😊🙂😀😃😄🤝❤";

/// The first sign that nobody speaks (braces, tags), also the colon of a role, though not that of a time, and a slash
/// that stands between no figures ("yes /s").
pub(super) fn markup(words: &str) -> Option<char> {
    let mut before = ' ';
    let mut rest = words.chars();
    while let Some(c) = rest.next() {
        let role = matches!(c, ':' | '：') && !before.is_numeric();
        let next = rest.clone().next().unwrap_or(' ');
        let slash = c == '/' && !(before.is_numeric() && next.is_numeric());
        if role || slash || "{}<>`|\\=#".contains(c) {
            return Some(c);
        }
        before = c;
    }
    None
}

/// Marks that strike a letter out.
const STRUCK: [core::ops::RangeInclusive<char>; 3] =
    ['\u{334}'..='\u{338}', '\u{20d2}'..='\u{20d3}', '\u{20e5}'..='\u{20eb}'];

/// The first picture or sign of which it is not known that it only agrees: a thumb down takes a yes back.
pub(super) fn strange(words: &str) -> Option<char> {
    words.chars().find(|&c| {
        if STRUCK.iter().any(|marks| marks.contains(&c)) {
            return true;
        }
        let script = c.is_alphanumeric() || c.is_whitespace() || super::text::fold(c).is_none();
        let indic = matches!(c, '\u{900}'..='\u{97f}');
        let tone = matches!(c, '\u{1f3fb}'..='\u{1f3ff}' | '\u{fe0f}' | '\u{30fb}' | '\u{30fc}');
        !(script || indic || tone || PUNCTUATION.contains(c) || FRIENDLY.contains(c))
    })
}
