//! What the rest of the server may ask of a telephone line.

use std::collections::BTreeMap;

use sayback_core::{CallId, is_emergency};
use sayback_runtime::calls::{LineControl, NotOnThisLine};
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use super::transfer::{Destination, Sending};
use crate::wire::Signalling;

/// Wishes that may wait; more are refused.
pub(super) const WISHES: usize = 16;

/// More than this is not said of a caller who is handed over.
const LONGEST_ABOUT: usize = 400;

/// Something asked of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Keys at the far end.
    Press(String),
    /// The far end hears nothing, or hears again.
    Mute(bool),
    /// The caller goes to somebody else.
    Transfer(Box<Sending>),
    /// The model wants the caller somewhere where nobody may be sent; why not.
    Stay(CallId, String),
}

/// The server's hand on a line, and the model's.
#[derive(Clone, Debug)]
pub(super) struct Control {
    pub(super) wishes: Sender<Wish>,
    /// Those that are known by name.
    pub(super) destinations: BTreeMap<String, Destination>,
}

impl Control {
    fn wish(&self, wish: Wish, what: &'static str) -> Result<(), NotOnThisLine> {
        self.wishes.try_send(wish).map_err(|_| NotOnThisLine { transport: "sip", what })
    }
}

impl LineControl for Control {
    fn press(&self, digits: &str) -> Result<(), NotOnThisLine> {
        self.wish(Wish::Press(digits.to_owned()), "press keys just now")
    }

    fn mute(&self, muted: bool) -> Result<(), NotOnThisLine> {
        self.wish(Wish::Mute(muted), "be muted just now")
    }

    fn transfer(&self, to: &str) -> Result<(), NotOnThisLine> {
        let destination = self.destinations.get(to).cloned().unwrap_or_else(|| Destination::plain(to));
        let sending = Sending { destination, call: None, about: None, dropped: None };
        self.wish(Wish::Transfer(Box::new(sending)), "be transferred just now")
    }
}

impl Signalling for Control {
    fn transfers(&self) -> Vec<String> {
        self.destinations.keys().cloned().collect()
    }

    fn transfer(&mut self, call: &CallId, input: &str, dropped: Option<&str>) -> bool {
        let Some((to, about)) = destination(input) else { return false };
        let sending = |destination: Destination| {
            let (call, dropped) = (Some(call.clone()), dropped.map(str::to_owned));
            Wish::Transfer(Box::new(Sending { destination, call, about, dropped }))
        };
        let wish = match self.destinations.get(&to) {
            Some(target) => sending(target.clone()),
            None if is_emergency(&to) => sending(Destination::plain(to)),
            None => {
                let names: Vec<&str> = self.destinations.keys().map(String::as_str).collect();
                let why = format!("nobody may be sent to {to:?}; say one of: {}", names.join(", "));
                Wish::Stay(call.clone(), why)
            }
        };
        self.wishes.try_send(wish).is_ok()
    }
}

/// Where a transfer is to go and what about, by the arguments of its tool: `{"to": "…", "about": "…"}`.
fn destination(input: &str) -> Option<(String, Option<String>)> {
    let input: Value = serde_json::from_str(input).ok()?;
    let text =
        |key: &str| input.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    // It is read to somebody: a sentence or two.
    let about = text("about").map(|about| about.chars().take(LONGEST_ABOUT).collect());
    Some((text("to")?.to_owned(), about))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_names_where_to() {
        assert_eq!(destination(r#"{"to": " +4930123 "}"#), Some(("+4930123".to_owned(), None)));
        let told = destination(r#"{"to": "boss", "about": "Anna, about her bill."}"#);
        assert_eq!(told, Some(("boss".to_owned(), Some("Anna, about her bill.".to_owned()))));
        for bad in ["", "{}", r#"{"to": ""}"#, r#"{"to": 5}"#, "[1"] {
            assert_eq!(destination(bad), None);
        }
    }
}
