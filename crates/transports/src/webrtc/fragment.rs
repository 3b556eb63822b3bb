//! Pieces of session descriptions that come and go while a call is on: candidates, and new names (RFC 8840).

use super::description::value;

/// Candidates that one fragment may bring.
const CANDIDATES: usize = 64;

/// What a PATCH brings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fragment {
    /// The far end's ICE name and password, if they are in it.
    pub(super) names: Option<(String, String)>,
    /// Candidates, each `candidate:…`.
    pub(super) candidates: Vec<String>,
}

/// It is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no fragment of a session description: {0}")]
pub(super) struct NoFragment(pub(super) &'static str);

impl Fragment {
    pub(super) fn read(text: &str) -> Result<Self, NoFragment> {
        let candidates: Vec<String> = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("a="))
            .filter(|line| line.starts_with("candidate:"))
            .map(str::to_owned)
            .collect();
        if candidates.len() > CANDIDATES {
            return Err(NoFragment("it has more than 64 candidates"));
        }
        let name = value(text, "a=ice-ufrag:").filter(|name| is_word(name, 4));
        let password = value(text, "a=ice-pwd:").filter(|password| is_word(password, 22));
        let names = name.zip(password).map(|(name, password)| (name.to_owned(), password.to_owned()));
        let ended = text.contains("a=end-of-candidates");
        if names.is_none() && candidates.is_empty() && !ended {
            return Err(NoFragment("it has neither candidates nor an ICE name and password"));
        }
        Ok(Self { names, candidates })
    }

    /// Reads ours out of our answer.
    pub(super) fn of_answer(answer: &str) -> String {
        let mut text = String::new();
        for start in ["a=ice-ufrag:", "a=ice-pwd:", "m=audio", "a=mid:", "a=candidate:"] {
            let one = start != "a=candidate:";
            let lines = answer.lines().filter(|line| line.starts_with(start));
            for line in lines.take(if one { 1 } else { CANDIDATES }) {
                text.push_str(line.trim());
                text.push_str("\r\n");
            }
        }
        text.push_str("a=end-of-candidates\r\n");
        text
    }

    /// The offer that the far end would make now: the one before, with these names and candidates.
    pub(super) fn renew(&self, offer: &str) -> String {
        let mut renewed = String::with_capacity(offer.len());
        let mut sections = 0;
        for line in offer.lines() {
            let is_old = line.starts_with("a=candidate:") || line.starts_with("a=end-of-candidates");
            match (&self.names, line) {
                _ if is_old => continue,
                (Some((name, _)), line) if line.starts_with("a=ice-ufrag:") => {
                    renewed.push_str(&format!("a=ice-ufrag:{name}"));
                }
                (Some((_, password)), line) if line.starts_with("a=ice-pwd:") => {
                    renewed.push_str(&format!("a=ice-pwd:{password}"));
                }
                (_, line) => renewed.push_str(line.trim_end()),
            }
            renewed.push_str("\r\n");
            if line.starts_with("a=mid:") {
                sections += 1;
                let first = sections == 1;
                for candidate in self.candidates.iter().filter(|_| first) {
                    renewed.push_str(&format!("a={candidate}\r\n"));
                }
            }
        }
        renewed
    }
}

/// Letters that ICE takes, at least so many.
fn is_word(text: &str, least: usize) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    (least..=256).contains(&text.len()) && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\nm=audio 9 X 0\r\na=mid:0\r\n\
        a=candidate:1 1 udp 2 192.0.2.1 5000 typ host\r\n";

    #[test]
    fn candidates_and_names_are_read() {
        let fragment = Fragment::read(TEXT).unwrap();
        assert_eq!(fragment.candidates, ["candidate:1 1 udp 2 192.0.2.1 5000 typ host"]);
        assert_eq!(fragment.names.as_ref().map(|names| names.0.as_str()), Some("abcd"));
        for bad in ["", "hello", "a=ice-ufrag:abcd\r\n", "a=ice-ufrag:a b c d\r\na=ice-pwd:short\r\n"] {
            assert!(Fragment::read(bad).is_err(), "{bad}");
        }
        let many = "a=candidate:1 1 udp 2 192.0.2.1 5000 typ host\r\n".repeat(65);
        assert!(Fragment::read(&many).is_err());
    }

    #[test]
    fn an_offer_is_renewed() {
        let offer = "v=0\r\nm=audio 9 X 0\r\na=ice-ufrag:old1\r\na=ice-pwd:old\r\na=mid:0\r\n\
            a=candidate:9 1 udp 2 192.0.2.9 9 typ host\r\n";
        let renewed = Fragment::read(TEXT).unwrap().renew(offer);
        assert!(renewed.contains("a=ice-ufrag:abcd\r\n") && renewed.contains("192.0.2.1 5000"), "{renewed}");
        assert!(!renewed.contains("old") && !renewed.contains("192.0.2.9"), "{renewed}");
    }

    #[test]
    fn what_of_an_answer_changes_is_told() {
        let told = Fragment::of_answer(&format!("v=0\r\n{TEXT}a=rtpmap:0 PCMU/8000\r\n"));
        assert_eq!(told, format!("{TEXT}a=end-of-candidates\r\n"));
    }
}
