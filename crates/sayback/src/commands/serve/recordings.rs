//! Recordings of a server's calls, for agents that want them.

use sayback_runtime::calls::CallView;
use sayback_runtime::record::{CallSheet, EngineSheet, Recorder, SoundSheet};
use sayback_runtime::redact::Redactor;
use sayback_runtime::switchboard::{Desk, Witness, Witnesses};

use super::config::Recording;

/// Begins a recording for each call whose agent wants it, and ends it with its page.
#[derive(Debug)]
pub(crate) struct Recordings {
    recording: Recording,
}

impl Recordings {
    pub(crate) fn new(recording: Recording) -> Self {
        Self { recording }
    }
}

impl Witnesses for Recordings {
    fn of(&self, call: &CallView, desk: &Desk) -> Witness {
        let Some(agent) = desk.recorded_as.clone() else { return Witness::default() };
        let mut sheet = CallSheet::new(&call.call, &call.transport, agent, desk.agent.policy.clone());
        sheet.engines =
            EngineSheet { model: (desk.llm)().name(), stt: desk.stt.name(), tts: desk.tts.name() };
        sheet.sound = Some(SoundSheet::default());
        let folder = self.recording.folder.join(&call.call);
        match Recorder::create_redacted(&folder, &sheet, Redactor::new(&desk.redact)) {
            Ok(recorder) => Witness {
                observers: vec![recorder.observer()],
                recorder: Some(recorder),
                notice: self.recording.notice.clone(),
            },
            Err(error) => {
                // A call is worth more than its recording.
                tracing::error!("the call {} is not recorded: {error}", call.call);
                Witness::default()
            }
        }
    }

    fn ended(&self, call: &str, recorder: Option<&Recorder>) {
        if recorder.is_some()
            && let Err(error) = crate::commands::record::end(recorder)
        {
            tracing::error!("the recording of {call}: {error}");
        }
    }
}
