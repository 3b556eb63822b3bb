//! Walks through the console in Chromium, steered by a script of `tests/browser`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::server::repository;
use sayback_rig::skip;

/// Where the packages are that steer the browser; said loudly if there are none, and a failure in continuous integration.
pub(crate) fn browser() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    let folder = std::env::var_os("SAYBACK_BROWSER").map(PathBuf::from);
    let folder = folder.or_else(|| cache.map(|cache| cache.join("sayback/browser")))?;
    let runs = |name: &str| Command::new(name).arg("--version").output().is_ok();
    let there =
        ["playwright-core", "axe-core"].iter().all(|name| folder.join("node_modules").join(name).is_dir());
    if there && runs("node") && runs("chromium") {
        return Some(folder);
    }
    skip("the browser is missing; get it with: scripts/setup --peers");
    None
}

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
