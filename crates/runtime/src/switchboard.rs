//! Where a call to a server is taken: is there room, who answers, and off it goes.
//!
//! Transports know how calls come; the switchboard knows who answers them. A transport asks for a place
//! ([`Switchboard::admit`]), opens its line with the voice that it was given, and starts the call
//! ([`Admitted::start`]). Each transport says "no" in its own words: 486 and 503 in SIP, 404 and 503 in HTTP.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sayback_core::{CallStart, Event, Reopened};
use sayback_media::{EndOfTurn, SpeechProbability};
use serde::Serialize;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

use crate::agent::Agent;
use crate::answering::{Answering, Words};
use crate::approvals::ApprovalQueue;
use crate::approver::QueueApprover;
use crate::calls::{CallLog, CallView, Calls, ClaimedId, Ends, LineControl, Place};
use crate::chat::{Chat, ChatLine};
use crate::clock::{Clock, unix_seconds};
use crate::driver::{Driver, Observer, Parts, Screen};
use crate::ears::{EarEngines, Ears, ears};
use crate::journal::Journal;
use crate::line::Line;
use crate::llm::Llm;
use crate::record::{AgentSheet, Recorder};
use crate::redact::{Detail, Redactor};
use crate::stt::Transcribe;
use crate::tts::Synthesize;

/// After the end of a call was asked for, a call that does not end is hung up.
const GOODBYE: Duration = Duration::from_secs(20);

/// The call variable with what is said to an answering machine.
const VOICEMAIL: &str = "voicemail";

/// Makes a model for one call: most share one, a scripted one begins its script anew.
pub type NewLlm = Arc<dyn Fn() -> Arc<dyn Llm> + Send + Sync>;
/// Makes a voice activity model for one call.
pub type NewVad = Arc<dyn Fn() -> Box<dyn SpeechProbability> + Send + Sync>;

/// Who answers: an agent and its engines, shared by its calls. A call keeps the one that it began with.
#[derive(Clone)]
pub struct Desk {
    /// The agent.
    pub agent: Arc<Agent>,
    /// Its model.
    pub llm: NewLlm,
    /// What looks at the model's calls first, if anything.
    pub screen: Option<Arc<dyn Screen>>,
    /// Voice activity.
    pub vad: NewVad,
    /// Recognition.
    pub stt: Arc<dyn Transcribe>,
    /// The voice.
    pub tts: Arc<dyn Synthesize>,
    /// The end-of-turn model, where there is one.
    pub end_of_turn: Option<Arc<EndOfTurn>>,
    /// The loop that a line is assumed to have where nothing better is known.
    pub assumed_loop: Duration,
    /// What a recording says of the agent, if its calls are to be recorded.
    pub recorded_as: Option<AgentSheet>,
    /// Personal details that stay in the call: the log that others see has none of them.
    pub redact: Vec<Detail>,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("agent", &self.agent.name).finish_non_exhaustive()
    }
}

/// How a call came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The transport's name as the event log says it.
    pub transport: String,
    /// What was called: a number, a user, or the path's own word for it.
    pub to: String,
    /// Who calls, as far as known.
    pub from: String,
    /// Whether we called them.
    pub outbound: bool,
    /// Call variables: headers and what the vendor passes on.
    pub vars: BTreeMap<String, String>,
}

/// Knows who answers what.
#[async_trait::async_trait]
pub trait Desks: Send + Sync + std::fmt::Debug {
    /// Who answers this call. May wait for models to be loaded.
    ///
    /// # Errors
    /// If nobody does, or who should cannot.
    async fn find(&self, asked: &Asked) -> Result<Arc<Desk>, NotNow>;

    /// Who answers what, for people who choose whom to call. Never waits.
    fn listed(&self) -> Vec<ListedAgent> {
        Vec::new()
    }
}

/// An agent as a person chooses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedAgent {
    /// What is called to reach it; `*` is everything that nobody else answers.
    pub called: String,
    /// Its name.
    pub agent: String,
}

/// Who else hears of calls: recordings, stores.
pub trait Witnesses: Send + Sync + std::fmt::Debug {
    /// Those for one call that begins now.
    fn of(&self, call: &CallView, desk: &Desk) -> Witness;

    /// Where its confirmed runs are written before they are made. Without one a run is made once within this process,
    /// and a crash in the middle of it is not told afterwards. `reopened` is that of a stored conversation which goes on:
    /// then it is that one.
    fn journal(
        &self,
        _call: &CallView,
        _desk: &Desk,
        reopened: Option<Arc<dyn Journal>>,
    ) -> Option<Arc<dyn Journal>> {
        reopened
    }

    /// The call is over. May take its time: it is called where that holds nobody up.
    fn ended(&self, call: &str, recorder: Option<&Recorder>);
}

/// Who hears of one call.
#[derive(Default)]
pub struct Witness {
    /// Those who hear of its events.
    pub observers: Vec<Box<dyn Observer>>,
    /// Who writes down its sound.
    pub recorder: Option<Recorder>,
    /// What is said before the greeting, because of that.
    pub notice: Option<String>,
}

impl std::fmt::Debug for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Witness").field("notice", &self.notice).finish_non_exhaustive()
    }
}

/// Why a call is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    /// The server is going down.
    #[error("the server is shutting down and takes no calls; call again in a minute")]
    Draining,
    /// There are as many calls as it may have.
    #[error("all {most} places are taken; call again later")]
    Full {
        /// How many it may have.
        most: usize,
    },
    /// Nobody answers there.
    #[error("no agent answers {to:?}; name one in [agents]")]
    Unknown {
        /// What was called.
        to: String,
    },
    /// Who should answer cannot: a model or a key is missing.
    #[error("the agent for {to:?} cannot answer: {reason}")]
    Broken {
        /// What was called.
        to: String,
        /// Why.
        reason: String,
    },
}

/// What nobody can guess, for a call's id: who may only reach calls that they began must not know another's.
fn unguessable(asked: &Asked) -> Result<u64, NotNow> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| NotNow::Broken {
        to: asked.to.clone(),
        reason: format!("the system has no random numbers: {error}"),
    })?;
    Ok(u64::from_be_bytes(bytes))
}

/// What a server allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls at the same time.
    pub calls: usize,
    /// Longest call; then it is ended as if the program had asked for it.
    pub longest: Duration,
    /// Calls that are kept after their end.
    pub kept: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { calls: 100, longest: Duration::from_secs(3_600), kept: 100 }
    }
}

/// Takes calls.
#[derive(Clone)]
pub struct Switchboard {
    shared: Arc<Shared>,
}

struct Shared {
    desks: Arc<dyn Desks>,
    witnesses: Option<Arc<dyn Witnesses>>,
    limits: Limits,
    approvals: ApprovalQueue,
    calls: Calls,
    draining: AtomicBool,
    numbers: AtomicU64,
    /// Refused calls, by why.
    refused: AtomicU64,
    tasks: Mutex<JoinSet<()>>,
}

impl std::fmt::Debug for Switchboard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Switchboard").field("calls", &self.shared.calls).finish_non_exhaustive()
    }
}

impl Switchboard {
    /// A server's switchboard.
    pub fn new(desks: Arc<dyn Desks>, witnesses: Option<Arc<dyn Witnesses>>, limits: Limits) -> Self {
        Self::with_approvals(desks, witnesses, limits, ApprovalQueue::default())
    }

    /// A server's switchboard, whose calls ask operators there.
    pub fn with_approvals(
        desks: Arc<dyn Desks>,
        witnesses: Option<Arc<dyn Witnesses>>,
        limits: Limits,
        approvals: ApprovalQueue,
    ) -> Self {
        let shared = Shared {
            desks,
            witnesses,
            limits,
            approvals,
            calls: Calls::new(limits.kept),
            draining: AtomicBool::new(false),
            numbers: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            tasks: Mutex::new(JoinSet::new()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What waits for an operator.
    pub fn approvals(&self) -> &ApprovalQueue {
        &self.shared.approvals
    }

    /// The calls that there are.
    pub fn calls(&self) -> &Calls {
        &self.shared.calls
    }

    /// Who answers what.
    pub fn agents(&self) -> Vec<ListedAgent> {
        self.shared.desks.listed()
    }

    /// How many calls were refused so far.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Whether calls are taken.
    pub fn is_open(&self) -> bool {
        !self.shared.draining.load(Ordering::Acquire)
    }

    /// Asks for a place and for who answers. The place is kept as long as the answer is.
    ///
    /// # Errors
    /// If the call is not to be taken; nothing has begun then.
    pub async fn admit(&self, asked: Asked) -> Result<Admitted, NotNow> {
        let admitted = self.try_admit(asked).await;
        if admitted.is_err() {
            self.shared.refused.fetch_add(1, Ordering::Relaxed);
        }
        admitted
    }

    async fn try_admit(&self, asked: Asked) -> Result<Admitted, NotNow> {
        if !self.is_open() {
            return Err(NotNow::Draining);
        }
        let most = self.shared.limits.calls;
        let place = self.shared.calls.reserve(most).ok_or(NotNow::Full { most })?;
        let desk = self.shared.desks.find(&asked).await?;
        let number = self.shared.numbers.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{:x}-{number}-{:016x}", asked.transport, unix_seconds(), unguessable(&asked)?);
        Ok(Admitted { board: self.clone(), place, desk, asked, id, resumed: None })
    }

    /// Takes no more calls, waits for those that go on, and after `patience` asks them to end.
    pub async fn drain(&self, patience: Duration) {
        self.shared.draining.store(true, Ordering::Release);
        let calls = &self.shared.calls;
        if tokio::time::timeout(patience, calls.none_live()).await.is_err() {
            calls.tell_all(&Event::EndRequested);
            if tokio::time::timeout(GOODBYE, calls.none_live()).await.is_err() {
                calls.tell_all(&Event::HungUp);
                let _ = tokio::time::timeout(GOODBYE, calls.none_live()).await;
            }
        }
    }

    /// Runs something as long as the server does, or until it is done.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.shared.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are done are let go of.
        while let Some(done) = tasks.try_join_next() {
            if let Err(error) = done {
                tracing::error!("a call broke off: {error}");
            }
        }
        tasks.spawn(task);
    }
}

/// A call that may be answered.
#[derive(Debug)]
pub struct Admitted {
    board: Switchboard,
    place: Place,
    desk: Arc<Desk>,
    asked: Asked,
    id: String,
    resumed: Option<Resumed>,
}

/// A stored conversation that goes on.
#[derive(Debug)]
pub struct Resumed {
    /// Its id, kept for it among the calls.
    pub id: ClaimedId,
    /// What was said before.
    pub conversation: Reopened,
    /// Where it is written from now on.
    pub journal: Arc<dyn Journal>,
}

/// A call that has begun.
#[derive(Debug)]
pub struct Started {
    /// Its id.
    pub id: String,
    /// The queue into it.
    pub call: Sender<Event>,
    /// Its ears, for the transport to feed.
    pub ears: Ears,
}

impl Admitted {
    /// Who answers.
    pub fn desk(&self) -> &Desk {
        &self.desk
    }

    /// The call's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Starts the call on a line. `clock` is the clock that the line was opened with. The call runs on the executor of
    /// whoever calls this.
    pub fn start(self, line: Box<dyn Line>, control: Option<Arc<dyn LineControl>>, clock: Clock) -> Started {
        let mut opened = self.open(line, control, clock, None);
        let desk = &opened.desk;
        let engines = EarEngines {
            vad: (desk.vad)(),
            stt: Arc::clone(&desk.stt),
            end_of_turn: desk.end_of_turn.clone(),
        };
        let (mut ears, listener) = ears(engines, opened.call.clone());
        if let Some(recorder) = &opened.recorder {
            ears.record(recorder.clone());
        }
        opened.driver.listen(listener);
        if let Some(answering) = opened.answering.take() {
            ears.expect_answer(answering);
        }
        let (id, call) = (opened.id.clone(), opened.call.clone());
        opened.begin();
        Started { id, call, ears }
    }

    /// Starts a conversation in text; gives its id. [`Calls::chat`] reaches it.
    pub fn start_chat(self, clock: Clock) -> String {
        let (line, chat) = ChatLine::new(clock);
        let opened = self.open(Box::new(line), None, clock, Some(chat));
        let id = opened.id.clone();
        opened.begin();
        id
    }

    /// Goes on with a stored conversation in text, under the id that it has; gives that.
    pub fn resume_chat(mut self, clock: Clock, resumed: Resumed) -> String {
        resumed.id.as_str().clone_into(&mut self.id);
        self.resumed = Some(resumed);
        self.start_chat(clock)
    }

    /// Everything of a call but its ears.
    fn open(
        self,
        line: Box<dyn Line>,
        control: Option<Arc<dyn LineControl>>,
        clock: Clock,
        chat: Option<Chat>,
    ) -> Opened {
        let Self { board, place, desk, asked, id, resumed } = self;
        let view = view(&id, &desk, &asked);
        let (before, reopened) = resumed.map(|r| ((r.conversation, r.id), r.journal)).unzip();
        let witnesses = board.shared.witnesses.clone();
        let Witness { observers, recorder, notice } =
            witnesses.as_ref().map(|w| w.of(&view, &desk)).unwrap_or_default();
        let parts = Parts {
            agent: Arc::clone(&desk.agent),
            llm: (desk.llm)(),
            screen: desk.screen.clone(),
            line,
            observers,
            call: id.clone(),
            clock,
        };
        let journal = match &witnesses {
            Some(witnesses) => witnesses.journal(&view, &desk, reopened),
            None => reopened,
        };
        let (mut driver, call) = Driver::new(parts);
        if let Some(journal) = journal {
            driver.write_redacted_to(journal, &desk.redact);
        }
        let opening = greeting(notice.clone(), desk.agent.greeting.clone());
        let (opening, answering) = if asked.outbound {
            let voicemail = asked.vars.get(VOICEMAIL).cloned();
            (None, Some(Answering::new(Words { notice, greeting: opening, voicemail })))
        } else {
            (opening, None)
        };
        driver.know(asked.vars);
        let approver = QueueApprover::for_call(board.approvals().clone(), &id, &desk.agent.name);
        driver.ask_operators(Box::new(approver));
        let start = CallStart {
            transport: asked.transport,
            call: id.clone(),
            language: desk.agent.language.clone(),
            greeting: opening,
            chat: chat.is_some(),
        };
        let calls = &board.shared.calls;
        let log =
            calls.enter(view, call.clone(), Ends { control, chat }).redacted(Redactor::new(&desk.redact));
        let longest = board.shared.limits.longest;
        let held =
            Held { call: call.clone(), log, place, clock, longest, witnesses, recorder: recorder.clone() };
        let outbound = asked.outbound;
        Opened { board, desk, id, call, recorder, driver, before, start, held, answering, outbound }
    }
}

/// A call that is put together and has not begun.
struct Opened {
    board: Switchboard,
    desk: Arc<Desk>,
    id: String,
    call: Sender<Event>,
    recorder: Option<Recorder>,
    driver: Driver,
    /// What was said before, if this goes on, and the id that is kept for it until it has begun.
    before: Option<(Reopened, ClaimedId)>,
    start: CallStart,
    held: Held,
    /// Who has answered is not known yet: a call that we make.
    answering: Option<Answering>,
    outbound: bool,
}

impl Opened {
    fn begin(self) {
        let Self { board, id, call, driver, before, start, held, outbound, .. } = self;
        // Before anybody else has the queue: nothing may overtake the beginning. It is empty, so there is room.
        let before = before.map(|(conversation, _begun)| Event::Reopened(conversation));
        let unanswered = outbound.then_some(Event::Unanswered);
        for event in [before, unanswered, Some(Event::CallStarted(start))].into_iter().flatten() {
            if call.try_send(event).is_err() {
                tracing::error!("the call {id} has no room for its beginning");
            }
        }
        board.spawn(hold(driver, id, held));
    }
}

/// A notice comes first, in the same breath: it must have been said before anything is recorded that matters.
fn greeting(notice: Option<String>, greeting: Option<String>) -> Option<String> {
    match (notice, greeting) {
        (Some(notice), Some(greeting)) => Some(format!("{notice} {greeting}")),
        (notice, greeting) => notice.or(greeting),
    }
}

fn view(id: &str, desk: &Desk, asked: &Asked) -> CallView {
    CallView {
        call: id.to_owned(),
        agent: desk.agent.name.clone(),
        transport: asked.transport.clone(),
        from: asked.from.clone(),
        to: asked.to.clone(),
        outbound: asked.outbound,
        began: unix_seconds(),
        live: true,
        ended: None,
        question: None,
        events: 0,
    }
}

/// What a call is held by.
struct Held {
    call: Sender<Event>,
    log: CallLog,
    place: Place,
    clock: Clock,
    longest: Duration,
    witnesses: Option<Arc<dyn Witnesses>>,
    recorder: Option<Recorder>,
}

/// Holds a call to its end, and no longer than the limit.
async fn hold(mut driver: Driver, id: String, held: Held) {
    let Held { call, log, place, clock, longest, witnesses, recorder } = held;
    driver.observe(Box::new(log));
    let end = clock.now() + longest;
    let limit = async {
        tokio::time::sleep_until(clock.instant(end).into()).await;
        let _ = call.send(Event::EndRequested).await;
        tokio::time::sleep_until(clock.instant(end + GOODBYE).into()).await;
        let _ = call.send(Event::HungUp).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = driver.run() => {}
        () = limit => {}
    }
    if let Some(witnesses) = witnesses {
        let ended = tokio::task::spawn_blocking(move || witnesses.ended(&id, recorder.as_ref()));
        if let Err(error) = ended.await {
            tracing::error!("what was to be done after a call broke off: {error}");
        }
    }
    drop(place);
}
