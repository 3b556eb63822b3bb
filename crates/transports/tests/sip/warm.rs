//! Callers who are handed over to somebody who is told first who they are.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use sayback_media::codec::CodecKind;
use sayback_runtime::calls::News;
use sayback_runtime::switchboard::Switchboard;
use sayback_transports::sip::{Destination, SipOptions, SipServer};
use tokio::net::UdpSocket;
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::desk::{board_of, calls};
use super::peer::{Peer, sdp, status, value};
use super::phone::Phone;
use super::{MACHINE, options, serve_on};

const PRESS: &str = "Content-Type: application/dtmf-relay\r\n";

/// A server whose model hands the first caller to the boss, who is at that address.
async fn serve(ports: u16, boss: SocketAddr) -> (SipServer, SocketAddr, Switchboard) {
    let wish = "{\"to\":\"boss\",\"about\":\"Anna asks for a refund.\"}";
    let (board, _) = board_of(4, vec![calls("transfer_call", wish)]);
    let transfers = BTreeMap::from([("boss".to_owned(), Destination::warm(format!("sip:boss@{boss}")))]);
    let (server, address) = serve_on(SipOptions { transfers, ..options(ports) }, board.clone()).await;
    (server, address, board)
}

/// Calls, and says something once the line is open.
async fn speaks(address: SocketAddr) -> Phone {
    let mut caller = Phone::call(address, CodecKind::Pcmu).await;
    caller.listen(Duration::from_millis(800)).await;
    caller.say(Duration::from_millis(600)).await;
    caller
}

/// A caller asks for the boss, who is rung, picks up with that codec and has heard the question.
async fn asked(ports: u16, codec: CodecKind) -> (SipServer, broadcast::Receiver<News>, Phone, Phone) {
    let sip = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (server, address, board) = serve(ports, sip.local_addr().unwrap()).await;
    let news = board.calls().news();
    let boss = tokio::spawn(Phone::pick_up(sip, codec));
    let mut caller = speaks(address).await;
    caller.listen(Duration::from_millis(2_500)).await;
    let mut boss = boss.await.unwrap();
    boss.wait_for_question().await;
    (server, news, caller, boss)
}

/// A caller without sound whom the program hands over, and whoever takes over.
async fn handed_over(ports: u16, headers: &str) -> (SipServer, Switchboard, Peer, Peer) {
    let localhost = "127.0.0.1:9".parse().unwrap();
    let mut boss = Peer::bind(localhost).await;
    let (server, address, board) = serve(ports, boss.address).await;
    let mut news = board.calls().news();
    let caller = Peer::call(address, headers).await;
    let id = news.recv().await.unwrap().call;
    board.calls().line(&id).unwrap().transfer("boss").unwrap();
    let invite = boss.called().await;
    boss.answer(&invite, "", &sdp(1)).await;
    (server, board, caller, boss)
}

async fn press(peer: &mut Peer, key: char) {
    let answer = peer.ask("INFO", 1, PRESS, &format!("Signal={key}\r\nDuration=160\r\n")).await;
    assert_eq!(status(&answer), 200, "{answer}");
}

/// What the call's log says until a line has this in it.
async fn told(news: &mut broadcast::Receiver<News>, wanted: &str) -> String {
    let mut log = String::new();
    let wait = async {
        while let Ok(line) = news.recv().await {
            let line = line.line.to_string();
            log.push_str(&line);
            log.push('\n');
            if line.contains(wanted) {
                return;
            }
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(25), wait).await;
    assert!(found.is_ok(), "nothing about {wanted:?}: {log}");
    log
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_the_call_hears_who_calls_and_then_the_caller() {
    let _turn = MACHINE.read().await;
    let (server, mut news, mut caller, mut boss) = asked(52_000, CodecKind::Pcma).await;
    boss.press(1).await;
    let log = told(&mut news, "has been transferred").await;
    assert!(!log.contains("question.held"), "{log}");
    // What was said to the boss has sounded to its end, or was cut.
    tokio::join!(caller.listen(Duration::from_millis(1_500)), boss.listen(Duration::from_millis(1_500)));
    let from = Instant::now();
    tokio::join!(caller.say(Duration::from_millis(1_500)), boss.listen(Duration::from_millis(2_500)));
    assert!(boss.heard_since(from + Duration::from_millis(300)), "the boss hears nothing of the caller");
    let from = Instant::now();
    tokio::join!(boss.say(Duration::from_millis(1_500)), caller.listen(Duration::from_millis(2_500)));
    assert!(caller.heard_since(from + Duration::from_millis(300)), "the caller hears nothing of the boss");
    caller.hang_up().await;
    assert!(boss.take_request("BYE", "200 OK").await.is_some(), "the boss is left alone");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_refuses_sends_the_caller_back_to_the_agent() {
    let _turn = MACHINE.read().await;
    let (server, mut news, caller, mut boss) = asked(52_100, CodecKind::Pcmu).await;
    boss.press(2).await;
    assert!(boss.take_request("BYE", "200 OK").await.is_some(), "the boss is kept on the line");
    told(&mut news, "does not want to take it").await;
    told(&mut news, "agent.said").await;
    caller.hang_up().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_far_end_that_can_calls_whoever_waits_for_the_caller_in_our_place() {
    let _turn = MACHINE.read().await;
    let able = "Supported: replaces\r\nAllow: INVITE, ACK, BYE, REFER, NOTIFY\r\n";
    let (server, _, mut caller, mut boss) = handed_over(52_200, able).await;
    press(&mut boss, '1').await;
    let refer = caller.take("REFER").await;
    let to = value(&refer, "Refer-To");
    assert!(to.contains("?Replaces=") && to.contains("%3Bto-tag%3Dpeer%3Bfrom-tag%3D"), "{to}");
    caller.reply(&refer, "202 Accepted", "", "").await;
    let progress = "Event: refer\r\nSubscription-State: terminated\r\nContent-Type: message/sipfrag\r\n";
    let answer = caller.ask("NOTIFY", 2, progress, "SIP/2.0 200 OK\r\n").await;
    assert_eq!(status(&answer), 200, "{answer}");
    for peer in [&mut caller, &mut boss] {
        let bye = peer.take("BYE").await;
        peer.reply(&bye, "200 OK", "", "").await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_far_end_that_says_it_can_and_cannot_is_joined_by_us() {
    let _turn = MACHINE.read().await;
    let able = "Supported: replaces\r\nAllow: INVITE, ACK, BYE, REFER, NOTIFY\r\n";
    let (server, board, mut caller, mut boss) = handed_over(52_300, able).await;
    press(&mut boss, '1').await;
    let refer = caller.take("REFER").await;
    caller.reply(&refer, "403 Forbidden", "", "").await;
    // The agent is out of it, and the two are not.
    let left = tokio::time::timeout(Duration::from_secs(20), board.calls().none_live()).await;
    assert!(left.is_ok(), "the agent is still there");
    assert!(caller.take_within("BYE", Duration::from_millis(300)).await.is_none());
    caller.bye(2).await;
    let bye = boss.take("BYE").await;
    boss.reply(&bye, "200 OK", "", "").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_hangs_up_first_ends_a_joined_call() {
    let _turn = MACHINE.read().await;
    let (server, _, mut caller, mut boss) = handed_over(52_400, "").await;
    press(&mut boss, '1').await;
    assert!(caller.take_within("REFER", Duration::from_millis(500)).await.is_none(), "it cannot");
    boss.bye(2).await;
    let bye = caller.take("BYE").await;
    caller.reply(&bye, "200 OK", "", "").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_hangs_up_takes_the_wish_along() {
    let _turn = MACHINE.read().await;
    let (server, _, mut caller, mut boss) = handed_over(52_500, "").await;
    caller.bye(2).await;
    let bye = boss.take("BYE").await;
    boss.reply(&bye, "200 OK", "", "").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_is_busy_leaves_the_call_as_it_was() {
    let _turn = MACHINE.read().await;
    let mut boss = Peer::bind("127.0.0.1:9".parse().unwrap()).await;
    let (server, address, board) = serve(52_600, boss.address).await;
    let mut news = board.calls().news();
    let mut caller = speaks(address).await;
    let busy = async {
        let invite = boss.called().await;
        boss.reply(&invite, "486 Busy Here", "", "").await;
        boss.take("ACK").await;
    };
    tokio::join!(caller.listen(Duration::from_millis(2_500)), busy);
    let log = told(&mut news, "tool.finished").await;
    assert!(log.contains("486"), "{log}");
    caller.hang_up().await;
    server.stop().await;
}
