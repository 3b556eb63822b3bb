//! From an agent file's settings to recognisers, voices and hosted models: which vendor, which address, which key.

use std::sync::Arc;
use std::time::Duration;

use sayback_agentfile::{LlmSettings, SttProvider, SttSettings, TtsProvider, TtsSettings};
use sayback_providers::failover::{FailoverStt, FailoverTts};
use sayback_providers::hosted::{ApiKey, Limits, Service};
use sayback_providers::piper::{Piper, PiperOptions};
use sayback_providers::whisper::{Whisper, WhisperOptions};
use sayback_runtime::llm::Llm;
use sayback_runtime::stt::Transcribe;
use sayback_runtime::tts::Synthesize;

use crate::engines::model_path;
use crate::exit::Stop;

/// Vendors that this program was built with.
pub(crate) const BUILT_IN: &[(&str, bool)] = &[
    ("anthropic", cfg!(feature = "anthropic")),
    ("cartesia", cfg!(feature = "cartesia")),
    ("deepgram", cfg!(feature = "deepgram")),
    ("elevenlabs", cfg!(feature = "elevenlabs")),
    ("openai-speech", cfg!(feature = "openai-speech")),
    ("soniox", cfg!(feature = "soniox")),
];

/// A maker of one vendor's engine, and what stands in its place where the program was built without that vendor.
macro_rules! engine {
    ($name:ident, $feature:literal, $kind:ident, $engine:path) => {
        #[cfg(feature = $feature)]
        fn $name(service: Service) -> Result<Arc<dyn $kind>, Stop> {
            Ok(Arc::new(<$engine>::new(service).map_err(Stop::unusable)?))
        }

        #[cfg(not(feature = $feature))]
        fn $name(_service: Service) -> Result<Arc<dyn $kind>, Stop> {
            Err(absent($feature))
        }
    };
}

engine!(deepgram_listen, "deepgram", Transcribe, sayback_providers::deepgram::DeepgramListen);
engine!(deepgram_voice, "deepgram", Synthesize, sayback_providers::deepgram::DeepgramVoice);
engine!(soniox, "soniox", Transcribe, sayback_providers::soniox::Soniox);
engine!(transcribe, "openai-speech", Transcribe, sayback_providers::openai_speech::OpenAiTranscribe);
engine!(realtime, "openai-speech", Transcribe, sayback_providers::openai_speech::OpenAiRealtime);
engine!(openai_voice, "openai-speech", Synthesize, sayback_providers::openai_speech::OpenAiVoice);
engine!(elevenlabs, "elevenlabs", Synthesize, sayback_providers::elevenlabs::ElevenLabs);
engine!(cartesia, "cartesia", Synthesize, sayback_providers::cartesia::Cartesia);

/// This program was built without a vendor.
#[cfg_attr(
    all(
        feature = "anthropic",
        feature = "cartesia",
        feature = "deepgram",
        feature = "elevenlabs",
        feature = "openai-speech",
        feature = "soniox"
    ),
    expect(dead_code, reason = "every vendor is in this build")
)]
fn absent(feature: &str) -> Stop {
    Stop::missing(format!(
        "this sayback was built without {feature}\n  hint: build it with `--features {feature}`, or name another provider"
    ))
}

/// Anthropic's model.
#[cfg(feature = "anthropic")]
pub(crate) fn anthropic(settings: &LlmSettings) -> Result<Arc<dyn Llm>, Stop> {
    use sayback_providers::anthropic::{Anthropic, AnthropicConfig};
    let mut config = AnthropicConfig::new(&settings.model, key(settings.api_key_env.as_deref())?);
    if let Some(url) = &settings.base_url {
        config.base_url.clone_from(url);
    }
    Ok(Arc::new(Anthropic::new(config).map_err(Stop::unusable)?))
}

/// Anthropic's model, in a build without it.
#[cfg(not(feature = "anthropic"))]
pub(crate) fn anthropic(_settings: &LlmSettings) -> Result<Arc<dyn Llm>, Stop> {
    Err(absent("anthropic"))
}

/// The key in this variable; `None`: no key is sent.
pub(crate) fn key(variable: Option<&str>) -> Result<Option<ApiKey>, Stop> {
    let Some(variable) = variable else { return Ok(None) };
    match std::env::var(variable) {
        Ok(key) if !key.trim().is_empty() => Ok(Some(ApiKey::new(key))),
        _ => Err(Stop::missing(format!("the key is missing\n  hint: export {variable}=… before you start"))),
    }
}

/// What a vendor is asked with; the parts that a file leaves out are the vendor's own.
struct Asked<'a> {
    base_url: &'a Option<String>,
    own_url: &'a str,
    model: &'a str,
    voice: &'a str,
    language: &'a str,
    key: Option<&'a str>,
    limits: Limits,
}

impl Asked<'_> {
    fn service(self) -> Result<Service, Stop> {
        Ok(Service {
            base_url: self.base_url.clone().unwrap_or_else(|| self.own_url.to_owned()),
            model: self.model.to_owned(),
            voice: self.voice.to_owned(),
            language: self.language.to_owned(),
            key: key(self.key)?,
            limits: self.limits,
        })
    }
}

/// One that has a fallback may take only so long.
fn limits(after: Option<Duration>) -> Limits {
    let usual = Limits::default();
    after.map_or(usual, |after| Limits { connect: after, first: after, between: usual.between })
}

/// The agent's recogniser, and the one that stands in for it. A hosted one that hears along stands in for itself: its
/// connection does not live as long as a call may.
pub(crate) fn stt(settings: &SttSettings, language: &str) -> Result<Arc<dyn Transcribe>, Stop> {
    let after = settings.fallback.as_ref().map(|fallback| fallback.after);
    let first = one_stt(settings, language, limits(after))?;
    match &settings.fallback {
        Some(fallback) => {
            let second = one_stt(&fallback.engine, language, limits(None))?;
            Ok(Arc::new(FailoverStt::new(first, vec![second])))
        }
        None if first.hears_along() => Ok(Arc::new(FailoverStt::new(first, vec![]))),
        None => Ok(first),
    }
}

fn one_stt(settings: &SttSettings, language: &str, limits: Limits) -> Result<Arc<dyn Transcribe>, Stop> {
    let service = |own_url: &str| {
        let asked = Asked {
            base_url: &settings.base_url,
            own_url,
            model: &settings.model,
            voice: "",
            language,
            key: settings.api_key_env.as_deref(),
            limits,
        };
        asked.service()
    };
    match settings.provider {
        SttProvider::Whisper => {
            let language = language.split('-').next().unwrap_or(language).to_owned();
            let path = model_path(&format!("whisper-{}", settings.model))?;
            let loaded = Whisper::load(&path, WhisperOptions { language, threads: None });
            Ok(Arc::new(loaded.map_err(Stop::missing)?))
        }
        SttProvider::Deepgram => deepgram_listen(service("https://api.deepgram.com/v1")?),
        SttProvider::Soniox => soniox(service("wss://stt-rt.soniox.com")?),
        SttProvider::OpenAi => transcribe(service(OPENAI)?),
        SttProvider::OpenAiRealtime => realtime(service(OPENAI)?),
    }
}

const OPENAI: &str = "https://api.openai.com/v1";

/// The agent's voice, and the one that stands in for it.
pub(crate) fn tts(settings: &TtsSettings, language: &str) -> Result<Arc<dyn Synthesize>, Stop> {
    let after = settings.fallback.as_ref().map(|fallback| fallback.after);
    let first = one_tts(settings, language, limits(after))?;
    let Some(fallback) = &settings.fallback else { return Ok(first) };
    let second = one_tts(&fallback.engine, language, limits(None))?;
    Ok(Arc::new(FailoverTts::new(first, vec![second])))
}

fn one_tts(settings: &TtsSettings, language: &str, limits: Limits) -> Result<Arc<dyn Synthesize>, Stop> {
    let service = |own_url: &str| {
        let asked = Asked {
            base_url: &settings.base_url,
            own_url,
            model: &settings.model,
            voice: &settings.voice,
            language,
            key: settings.api_key_env.as_deref(),
            limits,
        };
        asked.service()
    };
    match settings.provider {
        TtsProvider::Piper => {
            let path = model_path(&format!("piper-{}", settings.voice))?;
            Ok(Arc::new(Piper::load(&path, PiperOptions::default()).map_err(Stop::missing)?))
        }
        TtsProvider::ElevenLabs => elevenlabs(service("https://api.elevenlabs.io/v1")?),
        TtsProvider::Cartesia => cartesia(service("https://api.cartesia.ai")?),
        TtsProvider::Deepgram => deepgram_voice(service("https://api.deepgram.com/v1")?),
        TtsProvider::OpenAi => openai_voice(service(OPENAI)?),
    }
}
