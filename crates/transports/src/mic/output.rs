//! To the speaker: the callback, and the thread that feeds it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use cpal::traits::{DeviceTrait, StreamTrait};
use cpal::{Data, FromSample, OutputCallbackInfo, SampleFormat, SizedSample};
use rtrb::{Consumer, Producer, RingBuffer};
use sayback_core::{LoopDelay, Time};

use super::device::{Chosen, DeviceChoice, Direction, choose};
use super::echo::{EchoPath, Reference};
use super::error::MicError;
use super::hush::Hush;
use super::line::{LineEvent, LineFact, Outbox, STEP, Watch};
use super::playout::{Handed, Playout};
use super::reopening::Reopening;
use super::stamp::{CallClock, Offset};

/// How far the ring is filled ahead of the device. It costs nothing in promptness, because the callback itself skips
/// what was cleared and waits while paused; it is what a busy machine may hold the feeder up for.
const LEAD: Duration = Duration::from_millis(200);

/// Buffers of which the callback can tell before the feeder has to listen: five seconds of them.
const REPORTS: usize = 512;

/// What the callback reads and writes besides its rings.
#[derive(Debug, Default)]
struct Switch {
    paused: AtomicBool,
    /// The callback skips up to this position.
    skip_to: AtomicU64,
    xruns: AtomicU32,
}

/// The part of a line that is talked to from outside.
#[derive(Debug)]
pub(crate) struct Output {
    playout: Mutex<Playout>,
    switch: Switch,
    stop: AtomicBool,
}

impl Output {
    pub(crate) fn new(playout: Playout) -> Self {
        Self { playout: Mutex::new(playout), switch: Switch::default(), stop: AtomicBool::new(false) }
    }

    pub(crate) fn playout(&self) -> MutexGuard<'_, Playout> {
        self.playout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pause(&self, paused: bool) {
        let mut playout = self.playout();
        if playout.pause(paused) {
            self.switch.paused.store(paused, Ordering::Release);
        }
    }

    pub(crate) fn clear(&self) {
        let mut playout = self.playout();
        let to = playout.clear();
        self.switch.skip_to.store(to, Ordering::Release);
        self.switch.paused.store(playout.is_paused(), Ordering::Release);
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// The callback's own.
struct Outlet {
    shared: Arc<Output>,
    samples: Consumer<f32>,
    reports: Producer<Handed>,
    clock: CallClock,
    offset: Offset,
    feeder: Thread,
    channels: usize,
    position: u64,
    frame: u64,
}

impl Outlet {
    fn render(&mut self, data: &mut Data, info: &OutputCallbackInfo) {
        match data.sample_format() {
            SampleFormat::F32 => self.render_as::<f32>(data, info),
            SampleFormat::F64 => self.render_as::<f64>(data, info),
            SampleFormat::I8 => self.render_as::<i8>(data, info),
            SampleFormat::I16 => self.render_as::<i16>(data, info),
            SampleFormat::I32 => self.render_as::<i32>(data, info),
            SampleFormat::U8 => self.render_as::<u8>(data, info),
            SampleFormat::U16 => self.render_as::<u16>(data, info),
            SampleFormat::U32 => self.render_as::<u32>(data, info),
            // Not chosen by `device::choose`; cpal has filled the buffer with silence.
            SampleFormat::I24
            | SampleFormat::I64
            | SampleFormat::U24
            | SampleFormat::U64
            | SampleFormat::DsdU8
            | SampleFormat::DsdU16
            | SampleFormat::DsdU32
            | _ => {}
        }
    }

    fn render_as<T: SizedSample + FromSample<f32>>(&mut self, data: &mut Data, info: &OutputCallbackInfo) {
        let Some(buffer) = data.as_slice_mut::<T>() else { return };
        let stamps = info.timestamp();
        self.offset.observe((self.clock)(), stamps.callback);
        let frames = buffer.len() / self.channels.max(1);
        let skipped = self.skip();
        let paused = self.shared.switch.paused.load(Ordering::Acquire);
        let from = self.position;
        let taken = if paused { 0 } else { self.write(buffer) };
        let report = Handed {
            frame: self.frame,
            frames: frames as u32,
            from,
            taken: taken as u32,
            skipped,
            callback: self.offset.time_of(stamps.callback),
            playback: self.offset.time_of(stamps.playback),
            paused,
            xruns: self.shared.switch.xruns.load(Ordering::Acquire),
        };
        self.frame += frames as u64;
        // With no room the feeder has slept for seconds; it will see that a buffer is missing.
        let _ = self.reports.push(report);
        // Wakes a sleeper, and never waits for one.
        self.feeder.unpark();
    }

    /// Throws away what was cleared.
    fn skip(&mut self) -> u64 {
        let to = self.shared.switch.skip_to.load(Ordering::Acquire);
        let from = self.position;
        while self.position < to {
            let wanted = usize::try_from(to - self.position).unwrap_or(usize::MAX);
            let count = wanted.min(self.samples.slots());
            match self.samples.read_chunk(count) {
                Ok(chunk) if count > 0 => chunk.commit_all(),
                Ok(_) | Err(_) => break,
            }
            self.position += count as u64;
        }
        self.position - from
    }

    /// Fills a buffer, and gives how many samples it begins with.
    fn write<T: SizedSample + FromSample<f32>>(&mut self, buffer: &mut [T]) -> usize {
        let channels = self.channels.max(1);
        let count = self.samples.slots().min(buffer.len() / channels);
        let Ok(chunk) = self.samples.read_chunk(count) else { return 0 };
        let (first, second) = chunk.as_slices();
        for (frame, sample) in buffer.chunks_exact_mut(channels).zip(first.iter().chain(second)) {
            frame.fill(T::from_sample(*sample));
        }
        chunk.commit_all();
        self.position += count as u64;
        count
    }
}

/// An open stream seen from the feeder.
struct Open {
    /// Held to keep the device open.
    _stream: cpal::Stream,
    name: String,
    samples: Producer<f32>,
    reports: Consumer<Handed>,
    errors: Consumer<cpal::Error>,
    rate: u32,
    reference: Reference,
    /// Written and not yet handed over, for the reference.
    ahead: VecDeque<f32>,
    watch: Watch,
}

/// The thread that feeds the speaker.
pub(crate) struct Feeder {
    shared: Arc<Output>,
    reopening: Reopening,
    clock: CallClock,
    echo: Arc<EchoPath>,
    outbox: Outbox,
    delay: LoopDelay,
    open: Option<Open>,
    scratch: Vec<f32>,
}

impl Feeder {
    pub(crate) fn new(
        shared: Arc<Output>,
        choice: DeviceChoice,
        clock: CallClock,
        echo: Arc<EchoPath>,
        outbox: Outbox,
    ) -> Self {
        let delay = shared.playout().delay();
        Self {
            shared,
            reopening: Reopening::new(choice),
            clock,
            echo,
            outbox,
            delay,
            open: None,
            scratch: Vec::new(),
        }
    }

    /// Opens the chosen device for the first time. Called on the feeder's own thread, which the callback wakes.
    pub(crate) fn start(&mut self) -> Result<String, MicError> {
        let choice = self.reopening.choice();
        self.open_device(&choice)
    }

    /// Feeds until told to stop or nobody listens any more.
    pub(crate) fn run(mut self) {
        while !self.shared.stop.load(Ordering::Acquire) && self.outbox.is_open() {
            self.turn();
            std::thread::park_timeout(STEP);
        }
    }

    fn turn(&mut self) {
        let now = (self.clock)();
        let lost = self.open.as_mut().and_then(|open| open.hear(&self.shared, &self.echo, now));
        if let Some(reason) = lost {
            self.lose(now, &reason);
        }
        if self.open.is_none() {
            self.reopen(now);
        }
        self.feed();
        self.report(now);
        // After the reports: one utterance may end while the next sounds.
        if self.shared.playout().is_sounding() {
            self.echo.sounds(now);
        }
        self.outbox.flush();
    }

    fn feed(&mut self) {
        let Some(open) = &mut self.open else { return };
        let lead = (u128::from(open.rate) * LEAD.as_millis() / 1_000) as usize;
        let waiting = open.samples.buffer().capacity() - open.samples.slots();
        let room = lead.saturating_sub(waiting);
        self.scratch.clear();
        // Held until the samples are in the ring: a clear must know how far the ring reaches.
        let mut playout = self.shared.playout();
        playout.fill(room, &mut self.scratch);
        for sample in &self.scratch {
            // The ring is longer than the lead.
            if open.samples.push(*sample).is_ok() {
                open.ahead.push_back(*sample);
            }
        }
    }

    fn report(&mut self, now: Time) {
        loop {
            let Some(event) = self.shared.playout().poll_event() else { return };
            self.echo.on_playout(&event, now, self.delay);
            self.outbox.put(LineFact::Playout(event));
        }
    }

    fn lose(&mut self, now: Time, reason: &str) {
        let Some(open) = self.open.take() else { return };
        let name = open.name.clone();
        self.shared.playout().lose_device(now);
        drop(open);
        let message = format!(
            "speaker \"{name}\" is gone ({reason}); the call goes on, silent, and the speaker is tried again every second"
        );
        self.outbox.put(LineFact::Line(LineEvent::OutputLost { message }));
        self.reopening.on_lost(now);
    }

    fn reopen(&mut self, now: Time) {
        let mut reopening = self.reopening.clone();
        if let Some(device) = reopening.attempt(now, |choice| self.open_device(choice)) {
            self.outbox.put(LineFact::Line(LineEvent::OutputBack { device }));
        }
        self.reopening = reopening;
    }

    fn open_device(&mut self, choice: &DeviceChoice) -> Result<String, MicError> {
        let _quiet = Hush::new();
        let chosen = choose(choice, Direction::Output)?;
        let rate = chosen.config.sample_rate;
        let (sample_in, sample_out) = RingBuffer::new(rate as usize);
        let (report_in, report_out) = RingBuffer::new(REPORTS);
        let (error_in, error_out) = RingBuffer::new(16);
        let outlet = Outlet {
            shared: Arc::clone(&self.shared),
            samples: sample_out,
            reports: report_in,
            clock: Arc::clone(&self.clock),
            offset: Offset::default(),
            feeder: std::thread::current(),
            channels: usize::from(chosen.config.channels),
            position: 0,
            frame: 0,
        };
        let reference = Reference::new(rate)?;
        {
            let mut playout = self.shared.playout();
            playout.device_back(rate);
            self.shared.switch.skip_to.store(0, Ordering::Release);
        }
        let stream = build(&chosen, outlet, error_in, Arc::clone(&self.shared))?;
        let name = chosen.name;
        self.open = Some(Open {
            _stream: stream,
            name: name.clone(),
            samples: sample_in,
            reports: report_out,
            errors: error_out,
            rate,
            reference,
            ahead: VecDeque::new(),
            watch: Watch::new((self.clock)()),
        });
        Ok(name)
    }
}

impl Open {
    /// Takes what the callback tells. Gives a reason if the device is gone.
    fn hear(&mut self, shared: &Output, echo: &EchoPath, now: Time) -> Option<String> {
        while let Ok(handed) = self.reports.pop() {
            self.watch.on_sound(now);
            shared.playout().on_handed(handed);
            let skipped = usize::try_from(handed.skipped).unwrap_or(usize::MAX).min(self.ahead.len());
            self.ahead.drain(..skipped);
            let taken = (handed.taken as usize).min(self.ahead.len());
            self.reference.play(echo, handed.playback, self.ahead.drain(..taken), handed.frames as usize);
        }
        while let Ok(error) = self.errors.pop() {
            self.watch.on_error(&error);
        }
        self.watch.verdict(now)
    }
}

fn build(
    chosen: &Chosen,
    mut outlet: Outlet,
    mut errors: Producer<cpal::Error>,
    shared: Arc<Output>,
) -> Result<cpal::Stream, MicError> {
    let cannot = |error: cpal::Error| MicError::CannotOpen {
        name: chosen.name.clone(),
        direction: Direction::Output.name(),
        reason: error.to_string(),
    };
    let on_error = move |error: cpal::Error| {
        if error.kind() == cpal::ErrorKind::Xrun {
            shared.switch.xruns.fetch_add(1, Ordering::AcqRel);
        } else {
            // A ring full of errors says enough.
            let _ = errors.push(error);
        }
    };
    let stream = chosen
        .device
        .build_output_stream_raw(
            chosen.config,
            chosen.format,
            move |data: &mut Data, info: &OutputCallbackInfo| outlet.render(data, info),
            on_error,
            Some(STEP),
        )
        .map_err(cannot)?;
    stream.play().map_err(cannot)?;
    Ok(stream)
}
