//! A PostgreSQL of a test's own: made in a folder that is gone afterwards, reached over a socket in it, and run by a user
//! who is not root, as it insists.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sayback_rig::skip;

/// `nobody`, for tests that root runs.
pub(crate) const NOBODY: u32 = 65_534;

/// A database server.
pub(crate) struct Server {
    programs: PathBuf,
    folder: tempfile::TempDir,
    settings: Vec<String>,
    running: Option<Child>,
}

/// Whether a test that needs PostgreSQL can be made. Without it a test says so and is left out, but not where everything
/// must be there.
pub(crate) fn installed() -> bool {
    programs().is_some() || skip("PostgreSQL is missing; get it with: scripts/setup --peers")
}

fn programs() -> Option<PathBuf> {
    let below = |folder: &str| {
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path().join("bin"))
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all: Vec<PathBuf> = std::env::split_paths(&path).chain(below("/usr/lib/postgresql")).collect();
    all.sort();
    all.into_iter().rev().find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}

/// Whether a path is root's.
pub(crate) fn is_root(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(folder).unwrap().uid() == 0
}

impl Server {
    /// Makes one and starts it. `settings` as after `-c`.
    pub(crate) fn start(settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if is_root(folder.path()) {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let programs = programs().expect("asked for first");
        let mut server = Self { programs, folder, settings, running: None };
        let mut initdb = server.program("initdb");
        initdb.args([
            "--username=sayback",
            "--auth=trust",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C",
            "--pgdata",
        ]);
        let made = initdb.arg(server.data()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        server.run();
        server
    }

    /// Where it is reached.
    pub(crate) fn url(&self) -> String {
        let socket = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://sayback@{socket}/postgres")
    }

    /// Starts it after [`Self::kill`].
    pub(crate) fn run(&mut self) {
        let mut postgres = self.program("postgres");
        postgres.arg("-D").arg(self.data()).arg("-k").arg(self.folder.path());
        postgres.args([
            "-c",
            "listen_addresses=",
            "-c",
            "log_min_messages=log",
            "-c",
            "logging_collector=off",
        ]);
        for setting in &self.settings {
            postgres.args(["-c", setting]);
        }
        let mut child = postgres.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let ready = log.by_ref().map_while(Result::ok).any(|line| {
            let ready = line.contains("ready to accept connections");
            said.push(line);
            ready
        });
        assert!(ready, "PostgreSQL did not start:\n{}", said.join("\n"));
        // A log that nobody reads would fill up and stop it.
        std::thread::spawn(move || log.for_each(drop));
        self.running = Some(child);
    }

    /// Ends it in the middle of whatever it does, as a crash would.
    pub(crate) fn kill(&mut self) {
        let Some(mut child) = self.running.take() else { return };
        let mut stop = self.program("pg_ctl");
        let _ = stop.args(["stop", "-m", "immediate", "-s", "-D"]).arg(self.data()).status();
        let _ = child.wait();
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir("/").env_remove("PGDATA");
        if is_root(Path::new("/proc/self")) {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
