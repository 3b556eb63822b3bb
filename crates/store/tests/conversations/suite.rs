//! What every store of conversations must do. `open` is another server each time; each part works on conversations of its
//! own, so that one store serves all of them.

use std::sync::Arc;
use std::time::Duration;

use sayback_core::{Reopened, ToolOutcome};
use sayback_runtime::conversations::{Conversations, Stored};
use sayback_runtime::journal::{Begun, ConfirmedRun, Journal, JournalError, Snapshot};

use crate::runs::{confirmed, snapshot};

/// A server's store.
pub(crate) type Kept = Arc<dyn Conversations>;

/// Everything.
pub(crate) async fn run(open: impl AsyncFn() -> Kept) {
    what_is_kept_is_there_at_another_server(&open).await;
    an_older_snapshot_never_takes_the_place_of_a_newer_one(&open).await;
    vc_65_a_hold_begins_once(&open).await;
    vc_76_a_second_attempt_begins_with_the_same_key(&open).await;
    vc_79_a_run_without_a_result_is_unknown_when_its_conversation_is_opened_again(&open).await;
    vc_62_a_late_result_is_written_and_the_first_one_stays(&open).await;
    whoever_opened_a_conversation_last_may_write_to_it(&open).await;
    of_openings_at_the_same_time_one_may_write(&open).await;
    the_latest_are_listed_first(&open).await;
    any_text_is_kept(&open).await;
}

fn done() -> ToolOutcome {
    ToolOutcome::Done { message: "Booked.".to_owned() }
}

async fn stored(at: &Kept, id: &str) -> Stored {
    at.stored(id).await.unwrap().unwrap()
}

/// The states of a conversation's runs.
async fn states(at: &Kept, id: &str) -> Vec<String> {
    stored(at, id).await.runs.into_iter().map(|run| run.state).collect()
}

async fn begin(journal: &Arc<dyn Journal>, run: &ConfirmedRun, now: &Snapshot) -> Begun {
    journal.begin(run, now).await.unwrap()
}

async fn what_is_kept_is_there_at_another_server(open: &impl AsyncFn() -> Kept) {
    let journal = open().await.begin("kept", "Desk");
    journal.keep(&snapshot(1, "one")).await.unwrap();
    journal.keep(&snapshot(2, "two")).await.unwrap();
    assert_eq!(begin(&journal, &confirmed(1, 1), &snapshot(3, "three")).await, Begun::Fresh);
    let other = open().await;
    assert_eq!(states(&other, "kept").await, ["started"], "looking changes nothing");
    journal.finish(&confirmed(1, 1), &done()).await.unwrap();
    let found = stored(&other, "kept").await;
    assert_eq!(found.agent, "Desk");
    let body: Reopened = serde_json::from_str(&found.body).unwrap();
    assert_eq!(body, snapshot(3, "three").conversation);
    let [run] = found.runs.as_slice() else { panic!("{:?}", found.runs) };
    assert_eq!((run.state.as_str(), run.message.as_str()), ("executed", "Booked."));
    assert_eq!((run.idempotency_key.as_str(), run.tool.as_str()), ("a/h_01", "book"));
    assert_eq!((run.hold, run.attempt, run.confirmed_by.as_str()), (1, 1, "yes"));
    assert_eq!(other.stored("nobody's").await, Ok(None));
    assert!(other.reopen("nobody's", "Desk").await.unwrap().is_none());
}

async fn an_older_snapshot_never_takes_the_place_of_a_newer_one(open: &impl AsyncFn() -> Kept) {
    let at = open().await;
    let journal = at.begin("newer", "Desk");
    journal.keep(&snapshot(2, "newer")).await.unwrap();
    journal.keep(&snapshot(1, "older")).await.unwrap();
    assert!(stored(&at, "newer").await.body.contains("newer"));
    journal.keep(&Snapshot::last(Reopened::default())).await.unwrap();
    assert!(!stored(&at, "newer").await.body.contains("newer"));
}

async fn vc_65_a_hold_begins_once(open: &impl AsyncFn() -> Kept) {
    let (one, other) = (open().await, open().await);
    let (here, there) = (one.begin("once", "Desk"), other.begin("once", "Desk"));
    assert_eq!(begin(&here, &confirmed(1, 1), &snapshot(1, "one")).await, Begun::Fresh);
    for journal in [&here, &there] {
        assert_eq!(begin(journal, &confirmed(1, 1), &snapshot(2, "two")).await, Begun::Already);
    }
    let body = stored(&other, "once").await.body;
    assert!(body.contains("one"), "nothing is written for a run that is not made: {body}");
    here.finish(&confirmed(1, 1), &done()).await.unwrap();
    assert_eq!(begin(&there, &confirmed(1, 1), &snapshot(3, "three")).await, Begun::Already);
    assert_eq!(begin(&there, &confirmed(2, 1), &snapshot(4, "four")).await, Begun::Fresh);
    // The same hold of another conversation is another one.
    let another = other.begin("once more", "Desk");
    assert_eq!(begin(&another, &confirmed(1, 1), &snapshot(1, "one")).await, Begun::Fresh);
}

async fn vc_76_a_second_attempt_begins_with_the_same_key(open: &impl AsyncFn() -> Kept) {
    let at = open().await;
    let journal = at.begin("again", "Desk");
    for attempt in [1, 2] {
        assert_eq!(begin(&journal, &confirmed(1, attempt), &snapshot(1, "one")).await, Begun::Fresh);
    }
    let runs = stored(&at, "again").await.runs;
    assert_eq!(runs.iter().map(|run| run.attempt).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(runs[0].idempotency_key, runs[1].idempotency_key);
}

async fn vc_79_a_run_without_a_result_is_unknown_when_its_conversation_is_opened_again(
    open: &impl AsyncFn() -> Kept,
) {
    let first = open().await.begin("unknown", "Desk");
    begin(&first, &confirmed(1, 1), &snapshot(1, "one")).await;
    begin(&first, &confirmed(2, 1), &snapshot(2, "two")).await;
    first.finish(&confirmed(2, 1), &done()).await.unwrap();
    let other = open().await;
    let (found, second) = other.reopen("unknown", "Desk").await.unwrap().unwrap();
    assert_eq!(found.runs.iter().map(|run| &*run.state).collect::<Vec<_>>(), ["outcome_unknown", "executed"]);
    assert_eq!(states(&other, "unknown").await, ["outcome_unknown", "executed"], "it is written");
    let again = begin(&second, &confirmed(1, 1), &snapshot(1, "three")).await;
    assert_eq!(again, Begun::Already, "never run again by itself");
    // Its handler answers after all, where it was started.
    first.finish(&confirmed(1, 1), &done()).await.unwrap();
    assert_eq!(states(&other, "unknown").await, ["executed", "executed"]);
}

async fn vc_62_a_late_result_is_written_and_the_first_one_stays(open: &impl AsyncFn() -> Kept) {
    let at = open().await;
    let journal = at.begin("late", "Desk");
    begin(&journal, &confirmed(1, 1), &snapshot(1, "one")).await;
    for (outcome, state) in [
        (ToolOutcome::Unknown, "outcome_unknown"),
        (done(), "executed"),
        (ToolOutcome::Failed { message: "No.".to_owned() }, "executed"),
    ] {
        journal.finish(&confirmed(1, 1), &outcome).await.unwrap();
        assert_eq!(states(&at, "late").await, [state]);
    }
}

async fn whoever_opened_a_conversation_last_may_write_to_it(open: &impl AsyncFn() -> Kept) {
    let at = open().await;
    let first = at.begin("fence", "Desk");
    first.keep(&snapshot(7, "first")).await.unwrap();
    let (_, second) = open().await.reopen("fence", "Desk").await.unwrap().unwrap();
    let elsewhere = Err(JournalError::OpenedElsewhere);
    assert_eq!(first.keep(&snapshot(8, "late")).await, elsewhere);
    assert_eq!(first.begin(&confirmed(1, 1), &snapshot(9, "late")).await, Err(JournalError::OpenedElsewhere));
    assert!(stored(&at, "fence").await.runs.is_empty(), "nothing of it was written");
    assert_eq!(begin(&second, &confirmed(1, 1), &snapshot(1, "second")).await, Begun::Fresh);
    assert!(stored(&at, "fence").await.body.contains("second"));
    let (_, third) = at.reopen("fence", "Desk").await.unwrap().unwrap();
    assert_eq!(second.keep(&snapshot(2, "late")).await, elsewhere);
    third.keep(&snapshot(1, "third")).await.unwrap();
}

/// Runs that begin while the conversation is opened elsewhere are either told to whoever opened it, or never begin.
async fn of_openings_at_the_same_time_one_may_write(open: &impl AsyncFn() -> Kept) {
    let at = open().await;
    let mut journal = at.begin("contested", "Desk");
    journal.keep(&snapshot(1, "one")).await.unwrap();
    for hold in 1..=40 {
        let (before, other) = (Arc::clone(&journal), Arc::clone(&at));
        let begins =
            tokio::spawn(async move { before.begin(&confirmed(hold, 1), &snapshot(2, "run")).await });
        let opens = tokio::spawn(async move { other.reopen("contested", "Desk").await });
        let begun = begins.await.unwrap();
        let (found, next) = opens.await.unwrap().unwrap().unwrap();
        let told = found.runs.iter().find(|run| run.hold == hold).map(|run| run.state.as_str());
        match begun {
            Ok(Begun::Fresh) => assert_eq!(told, Some("outcome_unknown"), "hold {hold}"),
            Err(JournalError::OpenedElsewhere) => assert_eq!(told, None, "hold {hold}"),
            other => panic!("hold {hold}: {other:?}"),
        }
        journal = next;
        journal.keep(&snapshot(1, "one")).await.unwrap();
    }
}

async fn the_latest_are_listed_first(open: &impl AsyncFn() -> Kept) {
    let at = open().await;
    // A file knows when to the second; of those that changed in the same one, the last by its letters comes first.
    for id in ["~listed 1", "~listed 2", "~listed 3"] {
        at.begin(id, "Desk").keep(&snapshot(1, "one")).await.unwrap();
    }
    let journal = at.begin("~listed 4", "Bank");
    for hold in 1..=3 {
        begin(&journal, &confirmed(hold, 1), &snapshot(u64::from(hold), "one")).await;
    }
    journal.finish(&confirmed(1, 1), &done()).await.unwrap();
    journal.finish(&confirmed(2, 1), &ToolOutcome::Unknown).await.unwrap();
    let listed = open().await.latest(3).await.unwrap();
    assert_eq!(
        listed.iter().map(|one| &*one.id).collect::<Vec<_>>(),
        ["~listed 4", "~listed 3", "~listed 2"]
    );
    assert_eq!((&*listed[0].agent, listed[0].runs, listed[0].unknown), ("Bank", 3, 2));
    assert_eq!((&*listed[1].agent, listed[1].runs, listed[1].unknown), ("Desk", 0, 0));
    assert!(at.latest(1_000).await.unwrap().len() > 8, "all the others too");
}

/// What a recogniser or a model says has no character that a store may stumble over: nothing is lost because of one.
async fn any_text_is_kept(open: &impl AsyncFn() -> Kept) {
    let at = open().await;
    let odd = "\u{0}\u{1}\u{2028}\u{fffe}'; DROP TABLE run; -- \\ \u{1f44e} \u{202e}";
    let journal = at.begin("odd", odd);
    let run = ConfirmedRun { confirmed_by: odd.to_owned(), call: odd.to_owned(), ..confirmed(1, 1) };
    assert_eq!(begin(&journal, &run, &snapshot(1, odd)).await, Begun::Fresh);
    journal.finish(&run, &ToolOutcome::Done { message: odd.to_owned() }).await.unwrap();
    let found = stored(&at, "odd").await;
    let body: Reopened = serde_json::from_str(&found.body).unwrap();
    assert_eq!(body, snapshot(1, odd).conversation, "to the letter");
    assert_eq!(found.runs[0].state, "executed");
    let kept = [&found.runs[0].message, &found.runs[0].confirmed_by];
    assert!(kept.iter().all(|text| text.ends_with(&odd[1..])), "but for a zero byte: {kept:?}");
    assert_eq!(at.stored(odd).await, Ok(None));
    assert!(at.reopen(odd, "Desk").await.unwrap().is_none());
}

/// Runs that had begun on a server that is dead have an unknown outcome; `one` and `two` say that they live, by `beat`.
pub(crate) async fn vc_79_what_a_dead_server_left_is_unknown_and_never_run_again(
    (one, two): (&Kept, &Kept),
    beat: impl AsyncFn(&str),
) {
    let (long, left) = (Duration::from_secs(3_600), one.begin("left", "Desk"));
    beat("one").await;
    beat("two").await;
    begin(&left, &confirmed(1, 1), &snapshot(1, "one")).await;
    begin(&left, &confirmed(2, 1), &snapshot(2, "two")).await;
    left.finish(&confirmed(2, 1), &done()).await.unwrap();
    begin(&two.begin("own", "Desk"), &confirmed(1, 1), &snapshot(1, "one")).await;
    assert_eq!(two.give_up(long).await, Ok(vec![]), "both live");
    let lost = two.give_up(Duration::ZERO).await.unwrap();
    assert_eq!(lost.len(), 1, "{lost:?}");
    let found = (&*lost[0].conversation, &*lost[0].tool, &*lost[0].idempotency_key);
    assert_eq!(found, ("left", "book", "a/h_01"));
    assert_eq!(states(two, "left").await, ["outcome_unknown", "executed"]);
    assert_eq!(states(two, "own").await, ["started"], "nobody takes itself for dead");
    assert_eq!(two.give_up(Duration::ZERO).await, Ok(vec![]), "it is told once");
    let (_, goes_on) = two.reopen("left", "Desk").await.unwrap().unwrap();
    assert_eq!(begin(&goes_on, &confirmed(1, 1), &snapshot(1, "three")).await, Begun::Already);
    // It was away and not dead, and its handler answers.
    left.finish(&confirmed(1, 1), &done()).await.unwrap();
    assert_eq!(states(two, "left").await, ["executed", "executed"]);
}
