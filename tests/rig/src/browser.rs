//! A browser without a window.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::needs::{repository, runs, skip};

/// Chromium, steered by scripts of `tests/browser` that node runs.
#[derive(Clone, Debug)]
pub struct Browser {
    /// Where the packages are that steer it.
    packages: PathBuf,
}

impl Browser {
    /// The one that is installed. `None`: there is none, which is said loudly.
    ///
    /// # Panics
    /// In continuous integration, if there is none.
    pub fn new() -> Option<Self> {
        let found = packages().filter(|folder| {
            let has = |name: &&str| folder.join("node_modules").join(name).is_dir();
            ["playwright-core", "axe-core"].iter().all(has)
                && runs("node", "--version")
                && runs("chromium", "--version")
        });
        if found.is_none() {
            skip("the browser is missing; get it with: scripts/setup --peers");
        }
        found.map(|packages| Self { packages })
    }

    /// `node` in `program`, a command to which the script, and what it needs to find the browser, are added.
    pub fn steered(&self, mut program: Command, script: &str) -> Command {
        program.arg(repository().join("tests/browser").join(script)).env("SAYBACK_BROWSER", &self.packages);
        program
    }

    /// Has a script walk; gives what it said.
    ///
    /// # Panics
    /// With what it found at fault.
    pub fn walk(&self, script: &str, arguments: &[&OsStr]) -> String {
        let done = self.steered(Command::new("node"), script).args(arguments).output();
        let done = done.expect("node was there when the browser was looked for");
        let said =
            format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{said}");
        said
    }
}

/// Where a script's pictures go: a folder that the environment names, or one that is thrown away.
pub fn pictures(temporary: &Path) -> PathBuf {
    std::env::var_os("SAYBACK_PICTURES").map_or_else(|| temporary.join("pictures"), PathBuf::from)
}

fn packages() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    let folder = std::env::var_os("SAYBACK_BROWSER").map(PathBuf::from);
    folder.or_else(|| cache.map(|cache| cache.join("sayback/browser")))
}
