//! A call through a telephone system of somebody else's: Kamailio asks everybody for a password and knows where we are
//! because we register with it; the sound goes through rtpengine.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use sayback_transports::sip::{Registrar, SipOptions};
use tokio::net::UdpSocket;
use tokio::process::{Child, Command};

use super::{MACHINE, call_softly, have_softphone, options, serve};

/// Whether a program is here. In continuous integration it must be.
fn have(program: &str) -> bool {
    let found = Command::new(program).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{program} is missing: scripts/setup --peers");
        eprintln!("SKIPPED: {program} is not here; install it with: scripts/setup --peers");
    }
    found
}

/// A port of this machine that was free a moment ago.
fn free_port() -> u16 {
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Waits until rtpengine takes commands.
async fn answers(address: SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (mut bytes, mut every) = ([0; 512], tokio::time::interval(Duration::from_millis(250)));
    for _ in 0..120 {
        every.tick().await;
        let _ = socket.send_to(b"1 d7:command4:pinge", address).await;
        if let Ok(Ok(_)) = tokio::time::timeout(Duration::from_millis(250), socket.recv(&mut bytes)).await {
            return;
        }
    }
    panic!("rtpengine does not answer at {address}")
}

/// A telephone system; it ends with this.
struct System {
    address: SocketAddr,
    _sound: Child,
    _signalling: Child,
    _folder: tempfile::TempDir,
}

impl System {
    async fn start() -> Self {
        let (sip, sound_port) = (free_port(), free_port());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kamailio.cfg");
        let config = include_str!("kamailio.cfg")
            .replace("SIP_PORT", &sip.to_string())
            .replace("SOUND_PORT", &sound_port.to_string());
        std::fs::write(&file, config).unwrap();
        let sound = Command::new("rtpengine")
            .args([
                "--config-file=none",
                "--interface=127.0.0.1",
                "--table=-1",
                "--foreground",
                "--log-level=3",
                "--log-stderr",
            ])
            .arg(format!("--listen-ng=127.0.0.1:{sound_port}"))
            .args(["--port-min=45000", "--port-max=45199"])
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        // Kamailio gives it up for a minute if it is not there yet.
        answers(SocketAddr::from(([127, 0, 0, 1], sound_port))).await;
        // Without -DD it would go its own way, and not end with us.
        let signalling = Command::new("kamailio")
            .args(["-DD", "-E", "-m", "64", "-M", "8", "-f", file.to_str().unwrap(), "-Y"])
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], sip));
        Self { address, _sound: sound, _signalling: signalling, _folder: folder }
    }

    /// What it says of a user: its status, once it says anything.
    async fn asked_for(&self, user: &str) -> String {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let own = socket.local_addr().unwrap();
        let mut bytes = [0; 4_096];
        let mut every = tokio::time::interval(Duration::from_millis(250));
        for attempt in 0..120 {
            every.tick().await;
            let request = format!(
                "OPTIONS sip:{user}@{} SIP/2.0\r\nVia: SIP/2.0/UDP {own};branch=z9hG4bK{attempt}{}\r\n\
                 From: <sip:test@{own}>;tag=1\r\nTo: <sip:{user}@{}>\r\nCall-ID: {own}\r\n\
                 CSeq: {attempt} OPTIONS\r\nMax-Forwards: 10\r\nContent-Length: 0\r\n\r\n",
                self.address,
                own.port(),
                self.address
            );
            let _ = socket.send_to(request.as_bytes(), self.address).await;
            let answer = tokio::time::timeout(Duration::from_millis(250), socket.recv(&mut bytes)).await;
            if let Ok(Ok(len)) = answer {
                return String::from_utf8_lossy(&bytes[..len]).lines().next().unwrap_or_default().to_owned();
            }
        }
        panic!("kamailio does not answer at {}", self.address)
    }

    async fn wait_until_registered(&self, user: &str) {
        let until = tokio::time::Instant::now() + Duration::from_secs(30);
        let mut every = tokio::time::interval(Duration::from_millis(200));
        while !self.asked_for(user).await.contains(" 200 ") {
            assert!(tokio::time::Instant::now() < until, "we are not registered");
            every.tick().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_through_kamailio_and_rtpengine_books_with_a_password_and_a_registration() {
    let _turn = MACHINE.write().await;
    if !have("kamailio") || !have("rtpengine") || !have_softphone() {
        return;
    }
    let system = System::start().await;
    assert!(system.asked_for("100").await.contains(" 404 "), "nobody is registered yet");
    let registrar = Registrar {
        server: format!("sip:{}", system.address),
        user: "100".to_owned(),
        password: "secret".to_owned(),
        expires: Duration::from_secs(120),
    };
    let options = SipOptions { registrar: Some(registrar), ..options(39_500) };
    let (server, _, booked) = serve(options, 4).await;
    system.wait_until_registered("100").await;
    call_softly(system.address, 1_000, &["digest"]).await;
    assert_eq!(booked.lock().unwrap().len(), 1);
    call_softly(system.address, -500, &["digest"]).await;
    assert_eq!(booked.lock().unwrap().len(), 1, "a yes over the question books nothing");
    server.stop().await;
    assert!(system.asked_for("100").await.contains(" 404 "), "whoever stops leaves the registrar first");
}
