//! Walks through the console in Chromium, steered by a script of `tests/browser`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::server::repository;

/// Where pictures go: a folder that the environment names, or one that is thrown away.
pub(crate) fn pictures(temporary: &Path) -> PathBuf {
    std::env::var_os("SAYBACK_PICTURES").map_or_else(|| temporary.join("pictures"), PathBuf::from)
}

/// Has a script walk; what it finds at fault, it tells, and that is a failure.
pub(crate) fn walk(browser: &Path, script: &str, arguments: &[&OsStr]) -> String {
    let done = Command::new("node")
        .arg(repository().join("tests/browser").join(script))
        .args(arguments)
        .env("SAYBACK_BROWSER", browser)
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}");
    said
}
