//! What is wrong with a file that people write: an agent, a scenario. One shape for all of them, so that whoever reads the
//! one kind of message can read the other, and a tool that shows them needs one reader.

use std::fmt;
use std::path::{Path, PathBuf};

/// One fault of an input file: what, where, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file; an agent file's schema may be a file of its own.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// How to mend it; empty where the message says all there is.
    pub hint: String,
}

/// All in one line; with `{:#}` the hint has a line of its own.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.path.display(), self.line, self.column, self.message)?;
        match (self.hint.is_empty(), f.alternate()) {
            (true, _) => Ok(()),
            (false, true) => write!(f, "\n  hint: {}", self.hint),
            (false, false) => write!(f, "; {}", self.hint),
        }
    }
}

/// The known word that what was written was most likely meant to be; `None` if none is close. With nothing in common but
/// its length a word is no slip of another.
pub fn nearest<'w>(written: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let most = (written.chars().count() / 3).max(2);
    known
        .into_iter()
        .map(|word| (distance(written, word), word))
        .filter(|(distance, word)| *distance <= most && *distance < word.chars().count())
        .min()
        .map(|(_, word)| word)
}

/// The text of a file that people write.
///
/// # Errors
/// It is not UTF-8: the place of the first byte that is none.
pub fn utf8(path: &Path, bytes: Vec<u8>) -> Result<String, Fault> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let good = String::from_utf8_lossy(good);
        let last = good.rsplit('\n').next().unwrap_or_default();
        Fault {
            path: path.to_owned(),
            line: good.matches('\n').count() + 1,
            column: last.chars().count() + 1,
            message: "the file is not UTF-8 text from here on".to_owned(),
            hint: "save it as UTF-8".to_owned(),
        }
    })
}

/// What a reader's "unknown field `x`, expected one of `y`, `z`" most likely meant: `y`.
pub fn slip(message: &str) -> Option<&str> {
    let unknown =
        ["unknown field `", "unknown variant `"].into_iter().find_map(|head| message.split_once(head))?.1;
    let (written, rest) = unknown.split_once('`')?;
    let known = rest.split_once("expected")?.1.split('`').skip(1).step_by(2);
    nearest(written, known)
}

/// Edits between two words; a swap of two neighbours is one edit. Long words are cut: they are no typing slips.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().take(64).collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let swap = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + swap);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_a_stranger_finds_none() {
        let known = ["transcript_delay", "text", "audio"];
        assert_eq!(nearest("txet", known), Some("text"));
        assert_eq!(nearest("transcript-delay", known), Some("transcript_delay"));
        assert_eq!(nearest("volume", known), None);
        assert_eq!(nearest("ok", ["no"]), None);
    }

    #[test]
    fn a_byte_that_is_no_text_has_a_place() {
        let path = Path::new("x.toml");
        assert_eq!(utf8(path, b"a = 1\n".to_vec()).as_deref(), Ok("a = 1\n"));
        let fault = utf8(path, b"a = 1\nb = \"\xc3\xa9\xe9\"\n".to_vec()).unwrap_err();
        assert_eq!((fault.line, fault.column), (2, 7));
    }

    #[test]
    fn a_slip_is_found_in_what_a_reader_says() {
        let several = "unknown field `lisen`, expected one of `listen`, `agents`";
        assert_eq!(slip(several), Some("listen"));
        assert_eq!(slip("line 1: unknown variant `yess`, expected `yes` or `no`"), Some("yes"));
        assert_eq!(slip("unknown field `colour`, expected one of `listen`, `agents`"), None);
        for other in ["unknown field `x`, there are no fields", "unknown field `x", "missing field `x`", ""] {
            assert_eq!(slip(other), None, "{other}");
        }
    }

    #[test]
    fn the_hint_follows_or_has_a_line_of_its_own() {
        let (message, hint) = ("unknown key `a`".to_owned(), "did you mean `b`?".to_owned());
        let fault = Fault { path: PathBuf::from("x.toml"), line: 3, column: 1, message, hint };
        assert_eq!(fault.to_string(), "x.toml:3:1: unknown key `a`; did you mean `b`?");
        assert_eq!(format!("{fault:#}"), "x.toml:3:1: unknown key `a`\n  hint: did you mean `b`?");
        let bare = Fault { hint: String::new(), ..fault };
        assert_eq!(format!("{bare:#}"), bare.to_string());
    }
}
