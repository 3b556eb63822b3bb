//! Calls whose way breaks: over another one they go on, and what the break fell upon was not heard.

use std::time::{Duration, Instant};

use sayback_transports::webrtc::{NotPatched, Patched};

use crate::LIMIT;
use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_on_over_another_way_and_the_question_that_the_break_fell_upon_was_not_heard() {
    let mut scene = Scene::begin(Duration::from_secs(45), true).await;
    scene.hears().await;
    scene.say();
    scene.more_than(0, &["question.started"]).await;
    scene.way.break_off();
    // A yes that nobody hears.
    tokio::time::sleep(Duration::from_secs(2)).await;
    scene.say();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(scene.count(&["question.heard"]), 0);
    scene.restart().await;
    scene.hears().await;
    scene.more_than(0, &["question.dropped"]).await;
    let log = scene.log();
    let dropped = log.iter().find(|line| line["event"] == "question.dropped").unwrap();
    assert_eq!(dropped["reason"], "not_played", "{log:#?}");
    assert_eq!(scene.times_booked(), 0);
    scene.book().await;
    assert_eq!(scene.times_booked(), 1);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_that_both_sides_have_given_up_is_not_the_end_either() {
    let mut scene = Scene::begin(Duration::from_secs(90), true).await;
    scene.hears().await;
    scene.way.break_off();
    scene.far.breaks().await;
    // The server heard the last of it at the same time, and looks every few seconds.
    tokio::time::sleep(Duration::from_secs(6)).await;
    scene.restart().await;
    scene.hears().await;
    scene.book().await;
    assert_eq!(scene.times_booked(), 1);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_never_looks_for_another_way_is_given_up_when_the_patience_is_over() {
    let patience = Duration::from_secs(5);
    let scene = Scene::begin(patience, true).await;
    scene.hears().await;
    scene.way.break_off();
    let broken = Instant::now();
    tokio::time::timeout(LIMIT, scene.board.calls().none_live()).await.unwrap();
    // What was on its way still came.
    assert!(broken.elapsed() > patience - Duration::from_millis(500), "{:?}", broken.elapsed());
    let log = scene.log();
    let ended = log.iter().find(|line| line["event"] == "call.ended").unwrap();
    assert_eq!(ended["reason"], "lost", "{log:#?}");
    let asked = scene.far.restart().await;
    let until = Instant::now() + LIMIT;
    while !matches!(scene.server.patch(&scene.id, None, &asked).await, Err(NotPatched::Unknown(_))) {
        assert!(Instant::now() < until, "a call that is over is still known");
    }
    scene.far.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_names_under_the_name_of_an_old_session_are_refused() {
    let scene = Scene::begin(Duration::from_secs(45), true).await;
    scene.hears().await;
    let session = format!("{}.0", scene.id);
    let names = "a=ice-ufrag:other\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\n";
    let refused = scene.server.patch(&scene.id, Some(&session), names).await;
    assert_eq!(refused, Err(NotPatched::OtherSession));
    let candidate = "a=candidate:1 1 udp 1 127.0.0.1 9 typ host\r\n";
    assert_eq!(scene.server.patch(&scene.id, Some(&session), candidate).await, Ok(Patched::Taken));
    scene.hears().await;
    scene.end().await;
}
