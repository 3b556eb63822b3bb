//! Recognition of whole segments.

use futures::future::{Either, select};
use reqwest::Client;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use sayback_runtime::stt::{Cancel, SttError, Transcribe, Transcription, Word};
use serde::Deserialize;
use tokio::sync::mpsc::{Sender, channel};

use crate::hosted::{
    Address, AddressError, ApiKey, Deadline, Fault, Service, beginning, cleared, http_client, refused, spawn,
    unsent, wait,
};
use crate::live::{RATE, pcm16};

/// Separates the parts of the form. Sound that holds these bytes is as likely as a key that is guessed.
const BOUNDARY: &str = "sayback-5d1f0c7e9b3a4826-form";

/// A recogniser that takes whole segments.
#[derive(Clone, Debug)]
pub struct OpenAiTranscribe {
    client: Client,
    address: Address,
    key: Option<HeaderValue>,
    service: Service,
}

#[derive(Deserialize)]
struct Answer {
    text: String,
    #[serde(default)]
    words: Vec<AnswerWord>,
    #[serde(default)]
    segments: Vec<AnswerSegment>,
    #[serde(default)]
    logprobs: Vec<AnswerToken>,
}

#[derive(Deserialize)]
struct AnswerWord {
    word: String,
    start: f32,
    end: f32,
}

#[derive(Deserialize)]
struct AnswerSegment {
    #[serde(default)]
    avg_logprob: f32,
    #[serde(default)]
    no_speech_prob: f32,
}

#[derive(Deserialize)]
struct AnswerToken {
    logprob: f32,
}

impl OpenAiTranscribe {
    /// Checks the configuration; connects to nothing.
    pub fn new(service: Service) -> Result<Self, AddressError> {
        let address = Address::http(&service.base_url)?;
        let key = service.key.as_ref().map(|key| key.header("Bearer ")).transpose()?;
        Ok(Self { client: http_client(&address, service.limits.connect)?, address, key, service })
    }

    fn fetch(&self, pcm: &[f32], result: Sender<Result<Transcription, Fault>>) -> Result<(), Fault> {
        let url = self.address.join("audio/transcriptions", &[]);
        let mut post = self
            .client
            .post(url.clone())
            .header(CONTENT_TYPE, format!("multipart/form-data; boundary={BOUNDARY}"))
            .body(form(&self.service, pcm));
        if let Some(key) = &self.key {
            post = post.header(AUTHORIZATION, key.clone());
        }
        let (key, limit) = (self.service.key.clone(), self.service.limits.first);
        spawn(async move {
            let mut deadline = Deadline::after(limit);
            let answer = Box::pin(answer(post, url.as_str(), key.as_ref()));
            let answer = match select(answer, deadline.over.as_mut()).await {
                Either::Left((answer, _)) => answer,
                Either::Right(((), _)) => Err(deadline.missed()),
            };
            // Where nobody waits for it, there is nobody to tell.
            let _ = result.send(answer).await;
        })
    }
}

impl Transcribe for OpenAiTranscribe {
    fn name(&self) -> String {
        format!("openai/{}", self.service.model)
    }

    fn transcribe(&self, pcm: &[f32], partial: bool, cancel: &Cancel) -> Result<Transcription, SttError> {
        if cancel.is_cancelled() || partial {
            // Each request is paid for: partial words are not worth one.
            return Err(SttError::Cancelled);
        }
        let (sender, mut result) = channel(1);
        self.fetch(pcm, sender).map_err(|fault| fault.stt("openai"))?;
        match wait(result.recv()) {
            Some(found) => found.map_err(|fault| fault.stt("openai")),
            None => Err(SttError::Failed("openai broke off: the connection is gone".to_owned())),
        }
    }
}

async fn answer(
    post: reqwest::RequestBuilder,
    url: &str,
    key: Option<&ApiKey>,
) -> Result<Transcription, Fault> {
    let response = post.send().await.map_err(|error| unsent(&error, url))?;
    if !response.status().is_success() {
        return Err(refused(response, key).await);
    }
    let whole = response.content_length();
    let body = beginning(response).await;
    if whole.is_some_and(|length| length > body.len() as u64) {
        return Err(Fault::BrokeOff("half an answer".to_owned()));
    }
    let answer: Answer = serde_json::from_str(&body)
        .map_err(|_| Fault::Garbage(format!("no transcript: {}", cleared(&body, key))))?;
    Ok(found(answer))
}

fn found(answer: Answer) -> Transcription {
    let mean = |values: Vec<f32>| values.iter().sum::<f32>() / values.len().max(1) as f32;
    let of_segments = mean(answer.segments.iter().map(|segment| segment.avg_logprob).collect());
    let of_tokens = mean(answer.logprobs.iter().map(|token| token.logprob).collect());
    let word = |word: AnswerWord| Word { text: word.word, from: word.start, to: word.end };
    Transcription {
        text: answer.text.trim().to_owned(),
        words: answer.words.into_iter().map(word).collect(),
        avg_logprob: if of_segments == 0.0 { of_tokens } else { of_segments },
        no_speech: answer.segments.iter().map(|segment| segment.no_speech_prob).fold(0.0, f32::max),
        phantom: None,
    }
}

/// The form: the sound, the model and the language. Only Whisper gives times, and only if asked in this way.
fn form(service: &Service, pcm: &[f32]) -> Vec<u8> {
    let mut fields = vec![("model", service.model.as_str()), ("language", service.base_language())];
    if service.model.contains("whisper") {
        fields.extend([("response_format", "verbose_json"), ("timestamp_granularities[]", "word")]);
        fields.push(("timestamp_granularities[]", "segment"));
    } else {
        fields.extend([("response_format", "json"), ("include[]", "logprobs")]);
    }
    let mut form = Vec::new();
    for (name, value) in fields {
        let part =
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        form.extend_from_slice(part.as_bytes());
    }
    let file =
        "Content-Disposition: form-data; name=\"file\"; filename=\"segment.wav\"\r\nContent-Type: audio/wav";
    form.extend_from_slice(format!("--{BOUNDARY}\r\n{file}\r\n\r\n").as_bytes());
    form.extend_from_slice(&wav(pcm));
    form.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    form
}

/// The sound as a WAV file: 16 bits, one channel.
fn wav(pcm: &[f32]) -> Vec<u8> {
    let data = pcm16(pcm);
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut file = Vec::with_capacity(data.len() + 44);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&length.saturating_add(36).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend_from_slice(&RATE.to_le_bytes());
    file.extend_from_slice(&(RATE * 2).to_le_bytes());
    file.extend_from_slice(b"\x02\0\x10\0data");
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(&data);
    file
}
