//! Puts the pieces of tool calls together, whatever the server's habits.

use std::collections::BTreeSet;

use sayback_runtime::llm::LlmCall;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::wire::CallDelta;

/// More calls than this in one step are a runaway.
const MOST_CALLS: usize = 64;

/// Calls under way.
///
/// OpenAI keys the pieces by `index` and names the id once. Other servers leave out ids, leave out indexes, write
/// index 0 for every call, repeat the id and the name in every piece, or send a whole call twice. So a piece goes
/// to the call with its index, unless it says by another id, or by a name after complete arguments, that it begins
/// a new one; and of two calls with the same id the first counts.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    index: Option<u32>,
    id: Option<String>,
    name: String,
    arguments: String,
}

/// Why the pieces make no calls.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallsError {
    /// A call without a name.
    #[error("a tool call without a name")]
    Nameless,
    /// Too many calls.
    #[error("more than {MOST_CALLS} tool calls in one step")]
    TooMany,
}

impl Calls {
    /// Takes one piece.
    pub(super) fn push(&mut self, delta: CallDelta) -> Result<(), CallsError> {
        let id = delta.id.filter(|id| !id.is_empty());
        let name = delta.function.name.filter(|name| !name.is_empty());
        let arguments = delta.function.arguments.map(text_of).unwrap_or_default();
        let piece = Slot { index: delta.index, id, name: name.unwrap_or_default(), arguments };
        let place = match delta.index {
            Some(index) => self.slots.iter().rposition(|slot| slot.index == Some(index)),
            None => self.same_id(&piece).or_else(|| self.slots.len().checked_sub(1)),
        };
        if let Some(slot) = place.and_then(|at| self.slots.get_mut(at))
            && !slot.is_followed_by(&piece)
        {
            slot.take(piece);
            return Ok(());
        }
        if self.slots.len() >= MOST_CALLS {
            return Err(CallsError::TooMany);
        }
        self.slots.push(piece);
        Ok(())
    }

    fn same_id(&self, piece: &Slot) -> Option<usize> {
        piece.id.as_ref()?;
        self.slots.iter().rposition(|slot| slot.id == piece.id)
    }

    /// Whether a call is there whose arguments are not complete JSON.
    pub(super) fn has_cut_arguments(&self) -> bool {
        self.slots.iter().any(|slot| !slot.arguments.trim().is_empty() && !slot.is_complete())
    }

    /// The calls in the order of their first pieces; ids that were left out are made from `id_stem`.
    pub(super) fn finish(&mut self, id_stem: &str) -> Result<Vec<LlmCall>, CallsError> {
        let mut ids = BTreeSet::new();
        let mut calls = Vec::new();
        for (at, slot) in std::mem::take(&mut self.slots).into_iter().enumerate() {
            let id = slot.id.unwrap_or_else(|| format!("{id_stem}_{at}"));
            if !ids.insert(id.clone()) {
                continue;
            }
            if slot.name.is_empty() {
                return Err(CallsError::Nameless);
            }
            let arguments = if slot.arguments.trim().is_empty() { "{}".to_owned() } else { slot.arguments };
            calls.push(LlmCall { id, name: slot.name, arguments });
        }
        Ok(calls)
    }
}

impl Slot {
    /// Whether `piece`, which has our index, is the beginning of another call.
    fn is_followed_by(&self, piece: &Slot) -> bool {
        match (&self.id, &piece.id) {
            (Some(ours), Some(theirs)) => ours != theirs,
            (None, Some(_)) => self.is_complete(),
            (_, None) => !piece.name.is_empty() && !piece.arguments.is_empty() && self.is_complete(),
        }
    }

    fn take(&mut self, piece: Slot) {
        // The whole call once more.
        let repeated = self.id.is_some() && self.id == piece.id && self.is_complete();
        if repeated {
            return;
        }
        self.id = self.id.take().or(piece.id);
        if self.name != piece.name && self.arguments.is_empty() {
            self.name.push_str(&piece.name);
        }
        self.arguments.push_str(&piece.arguments);
    }

    fn is_complete(&self) -> bool {
        self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }
}

fn text_of(arguments: Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text,
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Feeds the pieces and gives `id name arguments` of each call.
    fn assembled(pieces: &[Value]) -> Vec<String> {
        let mut calls = Calls::default();
        for piece in pieces {
            calls.push(serde_json::from_value(piece.clone()).unwrap()).unwrap();
        }
        let calls = calls.finish("call_7").unwrap();
        calls.into_iter().map(|call| format!("{} {} {}", call.id, call.name, call.arguments)).collect()
    }

    fn piece(index: u32, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
        json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    }

    #[test]
    fn pieces_of_two_calls_interleave_by_index() {
        let pieces = [
            piece(0, Some("a"), Some("book"), ""),
            piece(1, Some("b"), Some("move"), ""),
            piece(0, None, None, "{\"day\""),
            piece(1, None, None, "{\"to\":"),
            piece(0, None, None, ":\"Mon\"}"),
            piece(1, None, None, "\"Tue\"}"),
        ];
        assert_eq!(assembled(&pieces), ["a book {\"day\":\"Mon\"}", "b move {\"to\":\"Tue\"}"]);
    }

    #[test]
    fn missing_ids_are_made_and_differ() {
        let pieces = [piece(0, None, Some("book"), "{}"), piece(1, Some(""), Some("book"), "{}")];
        assert_eq!(assembled(&pieces), ["call_7_0 book {}", "call_7_1 book {}"]);
    }

    #[test]
    fn index_zero_for_every_call_still_makes_two_calls() {
        let with_ids =
            [piece(0, Some("a"), Some("x"), "{\"n\":1}"), piece(0, Some("b"), Some("x"), "{\"n\":2}")];
        assert_eq!(assembled(&with_ids), ["a x {\"n\":1}", "b x {\"n\":2}"]);
        let without = [piece(0, None, Some("x"), "{\"n\":1}"), piece(0, None, Some("x"), "{\"n\":2}")];
        assert_eq!(assembled(&without), ["call_7_0 x {\"n\":1}", "call_7_1 x {\"n\":2}"]);
    }

    #[test]
    fn calls_without_an_index_are_told_apart() {
        let pieces = [
            json!({"id": "a", "function": {"name": "x", "arguments": "{\"n\":"}}),
            json!({"function": {"arguments": "1}"}}),
            json!({"id": "b", "function": {"name": "y", "arguments": {"n": 2}}}),
        ];
        assert_eq!(assembled(&pieces), ["a x {\"n\":1}", "b y {\"n\":2}"]);
    }

    #[test]
    fn a_call_sent_twice_counts_once() {
        let again =
            [piece(0, Some("a"), Some("x"), "{\"n\":1}"), piece(0, Some("a"), Some("x"), "{\"n\":1}")];
        assert_eq!(assembled(&again), ["a x {\"n\":1}"]);
        let elsewhere =
            [piece(0, Some("a"), Some("x"), "{\"n\":1}"), piece(1, Some("a"), Some("x"), "{\"n\":1}")];
        assert_eq!(assembled(&elsewhere), ["a x {\"n\":1}"]);
    }

    #[test]
    fn id_and_name_repeated_in_every_piece_change_nothing() {
        let pieces = [
            piece(0, Some("a"), Some("x"), "{\"n\""),
            piece(0, Some("a"), Some("x"), ":1}"),
            piece(0, Some("a"), Some("x"), ""),
        ];
        assert_eq!(assembled(&pieces), ["a x {\"n\":1}"]);
    }

    #[test]
    fn no_arguments_are_an_empty_object() {
        assert_eq!(assembled(&[piece(0, Some("a"), Some("now"), "")]), ["a now {}"]);
        assert_eq!(assembled(&[json!({"id": "a", "function": {"name": "now"}})]), ["a now {}"]);
    }

    #[test]
    fn nameless_and_endless_calls_are_refused() {
        let mut calls = Calls::default();
        calls.push(serde_json::from_value(piece(0, Some("a"), None, "{}")).unwrap()).unwrap();
        assert_eq!(calls.finish("s"), Err(CallsError::Nameless));
        let mut calls = Calls::default();
        let mut push = |n| calls.push(serde_json::from_value(piece(n, None, Some("x"), "{}")).unwrap());
        assert!((0..64).all(|n| push(n).is_ok()));
        assert_eq!(push(64), Err(CallsError::TooMany));
    }

    #[test]
    fn cut_arguments_are_noticed() {
        let mut calls = Calls::default();
        calls.push(serde_json::from_value(piece(0, Some("a"), Some("x"), "{\"n\":")).unwrap()).unwrap();
        assert!(calls.has_cut_arguments());
        calls.push(serde_json::from_value(piece(0, None, None, "1}")).unwrap()).unwrap();
        assert!(!calls.has_cut_arguments());
    }
}
