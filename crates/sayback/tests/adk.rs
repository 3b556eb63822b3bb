//! The ADK's wire: its transcripts through `sayback conform adk`, and its own package's types against a server.

#![cfg(feature = "serve")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

#[expect(dead_code, reason = "other tests ask for more")]
#[path = "support/server.rs"]
mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sayback_rig::{has_models, skip};
use serde_json::json;
use server::{PROGRAM, Server, bank, repository};

/// Transcripts of the real ADK, or how ours differs: ADK-01 ADK-02 ADK-04 ADK-05 ADK-06 ADK-07 ADK-08 ADK-09 ADK-10 ADK-11
/// ADK-12 ADK-13 ADK-15 ADK-16 ADK-18 ADK-19 ADK-21.
#[test]
fn the_transcripts_of_the_adk_are_ours() {
    let run = Command::new(PROGRAM)
        .args(["conform", "adk", "tests/conformance/adk.jsonl"])
        .current_dir(repository())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(
        told.trim_end().ends_with("16 passed, 0 failed"),
        "{told}{}",
        String::from_utf8_lossy(&run.stderr)
    );
    assert_eq!(run.status.code(), Some(0));
}

#[test]
fn a_transcript_that_is_none_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.jsonl");
    for (text, says) in [
        (
            "{\"case\":\"a\",\"adk\":\"2\",\"modelScript\":[],\"turns\":[],\"ours\":\"same\",\"more\":1}",
            "unknown field `more`",
        ),
        ("\n{", "broken.jsonl:2:"),
    ] {
        std::fs::write(&file, text).unwrap();
        let run = Command::new(PROGRAM).args(["conform", "adk"]).arg(&file).output().unwrap();
        let told = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.code() == Some(2) && told.contains(says), "{told}");
    }
    let different =
        "{\"case\":\"a\",\"adk\":\"2\",\"modelScript\":[],\"turns\":[],\"ours\":\"differs: somehow\"}";
    std::fs::write(&file, different).unwrap();
    let run = Command::new(PROGRAM).args(["conform", "adk"]).arg(&file).output().unwrap();
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.code() == Some(1) && told.contains("is not known here"), "{told}");
}

/// A Python that has the ADK's package; if there is none, that is said loudly, and fails in continuous integration.
fn python_with_adk() -> Option<PathBuf> {
    let own = std::env::var_os("SAYBACK_ADK_PYTHON").map(PathBuf::from);
    let cache =
        std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/sayback/adk/bin/python"));
    let has_it = |python: &PathBuf| {
        let mut asked = Command::new(python);
        asked.args(["-c", "import google.adk; assert google.adk.__version__ == '2.12.0'"]);
        asked.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let found = own.into_iter().chain(cache).chain([PathBuf::from("python3")]).find(has_it);
    let hint = "google-adk 2.12.0 is missing; get it with: scripts/setup --peers";
    if found.is_none() {
        skip(hint);
    }
    found
}

const TOKEN: &str = "a-token-of-the-test";

/// A server that answers as the bank of the demo: one script for the small transfer, one for the large.
fn serve(amount: u32) -> Server {
    let steps = [
        json!({ "call": { "tool": "transfer_money", "input": { "amount": amount, "to": "bob" } } }),
        json!({ "say": "done" }),
    ];
    let sha256 = sayback_server::access::hash(TOKEN);
    let token = format!("sha256 = \"{sha256}\"\nroles = [\"app\", \"approve\"]\n");
    Server::answering(&bank(), &steps, &format!("[[auth.token]]\nname = \"tests\"\n{token}"))
}

const GOLDEN_SMALL: &str = "\
== small (no confirm) ==
  [bank] function_call transfer_money args={'amount': 50, 'to': 'bob'}
  [bank] function_response transfer_money -> {'status': 'sent', 'amount': 50, 'to': 'bob'}
  [bank] text: done
";

const GOLDEN_LARGE: &str = "\
== large, APPROVED ==
  [bank] function_call transfer_money args={'amount': 5000, 'to': 'bob'}
  [bank] function_call adk_request_confirmation args={'originalFunctionCall': {'id': ID, 'args': {'amount': 5000, 'to': 'bob'}, 'name': 'transfer_money'}, 'toolConfirmation': {'hint': 'Please approve or reject the tool call transfer_money() by responding with a FunctionResponse with an expected ToolConfirmation payload.', 'confirmed': False}}
  [bank] function_response transfer_money -> {'error': 'This tool call requires confirmation, please approve or reject.'}
  -> human responds confirmed=True
  [bank] function_response transfer_money -> {'status': 'sent', 'amount': 5000, 'to': 'bob'}
  [bank] text: done
== large, REJECTED ==
  [bank] function_call transfer_money args={'amount': 5000, 'to': 'bob'}
  [bank] function_call adk_request_confirmation args={'originalFunctionCall': {'id': ID, 'args': {'amount': 5000, 'to': 'bob'}, 'name': 'transfer_money'}, 'toolConfirmation': {'hint': 'Please approve or reject the tool call transfer_money() by responding with a FunctionResponse with an expected ToolConfirmation payload.', 'confirmed': False}}
  [bank] function_response transfer_money -> {'error': 'This tool call requires confirmation, please approve or reject.'}
  -> human responds confirmed=False
  [bank] function_response transfer_money -> {'error': 'This tool call is rejected.'}
  [bank] text: done
";

/// What the ADK's own client saw, with the ids of calls left out.
fn flows(python: &Path, address: &str, kind: &str) -> String {
    let client = repository().join("crates/sayback/tests/support/adk_client.py");
    let ran = Command::new(python).arg(client).args([address, TOKEN, kind]).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{told}\n{}", String::from_utf8_lossy(&ran.stderr));
    let mut without = String::new();
    for line in told.lines() {
        match line.split_once("'id': '").and_then(|(before, rest)| Some((before, rest.split_once('\'')?.1))) {
            Some((before, rest)) => without.push_str(&format!("{before}'id': ID{rest}\n")),
            None => without.push_str(&format!("{line}\n")),
        }
    }
    without
}

#[test]
fn adk_25_the_demo_flows_through_the_adks_own_client_give_the_demos_transcript() {
    let Some(python) = python_with_adk().filter(|_| has_models()) else { return };
    for (amount, kind, golden) in [(50, "small", GOLDEN_SMALL), (5_000, "large", GOLDEN_LARGE)] {
        let server = serve(amount);
        let told = flows(&python, &server.page(""), kind);
        assert!(told == golden, "expected\n{golden}\nfound\n{told}");
    }
}
