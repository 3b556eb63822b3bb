//! Calls from the console: its page, its button, and a recorded caller as the microphone, with everything real but the
//! model. `tests/browser/call.mjs` steers Chromium. What was called is then saved as scenarios, which pass.
//!
//! `SAYBACK_PICTURES` names a folder for pictures of each state.

#![cfg(feature = "webrtc")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

#[expect(dead_code, reason = "other tests ask for more")]
#[path = "support/server.rs"]
mod server;

use std::ffi::OsStr;
use std::process::Command;

use sayback_rig::{Browser, has_models, pictures};
use server::{PROGRAM, Server, clinic, repository};

#[test]
fn the_page_books_by_voice_behind_the_question_and_not_over_it_and_both_become_scenarios() {
    let Some(browser) = Browser::new().filter(|_| has_models()) else { return };
    let server = Server::of(|folder| {
        let config = clinic(folder);
        let agent = folder.join("agent.toml");
        let text = std::fs::read_to_string(&agent).unwrap();
        let recorded = text.replacen("record = false", "record = true", 1);
        assert_ne!(recorded, text);
        std::fs::write(&agent, recorded).unwrap();
        format!("{config}[webrtc]\n[record]\nfolder = \"recordings\"\n")
    });
    let saved = server.folder().join("saved");
    std::fs::create_dir(&saved).unwrap();
    let clips = repository().join("tests/audio");
    let pictures = pictures(server.folder());
    let address = server.page("");
    let arguments = [OsStr::new(&address), clips.as_os_str(), pictures.as_os_str(), saved.as_os_str()];
    print!("{}", browser.walk("call.mjs", &arguments));
    for (name, runs) in [("light", 1), ("dark", 0), ("phone", 1)] {
        let file = saved.join(format!("{name}.call.toml"));
        let told = std::fs::read_to_string(&file).unwrap();
        let expected = "[[expect]]\nevent = \"tool.finished\"";
        assert_eq!(told.matches(expected).count(), runs, "{told}");
        // From wherever it was saved to.
        let replayed = Command::new(PROGRAM).arg("replay").arg(&file).current_dir(&saved).output().unwrap();
        let said = String::from_utf8_lossy(&replayed.stdout);
        let error = String::from_utf8_lossy(&replayed.stderr);
        assert!(said.ends_with("1 passed, 0 failed\n"), "{said}{error}\n{told}");
    }
}
