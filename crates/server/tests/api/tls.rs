//! TLS of the HTTP API, with an authority of the test's own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sayback_rig::Authority;
use sayback_runtime::approvals::ApprovalQueue;
use sayback_server::{Access, Role, Tls, TlsFiles, router, serve_tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{api, board, token};

fn issued(authority: &Authority, name: &str) -> TlsFiles {
    let (certificate, key) = authority.issue(name);
    TlsFiles { certificate, key }
}

fn client(authority: &Authority) -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let root = reqwest::Certificate::from_pem(&std::fs::read(authority.root()).unwrap()).unwrap();
    // Each request on a connection of its own.
    let client = reqwest::Client::builder().tls_certs_only([root]).pool_max_idle_per_host(0);
    client.timeout(Duration::from_secs(30)).build().unwrap()
}

async fn start(files: TlsFiles) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let access = Arc::new(Access::new(vec![token("ops", &[Role::Read])], address).unwrap());
    let routes = router(api(&board(), access, ApprovalQueue::default()), axum::Router::new());
    tokio::spawn(serve_tls(listener, Tls::new(files).unwrap(), routes, std::future::pending()));
    address
}

/// Waits until a file written now has another time of change than the one before it.
fn replace(from: &Path, to: &Path) {
    std::fs::copy(from, to).unwrap();
    let later = std::fs::metadata(to).unwrap().modified().unwrap() + Duration::from_secs(5);
    std::fs::File::options().append(true).open(to).unwrap().set_modified(later).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_trusts_the_authority_is_served_and_nobody_in_the_clear() {
    let Some(authority) = Authority::new() else { return };
    let address = start(issued(&authority, "server")).await;
    // Somebody who connects and says nothing holds nobody up.
    let _silent = TcpStream::connect(address).await.unwrap();
    let client = client(&authority);
    let url = format!("https://{address}/v1/calls");
    let answer = client.get(&url).bearer_auth("ops").send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    assert_eq!(client.get(&url).send().await.unwrap().status().as_u16(), 401);
    let stranger = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
    assert!(stranger.get(&url).send().await.is_err(), "another authority is not trusted");
    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut told = Vec::new();
    // Closed, or reset: nothing of HTTP either way.
    let _ = tokio::time::timeout(Duration::from_secs(30), plain.read_to_end(&mut told)).await.unwrap();
    assert!(!told.starts_with(b"HTTP"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_used_at_once_and_a_broken_one_is_not() {
    let Some(authority) = Authority::new() else { return };
    let first = issued(&authority, "first");
    let used = TlsFiles {
        certificate: authority.folder().join("used.pem"),
        key: authority.folder().join("used.key"),
    };
    std::fs::copy(&first.certificate, &used.certificate).unwrap();
    std::fs::copy(&first.key, &used.key).unwrap();
    let address = start(used.clone()).await;
    let serial = || {
        let told = std::process::Command::new("openssl")
            .args(["s_client", "-connect", &address.to_string(), "-servername", "localhost"])
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        ["first", "second"]
            .into_iter()
            .find(|name| told.contains(&format!("CN = {name}")) || told.contains(&format!("CN={name}")))
    };
    assert_eq!(serial(), Some("first"));
    let second = issued(&authority, "second");
    replace(&second.certificate, &used.certificate);
    // Between the one file and the other nothing fits together, and the first goes on.
    assert_eq!(serial(), Some("first"));
    replace(&second.key, &used.key);
    assert_eq!(serial(), Some("second"));
    std::fs::write(&used.certificate, "nothing").unwrap();
    assert_eq!(serial(), Some("second"));
    let answer = client(&authority).get(format!("https://{address}/healthz")).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "ok\n");
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_name() {
    let Some(authority) = Authority::new() else { return };
    let (one, other) = (issued(&authority, "one"), issued(&authority, "other"));
    let empty = authority.folder().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let absent = authority.folder().join("absent.pem");
    let files = |certificate: &Path, key: &Path| TlsFiles {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    };
    for (files, says) in [
        (files(&absent, &one.key), "absent.pem: cannot be read"),
        (files(&one.certificate, &absent), "absent.pem: cannot be read"),
        (files(&empty, &one.key), "empty.pem: there is no certificate in it"),
        (files(&one.key, &one.certificate), "one.key: there is no certificate in it"),
        (files(&one.certificate, &one.certificate), "one.pem: there is no private key in it"),
        (files(&one.certificate, &other.key), "other.key cannot be used together"),
    ] {
        let error = Tls::new(files.clone()).unwrap_err().to_string();
        assert!(error.contains(says), "{files:?}: {error}");
    }
}
