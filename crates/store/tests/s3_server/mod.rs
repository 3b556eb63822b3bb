//! An S3 of a test's own: buckets in memory, requests refused unless their signature (version 4) is right, lists in short
//! pages, and a switch that takes it away.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

pub(crate) const KEY_ID: &str = "AKIATEST";
pub(crate) const SECRET: &str = "a secret/of+the test";
const MODIFIED: &str = "Mon, 12 Oct 2026 17:50:00 GMT";
/// Keys in one page of a list.
const PAGE: usize = 3;

#[derive(Default)]
struct Kept {
    objects: BTreeMap<String, Bytes>,
    uploads: BTreeMap<String, (String, BTreeMap<u32, Bytes>)>,
    begun: u32,
    away: bool,
}

/// The server; gone with the runtime that started it.
#[derive(Clone)]
pub(crate) struct S3 {
    pub(crate) endpoint: String,
    kept: Arc<Mutex<Kept>>,
}

impl S3 {
    pub(crate) async fn start() -> Self {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&kept));
        let router = router.layer(axum::extract::DefaultBodyLimit::disable());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { endpoint, kept }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap()
    }

    /// Whether it answers; away, it says 503 to everything.
    pub(crate) fn set_away(&self, away: bool) {
        self.kept().away = away;
    }

    /// What is there, with the bucket's name before each key.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.kept().objects.keys().cloned().collect()
    }

    pub(crate) fn object(&self, key: &str) -> Vec<u8> {
        self.kept().objects[key].to_vec()
    }

    /// Uploads in parts that were begun and neither completed nor aborted.
    pub(crate) fn unfinished(&self) -> usize {
        self.kept().uploads.len()
    }
}

async fn answer(
    State(kept): State<Arc<Mutex<Kept>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut kept = kept.lock().unwrap();
    if kept.away {
        return fault(StatusCode::SERVICE_UNAVAILABLE, "SlowDown");
    }
    if let Err(why) = signed(&method, &uri, &headers, &body) {
        eprintln!("S3: {method} {uri}: {why}");
        return fault(StatusCode::FORBIDDEN, "SignatureDoesNotMatch");
    }
    let key = decoded(uri.path().trim_start_matches('/'));
    let query: BTreeMap<String, String> = pairs(uri.query().unwrap_or_default());
    match (method.as_str(), query.get("uploadId"), query.contains_key("uploads")) {
        ("POST", None, true) => kept.begin(key),
        ("PUT", Some(id), _) => kept.part(id, query["partNumber"].parse().unwrap(), body),
        ("POST", Some(id), _) => kept.complete(id),
        ("DELETE", Some(id), _) => {
            kept.uploads.remove(id);
            StatusCode::NO_CONTENT.into_response()
        }
        ("PUT", None, _) => {
            kept.objects.insert(key, body);
            [(header::ETAG, "\"1\"")].into_response()
        }
        ("GET", None, _) if query.contains_key("list-type") => kept.list(&key, &query),
        ("GET" | "HEAD", None, _) => kept.get(&key, &headers, method == Method::HEAD),
        ("DELETE", None, _) => {
            kept.objects.remove(&key);
            StatusCode::NO_CONTENT.into_response()
        }
        other => panic!("{other:?} is not spoken here"),
    }
}

impl Kept {
    fn begin(&mut self, key: String) -> Response {
        self.begun += 1;
        let id = format!("upload{}", self.begun);
        self.uploads.insert(id.clone(), (key, BTreeMap::new()));
        xml(&format!(
            "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
        ))
    }

    fn part(&mut self, id: &str, number: u32, body: Bytes) -> Response {
        let Some((_, parts)) = self.uploads.get_mut(id) else {
            return fault(StatusCode::NOT_FOUND, "NoSuchUpload");
        };
        parts.insert(number, body);
        [(header::ETAG, format!("\"part{number}\""))].into_response()
    }

    fn complete(&mut self, id: &str) -> Response {
        let Some((key, parts)) = self.uploads.remove(id) else {
            return fault(StatusCode::NOT_FOUND, "NoSuchUpload");
        };
        let last = parts.len();
        let short = parts.values().take(last - 1).any(|part| part.len() < 5 * 1024 * 1024);
        assert!(!short, "S3 takes no parts below 5 MiB but the last");
        self.objects.insert(key, parts.into_values().flatten().collect());
        xml("<CompleteMultipartUploadResult><ETag>\"1\"</ETag></CompleteMultipartUploadResult>")
    }

    fn get(&self, key: &str, headers: &HeaderMap, head: bool) -> Response {
        let Some(object) = self.objects.get(key) else { return fault(StatusCode::NOT_FOUND, "NoSuchKey") };
        let common = [(header::ETAG, "\"1\"".to_owned()), (header::LAST_MODIFIED, MODIFIED.to_owned())];
        if head {
            return (common, [(header::CONTENT_LENGTH, object.len().to_string())]).into_response();
        }
        let Some(range) = headers.get(header::RANGE) else { return (common, object.clone()).into_response() };
        let (from, to) = range.to_str().unwrap().strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse::<usize>().unwrap() + 1);
        let said = format!("bytes {from}-{}/{}", to - 1, object.len());
        let part = object.slice(from..to);
        (StatusCode::PARTIAL_CONTENT, common, [(header::CONTENT_RANGE, said)], part).into_response()
    }

    fn list(&self, bucket: &str, query: &BTreeMap<String, String>) -> Response {
        let bucket = format!("{}/", bucket.trim_end_matches('/'));
        let prefix = query.get("prefix").cloned().unwrap_or_default();
        let after = query.get("continuation-token").cloned().unwrap_or_default();
        let keys = self.objects.iter().filter_map(|(key, object)| {
            let key = key.strip_prefix(&bucket)?;
            (key.starts_with(&prefix) && key > after.as_str()).then_some((key, object.len()))
        });
        let found: Vec<_> = keys.collect();
        let page = &found[..found.len().min(PAGE)];
        let mut text = format!("<ListBucketResult><IsTruncated>{}</IsTruncated>", found.len() > PAGE);
        if found.len() > PAGE {
            let last = page.last().unwrap().0;
            write!(text, "<NextContinuationToken>{last}</NextContinuationToken>").unwrap();
        }
        for (key, size) in page {
            write!(
                text,
                "<Contents><Key>{key}</Key><LastModified>2026-10-12T17:50:00.000Z</LastModified>\
                 <ETag>\"1\"</ETag><Size>{size}</Size></Contents>"
            )
            .unwrap();
        }
        xml(&(text + "</ListBucketResult>"))
    }
}

fn xml(text: &str) -> Response {
    ([(header::CONTENT_TYPE, "application/xml")], text.to_owned()).into_response()
}

fn fault(status: StatusCode, code: &str) -> Response {
    (status, xml(&format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>"))).into_response()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let hex: String = rest.by_ref().take(2).map(char::from).collect();
            bytes.push(u8::from_str_radix(&hex, 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn pairs(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(k, v)| (decoded(k), decoded(v)))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn keyed(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Signature version 4, as AWS describes it.
fn signed(method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Result<(), String> {
    let header = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.map(str::trim).ok_or_else(|| format!("no {name}"))
    };
    let authorization = header("authorization")?;
    let rest = authorization.strip_prefix("AWS4-HMAC-SHA256 ").ok_or("another signature")?;
    let field = |name: &str| {
        let fields = rest.split(',').filter_map(|field| field.trim().split_once('='));
        fields.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value).ok_or(format!("no {name}"))
    };
    let (credential, names, signature) = (field("Credential")?, field("SignedHeaders")?, field("Signature")?);
    let scope = credential.strip_prefix(&format!("{KEY_ID}/")).ok_or("another key")?;
    let [date, region, service, end] = scope.split('/').collect::<Vec<_>>()[..] else {
        return Err("no scope".to_owned());
    };
    let payload = header("x-amz-content-sha256")?;
    if payload != "UNSIGNED-PAYLOAD" && payload != hex(&Sha256::digest(body)) {
        return Err("the body is another".to_owned());
    }
    for needed in ["host", "x-amz-content-sha256", "x-amz-date"] {
        if !names.split(';').any(|name| name == needed) {
            return Err(format!("{needed} is not signed"));
        }
    }
    let mut query: Vec<String> = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") })
        .collect();
    query.sort();
    let mut canonical = format!("{method}\n{}\n{}\n", uri.path(), query.join("&"));
    for name in names.split(';') {
        writeln!(canonical, "{name}:{}", header(name)?).unwrap();
    }
    write!(canonical, "\n{names}\n{payload}").unwrap();
    let text = format!(
        "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
        header("x-amz-date")?,
        hex(&Sha256::digest(canonical.as_bytes()))
    );
    let mut key = keyed(format!("AWS4{SECRET}").as_bytes(), date);
    for part in [region, service, end] {
        key = keyed(&key, part);
    }
    if hex(&keyed(&key, &text)) == signature {
        Ok(())
    } else {
        Err(format!("wrong signature of\n{canonical}"))
    }
}
