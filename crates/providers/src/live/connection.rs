//! The task that owns a call's connection.

use std::time::Duration;

use sayback_runtime::stt::OnHeard;
use tokio::sync::mpsc::Receiver;

use super::stretches::Stretches;
use super::{Dialect, Sent, Wish};
use crate::hosted::socket::{Door, Received, Socket};
use crate::hosted::{Deadline, Fault};

/// A vendor need not answer a flush that finds little new sound. So long after one, a short rest counts as silence.
const SHORT_WAIT: Duration = Duration::from_millis(700);
/// Such a rest, in samples.
const SHORT_REST: u64 = 4_000;

/// One connection, from its opening to its end.
pub(super) struct Connection<D> {
    door: Door,
    answer_within: Duration,
    dialect: D,
    wishes: Receiver<Wish>,
    stretches: Stretches,
}

/// What happened.
enum Turn {
    Wish(Option<Wish>),
    Message(Result<Option<Received>, Fault>),
    Unanswered,
    BarelyAnswered,
    Quiet(String),
}

/// The waits of a connection; each begins anew when its reason does.
struct Waits {
    answer: Option<Deadline>,
    short: Option<Deadline>,
    quiet: Option<(Deadline, String)>,
}

impl<D: Dialect> Connection<D> {
    pub(super) fn new(door: Door, answer_within: Duration, dialect: D, wishes: Receiver<Wish>) -> Self {
        Self { door, answer_within, dialect, wishes, stretches: Stretches::default() }
    }

    /// Talks until nobody wants anything any more; an error is the vendor's.
    pub(super) async fn run(mut self, heard: &mut OnHeard) -> Result<(), Fault> {
        let mut socket = self.door.open().await?;
        if let Some(hello) = self.dialect.hello() {
            socket.send_text(hello).await?;
        }
        let mut waits = Waits { answer: None, short: None, quiet: None };
        waits.sent(&self.dialect);
        loop {
            let turn = tokio::select! {
                biased;
                message = socket.receive() => Turn::Message(message),
                wish = self.wishes.recv() => Turn::Wish(wish),
                () = over(&mut waits.answer) => Turn::Unanswered,
                () = over(&mut waits.short) => Turn::BarelyAnswered,
                words = quiet(&mut waits.quiet) => Turn::Quiet(words),
            };
            match turn {
                Turn::Wish(Some(wish)) => self.grant(wish, &mut socket, &mut waits).await?,
                Turn::Wish(None) => {
                    if let Some(goodbye) = self.dialect.goodbye() {
                        // Nobody listens any more: what it says to that is of no interest.
                        let _ = socket.send_text(goodbye).await;
                    }
                    return Ok(());
                }
                Turn::Message(message) => {
                    let message =
                        message?.ok_or_else(|| Fault::BrokeOff("the connection was closed".to_owned()))?;
                    for said in self.dialect.read(&message)? {
                        self.stretches.take(said);
                    }
                }
                Turn::Unanswered => return Err(Fault::TimedOut(self.answer_within)),
                Turn::BarelyAnswered => {
                    waits.short = None;
                    self.stretches.give_up_rest(SHORT_REST);
                }
                Turn::Quiet(words) => {
                    socket.send_text(words).await?;
                    waits.sent(&self.dialect);
                }
            }
            for event in self.stretches.ready() {
                heard(event);
            }
            waits.watch(&mut self.stretches, self.answer_within);
            if self.dialect.answers_every_flush() {
                waits.short = None;
            }
        }
    }

    async fn grant(&mut self, wish: Wish, socket: &mut Socket, waits: &mut Waits) -> Result<(), Fault> {
        let sent = match wish {
            Wish::Push { stretch, pcm } => {
                if !self.stretches.push(stretch, pcm.len()) {
                    return Ok(());
                }
                self.dialect.sound(&pcm)
            }
            Wish::Flush { stretch } => {
                if !self.stretches.flush(stretch) {
                    return Ok(());
                }
                waits.answer = None;
                waits.short = None;
                self.dialect.flush()
            }
            Wish::Forget { stretch } => {
                self.stretches.forget(stretch);
                return Ok(());
            }
        };
        for message in sent {
            match message {
                Sent::Text(text) => socket.send_text(text).await?,
                Sent::Bytes(bytes) => socket.send_bytes(bytes).await?,
            }
        }
        waits.sent(&self.dialect);
        Ok(())
    }
}

impl Waits {
    /// Something was sent: the vendor knows for a while that we are there.
    fn sent(&mut self, dialect: &impl Dialect) {
        self.quiet = dialect.keep_alive().map(|(every, words)| (Deadline::after(every), words));
    }

    /// Waits for the oldest flush, while there is one. Each answer begins the wait for the next anew.
    fn watch(&mut self, stretches: &mut Stretches, limit: Duration) {
        if !stretches.waits() {
            (self.answer, self.short) = (None, None);
            return;
        }
        if self.answer.is_none() || stretches.take_answered() {
            self.answer = Some(Deadline::after(limit));
            self.short = Some(Deadline::after(SHORT_WAIT.min(limit / 2)));
        }
    }
}

async fn over(deadline: &mut Option<Deadline>) {
    match deadline {
        Some(deadline) => deadline.over.as_mut().await,
        None => std::future::pending().await,
    }
}

async fn quiet(wait: &mut Option<(Deadline, String)>) -> String {
    match wait {
        Some((deadline, words)) => {
            deadline.over.as_mut().await;
            words.clone()
        }
        None => std::future::pending().await,
    }
}
