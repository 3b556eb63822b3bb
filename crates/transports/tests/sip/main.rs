//! Telephone calls with real peers: sipp for the signalling, a telephone of our own for the sound.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where by a panic")]

mod baresip;
#[expect(dead_code, reason = "others ask for more")]
#[path = "../desk/mod.rs"]
mod desk;
mod hostile;
mod outbound;
mod peer;
mod peers;
mod phone;
mod races;
mod refreshes;
mod relay;
mod scenario;
mod scenarios;
mod warm;

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use sayback_media::codec::CodecKind;
use sayback_rig::skip;
use sayback_runtime::switchboard::Switchboard;
use sayback_transports::sip::{Dial, Far, Listen, SipOptions, SipServer, SipTransport, TlsFiles, User};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use desk::{Booked, board};
use scenario::{PCMU, Scenario, have_sipp, scenario};

/// A server on a port of this machine that is free.
async fn serve(options: SipOptions, most: usize) -> (SipServer, SocketAddr, Booked) {
    let (board, booked) = board(most);
    let (server, address) = serve_on(options, board).await;
    (server, address, booked)
}

async fn serve_on(options: SipOptions, board: Switchboard) -> (SipServer, SocketAddr) {
    let address = "127.0.0.1:0".parse().unwrap();
    let listen = vec![Listen { transport: SipTransport::Udp, address }];
    let server = SipServer::start(SipOptions { listen, ..options }, board).await.unwrap();
    let address = server.listening()[0].address;
    (server, address)
}

fn options(ports: u16) -> SipOptions {
    SipOptions { media_ports: ports..=ports + 499, ..SipOptions::default() }
}

/// Calls keep real time; a flood and dozens of sipps at once would take it from all others on a small machine. They
/// hold this alone, the rest together.
static MACHINE: tokio::sync::RwLock<()> = tokio::sync::RwLock::const_new(());

/// Runs scenarios, a few at a time; gives what failed.
async fn run_all(scenarios: Vec<Scenario>, server: SocketAddr, transport: &'static str) -> Vec<String> {
    let mut failed = Vec::new();
    for some in scenarios.chunks(6) {
        let mut runs = tokio::task::JoinSet::new();
        for scenario in some {
            let scenario = scenario.clone();
            runs.spawn(async move { scenario.run(server, transport).await });
        }
        while let Some(done) = runs.join_next().await {
            failed.extend(done.unwrap().err());
        }
    }
    failed
}

#[tokio::test(flavor = "multi_thread")]
async fn sipp_is_answered_in_every_scenario() {
    let _turn = MACHINE.write().await;
    if !have_sipp() {
        return;
    }
    let (server, address, _) = serve(options(31_000), 100).await;
    // One or a few by name, for whoever mends one.
    let wanted = std::env::var("SAYBACK_SCENARIO").unwrap_or_default();
    let mut scenarios = scenarios::all();
    scenarios.retain(|scenario| scenario.name.contains(&wanted));
    let count = scenarios.len();
    let failed = run_all(scenarios, address, "UDP").await;
    assert!(failed.is_empty(), "{} of {count} failed:\n{}", failed.len(), failed.join("\n----\n"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_says_so_and_when_to_call_again() {
    let _turn = MACHINE.read().await;
    if !have_sipp() {
        return;
    }
    let (server, address, _) = serve(options(31_500), 1).await;
    let first =
        tokio::spawn(
            async move { scenario("the first").call().pause(2_500).bye(2).run(address, "UDP").await },
        );
    let second = scenario("the second").pause(1_000).invite(PCMU).refused(486, &["Retry-After: [0-9]+"]);
    second.run(address, "UDP").await.unwrap();
    first.await.unwrap().unwrap();
    // The place is free again.
    scenario("the third").pause(300).call().bye(2).run(address, "UDP").await.unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_asked_for_and_a_wrong_one_asked_again() {
    let _turn = MACHINE.read().await;
    if !have_sipp() {
        return;
    }
    let user = User { name: "anna".to_owned(), password: "secret".to_owned(), far: Far::Endpoint };
    let (server, address, _) = serve(SipOptions { users: vec![user], ..options(32_000) }, 10).await;
    let with = |name, login: &str| {
        let headers = format!("[authentication {login}]\nContent-Type: application/sdp\n");
        scenario(name).invite(PCMU).refused(401, &["WWW-Authenticate: Digest realm="]).send_with(
            "INVITE",
            (false, 2),
            &headers,
            &scenario::sdp(PCMU),
        )
    };
    let right = with("the right password", "username=anna password=secret").expect(200).ack(2).bye(3);
    right.run(address, "UDP").await.unwrap();
    let wrong = with("a wrong password", "username=anna password=guess").expect(401);
    wrong.run(address, "UDP").await.unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_come_over_streams_too() {
    let _turn = MACHINE.read().await;
    if !have_sipp() {
        return;
    }
    let (board, _) = board(10);
    let address: SocketAddr = "127.0.0.1:35661".parse().unwrap();
    let listen = vec![Listen { transport: SipTransport::Tcp, address }];
    let server = SipServer::start(SipOptions { listen, ..options(32_500) }, board).await.unwrap();
    let all = vec![
        scenario("a call over TCP").call().pause(200).bye(2),
        scenario("OPTIONS over TCP").send("OPTIONS", 1).expect(200),
    ];
    let failed = run_all(all, address, "TCP").await;
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_come_encrypted_too() {
    let _turn = MACHINE.read().await;
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    let mut openssl = tokio::process::Command::new("openssl");
    openssl.args("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout".split(' '));
    let made = openssl.arg(&key).arg("-out").arg(&certificate).output().await;
    if !made.is_ok_and(|output| output.status.success()) {
        skip("openssl is missing; get it with: scripts/setup --peers");
        return;
    }
    let (board, _) = board(10);
    let address: SocketAddr = "127.0.0.1:35671".parse().unwrap();
    let listen = vec![Listen { transport: SipTransport::Tls, address }];
    let tls = Some(TlsFiles { certificate, key });
    let server = SipServer::start(SipOptions { listen, tls, ..options(32_800) }, board).await.unwrap();
    let mut client = tokio::process::Command::new("openssl");
    client.args(["s_client", "-quiet", "-connect", "127.0.0.1:35671"]).kill_on_drop(true);
    client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut client = client.spawn().unwrap();
    let options = "OPTIONS sip:100@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/TLS 127.0.0.1:9;branch=z9hG4bK1\r\n\
        From: <sip:a@b>;tag=1\r\nTo: <sip:100@127.0.0.1>\r\nCall-ID: tls\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\n\
        Content-Length: 0\r\n\r\n";
    let mut stdin = client.stdin.take().unwrap();
    stdin.write_all(options.as_bytes()).await.unwrap();
    let mut answer = [0; 15];
    let read = client.stdout.as_mut().unwrap().read_exact(&mut answer);
    tokio::time::timeout(Duration::from_secs(10), read).await.expect("an answer").unwrap();
    assert_eq!(&answer, b"SIP/2.0 200 OK\r");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_taken_is_told_at_the_start() {
    let _turn = MACHINE.read().await;
    let (server, address, _) = serve(options(33_000), 1).await;
    let (board, _) = board(1);
    let listen = vec![Listen { transport: SipTransport::Udp, address }];
    let error = SipServer::start(SipOptions { listen, ..options(33_000) }, board).await.unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    server.stop().await;
}

/// Calls, says something, hears the question, and says the answer so long after its end (or before it).
async fn booked_by_an_answer_at(offset_ms: i64, codec: CodecKind, ports: u16) -> usize {
    let (server, address, booked) = serve(options(ports), 4).await;
    let mut phone = phone::Phone::call(address, codec).await;
    phone.hear_until_quiet(Duration::from_secs(5)).await;
    phone.say(Duration::from_millis(600)).await;
    phone.answer_at(offset_ms).await;
    phone.listen(Duration::from_millis(2_500)).await;
    phone.hang_up().await;
    server.stop().await;
    booked.lock().map_or(0, |booked| booked.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_after_the_question_books() {
    let _turn = MACHINE.read().await;
    assert_eq!(booked_by_an_answer_at(900, CodecKind::Pcmu, 34_000).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_over_the_question_does_not_book() {
    let _turn = MACHINE.read().await;
    assert_eq!(booked_by_an_answer_at(-400, CodecKind::Pcmu, 34_100).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_after_the_question_books_in_wide_sound() {
    let _turn = MACHINE.read().await;
    assert_eq!(booked_by_an_answer_at(900, CodecKind::Opus, 34_200).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_inside_the_question_means_that_it_was_not_heard() {
    let _turn = MACHINE.read().await;
    let (server, address, booked) = serve(options(34_300), 4).await;
    let mut phone = phone::Phone::call(address, CodecKind::Pcmu).await;
    phone.hear_until_quiet(Duration::from_secs(5)).await;
    phone.say(Duration::from_millis(600)).await;
    phone.wait_for_question().await;
    phone.listen(Duration::from_millis(300)).await;
    phone.reinvite(2, "sendonly").await;
    phone.listen(Duration::from_millis(500)).await;
    phone.reinvite(3, "sendrecv").await;
    phone.listen(Duration::from_millis(1_200)).await;
    phone.say(Duration::from_millis(500)).await;
    phone.listen(Duration::from_millis(2_000)).await;
    phone.hang_up().await;
    assert_eq!(booked.lock().unwrap().len(), 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_sent_at_it_keeps_a_server_from_its_next_call() {
    let _turn = MACHINE.write().await;
    let options = SipOptions { media_ports: 40_000..=49_999, ..SipOptions::default() };
    let (server, address, booked) = serve(options, 4_000).await;
    let seed = 0x5eed;
    let sent = hostile::attack_signalling(address, seed).await;
    let mut phone = phone::Phone::call(address, CodecKind::Pcmu).await;
    let at_sound = hostile::attack_sound(&mut phone, seed).await;
    hostile::inject_sound(phone.sound(), CodecKind::Pcmu).await;
    phone.hang_up().await;
    eprintln!("seed {seed:#x}: {sent} messages, {at_sound} packets");
    let mut phone = phone::Phone::call(address, CodecKind::Pcmu).await;
    phone.hear_until_quiet(Duration::from_secs(5)).await;
    phone.say(Duration::from_millis(600)).await;
    phone.answer_at(900).await;
    phone.listen(Duration::from_millis(2_500)).await;
    phone.hang_up().await;
    assert_eq!(booked.lock().unwrap().len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn we_call_and_are_answered() {
    let _turn = MACHINE.read().await;
    if !have_sipp() {
        return;
    }
    let (server, _, _) = serve(options(35_000), 4).await;
    let peer = scenario::uas(35_990);
    let dial = Dial { to: "sip:100@127.0.0.1:35990".to_owned(), agent: "desk".to_owned(), ..Dial::default() };
    let id = server.dial(dial).await.unwrap();
    assert!(id.starts_with("sip-"), "{id}");
    let nowhere = Dial { to: "100".to_owned(), agent: "desk".to_owned(), ..Dial::default() };
    assert!(server.dial(nowhere).await.unwrap_err().to_string().contains("sip:100@pbx.example"));
    server.stop().await;
    drop(peer);
}

/// Whether an answer so long after the question's end, on the caller's own clock, books.
async fn decides(server: SocketAddr, booked: Booked, way: relay::Way, offset_ms: i64) -> (i64, bool) {
    let before = booked.lock().unwrap().len();
    let mut phone = phone::Phone::call_over(server, CodecKind::Pcmu, Some(way)).await;
    phone.listen(Duration::from_millis(1_500)).await;
    phone.say(Duration::from_millis(600)).await;
    phone.answer_at(offset_ms).await;
    phone.listen(Duration::from_millis(2_500)).await;
    phone.hang_up().await;
    let after = booked.lock().unwrap().len();
    (offset_ms, after > before)
}

/// The caller's answer is moved across the end of the question: never taken before it, taken at the latest by the
/// stated width behind it, and there is one place where that changes.
async fn sweep(round_trip_ms: u64, ports: u16) {
    let options = SipOptions { far: Far::Endpoint, ..options(ports) };
    let way = relay::Way::round_trip(round_trip_ms, 77);
    // A server for each call: what was booked belongs to it.
    let mut calls = tokio::task::JoinSet::new();
    for (n, offset) in [-400, -150, -50, 0, 60, 320, 500, 800].into_iter().enumerate() {
        let base = ports + 40 * n as u16;
        let options = SipOptions { media_ports: base..=base + 39, ..options.clone() };
        calls.spawn(async move {
            let (server, address, booked) = serve(options, 2).await;
            let decided = decides(address, booked, way, offset).await;
            server.stop().await;
            decided
        });
    }
    let mut decided: Vec<(i64, bool)> = calls.join_all().await;
    decided.sort_unstable();
    eprintln!("round trip {round_trip_ms} ms: {decided:?}");
    assert!(decided.iter().all(|(offset, yes)| *offset > 0 || !yes), "taken before the end: {decided:?}");
    // The width: 120 ms for the telephone, jitter, the onset's own margin and a frame.
    assert!(
        decided.iter().all(|(offset, yes)| *offset < 500 || *yes),
        "not taken behind the width: {decided:?}"
    );
    let flips = decided.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    assert_eq!(flips, 1, "{decided:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_decision_flips_once_over_a_round_trip_of_40_ms() {
    let _turn = MACHINE.read().await;
    sweep(40, 36_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_decision_flips_once_over_a_round_trip_of_180_ms() {
    let _turn = MACHINE.read().await;
    sweep(180, 36_500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_decision_flips_once_over_a_round_trip_of_600_ms() {
    let _turn = MACHINE.read().await;
    sweep(600, 37_000).await;
}

/// Calls with pjsua2; gives how much was booked, or nothing if it is not here.
async fn softphone(offset_ms: i64, more: &[&str], ports: u16) -> Option<usize> {
    if !have_softphone() {
        return None;
    }
    let (server, address, booked) = serve(options(ports), 4).await;
    call_softly(address, offset_ms, more).await;
    server.stop().await;
    booked.lock().map(|booked| booked.len()).ok()
}

/// Whether pjsua2 is here. In continuous integration it must be.
fn have_softphone() -> bool {
    let import = std::process::Command::new("python3").args(["-c", "import pjsua2"]).output();
    let found = import.is_ok_and(|output| output.status.success());
    found || skip("pjsua2 is missing; get it with: scripts/setup --peers")
}

/// A softphone's whole call.
async fn call_softly(address: SocketAddr, offset_ms: i64, more: &[&str]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sip/softphone.py");
    let mut command = tokio::process::Command::new("python3");
    command.arg(script).arg(address.to_string()).arg(offset_ms.to_string()).args(more).kill_on_drop(true);
    let output = command.output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_books_by_a_yes_after_the_question_and_not_by_one_over_it() {
    let _turn = MACHINE.read().await;
    if let Some(count) = softphone(1_000, &[], 37_500).await {
        assert_eq!(count, 1);
    }
    if let Some(count) = softphone(-500, &[], 37_600).await {
        assert_eq!(count, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_books_over_encrypted_sound() {
    let _turn = MACHINE.read().await;
    if let Some(count) = softphone(1_000, &["srtp"], 37_700).await {
        assert_eq!(count, 1);
    }
}

/// Calls, and presses 1 so long after the beginning of the question, which lasts 1.2 s.
async fn booked_by_a_key_at(offset_ms: u64, ports: u16) -> usize {
    let (server, address, booked) = serve(options(ports), 4).await;
    let mut phone = phone::Phone::call(address, CodecKind::Pcmu).await;
    phone.listen(Duration::from_millis(1_000)).await;
    phone.say(Duration::from_millis(600)).await;
    phone.press_at(offset_ms, 1).await;
    phone.listen(Duration::from_millis(2_000)).await;
    phone.hang_up().await;
    server.stop().await;
    booked.lock().map_or(0, |booked| booked.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_after_the_question_books_and_one_over_it_does_not() {
    let _turn = MACHINE.read().await;
    assert_eq!(booked_by_a_key_at(1_900, 38_000).await, 1);
    assert_eq!(booked_by_a_key_at(600, 38_100).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_is_asked_for_and_ends_the_call_once_it_has_worked() {
    let _turn = MACHINE.read().await;
    if !have_sipp() {
        return;
    }
    let (board, _) = board(4);
    let (server, address) = serve_on(options(38_500), board.clone()).await;
    let done =
        "Event: refer\nSubscription-State: terminated;reason=noresource\nContent-Type: message/sipfrag\n";
    let caller = scenario("a transfer")
        .call()
        .expect_request("REFER", &["Refer-To: .*sip:200@", "Referred-By"])
        .send_with("NOTIFY", (true, 2), done, "SIP/2.0 200 OK\n")
        .expect(200)
        .expect_request("BYE", &[]);
    let caller = tokio::spawn(async move { caller.run(address, "UDP").await });
    let mut news = board.calls().news();
    let id = news.recv().await.unwrap().call;
    board.calls().line(&id).unwrap().transfer("200").unwrap();
    caller.await.unwrap().unwrap();
    server.stop().await;
}
