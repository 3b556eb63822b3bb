//! Recordings in a place for objects: moved there once their call is over, and listed and played from there.
//!
//! ```text
//! FOLDER/ID/*  ─▶ calls/ID/* ─▶ index/ID.json ─▶ the folder is cleared
//! ```
//! The entry in the index comes last, so what is listed is whole; the folder is cleared after it, so nothing is lost by a
//! place that is away, or by a process that ends in the middle: the next one begins anew with what is still there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use sayback_runtime::record::{EVENTS, EVIDENCE, JOURNAL, PAGE, SHEET, SOUND};
use sayback_server::Gauge;
use sayback_server::recordings::{Archive, Pieces, RecordingView, view_of};
use sayback_store::{Objects, ObjectsError};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

use crate::exit::Stop;

/// A recording's files. The sheet is the first to go from the folder: without it the rest is none.
const FILES: [&str; 6] = [SHEET, JOURNAL, EVENTS, EVIDENCE, SOUND, PAGE];
/// Largest entry of the index.
const LARGEST: u64 = 1 << 20;
/// Entries that are read at the same time.
const AT_ONCE: usize = 8;
/// How long it waits before it tries a place again that was away: doubled each time.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Recordings in a place for objects.
#[derive(Debug)]
pub(crate) struct ObjectArchive {
    objects: Objects,
    /// Entries of the index that were read: an entry does not change.
    views: Mutex<BTreeMap<String, RecordingView>>,
}

impl ObjectArchive {
    pub(crate) fn new(objects: Objects) -> Self {
        Self { objects, views: Mutex::default() }
    }

    fn views(&self) -> MutexGuard<'_, BTreeMap<String, RecordingView>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(id: &str, file: &str) -> String {
    format!("calls/{id}/{file}")
}

fn entry(id: &str) -> String {
    format!("index/{id}.json")
}

fn said(error: ObjectsError) -> String {
    error.to_string()
}

#[async_trait::async_trait]
impl Archive for ObjectArchive {
    async fn newest(&self, most: usize) -> Result<(Vec<RecordingView>, usize), String> {
        let mut listed = self.objects.list("index").await.map_err(said)?;
        listed.sort_by(|a, b| b.put_ms.cmp(&a.put_ms).then_with(|| b.key.cmp(&a.key)));
        let older = listed.len().saturating_sub(most);
        let ids = listed
            .iter()
            .take(most)
            .filter_map(|one| one.key.strip_prefix("index/")?.strip_suffix(".json").map(str::to_owned));
        let ids: BTreeSet<String> = ids.collect();
        self.views().retain(|id, _| ids.contains(id));
        let views = futures::stream::iter(ids).map(|id| async move { self.view(&id).await });
        let views: Vec<Option<RecordingView>> = views.buffered(AT_ONCE).try_collect().await?;
        Ok((views.into_iter().flatten().collect(), older))
    }

    async fn view(&self, id: &str) -> Result<Option<RecordingView>, String> {
        if let Some(view) = self.views().get(id) {
            return Ok(Some(view.clone()));
        }
        let Some(bytes) = self.objects.get(&entry(id), LARGEST).await.map_err(said)? else { return Ok(None) };
        // One that somebody else wrote there is none of ours.
        let Ok(view) = serde_json::from_slice::<RecordingView>(&bytes) else { return Ok(None) };
        self.views().insert(id.to_owned(), view.clone());
        Ok(Some(view))
    }

    async fn size(&self, id: &str, file: &str) -> Result<Option<u64>, String> {
        self.objects.size(&key(id, file)).await.map_err(said)
    }

    async fn read(&self, id: &str, file: &str, part: Range<u64>) -> Result<Pieces, String> {
        self.objects.read(&key(id, file), Some(part)).await.map_err(said)
    }

    async fn fetch(&self, id: &str, into: &Path) -> Result<bool, String> {
        if self.size(id, SHEET).await?.is_none() {
            return Ok(false);
        }
        for name in FILES {
            if self.size(id, name).await?.is_none() {
                continue;
            }
            let mut bytes = self.objects.read(&key(id, name), None).await.map_err(said)?;
            let failed = |error: std::io::Error| format!("{name}: {error}");
            let mut file = tokio::fs::File::create(into.join(name)).await.map_err(failed)?;
            while let Some(piece) = bytes.next().await {
                file.write_all(&piece.map_err(failed)?).await.map_err(failed)?;
            }
            file.flush().await.map_err(failed)?;
        }
        Ok(true)
    }
}

/// Calls that are being recorded by this process: theirs are not moved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    live: Arc<Mutex<BTreeSet<String>>>,
    over: Arc<Notify>,
}

impl Recorded {
    fn live(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A recording begins. To be said before there is anything of it in the folder.
    pub(crate) fn began(&self, id: &str) {
        self.live().insert(id.to_owned());
    }

    /// It is finished.
    pub(crate) fn ended(&self, id: &str) {
        self.live().remove(id);
        self.over.notify_one();
    }
}

/// Moves recordings that are over.
#[derive(Debug)]
pub(crate) struct Moves {
    folder: PathBuf,
    objects: Objects,
    recorded: Recorded,
    moved: AtomicU64,
    waiting: AtomicUsize,
    /// Held for as long as this lives: the folder is one process's.
    _lock: std::fs::File,
}

impl Moves {
    /// Takes the folder for this process.
    pub(crate) fn of(folder: &Path, objects: Objects, recorded: Recorded) -> Result<Arc<Self>, Stop> {
        let unusable = |error| Stop::unusable(format!("[record] {}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(unusable)?;
        let lock = std::fs::File::create(folder.join(".lock")).map_err(unusable)?;
        if lock.try_lock().is_err() {
            return Err(Stop::unusable(format!(
                "[record] {}: another server records into this folder and moves its recordings away\n  \
                 hint: name a folder of its own for each server",
                folder.display()
            )));
        }
        let (moved, waiting, folder) = (AtomicU64::new(0), AtomicUsize::new(0), folder.to_owned());
        Ok(Arc::new(Self { folder, objects, recorded, moved, waiting, _lock: lock }))
    }

    /// Moves what is there and what comes, for as long as the server runs.
    pub(crate) async fn keep_moving(self: Arc<Self>) {
        let mut wait = FIRST_WAIT;
        loop {
            let over = self.recorded.over.notified();
            match self.move_all().await {
                Ok(()) => {
                    wait = FIRST_WAIT;
                    over.await;
                }
                Err(reason) => {
                    let (folder, secs) = (self.folder.display(), wait.as_secs());
                    tracing::warn!("recordings stay in {folder} for now, tried again in {secs} s: {reason}");
                    // Sooner if another call is over.
                    let _ = tokio::time::timeout(wait, over).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
        }
    }

    /// At the end of the server: what can be moved in this time is; the rest is left for the next start.
    pub(crate) async fn finish(&self, patience: Duration) {
        let moved = tokio::time::timeout(patience, self.move_all()).await;
        if !matches!(moved, Ok(Ok(()))) {
            eprintln!(
                "sayback: {} recordings are still in {} and will be moved to {} at the next start",
                self.waiting.load(Ordering::Relaxed),
                self.folder.display(),
                self.objects.name()
            );
        }
    }

    /// Figures for `/metrics`.
    pub(crate) fn gauges(self: &Arc<Self>) -> [Gauge; 2] {
        let (waiting, moved) = (Arc::clone(self), Arc::clone(self));
        [
            Gauge {
                name: "sayback_recordings_waiting",
                help: "recordings that are over and not moved to their store yet",
                kind: "gauge",
                value: Arc::new(move || waiting.waiting.load(Ordering::Relaxed) as f64),
            },
            Gauge {
                name: "sayback_recordings_moved_total",
                help: "recordings moved to their store",
                kind: "counter",
                value: Arc::new(move || moved.moved.load(Ordering::Relaxed) as f64),
            },
        ]
    }

    /// Moves each that is over; the first that cannot be moved is the reason why the rest waits as well.
    async fn move_all(&self) -> Result<(), String> {
        let over = self.over().await?;
        self.waiting.store(over.len(), Ordering::Relaxed);
        let mut unreadable = None;
        for id in over {
            let folder = self.folder.join(&id);
            let (read, name) = (folder.clone(), id.clone());
            let view = tokio::task::spawn_blocking(move || view_of(&read, &name)).await;
            let view = match view.map_err(|error| error.to_string())? {
                Ok(view) => view,
                // It is left where it is, and keeps nobody else from being moved.
                Err(error) => {
                    unreadable = Some(format!("{}: {error}", folder.display()));
                    continue;
                }
            };
            self.move_one(&id, &folder, &view).await.map_err(said)?;
            self.moved.fetch_add(1, Ordering::Relaxed);
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        unreadable.map_or(Ok(()), Err)
    }

    async fn move_one(&self, id: &str, folder: &Path, view: &RecordingView) -> Result<(), ObjectsError> {
        for name in FILES {
            let path = folder.join(name);
            if std::fs::symlink_metadata(&path).is_ok_and(|data| data.is_file()) {
                self.objects.put_file(&key(id, name), &path).await?;
            }
        }
        self.objects.put(&entry(id), serde_json::to_vec(view).unwrap_or_default()).await?;
        for name in FILES {
            // One that was not there need not go.
            let _ = std::fs::remove_file(folder.join(name));
        }
        if let Err(error) = std::fs::remove_dir(folder) {
            tracing::warn!("{}: something else is in it, which stays there: {error}", folder.display());
        }
        Ok(())
    }

    /// Recordings in the folder that nobody writes to.
    async fn over(&self) -> Result<Vec<String>, String> {
        let (folder, recorded) = (self.folder.clone(), self.recorded.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let entries =
                std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            let ids = entries.flatten().filter_map(|entry| {
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let id = entry.file_name().into_string().ok()?;
                (is_folder && !id.starts_with('.') && entry.path().join(SHEET).is_file()).then_some(id)
            });
            let mut ids: Vec<String> = ids.collect();
            // Looked at after the folder: one that began in between is live.
            let live = recorded.live();
            ids.retain(|id| !live.contains(id));
            ids.sort();
            Ok(ids)
        });
        looked.await.map_err(|error| error.to_string())?
    }
}
