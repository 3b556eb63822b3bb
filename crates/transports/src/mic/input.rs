//! From the microphone: the callback, and the thread that listens to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

use cpal::traits::{DeviceTrait, StreamTrait};
use cpal::{Data, FromSample, InputCallbackInfo, Sample, SampleFormat, SizedSample};
use rtrb::{Consumer, Producer, RingBuffer};
use sayback_core::Time;
use sayback_media::resample::Resampler;
use sayback_media::{EchoCanceller, EchoPresence};

use super::device::{Chosen, DeviceChoice, Direction, choose};
use super::echo::{Cursor, EchoMode, EchoPath};
use super::error::MicError;
use super::hush::Hush;
use super::line::{Block, LineEvent, LineFact, Outbox, STEP, Watch};
use super::reopening::Reopening;
use super::stamp::{CallClock, Offset, SampleClock};
use super::{BLOCK, INPUT_RATE};

/// Buffers that the callback can leave before the listener has to take them.
const REPORTS: usize = 512;

/// Added on either side of missing sound: how far the stamps around a gap may be off.
const MARGIN: Duration = Duration::from_millis(40);

/// The canceller is told what is played this much earlier than it sounds, because it looks for echo behind the sound
/// only: stamps that are a little off must not put the echo before it. The device has been given that sound by then.
const HEADSTART: i64 = BLOCK as i64;

/// One buffer that the device gave.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// Number of its first frame since the stream was opened, dropped ones included.
    first: u64,
    frames: u32,
    /// When its first frame sounded.
    capture: Time,
}

/// The callback's own.
struct Inlet {
    samples: Producer<f32>,
    reports: Producer<Taken>,
    clock: CallClock,
    offset: Offset,
    listener: Thread,
    channels: usize,
    number: u64,
}

impl Inlet {
    fn take(&mut self, data: &Data, info: &InputCallbackInfo) {
        match data.sample_format() {
            SampleFormat::F32 => self.take_as::<f32>(data, info),
            SampleFormat::F64 => self.take_as::<f64>(data, info),
            SampleFormat::I8 => self.take_as::<i8>(data, info),
            SampleFormat::I16 => self.take_as::<i16>(data, info),
            SampleFormat::I32 => self.take_as::<i32>(data, info),
            SampleFormat::U8 => self.take_as::<u8>(data, info),
            SampleFormat::U16 => self.take_as::<u16>(data, info),
            SampleFormat::U32 => self.take_as::<u32>(data, info),
            // Not chosen by `device::choose`.
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

    fn take_as<T: SizedSample>(&mut self, data: &Data, info: &InputCallbackInfo)
    where
        f32: FromSample<T>,
    {
        let Some(buffer) = data.as_slice::<T>() else { return };
        let stamps = info.timestamp();
        self.offset.observe((self.clock)(), stamps.callback);
        let channels = self.channels.max(1);
        let frames = buffer.len() / channels;
        let report =
            Taken { first: self.number, frames: frames as u32, capture: self.offset.time_of(stamps.capture) };
        self.number += frames as u64;
        // A buffer goes in whole or not at all; the listener sees by the numbers that one is missing.
        if self.samples.slots() < frames || self.reports.slots() == 0 {
            return;
        }
        let share = 1.0 / channels as f32;
        if let Ok(chunk) = self.samples.write_chunk_uninit(frames) {
            let mixed = buffer
                .chunks_exact(channels)
                .map(|frame| frame.iter().map(|sample| f32::from_sample(*sample)).sum::<f32>() * share);
            chunk.fill_from_iter(mixed);
        }
        // Behind its samples, so that who sees the report finds them; there is room, as was just seen.
        let _ = self.reports.push(report);
        // Wakes a sleeper, and never waits for one.
        self.listener.unpark();
    }
}

/// An open stream seen from the listener.
struct Open {
    /// Held to keep the device open.
    _stream: cpal::Stream,
    name: String,
    samples: Consumer<f32>,
    reports: Consumer<Taken>,
    errors: Consumer<cpal::Error>,
    blocks: Blocks,
    expected: u64,
    watch: Watch,
}

/// Cuts the device's samples into stamped blocks of 16 kHz.
#[derive(Debug)]
struct Blocks {
    clock: SampleClock,
    converter: Resampler,
    rate: u32,
    /// Number of the device's sample that the converter began with.
    base: Option<u64>,
    /// Number of the next block's first sample since then.
    next: u64,
    pending: Vec<f32>,
}

impl Blocks {
    fn new(rate: u32) -> Result<Self, MicError> {
        let converter = Resampler::new(rate, INPUT_RATE)?;
        Ok(Self { clock: SampleClock::new(rate), converter, rate, base: None, next: 0, pending: Vec::new() })
    }

    /// Forgets what was before a gap.
    fn restart(&mut self) {
        self.converter.reset();
        self.base = None;
        self.next = 0;
        self.pending.clear();
    }

    fn push(&mut self, first: u64, samples: &[f32]) {
        self.base.get_or_insert(first);
        self.pending.extend_from_slice(self.converter.push(samples));
    }

    /// The next whole block and the time of its first sample.
    fn pop(&mut self) -> Option<(Time, Vec<f32>)> {
        if self.pending.len() < BLOCK {
            return None;
        }
        let start = self.time_of_next()?;
        let samples = self.pending.drain(..BLOCK).collect();
        self.next += BLOCK as u64;
        Some((start, samples))
    }

    fn time_of_next(&self) -> Option<Time> {
        let late = self.next as f64 - self.converter.output_delay() as f64;
        let number = self.base? as f64 + late * f64::from(self.rate) / f64::from(INPUT_RATE);
        self.clock.time_of(number)
    }
}

/// The thread that listens to the microphone.
pub(crate) struct Listener {
    reopening: Reopening,
    clock: CallClock,
    echo: Arc<EchoPath>,
    mode: EchoMode,
    canceller: Option<EchoCanceller>,
    presence: EchoPresence,
    cursor: Cursor,
    stop: Arc<AtomicBool>,
    outbox: Outbox,
    open: Option<Open>,
    /// Up to when sound has been handed out.
    until: Time,
    /// Since when it is missing, while it is.
    missing: Option<Time>,
    scratch: Vec<f32>,
}

impl Listener {
    pub(crate) fn new(
        choice: DeviceChoice,
        clock: CallClock,
        echo: (Arc<EchoPath>, EchoMode),
        stop: Arc<AtomicBool>,
        outbox: Outbox,
    ) -> Self {
        Self {
            reopening: Reopening::new(choice),
            clock,
            echo: echo.0,
            mode: echo.1,
            canceller: (echo.1 == EchoMode::Cancel).then(|| EchoCanceller::new(INPUT_RATE).ok()).flatten(),
            presence: EchoPresence::new(),
            cursor: Cursor::default(),
            stop,
            outbox,
            open: None,
            until: Time::ZERO,
            missing: None,
            scratch: Vec::new(),
        }
    }

    /// Opens the chosen device for the first time. Called on the listener's own thread, which the callback wakes.
    pub(crate) fn start(&mut self) -> Result<String, MicError> {
        let choice = self.reopening.choice();
        self.open_device(&choice)
    }

    /// Listens until told to stop or nobody wants to hear any more.
    pub(crate) fn run(mut self) {
        while !self.stop.load(Ordering::Acquire) && self.outbox.is_open() {
            self.turn();
            std::thread::park_timeout(STEP);
        }
    }

    fn turn(&mut self) {
        let now = (self.clock)();
        if let Some(mut open) = self.open.take() {
            let lost = self.hear(&mut open, now);
            match lost {
                None => self.open = Some(open),
                Some(reason) => self.lose(open, now, &reason),
            }
        }
        if self.open.is_none() {
            self.reopen(now);
        }
        self.outbox.flush();
    }

    /// Takes what the callback left. Gives a reason if the device is gone.
    fn hear(&mut self, open: &mut Open, now: Time) -> Option<String> {
        while let Ok(taken) = open.reports.pop() {
            open.watch.on_sound(now);
            let jumped = open.blocks.clock.observe(taken.first, taken.capture);
            if jumped || taken.first != open.expected {
                self.miss();
                open.blocks.restart();
            }
            open.expected = taken.first + u64::from(taken.frames);
            self.scratch.resize(taken.frames as usize, 0.0);
            if open.samples.pop_entire_slice(&mut self.scratch).is_ok() {
                open.blocks.push(taken.first, &self.scratch);
            }
            while let Some((start, samples)) = open.blocks.pop() {
                self.hand_out(start, samples);
            }
        }
        while let Ok(error) = open.errors.pop() {
            if error.kind() == cpal::ErrorKind::Xrun {
                self.miss();
                open.blocks.restart();
                open.blocks.clock = SampleClock::new(open.blocks.rate);
            } else {
                open.watch.on_error(&error);
            }
        }
        open.watch.verdict(now)
    }

    fn hand_out(&mut self, start: Time, samples: Vec<f32>) {
        if let Some(from) = self.missing.take() {
            let fact = LineFact::Line(LineEvent::Censored { from, to: (start + MARGIN).max(from) });
            self.outbox.put(fact);
        }
        let end = start + Duration::from_millis(10);
        let gated = self.is_half_duplex() && self.echo.is_heard(start, end);
        let mut played = vec![0.0; samples.len()];
        let place = self.cursor.advance(start, samples.len());
        self.echo.read(place, &mut played);
        let raw = samples.clone();
        let samples = match &mut self.canceller {
            Some(canceller) => {
                let mut ahead = vec![0.0; samples.len()];
                self.echo.read(place + HEADSTART, &mut ahead);
                canceller.render(&ahead);
                // With the same head start: by the devices' times a loop without a way seems to be heard too early.
                self.presence.push(&ahead, &raw);
                // It goes on learning, so that it is ready when a headset is taken off.
                let cleaned = canceller.capture(&raw);
                if self.presence.is_assumed() { cleaned.to_vec() } else { raw.clone() }
            }
            None => samples,
        };
        self.until = end;
        if !self.outbox.offer(LineFact::Heard(Block { start, samples, raw, played, gated })) {
            // Nobody took it: for the onset detector that is a gap like any other.
            self.missing = Some(start);
        }
    }

    /// Also where the canceller could not be had.
    fn is_half_duplex(&self) -> bool {
        match self.mode {
            EchoMode::Cancel => self.canceller.is_none(),
            EchoMode::HalfDuplex => true,
            EchoMode::None => false,
        }
    }

    fn miss(&mut self) {
        let from = self.until - MARGIN;
        self.missing.get_or_insert(from);
    }

    fn lose(&mut self, open: Open, now: Time, reason: &str) {
        self.miss();
        let name = open.name.clone();
        drop(open);
        let message = format!(
            "microphone \"{name}\" is gone ({reason}); nothing is heard until it is back, and it is tried again every second"
        );
        self.outbox.put(LineFact::Line(LineEvent::InputLost { message }));
        self.reopening.on_lost(now);
    }

    fn reopen(&mut self, now: Time) {
        let mut reopening = self.reopening.clone();
        if let Some(device) = reopening.attempt(now, |choice| self.open_device(choice)) {
            self.outbox.put(LineFact::Line(LineEvent::InputBack { device }));
        }
        self.reopening = reopening;
    }

    fn open_device(&mut self, choice: &DeviceChoice) -> Result<String, MicError> {
        let _quiet = Hush::new();
        let chosen = choose(choice, Direction::Input)?;
        let rate = chosen.config.sample_rate;
        let (sample_in, sample_out) = RingBuffer::new(rate as usize);
        let (report_in, report_out) = RingBuffer::new(REPORTS);
        let (error_in, error_out) = RingBuffer::new(16);
        let inlet = Inlet {
            samples: sample_in,
            reports: report_in,
            clock: Arc::clone(&self.clock),
            offset: Offset::default(),
            listener: std::thread::current(),
            channels: usize::from(chosen.config.channels),
            number: 0,
        };
        let blocks = Blocks::new(rate)?;
        let stream = build(&chosen, inlet, error_in)?;
        let name = chosen.name;
        self.open = Some(Open {
            _stream: stream,
            name: name.clone(),
            samples: sample_out,
            reports: report_out,
            errors: error_out,
            blocks,
            expected: 0,
            watch: Watch::new((self.clock)()),
        });
        Ok(name)
    }
}

fn build(
    chosen: &Chosen,
    mut inlet: Inlet,
    mut errors: Producer<cpal::Error>,
) -> Result<cpal::Stream, MicError> {
    let cannot = |error: cpal::Error| MicError::CannotOpen {
        name: chosen.name.clone(),
        direction: Direction::Input.name(),
        reason: error.to_string(),
    };
    let stream = chosen
        .device
        .build_input_stream_raw(
            chosen.config,
            chosen.format,
            move |data: &Data, info: &InputCallbackInfo| inlet.take(data, info),
            // A ring full of errors says enough.
            move |error| drop(errors.push(error)),
            Some(STEP),
        )
        .map_err(cannot)?;
    stream.play().map_err(cannot)?;
    Ok(stream)
}
