//! Objects: files that are written once, under a name, in a folder or in a store that speaks S3.
//!
//! What is put is there whole or not at all. Credentials are taken from the environment by the names that AWS gives them,
//! and no message holds one.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{
    BackoffConfig, ClientOptions, GetOptions, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig,
    WriteMultipart,
};

/// A file is sent in pieces of this many bytes, as few as S3 takes: one is held in memory at a time.
const PIECE: usize = 5 * 1024 * 1024;
/// How long one request may take; one that makes no progress is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Whoever wants an object waits; whoever puts one comes again later. So each tries only briefly by itself.
const TRIES: usize = 2;

/// Why objects could not be kept or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectsError {
    /// The address is none.
    #[error("{address:?} is no place for objects: {reason}; write \"s3://BUCKET/PREFIX\" or a folder")]
    Address {
        /// What was written.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The store is not there, or did not do it.
    #[error("{place}: {reason}")]
    Away {
        /// The store.
        place: String,
        /// What was said.
        reason: String,
    },
    /// A file of ours cannot be read.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        reason: String,
    },
}

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// Its name below the place.
    pub key: String,
    /// How many bytes it has.
    pub size: u64,
    /// When it was put, in milliseconds since 1970.
    pub put_ms: u64,
}

/// Bytes of an object, piece by piece.
pub type ObjectBytes = futures::stream::BoxStream<'static, std::io::Result<Vec<u8>>>;

/// A place for objects. Clones share it.
#[derive(Clone, Debug)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    below: Key,
    shown: String,
}

impl Objects {
    /// A place: `s3://BUCKET/PREFIX`, or the path of a folder, which is made if it is not there. `endpoint` is where S3
    /// is spoken if it is not AWS; in the clear only if it begins with `http://`. Credentials and region come from
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` and `AWS_REGION`, or from the machine's role.
    /// Nothing is asked of the store yet.
    ///
    /// # Errors
    /// The address is none, or the folder cannot be made.
    pub fn open(address: &str, endpoint: Option<&str>) -> Result<Self, ObjectsError> {
        let wrong = |reason: String| ObjectsError::Address { address: address.to_owned(), reason };
        if let Some(rest) = address.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() {
                return Err(wrong("it names no bucket".to_owned()));
            }
            let below = Key::parse(prefix.trim_matches('/')).map_err(|error| wrong(error.to_string()))?;
            let store = s3(bucket, endpoint).map_err(|error| wrong(chain(&error)))?;
            return Ok(Self { store: Arc::new(store), below, shown: address.to_owned() });
        }
        if address.contains("://") {
            return Err(wrong("only s3:// is known".to_owned()));
        }
        if endpoint.is_some() {
            return Err(wrong("a folder has no endpoint".to_owned()));
        }
        std::fs::create_dir_all(address).map_err(|error| wrong(error.to_string()))?;
        // What is gone from elsewhere because it is here must be on the disk.
        let store = LocalFileSystem::new_with_prefix(address).map_err(|error| wrong(chain(&error)))?;
        let store = Arc::new(store.with_fsync(true));
        Ok(Self { store, below: Key::default(), shown: address.to_owned() })
    }

    /// Which place it is.
    pub fn name(&self) -> &str {
        &self.shown
    }

    /// Puts an object, in place of one that has its name.
    ///
    /// # Errors
    /// It is not there, or that is not known.
    pub async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), ObjectsError> {
        let put = self.store.put(&self.key(key)?, PutPayload::from(bytes)).await;
        put.map(drop).map_err(|error| self.away(&error))
    }

    /// Puts a file as an object.
    ///
    /// # Errors
    /// The file cannot be read, or the object is not there, or that is not known.
    pub async fn put_file(&self, key: &str, path: &Path) -> Result<(), ObjectsError> {
        use tokio::io::AsyncReadExt;
        let unread = |error: std::io::Error| ObjectsError::File {
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        let mut file = tokio::fs::File::open(path).await.map_err(unread)?;
        let length = file.metadata().await.map_err(unread)?.len();
        if length <= PIECE as u64 {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).await.map_err(unread)?;
            return self.put(key, bytes).await;
        }
        let upload = self.store.put_multipart(&self.key(key)?).await.map_err(|error| self.away(&error))?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PIECE);
        let mut piece = vec![0; 64 * 1024];
        loop {
            upload.wait_for_capacity(1).await.map_err(|error| self.away(&error))?;
            match file.read(&mut piece).await {
                Ok(0) => break,
                Ok(read) => upload.write(&piece[..read]),
                Err(error) => {
                    // What was sent of it would be paid for.
                    let _ = upload.abort().await;
                    return Err(unread(error));
                }
            }
        }
        upload.finish().await.map(drop).map_err(|error| self.away(&error))
    }

    /// How many bytes an object has; `None` if there is none of that name.
    ///
    /// # Errors
    /// The store is not there.
    pub async fn size(&self, key: &str) -> Result<Option<u64>, ObjectsError> {
        match self.store.head(&self.key(key)?).await {
            Ok(found) => Ok(Some(found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.away(&error)),
        }
    }

    /// Part of an object, or all of it.
    ///
    /// # Errors
    /// The store is not there, or has none of that name.
    pub async fn read(&self, key: &str, part: Option<Range<u64>>) -> Result<ObjectBytes, ObjectsError> {
        let options = GetOptions { range: part.map(Into::into), ..GetOptions::default() };
        let got = self.store.get_opts(&self.key(key)?, options).await.map_err(|error| self.away(&error))?;
        let bytes = got.into_stream().map(|piece| piece.map(Vec::from).map_err(std::io::Error::other));
        Ok(bytes.boxed())
    }

    /// An object as a whole; `None` if there is none of that name.
    ///
    /// # Errors
    /// The store is not there, or the object is larger than `most` bytes.
    pub async fn get(&self, key: &str, most: u64) -> Result<Option<Vec<u8>>, ObjectsError> {
        let got = match self.store.get(&self.key(key)?).await {
            Ok(got) => got,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.away(&error)),
        };
        if got.meta.size > most {
            let reason = format!("{key} has {} bytes, more than it may", got.meta.size);
            return Err(ObjectsError::Away { place: self.shown.clone(), reason });
        }
        got.bytes().await.map(|bytes| Some(Vec::from(bytes))).map_err(|error| self.away(&error))
    }

    /// All objects whose names are below `under`.
    ///
    /// # Errors
    /// The store is not there.
    pub async fn list(&self, under: &str) -> Result<Vec<ListedObject>, ObjectsError> {
        let under = self.key(under)?;
        let found: Vec<_> =
            self.store.list(Some(&under)).try_collect().await.map_err(|error| self.away(&error))?;
        let listed = found.into_iter().filter_map(|found| {
            let parts = found.location.prefix_match(&self.below)?;
            let key = parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/");
            let put_ms = u64::try_from(found.last_modified.timestamp_millis()).unwrap_or(0);
            Some(ListedObject { key, size: found.size, put_ms })
        });
        Ok(listed.collect())
    }

    fn key(&self, key: &str) -> Result<Key, ObjectsError> {
        let wrong = |error: object_store::path::Error| ObjectsError::Address {
            address: key.to_owned(),
            reason: error.to_string(),
        };
        let key = Key::parse(key).map_err(wrong)?;
        Ok(self.below.parts().chain(key.parts()).collect())
    }

    fn away(&self, error: &object_store::Error) -> ObjectsError {
        ObjectsError::Away { place: self.shown.clone(), reason: chain(error) }
    }
}

fn s3(bucket: &str, endpoint: Option<&str>) -> Result<impl ObjectStore, object_store::Error> {
    // A second one would be refused, and the first is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = ClientOptions::new()
        .with_timeout(PATIENCE)
        .with_connect_timeout(Duration::from_secs(5))
        .with_allow_http(endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")));
    let backoff = BackoffConfig { init_backoff: Duration::from_millis(200), ..BackoffConfig::default() };
    let retry = RetryConfig { max_retries: TRIES, retry_timeout: Duration::from_secs(20), backoff };
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
    builder = builder.with_client_options(options);
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
    }
    builder.build()
}

/// An error with what caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = next.source();
    }
    text.replace('\n', " ")
}
