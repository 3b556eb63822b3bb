//! Sound as the body of an HTTP response.

use futures::StreamExt;
use futures::future::{Either, select};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;

use super::{Sound, Stop};
use crate::hosted::{
    Address, AddressError, ApiKey, Deadline, Fault, Limits, Service, beginning, causes, cleared, http_client,
    refused, unsent,
};

/// A voice that speaks in answers to requests: where it is, and how it knows us.
#[derive(Clone, Debug)]
pub(crate) struct Posts {
    client: Client,
    key: Option<(&'static str, HeaderValue)>,
    pub(crate) address: Address,
    pub(crate) service: Service,
}

impl Posts {
    /// Checks the configuration; connects to nothing. The key goes along in a header of that name, behind that scheme.
    pub(crate) fn new(service: Service, header: &'static str, scheme: &str) -> Result<Self, AddressError> {
        let address = Address::http(&service.base_url)?;
        let key = service.key_header(header, scheme)?;
        Ok(Self { client: http_client(&address, service.limits.connect)?, key, address, service })
    }

    /// The request for an utterance.
    pub(crate) fn request(&self, url: Url, body: &Value) -> Request {
        let mut post = self.client.post(url.clone()).json(body);
        if let Some((name, key)) = &self.key {
            post = post.header(*name, key.clone());
        }
        let (key, limits) = (self.service.key.clone(), self.service.limits);
        Request { post, url: url.to_string(), key, limits }
    }
}

/// A request whose answer is sound.
pub(crate) struct Request {
    pub(crate) post: RequestBuilder,
    pub(crate) url: String,
    pub(crate) key: Option<ApiKey>,
    pub(crate) limits: Limits,
}

/// Sends the request and hands on the sound of its answer, raw 16-bit samples.
pub(crate) async fn stream(request: Request, mut sound: Sound) -> (Sound, Result<(), Stop>) {
    let done = hand_on(request, &mut sound).await;
    (sound, done)
}

async fn hand_on(request: Request, sound: &mut Sound) -> Result<(), Stop> {
    let Request { post, url, key, limits } = request;
    let mut deadline = Deadline::after(limits.first);
    let answer = Box::pin(async {
        let response = post.send().await.map_err(|error| unsent(&error, &url))?;
        if !response.status().is_success() {
            return Err(refused(response, key.as_ref()).await);
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        if kind.starts_with("text/") || kind.starts_with("application/json") {
            let body = beginning(response).await;
            return Err(Fault::Garbage(format!("{kind} instead of sound: {}", cleared(&body, key.as_ref()))));
        }
        Ok(response)
    });
    let response = match select(answer, deadline.over.as_mut()).await {
        Either::Left((answer, _)) => answer?,
        Either::Right(((), _)) => return Err(deadline.missed().into()),
    };
    let mut body = response.bytes_stream();
    loop {
        match select(body.next(), deadline.over.as_mut()).await {
            Either::Left((Some(Ok(bytes)), _)) => {
                if !sound.has_begun() && bytes.starts_with(b"RIFF") {
                    // Its header would be heard as a click, and its numbers as sound.
                    return Err(Fault::Garbage("a sound file instead of samples".to_owned()).into());
                }
                sound.push(&bytes).await?;
                deadline = Deadline::after(limits.between);
            }
            Either::Left((Some(Err(error)), _)) => return Err(Fault::BrokeOff(causes(&error)).into()),
            Either::Left((None, _)) => return Ok(()),
            Either::Right(((), _)) => return Err(deadline.missed().into()),
        }
    }
}
