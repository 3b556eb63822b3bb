//! A call through a telephone system of somebody else's: Kamailio asks everybody for a password and knows where we are
//! because we register with it; the sound goes through rtpengine.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use sayback_rig::has_program;
use sayback_runtime::switchboard::Asked;
use sayback_transports::sip::{Registrar, SipOptions};
use tokio::net::UdpSocket;
use tokio::process::{Child, Command};

use super::desk::{LATER, board};
use super::scenario::have_sipp;
use super::{MACHINE, call_softly, have_softphone, options, serve, serve_on};

/// A port of this machine that was free a moment ago.
pub(crate) fn free_port() -> u16 {
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

/// A program that is ended with all that it started: Kamailio's children outlive their parent.
struct Group(Child);

impl Group {
    fn start(command: &mut Command) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.process_group(0).kill_on_drop(true).spawn().unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.0.id() {
            let _ = std::process::Command::new("kill").args(["-9", "--", &format!("-{id}")]).status();
        }
    }
}

/// Kamailio with a file of ours. Without -DD it would go its own way, and not end with us.
fn kamailio(file: &Path, folder: &Path, more: &[&str]) -> Group {
    let mut command = Command::new("kamailio");
    command.args(["-DD", "-E", "-m", "64", "-M", "8", "-f"]).arg(file).arg("-Y").arg(folder).args(more);
    Group::start(&mut command)
}

/// A telephone system; it ends with this.
struct System {
    address: SocketAddr,
    _sound: Group,
    _signalling: Group,
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
        let mut sound = Command::new("rtpengine");
        sound.args(["--config-file=none", "--interface=127.0.0.1", "--table=-1", "--foreground"]);
        sound.args(["--log-level=3", "--log-stderr", "--port-min=45000", "--port-max=45199"]);
        let sound = Group::start(sound.arg(format!("--listen-ng=127.0.0.1:{sound_port}")));
        // Kamailio gives it up for a minute if it is not there yet.
        answers(SocketAddr::from(([127, 0, 0, 1], sound_port))).await;
        let signalling = kamailio(&file, folder.path(), &[]);
        let address = SocketAddr::from(([127, 0, 0, 1], sip));
        Self { address, _sound: sound, _signalling: signalling, _folder: folder }
    }

    /// What it says of a user: its status, once it says anything.
    async fn asked_for(&self, user: &str) -> String {
        asked_for(self.address, user).await
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

async fn asked_for(address: SocketAddr, user: &str) -> String {
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
            address,
            own.port(),
            address
        );
        let _ = socket.send_to(request.as_bytes(), address).await;
        let answer = tokio::time::timeout(Duration::from_millis(250), socket.recv(&mut bytes)).await;
        if let Ok(Ok(len)) = answer {
            return String::from_utf8_lossy(&bytes[..len]).lines().next().unwrap_or_default().to_owned();
        }
    }
    panic!("kamailio does not answer at {address}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_through_kamailio_and_rtpengine_books_with_a_password_and_a_registration() {
    let _turn = MACHINE.write().await;
    if !has_program("kamailio", "-v") || !has_program("rtpengine", "-v") || !have_softphone() {
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

/// Callers of sipp's, who go the way that the answer recorded; gives what it says if one of them failed.
async fn callers(front: SocketAddr, count: u32) -> Result<(), String> {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/deploy/trial-caller.xml");
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sipp");
    command.args(["-sf", scenario, &front.to_string(), "-s", "100", "-i", "127.0.0.1", "-d", "500"]);
    command.args(["-p", &free_port().to_string(), "-mp", "45300", "-m", &count.to_string(), "-r", "2"]);
    command.args(["-nostdin", "-trace_err", "-timeout", "60s", "-timeout_error"]).current_dir(folder.path());
    let output = command.kill_on_drop(true).output().await.unwrap();
    let errors = std::fs::read_dir(folder.path()).unwrap().flatten();
    let errors: String =
        errors.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default()).collect();
    output.status.success().then_some(()).ok_or(errors)
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_behind_a_dispatcher_are_taken_handed_on_and_end_with_their_bye() {
    let _turn = MACHINE.write().await;
    if !has_program("kamailio", "-v") || !have_sipp() {
        return;
    }
    let (one, two) = (board(10).0, board(1).0);
    let (server_one, address_one) = serve_on(options(39_000), one.clone()).await;
    let (server_two, address_two) = serve_on(options(39_250), two.clone()).await;
    let folder = tempfile::tempdir().unwrap();
    let (list, front) = (folder.path().join("list"), SocketAddr::from(([127, 0, 0, 1], free_port())));
    std::fs::write(&list, format!("1 sip:{address_one} 0 0\n1 sip:{address_two} 0 0\n")).unwrap();
    let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/deploy/kamailio.cfg"));
    let (listen, list) = (format!("LISTEN=udp:{front}"), format!("LIST=\"{}\"", list.display()));
    let _front = kamailio(file, folder.path(), &["-A", &listen, "-A", &list]);
    assert!(!asked_for(front, "").await.is_empty(), "it is there");
    // The second server has one place, and that is taken: what comes to it is handed on to the first.
    let place = two.admit(Asked { to: "100".to_owned(), ..Asked::default() }).await.unwrap();
    callers(front, 4).await.unwrap();
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, one.calls().none_live()).await.expect("a BYE ends its call");
    assert_eq!((one.calls().taken(), two.calls().taken()), (4, 0));
    assert!(two.refused() > 0, "it was asked by turns");
    drop(place);
    callers(front, 4).await.unwrap();
    for board in [&one, &two] {
        tokio::time::timeout(limit, board.calls().none_live()).await.expect("a BYE ends its call");
    }
    assert_eq!(one.calls().taken() + two.calls().taken(), 8, "each call is counted");
    assert!(two.calls().taken() > 0, "it takes its turn again");
    server_one.stop().await;
    server_two.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_an_answer_is_told_that_its_invite_has_come() {
    let _turn = MACHINE.read().await;
    let (server, address, _) = serve(options(39_700), 2).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let own = socket.local_addr().unwrap();
    let body = format!(
        "v=0\r\no=a 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {} RTP/AVP 0\r\n",
        own.port()
    );
    let invite = format!(
        "INVITE sip:later@{address} SIP/2.0\r\nVia: SIP/2.0/UDP {own};branch=z9hG4bKlater\r\nFrom: <sip:a@{own}>;tag=1\r\n\
         To: <sip:later@{address}>\r\nCall-ID: later\r\nCSeq: 1 INVITE\r\nContact: <sip:a@{own}>\r\nMax-Forwards: 70\r\n\
         Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut statuses: Vec<String> = Vec::new();
    let mut bytes = [0; 4_096];
    for _ in 0..60 {
        socket.send_to(invite.as_bytes(), address).await.unwrap();
        let answer = tokio::time::timeout(Duration::from_millis(500), socket.recv(&mut bytes)).await;
        let Ok(Ok(len)) = answer else { continue };
        let status = String::from_utf8_lossy(&bytes[..len]).chars().skip(8).take(3).collect::<String>();
        if status == "100" {
            LATER.notify_one();
        }
        statuses.push(status);
        if statuses.last().is_some_and(|status| status == "200") {
            break;
        }
    }
    assert_eq!(statuses.first().map(String::as_str), Some("100"), "{statuses:?}");
    assert_eq!(statuses.last().map(String::as_str), Some("200"), "{statuses:?}");
    server.stop().await;
}
