//! Personal details out of what is kept: event logs and recordings.
//!
//! A detail becomes `[email:1a2b3c4d]`: its kind and the beginning of a hash under a key that is made for each call and
//! never kept, so that the same detail is the same within a call, and nobody can try numbers until one fits. An input
//! with details loses them field by field; the question that was built from it goes as a whole, for a question spells and
//! groups what it reads back in ways that no pattern knows.
//!
//! It works on text. Sound is not redacted.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use sayback_core::{
    ApprovalOutcome, CallStart, CheckAnswer, Event, Frozen, Item, ModelEvent, OpenQuestion, Prepared,
    Reopened, SettledApproval, ToolCall, ToolOutcome, Transcript,
};
use serde_json::Value;

use crate::frozen::{canonical, sha256};

mod patterns;
mod stored;

pub use stored::{Learner, RedactedJournal};

use patterns::find;

/// A kind of personal detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Seven digits and more, written or spoken one by one.
    Phone,
    /// An address with an `@`, or spoken as "… at … dot …".
    Email,
    /// Thirteen to nineteen digits.
    Card,
    /// Two letters, two digits and eleven to thirty letters or digits.
    Iban,
}

impl Detail {
    /// Its name in agent files, and in what stands for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Phone => "phone",
            Self::Email => "email",
            Self::Card => "card",
            Self::Iban => "iban",
        }
    }
}

/// Takes details out of one call's texts. Clones share the key.
#[derive(Clone)]
pub struct Redactor {
    kinds: Vec<Detail>,
    key: Arc<str>,
    /// Questions that were built from details, with what stands for each.
    questions: Arc<Mutex<BTreeMap<String, String>>>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("kinds", &self.kinds).finish_non_exhaustive()
    }
}

/// Whether something in a text stands for a detail.
pub fn is_redacted(text: &str) -> bool {
    ["phone", "email", "card", "iban", "question"].iter().any(|kind| text.contains(&format!("[{kind}:")))
}

/// Where the first thing lies that stands for a detail: `[email:1a2b3c4d]`.
fn token_in(text: &str) -> Option<(usize, usize)> {
    let ends = |from: usize| {
        let (kind, rest) = text.get(from + 1..)?.split_once(':')?;
        let known = ["phone", "email", "card", "iban", "question"].contains(&kind);
        let digits = rest.get(..8)?.bytes().all(|byte| byte.is_ascii_hexdigit());
        (known && digits && rest.as_bytes().get(8) == Some(&b']')).then_some(from + kind.len() + 11)
    };
    text.match_indices('[').find_map(|(from, _)| Some((from, ends(from)?)))
}

/// Fields of the event log whose texts somebody said or a tool was given.
pub const FIELDS: [&str; 7] = ["text", "words", "input", "message", "confirmed_by", "error", "veto"];

impl Redactor {
    /// For a call in which these kinds are not kept; `None` if there are none.
    pub fn new(kinds: &[Detail]) -> Option<Self> {
        let random = |n: u64| format!("{:016x}", RandomState::new().hash_one(n));
        let key: String = (0..4).map(random).collect();
        let questions = Arc::default();
        (!kinds.is_empty()).then(|| Self { kinds: kinds.to_vec(), key: key.into(), questions })
    }

    /// The kinds that it takes out.
    pub fn kinds(&self) -> &[Detail] {
        &self.kinds
    }

    /// A hash under the call's key.
    fn keyed(&self, text: &str) -> String {
        let inner = sha256(format!("{}{text}", self.key).as_bytes());
        sha256(format!("{}{inner}", self.key).as_bytes()).replacen("sha256:", "keyed-sha256:", 1)
    }

    fn token(&self, kind: &str, text: &str) -> String {
        let hash = self.keyed(text);
        let digits = hash.rsplit(':').next().unwrap_or_default();
        format!("[{kind}:{}]", digits.get(..8).unwrap_or_default())
    }

    /// A text without its details.
    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (question, token) in self.questions().iter() {
            text = text.replace(question.as_str(), token);
            // What was heard of a question that was cut.
            if text.len() >= 8 && question.starts_with(&text) {
                text = token.clone();
            }
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        // What stands for a detail already may look like a number.
        while let Some((from, to)) = token_in(rest) {
            self.details(&rest[..from], &mut out);
            out.push_str(&rest[from..to]);
            rest = &rest[to..];
        }
        self.details(rest, &mut out);
        out
    }

    fn details(&self, mut rest: &str, out: &mut String) {
        while let Some(found) = find(rest, &self.kinds) {
            out.push_str(&rest[..found.from]);
            out.push_str(&self.token(found.kind.name(), &found.plain));
            rest = &rest[found.to..];
        }
        out.push_str(rest);
    }

    /// A value without its details, field by field.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(key, field)| (key.clone(), self.value(field))).collect())
            }
            Value::Number(number) => {
                let text = number.to_string();
                let told = self.text(&text);
                if told == text { value.clone() } else { Value::String(told) }
            }
            Value::Null | Value::Bool(_) => value.clone(),
        }
    }

    /// A line of the event log without them.
    pub fn line(&self, line: &Value) -> Value {
        let Value::Object(fields) = line else { return line.clone() };
        let told = fields.iter().map(|(key, field)| {
            let said = FIELDS.contains(&key.as_str());
            let keyed = key == "digit" && *field != "1" && *field != "2";
            let told = if keyed { Value::from("*") } else { field.clone() };
            (key.clone(), if said { self.value(field) } else { told })
        });
        Value::Object(told.collect())
    }

    fn questions(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of questions that were built from details: they go as a whole, wherever they are told.
    pub fn learn(&self, event: &Event) {
        if matches!(event, Event::Prepared { .. } | Event::Asked { .. } | Event::Reopened(_)) {
            let _ = self.event(event);
        }
    }

    /// What the core is told, without them. A session that is told this takes the same course: it does not look into
    /// what details stand for. Pieces of the model's text are not for this: a detail may be cut anywhere in them.
    pub fn event(&self, event: &Event) -> Event {
        let mut event = event.clone();
        match &mut event {
            Event::CallStarted(CallStart { greeting: Some(text), .. })
            | Event::Message { text, .. }
            | Event::Say { text }
            | Event::Transcript(Transcript { text, .. })
            | Event::Model(ModelEvent::Failed { error: text, .. })
            | Event::Checked {
                answer: CheckAnswer::Vetoed { veto: text } | CheckAnswer::Failed { error: text },
                ..
            }
            | Event::ToolFinished {
                outcome:
                    ToolOutcome::Done { message: text }
                    | ToolOutcome::Failed { message: text }
                    | ToolOutcome::NotRun { message: text },
                ..
            } => *text = self.text(text),
            // Words so far may be half a number. That there were some is all that they are for.
            Event::Partial { text, .. } if !text.trim().is_empty() => *text = "…".to_owned(),
            // A card's number can be keyed in. Only the keys that answer are told apart.
            Event::Digit { digit, .. } if !matches!(digit, '1' | '2') => *digit = '*',
            Event::Model(ModelEvent::Call { call, .. }) => self.call(call),
            Event::Prepared { outcome, .. } | Event::Asked { outcome, .. } => self.prepared(outcome),
            Event::Approvals(settled) => settled.iter_mut().for_each(|settled| self.settled(settled)),
            Event::ToolFinished { outcome: ToolOutcome::Asks { message, hint, payload }, .. } => {
                *message = self.text(message);
                self.asked(hint, payload);
            }
            Event::Reopened(reopened) => self.reopened(reopened, None),
            // Nothing that anybody said: what is added here must be looked at for it.
            Event::CallStarted(_)
            | Event::HungUp
            | Event::LineLost
            | Event::Unanswered
            | Event::Answered
            | Event::LineHeld
            | Event::LineResumed
            | Event::Voice(_)
            | Event::SpeechStarted { .. }
            | Event::SpeechEnded { .. }
            | Event::Echo { .. }
            | Event::Partial { .. }
            | Event::Measured { .. }
            | Event::EndOfTurn { .. }
            | Event::Digit { .. }
            | Event::Model(ModelEvent::Text { .. } | ModelEvent::Finished { .. })
            | Event::ToolFinished { outcome: ToolOutcome::Unknown, .. }
            | Event::Checked { answer: CheckAnswer::Verdict { .. }, .. }
            | Event::Playout(_)
            | Event::Tools(_)
            | Event::Rewound(_)
            | Event::EndRequested
            | Event::Tick => {}
        }
        event
    }

    fn call(&self, call: &mut ToolCall) {
        call.input = match serde_json::from_str::<Value>(&call.input) {
            Ok(value) => self.value(&value).to_string(),
            Err(_) => self.text(&call.input),
        };
    }

    fn settled(&self, settled: &mut SettledApproval) {
        match &mut settled.outcome {
            ApprovalOutcome::Answered { answer, reason } => {
                answer.by = self.text(&answer.by);
                self.json(&mut answer.payload);
                if let Some(reason) = reason {
                    *reason = self.text(reason);
                }
            }
            ApprovalOutcome::Failed { error } => *error = self.text(error),
            ApprovalOutcome::Expired => {}
        }
    }

    fn asked(&self, hint: &mut String, payload: &mut Option<String>) {
        *hint = self.text(hint);
        self.json(payload);
    }

    fn json(&self, text: &mut Option<String>) {
        let value = text.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
        *text = value.map(|value| self.value(&value).to_string());
    }

    fn prepared(&self, prepared: &mut Prepared) {
        match prepared {
            Prepared::Approve { hint, then } => {
                *hint = self.text(hint);
                self.prepared(then);
            }
            Prepared::Plain { input, .. } => {
                self.frozen(input);
            }
            Prepared::Ask { input, question, .. } => self.ask(input, question),
            Prepared::Refused { message, .. } => *message = self.text(message),
        }
    }

    /// A question whose input has details goes as a whole.
    fn ask(&self, input: &mut Frozen, question: &mut String) {
        if self.frozen(input) || self.text(question) != *question {
            let token = self.token("question", question);
            self.questions().insert(question.clone(), token.clone());
            *question = token;
        }
    }

    /// Whether there was anything to take out. The hash goes too: few inputs are possible, and each could be tried.
    fn frozen(&self, input: &mut Frozen) -> bool {
        let value: Value = serde_json::from_str(&input.json).unwrap_or_default();
        let told = self.value(&value);
        let found = told != value;
        if found {
            let hash = self.keyed(&input.json);
            let json = canonical(&told).map(|frozen| frozen.json).unwrap_or_default();
            *input = Frozen { json, hash };
        }
        found
    }

    fn outcome(&self, outcome: &mut ToolOutcome) {
        match outcome {
            ToolOutcome::Done { message }
            | ToolOutcome::Failed { message }
            | ToolOutcome::NotRun { message } => *message = self.text(message),
            ToolOutcome::Asks { message, hint, payload } => {
                *message = self.text(message);
                self.asked(hint, payload);
            }
            ToolOutcome::Unknown => {}
        }
    }

    /// `open`: a question that stays as it was said.
    fn reopened(&self, reopened: &mut Reopened, open: Option<&str>) {
        for asked in &mut reopened.asked {
            self.ask(&mut asked.question.input, &mut asked.question.question);
            if let Some(ran) = &mut asked.ran {
                ran.by = self.text(&ran.by);
            }
        }
        if let Some(OpenQuestion { input, question, .. }) = &mut reopened.open {
            self.ask(input, question);
        }
        for item in reopened.items.iter_mut().filter(|item| !Self::is_said(item, open)) {
            match item {
                Item::Caller { text } | Item::Agent { text, .. } | Item::Told { text } => {
                    *text = self.text(text)
                }
                Item::Call { call } => self.call(call),
                Item::Result { text, confirmed_by, .. } => {
                    *text = self.text(text);
                    if let Some(by) = confirmed_by {
                        *by = self.text(by);
                    }
                }
            }
        }
        for pending in &mut reopened.approvals {
            self.asked(&mut pending.hint, &mut pending.payload);
            self.prepared(&mut pending.then);
        }
        for run in &mut reopened.unsettled {
            run.confirmed_by = self.text(&run.confirmed_by);
            self.outcome(&mut run.outcome);
        }
    }
}
