//! WebSockets to vendors: opened with the key in a header, small messages sent at once.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use reqwest::Url;
use reqwest::header::HeaderValue;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::http::Response;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::{ApiKey, Deadline, Fault, Service, cleared, from_status, install_crypto};

/// Largest message that is taken: seconds of sound in base64, with room.
const MOST_MESSAGE: usize = 4 * 1024 * 1024;

/// What a connection is opened with.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(crate) url: Url,
    /// Headers of the upgrade request, the key among them.
    pub(crate) headers: Vec<(&'static str, HeaderValue)>,
    pub(crate) key: Option<ApiKey>,
    pub(crate) open_within: Duration,
}

/// An open connection.
pub(crate) struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    key: Option<ApiKey>,
}

/// What came in.
#[derive(Debug)]
pub(crate) enum Received {
    /// JSON, in most cases.
    Text(String),
    /// Something else: no vendor here sends any.
    Bytes,
}

impl Door {
    /// That of a service.
    pub(crate) fn new(
        service: &Service,
        url: Url,
        headers: impl IntoIterator<Item = (&'static str, HeaderValue)>,
    ) -> Self {
        let (key, open_within) = (service.key.clone(), service.limits.connect);
        Self { url, headers: headers.into_iter().collect(), key, open_within }
    }

    /// Opens the connection, or says why it does not open.
    pub(crate) async fn open(&self) -> Result<Socket, Fault> {
        install_crypto();
        let mut request = self.url.as_str().into_client_request().map_err(|error| self.unopened(error))?;
        for (name, value) in &self.headers {
            request.headers_mut().insert(*name, value.clone());
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(MOST_MESSAGE))
            .max_frame_size(Some(MOST_MESSAGE));
        let mut deadline = Deadline::after(self.open_within);
        tokio::select! {
            opened = connect_async_with_config(request, Some(config), true) => match opened {
                Ok((stream, _)) => Ok(Socket { stream, key: self.key.clone() }),
                Err(error) => Err(self.unopened(error)),
            },
            () = deadline.over.as_mut() => Err(deadline.missed()),
        }
    }

    fn unopened(&self, error: Error) -> Fault {
        if let Error::Http(response) = error {
            return self.refusal(&response);
        }
        let reason = cleared(&error.to_string(), self.key.as_ref());
        Fault::Unreachable { url: shown(&self.url), reason }
    }

    fn refusal(&self, response: &Response<Option<Vec<u8>>>) -> Fault {
        let body = response.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let seconds =
            response.headers().get("retry-after").and_then(|v| v.to_str().ok()?.trim().parse().ok());
        from_status(response.status(), seconds.map(Duration::from_secs), &body, self.key.as_ref())
    }
}

/// The address without what stands behind the question mark: that is long, and no part of where it is.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

impl Socket {
    /// Sends JSON.
    pub(crate) async fn send_text(&mut self, text: String) -> Result<(), Fault> {
        self.send(Message::Text(text.into())).await
    }

    /// Sends sound.
    pub(crate) async fn send_bytes(&mut self, bytes: Vec<u8>) -> Result<(), Fault> {
        self.send(Message::Binary(bytes.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Fault> {
        self.stream.send(message).await.map_err(|error| self.broken(&error))
    }

    /// The next message; `None` when the other side closed in good order.
    pub(crate) async fn receive(&mut self) -> Result<Option<Received>, Fault> {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => return Ok(Some(Received::Text(text.to_string()))),
                Some(Ok(Message::Binary(_))) => return Ok(Some(Received::Bytes)),
                Some(Ok(Message::Close(frame))) => return self.closed(frame),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Err(error)) => return Err(self.broken(&error)),
                None => return Ok(None),
            }
        }
    }

    /// A close frame: some vendors say in it what went wrong.
    fn closed(&self, frame: Option<CloseFrame>) -> Result<Option<Received>, Fault> {
        let Some(frame) = frame else { return Ok(None) };
        let code = u16::from(frame.code);
        let words = cleared(frame.reason.as_str(), self.key.as_ref());
        match code {
            1000 | 1001 | 1005 => Ok(None),
            1008 if words.to_lowercase().contains("auth") => Err(Fault::Unauthorised(words)),
            // The codes of vendors that map HTTP's statuses: 4001 or 4401 for 401.
            4001 | 4401 | 4003 | 4403 => Err(Fault::Unauthorised(words)),
            4029 | 4429 => Err(Fault::RateLimited { retry_after: None }),
            _ => Err(Fault::BrokeOff(
                format!("the connection was closed ({code}) {words}").trim_end().to_owned(),
            )),
        }
    }

    fn broken(&self, error: &Error) -> Fault {
        if matches!(error, Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) {
            return Fault::BrokeOff("the connection was cut".to_owned());
        }
        let words = cleared(&error.to_string(), self.key.as_ref());
        let is_rubbish = matches!(error, Error::Utf8(_) | Error::Capacity(_) | Error::Protocol(_));
        if is_rubbish { Fault::Garbage(words) } else { Fault::BrokeOff(words) }
    }
}
