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
    work: Option<SyncSender<(u32, Vec<f32>)>>,
    /// Ends what is under way when nobody listens any more.
    cancel: Cancel,
}

impl Whole {
    pub(super) fn begin(engine: Arc<dyn Transcribe>, mut heard: OnHeard) -> Self {
        let (work, wanted) = sync_channel::<(u32, Vec<f32>)>(WAITING);
        let cancel = Cancel::new();
        let cancelled = cancel.clone();
        let recognise = move || {
            while let Ok((stretch, pcm)) = wanted.recv() {
                match engine.transcribe(&pcm, false, &cancelled) {
                    Ok(found) => heard(LiveEvent::Final { stretch, upto: pcm.len(), found }),
                    Err(SttError::Cancelled) => return,
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
        Self { sound: BTreeMap::new(), work: started.is_ok().then_some(work), cancel }
    }
}

impl Live for Whole {
    fn push(&mut self, stretch: u32, pcm: &[f32]) {
        self.sound.entry(stretch).or_default().extend_from_slice(pcm);
    }

    fn flush(&mut self, stretch: u32) {
        let (Some(work), Some(pcm)) = (&self.work, self.sound.get(&stretch)) else { return };
        if work.try_send((stretch, pcm.clone())).is_err() {
            // It is behind by more flushes than a call has, or has failed and said so.
            self.work = None;
        }
    }

    fn forget(&mut self, stretch: u32) {
        self.sound.remove(&stretch);
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
