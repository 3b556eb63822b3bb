//! A call on this machine's microphone and speaker.
//!
//! ```text
//! begin/push/finish -> Playout ──feeder──> ring ──callback──> speaker
//!                         ^                         │
//!                         └── what was handed over, ┘  -> PlayoutEvent
//! microphone ──callback──> ring ──listener──> 16 kHz blocks, stamped on the call clock
//! ```
//!
//! The two callbacks never wait and never allocate: they touch one lock-free ring, a few atomics and the clock. `rtrb`
//! is that ring because it is wait-free on both sides, has one producer and one consumer (all that is needed here) and
//! moves samples in slices. Two threads of the line's own do the rest, one a direction, so that a device that takes
//! long to open again does not silence the other.
//!
//! What has been handed to the device cannot be called back: it sounds. So a pause or a clear takes effect with the
//! next buffer, behind at most two buffers that the device still holds, and the end of an utterance is where the
//! device says that its last audible sample is played.

mod calibrate;
mod device;
mod echo;
mod error;
mod hush;
mod input;
mod line;
mod output;
mod playout;
mod reopening;
mod stamp;
mod utterance;

pub use calibrate::{Calibration, CalibrationFile, calibrate};
pub use device::{DeviceChoice, DeviceInfo, Direction, chosen, devices};
pub use echo::EchoMode;
pub use error::MicError;
pub use line::{Block, LineEvent, LineFact, MicLine, MicOptions};
pub use stamp::CallClock;

/// Samples per second of the sound that a line hands out.
pub const INPUT_RATE: u32 = 16_000;

/// Samples in one [`Block`]: 10 ms, the frame of the echo canceller.
pub const BLOCK: usize = 160;
