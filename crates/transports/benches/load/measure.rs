//! What benches with many calls share: a core of one's own, what a process costs, and how long callers wait.

use std::collections::BTreeMap;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sayback_media::{Earshot, Silero, SileroModel};
use sayback_runtime::switchboard::{NewVad, Switchboard};

/// One thread.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// To one core, where the machine has the program for it.
pub(crate) fn pin(process: u32, core: &str) {
    let _ = Command::new("taskset").args(["-a", "-c", "-p", core, &process.to_string()]).output();
}

/// The voice activity model, and its name.
pub(crate) fn vad() -> (NewVad, &'static str) {
    let file = std::env::var_os("SAYBACK_MODELS")
        .map(|folder| std::path::PathBuf::from(folder).join("silero_vad.onnx"))
        .filter(|file| file.is_file());
    match file {
        Some(file) => {
            let model = SileroModel::load(&file, 1).unwrap();
            (Arc::new(move || Box::new(Silero::new(&model)) as _), "Silero")
        }
        None => (Arc::new(|| Box::new(Earshot::default()) as _), "the light model"),
    }
}

/// CPU seconds of this process so far, and its resident memory in MB.
pub(crate) fn usage() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    let kb: f64 = resident.split_whitespace().nth(1).unwrap().parse().unwrap();
    (ticks as f64 / 100.0, kb / 1_024.0)
}

/// What so many calls that are on cost in so many seconds; `empty` is the memory before them, in MB.
pub(crate) async fn cost(calls: u64, seconds: u64, empty: f64) {
    let (before, _) = usage();
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let (after, full) = usage();
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    println!("  CPU per session-minute  {:.3} s", (after - before) / minutes / calls as f64);
    println!("  of one core             {:.0} %", (after - before) / minutes / 60.0 * 100.0);
    println!("  memory per call         {:.2} MB (base {empty:.1} MB)", (full - empty) / calls as f64);
}

/// Waits for its end.
pub(crate) async fn over(mut child: Child) {
    tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap();
}

/// From the sentence's being handed to the voice to its first sample on the line, by the calls' own logs.
pub(crate) struct Waits(Arc<Mutex<Vec<f64>>>);

impl Waits {
    /// Of all calls from now on.
    pub(crate) fn of(board: &Switchboard) -> Self {
        let (all, mut news) = (Arc::new(Mutex::new(Vec::new())), board.calls().news());
        let found = Arc::clone(&all);
        tokio::spawn(async move {
            let mut said: BTreeMap<(String, u64), f64> = BTreeMap::new();
            // What is missed is not measured.
            loop {
                let news = match news.recv().await {
                    Ok(news) => news,
                    Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
                };
                let line = news.fields();
                let at = line["t_ms"].as_f64().unwrap_or_default();
                let key = (news.call.to_string(), line["utterance"].as_u64().unwrap_or_default());
                match line["event"].as_str() {
                    Some("agent.said") => {
                        said.insert(key, at);
                    }
                    Some("agent.started") => {
                        if let Some(from) = said.remove(&key) {
                            found.lock().unwrap().push(at - from);
                        }
                    }
                    _ => {}
                }
            }
        });
        Self(all)
    }

    /// Median, 95th percentile and count.
    pub(crate) fn print(&self) {
        let mut all = self.0.lock().unwrap().clone();
        all.sort_by(f64::total_cmp);
        let at = |percent: usize| all.get(all.len() * percent / 100).copied().unwrap_or(f64::NAN);
        let (median, p95, count) = (at(50), at(95), all.len());
        println!("  first audio behind the sentence, median {median:.1} ms, p95 {p95:.1} ms ({count} times)");
    }
}
