//! A conversation in text as others hold it: over HTTP, on a page. It is a call like any other, with messages in place of
//! sound, so it is in the list of calls, has an event log, takes a place and ends with the server.
//!
//! Whoever writes is the caller. They see what the caller of a telephone call would hear, word for word, while the event
//! log that others see has no personal details.

use sayback_core::{AskedQuestion, Event, HoldId, Item, Session, Speak};
use serde::Serialize;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::line::Line;

/// A text conversation as the one who writes sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChatView {
    /// What was said and done, oldest first.
    pub items: Vec<Item>,
    /// The question that waits for a yes, if one does.
    pub question: Option<String>,
    /// Its id, as in the event log: a message may say that it answers this one and no other.
    pub hold: Option<HoldId>,
    /// Whether nothing is being thought, run or checked: the agent waits for a message.
    pub idle: bool,
    /// Whether it is over.
    pub over: bool,
    /// The questions that were heard in it; those that ran name the item that said yes.
    #[serde(skip)]
    pub asked: Vec<AskedQuestion>,
}

/// What ran on a yes and would not be undone by taking the conversation back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotUndone {
    /// The tool.
    pub tool: String,
    /// The question that was answered.
    pub question: String,
    /// The words that said yes.
    pub confirmed_by: String,
    /// The item of the conversation that they are, from 0.
    pub item: u32,
}

impl ChatView {
    /// What ran on a yes that would be taken back if only the first `keep` items were kept (VC-75). All that ran: 0.
    pub fn not_undone(&self, keep: u32) -> Vec<NotUndone> {
        let mut all = Vec::new();
        for AskedQuestion { question, ran, .. } in &self.asked {
            let Some(ran) = ran.as_ref().filter(|ran| ran.item >= keep) else { continue };
            let one = NotUndone {
                tool: question.tool.name.clone(),
                question: question.question.clone(),
                confirmed_by: ran.by.clone(),
                item: ran.item,
            };
            if !all.contains(&one) {
                all.push(one);
            }
        }
        all
    }
}

/// A conversation in text as it is reached from outside.
#[derive(Clone, Debug)]
pub struct Chat {
    clock: Clock,
    view: watch::Receiver<ChatView>,
}

impl Chat {
    /// How it stands.
    pub fn view(&self) -> ChatView {
        self.view.borrow().clone()
    }

    /// A message that was received just now, for the call to be told.
    pub fn message(&self, text: String) -> Event {
        Event::Message { text, received: self.clock.now() }
    }
}

/// The line of a text conversation: shows how it stands to whoever looks.
#[derive(Debug)]
pub(crate) struct ChatLine {
    view: watch::Sender<ChatView>,
}

impl ChatLine {
    /// A line, and the conversation on it as others reach it.
    pub(crate) fn new(clock: Clock) -> (Self, Chat) {
        let (sender, view) = watch::channel(ChatView::default());
        (Self { view: sender }, Chat { clock, view })
    }
}

impl Line for ChatLine {
    /// What is said is an item of the conversation at once.
    fn speak(&mut self, _speak: Speak) {}

    fn on_state(&mut self, session: &Session) {
        self.view.send_modify(|view| {
            view.items = session.items().to_vec();
            view.asked = session.asked().to_vec();
            let open = session.open_question();
            view.question = open.map(|(_, question, _)| question.to_owned());
            view.hold = open.map(|(hold, _, _)| hold);
            view.idle = session.is_idle();
        });
    }

    fn close(&mut self) {
        self.view.send_modify(|view| view.over = true);
    }
}
