//! Sound that is lost on the way is sent again, for whoever offers to ask for it.

use std::time::Duration;

use crate::scene::Scene;

/// What a way that loses a twelfth of all packets costs in twelve seconds: sound that the caller had to make up, in ms; what
/// the server says it never got; and how often the server asked.
async fn cost(resends: bool) -> (u64, u32, usize) {
    let scene = Scene::begin(Duration::from_secs(45), resends).await;
    scene.hears().await;
    // Until both sides know how long the way is.
    tokio::time::sleep(Duration::from_secs(2)).await;
    scene.way.lose_one_in(12);
    tokio::time::sleep(Duration::from_secs(12)).await;
    let cost = {
        let received = &*scene.received.lock().unwrap();
        let lost = received.reports.peer().map_or(0, |view| view.lost);
        (received.inbound.counts().concealed / 48, lost, received.asked)
    };
    scene.way.lose_one_in(0);
    scene.hears().await;
    scene.end().await;
    cost
}

#[tokio::test(flavor = "multi_thread")]
async fn less_has_to_be_made_up_where_lost_sound_is_asked_for_again() {
    let (with, without) = tokio::join!(cost(true), cost(false));
    println!("made up {} ms with, {} ms without; lost {} and {}", with.0, without.0, with.1, without.1);
    assert!(with.2 > 0 && without.2 == 0, "{with:?} {without:?}");
    assert!(with.0 * 2 < without.0, "{with:?} {without:?}");
    assert!(with.1 * 2 < without.1, "{with:?} {without:?}");
}
