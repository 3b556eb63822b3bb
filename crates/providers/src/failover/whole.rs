//! An engine that takes whole stretches, heard as if it heard along: it is given what was pushed when it is flushed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use sayback_runtime::stt::{Cancel, Live, LiveEvent, OnHeard, SttError, Transcribe};

/// Flushes that may wait for the engine.
const WAITING: usize = 64;

/// The sound so far, and the thread on which the engine works.
#[derive(Debug)]
pub(super) struct Whole {
    sound: BTreeMap<u32, Vec<f32>>,
    work: Option<SyncSender<Job>>,
    /// The latest job: a newer one of the same stretch has more of the sound, and makes it needless.
    latest: Option<(u32, Cancel)>,
}

#[derive(Debug)]
struct Job {
    stretch: u32,
    pcm: Vec<f32>,
    cancel: Cancel,
}

impl Whole {
    pub(super) fn begin(engine: Arc<dyn Transcribe>, mut heard: OnHeard) -> Self {
        let (work, wanted) = sync_channel::<Job>(WAITING);
        let recognise = move || {
            while let Ok(Job { stretch, pcm, cancel }) = wanted.recv() {
                if cancel.is_cancelled() {
                    continue;
                }
                match engine.transcribe(&pcm, false, &cancel) {
                    Ok(found) => heard(LiveEvent::Final { stretch, upto: pcm.len(), found }),
                    Err(SttError::Cancelled) => {}
                    Err(error) => {
                        heard(LiveEvent::Failed { error });
                        return;
                    }
                }
            }
        };
        let started = std::thread::Builder::new().name("recognition".to_owned()).spawn(recognise);
        if let Err(error) = &started {
            tracing::error!("cannot start the recognition thread: {error}");
        }
        Self { sound: BTreeMap::new(), work: started.is_ok().then_some(work), latest: None }
    }
}

impl Live for Whole {
    fn push(&mut self, stretch: u32, pcm: &[f32]) {
        self.sound.entry(stretch).or_default().extend_from_slice(pcm);
    }

    fn flush(&mut self, stretch: u32) {
        let (Some(work), Some(pcm)) = (&self.work, self.sound.get(&stretch)) else { return };
        if let Some((_, cancel)) = self.latest.as_ref().filter(|(before, _)| *before == stretch) {
            cancel.cancel();
        }
        let cancel = Cancel::new();
        self.latest = Some((stretch, cancel.clone()));
        if work.try_send(Job { stretch, pcm: pcm.clone(), cancel }).is_err() {
            // It is behind by more flushes than a call has, or has failed and said so.
            self.work = None;
        }
    }

    fn forget(&mut self, stretch: u32) {
        self.sound.remove(&stretch);
        if let Some((_, cancel)) = self.latest.take_if(|(before, _)| *before == stretch) {
            cancel.cancel();
        }
    }
}

/// Nobody listens any more: what is under way ends.
impl Drop for Whole {
    fn drop(&mut self) {
        if let Some((_, cancel)) = &self.latest {
            cancel.cancel();
        }
    }
}
