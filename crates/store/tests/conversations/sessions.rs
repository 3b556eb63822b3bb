//! What every store of text sessions must do. `open` is another server each time.

use std::sync::Arc;

use sayback_runtime::journal::JournalError;
use sayback_runtime::sessions::{SessionKey, SessionStore};

/// A server's store.
pub(crate) type Kept = Arc<dyn SessionStore>;

fn key(id: &str) -> SessionKey {
    SessionKey { app: "desk".to_owned(), user: "u@example.com".to_owned(), id: id.to_owned() }
}

/// Everything.
pub(crate) async fn run(open: impl AsyncFn() -> Kept) {
    what_is_made_once_is_there_at_another_server(&open).await;
    whoever_claimed_it_last_may_write(&open).await;
    of_claims_at_the_same_time_one_is_the_last(&open).await;
    a_users_are_listed_latest_first_and_nobody_elses(&open).await;
    any_text_is_kept_and_no_name_is_taken_amiss(&open).await;
}

async fn what_is_made_once_is_there_at_another_server(open: &impl AsyncFn() -> Kept) {
    let (here, there) = (open().await, open().await);
    assert!(here.make(&key("made"), "text-1", "one").await.unwrap());
    assert!(!there.make(&key("made"), "text-2", "two").await.unwrap(), "the first stays");
    let found = there.look(&key("made")).await.unwrap().unwrap();
    assert_eq!((found.key, found.opened), (key("made"), 1));
    assert_eq!((found.conversation.as_str(), found.body.as_str()), ("text-1", "one"));
    assert!(found.changed_ms > 1_600_000_000_000, "{}", found.changed_ms);
    here.remove(&key("made")).await.unwrap();
    assert_eq!(there.look(&key("made")).await, Ok(None));
    assert_eq!(there.claim(&key("made")).await, Ok(None));
}

async fn whoever_claimed_it_last_may_write(open: &impl AsyncFn() -> Kept) {
    let (here, there) = (open().await, open().await);
    here.make(&key("claimed"), "text-1", "one").await.unwrap();
    here.save(&key("claimed"), 1, "two").await.unwrap();
    let claimed = there.claim(&key("claimed")).await.unwrap().unwrap();
    assert_eq!((claimed.opened, claimed.body.as_str()), (2, "two"));
    assert_eq!(here.save(&key("claimed"), 1, "late").await, Err(JournalError::OpenedElsewhere));
    there.save(&key("claimed"), 2, "three").await.unwrap();
    assert_eq!(here.look(&key("claimed")).await.unwrap().unwrap().body, "three");
    there.remove(&key("claimed")).await.unwrap();
    let gone = there.save(&key("claimed"), 2, "after").await;
    assert_eq!(gone, Err(JournalError::OpenedElsewhere), "what was removed stays removed");
}

async fn of_claims_at_the_same_time_one_is_the_last(open: &impl AsyncFn() -> Kept) {
    let (here, there) = (open().await, open().await);
    here.make(&key("raced for"), "text-1", "one").await.unwrap();
    let wanted = key("raced for");
    let (a, b, c, d) =
        tokio::join!(here.claim(&wanted), there.claim(&wanted), here.claim(&wanted), there.claim(&wanted));
    let mut claims = [a, b, c, d].map(|claimed| claimed.unwrap().unwrap().opened);
    claims.sort_unstable();
    assert_eq!(claims, [2, 3, 4, 5]);
}

async fn a_users_are_listed_latest_first_and_nobody_elses(open: &impl AsyncFn() -> Kept) {
    let at = open().await;
    let of = |user: &str, id: &str| SessionKey { user: user.to_owned(), ..key(id) };
    for (user, id) in [("anna", "a"), ("anna", "b"), ("bob", "c")] {
        at.make(&of(user, id), "text-1", "").await.unwrap();
    }
    let mut before = at.look(&of("anna", "b")).await.unwrap().unwrap().changed_ms;
    // The database counts milliseconds.
    while at.look(&of("anna", "a")).await.unwrap().unwrap().changed_ms <= before {
        at.save(&of("anna", "a"), 1, "later").await.unwrap();
        before = at.look(&of("anna", "b")).await.unwrap().unwrap().changed_ms;
    }
    let ids = async |user: &str, most| -> Vec<String> {
        at.of_user("desk", user, most).await.unwrap().into_iter().map(|one| one.key.id).collect()
    };
    assert_eq!(ids("anna", 10).await, ["a", "b"]);
    assert_eq!(ids("anna", 1).await, ["a"]);
    assert_eq!(ids("bob", 10).await, ["c"]);
    assert_eq!(at.of_user("another", "anna", 10).await, Ok(Vec::new()));
}

async fn any_text_is_kept_and_no_name_is_taken_amiss(open: &impl AsyncFn() -> Kept) {
    let at = open().await;
    let body = "ü \u{1f600} \\ ' \" -- ; \u{7}";
    at.make(&key("'; DROP TABLE session"), "text-1", body).await.unwrap();
    assert_eq!(at.look(&key("'; DROP TABLE session")).await.unwrap().unwrap().body, body);
    assert_eq!(at.look(&key("a\0b")).await, Ok(None));
    assert_eq!(at.of_user("a\0b", "u", 10).await, Ok(Vec::new()));
}
