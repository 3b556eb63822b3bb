//! Requests and answers that cross on the way, answers that come twice, and answers that must be acknowledged early.

use std::net::SocketAddr;
use std::time::Duration;

use sayback_transports::sip::{Dial, DialError, SipOptions, SipServer};

use super::desk::board;
use super::peer::{Peer, sdp, status, value};
use super::{MACHINE, options, serve, serve_on};

fn to(peer: &Peer) -> Dial {
    Dial { to: format!("sip:peer@{}", peer.address), agent: "desk".to_owned(), ..Dial::default() }
}

async fn serve_one(ports: u16) -> (SipServer, SocketAddr) {
    let options = SipOptions { ring: Duration::from_millis(1_500), ..options(ports) };
    let (server, address, _) = serve(options, 1).await;
    (server, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_on_the_heels_of_its_invite_leaves_one_answer_and_no_call() {
    let _turn = MACHINE.read().await;
    let (board, _) = board(20);
    let (server, address) = serve_on(options(51_000), board.clone()).await;
    for _ in 0..8 {
        let mut peer = Peer::bind(address).await;
        peer.send("INVITE", 1, "", &sdp(1)).await;
        let cancelled = peer.ask("CANCEL", 1, "", "").await;
        let answer = peer.ask("INVITE", 1, "", &sdp(1)).await;
        peer.send("ACK", 1, "", "").await;
        match (status(&cancelled), status(&answer)) {
            // It came too late, or there was nothing to cancel any more.
            (200 | 481, 200) => peer.bye(2).await,
            (200, 487) => {}
            other => panic!("{other:?}: {cancelled}\n{answer}"),
        }
    }
    let free = tokio::time::timeout(Duration::from_secs(20), board.calls().none_live()).await;
    assert!(free.is_ok(), "a place is still taken");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_crosses_our_cancel_is_acknowledged_and_ended() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_one(51_050).await;
    let mut peer = Peer::bind(address).await;
    let (up, ()) = tokio::join!(server.dial(to(&peer)), async {
        let invite = peer.called().await;
        peer.reply(&invite, "180 Ringing", "", "").await;
        let cancel = peer.take("CANCEL").await;
        peer.answer(&invite, "", &sdp(1)).await;
        peer.reply(&cancel, "481 Call Does Not Exist", "", "").await;
        let bye = peer.take("BYE").await;
        peer.reply(&bye, "200 OK", "", "").await;
    });
    assert!(matches!(up, Err(DialError::Unanswered { .. })), "{up:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_cancelled_before_the_far_end_has_said_anything() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_one(51_100).await;
    let mut peer = Peer::bind(address).await;
    let (up, invite) = tokio::join!(server.dial(to(&peer)), peer.called());
    assert!(matches!(up, Err(DialError::Unanswered { .. })), "{up:?}");
    assert!(peer.take_within("CANCEL", Duration::from_millis(300)).await.is_none());
    peer.reply(&invite, "180 Ringing", "", "").await;
    let cancel = peer.take("CANCEL").await;
    peer.reply(&cancel, "200 OK", "", "").await;
    peer.reply(&invite, "487 Request Terminated", "", "").await;
    peer.take("ACK").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_answer_the_first_is_talked_to_and_the_other_let_go() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_one(51_150).await;
    let mut peer = Peer::bind(address).await;
    let (up, ()) = tokio::join!(server.dial(to(&peer)), async {
        let invite = peer.called().await;
        for tag in ["first", "second"] {
            peer.tag = tag;
            peer.reply(&invite, "180 Ringing", "", "").await;
        }
        peer.tag = "first";
        let ack = peer.answer(&invite, "", &sdp(1)).await;
        assert!(value(&ack, "To").ends_with("tag=first"), "{ack}");
        peer.tag = "second";
        let ack = peer.answer(&invite, "", &sdp(1)).await;
        assert!(value(&ack, "To").ends_with("tag=second"), "{ack}");
        let bye = peer.take("BYE").await;
        assert!(value(&bye, "To").ends_with("tag=second"), "{bye}");
        assert!(bye.starts_with("BYE sip:second@"), "{bye}");
        peer.reply(&bye, "200 OK", "", "").await;
    });
    up.unwrap();
    assert!(peer.take_within("BYE", Duration::from_millis(500)).await.is_none(), "the first one stays");
    peer.own_tag("first");
    let answer = peer.ask("OPTIONS", 1, "", "").await;
    assert_eq!(status(&answer), 200, "{answer}");
    peer.bye(2).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_early_answer_that_must_arrive_is_acknowledged_and_counts() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_one(51_200).await;
    let mut peer = Peer::bind(address).await;
    let (up, ()) = tokio::join!(server.dial(to(&peer)), async {
        let invite = peer.called().await;
        assert!(invite.lines().any(|line| line.starts_with("Supported:") && line.contains("100rel")));
        let reliable = "Require: 100rel\r\nRSeq: 71\r\n";
        peer.reply(&invite, "183 Session Progress", reliable, &sdp(1)).await;
        let prack = peer.take("PRACK").await;
        let sequence = value(&invite, "CSeq").split(' ').next().unwrap_or_default();
        assert_eq!(value(&prack, "RAck"), format!("71 {sequence} INVITE"), "{prack}");
        peer.reply(&prack, "200 OK", "", "").await;
        // The description came early; this has none.
        peer.answer(&invite, "", "").await;
    });
    up.unwrap();
    peer.bye(1).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_early_answer_of_somebody_else_is_none() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_one(51_250).await;
    let mut peer = Peer::bind(address).await;
    let (up, ()) = tokio::join!(server.dial(to(&peer)), async {
        let invite = peer.called().await;
        peer.tag = "first";
        let reliable = "Require: 100rel\r\nRSeq: 1\r\n";
        peer.reply(&invite, "183 Session Progress", reliable, &sdp(1)).await;
        let prack = peer.take("PRACK").await;
        peer.reply(&prack, "200 OK", "", "").await;
        peer.tag = "second";
        peer.answer(&invite, "", "").await;
        let bye = peer.take("BYE").await;
        peer.reply(&bye, "200 OK", "", "").await;
    });
    assert!(matches!(up, Err(DialError::Failed { .. })), "{up:?}");
    server.stop().await;
}
