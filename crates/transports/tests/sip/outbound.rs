//! Calls that we make, and calls that go on to somebody else.

use std::collections::BTreeMap;
use std::time::Duration;

use sayback_media::codec::CodecKind;
use sayback_runtime::llm::LlmEvent;
use sayback_transports::sip::{Destination, Dial, SipOptions};
use tokio::net::UdpSocket;
use tokio::time::Instant;

use super::desk::{Booked, board_of, calls};
use super::phone::Phone;
use super::{MACHINE, options, serve_on};

/// Calls a telephone of our own from a desk that greets and then asks; gives the telephone, picked up.
async fn called(ports: u16) -> (sayback_transports::sip::SipServer, Phone, Booked) {
    let steps = vec![LlmEvent::Text("Hello from the desk.".to_owned()), calls("book", "{}")];
    let (board, booked) = board_of(2, steps);
    let (server, _) = serve_on(options(ports), board).await;
    let sip = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let dial = Dial {
        to: format!("sip:anna@{}", sip.local_addr().unwrap()),
        agent: "desk".to_owned(),
        vars: BTreeMap::from([("voicemail".to_owned(), "Please call us back today.".to_owned())]),
        ..Dial::default()
    };
    let phone = tokio::spawn(Phone::pick_up(sip, CodecKind::Pcmu));
    server.dial(dial).await.unwrap();
    let phone = phone.await.unwrap();
    (server, phone, booked)
}

#[tokio::test(flavor = "multi_thread")]
async fn vc_84_a_person_who_was_called_is_asked_and_books() {
    let _turn = MACHINE.read().await;
    let (server, mut phone, booked) = called(39_000).await;
    phone.listen(Duration::from_millis(600)).await;
    phone.say(Duration::from_millis(600)).await;
    phone.wait_for_question().await;
    phone.listen(Duration::from_millis(2_500)).await;
    // "Hello from the desk" was heard; what is said now makes it ask.
    phone.say(Duration::from_millis(600)).await;
    phone.answer_at(900).await;
    phone.listen(Duration::from_millis(2_500)).await;
    assert_eq!(booked.lock().unwrap().len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vc_84_a_machine_gets_a_message_and_no_question() {
    let _turn = MACHINE.read().await;
    let (server, mut phone, booked) = called(39_100).await;
    phone.listen(Duration::from_millis(300)).await;
    phone.say(Duration::from_millis(4_000)).await;
    let greeted = Instant::now();
    phone.listen(Duration::from_millis(4_500)).await;
    assert!(phone.heard_since(greeted + Duration::from_millis(1_000)), "no message was left");
    assert!(phone.take_request("BYE", "200 OK").await.is_some(), "the call goes on");
    assert_eq!(booked.lock().unwrap().len(), 0);
    server.stop().await;
}

// Its greeting has a pause, so that it is taken for a person, and its second half sets off the question. Then it beeps.
#[tokio::test(flavor = "multi_thread")]
async fn vc_84_a_machine_that_passed_for_a_person_is_told_by_its_beep_and_its_question_is_off() {
    let _turn = MACHINE.read().await;
    let (server, mut phone, booked) = called(39_600).await;
    for (voice, quiet) in [(900, 1_600), (3_400, 600)] {
        phone.say(Duration::from_millis(voice)).await;
        phone.listen(Duration::from_millis(quiet)).await;
    }
    phone.beep(Duration::from_millis(400)).await;
    let beeped = Instant::now();
    // What a machine records is no answer to anything, whenever it comes.
    phone.listen(Duration::from_millis(1_500)).await;
    phone.say(Duration::from_millis(600)).await;
    phone.listen(Duration::from_millis(4_000)).await;
    assert!(phone.heard_since(beeped), "no message was left");
    assert!(phone.take_request("BYE", "200 OK").await.is_some(), "the call goes on");
    assert_eq!(booked.lock().unwrap().len(), 0);
    server.stop().await;
}

/// What the model's wish to transfer to `to` leads to: the call's log, and the REFER that came.
async fn transferred(to: &str, ports: u16) -> (String, Option<String>) {
    let (board, _) = board_of(2, vec![calls("transfer_call", &format!("{{\"to\":\"{to}\"}}"))]);
    let transfers = BTreeMap::from([("reception".to_owned(), Destination::plain("200"))]);
    let (server, address) = serve_on(SipOptions { transfers, ..options(ports) }, board.clone()).await;
    let mut news = board.calls().news();
    let mut phone = Phone::call(address, CodecKind::Pcmu).await;
    phone.listen(Duration::from_millis(800)).await;
    phone.say(Duration::from_millis(600)).await;
    phone.listen(Duration::from_millis(2_500)).await;
    let refer = if to == "boss" { None } else { phone.take_request("REFER", "202 Accepted").await };
    let mut log = String::new();
    while let Ok(line) = news.try_recv() {
        log.push_str(&format!("{}\n", line.line));
    }
    server.stop().await;
    (log, refer)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_sends_callers_only_where_the_servers_file_says() {
    let _turn = MACHINE.read().await;
    let (_, refer) = transferred("reception", 39_200).await;
    let refer = refer.expect("the far end was asked to call somebody else");
    assert!(refer.contains("Refer-To: <sip:200@"), "{refer}");
    let (_, refer) = transferred("112", 39_300).await;
    assert!(refer.expect("nobody is kept from it").contains("Refer-To: <sip:112@"));
    let (log, _) = transferred("boss", 39_400).await;
    assert!(log.contains("nobody may be sent to"), "{log}");
    assert!(log.contains("agent.said"), "the model goes on: {log}");
}
