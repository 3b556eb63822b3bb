//! Conversations of several servers on one database.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use sayback_runtime::approvals::ApprovalStore;
use sayback_runtime::conversations::Conversations;
use sayback_runtime::journal::{Begun, JournalError};
use sayback_store::Postgres;
use tokio::sync::Barrier;

use crate::postgres_server::{Server, installed};
use crate::runs::{confirmed, snapshot};
use crate::sessions;
use crate::suite::{self, Kept};

/// Set in a racing process alone: the database that it races on.
const URL: &str = "SAYBACK_RACE_DATABASE";
/// Holds that are raced for.
const HOLDS: u32 = 500;
/// Connections of each process.
const CONNECTIONS: u32 = 4;

async fn open(server: &Server) -> Postgres {
    Postgres::open(&server.url(), None).await.unwrap()
}

/// VC-62, VC-65, VC-76, VC-79.
#[tokio::test(flavor = "multi_thread")]
async fn conversations_in_postgresql_keep_the_suite() {
    if !installed() {
        return;
    }
    let server = Server::start(&["fsync=off"]);
    suite::run(async || Arc::new(open(&server).await) as Kept).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_in_postgresql_keep_the_suite() {
    if !installed() {
        return;
    }
    let server = Server::start(&["fsync=off"]);
    sessions::run(async || Arc::new(open(&server).await) as sessions::Kept).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vc_79_what_a_dead_server_left_in_postgresql_is_unknown() {
    if !installed() {
        return;
    }
    let server = Server::start(&["fsync=off"]);
    let (one, two) = (open(&server).await, open(&server).await);
    let kept: (Kept, Kept) = (Arc::new(one.clone()), Arc::new(two.clone()));
    let beat = async |which: &str| if which == "one" { &one } else { &two }.beat().await.unwrap();
    suite::vc_79_what_a_dead_server_left_is_unknown_and_never_run_again((&kept.0, &kept.1), beat).await;
}

/// 4,000 tries: 500 holds, each gone for by 8 connections of 2 processes.
#[test]
fn vc_65_of_eight_connections_of_two_processes_one_runs_each_hold() {
    if let Ok(url) = std::env::var(URL) {
        return tokio::runtime::Runtime::new().unwrap().block_on(race(&url));
    }
    if !installed() {
        return;
    }
    let server = Server::start(&["fsync=off"]);
    let racer = || {
        let mut racer = Command::new(std::env::current_exe().unwrap());
        let test = "postgres::vc_65_of_eight_connections_of_two_processes_one_runs_each_hold";
        racer.args(["--exact", test, "--nocapture"]).env(URL, server.url());
        racer.stdout(Stdio::piped()).spawn().unwrap()
    };
    let (mut won, mut shares): (Vec<u32>, Vec<usize>) = (Vec::new(), Vec::new());
    for mut child in [racer(), racer()] {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let before = won.len();
        won.extend(
            lines.filter_map(|line| line.rsplit_once("won ").and_then(|(_, hold)| hold.parse::<u32>().ok())),
        );
        shares.push(won.len() - before);
        assert!(child.wait().unwrap().success());
    }
    println!("{} tries by 2 processes over {CONNECTIONS} connections each; runs: {shares:?}", HOLDS * 8);
    won.sort_unstable();
    assert_eq!(won, (1..=HOLDS).collect::<Vec<u32>>(), "each hold is run by one, and by one only");
}

/// What the racing processes do.
async fn race(url: &str) {
    let start = Arc::new(Barrier::new(CONNECTIONS as usize));
    let mut racers = Vec::new();
    for _ in 0..CONNECTIONS {
        let journal = Postgres::open(url, None).await.unwrap().begin("raced for", "Desk");
        let start = Arc::clone(&start);
        racers.push(tokio::spawn(async move {
            for hold in 1..=HOLDS {
                // All of this process go for the same one at the same time.
                start.wait().await;
                if journal.begin(&confirmed(hold, 1), &snapshot(u64::from(hold), "")).await.unwrap()
                    == Begun::Fresh
                {
                    let mut told = std::io::stdout();
                    writeln!(told, "won {hold}").unwrap();
                }
            }
        }));
    }
    for racer in racers {
        racer.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_is_away_nothing_begins_and_afterwards_everything_written_is_there() {
    if !installed() {
        return;
    }
    let mut server = Server::start(&[]);
    let at = open(&server).await;
    let journal = at.begin("away", "Desk");
    assert_eq!(journal.begin(&confirmed(1, 1), &snapshot(1, "one")).await, Ok(Begun::Fresh));
    server.kill();
    let refused = journal.begin(&confirmed(2, 1), &snapshot(2, "two")).await.unwrap_err();
    assert!(matches!(&refused, JournalError::Failed(why) if why.contains("cannot be reached")), "{refused}");
    assert!(journal.keep(&snapshot(3, "three")).await.is_err());
    server.run();
    let found = at.stored("away").await.unwrap().unwrap();
    assert_eq!(found.runs.len(), 1, "{found:?}");
    assert!(found.body.contains("one"), "{found:?}");
    assert_eq!(journal.begin(&confirmed(2, 1), &snapshot(2, "two")).await, Ok(Begun::Fresh));
}
