//! A file from a hub over https, going on where a broken transfer stopped.

use super::ModelError;
use reqwest::StatusCode;
use reqwest::blocking::{Client, Response};
use reqwest::header::{CONTENT_RANGE, RANGE};
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(20);

/// The host of an address, for messages and for remembering which did not answer.
pub(super) fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// Brings `part` to `size` bytes from `url` and tells `on_bytes` how many are here.
///
/// Runs on a thread of its own: the blocking client must not be made inside an async runtime, and whoever calls this
/// may well be in one.
pub(super) fn download(
    url: &str,
    part: &Path,
    size: u64,
    on_bytes: &mut dyn FnMut(u64),
) -> Result<(), ModelError> {
    let (tell, told) = sync_channel(8);
    std::thread::scope(|scope| {
        let transfer = scope.spawn(move || Transfer { url, part, size, tell }.run());
        told.iter().for_each(on_bytes);
        transfer.join().unwrap_or_else(|_| Err(ModelError::source(url, "the transfer ended unexpectedly")))
    })
}

struct Transfer<'a> {
    url: &'a str,
    part: &'a Path,
    size: u64,
    tell: SyncSender<u64>,
}

impl Transfer<'_> {
    /// Asks again after a break as long as each round brought bytes.
    fn run(&self) -> Result<(), ModelError> {
        // An error means that the program has chosen a provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(CONNECT)
            .timeout(SILENCE)
            .user_agent("sayback")
            .build()
            .map_err(|error| self.failed(error))?;
        loop {
            let before = self.have();
            match self.round(&client) {
                Ok(()) => return Ok(()),
                Err(_) if self.have() > before && self.have() < self.size => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn round(&self, client: &Client) -> Result<(), ModelError> {
        let have = self.have();
        if have == self.size {
            return Ok(());
        }
        let resume = have > 0 && have < self.size;
        let request = client.get(self.url);
        let request = if resume { request.header(RANGE, format!("bytes={have}-")) } else { request };
        let response = request.send().map_err(|error| self.failed(error.without_url()))?;
        let goes_on =
            resume && response.status() == StatusCode::PARTIAL_CONTENT && starts_at(&response, have);
        if !goes_on && response.status() != StatusCode::OK {
            let _ = fs::remove_file(self.part);
            return Err(self.failed(format!("answered {}", response.status())));
        }
        self.take(response, if goes_on { have } else { 0 })
    }

    fn take(&self, mut response: Response, mut have: u64) -> Result<(), ModelError> {
        let io = |error: &std::io::Error| ModelError::io(self.part, error);
        let mut options = OpenOptions::new();
        let mut part =
            options.create(true).write(true).truncate(false).open(self.part).map_err(|e| io(&e))?;
        part.set_len(have).map_err(|e| io(&e))?;
        std::io::Seek::seek(&mut part, std::io::SeekFrom::Start(have)).map_err(|e| io(&e))?;
        let mut buffer = vec![0; 1 << 16];
        while have < self.size {
            let read = response.read(&mut buffer).map_err(|error| self.failed(error))?;
            if read == 0 {
                return Err(self.failed(format!("broke off after {have} of {} bytes", self.size)));
            }
            let left = usize::try_from(self.size - have).unwrap_or(usize::MAX);
            let wanted = &buffer[..read.min(left)];
            part.write_all(wanted).map_err(|e| io(&e))?;
            have += wanted.len() as u64;
            let _ = self.tell.send(have);
        }
        Ok(())
    }

    fn have(&self) -> u64 {
        fs::metadata(self.part).map_or(0, |found| found.len())
    }

    fn failed(&self, reason: impl ToString) -> ModelError {
        ModelError::source(host(self.url), reason)
    }
}

fn starts_at(response: &Response, have: u64) -> bool {
    let range = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {have}-")))
}
