//! Calls with baresip, a telephone of somebody else's, which plays a recorded caller.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use sayback_media::Clip;
use sayback_media::clip::read_audio;
use sayback_media::wav;
use sayback_rig::has_program;
use tokio::process::{Child, Command};

use super::desk::board;
use super::peers::free_port;
use super::{MACHINE, options, serve_on};

/// A recording of the repository's at 8 kHz.
fn recorded(name: &str) -> Vec<f32> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/audio")).join(name);
    read_audio(&path).unwrap().mono_at(8_000).unwrap()
}

fn quiet(ms: usize) -> Vec<f32> {
    vec![0.0; ms * 8]
}

/// A telephone that calls and plays this. It ends with this.
fn call(folder: &Path, server: std::net::SocketAddr, sound: Vec<f32>) -> Child {
    let source = folder.join("caller.wav");
    std::fs::write(&source, wav::encode(&Clip::mono(8_000, sound))).unwrap();
    let ports = free_port();
    let config = format!(
        "poll_method epoll\nsip_listen 127.0.0.1:0\naudio_source aufile,{}\naudio_player aufile,{}\n\
         ausrc_srate 8000\nauplay_srate 8000\nausrc_channels 1\nauplay_channels 1\nnet_interface 127.0.0.1\n\
         rtp_ports {}-{}\nmodule_path {}\nmodule g711.so\nmodule aufile.so\nmodule_tmp account.so\n\
         module_app menu.so\n",
        source.display(),
        folder.join("heard.wav").display(),
        ports & !1,
        (ports & !1) + 20,
        modules(),
    );
    std::fs::write(folder.join("config"), config).unwrap();
    let account = "<sip:caller@127.0.0.1>;regint=0;audio_codecs=PCMU/8000\n";
    std::fs::write(folder.join("accounts"), account).unwrap();
    std::fs::write(folder.join("contacts"), "").unwrap();
    let mut command = Command::new("baresip");
    command.arg("-f").arg(folder).arg("-e").arg(format!("/dial sip:100@{server}")).args(["-t", "60"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn().unwrap()
}

/// Where its modules are: distributions differ.
fn modules() -> String {
    let places = ["/usr/lib/baresip/modules", "/usr/lib64/baresip/modules", "/usr/local/lib/baresip/modules"];
    let here = places.iter().find(|place| Path::new(place).is_dir());
    (*here.unwrap_or(&places[0])).to_owned()
}

/// Calls with this sound until the log says `wanted`; gives how much was booked a little later.
async fn booked(sound: Vec<f32>, wanted: &str, ports: u16) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let (board, booked) = board(2);
    let (server, address) = serve_on(options(ports), board.clone()).await;
    let mut news = board.calls().news();
    let telephone = call(folder.path(), address, sound);
    let mut log = String::new();
    let wait = async {
        while let Ok(line) = news.recv().await {
            let line = line.line.to_string();
            log.push_str(&format!("{line}\n"));
            if line.contains(wanted) {
                return;
            }
        }
    };
    let came = tokio::time::timeout(Duration::from_secs(40), wait).await;
    assert!(came.is_ok(), "nothing about {wanted:?}: {log}");
    let later = async { while news.recv().await.is_ok() {} };
    let _ = tokio::time::timeout(Duration::from_secs(3), later).await;
    drop(telephone);
    server.stop().await;
    booked.lock().map_or(0, |booked| booked.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_caller_on_baresip_books() {
    let _turn = MACHINE.write().await;
    if !has_program("baresip", "-h") {
        return;
    }
    let sound =
        [quiet(1_500), recorded("book-phone.wav"), quiet(6_000), recorded("yes-phone.wav"), quiet(8_000)];
    assert_eq!(booked(sound.concat(), "tool.finished", 53_000).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_caller_on_baresip_who_talks_over_the_question_books_nothing() {
    let _turn = MACHINE.write().await;
    if !has_program("baresip", "-h") {
        return;
    }
    // A yes again and again: one of them lies inside the question, which lasts longer than the quiet between two.
    let yes = recorded("yes-phone.wav");
    let mut sound = [quiet(1_500), recorded("book-phone.wav")].concat();
    let gap = quiet(1_100);
    for _ in 0..12 {
        sound.extend_from_slice(&gap);
        sound.extend_from_slice(&yes);
    }
    assert_eq!(booked(sound, "question.dropped", 53_100).await, 0);
}
