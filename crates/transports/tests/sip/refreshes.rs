//! Session timers (RFC 4028) and re-INVITEs that meet (RFC 3261, 14), with sessions of seconds instead of minutes.

use std::time::Duration;

use sayback_transports::sip::{Dial, DialError, SipOptions, SipServer};
use tokio::time::Instant;

use super::peer::{ALLOW, Peer, sdp, status, value};
use super::{MACHINE, options, serve};

/// A server that takes sessions of six seconds.
async fn serve_short(ports: u16) -> (SipServer, std::net::SocketAddr) {
    let options = SipOptions { shortest_session: Duration::from_secs(4), ..options(ports) };
    let (server, address, _) = serve(options, 4).await;
    (server, address)
}

fn asks(value: &str, more: &str) -> String {
    format!("Supported: timer\r\nSession-Expires: {value}\r\n{more}")
}

const TAKEN: &str = "Supported: timer\r\nRequire: timer\r\nSession-Expires: 6;refresher=uac\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn we_refresh_by_update_where_the_far_end_takes_it() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_short(50_000).await;
    let mut peer = Peer::call(address, &asks("6;refresher=uas", ALLOW)).await;
    for _ in 0..2 {
        let update = peer.take("UPDATE").await;
        assert_eq!(value(&update, "Session-Expires"), "6;refresher=uac", "{update}");
        assert_eq!(value(&update, "Content-Length"), "0", "it changes nothing: {update}");
        peer.reply(&update, "200 OK", TAKEN, "").await;
    }
    peer.bye(2).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn we_refresh_by_re_invite_where_it_does_not() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_short(50_050).await;
    let mut peer = Peer::call(address, &asks("6;refresher=uas", "")).await;
    for version in 2..4 {
        let invite = peer.take("INVITE").await;
        assert!(invite.contains("m=audio"), "our description as it is: {invite}");
        peer.answer(&invite, TAKEN, &sdp(version)).await;
    }
    peer.bye(2).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_takes_no_update_after_all_gets_a_re_invite() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_short(50_100).await;
    let mut peer = Peer::call(address, &asks("6;refresher=uas", ALLOW)).await;
    let update = peer.take("UPDATE").await;
    peer.reply(&update, "405 Method Not Allowed", "", "").await;
    let invite = peer.take("INVITE").await;
    peer.answer(&invite, TAKEN, &sdp(2)).await;
    peer.bye(2).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_far_end_that_refreshes_is_kept_and_one_that_does_not_is_left() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_short(50_150).await;
    let began = Instant::now();
    let mut peer = Peer::call(address, &asks("6;refresher=uac", ALLOW)).await;
    assert!(peer.take_within("BYE", Duration::from_secs(2)).await.is_none());
    let answer = peer.ask("UPDATE", 2, &asks("6;refresher=uac", ""), "").await;
    assert_eq!((status(&answer), value(&answer, "Session-Expires")), (200, "6;refresher=uac"), "{answer}");
    let refreshed = Instant::now();
    let bye = peer.take("BYE").await;
    assert!(value(&bye, "Reason").contains("cause=408"), "{bye}");
    // Four of the six seconds after the refresh, not after the beginning of the call.
    assert!(refreshed.elapsed() >= Duration::from_millis(3_500), "{:?}", began.elapsed());
    peer.reply(&bye, "200 OK", "", "").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_that_is_refused_again_and_again_ends_the_call_in_time() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_short(50_200).await;
    let mut peer = Peer::call(address, &asks("6;refresher=uas", ALLOW)).await;
    let update = peer.take("UPDATE").await;
    peer.reply(&update, "500 Server Internal Error", "", "").await;
    let bye = peer.take("BYE").await;
    assert!(value(&bye, "Reason").contains("cause=408"), "{bye}");
    peer.reply(&bye, "200 OK", "", "").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_far_end_that_knows_of_no_such_call_ends_it() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_short(50_250).await;
    let mut peer = Peer::call(address, &asks("6;refresher=uas", ALLOW)).await;
    let update = peer.take("UPDATE").await;
    peer.reply(&update, "481 Call Does Not Exist", "", "").await;
    let bye = peer.take("BYE").await;
    assert!(value(&bye, "Reason").contains("cause=481"), "{bye}");
    peer.reply(&bye, "200 OK", "", "").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_that_is_too_short_for_somebody_on_the_way_comes_again_longer() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_short(50_300).await;
    let mut peer = Peer::call(address, &asks("6;refresher=uas", ALLOW)).await;
    let update = peer.take("UPDATE").await;
    peer.reply(&update, "422 Session Interval Too Small", "Min-SE: 30\r\n", "").await;
    let update = peer.take("UPDATE").await;
    assert_eq!(value(&update, "Session-Expires"), "30;refresher=uac", "{update}");
    peer.reply(&update, "200 OK", "", "").await;
    peer.bye(2).await;
    server.stop().await;
}

/// A server that has called a peer, which has answered with these headers.
async fn dialled(ports: u16, headers: &str) -> (SipServer, Peer) {
    let (server, address) = serve_short(ports).await;
    let mut peer = Peer::bind(address).await;
    let dial = Dial { to: format!("sip:peer@{}", peer.address), agent: "desk".to_owned(), ..Dial::default() };
    let (up, ()) = tokio::join!(server.dial(dial), async {
        let invite = peer.called().await;
        peer.answer(&invite, headers, &sdp(1)).await;
    });
    up.unwrap();
    (server, peer)
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_called_may_leave_refreshing_to_us() {
    let _turn = MACHINE.read().await;
    let (server, mut peer) = dialled(50_350, &format!("{ALLOW}{TAKEN}")).await;
    let update = peer.take("UPDATE").await;
    peer.reply(&update, "200 OK", TAKEN, "").await;
    peer.bye(1).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_too_short_for_somebody_on_the_way_is_made_again_longer() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_short(50_400).await;
    let mut peer = Peer::bind(address).await;
    let dial = Dial { to: format!("sip:peer@{}", peer.address), agent: "desk".to_owned(), ..Dial::default() };
    let (up, ()) = tokio::join!(server.dial(dial), async {
        let first = peer.called().await;
        assert_eq!(value(&first, "Session-Expires"), "1800;refresher=uac");
        peer.reply(&first, "422 Session Interval Too Small", "Min-SE: 3600\r\n", "").await;
        peer.take("ACK").await;
        let second = peer.called().await;
        assert_eq!(value(&second, "Session-Expires"), "3600;refresher=uac", "{second}");
        assert_eq!(value(&second, "Min-SE"), "3600", "{second}");
        peer.answer(&second, "", &sdp(1)).await;
    });
    up.unwrap();
    peer.bye(1).await;
    server.stop().await;
}

/// Our re-INVITE and theirs meet (sessions of 26 s, so that there is time for all of it); how long ours then takes to come again.
async fn glare(peer: &mut Peer, cseq: u32) -> Duration {
    let ours = peer.take("INVITE").await;
    let theirs = peer.ask("INVITE", cseq, "", &sdp(2)).await;
    assert_eq!(status(&theirs), 491, "{theirs}");
    peer.send("ACK", cseq, "", "").await;
    peer.reply(&ours, "491 Request Pending", "", "").await;
    let met = Instant::now();
    let again = peer.take("INVITE").await;
    let waited = met.elapsed();
    peer.answer(&again, TAKEN, &sdp(3)).await;
    // Nothing is under way any more: theirs is taken now.
    let theirs = peer.ask("INVITE", cseq + 1, "", &sdp(4)).await;
    assert_eq!(status(&theirs), 200, "{theirs}");
    peer.send("ACK", cseq + 1, "", "").await;
    peer.bye(cseq + 2).await;
    waited
}

#[tokio::test(flavor = "multi_thread")]
async fn re_invites_that_meet_are_both_refused_and_ours_comes_again() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_short(50_450).await;
    let mut peer = Peer::call(address, &asks("26;refresher=uas", "")).await;
    glare(&mut peer, 2).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_made_the_call_waits_longer_before_it_asks_again() {
    let _turn = MACHINE.read().await;
    let taken = "Supported: timer\r\nSession-Expires: 26;refresher=uac\r\n";
    let (server, mut peer) = dialled(50_500, taken).await;
    let waited = glare(&mut peer, 1).await;
    assert!(waited >= Duration::from_millis(2_050), "{waited:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_that_meets_ours_is_refused_and_an_update_without_one_is_not() {
    let _turn = MACHINE.read().await;
    let (server, address) = serve_short(50_550).await;
    let mut peer = Peer::call(address, &asks("6;refresher=uas", "")).await;
    let ours = peer.take("INVITE").await;
    let plain = peer.ask("UPDATE", 2, "", "").await;
    assert_eq!(status(&plain), 200, "{plain}");
    let offer = peer.ask("UPDATE", 3, "", &sdp(2)).await;
    assert_eq!(status(&offer), 491, "{offer}");
    peer.answer(&ours, TAKEN, &sdp(3)).await;
    peer.bye(4).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_takes_is_given_up() {
    let _turn = MACHINE.read().await;
    let options = SipOptions { ring: Duration::from_millis(1_500), ..options(50_600) };
    let (server, address, _) = serve(options, 1).await;
    let mut peer = Peer::bind(address).await;
    let dial = Dial { to: format!("sip:peer@{}", peer.address), agent: "desk".to_owned(), ..Dial::default() };
    let (up, ()) = tokio::join!(server.dial(dial), async {
        let invite = peer.called().await;
        peer.reply(&invite, "180 Ringing", "", "").await;
        let cancel = peer.take("CANCEL").await;
        peer.reply(&cancel, "200 OK", "", "").await;
        peer.reply(&invite, "487 Request Terminated", "", "").await;
        peer.take("ACK").await;
    });
    assert!(matches!(up, Err(DialError::Unanswered { .. })), "{up:?}");
    server.stop().await;
}
