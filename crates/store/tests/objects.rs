//! Objects in a folder and in an S3 of the test's own: the same for both.

#![cfg(feature = "objects")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

mod s3_server;

use std::process::Command;

use futures::TryStreamExt;
use s3_server::{KEY_ID, S3, SECRET};
use sayback_store::{Objects, ObjectsError};

/// Credentials are taken from the environment, which belongs to the whole process: so a test that needs them runs in a
/// process of its own.
const CHILD: &str = "SAYBACK_OBJECTS_ENDPOINT";

async fn read(objects: &Objects, key: &str, part: Option<std::ops::Range<u64>>) -> Vec<u8> {
    let pieces: Vec<Vec<u8>> = objects.read(key, part).await.unwrap().try_collect().await.unwrap();
    pieces.concat()
}

/// More than two pieces, so that it goes in parts.
fn large() -> Vec<u8> {
    (0..11_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// What every place for objects does.
async fn conform(objects: &Objects) {
    assert_eq!(objects.list("index").await.unwrap(), []);
    assert_eq!((objects.size("calls/a/x").await, objects.get("calls/a/x", 10).await), (Ok(None), Ok(None)));
    assert!(matches!(objects.read("calls/a/x", None).await, Err(ObjectsError::Away { .. })));
    objects.put("calls/a/x", b"first".to_vec()).await.unwrap();
    objects.put("calls/a/x", b"second one".to_vec()).await.unwrap();
    assert_eq!(objects.get("calls/a/x", 10).await.unwrap().unwrap(), b"second one");
    let more = objects.get("calls/a/x", 9).await.unwrap_err().to_string();
    assert!(more.contains("more than it may"), "{more}");
    assert_eq!(read(objects, "calls/a/x", Some(2..5)).await, b"con");
    objects.put("calls/empty", Vec::new()).await.unwrap();
    assert_eq!(objects.size("calls/empty").await, Ok(Some(0)));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sound");
    std::fs::write(&file, large()).unwrap();
    objects.put_file("calls/a/sound", &file).await.unwrap();
    assert_eq!(objects.size("calls/a/sound").await, Ok(Some(11_000_000)));
    assert!(read(objects, "calls/a/sound", None).await == large(), "byte for byte");
    assert_eq!(
        read(objects, "calls/a/sound", Some(5_242_870..5_242_890)).await,
        large()[5_242_870..5_242_890]
    );
    let absent = objects.put_file("calls/a/none", &folder.path().join("none")).await.unwrap_err();
    assert!(matches!(absent, ObjectsError::File { .. }), "{absent}");
    for n in 0..8 {
        objects.put(&format!("index/{n}.json"), vec![0; n]).await.unwrap();
    }
    let mut listed = objects.list("index").await.unwrap();
    listed.sort_by(|a, b| a.key.cmp(&b.key));
    let keys: Vec<_> = listed.iter().map(|one| (one.key.clone(), one.size)).collect();
    assert_eq!(keys, (0..8).map(|n| (format!("index/{n}.json"), n)).collect::<Vec<_>>());
    assert!(listed.iter().all(|one| one.put_ms > 1_700_000_000_000), "{listed:?}");
}

#[tokio::test]
async fn a_folder_keeps_objects() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("recordings");
    let objects = Objects::open(below.to_str().unwrap(), None).unwrap();
    conform(&objects).await;
    assert_eq!(std::fs::read(below.join("calls/a/x")).unwrap(), b"second one");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_s3_keeps_objects_below_its_prefix_and_checks_who_asks() {
    if let Ok(endpoint) = std::env::var(CHILD) {
        return conform(&Objects::open("s3://bucket/some/where/", Some(&endpoint)).unwrap()).await;
    }
    let s3 = S3::start().await;
    let child = |secret: &str| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "an_s3_keeps_objects_below_its_prefix_and_checks_who_asks", "--nocapture"]);
        child.env(CHILD, &s3.endpoint);
        child.env("AWS_ACCESS_KEY_ID", KEY_ID).env("AWS_SECRET_ACCESS_KEY", secret);
        child.env("AWS_REGION", "eu-test-1").env_remove("AWS_SESSION_TOKEN");
        tokio::task::spawn_blocking(move || child.output().unwrap())
    };
    let output = child(SECRET).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(s3.object("bucket/some/where/calls/a/x"), b"second one");
    assert!(s3.keys().iter().all(|key| key.starts_with("bucket/some/where/")), "{:?}", s3.keys());
    assert_eq!(s3.unfinished(), 0, "an upload is completed or aborted");
    let refused = child("another secret").await.unwrap();
    assert!(!refused.status.success(), "whoever cannot sign gets nothing");
    let said = String::from_utf8_lossy(&refused.stdout) + String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("SignatureDoesNotMatch") && !said.contains("another secret"), "{said}");
    s3.set_away(true);
    let away = child(SECRET).await.unwrap();
    let said = String::from_utf8_lossy(&away.stdout) + String::from_utf8_lossy(&away.stderr);
    assert!(!away.status.success() && said.contains("Away") && said.contains("503"), "{said}");
}

#[test]
fn a_place_that_is_none_is_told() {
    for (address, endpoint, says) in [
        ("s3://", None, "no bucket"),
        ("s3:///prefix", None, "no bucket"),
        ("gs://bucket", None, "only s3://"),
        ("s3://bucket/a//b", None, "empty"),
        ("folder", Some("http://x"), "no endpoint"),
        ("/proc/nowhere", None, "no place for objects"),
    ] {
        let error = Objects::open(address, endpoint).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("s3://BUCKET/PREFIX"), "{address}: {error}");
    }
}
