//! The way to a database over TLS, with an authority of the test's own and a database that takes nobody in the clear.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use sayback_rig::Authority;
use sayback_store::Postgres;

use crate::postgres_server::{NOBODY, Server, installed, is_root};

/// A database on a port, which takes connections over TLS only, if it has a certificate.
fn start(authority: &Authority, tls: bool) -> (Server, u16) {
    let (certificate, key) = authority.issue("database");
    let rules = authority.folder().join("hba.conf");
    let kind = if tls { "hostssl" } else { "host" };
    std::fs::write(&rules, format!("{kind} all all 127.0.0.0/8 trust\nlocal all all trust\n")).unwrap();
    std::fs::set_permissions(authority.folder(), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    for path in [certificate.as_path(), &key, &rules] {
        if is_root(Path::new("/proc/self")) {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    // Free for a moment is as good as can be had.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut settings = vec![
        "fsync=off".to_owned(),
        "listen_addresses=127.0.0.1,127.0.0.2".to_owned(),
        format!("port={port}"),
        format!("hba_file={}", rules.display()),
    ];
    if tls {
        settings.push("ssl=on".to_owned());
        settings.push(format!("ssl_cert_file={}", certificate.display()));
        settings.push(format!("ssl_key_file={}", key.display()));
    }
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    (Server::start(&settings), port)
}

fn url(host: &str, port: u16, mode: &str) -> String {
    format!("postgres://sayback:a-password@{host}:{port}/postgres?sslmode={mode}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_reached_over_tls_by_whoever_trusts_its_authority_and_by_nobody_else() {
    if !installed() {
        return;
    }
    let (Some(authority), Some(other)) = (Authority::new(), Authority::new()) else { return };
    let (_server, port) = start(&authority, true);
    let database = Postgres::open(&url("127.0.0.1", port, "require"), Some(&authority.root())).await.unwrap();
    crate::suite::run(std::sync::Arc::new(database.ledger())).await;
    for (url, ca, why) in [
        (url("127.0.0.1", port, "require"), None, "the system does not know the authority"),
        (url("127.0.0.1", port, "require"), Some(other.root()), "another authority"),
        (url("127.0.0.2", port, "require"), Some(authority.root()), "the name is another one"),
        (url("127.0.0.1", port, "disable"), Some(authority.root()), "in the clear"),
    ] {
        let error = Postgres::open(&url, ca.as_deref()).await.unwrap_err().to_string();
        assert!(!error.contains("a-password"), "{why}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_tls_is_not_reached_where_tls_is_asked_for() {
    if !installed() {
        return;
    }
    let Some(authority) = Authority::new() else { return };
    let (_server, port) = start(&authority, false);
    let refused = Postgres::open(&url("127.0.0.1", port, "require"), Some(&authority.root())).await;
    let error = refused.unwrap_err().to_string();
    assert!(!error.contains("a-password"), "{error}");
    assert!(Postgres::open(&url("127.0.0.1", port, "disable"), None).await.is_ok(), "it is there");
}
