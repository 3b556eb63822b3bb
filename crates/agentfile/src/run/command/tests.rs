use serde_json::json;

use super::*;

fn shell(script: &str, limit: Duration) -> Command {
    let arguments = vec!["-c".to_owned(), script.to_owned()];
    Command { program: "sh".to_owned(), arguments, folder: PathBuf::from("."), limit }
}

async fn run(script: &str, limit: Duration) -> Result<ToolOutput, RunError> {
    let context = RunContext::keyed("h_01".to_owned());
    shell(script, limit).run(json!({"a": 1}), context).await
}

fn output(ok: bool, message: &str) -> Result<ToolOutput, RunError> {
    Ok(ToolOutput { ok, message: message.to_owned() })
}

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn the_input_and_the_key_go_in_and_the_answer_comes_out() {
    assert_eq!(run("cat", LONG).await, output(true, r#"{"a":1}"#));
    assert_eq!(run("printf $SAYBACK_IDEMPOTENCY_KEY", LONG).await, output(true, "h_01"));
    assert_eq!(run(r#"echo '{"ok": false, "message": "full"}'"#, LONG).await, output(false, "full"));
    assert_eq!(run("true", LONG).await, output(true, "Done."));
}

#[tokio::test]
async fn a_failing_program_is_a_failed_tool() {
    assert_eq!(run("echo broken >&2; exit 3", LONG).await, output(false, "broken"));
    assert_eq!(run(r#"echo '{"ok": true, "message": "m"}'; exit 1"#, LONG).await, output(false, "m"));
    let missing = Command { program: "./no-such-program".to_owned(), ..shell("", LONG) };
    let error = missing.run(json!({}), RunContext::default()).await.unwrap_err();
    let RunError::Failed(error) = error else { panic!("{error:?}") };
    assert!(error.contains("cannot be started") && error.contains("nothing was done"), "{error}");
}

#[tokio::test]
async fn vc_62_a_program_that_broke_off_may_have_done_its_work() {
    let endless = run("yes", LONG).await;
    assert!(matches!(&endless, Err(RunError::Unknown(why)) if why.contains("64 KiB")), "{endless:?}");
    let killed = run("echo half; kill -9 $$", LONG).await;
    assert!(matches!(&killed, Err(RunError::Unknown(why)) if why.contains("from outside")), "{killed:?}");
    let told = run(r#"echo '{"ok": false, "message": "full"}'; kill -9 $$"#, LONG).await;
    assert_eq!(told, output(false, "full"), "its answer was whole");
}

/// Both ends of a pipe that the whole group holds: its end shows that nobody is left.
#[tokio::test]
async fn a_time_out_kills_the_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alive");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let script = format!("exec 3<>'{}'; (exec >/dev/null 2>&1; sleep 600) & sleep 600", path.display());
    // Opening for writing only, without waiting, works as long as somebody has it open for reading.
    let somebody_lives = || {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
        std::fs::OpenOptions::new().write(true).custom_flags(flags).open(&path).is_ok()
    };
    let running = tokio::spawn(async move { run(&script, Duration::from_secs(2)).await });
    while !somebody_lives() {
        assert!(!running.is_finished(), "the program never began");
        tokio::task::yield_now().await;
    }
    let outcome = running.await.unwrap();
    assert!(matches!(&outcome, Err(RunError::Unknown(_))), "{outcome:?}");
    let mut looks = 0;
    while somebody_lives() && looks < 1_000_000 {
        looks += 1;
        tokio::task::yield_now().await;
    }
    assert!(!somebody_lives(), "something of the group is still alive");
}
