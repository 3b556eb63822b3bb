//! Callers of other makers, and what is no caller at all.

use super::server::Server;

#[test]
fn what_is_no_offer_is_refused_with_what_would_be_taken() {
    let server = Server::start("[webrtc]\n");
    let sdp = [("Content-Type", "application/sdp")];
    for (method, headers, body, expected) in [
        ("GET", &sdp[..], "", (405, "method-not-allowed")),
        ("POST", &[], "v=0\r\n", (415, "wrong-type")),
        ("POST", &sdp[..], "hello", (400, "bad-description")),
        ("POST", &sdp[..], "v=0\r\n", (400, "bad-description")),
        ("POST", &[sdp[0], ("Accept", "text/html")], "v=0\r\n", (406, "sdp-only")),
    ] {
        let (status, answer) = server.ask(method, "/v1/webrtc", headers, body);
        assert_eq!(status, expected.0, "{method} {body:?}: {answer}");
        assert!(answer.contains(&format!("urn:sayback:{}", expected.1)), "{answer}");
    }
    let fragment = ("Content-Type", "application/trickle-ice-sdpfrag");
    let candidate = "a=candidate:1 1 udp 1 192.0.2.1 5000 typ host\r\n";
    for (headers, body, expected) in [
        (&[fragment][..], candidate, (428, "if-match-wanted")),
        (&[fragment, ("If-Match", "\"x\"")], candidate, (404, "no-such-call")),
        (&[fragment, ("If-Match", "*")], "hello", (400, "bad-description")),
    ] {
        let (status, answer) = server.ask("PATCH", "/v1/webrtc/webrtc-1", headers, body);
        assert_eq!(status, expected.0, "{body:?}: {answer}");
        assert!(answer.contains(&format!("urn:sayback:{}", expected.1)), "{answer}");
    }
    assert_eq!(server.ask("DELETE", "/v1/webrtc/webrtc-1", &[], "").0, 404);
    assert_eq!(server.ask("GET", "/sayback.js", &[], "").0, 200);
}

#[test]
fn without_a_table_there_are_no_calls_from_browsers() {
    let server = Server::start("");
    let (status, answer) =
        server.ask("POST", "/v1/webrtc", &[("Content-Type", "application/sdp")], "v=0\r\n");
    assert_eq!(status, 501, "{answer}");
    assert!(answer.contains("urn:sayback:no-webrtc"), "{answer}");
}
