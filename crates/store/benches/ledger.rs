//! Checks a second on PostgreSQL, beside a bare `SELECT 1` over as many connections in the same run. Every check finds an
//! entry and uses it up, which is on the disk before it is answered.
//!
//! ```text
//! cargo bench -p sayback-store --features postgres --bench ledger
//! ```

#![expect(clippy::unwrap_used, reason = "a bench of its own crate")]
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

#[path = "../tests/postgres_server/mod.rs"]
mod postgres_server;

use std::sync::Arc;

use postgres_server::{Server, installed};
use sayback_core::Time;
use sayback_runtime::clock::Clock;
use sayback_runtime::ledger::{Args, Call, Context, Ledger, LedgerOptions, Moment, Reason, Rule, Said};
use sayback_store::Postgres;

const NOW: Moment = Moment(1_800_000_000_000);
const PAY: Args<'static> = Args::Json(r#"{"to":"bob","amount":5000}"#);
/// Each connection's share.
const EACH: usize = 500;

fn main() {
    if !installed() {
        return;
    }
    let mut server = Server::start(&[]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    println!("{:>11} {:>12} {:>12} {:>12}", "connections", "SELECT 1 /s", "records /s", "checks /s");
    for connections in [1, 4, 16] {
        let (bare, records, checks) = runtime.block_on(measure(&server.url(), connections));
        println!("{connections:>11} {bare:>12.0} {records:>12.0} {checks:>12.0}");
    }
    server.kill();
}

async fn measure(url: &str, connections: usize) -> (f64, f64, f64) {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        clients.push(Arc::new(client));
    }
    let bare = rate(connections, |worker| {
        let client = Arc::clone(&clients[worker]);
        async move {
            let statement = client.prepare("SELECT 1").await.unwrap();
            for _ in 0..EACH {
                client.query_one(&statement, &[]).await.unwrap();
            }
        }
    })
    .await;
    let database = Postgres::open(url, None).await.unwrap();
    let options = LedgerOptions { app: format!("bench{connections}"), ..LedgerOptions::default() };
    let ledger = Ledger::on(Arc::new(database.ledger()), options).unwrap();
    let records = rate(connections, |worker| record(ledger.clone(), worker)).await;
    let checks = rate(connections, |worker| check(ledger.clone(), worker)).await;
    (bare, records, checks)
}

/// Twenty-five entries in each session: what an app that asks often has.
fn session(worker: usize, number: usize) -> Context {
    Context::session(format!("{worker}-{}", number / 25))
}

async fn record(ledger: Ledger, worker: usize) {
    for number in 0..EACH {
        ledger.record(&session(worker, number), &Said::by_user("pay", PAY), NOW).await.unwrap();
    }
}

async fn check(ledger: Ledger, worker: usize) {
    let rule = Rule::default();
    for number in 0..EACH {
        let call = Call::new("pay", PAY, session(worker, number));
        assert_eq!(ledger.check(Some(&rule), &call, NOW).await.unwrap().reason, Reason::Confirmed);
    }
}

/// How much is done a second by so many at the same time.
async fn rate<F: Future<Output = ()> + Send + 'static>(workers: usize, work: impl Fn(usize) -> F) -> f64 {
    let clock = Clock::start();
    let all: Vec<_> = (0..workers).map(|worker| tokio::spawn(work(worker))).collect();
    for one in all {
        one.await.unwrap();
    }
    let took: Time = clock.now();
    (workers * EACH) as f64 / (took.as_micros() as f64 / 1e6)
}
