//! How the way to a database is protected.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::PostgresError;

/// Whether TLS is asked for. To another machine it must be said, whichever way.
pub(super) fn needed(config: &Config, shown: &str) -> Result<bool, PostgresError> {
    let (mode, addresses) = (config.get_ssl_mode(), config.get_hostaddrs());
    if mode == SslMode::Require {
        return Ok(true);
    }
    let here = config.get_hosts().iter().all(is_here) && addresses.iter().all(IpAddr::is_loopback);
    // "Prefer" would go on in the clear when somebody on the way says that there is no TLS.
    if mode == SslMode::Disable || here {
        return Ok(false);
    }
    Err(PostgresError::InTheClear { database: shown.to_owned() })
}

fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
    }
}

/// TLS that trusts the system's authorities, and those of a file.
pub(super) fn connector(ca: Option<&Path>) -> Result<MakeRustlsConnect, PostgresError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca {
        let wrong = |reason: String| PostgresError::Authorities { path: path.display().to_string(), reason };
        let certificates = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
        let certificates: Result<Vec<_>, _> = certificates.collect();
        let certificates = certificates.map_err(|error| wrong(error.to_string()))?;
        if roots.add_parsable_certificates(certificates).0 == 0 {
            return Err(wrong("there are none in it".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config
        .map_err(|error| PostgresError::Authorities { path: "TLS".to_owned(), reason: error.to_string() })?;
    Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
}
