//! Which devices there are, and which of their formats is taken.

use cpal::traits::{DeviceTrait, HostTrait};
use cpal::{BufferSize, SampleFormat, StreamConfig, SupportedBufferSize, SupportedStreamConfigRange};

use super::error::MicError;
use super::hush::Hush;

/// Which way sound goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// A microphone.
    Input,
    /// A speaker.
    Output,
}

impl Direction {
    /// As the command line says it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

/// What is known of a device in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The name to choose it by, unique in its direction.
    pub name: String,
    /// What people call it; may be the name again.
    pub description: String,
    /// Which way it goes.
    pub direction: Direction,
    /// Whether it is taken if none is chosen.
    pub default: bool,
    /// Ranges of rates in Hz, both ends included; empty if it cannot be opened now.
    pub rates: Vec<(u32, u32)>,
    /// Numbers of channels; empty if it cannot be opened now.
    pub channels: Vec<u16>,
    /// Why it cannot be opened now, if so.
    pub problem: Option<String>,
}

/// Which device, and optionally which of its formats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceChoice {
    /// Its name or description; `None` is the system's default.
    pub name: Option<String>,
    /// Rate in Hz; `None` is 48,000 or what comes nearest.
    pub rate: Option<u32>,
    /// Number of channels; `None` is the fewest.
    pub channels: Option<u16>,
    /// Format as cpal writes it: `i16`, `u16`, `f32`; `None` is the best there is.
    pub format: Option<String>,
}

/// A device that was found, with the format it is to be opened in.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) device: cpal::Device,
    pub(crate) name: String,
    pub(crate) config: StreamConfig,
    pub(crate) format: SampleFormat,
}

/// The rate that sound cards run at, so that nobody else has to convert.
const USUAL_RATE: u32 = 48_000;

/// Names of ALSA that are neither microphone nor speaker: its converters, the null device, and ways to servers that
/// answer under other names too. They can be chosen; nobody is to choose among them.
const NO_DEVICES: [&str; 9] =
    ["null", "lavrate", "samplerate", "speexrate", "speex", "upmix", "vdownmix", "oss", "jack"];

/// All devices, microphones first. Opens each for a moment; one that cannot be opened says why.
///
/// # Errors
/// If there is no sound system.
pub fn devices() -> Result<Vec<DeviceInfo>, MicError> {
    let _quiet = Hush::new();
    let host = host()?;
    let mut found = Vec::new();
    for direction in [Direction::Input, Direction::Output] {
        let default = default_device(&host, direction).and_then(|device| device_name(&device));
        for device in candidates(&host, direction)? {
            if let Some(name) = device_name(&device).filter(|name| !NO_DEVICES.contains(&name.as_str())) {
                found.push(describe(&device, name, direction, default.as_deref()));
            }
        }
    }
    Ok(found)
}

/// The name of the device that a choice comes to.
///
/// # Errors
/// If there is no such device, or none of its formats will do.
pub fn chosen(choice: &DeviceChoice, direction: Direction) -> Result<String, MicError> {
    choose(choice, direction).map(|found| found.name)
}

/// Finds a device and a format of it.
pub(crate) fn choose(choice: &DeviceChoice, direction: Direction) -> Result<Chosen, MicError> {
    let _quiet = Hush::new();
    let host = host()?;
    let device = match &choice.name {
        Some(name) => find(&host, name, direction)?,
        None => default_device(&host, direction).ok_or_else(|| unknown("default", direction, &[]))?,
    };
    let name = device_name(&device).unwrap_or_else(|| "default".to_owned());
    let ranges = supported(&device, direction).map_err(|error| MicError::CannotOpen {
        name: name.clone(),
        direction: direction.name(),
        reason: error.to_string(),
    })?;
    let best = ranges.into_iter().filter(|range| fits(range, choice)).min_by_key(|range| rank(range, choice));
    let Some(range) = best else {
        return Err(MicError::NoFormat { name, direction: direction.name(), wanted: wanted(choice) });
    };
    let rate = nearest_rate(&range, choice);
    let config =
        StreamConfig { channels: range.channels(), sample_rate: rate, buffer_size: ten_ms(&range, rate) };
    Ok(Chosen { device, name, config, format: range.sample_format() })
}

fn host() -> Result<cpal::Host, MicError> {
    #[cfg(target_os = "linux")]
    let host = cpal::host_from_id(cpal::HostId::Alsa);
    #[cfg(not(target_os = "linux"))]
    let host = Ok::<_, cpal::Error>(cpal::default_host());
    host.map_err(|error| MicError::NoHost(error.to_string()))
}

fn default_device(host: &cpal::Host, direction: Direction) -> Option<cpal::Device> {
    match direction {
        Direction::Input => host.default_input_device(),
        Direction::Output => host.default_output_device(),
    }
}

fn candidates(host: &cpal::Host, direction: Direction) -> Result<Vec<cpal::Device>, MicError> {
    let all = host.devices().map_err(|error| MicError::NoHost(error.to_string()))?;
    // The system may not know a device's direction before it is opened; those are listed under both.
    Ok(all
        .filter(|device| match direction {
            Direction::Input => device.supports_input() || !device.supports_output(),
            Direction::Output => device.supports_output() || !device.supports_input(),
        })
        .collect())
}

fn device_name(device: &cpal::Device) -> Option<String> {
    device.id().ok().map(|id| id.id().to_owned())
}

fn find(host: &cpal::Host, name: &str, direction: Direction) -> Result<cpal::Device, MicError> {
    let mut all = candidates(host, direction)?;
    let described =
        |device: &cpal::Device| device.description().is_ok_and(|d| d.name().eq_ignore_ascii_case(name));
    let place = all
        .iter()
        .position(|device| device_name(device).as_deref() == Some(name))
        .or_else(|| all.iter().position(described));
    match place {
        Some(place) => Ok(all.swap_remove(place)),
        None => Err(unknown(name, direction, &all)),
    }
}

fn unknown(name: &str, direction: Direction, known: &[cpal::Device]) -> MicError {
    let names: Vec<String> = known.iter().filter_map(device_name).collect();
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    MicError::UnknownDevice { name: name.to_owned(), direction: direction.name(), known }
}

fn supported(
    device: &cpal::Device,
    direction: Direction,
) -> Result<Vec<SupportedStreamConfigRange>, cpal::Error> {
    Ok(match direction {
        Direction::Input => device.supported_input_configs()?.collect(),
        Direction::Output => device.supported_output_configs()?.collect(),
    })
}

fn describe(device: &cpal::Device, name: String, direction: Direction, default: Option<&str>) -> DeviceInfo {
    let description = device.description().map_or_else(|_| name.clone(), |d| d.name().to_owned());
    let (ranges, problem) = match supported(device, direction) {
        Ok(ranges) => (ranges, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let mut rates: Vec<(u32, u32)> =
        ranges.iter().map(|r| (r.min_sample_rate(), r.max_sample_rate())).collect();
    let mut channels: Vec<u16> = ranges.iter().map(SupportedStreamConfigRange::channels).collect();
    rates.sort_unstable();
    rates.dedup();
    channels.sort_unstable();
    channels.dedup();
    let default = default == Some(name.as_str());
    DeviceInfo { name, description, direction, default, rates, channels, problem }
}

fn fits(range: &SupportedStreamConfigRange, choice: &DeviceChoice) -> bool {
    format_rank(range.sample_format()).is_some()
        && sayback_media::clip::RATES.contains(&nearest_rate(range, choice))
        && choice.rate.is_none_or(|rate| range.contains_rate(rate))
        && choice.channels.is_none_or(|channels| range.channels() == channels)
        && choice.format.as_ref().is_none_or(|format| range.sample_format().to_string() == *format)
}

/// Fewest channels first (a telephone has one), then the usual rate, then the format that needs least converting.
fn rank(range: &SupportedStreamConfigRange, choice: &DeviceChoice) -> (u16, u32, usize) {
    let off = nearest_rate(range, choice).abs_diff(choice.rate.unwrap_or(USUAL_RATE));
    (range.channels(), off, format_rank(range.sample_format()).unwrap_or(usize::MAX))
}

fn format_rank(format: SampleFormat) -> Option<usize> {
    use SampleFormat::{F32, F64, I8, I16, I32, U8, U16, U32};
    [F32, I16, I32, F64, U16, U32, U8, I8].into_iter().position(|known| known == format)
}

fn nearest_rate(range: &SupportedStreamConfigRange, choice: &DeviceChoice) -> u32 {
    let (low, high) = (range.min_sample_rate(), range.max_sample_rate());
    choice.rate.unwrap_or(USUAL_RATE).clamp(low.min(high), high)
}

/// 10 ms: short enough for a quick pause, long enough for a busy machine, which the device doubles.
fn ten_ms(range: &SupportedStreamConfigRange, rate: u32) -> BufferSize {
    match range.buffer_size() {
        SupportedBufferSize::Range { min, max } if min <= max => {
            BufferSize::Fixed((rate / 100).clamp(*min, *max))
        }
        SupportedBufferSize::Range { .. } | SupportedBufferSize::Unknown => BufferSize::Default,
    }
}

fn wanted(choice: &DeviceChoice) -> String {
    let mut words = Vec::new();
    words.extend(choice.rate.map(|rate| format!("{rate} Hz")));
    words.extend(choice.channels.map(|channels| format!("{channels} channels")));
    words.extend(choice.format.clone());
    if words.is_empty() { String::new() } else { format!(" with {}", words.join(", ")) }
}
