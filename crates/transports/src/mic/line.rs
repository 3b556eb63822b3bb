//! The line itself: two threads, two devices, one stream of facts.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use sayback_core::{LoopDelay, PlayoutEvent, PlayoutFailure, Time, UtteranceId};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::calibrate::Calibration;
use super::device::DeviceChoice;
use super::echo::{EchoMode, EchoPath};
use super::error::MicError;
use super::input::Listener;
use super::output::{Feeder, Output};
use super::playout::Playout;
use super::stamp::CallClock;

/// Longest sleep of a thread of the line when no callback wakes it.
pub(crate) const STEP: Duration = Duration::from_millis(20);

/// Facts that wait to be taken: four seconds of sound. When full, sound is dropped and reported as
/// [`LineEvent::Censored`]; everything else waits in the line.
const WAITING: usize = 400;

/// The loop of a line that was never measured.
const UNMEASURED: LoopDelay = LoopDelay { at_least: Duration::ZERO, at_most: Duration::from_millis(120) };

/// The loop of a line with a wireless device that was never measured.
const UNMEASURED_WIRELESS: LoopDelay =
    LoopDelay { at_least: Duration::ZERO, at_most: Duration::from_millis(350) };

/// How a line is to be opened.
#[derive(Clone, Debug, Default)]
pub struct MicOptions {
    /// The microphone.
    pub input: DeviceChoice,
    /// The speaker.
    pub output: DeviceChoice,
    /// How long sound takes from one to the other, if that was measured for these two.
    pub calibration: Option<Calibration>,
    /// What is done about the agent's own sound in the microphone.
    pub echo: EchoMode,
}

/// 10 ms of what the microphone heard.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// When its first sample sounded, on the call clock, by the device's own stamps.
    pub start: Time,
    /// [`BLOCK`](super::BLOCK) samples at [`INPUT_RATE`](super::INPUT_RATE), mono, full scale at 1.0, the agent's own
    /// voice taken out if the line does that: for voice activity detection and recognition.
    pub samples: Vec<f32>,
    /// The same as the microphone gave it: for telling whether a segment is the agent's own voice.
    pub raw: Vec<f32>,
    /// What the speaker played at the same time, by the devices' stamps.
    pub played: Vec<f32>,
    /// Half-duplex: the agent is heard in it, so the recogniser must not get it. The onset detector must, or a yes
    /// that began before the question's end would seem to begin when the gate opens.
    pub gated: bool,
}

/// What happened to the devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineEvent {
    /// The microphone is gone. The call goes on.
    InputLost {
        /// What to tell the user.
        message: String,
    },
    /// A microphone is there again.
    InputBack {
        /// Which.
        device: String,
    },
    /// The speaker is gone. What was to be said has failed; the call goes on.
    OutputLost {
        /// What to tell the user.
        message: String,
    },
    /// A speaker is there again.
    OutputBack {
        /// Which.
        device: String,
    },
    /// Nothing is known of the caller's sound in between: an onset behind it may have been as early as `from`.
    Censored {
        /// Start of the stretch.
        from: Time,
        /// Its end.
        to: Time,
    },
}

/// One thing that a line has to tell, in order within each direction.
#[derive(Clone, Debug, PartialEq)]
pub enum LineFact {
    /// Sound from the microphone.
    Heard(Block),
    /// News of what is said.
    Playout(PlayoutEvent),
    /// News of the devices.
    Line(LineEvent),
}

/// An open microphone and speaker.
///
/// All methods return at once. Dropping it closes the devices; what was still to be said is not reported any more.
#[derive(Debug)]
pub struct MicLine {
    output: Arc<Output>,
    stop: Arc<AtomicBool>,
    devices: (String, String),
    threads: Vec<JoinHandle<()>>,
}

impl MicLine {
    /// Opens both devices. The facts must be taken from the receiver: when it is dropped, the line falls silent.
    ///
    /// # Errors
    /// If a device does not exist or cannot be opened.
    pub fn open(options: MicOptions, clock: CallClock) -> Result<(Self, Receiver<LineFact>), MicError> {
        let (sender, facts) = channel(WAITING);
        let echo = Arc::new(EchoPath::default());
        let delay = options.loop_delay();
        // The rate is the device's once that is open; nothing is begun before.
        let output = Arc::new(Output::new(Playout::new(48_000, delay)));
        let stop = Arc::new(AtomicBool::new(false));
        let mut line = Self {
            output: Arc::clone(&output),
            stop: Arc::clone(&stop),
            devices: Default::default(),
            threads: Vec::new(),
        };
        let feeder = Feeder::new(
            output,
            options.output,
            Arc::clone(&clock),
            Arc::clone(&echo),
            Outbox::new(sender.clone()),
        );
        line.devices.1 = line.spawn("speaker", feeder, Feeder::start, Feeder::run)?;
        let listener = Listener::new(options.input, clock, (echo, options.echo), stop, Outbox::new(sender));
        line.devices.0 = line.spawn("microphone", listener, Listener::start, Listener::run)?;
        Ok((line, facts))
    }

    /// Names of the microphone and the speaker that were opened.
    pub fn devices(&self) -> (&str, &str) {
        (&self.devices.0, &self.devices.1)
    }

    /// Queues an utterance behind what is queued. Its voice gives `rate` mono samples a second.
    ///
    /// # Errors
    /// If the rate is none that is converted.
    pub fn begin(&self, utterance: UtteranceId, rate: u32) -> Result<(), MicError> {
        self.output.playout().begin(utterance, rate)
    }

    /// More of an utterance, as fast as the voice gives it. `Break`: it was cleared or has failed, the voice may stop.
    pub fn push(&self, utterance: UtteranceId, samples: &[i16]) -> ControlFlow<()> {
        let wanted = self.output.playout().push(utterance, samples);
        self.wake();
        if wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// The voice has given all of it.
    pub fn finish(&self, utterance: UtteranceId) {
        self.output.playout().finish(utterance);
        self.wake();
    }

    /// The voice has failed; what came of it so far may sound.
    pub fn fail(&self, utterance: UtteranceId) {
        self.output.playout().fail(utterance, PlayoutFailure::TtsFailed);
        self.wake();
    }

    /// Silence from the next buffer on, keeping the queue.
    pub fn pause(&self) {
        self.output.pause(true);
        self.wake();
    }

    /// Goes on where a pause began.
    pub fn resume(&self) {
        self.output.pause(false);
        self.wake();
    }

    /// Throws away what the device does not have yet, and ends a pause.
    pub fn clear(&self) {
        self.output.clear();
        self.wake();
    }

    fn wake(&self) {
        for thread in &self.threads {
            thread.thread().unpark();
        }
    }

    /// Starts one direction on a thread of its own and waits until its device is open.
    fn spawn<T: Send + 'static>(
        &mut self,
        name: &str,
        mut part: T,
        start: fn(&mut T) -> Result<String, MicError>,
        run: fn(T),
    ) -> Result<String, MicError> {
        let (tell, opened) = mpsc::sync_channel(1);
        let body = move || {
            let device = start(&mut part);
            let works = device.is_ok();
            if tell.send(device).is_ok() && works {
                run(part);
            }
        };
        let thread = std::thread::Builder::new().name(format!("sayback-{name}")).spawn(body);
        self.threads.push(thread.map_err(MicError::Thread)?);
        let gone = || MicError::Thread(std::io::Error::other(format!("the {name} thread ended")));
        opened.recv().map_err(|_| gone())?
    }
}

impl Drop for MicLine {
    fn drop(&mut self) {
        self.output.stop();
        self.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // It panics only through a fault of ours, which the panic itself has told.
            let _ = thread.join();
        }
    }
}

impl MicOptions {
    /// What a report says about the way from speaker to microphone.
    fn loop_delay(&self) -> LoopDelay {
        let wireless = |choice: &DeviceChoice| {
            let name = choice.name.as_deref().unwrap_or_default().to_ascii_lowercase();
            name.contains("bluez") || name.contains("bluetooth") || name.contains("bluealsa")
        };
        match &self.calibration {
            Some(calibration) => calibration.loop_delay(),
            None if wireless(&self.input) || wireless(&self.output) => UNMEASURED_WIRELESS,
            None => UNMEASURED,
        }
    }
}

/// Facts on their way out of one direction.
#[derive(Debug)]
pub(crate) struct Outbox {
    sender: Sender<LineFact>,
    /// What must not be dropped and found no room. It grows by what the line is asked to do and by lost devices, not
    /// by sound.
    waiting: VecDeque<LineFact>,
    open: bool,
}

impl Outbox {
    fn new(sender: Sender<LineFact>) -> Self {
        Self { sender, waiting: VecDeque::new(), open: true }
    }

    /// Sends now or later.
    pub(crate) fn put(&mut self, fact: LineFact) {
        self.waiting.push_back(fact);
        self.flush();
    }

    /// Sends now or not at all. Nothing overtakes what waits.
    pub(crate) fn offer(&mut self, fact: LineFact) -> bool {
        self.flush();
        self.waiting.is_empty() && self.sender.try_send(fact).is_ok()
    }

    /// Sends what waits, as far as there is room.
    pub(crate) fn flush(&mut self) {
        while let Some(fact) = self.waiting.pop_front() {
            match self.sender.try_send(fact) {
                Ok(()) => {}
                Err(TrySendError::Full(fact)) => {
                    self.waiting.push_front(fact);
                    return;
                }
                Err(TrySendError::Closed(_)) => {
                    self.waiting.clear();
                    self.open = false;
                }
            }
        }
    }

    /// Whether anybody listens.
    pub(crate) fn is_open(&self) -> bool {
        self.open && !self.sender.is_closed()
    }
}

/// A device that asks for or gives nothing this long is gone.
const SILENT: Duration = Duration::from_secs(2);

/// A device that has told of an error is gone if it asks for or gives nothing this long.
const FAULTY: Duration = Duration::from_millis(300);

/// Whether a device is still there.
#[derive(Debug)]
pub(crate) struct Watch {
    /// When it last asked for or gave sound, or was opened.
    alive: Time,
    /// What it complained of since then.
    complaint: Option<String>,
    /// Whether it said that it is gone.
    over: bool,
}

impl Watch {
    pub(crate) fn new(now: Time) -> Self {
        Self { alive: now, complaint: None, over: false }
    }

    /// It works.
    pub(crate) fn on_sound(&mut self, now: Time) {
        self.alive = now;
        self.complaint = None;
    }

    /// It complains. Some backends do so in passing and go on.
    pub(crate) fn on_error(&mut self, error: &cpal::Error) {
        use cpal::ErrorKind::{
            BackendError, DeviceBusy, DeviceChanged, DeviceNotAvailable, HostUnavailable, InvalidInput,
            Other, PermissionDenied, RealtimeDenied, ResourceExhausted, StreamInvalidated, UnsupportedConfig,
            UnsupportedOperation, Xrun,
        };
        match error.kind() {
            DeviceChanged | RealtimeDenied => {}
            DeviceNotAvailable | StreamInvalidated => {
                self.complaint = Some(error.to_string());
                self.over = true;
            }
            DeviceBusy | HostUnavailable | InvalidInput | PermissionDenied | ResourceExhausted
            | UnsupportedConfig | UnsupportedOperation | Xrun | BackendError | Other | _ => {
                self.complaint = Some(error.to_string())
            }
        }
    }

    /// Why it is gone, if it is.
    pub(crate) fn verdict(&self, now: Time) -> Option<String> {
        let silent = now.since(self.alive);
        match &self.complaint {
            Some(complaint) if self.over || silent >= FAULTY => Some(complaint.clone()),
            None if silent >= SILENT => Some(format!("no sign of life for {} s", SILENT.as_secs())),
            Some(_) | None => None,
        }
    }
}
