//! Bodies of requests: JSON objects, and nothing that could be taken for one.

use std::fmt;
use std::marker::PhantomData;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use futures::StreamExt;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::Problem;

/// An object of fields with names. The derived readers also take a list of values without names, in the order of the
/// fields, so that `[true]` would approve what `{"confirmed": true}` approves; this takes the second only.
#[derive(Debug, Default)]
pub(crate) struct Object<T>(pub(crate) T);

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields(PhantomData))
    }
}

/// A body that is a JSON object.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        is_json(request.headers())?;
        let bytes = whole(request).await?;
        read(&bytes).map(|Object(body)| Self(body))
    }
}

/// A body that is a JSON object, or nothing at all, or `null`.
#[derive(Debug)]
pub(crate) struct MaybeBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for MaybeBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let typed = is_json(request.headers());
        let bytes = whole(request).await?;
        if bytes.trim_ascii().is_empty() {
            return Ok(Self(T::default()));
        }
        typed?;
        let read: Option<Object<T>> = read(&bytes)?;
        Ok(Self(read.map_or_else(T::default, |Object(body)| body)))
    }
}

/// Refuses a body of another type.
pub(crate) fn wants_type(
    headers: &HeaderMap,
    wanted: &'static str,
    kind: &'static str,
) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let given = given.split(';').next().unwrap_or_default().trim();
    if given.eq_ignore_ascii_case(wanted) {
        return Ok(());
    }
    let detail = format!("send Content-Type: {wanted}");
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, kind, detail))
}

fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    wants_type(headers, "application/json", "json-wanted")
}

/// How many bytes of a body a route takes, where that is not what all take; put beside a request by the route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Largest(pub(crate) usize);

/// What is read and thrown away of a body that is too large. A connection that is closed over unread bytes is reset, and
/// the answer that says why would be lost with it.
const THROWN_AWAY: usize = 8 * 1024 * 1024;

async fn whole(request: Request) -> Result<Bytes, Problem> {
    let largest = request.extensions().get().map_or(crate::LARGEST, |Largest(bytes)| *bytes);
    let mut pieces = request.into_body().into_data_stream();
    let (mut kept, mut length) = (Vec::new(), 0_usize);
    while let Some(piece) = pieces.next().await {
        let piece =
            piece.map_err(|error| Problem::bad("bad-body", format!("the body broke off: {error}")))?;
        length = length.saturating_add(piece.len());
        if length <= largest {
            kept.extend_from_slice(&piece);
        } else if length > THROWN_AWAY {
            break;
        }
    }
    if length > largest {
        let detail = "a body has at most 64 KiB, and 1 MiB where the ledger takes it";
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail));
    }
    Ok(kept.into())
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes)
        .map_err(|error| Problem::bad("bad-body", format!("the body cannot be taken: {error}")))
}
