//! SHA-256 of files and of bytes that pass by.

use super::ModelError;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// SHA-256 of a file, in lower-case hexadecimal.
pub(super) fn sha256_of(path: &Path) -> Result<String, ModelError> {
    let mut file = File::open(path).map_err(|error| ModelError::io(path, &error))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer).map_err(|error| ModelError::io(path, &error))?;
        if read == 0 {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(&buffer[..read]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
