//! Recorded calls over HTTP: which there are, their sound, their log and their evidence.
//!
//! A recording is a folder below one that the server's file names. Ids are names of such folders and nothing else: no
//! path, no link, nothing that begins with a dot. Nothing is ever written here. What is not in the folder any more is looked
//! for in the [`Archive`], if there is one.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path as UrlPath, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sayback_runtime::record::{CallSheet, EVENTS, EVIDENCE, SHEET, SOUND};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use crate::{Api, Problem};

mod archive;
mod range;

pub use archive::{Archive, Pieces};
use range::{Asked, asked};

/// Recordings in one list, the newest first.
const LISTED: usize = 200;
/// Largest `call.json`, and most of a log's end that is read for a list, in bytes.
const LARGEST_SHEET: u64 = 1 << 20;
const TAIL: u64 = 16 * 1024;
/// Sound is read in pieces of this many bytes.
const PIECE: usize = 64 * 1024;

/// Recorded calls of a server.
#[derive(Clone, Debug)]
pub struct Recordings {
    /// Each is a folder below this one.
    pub folder: PathBuf,
    /// Tells one as a scenario.
    pub retell: Arc<dyn Retell>,
    /// Where they are later, if they are moved.
    pub archive: Option<Arc<dyn Archive>>,
}

/// Tells a recorded call as a scenario. A trait, because the server does not know how calls are decided again.
pub trait Retell: Send + Sync + std::fmt::Debug {
    /// The scenario's text, with personal details replaced. May take its time.
    ///
    /// # Errors
    /// Why it cannot be told, for people.
    fn scenario(&self, folder: &Path) -> Result<String, String>;
}

/// A recorded call as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingView {
    /// Its id: the name of its folder.
    pub id: String,
    /// The call.
    pub call: String,
    /// The agent's name.
    pub agent: String,
    /// How it came.
    pub transport: String,
    /// When it began, in UTC.
    pub start: String,
    /// Whether its sound was kept.
    pub sound: bool,
    /// Whether it was finished and sealed; one that was not may end early.
    pub sealed: bool,
    /// How long it was, as far as its log tells, in milliseconds.
    pub length_ms: Option<u64>,
    /// Kinds of personal details that were not kept.
    pub redacted: Vec<String>,
}

fn recordings(api: &Api) -> Result<Recordings, Problem> {
    let none = || {
        let detail = "calls are not recorded here; add a [record] table to the server's file";
        Problem::not_found("no-recordings", detail)
    };
    api.recordings.clone().ok_or_else(none)
}

fn absent(id: &str) -> Problem {
    Problem::not_found("no-such-recording", format!("there is no recording {id:?}"))
}

/// Whether a name can be that of a recording: one that could lead anywhere else cannot.
fn is_plain(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !id.is_empty() && id.len() <= 200 && !id.starts_with('.') && id.chars().all(plain)
}

/// Where a recording is that is not here.
fn elsewhere(recordings: &Recordings, id: &str) -> Option<Arc<dyn Archive>> {
    recordings.archive.clone().filter(|_| is_plain(id))
}

fn away(reason: impl std::fmt::Display) -> Problem {
    let detail = format!(
        "the place that recordings are kept in cannot be reached: {reason}; nothing is lost, try again"
    );
    Problem::new(StatusCode::BAD_GATEWAY, "recordings-away", detail)
}

/// The folder of a recording.
fn folder(recordings: &Recordings, id: &str) -> Result<PathBuf, Problem> {
    if !is_plain(id) {
        return Err(absent(id));
    }
    let folder = recordings.folder.join(id);
    let is_own = std::fs::symlink_metadata(&folder).is_ok_and(|data| data.is_dir());
    if is_own && own_file(&folder, SHEET).is_some() { Ok(folder) } else { Err(absent(id)) }
}

/// A file of a recording, if it is one and no link to something else.
fn own_file(folder: &Path, name: &str) -> Option<PathBuf> {
    let path = folder.join(name);
    std::fs::symlink_metadata(&path).is_ok_and(|data| data.is_file()).then_some(path)
}

fn own(folder: &Path, name: &str, id: &str) -> Result<PathBuf, Problem> {
    let none = || Problem::not_found("not-recorded", format!("the recording {id} has no {name}"));
    own_file(folder, name).ok_or_else(none)
}

/// Does what waits for the disk where that holds nobody up.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let broke = |_| unreadable("the disk did not answer");
    tokio::task::spawn_blocking(work).await.map_err(broke)?
}

fn unreadable(reason: impl std::fmt::Display) -> Problem {
    let detail = format!("the recording cannot be read: {reason}");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "recording-unreadable", detail)
}

pub(crate) async fn list(State(api): State<Api>) -> Result<Json<Value>, Problem> {
    let recordings = recordings(&api)?;
    let archive = recordings.archive.clone();
    let (listed, older) = on_disk(move || newest(&recordings)).await?;
    let Some(archive) = archive else { return Ok(Json(json!({ "recordings": listed, "older": older }))) };
    match archive.newest(LISTED).await {
        Ok((there, older_there)) => {
            let (listed, cut) = merged(listed, there);
            Ok(Json(json!({ "recordings": listed, "older": older + older_there + cut })))
        }
        // Those that are here can still be heard.
        Err(reason) => Ok(Json(json!({ "recordings": listed, "older": older, "away": reason }))),
    }
}

/// What is here and what is elsewhere in one list, and how many had no room in it. One that is being moved is in both.
fn merged(here: Vec<RecordingView>, there: Vec<RecordingView>) -> (Vec<RecordingView>, usize) {
    let mut all: std::collections::BTreeMap<String, RecordingView> =
        there.into_iter().chain(here).map(|view| (view.id.clone(), view)).collect();
    let mut listed: Vec<RecordingView> = std::mem::take(&mut all).into_values().collect();
    listed.sort_by(|a, b| b.start.cmp(&a.start).then_with(|| b.id.cmp(&a.id)));
    let cut = listed.len().saturating_sub(LISTED);
    listed.truncate(LISTED);
    (listed, cut)
}

/// The newest recordings, and how many there are beyond them.
fn newest(recordings: &Recordings) -> Result<(Vec<RecordingView>, usize), Problem> {
    let entries = match std::fs::read_dir(&recordings.folder) {
        Ok(entries) => entries,
        // Made with the first call.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(error) => return Err(unreadable(error)),
    };
    let mut found: Vec<(u64, String)> = entries
        .flatten()
        .filter_map(|entry| {
            let id = entry.file_name().into_string().ok()?;
            let sheet = folder(recordings, &id).ok()?.join(SHEET);
            let written = std::fs::metadata(sheet).and_then(|data| data.modified()).ok()?;
            Some((written.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()), id))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    let more = found.len().saturating_sub(LISTED);
    let views = found.into_iter().take(LISTED).filter_map(|(_, id)| view(recordings, &id).ok());
    let mut views: Vec<RecordingView> = views.collect();
    views.sort_by(|a, b| b.start.cmp(&a.start).then_with(|| b.id.cmp(&a.id)));
    Ok((views, more))
}

fn view(recordings: &Recordings, id: &str) -> Result<RecordingView, Problem> {
    view_of(&folder(recordings, id)?, id).map_err(unreadable)
}

/// A recording in a folder as others see it. Waits for the disk.
///
/// # Errors
/// It is none, or cannot be read.
pub fn view_of(folder: &Path, id: &str) -> std::io::Result<RecordingView> {
    let mut text = String::new();
    let sheet = std::fs::File::open(folder.join(SHEET))?;
    sheet.take(LARGEST_SHEET).read_to_string(&mut text)?;
    let sheet: CallSheet = serde_json::from_str(&text)?;
    let last_event = last_line(folder, EVENTS);
    let length = last_event.as_ref().and_then(|line| line["t_ms"].as_f64());
    let seal = last_line(folder, EVIDENCE);
    Ok(RecordingView {
        id: id.to_owned(),
        call: sheet.call,
        agent: sheet.agent.name,
        transport: sheet.transport,
        start: sheet.start,
        sound: sheet.sound.is_some() && own_file(folder, SOUND).is_some(),
        sealed: seal.is_some_and(|line| line["files"].is_object()),
        // Call times are small and never negative.
        length_ms: length.map(|ms| ms.max(0.0) as u64),
        redacted: sheet.redacted,
    })
}

/// The last line of a file of JSON lines, if it is a whole one.
fn last_line(folder: &Path, name: &str) -> Option<Value> {
    let mut file = std::fs::File::open(own_file(folder, name)?).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().rev().find(|line| !line.trim().is_empty()).and_then(|line| serde_json::from_str(line).ok())
}

pub(crate) async fn show(
    State(api): State<Api>,
    UrlPath(id): UrlPath<String>,
) -> Result<Json<RecordingView>, Problem> {
    let recordings = recordings(&api)?;
    let archive = elsewhere(&recordings, &id);
    let name = id.clone();
    let here = on_disk(move || view(&recordings, &id)).await;
    match (here, archive) {
        (Ok(view), _) => Ok(Json(view)),
        (Err(missing), None) => Err(missing),
        (Err(missing), Some(archive)) => archive.view(&name).await.map_err(away)?.map(Json).ok_or(missing),
    }
}

pub(crate) async fn events(
    State(api): State<Api>,
    UrlPath(id): UrlPath<String>,
) -> Result<Response, Problem> {
    lines(&api, id, EVENTS).await
}

pub(crate) async fn evidence(
    State(api): State<Api>,
    UrlPath(id): UrlPath<String>,
) -> Result<Response, Problem> {
    lines(&api, id, EVIDENCE).await
}

async fn lines(api: &Api, id: String, name: &'static str) -> Result<Response, Problem> {
    let file = KeptFile::open(recordings(api)?, id, name).await?;
    give(file, &HeaderMap::new(), "application/jsonl").await
}

pub(crate) async fn audio(
    State(api): State<Api>,
    UrlPath(id): UrlPath<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let file = KeptFile::open(recordings(&api)?, id, SOUND).await?;
    give(file, &headers, "audio/flac").await
}

/// A file of a recording, wherever it is.
struct KeptFile {
    length: u64,
    place: KeptAt,
}

enum KeptAt {
    Here(tokio::fs::File),
    Elsewhere { archive: Arc<dyn Archive>, id: String, name: &'static str },
}

impl KeptFile {
    async fn open(recordings: Recordings, id: String, name: &'static str) -> Result<Self, Problem> {
        let archive = elsewhere(&recordings, &id);
        let looked = id.clone();
        let here = on_disk(move || own(&folder(&recordings, &looked)?, name, &looked)).await;
        let missing = match here {
            Ok(path) => match tokio::fs::File::open(path).await {
                Ok(file) => {
                    let length = file.metadata().await.map_err(unreadable)?.len();
                    return Ok(Self { length, place: KeptAt::Here(file) });
                }
                // It has just been moved.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => absent(&id),
                Err(error) => return Err(unreadable(error)),
            },
            Err(missing) => missing,
        };
        let Some(archive) = archive else { return Err(missing) };
        let length = archive.size(&id, name).await.map_err(away)?.ok_or(missing)?;
        Ok(Self { length, place: KeptAt::Elsewhere { archive, id, name } })
    }

    /// Its bytes from one to before another.
    async fn part(self, from: u64, to: u64) -> Result<Body, Problem> {
        match self.place {
            KeptAt::Here(mut file) => {
                file.seek(SeekFrom::Start(from)).await.map_err(unreadable)?;
                Ok(Body::from_stream(pieces(file.take(to - from))))
            }
            KeptAt::Elsewhere { .. } if from == to => Ok(Body::empty()),
            KeptAt::Elsewhere { archive, id, name } => {
                Ok(Body::from_stream(archive.read(&id, name, from..to).await.map_err(away)?))
            }
        }
    }
}

/// A file, or the part of it that was asked for.
async fn give(file: KeptFile, headers: &HeaderMap, mime: &'static str) -> Result<Response, Problem> {
    let length = file.length;
    let wanted = headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    let (from, to, status) = match asked(wanted, length) {
        Asked::All => (0, length, StatusCode::OK),
        Asked::Part { from, to } => (from, to, StatusCode::PARTIAL_CONTENT),
        Asked::Nothing => {
            let detail = format!("the sound has {length} bytes, and the range lies behind them");
            let mut response =
                Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "bad-range", detail).into_response();
            set(&mut response, header::CONTENT_RANGE, &format!("bytes */{length}"));
            return Ok(response);
        }
    };
    let mut response = (status, file.part(from, to).await?).into_response();
    set(&mut response, header::CONTENT_TYPE, mime);
    set(&mut response, header::CONTENT_LENGTH, &(to - from).to_string());
    set(&mut response, header::ACCEPT_RANGES, "bytes");
    set(&mut response, header::CACHE_CONTROL, "no-store");
    if status == StatusCode::PARTIAL_CONTENT {
        set(&mut response, header::CONTENT_RANGE, &format!("bytes {from}-{}/{length}", to - 1));
    }
    Ok(response)
}

fn set(response: &mut Response, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// A file piece by piece; it ends early if the file does.
fn pieces(
    file: tokio::io::Take<tokio::fs::File>,
) -> impl futures::Stream<Item = std::io::Result<Vec<u8>>> + Send {
    futures::stream::unfold(Some(file), |file| async move {
        let mut file = file?;
        let mut piece = vec![0; PIECE];
        match file.read(&mut piece).await {
            Ok(0) => None,
            Ok(read) => {
                piece.truncate(read);
                Some((Ok(piece), Some(file)))
            }
            Err(error) => Some((Err(error), None)),
        }
    })
}

pub(crate) async fn scenario(
    State(api): State<Api>,
    UrlPath(id): UrlPath<String>,
) -> Result<Response, Problem> {
    let recordings = recordings(&api)?;
    let name = format!("attachment; filename=\"{id}.call.toml\"");
    let archive = elsewhere(&recordings, &id);
    let retell = Arc::clone(&recordings.retell);
    let fetched = id.clone();
    let here = on_disk(move || folder(&recordings, &id)).await;
    let text = match (here, archive) {
        (Ok(folder), _) => told(retell, folder).await?,
        (Err(missing), None) => return Err(missing),
        (Err(missing), Some(archive)) => {
            let copy = tempfile::tempdir().map_err(unreadable)?;
            if !archive.fetch(&fetched, copy.path()).await.map_err(away)? {
                return Err(missing);
            }
            told(retell, copy.path().to_owned()).await?
        }
    };
    let mut response = text.into_response();
    set(&mut response, header::CONTENT_TYPE, "application/toml");
    set(&mut response, header::CONTENT_DISPOSITION, &name);
    Ok(response)
}

/// A recording in a folder as a scenario.
async fn told(retell: Arc<dyn Retell>, folder: PathBuf) -> Result<String, Problem> {
    let cannot = |reason| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "cannot-be-told", reason);
    on_disk(move || retell.scenario(&folder).map_err(cannot)).await
}
