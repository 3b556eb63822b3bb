use super::*;
use proptest::prelude::*;

fn ours() -> Ours {
    Ours {
        address: "198.51.100.5".parse().unwrap(),
        port: 20_000,
        id: 7,
        version: 1,
        codecs: CodecKind::ALL.to_vec(),
        srtp: SrtpPolicy::Optional,
        key: Crypto::from_random([3; 30]),
    }
}

fn offered(lines: &str) -> Description {
    Description::parse(format!("v=0\r\nc=IN IP4 192.0.2.1\r\n{lines}").as_bytes()).unwrap()
}

fn answered(lines: &str) -> (Agreed, String) {
    answer(&offered(lines), &ours()).unwrap()
}

#[test]
fn the_codec_is_ours_to_choose_and_its_number_theirs() {
    let lines = "m=audio 4000 RTP/AVP 0 8 9 96 97\r\na=rtpmap:96 opus/48000/2\r\na=rtpmap:97 telephone-event/48000\r\n";
    let (agreed, text) = answered(lines);
    assert_eq!(
        (agreed.types.codec, agreed.types.audio, agreed.types.events),
        (CodecKind::Opus, 96, Some(97))
    );
    assert!(
        text.contains("m=audio 20000 RTP/AVP 96 97\r\n") && text.contains("telephone-event/48000"),
        "{text}"
    );
    let only = Ours { codecs: vec![CodecKind::Pcma], ..ours() };
    assert_eq!(answer(&offered(lines), &only).unwrap().0.types.codec, CodecKind::Pcma);
}

#[test]
fn every_other_medium_is_refused_in_its_place() {
    let (_, text) = answered("m=video 5000 RTP/AVP 31\r\nm=audio 4000 RTP/AVP 0\r\nm=text 1 X y\r\n");
    let media: Vec<&str> = text.lines().filter(|line| line.starts_with("m=")).collect();
    assert_eq!(media, ["m=video 0 RTP/AVP 31", "m=audio 20000 RTP/AVP 0", "m=text 0 X y"]);
}

#[test]
fn holds_of_every_kind_are_answered_and_seen() {
    let hold = |lines: &str| {
        let (agreed, text) = answered(lines);
        let direction = ["sendrecv", "sendonly", "recvonly", "inactive"]
            .into_iter()
            .find(|name| text.contains(&format!("a={name}\r\n")))
            .unwrap();
        (agreed.heard, agreed.hearing, direction)
    };
    assert_eq!(hold("m=audio 1000 RTP/AVP 0\r\n"), (true, true, "sendrecv"));
    assert_eq!(hold("m=audio 1000 RTP/AVP 0\r\na=sendonly\r\n"), (false, true, "recvonly"));
    assert_eq!(hold("m=audio 1000 RTP/AVP 0\r\na=recvonly\r\n"), (true, false, "sendonly"));
    assert_eq!(hold("m=audio 1000 RTP/AVP 0\r\na=inactive\r\n"), (false, false, "inactive"));
    assert_eq!(hold("m=audio 1000 RTP/AVP 0\r\nc=IN IP4 0.0.0.0\r\n"), (false, true, "recvonly"));
}

#[test]
fn packets_are_as_long_as_the_far_end_wants_and_the_codec_can() {
    let ptime = |lines: &str| {
        let lines = format!("m=audio 1000 RTP/AVP 0 96\r\na=rtpmap:96 opus/48000/2\r\n{lines}");
        let pcmu = Ours { codecs: vec![CodecKind::Pcmu], ..ours() };
        (answer(&offered(&lines), &pcmu).unwrap().0.format.ptime_ms, answered(&lines).0.format.ptime_ms)
    };
    assert_eq!(ptime(""), (20, 20));
    assert_eq!(ptime("a=ptime:30\r\n"), (30, 20));
    assert_eq!(ptime("a=ptime:60\r\na=maxptime:40\r\n"), (40, 40));
    assert_eq!(ptime("a=ptime:1\r\n"), (10, 10));
    assert_eq!(ptime("a=ptime:500\r\n"), (60, 60));
}

#[test]
fn reports_go_where_they_are_wanted() {
    let at = |lines: &str| answered(&format!("m=audio 4000 RTP/AVP 0\r\n{lines}")).0.reports.port();
    assert_eq!((at(""), at("a=rtcp:5005\r\n"), at("a=rtcp-mux\r\n")), (4_001, 5_005, 4_000));
}

#[test]
fn comfort_noise_and_keys_are_taken_if_offered() {
    let (agreed, text) = answered("m=audio 1 RTP/AVP 8 13 101\r\na=rtpmap:101 telephone-event/8000\r\n");
    assert_eq!((agreed.types.comfort_noise, agreed.types.events), (Some(13), Some(101)));
    assert!(text.contains("RTP/AVP 8 13 101") && text.contains("a=fmtp:101 0-15"), "{text}");
}

#[test]
fn an_encrypted_offer_is_answered_with_a_key_of_ours_under_its_tag() {
    let key = "inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR";
    let lines = format!(
        "m=audio 1 RTP/SAVP 0\r\na=crypto:1 F8_128_HMAC_SHA1_80 {key}\r\na=crypto:4 AES_CM_128_HMAC_SHA1_32 {key}\r\n"
    );
    let (agreed, text) = answered(&lines);
    assert!(agreed.srtp.is_some());
    assert!(
        text.contains("RTP/SAVP") && text.contains("a=crypto:4 AES_CM_128_HMAC_SHA1_32 inline:"),
        "{text}"
    );
    assert!(!text.contains("PS1uQCVe"), "not their own key");
}

#[test]
fn what_cannot_be_agreed_on_is_refused_with_the_reason() {
    let refused = |lines: &str, ours: &Ours| answer(&offered(lines), ours).unwrap_err();
    assert!(matches!(refused("m=audio 1 RTP/AVP 18\r\n", &ours()), NoSession::NoCodec { .. }));
    assert_eq!(refused("m=audio 0 RTP/AVP 0\r\n", &ours()), NoSession::NoAudio);
    assert_eq!(refused("m=video 1 RTP/AVP 0\r\n", &ours()), NoSession::NoAudio);
    assert_eq!(refused("c=IN IP4 phone.example\r\nm=audio 1 RTP/AVP 0\r\n", &ours()), NoSession::NoAddress);
    let required = Ours { srtp: SrtpPolicy::Required, ..ours() };
    assert!(matches!(refused("m=audio 1 RTP/AVP 0\r\n", &required), NoSession::Encryption(_)));
    assert!(matches!(refused("m=audio 1 RTP/SAVP 0\r\n", &ours()), NoSession::Encryption(_)));
    assert!(matches!(refused("m=audio 1 UDP/TLS/RTP/SAVPF 0\r\n", &ours()), NoSession::Encryption(_)));
}

#[test]
fn two_of_us_agree() {
    for srtp in [SrtpPolicy::Optional, SrtpPolicy::Required] {
        let caller = Ours { srtp, port: 30_000, ..ours() };
        let offer = offer(&caller, Direction::SendRecv);
        let (theirs, text) = answer(&Description::parse(offer.as_bytes()).unwrap(), &ours()).unwrap();
        let mine = take_answer(&Description::parse(text.as_bytes()).unwrap(), &caller).unwrap();
        assert_eq!((mine.types, mine.format), (theirs.types, theirs.format));
        assert_eq!((mine.remote.port(), theirs.remote.port()), (20_000, 30_000));
        assert_eq!(mine.srtp.is_some(), srtp == SrtpPolicy::Required);
        if let (Some(mine), Some(theirs)) = (mine.srtp, theirs.srtp) {
            assert_eq!((mine.local, mine.remote), (theirs.remote, theirs.local));
        }
    }
}

proptest! {
    #[test]
    fn any_offer_is_answered_or_refused(lines in prop::collection::vec("(m=audio [0-9]{1,5} RTP/S?AVP [0-9 ]{0,12}|a=[ -~]{0,40}|c=IN IP4 [0-9.]{1,15})", 1..20)) {
        let body = lines.join("\r\n");
        if let Ok(offer) = Description::parse(body.as_bytes())
            && let Ok((agreed, text)) = answer(&offer, &ours())
        {
            prop_assert!((10..=60).contains(&agreed.format.ptime_ms));
            let ours = Description::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(ours.media.len(), offer.media.len());
        }
    }
}
