//! Rust source without what is not code, and the functions in it.

/// A function and how many lines of code its body has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Where it begins, from 1.
    pub line: usize,
    /// Lines between its braces, blank ones and comments left out.
    pub lines: usize,
}

/// The source up to its test module: whatever begins with `#[cfg(test)]` before a `mod … {` at the left margin.
pub fn without_tests(source: &str) -> &str {
    let mut at = 0;
    while let Some(found) = source[at..].find("#[cfg(test)]\n") {
        let begin = at + found;
        let next = source[begin..].lines().find(|line| !line.starts_with("#[")).unwrap_or_default();
        let margin = begin == 0 || source[..begin].ends_with('\n');
        if margin && next.starts_with("mod ") && next.trim_end().ends_with('{') {
            return &source[..begin];
        }
        at = begin + "#[cfg(test)]\n".len();
    }
    source
}

/// The source with comments, texts and letters blanked out; lines keep their places.
pub fn code_only(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let literal = skip(rest);
        if literal == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let (blank, after) = rest.split_at(literal);
            out.extend(blank.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = after;
        }
    }
    out
}

/// How many bytes of comment, text or letter the source begins with.
fn skip(rest: &str) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |at| at + 2);
    }
    match rest.as_bytes() {
        [b'"', ..] => quoted(rest, 1),
        [b'r', b'"' | b'#', ..] => raw(rest, 1),
        [b'b', b'r', b'"' | b'#', ..] => raw(rest, 2),
        [b'\'', ..] => letter(rest),
        _ => 0,
    }
}

fn quoted(rest: &str, from: usize) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(from) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#`; 0 if it is a raw name.
fn raw(rest: &str, prefix: usize) -> usize {
    let hashes = rest[prefix..].bytes().take_while(|byte| *byte == b'#').count();
    let open = prefix + hashes;
    if rest.as_bytes().get(open) != Some(&b'"') {
        return 0;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    rest[open + 1..].find(&close).map_or(rest.len(), |at| open + 1 + at + close.len())
}

/// A letter in single quotes; 0 if it is a lifetime.
fn letter(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let after = at + escaped.len_utf8();
            rest[after..].find('\'').map_or(0, |end| after + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

/// The functions of a source, innermost last; nested ones count in both.
pub fn functions(source: &str) -> Vec<Function> {
    let code = code_only(source);
    let lines: Vec<&str> = code.lines().collect();
    lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| name_of(line).map(|name| (at, name)))
        .filter_map(|(at, name)| {
            body(&lines[at..]).map(|lines| Function { name: name.to_owned(), line: at + 1, lines })
        })
        .collect()
}

fn name_of(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let keywords = ["", "pub", "const", "async", "unsafe", "extern", "default"];
    let plain = |word: &str| keywords.contains(&word) || word.starts_with("pub(") || word.ends_with(')');
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len());
    let declares = before.split_whitespace().all(plain) && end > 0;
    declares.then(|| &after[..end])
}

/// Lines of code between the first brace and its partner; none for a function without a body.
fn body(lines: &[&str]) -> Option<usize> {
    let (mut depth, mut counted) = (0_usize, 0);
    for line in lines {
        let inside = depth > 0;
        for c in line.chars() {
            match c {
                ';' if depth == 0 && !line.contains('[') => return None,
                '{' => depth += 1,
                '}' if depth == 1 => return Some(counted),
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        counted += usize::from(inside && !line.trim().is_empty());
    }
    None
}
