//! The ledger of several servers on one database.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use sayback_runtime::approvals::{
    ApprovalError, ApprovalQueue, ApprovalRequest, ApprovalState, Asker, Decision,
};
use sayback_runtime::ledger::{
    Args, Call, Context, Ledger, LedgerError, LedgerFault, LedgerOptions, Moment, Reason, Rule, Said,
};
use sayback_store::{Postgres, PostgresError};
use tokio::sync::Barrier;

use crate::postgres_server::{Server, installed};
use crate::suite;

/// Set in a racing process alone: the database that it races on.
const URL: &str = "SAYBACK_RACE_DATABASE";
const YESES: &str = "SAYBACK_RACE_YESES";
const NOW: Moment = Moment(1_800_000_000_000);
const PAY: Args<'static> = Args::Json(r#"{"amount":5000}"#);
/// Connections of each process.
const CONNECTIONS: u32 = 4;

async fn ledger(url: &str) -> Ledger {
    let database = Postgres::open(url, None).await.unwrap();
    Ledger::on(Arc::new(database.ledger()), LedgerOptions::default()).unwrap()
}

async fn record(ledger: &Ledger, session: &str) -> Result<(), LedgerError> {
    ledger.record(&Context::session(session), &Said::by_user("pay", PAY), NOW).await.map(drop)
}

async fn reason(ledger: &Ledger, session: &str) -> Result<Reason, LedgerError> {
    let call = Call::new("pay", PAY, Context::session(session));
    ledger.check(Some(&Rule::default()), &call, NOW).await.map(|checked| checked.reason)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_in_postgresql_keeps_the_suite() {
    if !installed() {
        return;
    }
    let server = Server::start(&["fsync=off"]);
    let database = Postgres::open(&server.url(), None).await.unwrap();
    suite::run(Arc::new(database.ledger())).await;
    // Another server that starts finds its tables there.
    let again = Postgres::open(&server.url(), None).await.unwrap();
    suite::write(&again.ledger(), "shared").await;
    assert!(suite::uses(&database.ledger(), "shared").await, "a yes at one server counts at another");
    assert!(!suite::uses(&again.ledger(), "shared").await, "once");
}

/// 10,000 tries: 1,250 yeses, each gone for over 8 connections of 2 processes. More with `SAYBACK_RACE_YESES`.
#[test]
fn led_08_vc_65_of_eight_connections_of_two_processes_one_uses_each_yes() {
    if !installed() {
        return;
    }
    let yeses: u32 = std::env::var(YESES).ok().and_then(|yeses| yeses.parse().ok()).unwrap_or(1_250);
    if let Ok(url) = std::env::var(URL) {
        return tokio::runtime::Runtime::new().unwrap().block_on(race(&url, yeses));
    }
    let server = Server::start(&["fsync=off"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let ledger = ledger(&server.url()).await;
        // As many sessions as there are yeses, more than an app keeps.
        for yes in 0..yeses {
            record(&ledger.of_app(&format!("app{}", yes / 1_000)), &format!("s{yes}")).await.unwrap();
        }
    });
    let racer = || {
        let mut racer = Command::new(std::env::current_exe().unwrap());
        let test = "postgres::led_08_vc_65_of_eight_connections_of_two_processes_one_uses_each_yes";
        racer.args(["--exact", test, "--nocapture"]);
        racer.env(URL, server.url()).env(YESES, yeses.to_string());
        racer.stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut won = Vec::new();
    let mut shares = Vec::new();
    for mut child in [racer(), racer()] {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let used =
            lines.filter_map(|line| line.rsplit_once("used ").and_then(|(_, yes)| yes.parse::<u32>().ok()));
        let before = won.len();
        won.extend(used);
        shares.push(won.len() - before);
        assert!(child.wait().unwrap().success());
    }
    println!("{} tries by 2 processes over {} connections each; used: {shares:?}", yeses * 8, CONNECTIONS);
    won.sort_unstable();
    assert_eq!(won, (0..yeses).collect::<Vec<_>>(), "each yes is used once, and none is lost");
}

/// What the racing processes do.
async fn race(url: &str, yeses: u32) {
    let start = Arc::new(Barrier::new(CONNECTIONS as usize));
    let mut racers = Vec::new();
    for _ in 0..CONNECTIONS {
        let (start, ledger) = (Arc::clone(&start), ledger(url).await);
        racers.push(tokio::spawn(async move {
            for yes in 0..yeses {
                // All of this process go for the same one at the same time.
                start.wait().await;
                let app = ledger.of_app(&format!("app{}", yes / 1_000));
                if reason(&app, &format!("s{yes}")).await.unwrap() == Reason::Confirmed {
                    let mut told = std::io::stdout();
                    writeln!(told, "used {yes}").unwrap();
                }
            }
        }));
    }
    for racer in racers {
        racer.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_crashes_and_comes_back_has_lost_nothing_that_was_written() {
    if !installed() {
        return;
    }
    let mut server = Server::start(&[]);
    let ledger = ledger(&server.url()).await;
    let mut written = 0;
    for round in 0..3 {
        let (tell, over) = tokio::sync::oneshot::channel::<u32>();
        let writer = {
            let ledger = ledger.clone();
            tokio::spawn(async move {
                let mut tell = Some(tell);
                for number in 0.. {
                    match record(&ledger, &format!("r{round}-{number}")).await {
                        Ok(()) if number == 20 => drop(tell.take().map(|tell| tell.send(number))),
                        Ok(()) => {}
                        Err(error) => return (number, error),
                    }
                }
                unreachable!("it is ended")
            })
        };
        // It goes down in the middle of writes.
        over.await.unwrap();
        server.kill();
        let (acknowledged, error) = writer.await.unwrap();
        let unreachable =
            |error: &LedgerError| matches!(error, LedgerError::Store(LedgerFault::Unreachable(_)));
        assert!(unreachable(&error), "{error}");
        let meanwhile = reason(&ledger, "r0-0").await.unwrap_err();
        assert!(unreachable(&meanwhile) && meanwhile.to_string().contains("try again"), "{meanwhile}");
        server.run();
        for number in 0..acknowledged {
            let found = reason(&ledger, &format!("r{round}-{number}")).await;
            assert_eq!(found, Ok(Reason::Confirmed), "r{round}-{number} of {acknowledged}");
        }
        written += acknowledged;
    }
    println!("{written} confirmations over 3 crashes, none lost");
    server.kill();
    server.run();
    assert_eq!(
        reason(&ledger, "r0-0").await,
        Ok(Reason::NoConfirmation),
        "used is used, after a crash as well"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_an_address_is_said_without_its_password() {
    for (url, says) in [
        ("mysql://x", "no address"),
        ("", "no address"),
        ("postgres://u:secret@db.example/x", "sslmode=require"),
        ("postgres://u:secret@db.example/x?sslmode=prefer", "sslmode=require"),
        ("postgres://u:secret@127.0.0.1:1/x", "cannot be reached"),
        ("postgres://u:secret@%2Fnowhere/x", "cannot be reached"),
    ] {
        let error = Postgres::open(url, None).await.unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains("secret"), "{url}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, "nothing").unwrap();
    let url = "postgres://u:secret@db.example/x?sslmode=require";
    let error = Postgres::open(url, Some(&ca)).await.unwrap_err();
    assert!(matches!(error, PostgresError::Authorities { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_a_newer_version_are_left_alone() {
    if !installed() {
        return;
    }
    let server = Server::start(&["fsync=off"]);
    drop(Postgres::open(&server.url(), None).await.unwrap());
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute("UPDATE sayback_format SET format = 999").await.unwrap();
    let error = Postgres::open(&server.url(), None).await.unwrap_err();
    assert!(matches!(error, PostgresError::Newer { found: 999, .. }), "{error}");
    drop(client);
    connection.await.unwrap().unwrap();
}

fn asked(id: &str) -> ApprovalRequest {
    ApprovalRequest {
        id: id.to_owned(),
        asker: Asker::Call("c".to_owned()),
        agent: "desk".to_owned(),
        tool: "pay".to_owned(),
        input: serde_json::json!({ "amount": 5000, "note": "é" }),
        hint: "May it?".to_owned(),
        payload: None,
        asked_ms: NOW.0,
        expires_ms: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_asked_for_at_one_server_is_answered_once_at_another() {
    if !installed() {
        return;
    }
    let server = Server::start(&["fsync=off"]);
    let open = async || ApprovalQueue::new(Arc::new(Postgres::open(&server.url(), None).await.unwrap()));
    let (one, other) = (open().await, open().await);
    one.request(&asked("a")).await.unwrap();
    let twice = other.request(&asked("a")).await.unwrap_err();
    assert!(matches!(twice, ApprovalError::Exists { .. }), "{twice}");
    let listed = other.open().await.unwrap();
    assert_eq!((listed.len(), &listed[0].request), (1, &asked("a")));
    let waiting = {
        let one = one.clone();
        tokio::spawn(async move { one.wait("a", Some(std::time::Duration::from_secs(30))).await })
    };
    let answers = [&one, &other, &one, &other].map(|queue| {
        let (queue, decision) = (queue.clone(), Decision { confirmed: true, ..Decision::default() });
        tokio::spawn(async move { queue.answer("a", decision).await })
    });
    let mut counted = 0;
    for answer in answers {
        match answer.await.unwrap() {
            Ok(_) => counted += 1,
            Err(error) => assert!(matches!(error, ApprovalError::Answered { .. }), "{error}"),
        }
    }
    assert_eq!(counted, 1, "the first answer counts, and no other");
    assert!(matches!(waiting.await.unwrap().unwrap().state, ApprovalState::Answered { .. }));
    assert!(other.open().await.unwrap().is_empty());
    let unknown = other.answer("b", Decision::default()).await.unwrap_err();
    assert!(matches!(unknown, ApprovalError::Unknown { .. }), "{unknown}");
}
