//! What is kept of a server's calls: recordings, for agents that want them, and what the API shows of them; and the
//! journal of confirmed runs.

use std::path::Path;
use std::sync::Arc;

use sayback_replay::bundle::{Bundle, as_scenario};

use sayback_runtime::calls::CallView;
use sayback_runtime::conversations::Conversations;
use sayback_runtime::journal::Journal;
use sayback_runtime::record::{CallSheet, EngineSheet, Recorder, SoundSheet};
use sayback_runtime::redact::Redactor;
use sayback_runtime::switchboard::{Desk, Witness, Witnesses};
use sayback_server::recordings::{Archive, Recordings as Kept, Retell};

use super::archive::Recorded;
use super::config::Recording;

/// Begins a recording for each call whose agent wants it, and ends it with its page; gives each call its journal.
#[derive(Debug)]
pub(crate) struct Recordings {
    recording: Option<Recording>,
    conversations: Option<Arc<dyn Conversations>>,
    recorded: Recorded,
}

impl Recordings {
    pub(crate) fn new(
        recording: Option<Recording>,
        conversations: Option<Arc<dyn Conversations>>,
        recorded: Recorded,
    ) -> Self {
        Self { recording, conversations, recorded }
    }
}

impl Witnesses for Recordings {
    fn of(&self, call: &CallView, desk: &Desk) -> Witness {
        let (Some(agent), Some(recording)) = (desk.recorded_as.clone(), &self.recording) else {
            return Witness::default();
        };
        let mut sheet = CallSheet::new(&call.call, &call.transport, agent, desk.agent.policy.clone());
        // A conversation in text has no sound.
        let voiced = call.transport != "chat";
        let name = |name: String| if voiced { name } else { String::new() };
        let (stt, tts) = (name(desk.stt.name()), name(desk.tts.name()));
        sheet.engines = EngineSheet { model: (desk.llm)().name(), stt, tts };
        sheet.sound = voiced.then(SoundSheet::default);
        let folder = recording.folder.join(&call.call);
        self.recorded.began(&call.call);
        match Recorder::create_redacted(&folder, &sheet, Redactor::new(&desk.redact)) {
            Ok(recorder) => Witness {
                observers: vec![recorder.observer()],
                recorder: Some(recorder),
                notice: recording.notice.clone(),
            },
            Err(error) => {
                self.recorded.ended(&call.call);
                // A call is worth more than its recording.
                tracing::error!("the call {} is not recorded: {error}", call.call);
                Witness::default()
            }
        }
    }

    fn journal(
        &self,
        call: &CallView,
        desk: &Desk,
        reopened: Option<Arc<dyn Journal>>,
    ) -> Option<Arc<dyn Journal>> {
        let begun = || Some(self.conversations.as_ref()?.begin(&call.call, &desk.agent.name));
        reopened.or_else(begun)
    }

    fn ended(&self, call: &str, recorder: Option<&Recorder>) {
        if recorder.is_some()
            && let Err(error) = crate::commands::record::end(recorder)
        {
            tracing::error!("the recording of {call}: {error}");
        }
        self.recorded.ended(call);
    }
}

/// Recorded calls as the API shows them.
pub(crate) fn kept(recording: &Recording, archive: Option<Arc<dyn Archive>>) -> Kept {
    Kept { folder: recording.folder.clone(), retell: Arc::new(Scenarios), archive }
}

/// Tells recorded calls as scenarios.
#[derive(Debug)]
struct Scenarios;

impl Retell for Scenarios {
    fn scenario(&self, folder: &Path) -> Result<String, String> {
        let bundle = Bundle::open(folder).map_err(|error| error.to_string())?;
        let agent = bundle.sheet.agent.file.clone();
        let text = std::fs::read_to_string(&agent)
            .map_err(|error| format!("{agent}: the agent of this call cannot be read: {error}"))?;
        as_scenario(&bundle, &agent, &text).map_err(|error| error.to_string())
    }
}
