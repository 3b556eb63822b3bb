//! Ranges of bytes, as players ask for them (RFC 9110, section 14).

/// Which part of a file is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The whole.
    All,
    /// From the first byte to before the second.
    Part {
        /// First byte.
        from: u64,
        /// One past the last; more than `from`, at most the length.
        to: u64,
    },
    /// A part that the file does not have.
    Nothing,
}

/// What a `Range` header asks for. One that is not understood, or asks for several parts, is passed over, as the RFC
/// allows: then the whole is given.
pub(super) fn asked(range: Option<&str>, length: u64) -> Asked {
    let Some(parts) = range.and_then(|range| range.trim().strip_prefix("bytes=")) else { return Asked::All };
    let Some((first, last)) = parts.trim().split_once('-') else { return Asked::All };
    let (first, last) = (first.trim(), last.trim());
    let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        // A number that is too large for us is behind every file.
        true => Some(text.parse::<u64>().unwrap_or(u64::MAX)),
        false => None,
    };
    match (number(first), number(last)) {
        (Some(from), _) if from >= length && (last.is_empty() || number(last) >= Some(from)) => {
            Asked::Nothing
        }
        (Some(from), Some(last)) if last >= from => {
            Asked::Part { from, to: last.saturating_add(1).min(length) }
        }
        (Some(from), None) if last.is_empty() => Asked::Part { from, to: length },
        (None, Some(0)) if first.is_empty() => Asked::Nothing,
        (None, Some(_)) if first.is_empty() && length == 0 => Asked::Nothing,
        (None, Some(tail)) if first.is_empty() => {
            Asked::Part { from: length.saturating_sub(tail), to: length }
        }
        _ => Asked::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_to_the_file_and_nonsense_gives_the_whole() {
        let part = |from, to| Asked::Part { from, to };
        for (range, expected) in [
            ("bytes=0-", part(0, 100)),
            ("bytes=0-0", part(0, 1)),
            ("bytes=10-19", part(10, 20)),
            ("bytes=90-1000", part(90, 100)),
            ("bytes=90-99999999999999999999999", part(90, 100)),
            ("bytes=-10", part(90, 100)),
            ("bytes=-1000", part(0, 100)),
            ("bytes=100-", Asked::Nothing),
            ("bytes=99999999999999999999999-", Asked::Nothing),
            ("bytes=-0", Asked::Nothing),
            ("bytes=20-10", Asked::All),
            ("bytes=200-110", Asked::All),
            ("bytes=0-1,4-5", Asked::All),
            ("bytes=", Asked::All),
            ("bytes=-", Asked::All),
            ("bytes=a-b", Asked::All),
            ("bytes=-+5", Asked::All),
            ("seconds=0-1", Asked::All),
        ] {
            assert_eq!(asked(Some(range), 100), expected, "{range}");
        }
        assert_eq!(asked(None, 100), Asked::All);
        assert_eq!(asked(Some("bytes=0-"), 0), Asked::Nothing);
        assert_eq!(asked(Some("bytes=-5"), 0), Asked::Nothing);
    }
}
