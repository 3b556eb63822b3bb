//! A piece of recorded sound in memory, and reading one from a file whatever it is called.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{flac, resample, wav};

/// Rates that are read, in Hz. Below is no speech; above is a broken header.
pub const RATES: std::ops::RangeInclusive<u32> = 4_000..=384_000;

/// Most samples that are read from one file, all channels together: a file of a few bytes can claim, and a compressed
/// one even deliver, more than there is memory. Enough for four hours of a telephone call in stereo.
pub const MAX_SAMPLES: usize = 1 << 28;

/// Most bytes that are read from one file.
const MAX_BYTES: u64 = 1 << 30;

/// Recorded sound: one buffer a channel, all of the same length, full scale at 1.0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clip {
    /// Samples per second.
    pub rate: u32,
    /// The channels; in a recording of a call the caller is the first and the agent the second.
    pub channels: Vec<Vec<f32>>,
}

impl Clip {
    /// A clip of one channel.
    pub fn mono(rate: u32, samples: Vec<f32>) -> Self {
        Self { rate, channels: vec![samples] }
    }

    /// Length in samples of one channel.
    pub fn len(&self) -> usize {
        self.channels.first().map_or(0, Vec::len)
    }

    /// Whether it holds no sample.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length in time.
    pub fn duration(&self) -> Duration {
        let rate = u64::from(self.rate.max(1));
        Duration::from_micros(self.len() as u64 * 1_000_000 / rate)
    }

    /// All channels as one, their mean.
    pub fn mixed_down(&self) -> Vec<f32> {
        let share = 1.0 / self.channels.len().max(1) as f32;
        let sum = |n: usize| self.channels.iter().filter_map(|c| c.get(n)).sum::<f32>() * share;
        (0..self.len()).map(sum).collect()
    }

    /// All channels as one at another rate, of the exact length that its duration has there.
    ///
    /// # Errors
    /// If either rate is outside [`RATES`].
    pub fn mono_at(&self, rate: u32) -> Result<Vec<f32>, resample::ResampleError> {
        resample::resample(&self.mixed_down(), self.rate, rate)
    }
}

/// Why a file could not be read as sound.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be opened or read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is neither WAV nor FLAC.
    #[error(
        "{}: neither a WAV nor a FLAC file (it begins with {begins}); convert it, for example with `sox IN out.wav`",
        path.display()
    )]
    UnknownFormat {
        /// Which file.
        path: PathBuf,
        /// Its first bytes, for the eye.
        begins: String,
    },
    /// More bytes than are read into memory.
    #[error("{}: larger than {} MiB; cut it into pieces", path.display(), MAX_BYTES >> 20)]
    TooLarge {
        /// Which file.
        path: PathBuf,
    },
    /// A WAV file that is broken or of a kind that is not read.
    #[error("{}: {source}", path.display())]
    Wav {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        source: wav::WavError,
    },
    /// A FLAC file that is broken or of a kind that is not read.
    #[error("{}: {source}", path.display())]
    Flac {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        source: flac::FlacError,
    },
}

/// Reads a WAV or FLAC file of any rate, width and number of channels, chosen by what it holds, not by its name.
///
/// # Errors
/// What is wrong with the file, by name; never a panic, and never more memory than the sound itself needs.
pub fn read_audio(path: &Path) -> Result<Clip, ReadError> {
    let bytes = read_bytes(path)?;
    let path = || path.to_path_buf();
    match bytes.get(..4) {
        Some(b"RIFF" | b"RIFX" | b"RF64") => {
            wav::decode(&bytes).map_err(|source| ReadError::Wav { path: path(), source })
        }
        // Some writers put a tag of the MP3 world in front of FLAC.
        Some(b"fLaC") | Some([b'I', b'D', b'3', _]) => {
            flac::decode(bytes).map_err(|source| ReadError::Flac { path: path(), source })
        }
        _ => Err(ReadError::UnknownFormat { path: path(), begins: first_bytes(&bytes) }),
    }
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let error = |source| ReadError::File { path: path.to_path_buf(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(error)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(error)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ReadError::TooLarge { path: path.to_path_buf() });
    }
    Ok(bytes)
}

fn first_bytes(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "nothing: it is empty".into();
    }
    let hex: Vec<String> = bytes.iter().take(4).map(|b| format!("{b:02x}")).collect();
    hex.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixing_down_takes_the_mean() {
        let clip = Clip { rate: 8_000, channels: vec![vec![1.0, 0.0], vec![0.0, 0.5]] };
        assert_eq!(clip.mixed_down(), [0.5, 0.25]);
        assert_eq!(clip.duration(), Duration::from_micros(250));
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read_audio(Path::new("no/such.wav")).unwrap_err().to_string();
        assert!(error.starts_with("no/such.wav: "), "{error}");
    }

    /// Every file of a folder of broken and odd recordings, if one is given: an answer or a named error.
    #[test]
    fn a_folder_of_broken_files_never_panics() {
        let Some(folder) = std::env::var_os("SAYBACK_BROKEN_AUDIO") else { return };
        let mut folders = vec![PathBuf::from(folder)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                match read_audio(&path) {
                    Ok(clip) => println!(
                        "{}: {} Hz x{}, {:?}",
                        path.display(),
                        clip.rate,
                        clip.channels.len(),
                        clip.duration()
                    ),
                    Err(error) => println!("{error}"),
                }
            }
        }
    }
}
