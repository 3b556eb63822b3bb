//! The model's bytes, told apart into speech and a call.

use serde_json::{Map, Value};

/// What a token added to the answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// Speech.
    Text(String),
    /// A whole call; nothing follows it.
    Call {
        /// The tool.
        name: String,
        /// Its arguments as JSON text.
        arguments: String,
    },
}

/// Reads an answer token by token.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// With tools, `<`, `{` or a backtick begins a call.
    has_tools: bool,
    /// The beginning of a letter whose end is not here yet.
    undecoded: Vec<u8>,
    /// A call under way, from its `{` on.
    call: Option<String>,
    text: String,
}

impl Answer {
    pub(crate) fn new(has_tools: bool) -> Self {
        Self { has_tools, ..Self::default() }
    }

    /// All speech so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Takes the bytes of one token.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<Part> {
        self.undecoded.extend_from_slice(bytes);
        let text = self.decoded();
        if let Some(call) = &mut self.call {
            call.push_str(&text);
            return self.whole_call();
        }
        let opening = text.find(['<', '{', '`']).filter(|_| self.has_tools);
        let Some(at) = opening else {
            self.text.push_str(&text);
            return (!text.is_empty()).then_some(Part::Text(text));
        };
        self.call = Some(text[at..].to_owned());
        let spoken = text[..at].to_owned();
        self.text.push_str(&spoken);
        // One token never holds the end of some speech and a whole call.
        if spoken.is_empty() { self.whole_call() } else { Some(Part::Text(spoken)) }
    }

    /// The letters that are complete; what can never become one is replaced.
    fn decoded(&mut self) -> String {
        let mut text = String::new();
        loop {
            match std::str::from_utf8(&self.undecoded) {
                Ok(valid) => {
                    text.push_str(valid);
                    self.undecoded.clear();
                    return text;
                }
                Err(error) => {
                    let (valid, rest) = self.undecoded.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(broken) = error.error_len() else {
                        self.undecoded = rest.to_vec();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    self.undecoded = rest[broken..].to_vec();
                }
            }
        }
    }

    fn whole_call(&mut self) -> Option<Part> {
        let text = self.call.as_ref()?;
        let json = text.get(text.find('{')?..)?;
        // Parsing is tried only where an object may have ended.
        if !json.trim_end().ends_with('}') {
            return None;
        }
        let call = serde_json::from_str::<Map<String, Value>>(json).ok()?;
        let name = call.get("name")?.as_str()?.to_owned();
        let arguments = call.get("arguments")?.to_string();
        self.call = None;
        Some(Part::Call { name, arguments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(has_tools: bool, text: &str, size: usize) -> (String, Vec<Part>) {
        let mut answer = Answer::new(has_tools);
        let parts: Vec<_> = text.as_bytes().chunks(size).filter_map(|bytes| answer.push(bytes)).collect();
        let calls = parts.into_iter().filter(|part| matches!(part, Part::Call { .. })).collect();
        (answer.text().to_owned(), calls)
    }

    #[test]
    fn speech_and_a_call_are_told_apart_wherever_the_tokens_end() {
        for opening in ["<tool_call>\n", "```json\n", ""] {
            let text =
                format!("Für Zoë. {opening}{{\"name\": \"f\", \"arguments\": {{\"a\": {{\"b\": \"}}\"}}}}}}");
            for size in [1, 2, 3, 5] {
                let (spoken, calls) = read(true, &text, size);
                assert_eq!(spoken, "Für Zoë. ");
                let expected = Part::Call { name: "f".into(), arguments: "{\"a\":{\"b\":\"}\"}}".into() };
                assert_eq!(calls, [expected], "{text} in {size}");
            }
        }
    }

    #[test]
    fn without_tools_everything_is_speech() {
        assert_eq!(read(false, "if a < b { 日本 }", 2), ("if a < b { 日本 }".to_owned(), vec![]));
    }

    #[test]
    fn broken_letters_are_replaced_and_the_rest_goes_on() {
        let mut answer = Answer::new(false);
        answer.push(b"a\xffb");
        answer.push(b"\xe6\x97");
        assert_eq!(answer.text(), "a\u{fffd}b");
        answer.push(b"\xa5");
        assert_eq!(answer.text(), "a\u{fffd}b日");
    }

    #[test]
    fn a_half_call_is_none() {
        let mut answer = Answer::new(true);
        assert_eq!(answer.push(b"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}"), None);
        assert!(answer.call.is_some());
    }
}
