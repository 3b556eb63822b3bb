//! What every store of a ledger must do. Each part works as an app of its own, so that one store serves all of them.

use std::sync::Arc;
use std::time::Duration;

use sayback_runtime::ledger::{
    Actor, Args, Bounds, Claim, Context, Entry, EntryId, Hasher, KEPT, Key, Kind, Lease, LedgerStore, Moment,
    Owner, Settled, Want, Wanted, Yes,
};

const NOW: Moment = Moment(1_800_000_000_000);

/// Everything.
pub(crate) async fn run(store: Arc<dyn LedgerStore>) {
    used_once(&*store).await;
    reservations_lapse(&*store).await;
    references_are_remembered(&*store).await;
    owners_are_apart(&*store).await;
    bounds_hold(&*store).await;
    the_newest_are_offered(&*store).await;
    old_entries_are_gone(&*store).await;
    entries_come_back_whole(&*store).await;
    of_many_one_gets_it(&store).await;
    forgotten(&*store).await;
}

fn owner(app: &str, session: &str) -> Owner {
    Owner { app: app.to_owned(), scope: Context::session(session).scope().unwrap() }
}

fn yes(json: &str, at: Moment) -> Yes {
    let digest = Hasher::Plain.digest(Args::Json(json)).ok();
    Yes { tool: "pay".to_owned(), digest, kind: Kind::Confirmation, by: Actor::User, at }
}

fn later(millis: u64) -> Moment {
    NOW.after(Duration::from_millis(millis))
}

async fn put(store: &dyn LedgerStore, owner: &Owner, yes: &Yes) -> EntryId {
    store.put(owner, yes, &Bounds::default()).await.unwrap()
}

async fn offers(store: &dyn LedgerStore, owner: &Owner, now: Moment) -> Vec<Entry> {
    store.offers(owner, &Wanted { tool: "pay", hash: None, now }).await.unwrap()
}

async fn claim(store: &dyn LedgerStore, app: &str, what: &Claim, want: Want, now: Moment) -> Option<Lease> {
    store.claim(app, what, want, now).await.unwrap()
}

/// Writes one entry that [`uses`] looks for.
pub(crate) async fn write(store: &dyn LedgerStore, app: &str) {
    put(store, &owner(app, "s"), &yes("{}", NOW)).await;
}

/// Whether the entry of [`write`] is there and can be used.
pub(crate) async fn uses(store: &dyn LedgerStore, app: &str) -> bool {
    let Some(entry) = offers(store, &owner(app, "s"), NOW).await.pop() else { return false };
    claim(store, app, &Claim::Entry(entry.id), Want::Use, NOW).await.is_some()
}

async fn used_once(store: &dyn LedgerStore) {
    let owner = owner("once", "s");
    let id = put(store, &owner, &yes("{}", NOW)).await;
    let what = Claim::Entry(id);
    assert_eq!(offers(store, &owner, NOW).await.len(), 1);
    assert!(claim(store, "another", &what, Want::Use, NOW).await.is_none(), "another app's");
    assert!(claim(store, "once", &what, Want::Use, NOW).await.is_some());
    assert!(claim(store, "once", &what, Want::Use, NOW).await.is_none());
    assert!(offers(store, &owner, NOW).await.is_empty());
    assert!(claim(store, "once", &Claim::Entry(EntryId(i64::MAX)), Want::Use, NOW).await.is_none());
}

async fn reservations_lapse(store: &dyn LedgerStore) {
    let owner = owner("lease", "s");
    let id = put(store, &owner, &yes("{}", NOW)).await;
    for what in [Claim::Entry(id), Claim::Reference("r".to_owned(), yes("{}", NOW))] {
        let hold = Want::Reserve { until: later(1_000) };
        let settle = |lease, settled| store.settle("lease", &what, lease, settled);
        let first = claim(store, "lease", &what, hold, NOW).await.unwrap();
        assert!(claim(store, "lease", &what, Want::Use, later(999)).await.is_none(), "it is held");
        assert!(settle(first, Settled::Released).await.unwrap());
        assert!(!settle(first, Settled::Used).await.unwrap(), "it has been given back");
        let lapsed = claim(store, "lease", &what, hold, NOW).await.unwrap();
        let hold = Want::Reserve { until: later(5_000) };
        let taken = claim(store, "lease", &what, hold, later(1_000)).await.unwrap();
        assert_ne!(lapsed, taken);
        assert!(!settle(lapsed, Settled::Used).await.unwrap(), "somebody else has it");
        assert!(!settle(lapsed, Settled::Released).await.unwrap());
        assert!(settle(taken, Settled::Used).await.unwrap());
        assert!(claim(store, "lease", &what, Want::Use, later(9_000)).await.is_none());
    }
    assert!(offers(store, &owner, later(9_000)).await.is_empty());
}

async fn references_are_remembered(store: &dyn LedgerStore) {
    let what = Claim::Reference("job-1".to_owned(), yes("{}", NOW));
    assert!(claim(store, "refs", &what, Want::Use, NOW).await.is_some());
    assert!(claim(store, "refs", &what, Want::Use, later(3_600_000)).await.is_none());
    store.forget(later(3_700_000)).await.unwrap();
    assert!(claim(store, "refs", &what, Want::Use, later(3_800_000)).await.is_none());
    assert!(claim(store, "refs2", &what, Want::Use, NOW).await.is_some(), "another app's of that name");
}

async fn owners_are_apart(store: &dyn LedgerStore) {
    put(store, &owner("apart", "s1"), &yes("{}", NOW)).await;
    let trace = Owner { app: "apart".to_owned(), scope: Context::trace("s1").scope().unwrap() };
    for other in [owner("apart", "s2"), owner("apart2", "s1"), trace] {
        assert!(offers(store, &other, NOW).await.is_empty(), "{other:?}");
    }
    let refund = Wanted { tool: "refund", hash: None, now: NOW };
    assert!(store.offers(&owner("apart", "s1"), &refund).await.unwrap().is_empty());
    assert_eq!(offers(store, &owner("apart", "s1"), NOW).await.len(), 1);
}

async fn bounds_hold(store: &dyn LedgerStore) {
    let bounds = Bounds { entries: 3, sessions: 2 };
    let put =
        async |session: &str, at| store.put(&owner("few", session), &yes("{}", at), &bounds).await.unwrap();
    for at in 0..4 {
        put("s1", later(at)).await;
    }
    let kept: Vec<Moment> = offers(store, &owner("few", "s1"), NOW).await.iter().map(|e| e.yes.at).collect();
    assert_eq!(kept, [later(3), later(2), later(1)], "the oldest goes first");
    put("s2", later(10)).await;
    put("s1", later(11)).await;
    put("s3", later(12)).await;
    assert!(offers(store, &owner("few", "s2"), NOW).await.is_empty(), "the idlest session goes");
    assert_eq!(offers(store, &owner("few", "s1"), NOW).await.len(), 3);
    assert_eq!(offers(store, &owner("few", "s3"), NOW).await.len(), 1);
    let used = offers(store, &owner("few", "s1"), NOW).await.pop().unwrap();
    assert!(claim(store, "few", &Claim::Entry(used.id), Want::Use, NOW).await.is_some());
    put("s1", later(13)).await;
    assert_eq!(offers(store, &owner("few", "s1"), NOW).await.len(), 3, "what is used takes no place");
}

async fn the_newest_are_offered(store: &dyn LedgerStore) {
    let owner = owner("many", "s");
    put(store, &owner, &yes(r#"{"old":1}"#, NOW)).await;
    for at in 1..=12 {
        put(store, &owner, &yes("{}", later(at))).await;
    }
    let offered: Vec<Moment> = offers(store, &owner, NOW).await.iter().map(|entry| entry.yes.at).collect();
    assert_eq!(offered, (3..=12).rev().map(later).collect::<Vec<_>>(), "ten, the newest first");
    let hash = Hasher::Plain.digest(Args::Json(r#"{"old":1}"#)).unwrap().hash;
    let wanted = Wanted { tool: "pay", hash: Some(&hash), now: NOW };
    let offered = store.offers(&owner, &wanted).await.unwrap();
    assert_eq!((offered.len(), offered[0].yes.at), (10, NOW), "those that fit before the newest");
}

async fn old_entries_are_gone(store: &dyn LedgerStore) {
    let owner = owner("old", "s");
    put(store, &owner, &yes("{}", NOW)).await;
    let hour = NOW.after(KEPT);
    assert_eq!(offers(store, &owner, hour).await.len(), 1);
    assert!(offers(store, &owner, Moment(hour.0 + 1)).await.is_empty());
    assert!(offers(store, &owner, NOW.before(Duration::from_secs(6))).await.is_empty(), "from the future");
}

async fn entries_come_back_whole(store: &dyn LedgerStore) {
    let owner = owner("whole é 田", "s/'\"%_");
    let keyed = Hasher::Keyed(Key::known(b"k")).digest(Args::Json("{}")).ok();
    let review = Yes { kind: Kind::HumanReview, by: Actor::Reviewer, digest: keyed, ..yes("{}", later(1)) };
    let bare = Yes { digest: None, ..yes("{}", later(2)) };
    let all = [yes(r#"{"to":{"iban":"x"},"a/b":[1,"é"]}"#, NOW), review, bare];
    for yes in &all {
        put(store, &owner, yes).await;
    }
    let back: Vec<Yes> = offers(store, &owner, NOW).await.into_iter().rev().map(|entry| entry.yes).collect();
    assert_eq!(back, all);
}

async fn of_many_one_gets_it(store: &Arc<dyn LedgerStore>) {
    let owner = owner("race", "s");
    for round in 0..20 {
        let id = put(&**store, &owner, &yes("{}", NOW)).await;
        let entry = Claim::Entry(id);
        let reference = Claim::Reference(format!("r{round}"), yes("{}", NOW));
        for what in [entry, reference] {
            let tries = (0..8).map(|_| {
                let (store, what) = (Arc::clone(store), what.clone());
                tokio::spawn(async move { claim(&*store, "race", &what, Want::Use, NOW).await.is_some() })
            });
            let mut got = 0;
            for one in tries.collect::<Vec<_>>() {
                got += u32::from(one.await.unwrap());
            }
            assert_eq!(got, 1, "{what:?}");
        }
    }
}

async fn forgotten(store: &dyn LedgerStore) {
    let owner = owner("gone", "s");
    put(store, &owner, &yes("{}", NOW)).await;
    put(store, &owner, &yes("{}", later(60_000))).await;
    assert!(store.forget(NOW.after(KEPT).after(Duration::from_millis(1))).await.unwrap() >= 1);
    assert_eq!(offers(store, &owner, later(60_000)).await.len(), 1, "what still counts is kept");
}
