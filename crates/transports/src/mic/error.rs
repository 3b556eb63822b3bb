//! What can go wrong with a device.

use std::path::PathBuf;

/// Why a line could not be opened, measured or stored.
#[derive(Debug, thiserror::Error)]
pub enum MicError {
    /// There is no sound system at all.
    #[error(
        "no sound system: {0}; on Debian: apt-get install libasound2 alsa-utils, then see: sayback devices"
    )]
    NoHost(String),
    /// No device has that name.
    #[error("no {direction} device \"{name}\"; there are: {known}; see: sayback devices")]
    UnknownDevice {
        /// What was asked for.
        name: String,
        /// `input` or `output`.
        direction: &'static str,
        /// The names there are.
        known: String,
    },
    /// The device cannot be opened.
    #[error(
        "{direction} device \"{name}\" cannot be opened: {reason}; another one is chosen with --{direction} NAME"
    )]
    CannotOpen {
        /// Its name.
        name: String,
        /// `input` or `output`.
        direction: &'static str,
        /// What the system said.
        reason: String,
    },
    /// The device has no format that we know.
    #[error("{direction} device \"{name}\" offers no usable format{wanted}")]
    NoFormat {
        /// Its name.
        name: String,
        /// `input` or `output`.
        direction: &'static str,
        /// What was asked for beyond the name.
        wanted: String,
    },
    /// A rate that is not converted.
    #[error(transparent)]
    Rate(#[from] sayback_media::resample::ResampleError),
    /// The thread of a direction could not be started.
    #[error("a thread of the line cannot be started: {0}")]
    Thread(std::io::Error),
    /// The chirp was not found on the microphone.
    #[error(
        "the chirp was not heard on the microphone (confidence {confidence:.2}, needed {needed:.2}): turn the speaker \
         up, take headphones off, and try again"
    )]
    NoChirp {
        /// Best likeness found, 0 to 1.
        confidence: f32,
        /// What is needed.
        needed: f32,
    },
    /// A device was lost while it was measured.
    #[error("{0}")]
    Lost(String),
    /// The file of calibrations cannot be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why, and where in it.
        reason: String,
    },
}
