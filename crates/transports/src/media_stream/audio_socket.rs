//! Asterisk's AudioSocket: <https://docs.asterisk.org/Configuration/Channel-Drivers/AudioSocket/>.
//!
//! Three bytes of header (kind, and the length of what follows, high byte first), then the payload. Sound is 16-bit, low
//! byte first. It has no marks and no counts, so what was heard is known from what was sent and the assumed loop.

use std::sync::Arc;
use std::time::Duration;

use sayback_core::{Event, EvidenceClass, LoopDelay};
use sayback_runtime::clock::Clock;
use sayback_runtime::switchboard::{Asked, Switchboard};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::dialect::{Encoding, Format};
use super::{FIRST_WORD, FRAME, SILENT, STUCK};
use crate::wire::{Inbound, InboundFact, Out, Proof, Wire, WireOptions, open};

const HANGUP: u8 = 0x00;
const UUID: u8 = 0x01;
const DIGIT: u8 = 0x03;
const SOUND: u8 = 0x10;
const FAULT: u8 = 0xff;
/// Largest payload that is taken: a third of a second of sound.
const LARGEST: usize = 8_000;
/// Connections that may be open at once without a call.
const CONNECTIONS: usize = 1_024;

/// Takes connections until this is dropped.
pub async fn serve(listener: TcpListener, board: Switchboard) {
    let mut streams = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) if streams.len() < CONNECTIONS => {
                    tracing::debug!("an AudioSocket from {from}");
                    let board = board.clone();
                    streams.spawn(async move {
                        if let Err(error) = run(board, stream).await {
                            tracing::warn!("an AudioSocket is closed: {error}");
                        }
                    });
                }
                // Too many: closed by being dropped.
                Ok(_) => {}
                Err(error) => tracing::warn!("an AudioSocket could not be taken: {error}"),
            },
            Some(_) = streams.join_next() => {}
        }
    }
}

/// Why a connection is closed.
#[derive(Debug, thiserror::Error)]
enum SocketFault {
    #[error("{0}")]
    Lost(#[from] std::io::Error),
    #[error("nothing came, or nothing was taken, for too long")]
    Silent,
    #[error("a packet of kind {kind:#04x} and {len} bytes makes no sense here")]
    Malformed { kind: u8, len: usize },
    #[error("sound comes faster than anybody can speak")]
    Ahead,
    #[error(transparent)]
    NotNow(#[from] sayback_runtime::switchboard::NotNow),
}

#[derive(Debug)]
struct Packet {
    kind: u8,
    payload: Vec<u8>,
}

async fn read(stream: &mut OwnedReadHalf) -> Result<Packet, SocketFault> {
    let mut header = [0; 3];
    stream.read_exact(&mut header).await?;
    let (kind, len) = (header[0], usize::from(u16::from_be_bytes([header[1], header[2]])));
    if len > LARGEST {
        return Err(SocketFault::Malformed { kind, len });
    }
    let mut payload = vec![0; len];
    stream.read_exact(&mut payload).await?;
    Ok(Packet { kind, payload })
}

/// Reads on a task of its own: a read that is given up half-way would lose its place in the stream.
async fn read_all(
    mut stream: OwnedReadHalf,
    packets: tokio::sync::mpsc::Sender<Result<Packet, SocketFault>>,
) {
    loop {
        let packet = timeout(SILENT, read(&mut stream)).await.unwrap_or(Err(SocketFault::Silent));
        let over = packet.is_err();
        if packets.send(packet).await.is_err() || over {
            return;
        }
    }
}

async fn run(board: Switchboard, stream: TcpStream) -> Result<(), SocketFault> {
    stream.set_nodelay(true)?;
    let (mut reader, mut writer) = stream.into_split();
    let first = timeout(FIRST_WORD, read(&mut reader)).await.map_err(|_| SocketFault::Silent)??;
    let uuid = match first {
        Packet { kind: UUID, payload } if payload.len() == 16 => {
            payload.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        }
        Packet { kind, payload } => return Err(SocketFault::Malformed { kind, len: payload.len() }),
    };
    let vars = [("uuid".to_owned(), uuid.clone())].into();
    let transport = "media-stream".to_owned();
    let asked = Asked { transport, to: uuid, from: String::new(), outbound: false, vars };
    // The far end speaks from here on, whether models have to be loaded first or not.
    let clock = Clock::start();
    let admitted = match board.admit(asked).await {
        Ok(admitted) => admitted,
        Err(error) => {
            writer.write_all(&[HANGUP, 0, 0]).await?;
            return Err(error.into());
        }
    };
    let options = WireOptions {
        rate: 8_000,
        frame: FRAME,
        lead: Duration::ZERO,
        proof: Proof::Sent,
        delay: LoopDelay { at_least: Duration::ZERO, at_most: admitted.desk().assumed_loop },
        evidence: EvidenceClass::Assumed,
        telephone: true,
        continuous: true,
    };
    let (line, end) = open(options, clock, Arc::clone(&admitted.desk().tts));
    let control = end.control("AudioSocket", false);
    let started = admitted.start(Box::new(line), Some(control), clock);
    let mut wire = end.join(started.call, started.ears);
    let (sender, packets) = channel(16);
    let reading = tokio::spawn(read_all(reader, sender));
    let ended = talk(&mut wire, packets, &mut writer, clock).await;
    reading.abort();
    wire.lose_line();
    wire.tell(Event::HungUp).await;
    let _ = timeout(STUCK, writer.write_all(&[HANGUP, 0, 0])).await;
    ended
}

async fn talk(
    wire: &mut Wire,
    mut packets: Receiver<Result<Packet, SocketFault>>,
    writer: &mut OwnedWriteHalf,
    clock: Clock,
) -> Result<(), SocketFault> {
    const FORMAT: Format = Format { encoding: Encoding::Linear, rate: 8_000 };
    let mut inbound = Inbound::new(FORMAT.rate).map_err(std::io::Error::other)?;
    let mut frame = Vec::new();
    loop {
        tokio::select! {
            biased;
            out = wire.next(&mut frame) => match out {
                Some(Out::Frame { .. }) => {
                    let sound = FORMAT.write(&frame);
                    let mut packet = vec![SOUND];
                    packet.extend(u16::try_from(sound.len()).unwrap_or(0).to_be_bytes());
                    packet.extend(sound);
                    timeout(STUCK, writer.write_all(&packet)).await.map_err(|_| SocketFault::Silent)??;
                    wire.sent();
                }
                Some(Out::Mark { .. } | Out::Clear | Out::Digits { .. }) => {}
                Some(Out::End) | None => return Ok(()),
            },
            packet = packets.recv() => {
                let Packet { kind, payload } = packet.unwrap_or(Err(SocketFault::Silent))?;
                let now = clock.now();
                match (kind, payload.len()) {
                    (SOUND, _) => {
                        let mut facts: Vec<InboundFact> = Vec::new();
                        inbound.push_next(&FORMAT.read(&payload), now, &mut |fact| facts.push(fact));
                        facts.into_iter().for_each(|fact| wire.hear(fact));
                        if inbound.is_ahead(now) {
                            return Err(SocketFault::Ahead);
                        }
                    }
                    (DIGIT, 1) => {
                        let start = inbound.place().unwrap_or(now) - Duration::from_millis(300);
                        wire.tell(Event::Digit { digit: char::from(payload[0]), start }).await;
                    }
                    (HANGUP, _) | (FAULT, _) => return Ok(()),
                    (kind, len) => return Err(SocketFault::Malformed { kind, len }),
                }
            }
        }
    }
}
