//! TLS of the HTTP side. The certificate is read again when its files change, so that a renewed one needs no new start.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::server::TlsStream;

/// How long a connection may take to agree on keys.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Connections that do so at the same time; more wait to be taken.
const AT_ONCE: usize = 512;

/// Where a certificate and its key are, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and those between it and an authority, in this order.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: cannot be read: {error}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// There is no certificate in the file.
    #[error("{}: there is no certificate in it; it begins with -----BEGIN CERTIFICATE-----", .0.display())]
    NoCertificate(PathBuf),
    /// There is no key in the file.
    #[error(
        "{}: there is no private key in it; it begins with -----BEGIN PRIVATE KEY----- and has no passphrase",
        .0.display()
    )]
    NoKey(PathBuf),
    /// They are no pair, or of a kind that is not known.
    #[error("{} and {} cannot be used together: {reason}", certificate.display(), key.display())]
    NoPair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        reason: String,
    },
}

impl TlsFiles {
    /// The pair as it is now.
    ///
    /// # Errors
    /// If it cannot be used.
    fn read(&self) -> Result<CertifiedKey, TlsError> {
        let bytes = |path: &Path| {
            std::fs::read(path).map_err(|error| TlsError::Unreadable { path: path.to_owned(), error })
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes(&self.certificate)?).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| TlsError::NoCertificate(self.certificate.clone()))?;
        let key = PrivateKeyDer::from_pem_slice(&bytes(&self.key)?);
        let key = key.map_err(|_| TlsError::NoKey(self.key.clone()))?;
        CertifiedKey::from_der(chain, key, &default_provider()).map_err(|error| TlsError::NoPair {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            reason: error.to_string(),
        })
    }

    /// What changes when a file does.
    fn state(&self) -> [Option<(SystemTime, u64)>; 2] {
        [&self.certificate, &self.key].map(|path| {
            let data = std::fs::metadata(path).ok()?;
            Some((data.modified().ok()?, data.len()))
        })
    }
}

/// A certificate that was read, and is looked for again at each connection.
#[derive(Debug)]
struct Renewed {
    files: TlsFiles,
    last: Mutex<Last>,
}

#[derive(Debug)]
struct Last {
    state: [Option<(SystemTime, u64)>; 2],
    pair: Arc<CertifiedKey>,
}

impl ResolvesServerCert for Renewed {
    /// The pair as its files are now. While they do not fit together, as between the writing of the one and of the other,
    /// the last good pair goes on.
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let state = self.files.state();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.state != state {
            last.state = state;
            match self.files.read() {
                Ok(pair) => {
                    tracing::info!("{}: a renewed certificate", self.files.certificate.display());
                    last.pair = Arc::new(pair);
                }
                Err(error) => tracing::error!("the last good certificate goes on: {error}"),
            }
        }
        Some(Arc::clone(&last.pair))
    }
}

/// What agrees on keys with whoever connects.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads a certificate and its key.
    ///
    /// # Errors
    /// If they cannot be used.
    pub fn new(files: TlsFiles) -> Result<Self, TlsError> {
        let state = files.state();
        let last = Mutex::new(Last { state, pair: Arc::new(files.read()?) });
        let no_pair = |error: tokio_rustls::rustls::Error| TlsError::NoPair {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
            reason: error.to_string(),
        };
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(no_pair)?;
        let files = files.clone();
        let mut config = config.with_no_client_auth().with_cert_resolver(Arc::new(Renewed { files, last }));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

/// Takes connections once they have agreed on keys. One that takes its time holds no other up.
pub(crate) struct TlsListener {
    listener: TcpListener,
    tls: Tls,
    agreeing: JoinSet<Option<(TlsStream<TcpStream>, SocketAddr)>>,
}

impl TlsListener {
    pub(crate) fn new(listener: TcpListener, tls: Tls) -> Self {
        Self { listener, tls, agreeing: JoinSet::new() }
    }
}

async fn agree(
    tls: Tls,
    stream: TcpStream,
    address: SocketAddr,
) -> Option<(TlsStream<TcpStream>, SocketAddr)> {
    match tokio::time::timeout(HANDSHAKE, tls.0.accept(stream)).await {
        Ok(Ok(stream)) => Some((stream, address)),
        Ok(Err(error)) => {
            tracing::debug!("{address} does not agree on TLS: {error}");
            None
        }
        Err(_) => None,
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                (stream, address) = Listener::accept(&mut self.listener), if self.agreeing.len() < AT_ONCE => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!("a connection keeps Nagle's delay: {error}");
                    }
                    self.agreeing.spawn(agree(self.tls.clone(), stream, address));
                }
                Some(agreed) = self.agreeing.join_next() => {
                    if let Ok(Some(connection)) = agreed {
                        return connection;
                    }
                }
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
