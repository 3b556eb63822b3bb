//! `sayback chat [AGENT]`: the agent in text, in a terminal or from a pipe.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use clap::Args as ClapArgs;
use sayback_core::{
    Approval, ApprovalId, ApprovalOutcome, ApprovalWish, AskedQuestion, CallStart, Event, Item, Session,
    SettledApproval, Speak,
};
use sayback_runtime::clock::{Clock, unix_seconds};
use sayback_runtime::driver::{Approver, Driver, Parts};
use sayback_runtime::line::Line;
use sayback_runtime::llm::Llm;
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use super::stored::Opened;
use crate::answered::Answered;
use crate::engines::{Grounding, Waits, load_agent, warmed_llm};
use crate::exit::Stop;

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The agent file
    #[arg(default_value = "configs/clinic.toml")]
    agent: PathBuf,
    /// Steps and verdicts for a scripted model, one JSON object a line
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Reopens a stored conversation
    #[arg(long, value_name = "ID")]
    resume: Option<String>,
    /// Writes the event log as JSON lines
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Records the call in this folder: journal, events, evidence
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Where conversations are stored
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

/// What the reader of lines may look at.
#[derive(Debug, Default)]
struct View {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    idle: bool,
    done: bool,
    /// Messages and rewinds sent, and those that the call has taken: idle means idle after the last one.
    sent: u64,
    taken: u64,
    items: Vec<Item>,
    asked: Vec<AskedQuestion>,
}

impl View {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, how: impl FnOnce(&mut State)) {
        how(&mut self.state());
        self.changed.notify_all();
    }

    /// Waits until the agent has answered everything, or the call is over.
    fn wait_until_idle(&self) {
        let busy = |state: &mut State| !state.done && (!state.idle || state.sent != state.taken);
        let waited = self.changed.wait_while(self.state(), busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

pub(crate) fn run(args: &Args) -> Result<u8, Stop> {
    let file = load_agent(&args.agent)?;
    let waits = Waits::new()?;
    let store = super::stored::open(args.store.as_deref())?;
    let model = Answered::new(warmed_llm(&waits, &file, args.script.as_deref())?);
    let redactor = super::record::redactor(&file);
    let mut observers = super::log::observers(args.events.as_deref(), redactor.clone())?;
    let fresh = || format!("chat-{}-{}", unix_seconds(), std::process::id());
    let mut opened = Opened::new(&store, &file.agent.name, args.resume.as_deref(), fresh, redactor)?;
    let id = opened.id.clone();
    let recorder = super::record::begin(args.record.as_deref(), &file, &id, "chat")?;
    observers.extend(recorder.as_ref().map(|recorder| recorder.observer()));
    let view = Arc::new(View::default());
    let interactive = std::io::stdin().is_terminal();
    let screen = file
        .llm
        .may_be_local()
        .then(|| Arc::new(Grounding::new()) as Arc<dyn sayback_runtime::driver::Screen>);
    let agent = Arc::new(file.agent);
    let clock = Clock::start();
    let parts = Parts {
        agent: Arc::clone(&agent),
        llm: Arc::clone(&model) as Arc<dyn Llm>,
        screen,
        line: Box::new(ChatLine { view: Arc::clone(&view) }),
        observers,
        call: id.clone(),
        clock,
    };
    let (mut driver, sender) = Driver::new(parts);
    driver.write_to(Arc::clone(&opened.journal));
    driver.ask_operators(Box::new(AtTheKeyboard));
    let before = opened.before.take();
    let start = beginning(&id, &agent);
    if interactive {
        out!("{} · /tools /rewind N /new /approve ID /reject ID /quit · conversation {id}", agent.name);
    }
    let session = waits.runtime().block_on(async move {
        let running = tokio::spawn(driver.run());
        if let Some(stored) = before {
            let _ = sender.send(Event::Reopened(stored)).await;
        }
        let _ = sender.send(Event::CallStarted(start)).await;
        let reader = std::thread::spawn(move || read_lines(&sender, &view, &agent, clock, interactive));
        let session = running.await;
        drop(reader);
        session
    });
    let session = session.map_err(|error| Stop::unusable(format!("the call broke down: {error}")))?;
    // Neither keeps the other from being written.
    let recorded = super::record::end(recorder.as_ref());
    waits.runtime().block_on(opened.close(&session))?;
    recorded?;
    if interactive {
        out!("Stored. Go on with: sayback chat {} --resume {id}", args.agent.display());
    }
    model.at_last()?;
    Ok(0)
}

fn beginning(id: &str, agent: &sayback_runtime::agent::Agent) -> CallStart {
    CallStart {
        transport: "chat".to_owned(),
        call: id.to_owned(),
        language: agent.language.clone(),
        greeting: agent.greeting.clone(),
        chat: true,
    }
}

/// Lines from standard input, each sent when the agent is ready for it.
fn read_lines(
    sender: &Sender<Event>,
    view: &View,
    agent: &sayback_runtime::agent::Agent,
    clock: Clock,
    interactive: bool,
) {
    for line in std::io::stdin().lock().split(b'\n') {
        let Ok(line) = line else { break };
        // A byte that is no text does not lose the lines behind it.
        let line = String::from_utf8_lossy(&line).into_owned();
        if !interactive {
            view.wait_until_idle();
        }
        if view.state().done {
            return;
        }
        let line = line.trim();
        let event = match order(line, sender, view, agent) {
            Order::None if line.is_empty() => continue,
            Order::None => {
                if !interactive {
                    out!("> {line}");
                }
                Event::Message { text: line.to_owned(), received: clock.now() }
            }
            Order::Event(event) => *event,
            Order::Done => continue,
            Order::Quit => break,
        };
        view.change(|state| state.sent += 1);
        if sender.blocking_send(event).is_err() {
            return;
        }
    }
    view.wait_until_idle();
    let _ = sender.blocking_send(Event::HungUp);
}

/// What a line that begins with a slash wants.
enum Order {
    /// It is none: it is said to the agent.
    None,
    /// This is to happen in the call.
    Event(Box<Event>),
    /// It was done, or could not be.
    Done,
    /// The end.
    Quit,
}

fn order(line: &str, sender: &Sender<Event>, view: &View, agent: &sayback_runtime::agent::Agent) -> Order {
    let (command, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let wants = |event| Order::Event(Box::new(event));
    match (command, argument.trim()) {
        ("/quit", "") => Order::Quit,
        ("/tools", "") => {
            for tool in agent.skills.iter().flat_map(|s| &s.tools) {
                out!("  {} — {}", tool.info().name, tool.info().description);
            }
            Order::Done
        }
        ("/new", "") => rewind("0", view).map_or(Order::Done, wants),
        ("/rewind", argument) => rewind(argument, view).map_or(Order::Done, wants),
        ("/approve" | "/reject", argument) => {
            answer(sender, argument, command == "/approve");
            Order::Done
        }
        (command, _) if command.starts_with('/') => {
            out!("  unknown command; there are /rewind N, /new, /tools, /approve ID, /reject ID, /quit");
            Order::Done
        }
        _ => Order::None,
    }
}

/// Keeps the first N items; what was confirmed and ran is named, since it is not taken back.
fn rewind(argument: &str, view: &View) -> Option<Event> {
    let state = view.state();
    match super::rewind::wanted(argument, &state.items) {
        Ok(Some(to)) => {
            for line in super::rewind::not_taken_back(to, &state.asked) {
                out!("  {line}");
            }
            Some(Event::Rewound(to))
        }
        Ok(None) => {
            for line in super::rewind::listed(&state.items) {
                out!("  {line}");
            }
            out!("  /rewind N keeps the first N of these");
            None
        }
        Err(wrong) => {
            out!("  {wrong}");
            None
        }
    }
}

/// Whoever sits at the keyboard is the operator too, and answers with a command.
#[derive(Debug)]
struct AtTheKeyboard;

impl Approver for AtTheKeyboard {
    fn request(&mut self, _wish: ApprovalWish, _call: Sender<Event>) {}
    fn withdraw(&mut self, _approval: ApprovalId, _reason: String) {}
}

/// Answers an approval. Its run, if there is one, is not waited for: what is typed next comes behind it.
fn answer(sender: &Sender<Event>, argument: &str, confirmed: bool) {
    match settled(argument, confirmed) {
        // A call that is over needs no answer; the next line finds that out.
        Some(event) => drop(sender.blocking_send(event)),
        None => out!("  name what waits, like: /approve a_01"),
    }
}

/// `a_01`, or `a_01 too much`: the answer to an approval, and why.
fn settled(argument: &str, confirmed: bool) -> Option<Event> {
    let (id, reason) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    let approval: ApprovalId = serde_json::from_value(Value::from(id)).ok()?;
    let answer = Approval { confirmed, by: "the keyboard".to_owned(), payload: None };
    let reason = Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    Some(Event::Approvals(vec![SettledApproval {
        approval,
        outcome: ApprovalOutcome::Answered { answer, reason },
    }]))
}

struct ChatLine {
    view: Arc<View>,
}

impl Line for ChatLine {
    fn speak(&mut self, speak: Speak) {
        out!("{}", speak.text);
        let _ = std::io::stdout().flush();
    }

    fn on_event(&mut self, line: &Value) {
        match line["event"].as_str() {
            Some("tool.started") => {
                let by = line["confirmed_by"]
                    .as_str()
                    .map(|by| format!(" (confirmed by {by:?})"))
                    .unwrap_or_default();
                out!("  [{} {}{by}]", line["tool"].as_str().unwrap_or_default(), line["input"]);
            }
            // Whether it is idle after this message is for the next look at the session to say.
            Some("caller.words" | "conversation.rewound") => self.view.change(|state| {
                state.taken += 1;
                state.idle = false;
            }),
            Some("question.reopened") => {
                out!("(open again) {}", line["text"].as_str().unwrap_or_default());
                if let Some(by) = line["ran_before"].as_str() {
                    out!(
                        "  this already ran, on {by:?}; another yes runs it again, with the same idempotency key"
                    );
                }
            }
            Some("confirmation.requested") => {
                let id = line["id"].as_str().unwrap_or_default();
                out!("  [an operator must approve {id}: {}]", line["hint"].as_str().unwrap_or_default());
                out!("  [/approve {id}, or /reject {id} WHY]");
            }
            Some("confirmation.answered") => {
                let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
                out!("  [approval {}: {}]", text("id"), text("outcome"));
            }
            Some("question.dropped") => {
                out!("  [question dropped: {}]", line["reason"].as_str().unwrap_or_default())
            }
            Some("model.failed") => {
                eprintln!("sayback: {}", line["error"].as_str().unwrap_or_default());
            }
            _ => {}
        }
    }

    fn on_state(&mut self, session: &Session) {
        self.view.change(|state| {
            state.items = session.items().to_vec();
            state.asked = session.asked().to_vec();
            state.idle = session.is_idle();
        });
    }

    fn close(&mut self) {
        self.view.change(|state| state.done = true);
    }
}
