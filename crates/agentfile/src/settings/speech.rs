//! Who hears and who speaks.

use std::time::Duration;

use super::{Fallback, api_key_env, base_url, fallback};
use crate::reader::Section;

/// Who recognises speech.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SttProvider {
    /// Whisper, in this process.
    Whisper,
    /// Deepgram, which hears along.
    Deepgram,
    /// Soniox, which hears along.
    Soniox,
    /// OpenAI's transcription of whole segments, or any server that speaks its protocol.
    OpenAi,
    /// OpenAI's transcription that hears along.
    OpenAiRealtime,
}

impl SttProvider {
    /// Its name in agent files and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whisper => "whisper",
            Self::Deepgram => "deepgram",
            Self::Soniox => "soniox",
            Self::OpenAi => "openai",
            Self::OpenAiRealtime => "openai-realtime",
        }
    }
}

/// Speech recognition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SttSettings {
    /// Who recognises.
    pub provider: SttProvider,
    /// Which model: `tiny.en`, `nova-3`.
    pub model: String,
    /// Where; `None`: the vendor's own address, or in this process.
    pub base_url: Option<String>,
    /// The environment variable that holds the key; `None`: no key is sent.
    pub api_key_env: Option<String>,
    /// Who recognises when this one does not.
    pub fallback: Option<Box<Fallback<SttSettings>>>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtsProvider {
    /// Piper, in this process.
    Piper,
    /// ElevenLabs.
    ElevenLabs,
    /// Cartesia.
    Cartesia,
    /// Deepgram's Aura.
    Deepgram,
    /// OpenAI, or any server that speaks its protocol.
    OpenAi,
}

impl TtsProvider {
    /// Its name in agent files and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Piper => "piper",
            Self::ElevenLabs => "elevenlabs",
            Self::Cartesia => "cartesia",
            Self::Deepgram => "deepgram",
            Self::OpenAi => "openai",
        }
    }
}

/// The voice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TtsSettings {
    /// Who speaks.
    pub provider: TtsProvider,
    /// Which voice: `en_US-joe-medium`, `aura-2-thalia-en`, an id.
    pub voice: String,
    /// Which model speaks with it; empty where a voice is its own model.
    pub model: String,
    /// Where; `None`: the vendor's own address, or in this process.
    pub base_url: Option<String>,
    /// The environment variable that holds the key; `None`: no key is sent.
    pub api_key_env: Option<String>,
    /// Who speaks when this one does not.
    pub fallback: Option<Box<Fallback<TtsSettings>>>,
}

/// How long a recogniser or a voice that has a fallback may take: a silent line is noticed after a second or two.
const AFTER: Duration = Duration::from_millis(1_500);
/// The roots that a server may be named by.
const HTTP: &[&str] = &["http", "https"];
const SOCKET: &[&str] = &["http", "https", "ws", "wss"];

fn is_english(language: &str) -> bool {
    language.split('-').next() == Some("en")
}

pub(crate) fn stt(section: Option<Section<'_>>, language: &str) -> SttSettings {
    let Some(section) = section else {
        let model = whisper_model(language).to_owned();
        let (base_url, api_key_env, fallback) = (None, None, None);
        return SttSettings { provider: SttProvider::Whisper, model, base_url, api_key_env, fallback };
    };
    let engine = |section: &Section<'_>| stt_engine(section, language);
    let mut settings = engine(&section);
    settings.fallback = fallback(&section, AFTER, engine);
    section.finish();
    settings
}

fn whisper_model(language: &str) -> &'static str {
    if is_english(language) { "tiny.en" } else { "base" }
}

fn stt_engine(section: &Section<'_>, language: &str) -> SttSettings {
    let providers = [
        ("whisper", SttProvider::Whisper),
        ("deepgram", SttProvider::Deepgram),
        ("soniox", SttProvider::Soniox),
        ("openai", SttProvider::OpenAi),
        ("openai-realtime", SttProvider::OpenAiRealtime),
    ];
    let provider = section.one_of("provider", &providers).unwrap_or(SttProvider::Whisper);
    let (model, place) = match provider {
        SttProvider::Whisper => (whisper_model(language), None),
        SttProvider::Deepgram => ("nova-3", Some((SOCKET, "DEEPGRAM_API_KEY"))),
        SttProvider::Soniox => ("stt-rt-v5", Some((SOCKET, "SONIOX_API_KEY"))),
        SttProvider::OpenAi => ("gpt-4o-mini-transcribe", Some((HTTP, "OPENAI_API_KEY"))),
        SttProvider::OpenAiRealtime => ("gpt-live-transcribe", Some((SOCKET, "OPENAI_API_KEY"))),
    };
    let model = section.text("model").unwrap_or_else(|| model.to_owned());
    if provider == SttProvider::Whisper && model.ends_with(".en") && !is_english(language) {
        let message = format!("the model `{model}` knows English only, the agent speaks `{language}`");
        section.fault_at("model", message, "use `model = \"base\"`");
    }
    let (base_url, api_key_env) = hosted(section, place);
    SttSettings { provider, model, base_url, api_key_env, fallback: None }
}

/// Where a vendor is and which variable holds its key; an engine in this process has neither, so both keys are unknown.
fn hosted(section: &Section<'_>, place: Option<(&[&str], &str)>) -> (Option<String>, Option<String>) {
    match place {
        Some((schemes, usual)) => (base_url(section, schemes), api_key_env(section, usual)),
        None => (None, None),
    }
}

pub(crate) fn tts(section: Option<Section<'_>>, language: &str) -> TtsSettings {
    let Some(section) = section else {
        return TtsSettings {
            provider: TtsProvider::Piper,
            voice: PIPER_VOICE.to_owned(),
            model: String::new(),
            base_url: None,
            api_key_env: None,
            fallback: None,
        };
    };
    let engine = |section: &Section<'_>| tts_engine(section, language);
    let mut settings = engine(&section);
    settings.fallback = fallback(&section, AFTER, engine);
    section.finish();
    settings
}

const PIPER_VOICE: &str = "en_US-joe-medium";

fn tts_engine(section: &Section<'_>, language: &str) -> TtsSettings {
    let providers = [
        ("piper", TtsProvider::Piper),
        ("elevenlabs", TtsProvider::ElevenLabs),
        ("cartesia", TtsProvider::Cartesia),
        ("deepgram", TtsProvider::Deepgram),
        ("openai", TtsProvider::OpenAi),
    ];
    let provider = section.one_of("provider", &providers).unwrap_or(TtsProvider::Piper);
    let voice = match provider {
        TtsProvider::Piper => section.text("voice").unwrap_or_else(|| PIPER_VOICE.to_owned()),
        TtsProvider::OpenAi => section.text("voice").unwrap_or_else(|| "alloy".to_owned()),
        // Its voices know one language each.
        TtsProvider::Deepgram if is_english(language) => {
            section.text("voice").unwrap_or_else(|| "aura-2-thalia-en".to_owned())
        }
        TtsProvider::Deepgram => section.required_text("voice", "aura-2-celeste-es"),
        TtsProvider::ElevenLabs => section.required_text("voice", "JBFqnCBsd6RMkjVDRZzb"),
        TtsProvider::Cartesia => section.required_text("voice", "f786b574-daa5-4673-aa0c-cbe3e8534c02"),
    };
    let model = |usual: &str| section.text("model").unwrap_or_else(|| usual.to_owned());
    let (model, place) = match provider {
        TtsProvider::Piper => (String::new(), None),
        TtsProvider::Deepgram => (String::new(), Some((HTTP, "DEEPGRAM_API_KEY"))),
        TtsProvider::ElevenLabs => (model("eleven_flash_v2_5"), Some((HTTP, "ELEVENLABS_API_KEY"))),
        TtsProvider::Cartesia => (model("sonic-3"), Some((SOCKET, "CARTESIA_API_KEY"))),
        TtsProvider::OpenAi => (model("gpt-4o-mini-tts"), Some((HTTP, "OPENAI_API_KEY"))),
    };
    let (base_url, api_key_env) = hosted(section, place);
    TtsSettings { provider, voice, model, base_url, api_key_env, fallback: None }
}

#[cfg(test)]
mod tests {
    use crate::{AgentFile, LlmProvider, SttProvider, TtsProvider, parse};

    fn file(rest: &str) -> AgentFile {
        parse(&format!("[agent]\nname = \"D\"\n{rest}"), "desk.toml")
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn fault(rest: &str) -> String {
        parse(&format!("[agent]\nname = \"D\"\n{rest}"), "desk.toml").unwrap_err().to_string()
    }

    #[test]
    fn each_vendor_has_its_model_and_the_usual_name_of_its_key() {
        for (word, provider, model, key) in [
            ("whisper", SttProvider::Whisper, "tiny.en", None),
            ("deepgram", SttProvider::Deepgram, "nova-3", Some("DEEPGRAM_API_KEY")),
            ("soniox", SttProvider::Soniox, "stt-rt-v5", Some("SONIOX_API_KEY")),
            ("openai", SttProvider::OpenAi, "gpt-4o-mini-transcribe", Some("OPENAI_API_KEY")),
            ("openai-realtime", SttProvider::OpenAiRealtime, "gpt-live-transcribe", Some("OPENAI_API_KEY")),
        ] {
            let stt = file(&format!("[stt]\nprovider = \"{word}\"")).stt;
            let found = (stt.provider, stt.model.as_str(), stt.api_key_env.as_deref());
            assert_eq!(found, (provider, model, key));
        }
        for (word, provider, key) in [
            ("piper", TtsProvider::Piper, None),
            ("elevenlabs", TtsProvider::ElevenLabs, Some("ELEVENLABS_API_KEY")),
            ("cartesia", TtsProvider::Cartesia, Some("CARTESIA_API_KEY")),
            ("deepgram", TtsProvider::Deepgram, Some("DEEPGRAM_API_KEY")),
            ("openai", TtsProvider::OpenAi, Some("OPENAI_API_KEY")),
        ] {
            let tts = file(&format!("[tts]\nprovider = \"{word}\"\nvoice = \"v\"")).tts;
            assert_eq!((tts.provider, tts.voice.as_str(), tts.api_key_env.as_deref()), (provider, "v", key));
        }
        let llm = file("[llm]\nprovider = \"anthropic\"\nmodel = \"m\"").llm;
        assert_eq!(
            (llm.provider, llm.api_key_env.as_deref()),
            (LlmProvider::Anthropic, Some("ANTHROPIC_API_KEY"))
        );
    }

    #[test]
    fn a_server_of_ones_own_is_sent_a_key_only_if_the_file_says_so() {
        let own = "[stt]\nprovider = \"deepgram\"\nbase_url = \"ws://127.0.0.1:9/v1/\"";
        assert_eq!(file(own).stt.base_url.as_deref(), Some("ws://127.0.0.1:9/v1"));
        assert_eq!(file(own).stt.api_key_env, None);
        let named = format!("{own}\napi_key_env = \"MY_KEY\"");
        assert_eq!(file(&named).stt.api_key_env.as_deref(), Some("MY_KEY"));
        assert_eq!(
            file("[llm]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h/v1\"").llm.api_key_env,
            None
        );
    }

    #[test]
    fn a_fallback_is_an_engine_of_its_own() {
        let stt = file(
            "[stt]\nprovider = \"deepgram\"\nfallback = { provider = \"whisper\", model = \"base.en\", after = \"2s\" }",
        )
        .stt;
        let fallback = stt.fallback.unwrap();
        assert_eq!(
            (fallback.engine.provider, fallback.engine.model.as_str()),
            (SttProvider::Whisper, "base.en")
        );
        assert_eq!(fallback.after.as_millis(), 2_000);
        let tts = file("[tts]\nprovider = \"openai\"\n[tts.fallback]\nprovider = \"piper\"").tts;
        let fallback = tts.fallback.unwrap();
        assert_eq!((fallback.engine.provider, fallback.after.as_millis()), (TtsProvider::Piper, 1_500));
        let llm =
            file("[llm]\nprovider = \"openai\"\nmodel = \"m\"\nfallback = { provider = \"local\" }").llm;
        assert!(llm.may_be_local());
        assert_eq!(llm.fallback.unwrap().after.as_millis(), 4_000);
    }

    #[test]
    fn faults_of_vendors_show_their_place_and_the_mending_step() {
        for (text, says) in [
            (
                "[stt]\nprovider = \"depgram\"",
                "4:12: `provider` does not know `depgram`; did you mean `deepgram`?",
            ),
            (
                "[tts]\nprovider = \"acme\"",
                "use one of `piper`, `elevenlabs`, `cartesia`, `deepgram`, `openai`",
            ),
            ("[tts]\nprovider = \"cartesia\"", "3:1: [tts] has no `voice`; add `voice = "),
            ("[stt]\napi_key_env = \"K\"", "4:1: unknown key `api_key_env` in [stt]"),
            ("[stt]\nprovider = \"soniox\"\napi_key = \"x\"", "keys stay out of files"),
            (
                "[stt]\nprovider = \"soniox\"\nbase_url = \"ftp://h\"",
                "`base_url` is no http or https or ws or wss address",
            ),
            (
                "[stt]\nfallback = { model = \"base\" }",
                "a fallback has no `provider`; say which engine takes over",
            ),
            (
                "[stt]\nfallback = { provider = \"whisper\", fallback = {} }",
                "unknown key `fallback` in [stt.fallback]",
            ),
            ("[llm]\nfallback = { provider = \"anthropic\" }", "[llm.fallback] has no `model`"),
            ("[stt]\nfallback = \"whisper\"", "`fallback` must be a table, not string"),
        ] {
            assert!(fault(text).contains(says), "{text}\n{}", fault(text));
        }
    }

    #[test]
    fn a_voice_of_one_language_must_be_named_for_another() {
        let german = "language = \"de\"\n[tts]\nprovider = \"deepgram\"";
        assert!(fault(german).contains("[tts] has no `voice`"), "{}", fault(german));
    }
}
