//! The HTTP API of a running server against its own document, by a program that makes up requests from it: schemathesis.

#![cfg(feature = "serve")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

#[expect(dead_code, reason = "other tests ask for more")]
#[path = "support/server.rs"]
mod server;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sayback_rig::{has_models, skip};
use serde_json::json;
use server::{PROGRAM, Server, answers, bank, repository};

const TOKEN: &str = "a-token-of-the-test";

/// Schemathesis, of the version that the answers were looked through with; if there is none, that is said loudly, and
/// fails in continuous integration.
fn schemathesis() -> Option<PathBuf> {
    let own = std::env::var_os("SAYBACK_SCHEMATHESIS").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let cache = home.map(|home| home.join(".cache/sayback/schemathesis/bin/schemathesis"));
    let is_it = |program: &PathBuf| {
        let asked = Command::new(program).arg("--version").stderr(Stdio::null()).output();
        asked.is_ok_and(|told| String::from_utf8_lossy(&told.stdout).contains("version 4."))
    };
    let found = own.into_iter().chain(cache).chain([PathBuf::from("schemathesis")]).find(is_it);
    let hint = "schemathesis 4 is missing; get it with: scripts/setup --peers";
    if found.is_none() {
        skip(hint);
    }
    found
}

/// A server with everything that has routes: telephones, browsers, recordings, media streams. Its log is in its folder.
fn start(folder: &Path) -> Server {
    let sha256 = sayback_server::access::hash(TOKEN);
    let more = format!(
        "[media.plain]\n[webrtc]\n[sip]\nlisten = [\"udp:127.0.0.1:0\"]\n[record]\nfolder = \"calls\"\n\
         [limits]\ncalls = 100000\n[limits.token]\nstarts = 100000\n[[auth.token]]\nname = \"tests\"\nsha256 = \"{sha256}\"\n\
         roles = [\"read\", \"call\", \"app\", \"approve\"]\n"
    );
    let agents = answers(folder, &bank(), &vec![json!({ "say": "done" }); 200]);
    let mut command = Command::new(PROGRAM);
    command.stderr(File::create(folder.join("log")).unwrap());
    Server::run(folder, &format!("{agents}{more}"), command)
}

/// Lets it make up requests, and gives what it said if something was not as the document tells.
fn tried(program: &Path, server: &Server, folder: &Path, selected: &[&str]) -> Result<(), String> {
    let types = repository().join("crates/sayback/tests/support/schemathesis_types.py");
    let examples = std::env::var("SAYBACK_EXAMPLES").unwrap_or_else(|_| "10".to_owned());
    let run = Command::new(program)
        .arg("run")
        .arg(server.page("/v1/openapi.json"))
        .args(["-H", &format!("Authorization: Bearer {TOKEN}"), "-n", &examples])
        // The same requests each time; what 10,000 more would find is looked for by hand with SAYBACK_EXAMPLES.
        .args(["--generation-deterministic", "--continue-on-failure", "--no-color", "--warnings", "off"])
        // What makes sense is more than a schema can say: a message to a session that is not there is well formed.
        // What is over can be looked at, and deleting is ending here.
        .args(["--exclude-checks", "positive_data_acceptance,use_after_free", "--request-timeout", "30"])
        .args(selected)
        .env("SCHEMATHESIS_HOOKS", types)
        .current_dir(folder)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&run.stdout).into_owned();
    if run.status.success() && told.contains("Test cases:") {
        eprintln!("{}", told.lines().skip_while(|line| !line.contains("Test cases:")).collect::<String>());
        return Ok(());
    }
    Err(format!("{told}\n{}", String::from_utf8_lossy(&run.stderr)))
}

#[test]
fn requests_made_up_from_the_document_break_nothing_and_are_answered_as_it_tells() {
    let Some(program) = schemathesis().filter(|_| has_models()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let log = || std::fs::read_to_string(folder.path().join("log")).unwrap();
    // An event log stays open for as long as its call goes on, so those are asked for without calls that do.
    let rest = ["--exclude-path-regex", "^/v1/((calls|chats)/.id./events|media/.*)$"];
    let only = ["--include-path-regex", "^/v1/(calls|chats)/.id./events$", "--phases", "examples,coverage"];
    for selected in [&rest[..], &only[..]] {
        if let Err(told) = tried(&program, &server, folder.path(), selected) {
            panic!("{told}\n{}", log());
        }
    }
    let log = log();
    assert!(!log.contains("panicked") && !log.contains(TOKEN), "{log}");
}
