//! Calls between networks that cannot reach each other: over a relay (coturn) and through a router, in network namespaces;
//! and a call whose page moves to another address. Needs root. Chromium calls with the client for pages;
//! `tests/browser/network.mjs` steers it.
//!
//! ```text
//! caller 10.77.1.2 ── 10.77.1.1 router 10.77.2.1 ── 10.77.2.2 server
//! ```
//!
//! The router lets TCP to port 8080 through, for HTTP, and of UDP what a test wants: nothing, if not told.

#![cfg(feature = "webrtc")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

#[expect(dead_code, reason = "other tests ask for more")]
#[path = "support/server.rs"]
mod server;

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use sayback_rig::{Browser, has_models, has_program};
use serde_json::{Value, json};
use server::{PROGRAM, Server, repository};

/// They use the same addresses.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
const ADDRESS: &str = "http://10.77.2.2:8080";
const TOKEN: &str = "a-token-of-the-test";
const PASSWORD: &str = "a-password-of-the-test";

/// Three networks, named for the process that made them. They are gone when this is dropped.
struct Networks {
    names: [String; 3],
    relay: Option<Child>,
}

impl Networks {
    fn lay() -> Self {
        let own = std::process::id();
        let names = ["caller", "router", "server"].map(|name| format!("sayback-{own}-{name}"));
        let networks = Self { names, relay: None };
        let [caller, router, server] = &networks.names;
        for name in &networks.names {
            done(Command::new("ip").args(["netns", "add", name]));
            done(Command::new("ip").args(["-n", name, "link", "set", "lo", "up"]));
        }
        for (name, number) in [(caller, 1), (server, 2)] {
            let (near, far) = (format!("sb{own}n{number}"), format!("sb{own}f{number}"));
            let pair = ["link", "add", &near, "netns", name, "type", "veth", "peer", &far, "netns", router];
            done(Command::new("ip").args(pair));
            for (name, end, last) in [(name, &near, 2), (router, &far, 1)] {
                let address = format!("10.77.{number}.{last}/24");
                done(Command::new("ip").args(["-n", name, "address", "add", &address, "dev", end]));
                done(Command::new("ip").args(["-n", name, "link", "set", end, "up"]));
            }
            let gate = format!("10.77.{number}.1");
            done(Command::new("ip").args(["-n", name, "route", "add", "default", "via", &gate]));
        }
        done(within(router, "sysctl").args(["-qw", "net.ipv4.ip_forward=1"]));
        for rule in [
            "-P FORWARD DROP",
            "-A FORWARD -p tcp --dport 8080 -j ACCEPT",
            "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT",
        ] {
            networks.rule(rule);
        }
        networks
    }

    /// A rule of the router's.
    fn rule(&self, rule: &str) {
        done(within(&self.names[1], "iptables").args(rule.split(' ')));
    }

    /// Starts coturn in one of them; sound is relayed from `relayed`.
    fn start_relay(&mut self, network: usize, listening: &[&str], relayed: &str, folder: &Path) {
        let mut command = within(&self.names[network], "turnserver");
        command.args(["-n", "--no-cli", "--no-tls", "--no-dtls", "--lt-cred-mech", "--realm=test"]);
        command.args(listening.iter().map(|address| format!("--listening-ip={address}")));
        command.arg(format!("--relay-ip={relayed}")).arg(format!("--user=sayback:{PASSWORD}"));
        command.arg(format!("--pidfile={}", folder.join("turn.pid").display()));
        command.arg("--log-file=stdout").current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        self.relay = Some(command.spawn().unwrap());
    }

    /// The clinic, and a token that may call it.
    fn serve(&self, folder: &Path, webrtc: &str) -> Server {
        let sha256 = sayback_server::access::hash(TOKEN);
        let agents = server::clinic(folder);
        // A question that was lost on the way is asked again whenever the caller asks again.
        let script = std::fs::read_to_string(folder.join("script.jsonl")).unwrap();
        std::fs::write(folder.join("script.jsonl"), script.repeat(4)).unwrap();
        let config = format!(
            "listen = \"10.77.2.2:8080\"\n{agents}[[auth.token]]\nname = \"page\"\nsha256 = \"{sha256}\"\n\
             roles = [\"call\", \"read\"]\n[tls]\nby_proxy = true\n{webrtc}"
        );
        let mut command = within(&self.names[2], PROGRAM);
        command.env("TURN_PASSWORD", PASSWORD);
        Server::run(folder, &config, command)
    }

    /// Calls, books and gives what the page saw.
    fn call(&self, browser: &Browser, options: &Value) -> Value {
        let done = browser
            .steered(within(&self.names[0], "node"), "network.mjs")
            .args([ADDRESS, TOKEN])
            .arg(repository().join("tests/audio"))
            .arg(options.to_string())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{}{told}", String::from_utf8_lossy(&done.stdout));
        serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {told}"))
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        if let Some(relay) = &mut self.relay {
            let _ = relay.kill();
            let _ = relay.wait();
        }
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// A program in one of the networks.
fn within(network: &str, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", network, program]);
    command
}

fn done(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Whether networks can be laid here, and the program is there that is wanted in them; if not, that is said loudly.
fn can_lay(wanted: Option<&str>) -> bool {
    let programs = wanted.into_iter().map(|program| (program, "--version"));
    if !programs.chain([("ip", "-V"), ("iptables", "-V")]).all(|(program, flag)| has_program(program, flag)) {
        return false;
    }
    let probe = format!("sayback-{}-probe", std::process::id());
    let laid = Command::new("ip").args(["netns", "add", &probe]).output().is_ok_and(|o| o.status.success());
    let _ = Command::new("ip").args(["netns", "delete", &probe]).output();
    if !laid {
        // On machines of continuous integration too: not everybody is root there.
        let _ =
            writeln!(std::io::stderr(), "\n=== SKIPPED: networks cannot be laid here: that needs root ===\n");
    }
    laid
}

fn names(result: &Value) -> Vec<&str> {
    result["told"].as_array().unwrap().iter().filter_map(|line| line["event"].as_str()).collect()
}

#[test]
fn a_call_between_networks_that_cannot_reach_each_other_goes_over_a_relay() {
    let _alone = ONE_AT_A_TIME.lock();
    let Some(browser) = Browser::new().filter(|_| has_models() && can_lay(Some("turnserver"))) else {
        return;
    };
    let relay = "[[webrtc.turn]]\nurl = \"turn:10.77.2.1:3478\"\nuser = \"sayback\"\npassword_env = \"TURN_PASSWORD\"\n";
    let ice = json!([{ "urls": "turn:10.77.1.1:3478", "username": "sayback", "credential": PASSWORD }]);
    // The page alone over a relay; both.
    for (ours, theirs) in [(false, true), (true, true)] {
        let folder = tempfile::tempdir().unwrap();
        let mut networks = Networks::lay();
        networks.start_relay(1, &["10.77.1.1", "10.77.2.1"], "10.77.2.1", folder.path());
        let webrtc = format!("[webrtc]\nrelay_only = {ours}\n{relay}");
        let _server = networks.serve(folder.path(), if ours { &webrtc } else { "[webrtc]\n" });
        let result = networks.call(&browser, &json!({ "iceServers": ice, "relayOnly": theirs }));
        assert!(names(&result).contains(&"tool.finished"), "{result:#}");
        assert!(result["log"].as_str().unwrap().contains("\"evidence\":\"page\""), "{result:#}");
        let way = &result["way"];
        assert_eq!(way["ours"]["candidateType"], "relay", "{way:#}");
        let described = way["described"].as_str().unwrap();
        assert_eq!(described.contains("typ relay"), ours, "{described}");
        assert_eq!(described.contains("typ host"), !ours, "{described}");
    }
}

#[test]
fn a_server_behind_a_router_is_called_where_a_stun_server_saw_it() {
    let _alone = ONE_AT_A_TIME.lock();
    let Some(browser) = Browser::new().filter(|_| has_models() && can_lay(Some("turnserver"))) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut networks = Networks::lay();
    // What leaves for the caller's network has the router's address; what comes to the router for sound is handed on.
    networks.rule("-t nat -A POSTROUTING -d 10.77.1.0/24 -j MASQUERADE");
    networks.rule("-t nat -A PREROUTING -p udp -d 10.77.1.1 -j DNAT --to-destination 10.77.2.2");
    networks.rule("-A FORWARD -p udp -m conntrack --ctstate DNAT -j ACCEPT");
    networks.rule("-A FORWARD -p udp --dport 3478 -j ACCEPT");
    networks.start_relay(0, &["10.77.1.2"], "10.77.1.2", folder.path());
    let _server = networks.serve(folder.path(), "[webrtc]\nstun = [\"stun:10.77.1.2:3478\"]\n");
    let result = networks.call(&browser, &json!({ "hidden": true }));
    assert!(names(&result).contains(&"tool.finished"), "{result:#}");
    let way = &result["way"];
    assert!(way["described"].as_str().unwrap().contains("10.77.1.1"), "{way:#}");
    assert_eq!(way["theirs"]["address"], "10.77.1.1", "{way:#}");
}

#[test]
fn a_page_that_moves_to_another_address_in_the_middle_of_a_question_is_asked_again_in_the_same_call() {
    let _alone = ONE_AT_A_TIME.lock();
    let Some(browser) = Browser::new().filter(|_| has_models() && can_lay(None)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let networks = Networks::lay();
    networks.rule("-A FORWARD -p udp -j ACCEPT");
    let _server = networks.serve(folder.path(), "[webrtc]\n");
    let near = format!("sb{}n1", std::process::id());
    let moves = format!(
        "ip address flush dev {near} && ip address add 10.77.1.3/24 dev {near} && \
         ip route add default via 10.77.1.1"
    );
    let result = networks.call(&browser, &json!({ "move": moves }));
    let told = result["told"].as_array().unwrap();
    let first = |name: &str| told.iter().position(|line| line["event"] == name);
    // The first question was cut off by the move, and nothing ran before another one was heard.
    let dropped = told.iter().find(|line| line["event"] == "question.dropped");
    assert_eq!(dropped.map(|line| &line["reason"]), Some(&json!("not_played")), "{result:#}");
    assert!(first("question.dropped") < first("question.heard"), "{result:#}");
    assert!(first("question.heard") < first("tool.started"), "{result:#}");
    assert!(names(&result).contains(&"tool.finished"), "{result:#}");
    let [before, behind] = [0, 1].map(|at| result["sessions"][at].as_str().unwrap());
    assert_ne!(before, behind, "the ICE session is another one");
    assert_eq!(result["log"].as_str().unwrap().matches("\"call.started\"").count(), 1, "{result:#}");
}
