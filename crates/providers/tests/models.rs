//! Fetching models: from a server of the test's own, never from outside.
#![cfg(feature = "models")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test or bench that breaks off says where, and prints"
)]

use sayback_providers::models::{Manifest, ModelError, Progress};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

const BODY: &[u8] = b"sixteen bytes ok";
/// SHA-256 of `BODY`.
const SHA: &str = "f04abb2ff302c68ef768c074105b04c4c4bce546c8f33b526cddda7a9698ece8";

/// Serves each connection of a list: how many bytes of the body it sends before it hangs up.
fn serve(cuts: Vec<usize>, body: &'static [u8]) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/model.bin", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let mut requests = Vec::new();
        for cut in cuts {
            let (stream, _) = listener.accept().unwrap();
            requests.push(answer(stream, cut, body));
        }
        requests
    });
    (address, served)
}

fn answer(mut stream: TcpStream, cut: usize, body: &[u8]) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        request.push(byte[0]);
    }
    let request = String::from_utf8(request).unwrap().to_lowercase();
    let from =
        request.lines().find_map(|line| line.strip_prefix("range: bytes=")?.strip_suffix('-')?.parse().ok());
    let start: usize = from.unwrap_or(0);
    let status = if from.is_some() { "206 Partial Content" } else { "200 OK" };
    let mut head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n", body.len() - start);
    if from.is_some() {
        write!(head, "Content-Range: bytes {start}-{}/{}\r\n", body.len() - 1, body.len()).unwrap();
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    stream.write_all(&body[start..cut.min(body.len())]).unwrap();
    request
}

fn manifest(folder: &Path, urls: &[&str]) -> Manifest {
    let mut text = format!(
        "[[model]]\nname = \"m\"\nrole = \"stt\"\nsets = [\"core\"]\nlicence = \"MIT\"\norigin = \"a test\"\n\
         [[model.file]]\nname = \"model.bin\"\nsize = {}\n",
        BODY.len()
    );
    for url in urls {
        write!(text, "[[model.file.source]]\nkind = \"hub\"\nurl = \"{url}\"\nsha256 = \"{SHA}\"\n").unwrap();
    }
    Manifest::parse(&text, folder).unwrap()
}

fn left_over(folder: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != ".lock.part").collect()
}

#[test]
fn a_broken_transfer_goes_on_at_its_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (url, served) = serve(vec![5, 16], BODY);
    let manifest = manifest(folder.path(), &[&url]);
    let mut seen = Vec::new();
    manifest
        .fetch("m", &mut |step| {
            if let Progress::Advanced { done, .. } = step {
                seen.push(done);
            }
        })
        .unwrap();
    let requests = served.join().unwrap();
    assert!(!requests[0].contains("range:") && requests[1].contains("range: bytes=5-"), "{requests:?}");
    assert_eq!(std::fs::read(manifest.path("m").unwrap()).unwrap(), BODY);
    assert!(seen.is_sorted() && seen.last() == Some(&16), "{seen:?}");
    assert_eq!(left_over(folder.path()), ["model.bin"]);
}

#[test]
fn what_an_earlier_run_left_is_not_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.bin.hub.part"), &BODY[..9]).unwrap();
    let (url, served) = serve(vec![16], BODY);
    manifest(folder.path(), &[&url]).fetch("m", &mut |_| {}).unwrap();
    assert!(served.join().unwrap()[0].contains("range: bytes=9-"));
}

#[test]
fn wrong_bytes_are_refused_and_nothing_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (url, served) = serve(vec![16], b"sixteen bytes no");
    let error = manifest(folder.path(), &[&url]).fetch("m", &mut |_| {}).unwrap_err();
    served.join().unwrap();
    assert!(
        matches!(&error, ModelError::Checksum { file, expected, .. } if file == "model.bin" && expected == SHA),
        "{error}"
    );
    assert_eq!(left_over(folder.path()), [""; 0]);
}

#[test]
fn the_next_source_is_asked_when_one_is_silent_or_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (wrong, served_wrong) = serve(vec![16], b"sixteen bytes no");
    let (right, served_right) = serve(vec![16], BODY);
    let manifest = manifest(folder.path(), &[&format!("http://{closed}/model.bin"), &wrong, &right]);
    let mut reasons = Vec::new();
    manifest
        .fetch("m", &mut |step| {
            if let Progress::Failed { reason, .. } = step {
                reasons.push(reason.to_owned());
            }
        })
        .unwrap();
    served_wrong.join().unwrap();
    served_right.join().unwrap();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(manifest.is_present("m").unwrap());
    manifest.verify("m").unwrap();
}

#[test]
fn a_whole_file_is_not_fetched_and_a_spoilt_one_is() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.bin"), b"spoilt as it is!").unwrap();
    let (url, served) = serve(vec![16], BODY);
    let manifest = manifest(folder.path(), &[&url]);
    assert!(manifest.is_present("m").unwrap() && manifest.verify("m").is_err());
    manifest.fetch("m", &mut |_| {}).unwrap();
    served.join().unwrap();
    let mut steps = 0;
    manifest
        .fetch("m", &mut |step| {
            steps += 1;
            assert_eq!(step, Progress::Present { file: "model.bin" });
        })
        .unwrap();
    assert_eq!(steps, 1);
}

#[test]
fn unknown_names_tell_the_known_ones() {
    let error =
        manifest(Path::new("models"), &["https://example.invalid/m"]).select(&["core", "n"]).unwrap_err();
    assert_eq!(error.to_string(), "no model or set is called n; there are: m, core");
}

#[test]
fn a_manifest_with_an_open_address_or_a_path_is_refused() {
    let text = |name: &str, url: &str| {
        format!(
            "[[model]]\nname = \"m\"\nrole = \"stt\"\nlicence = \"MIT\"\norigin = \"a test\"\n[[model.file]]\n\
             name = \"{name}\"\nsize = 1\n[[model.file.source]]\nkind = \"hub\"\nurl = \"{url}\"\nsha256 = \"{SHA}\"\n"
        )
    };
    for (name, url) in
        [("a", "http://example.invalid/a"), ("../a", "https://example.invalid/a"), (".a", "https://a")]
    {
        assert!(
            matches!(Manifest::parse(&text(name, url), "models"), Err(ModelError::BadManifest { .. })),
            "{name} {url}"
        );
    }
    assert!(Manifest::parse(&text("a", "https://example.invalid/a"), "models").is_ok());
}

#[test]
fn the_manifest_of_the_repository_is_sound() {
    let manifest = Manifest::in_folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")).unwrap();
    let core = manifest.select(&["core"]).unwrap();
    assert_eq!(
        core.iter().map(|model| model.role.as_str()).collect::<Vec<_>>(),
        ["stt", "tts", "vad", "turn"]
    );
    for model in manifest.list() {
        for file in &model.files {
            assert!(file.sources.len() >= 2, "{} has one source", file.name);
        }
    }
}
