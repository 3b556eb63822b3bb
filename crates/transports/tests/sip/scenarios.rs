//! What telephones and trunks do, well or badly, one scenario each.

use super::scenario::{PCMU, Scenario, scenario, sdp};

const KEY: &str = "inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR";

/// All of them, by what they are about.
pub(crate) fn all() -> Vec<Scenario> {
    [
        calls(),
        odd_calls(),
        offers(),
        holds(),
        refusals(),
        within_a_call(),
        outside_a_call(),
        transactions(),
        timers(),
    ]
    .concat()
}

fn calls() -> Vec<Scenario> {
    vec![
        scenario("a call").call().pause(300).bye(2),
        scenario("the offer is late")
            .send("INVITE", 1)
            .expect_with(200, &["Content-Type: application/sdp", "m=audio", "opus/48000/2", "PCMU/8000"], &[])
            .send_with("ACK", (true, 1), "Content-Type: application/sdp\n", &sdp(PCMU))
            .pause(300)
            .bye(2),
        scenario("the offer is late and the answer never comes")
            .send("INVITE", 1)
            .expect(200)
            .ack(1)
            .expect_request("BYE", &[]),
        scenario("the answer tells how to go on")
            .invite(PCMU)
            .expect_with(200, &["Contact: <sip:", "Allow: ", "Supported: .*timer", "To: .*tag="], &[])
            .ack(1)
            .bye(2),
        scenario("a recorded route comes back")
            .send_with(
                "INVITE",
                (false, 1),
                "Record-Route: <sip:[local_ip]:[local_port];lr>\nContent-Type: application/sdp\n",
                &sdp(PCMU),
            )
            .expect_with(200, &["Record-Route: <sip:.*;lr>"], &[])
            .ack(1)
            .bye(2),
    ]
}

fn odd_calls() -> Vec<Scenario> {
    vec![
        scenario("short header names")
            .send_with("INVITE", (false, 1), "k: timer\nc: application/sdp\n", &sdp(PCMU))
            .expect_with(200, &["m=audio"], &[])
            .ack(1)
            .bye(2),
        scenario("an unknown header and a long one")
            .send_with(
                "INVITE",
                (false, 1),
                &format!("X-Odd: {}\nX-Empty:\nContent-Type: application/sdp\n", "a".repeat(900)),
                &sdp(PCMU),
            )
            .expect(200)
            .ack(1)
            .bye(2),
        scenario("a body of several parts")
            .send_with(
                "INVITE",
                (false, 1),
                "Content-Type: multipart/mixed;boundary=xyz\n",
                &format!("--xyz\nContent-Type: application/sdp\n\n{}\n--xyz--\n", sdp(PCMU)),
            )
            .expect_with(200, &["m=audio"], &[])
            .ack(1)
            .bye(2),
        scenario("the last hop is ours")
            .send_with("INVITE", (false, 1), "Content-Type: application/sdp\n", &sdp(PCMU))
            .hops(0)
            .expect(200)
            .ack(1)
            .bye(2),
        scenario("reliable provisional answers are required, and none is sent")
            .send_with("INVITE", (false, 1), "Require: 100rel\nContent-Type: application/sdp\n", &sdp(PCMU))
            .expect(200)
            .ack(1)
            .bye(2),
    ]
}

fn offer(name: &'static str, media: &str, has: &[&'static str]) -> Scenario {
    scenario(name).invite(media).expect_with(200, has, &[]).ack(1).pause(200).bye(2)
}

fn offers() -> Vec<Scenario> {
    let crypto = format!("m=audio [media_port] RTP/SAVP 0\na=crypto:3 AES_CM_128_HMAC_SHA1_80 {KEY}\n");
    vec![
        offer("PCMA alone", "m=audio [media_port] RTP/AVP 8\n", &["RTP/AVP 8", "PCMA/8000"]),
        offer(
            "G722 alone",
            "m=audio [media_port] RTP/AVP 9\na=rtpmap:9 G722/8000\n",
            &["RTP/AVP 9", "G722/8000"],
        ),
        offer(
            "Opus by a number of theirs",
            "m=audio [media_port] RTP/AVP 0 107\na=rtpmap:107 opus/48000/2\n",
            &["RTP/AVP 107", "107 opus/48000/2"],
        ),
        offer("packets of 30 ms", "m=audio [media_port] RTP/AVP 0\na=ptime:30\n", &["a=ptime:30"]),
        offer("packets of 10 ms", "m=audio [media_port] RTP/AVP 0\na=ptime:10\n", &["a=ptime:10"]),
        offer("packets of 60 ms", "m=audio [media_port] RTP/AVP 0\na=ptime:60\n", &["a=ptime:60"]),
        offer(
            "video is refused in its place",
            "m=video 9000 RTP/AVP 31\nm=audio [media_port] RTP/AVP 0\n",
            &["m=video 0 RTP/AVP 31", "m=audio [1-9]"],
        ),
        offer("reports on the same port", "m=audio [media_port] RTP/AVP 0\na=rtcp-mux\n", &["a=rtcp-mux"]),
        offer("comfort noise", "m=audio [media_port] RTP/AVP 0 13\n", &["RTP/AVP 0 13", "CN/8000"]),
        offer("encrypted sound", &crypto, &["RTP/SAVP 0", "a=crypto:3 AES_CM_128_HMAC_SHA1_80 inline:"]),
        offer("a session id that is no number", "m=audio [media_port] RTP/AVP 0\na=x:y\n", &["m=audio"]),
    ]
}

fn hold(name: &'static str, lines: &str, has: &'static str) -> Scenario {
    let held = format!("m=audio [media_port] RTP/AVP 0\n{lines}");
    scenario(name)
        .call()
        .reinvite(2, &held)
        .expect_with(200, &[has], &[])
        .ack(2)
        .pause(200)
        .reinvite(3, PCMU)
        .expect_with(200, &["a=sendrecv"], &[])
        .ack(3)
        .bye(4)
}

fn holds() -> Vec<Scenario> {
    vec![
        hold("hold by sendonly and back", "a=sendonly\n", "a=recvonly"),
        hold("hold by inactive and back", "a=inactive\n", "a=inactive"),
        hold("hold by an address of zeros and back", "c=IN IP4 0.0.0.0\n", "a=recvonly"),
        hold("they listen only, and back", "a=recvonly\n", "a=sendonly"),
        scenario("another codec in the middle of the call")
            .call()
            .reinvite(2, "m=audio [media_port] RTP/AVP 9\na=rtpmap:9 G722/8000\n")
            .expect_with(200, &["RTP/AVP 9"], &[])
            .ack(2)
            .pause(300)
            .reinvite(3, "m=audio [media_port] RTP/AVP 8\n")
            .expect_with(200, &["RTP/AVP 8"], &[])
            .ack(3)
            .pause(200)
            .bye(4),
        scenario("a re-INVITE without an offer")
            .call()
            .then("INVITE", 2)
            .expect_with(200, &["m=audio"], &[])
            .send_with("ACK", (true, 2), "Content-Type: application/sdp\n", &sdp(PCMU))
            .bye(3),
        scenario("a re-INVITE that cannot be met leaves the call as it was")
            .call()
            .reinvite(2, "m=audio [media_port] RTP/AVP 18\n")
            .refused_within(488, 2)
            .then("OPTIONS", 3)
            .expect(200)
            .bye(4),
    ]
}

fn refusals() -> Vec<Scenario> {
    let refused = |name, media: &str, has: &[&'static str]| scenario(name).invite(media).refused(488, has);
    vec![
        refused("no codec in common", "m=audio [media_port] RTP/AVP 18\n", &["Warning: 399 .*codec"]),
        refused("audio that is refused by its own port", "m=audio 0 RTP/AVP 0\n", &[]),
        refused("no audio", "m=image 5000 udptl t38\n", &[]),
        refused("encrypted without a key", "m=audio [media_port] RTP/SAVP 0\n", &["a=crypto"]),
        refused("keys by DTLS", "m=audio [media_port] UDP/TLS/RTP/SAVPF 0\na=fingerprint:sha-256 AA\n", &[]),
        scenario("a description that is none").invite("m=audio nonsense\n").refused(400, &["Warning: 399"]),
        scenario("a body of another kind")
            .send_with("INVITE", (false, 1), "Content-Type: text/plain\n", "hello")
            .refused(415, &["Accept: application/sdp"]),
        scenario("an extension that we do not have")
            .send_with("INVITE", (false, 1), "Require: 100rel, teleport\n", "")
            .refused(420, &["Unsupported: teleport"]),
        scenario("nobody answers there").to("nobody").invite(PCMU).refused(404, &[]),
    ]
}

fn within_a_call() -> Vec<Scenario> {
    let info = |name, kind: &str, body: &str, status| {
        scenario(name)
            .call()
            .send_with("INFO", (true, 2), &format!("Content-Type: {kind}\n"), body)
            .expect(status)
            .bye(3)
    };
    let method = |name, method, status: u16| scenario(name).call().then(method, 2).expect(status).bye(3);
    vec![
        info("a key by INFO", "application/dtmf-relay", "Signal=1\nDuration=160\n", 200),
        info("a key by a plain INFO", "application/dtmf", "1", 200),
        info("an INFO about something else", "application/xml", "<a/>", 415),
        method("OPTIONS within the call", "OPTIONS", 200),
        method("MESSAGE within the call", "MESSAGE", 405),
        method("SUBSCRIBE within the call", "SUBSCRIBE", 405),
        method("an UPDATE that only refreshes", "UPDATE", 200),
        scenario("a PRACK of an answer that was never sent")
            .call()
            .send_with("PRACK", (true, 2), "RAck: 1 1 INVITE\n", "")
            .expect(481)
            .bye(3),
        scenario("an UPDATE that wants too short a session leaves the call as it was")
            .call()
            .send_with("UPDATE", (true, 2), "Supported: timer\nSession-Expires: 30\n", "")
            .expect_with(422, &["Min-SE: 90"], &[])
            .then("OPTIONS", 3)
            .expect(200)
            .bye(4),
        scenario("REFER within the call")
            .call()
            .send_with("REFER", (true, 2), "Refer-To: <sip:x@y>\n", "")
            .expect(405)
            .bye(3),
        scenario("an UPDATE that holds")
            .call()
            .send_with(
                "UPDATE",
                (true, 2),
                "Content-Type: application/sdp\n",
                &sdp("m=audio [media_port] RTP/AVP 0\na=sendonly\n"),
            )
            .expect_with(200, &["a=recvonly"], &[])
            .bye(3),
    ]
}

fn outside_a_call() -> Vec<Scenario> {
    let alone = |name, method, status: u16| scenario(name).send(method, 1).expect(status);
    vec![
        scenario("OPTIONS").send("OPTIONS", 1).expect_with(
            200,
            &["Allow: .*INVITE", "Accept: application/sdp"],
            &[],
        ),
        scenario("REGISTER is not ours").send("REGISTER", 1).expect_with(405, &["Allow: "], &[]),
        alone("SUBSCRIBE is not ours", "SUBSCRIBE", 405),
        alone("PUBLISH is not ours", "PUBLISH", 405),
        alone("MESSAGE is not ours", "MESSAGE", 405),
        alone("REFER without a call", "REFER", 405),
        alone("BYE without a call", "BYE", 481),
        alone("INFO without a call", "INFO", 481),
        alone("UPDATE without a call", "UPDATE", 481),
        alone("NOTIFY without a call", "NOTIFY", 481),
        alone("a method that nobody knows", "TELEPORT", 501),
        scenario("BYE in a call that is not there")
            .send_with("BYE", (false, 9), "X-Was: there\n", "")
            .expect(481),
    ]
}

fn transactions() -> Vec<Scenario> {
    vec![
        scenario("the ACK is lost and the call waits for it")
            .invite(PCMU)
            .expect(200)
            .pause(1_700)
            .ack(1)
            .pause(300)
            .bye(2),
        scenario("BYE before the ACK").invite(PCMU).expect(200).then("BYE", 2).expect(200),
        scenario("a call after a call").call().bye(2).pause(100),
        scenario("an ACK twice").call().ack(1).pause(200).bye(2),
        scenario("a call that is ended twice").call().bye(2).then("BYE", 3).expect(481),
        scenario("CANCEL after the answer")
            .invite(PCMU)
            .expect(200)
            .ack(1)
            .send("CANCEL", 1)
            .expect(481)
            .bye(2),
    ]
}

fn timers() -> Vec<Scenario> {
    let headers =
        |value: &str| format!("Supported: timer\nSession-Expires: {value}\nContent-Type: application/sdp\n");
    let timed = |name, value: &str, has: &'static str| {
        scenario(name)
            .send_with("INVITE", (false, 1), &headers(value), &sdp(PCMU))
            .expect_with(200, &[has], &[])
            .ack(1)
            .bye(2)
    };
    vec![
        timed("the caller refreshes", "120;refresher=uac", "Session-Expires: 120;refresher=uac"),
        timed("we refresh", "120;refresher=uas", "Session-Expires: 120;refresher=uas"),
        timed("whoever refreshes", "1000", "Session-Expires: 1000;refresher=uac"),
        scenario("a session that is too short")
            .send_with("INVITE", (false, 1), &headers("30"), &sdp(PCMU))
            .refused(422, &["Min-SE: 90"]),
        scenario("a refresh by re-INVITE")
            .send_with("INVITE", (false, 1), &headers("120;refresher=uac"), &sdp(PCMU))
            .expect(200)
            .ack(1)
            .send_with("INVITE", (true, 2), &headers("120;refresher=uac"), &sdp(PCMU))
            .expect_with(200, &["Session-Expires: 120;refresher=uac", "Require: timer"], &[])
            .ack(2)
            .bye(3),
        scenario("a session is not made shorter than somebody on the way takes")
            .send_with(
                "INVITE",
                (false, 1),
                "Supported: timer\nSession-Expires: 3600\nMin-SE: 2400\nContent-Type: application/sdp\n",
                &sdp(PCMU),
            )
            .expect_with(200, &["Session-Expires: 2400;refresher=uac"], &[])
            .ack(1)
            .bye(2),
    ]
}
