//! `--record DIR`: a live call as a recording, from its first event to its page.

use std::path::{Path, PathBuf};

use sayback_agentfile::{AgentFile, Redact};
use sayback_replay::bundle::{Bundle, recompute};
use sayback_replay::report::{CallPage, Recording, call_page};
use sayback_runtime::record::{AgentSheet, CallSheet, EngineSheet, RecordError, Recorder, SoundSheet};
use sayback_runtime::redact::{Detail, Redactor};

use crate::exit::Stop;

fn stop(error: RecordError) -> Stop {
    match error {
        RecordError::Exists(_) | RecordError::Unusable { .. } => Stop::unusable(error),
        RecordError::Broken { .. } => Stop::missing(error),
    }
}

/// Begins a recording where one is asked for: in the folder that was named, or, if the agent's calls are all kept, in
/// one of its own.
pub(crate) fn begin(
    folder: Option<&Path>,
    file: &AgentFile,
    call: &str,
    transport: &str,
) -> Result<Option<Recorder>, Stop> {
    let folder = match folder {
        Some(folder) => folder.to_owned(),
        None if file.privacy.record => kept().join(call),
        None => return Ok(None),
    };
    let agent = AgentSheet {
        name: file.agent.name.clone(),
        file: file.path.to_string_lossy().into_owned(),
        hash: file.hash.clone(),
    };
    let mut sheet = CallSheet::new(call, transport, agent, file.agent.policy.clone());
    let sound = transport != "chat";
    let voiced = |name: String| if sound { name } else { String::new() };
    sheet.engines = EngineSheet {
        model: format!("{}/{}", file.llm.provider.name(), file.llm.model),
        stt: voiced(format!("{}/{}", file.stt.provider.name(), file.stt.model)),
        tts: voiced(format!("{}/{}", file.tts.provider.name(), file.tts.voice)),
    };
    sheet.sound = sound.then(SoundSheet::default);
    Recorder::create_redacted(&folder, &sheet, redactor(file)).map(Some).map_err(stop)
}

/// What takes personal details out of what is kept of a call, if the agent wants that.
pub(crate) fn redactor(file: &AgentFile) -> Option<Redactor> {
    Redactor::new(&redacted(file))
}

/// Which personal details the agent does not want kept.
pub(crate) fn redacted(file: &AgentFile) -> Vec<Detail> {
    file.privacy
        .redact
        .iter()
        .map(|kind| match kind {
            Redact::Phone => Detail::Phone,
            Redact::Email => Detail::Email,
            Redact::Card => Detail::Card,
            Redact::Iban => Detail::Iban,
        })
        .collect()
}

/// Where calls are kept that nobody named a folder for.
fn kept() -> PathBuf {
    super::stored::data_folder().join("calls")
}

/// Ends a recording, with its page.
pub(crate) fn end(recorder: Option<&Recorder>) -> Result<(), Stop> {
    let Some(recorder) = recorder else { return Ok(()) };
    recorder.end_sound();
    let page = page(&recorder.folder());
    let seal = recorder.finish(page.as_deref()).map_err(stop)?;
    out!("Recorded in {}, sealed {seal}", recorder.folder().display());
    Ok(())
}

/// The call as a page. A recording without one is still a recording: what is wrong with it is for `replay` to say.
fn page(folder: &Path) -> Option<String> {
    let bundle = Bundle::open(folder).ok()?;
    let events = bundle.shown_events(&recompute(&bundle).ok()?);
    let (caller, agent) = bundle.sound().ok()?;
    let sound = bundle.sound_file().ok()?;
    Some(call_page(&CallPage {
        title: &bundle.title(),
        events: &events,
        caller: (!caller.is_empty()).then_some(caller.as_slice()),
        agent: (!agent.is_empty()).then_some(agent.as_slice()),
        recording: sound.as_deref().map(|bytes| Recording { mime: "audio/flac", bytes }),
        failures: &[],
    }))
}
