//! Callers in a process of their own: how it is started, how they are sent out, and what they met with.

use std::net::SocketAddr;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::measure::{over, pin, usage};

/// Frames of 20 ms in what a caller says over and over: six seconds.
pub(crate) const CYCLE: usize = 300;

/// What one caller met with.
#[derive(Default)]
pub(crate) struct Met {
    pub(crate) refused: u64,
    pub(crate) frames: u64,
    pub(crate) late: u64,
    pub(crate) latest: Duration,
}

/// Calls that another process makes.
pub(crate) struct Calls {
    pub(crate) server: SocketAddr,
    pub(crate) calls: u64,
    /// Of each.
    pub(crate) length: Duration,
    /// No more than these at the same time.
    pub(crate) at_once: u64,
}

impl Calls {
    /// Those that this process was started for, if it was.
    pub(crate) fn of(arguments: &[String]) -> Option<Self> {
        let (word, rest) = arguments.split_first()?;
        let number = |at: usize| rest[at].parse().unwrap();
        (word == "callers").then(|| Self {
            server: rest[0].parse().unwrap(),
            calls: number(1),
            length: Duration::from_millis(number(2)),
            at_once: number(3),
        })
    }

    /// Starts the process that makes them, on the second core.
    pub(crate) fn start(&self) -> Child {
        let numbers = [self.calls, self.length.as_millis() as u64, self.at_once];
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["callers", &self.server.to_string()])
            .args(numbers.map(|number| number.to_string()))
            .spawn()
            .unwrap();
        pin(child.id(), "1");
        child
    }

    /// Makes them, so long apart, and prints what the callers met with.
    pub(crate) async fn make<F>(&self, apart: Duration, call: impl Fn(u64) -> F)
    where
        F: Future<Output = Met> + Send + 'static,
    {
        let places = Arc::new(Semaphore::new(usize::try_from(self.at_once).unwrap()));
        let mut all = tokio::task::JoinSet::new();
        for number in 0..self.calls {
            let place = Arc::clone(&places).acquire_owned().await.unwrap();
            let call = call(number);
            all.spawn(async move {
                let met = call.await;
                drop(place);
                met
            });
            tokio::time::sleep(apart).await;
        }
        let mut sum = Met::default();
        while let Some(met) = all.join_next().await {
            let met = met.unwrap();
            sum.refused += met.refused;
            sum.frames += met.frames;
            sum.late += met.late;
            sum.latest = sum.latest.max(met.latest);
        }
        println!("  callers: {} packets, {} later than 20 ms", sum.frames, sum.late);
        println!(
            "           the latest by {} ms; {} calls did not come about",
            sum.latest.as_millis(),
            sum.refused
        );
    }
}

/// Many short calls: what each leaves behind, by a line through the second half of the figures.
pub(crate) async fn growth(short: &Calls) {
    let (_, before) = usage();
    let done = tokio::spawn(over(short.start()));
    let mut points: Vec<(f64, f64)> = Vec::new();
    while !done.is_finished() {
        tokio::time::sleep(Duration::from_millis(500)).await;
        points.push((points.len() as f64, usage().1));
    }
    let (_, after) = usage();
    let calls = short.calls;
    let per_call = slope(&points[points.len() / 2..]) * points.len() as f64 / calls as f64 * 1_024.0;
    println!("{calls} short calls: {before:.1} MB before, {after:.1} MB after");
    println!("  growth in the second half {per_call:.3} KB a call");
}

/// Of the line that fits best.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count.max(1.0);
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let above: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let below: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    if below > 0.0 { above / below } else { 0.0 }
}
