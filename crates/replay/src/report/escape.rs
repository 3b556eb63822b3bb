//! Text from a call made harmless: a caller's or a model's words may say anything.

use std::fmt::Write as _;

/// For element content and quoted attributes of HTML, SVG and XML. Control characters that XML does not know, and
/// those that turn the direction of text around, become U+FFFD: a transcript must not make the page read backwards.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => {
                safe.push('\u{fffd}')
            }
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Fills `{{NAME}}` marks of a template in one pass, so that a value that contains a mark stays as it is.
pub(super) fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let mut page = String::with_capacity(template.len() + values.iter().map(|(_, v)| v.len()).sum::<usize>());
    let mut rest = template;
    while let Some(open) = rest.find("{{") {
        page.push_str(&rest[..open]);
        let mark = &rest[open + 2..];
        let Some(close) = mark.find("}}") else { break };
        match values.iter().find(|(name, _)| *name == &mark[..close]) {
            Some((_, value)) => page.push_str(value),
            None => {
                let _ = write!(page, "{{{{{}}}}}", &mark[..close]);
            }
        }
        rest = &mark[close + 2..];
    }
    page.push_str(rest);
    page
}

/// At most `limit` characters, with an ellipsis if some are left out.
pub(super) fn shortened(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(limit.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text() {
        assert_eq!(
            escaped("<a b='c'>&\"\u{0}\u{202e}"),
            "&lt;a b=&#39;c&#39;&gt;&amp;&quot;\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn a_value_with_a_mark_in_it_is_not_filled_again() {
        assert_eq!(filled("{{A}}-{{B}}-{{C}}", &[("A", "{{B}}"), ("B", "b")]), "{{B}}-b-{{C}}");
        assert_eq!(filled("{{A", &[("A", "x")]), "{{A");
    }
}
