//! One stream, from its first word to its end.

use std::collections::BTreeMap;

use axum::extract::ws::{self, CloseFrame, WebSocket};
use sayback_core::{Event, EvidenceClass, LoopDelay, Time};
use sayback_runtime::clock::Clock;
use sayback_runtime::switchboard::{Asked, NotNow, Switchboard};
use tokio::time::timeout;

use super::dialect::{Dialect, Heard, Message, Sound, StreamFault, StreamStart};
use super::reorder::Reorder;
use super::{FIRST_WORD, FRAME, LEAD, SILENT, STUCK};
use crate::wire::{Inbound, InboundFact, Out, Proof, Wire, WireOptions, open};

/// Messages that are no sound and may come in a second, over a while: keys, marks, whatever else. More is no call.
const MESSAGES_A_SECOND: u64 = 100;

/// What the request for the WebSocket said.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    /// Its query.
    pub(super) query: BTreeMap<String, String>,
    /// Headers passed on.
    pub(super) vars: BTreeMap<String, String>,
}

/// Why a stream ends, as it is told to the far end.
#[derive(Debug, thiserror::Error)]
enum End {
    /// The far end went, or said so.
    #[error("the caller is gone")]
    Gone,
    /// The call is over from our side.
    #[error("the call is over")]
    Over,
    /// It spoke no sense.
    #[error(transparent)]
    Fault(#[from] StreamFault),
    /// There is no place, or nobody to answer.
    #[error(transparent)]
    NotNow(#[from] NotNow),
    /// It takes nothing.
    #[error("nothing was taken for {} s", STUCK.as_secs())]
    Stuck,
}

impl End {
    /// The code of RFC 6455 for it.
    fn code(&self) -> u16 {
        match self {
            Self::Gone | Self::Over => 1000,
            Self::Fault(StreamFault::Malformed(_) | StreamFault::Format(_)) => 1007,
            Self::Fault(StreamFault::TooEarly | StreamFault::TooMuch(_)) | Self::Stuck => 1008,
            Self::NotNow(_) => 1013,
        }
    }
}

/// Runs a stream to its end. Whatever the far end does, it ends with a close and a reason.
pub(super) async fn run(
    board: Switchboard,
    mut dialect: Box<dyn Dialect>,
    request: Request,
    mut socket: WebSocket,
) {
    let end = match begin(&board, dialect.as_mut(), request, &mut socket).await {
        Ok(call) => call.hold(dialect.as_mut(), &mut socket).await,
        Err(end) => end,
    };
    match &end {
        End::Gone | End::Over => tracing::debug!("a media stream ended: {end}"),
        End::Fault(_) | End::NotNow(_) | End::Stuck => tracing::warn!("a media stream is closed: {end}"),
    }
    // A reason has room for 123 bytes.
    let reason: String = end.to_string().chars().take(100).collect();
    let close = ws::Message::Close(Some(CloseFrame { code: end.code(), reason: reason.into() }));
    let _ = timeout(STUCK, socket.send(close)).await;
}

/// Waits for the call to be announced, and starts it.
async fn begin(
    board: &Switchboard,
    dialect: &mut dyn Dialect,
    request: Request,
    socket: &mut WebSocket,
) -> Result<StreamCall, End> {
    let start = timeout(FIRST_WORD, first_word(dialect, socket)).await.map_err(|_| End::Gone)??;
    let StreamStart { call, from, to, vars, format } = start;
    let asked = |written: String, name: &str| {
        if written.is_empty() { request.query.get(name).cloned().unwrap_or_default() } else { written }
    };
    let (from, to) = (asked(from, "from"), asked(to, "to"));
    let mut all = request.vars;
    all.extend(vars);
    all.insert("stream_call".to_owned(), call);
    let transport = "media-stream".to_owned();
    // The far end speaks from here on, whether models have to be loaded first or not.
    let clock = Clock::start();
    let admitted = board.admit(Asked { transport, to, from, outbound: false, vars: all }).await?;
    let at_most = admitted.desk().assumed_loop;
    let options = WireOptions {
        rate: format.rate,
        frame: FRAME,
        lead: LEAD,
        proof: Proof::Marks,
        delay: LoopDelay { at_least: std::time::Duration::ZERO, at_most },
        evidence: EvidenceClass::Mark,
        telephone: format.rate == 8_000,
        continuous: false,
    };
    let (line, wire_end) = open(options, clock, std::sync::Arc::clone(&admitted.desk().tts));
    let control = wire_end.control("a media stream", dialect.has_keys());
    let started = admitted.start(Box::new(line), Some(control), clock);
    let inbound = Inbound::new(format.rate).map_err(|error| StreamFault::Format(error.to_string()))?;
    Ok(StreamCall {
        wire: wire_end.join(started.call, started.ears),
        inbound,
        reorder: Reorder::default(),
        clock,
        others: 0,
    })
}

async fn first_word(dialect: &mut dyn Dialect, socket: &mut WebSocket) -> Result<StreamStart, End> {
    let mut messages = 0;
    loop {
        let heard = take(dialect, socket.recv().await)?;
        match heard {
            Heard::Started(start) => return Ok(start),
            Heard::Ended => return Err(End::Gone),
            Heard::Sound(_) => return Err(StreamFault::TooEarly.into()),
            Heard::Mark { .. } | Heard::Digit { .. } | Heard::Nothing => messages += 1,
        }
        if messages > MESSAGES_A_SECOND {
            return Err(StreamFault::TooMuch("too many messages before the start message").into());
        }
    }
}

/// What a message on the socket said.
fn take(dialect: &mut dyn Dialect, message: Option<Result<ws::Message, axum::Error>>) -> Result<Heard, End> {
    match message {
        Some(Ok(ws::Message::Text(text))) => Ok(dialect.on_text(&text)?),
        Some(Ok(ws::Message::Binary(bytes))) => Ok(dialect.on_binary(&bytes)?),
        Some(Ok(ws::Message::Ping(_) | ws::Message::Pong(_))) => Ok(Heard::Nothing),
        Some(Err(error)) if error.to_string().contains("too long") => {
            Err(StreamFault::TooMuch("a message is larger than 64 KiB").into())
        }
        Some(Ok(ws::Message::Close(_)) | Err(_)) | None => Err(End::Gone),
    }
}

/// Sends one thing; says whether it was the end.
async fn send(
    wire: &Wire,
    dialect: &mut dyn Dialect,
    socket: &mut WebSocket,
    (out, frame): (Out, &[f32]),
) -> Result<bool, End> {
    let (message, sound, over) = match out {
        Out::Frame { silent: true, .. } => (None, true, false),
        Out::Frame { silent: false, .. } => (Some(dialect.sound(frame)), true, false),
        Out::Mark { name } => (Some(dialect.mark(&name)), false, false),
        Out::Clear => (Some(dialect.clear()), false, false),
        Out::Digits { digits } => (dialect.digits(&digits), false, false),
        Out::End => (dialect.end(), false, true),
    };
    if let Some(message) = message {
        let message = match message {
            Message::Text(text) => ws::Message::Text(text.into()),
            Message::Binary(bytes) => ws::Message::Binary(bytes.into()),
        };
        let sent = timeout(STUCK, socket.send(message)).await.map_err(|_| End::Stuck)?;
        sent.map_err(|_| End::Gone)?;
    }
    if sound {
        wire.sent();
    }
    Ok(over)
}

/// A stream whose call goes on.
struct StreamCall {
    wire: Wire,
    inbound: Inbound,
    reorder: Reorder,
    clock: Clock,
    /// Messages so far that were no sound.
    others: u64,
}

impl StreamCall {
    /// Holds it to its end; the call knows of it then.
    async fn hold(mut self, dialect: &mut dyn Dialect, socket: &mut WebSocket) -> End {
        let end = match self.talk(dialect, socket).await {
            Ok(()) => End::Over,
            Err(end) => end,
        };
        self.wire.lose_line();
        self.wire.tell(Event::HungUp).await;
        end
    }

    async fn talk(&mut self, dialect: &mut dyn Dialect, socket: &mut WebSocket) -> Result<(), End> {
        let mut frame = Vec::new();
        let mut last_word = self.clock.now();
        loop {
            let silent = self.clock.instant(last_word + SILENT);
            tokio::select! {
                biased;
                out = self.wire.next(&mut frame) => match out {
                    Some(out) => {
                        if send(&self.wire, dialect, socket, (out, &frame)).await? {
                            return Ok(());
                        }
                    }
                    None => return Ok(()),
                },
                message = socket.recv() => {
                    last_word = self.clock.now();
                    let heard = take(dialect, message)?;
                    self.hear(dialect, heard, last_word).await?;
                }
                () = tokio::time::sleep_until(silent.into()) => return Err(End::Gone),
            }
        }
    }

    async fn hear(&mut self, dialect: &mut dyn Dialect, heard: Heard, now: Time) -> Result<(), End> {
        if !matches!(heard, Heard::Sound(_)) {
            self.others += 1;
            if self.others > MESSAGES_A_SECOND * (now.since(Time::ZERO).as_secs() + 10) {
                return Err(StreamFault::TooMuch("more messages than a call can have").into());
            }
        }
        match heard {
            Heard::Sound(sound) => self.take_sound(sound, dialect.reorders(), now),
            Heard::Mark { name } => {
                // A mark before any sound has no place: nothing is known of when the caller hears.
                if let Some(place) = self.inbound.place() {
                    self.wire.on_mark(&name, place);
                }
                Ok(())
            }
            Heard::Digit { digit } => {
                // A key has no time of its own here: its place in the stream is the earliest that it can have been
                // pressed only if the service is quick, so the length of a short press is taken off.
                let start = self.inbound.place().unwrap_or(now) - SHORT_PRESS;
                self.wire.tell(Event::Digit { digit, start }).await;
                Ok(())
            }
            Heard::Ended => Err(End::Gone),
            Heard::Started(_) => Err(StreamFault::Malformed("a second start message".to_owned()).into()),
            Heard::Nothing => Ok(()),
        }
    }

    fn take_sound(&mut self, sound: Sound, reorders: bool, now: Time) -> Result<(), End> {
        let mut facts: Vec<InboundFact> = Vec::new();
        let mut on = |fact| facts.push(fact);
        match sound.position {
            None => self.inbound.push_next(&sound.samples, now, &mut on),
            Some(position) if reorders => {
                self.inbound.note(position.saturating_add(sound.samples.len() as u64), now);
                for (position, samples) in self.reorder.push(position, sound.samples, self.inbound.expected())
                {
                    self.inbound.push(position, &samples, now, &mut on);
                }
            }
            Some(position) => self.inbound.push(position, &sound.samples, now, &mut on),
        }
        for fact in facts {
            self.wire.hear(fact);
        }
        if self.inbound.is_ahead(now) {
            return Err(StreamFault::TooMuch("sound comes faster than anybody can speak").into());
        }
        Ok(())
    }
}

/// A press of a key takes this long at most before a service tells of it, as a rule.
const SHORT_PRESS: std::time::Duration = std::time::Duration::from_millis(300);
