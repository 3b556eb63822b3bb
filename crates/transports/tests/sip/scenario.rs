//! Scenarios for sipp, written as steps and handed over as the XML that it reads.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Output;

use sayback_rig::has_program;

/// What the far end does, or what it expects of us.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A request, its extra headers and its body. The second number of a name says which CSeq.
    Send { method: &'static str, to_tag: bool, cseq: u32, headers: String, body: String },
    /// The ACK of an answer that was no 2xx: it belongs to the INVITE before it.
    AckRefusal { cseq: u32 },
    /// Our answer, with patterns that it must match and some that it must not.
    Expect { status: u16, has: Vec<&'static str>, lacks: Vec<&'static str> },
    /// A request of ours, answered with 200.
    ExpectRequest { method: &'static str, has: Vec<&'static str> },
    /// So many milliseconds of nothing.
    Pause(u32),
}

/// A caller's side of a call.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Whom it calls.
    pub(crate) to: &'static str,
    pub(crate) steps: Vec<Step>,
}

pub(crate) fn scenario(name: &'static str) -> Scenario {
    Scenario { name, to: "100", steps: Vec::new() }
}

/// An audio offer with more lines.
pub(crate) fn sdp(media: &str) -> String {
    format!(
        "v=0\no=sipp 1 1 IN IP[local_ip_type] [local_ip]\ns=-\nc=IN IP[media_ip_type] [media_ip]\nt=0 0\n{media}"
    )
}

pub(crate) const PCMU: &str = "m=audio [media_port] RTP/AVP 0 101\na=rtpmap:0 PCMU/8000\n\
    a=rtpmap:101 telephone-event/8000\na=fmtp:101 0-15\n";

impl Scenario {
    pub(crate) fn to(mut self, to: &'static str) -> Self {
        self.to = to;
        self
    }

    pub(crate) fn send(self, method: &'static str, cseq: u32) -> Self {
        self.send_with(method, (false, cseq), "", "")
    }

    /// Within the dialog.
    pub(crate) fn then(self, method: &'static str, cseq: u32) -> Self {
        self.send_with(method, (true, cseq), "", "")
    }

    pub(crate) fn send_with(
        mut self,
        method: &'static str,
        (to_tag, cseq): (bool, u32),
        headers: &str,
        body: &str,
    ) -> Self {
        let (headers, body) = (headers.to_owned(), body.to_owned());
        self.steps.push(Step::Send { method, to_tag, cseq, headers, body });
        self
    }

    pub(crate) fn invite(self, media: &str) -> Self {
        self.send_with("INVITE", (false, 1), "Content-Type: application/sdp\n", &sdp(media))
    }

    pub(crate) fn reinvite(self, cseq: u32, media: &str) -> Self {
        self.send_with("INVITE", (true, cseq), "Content-Type: application/sdp\n", &sdp(media))
    }

    pub(crate) fn expect(self, status: u16) -> Self {
        self.expect_with(status, &[], &[])
    }

    pub(crate) fn expect_with(mut self, status: u16, has: &[&'static str], lacks: &[&'static str]) -> Self {
        self.steps.push(Step::Expect { status, has: has.to_vec(), lacks: lacks.to_vec() });
        self
    }

    pub(crate) fn expect_request(mut self, method: &'static str, has: &[&'static str]) -> Self {
        self.steps.push(Step::ExpectRequest { method, has: has.to_vec() });
        self
    }

    pub(crate) fn pause(mut self, ms: u32) -> Self {
        self.steps.push(Step::Pause(ms));
        self
    }

    pub(crate) fn ack(self, cseq: u32) -> Self {
        self.then("ACK", cseq)
    }

    /// The refusal of an INVITE, and its ACK.
    pub(crate) fn refused(self, status: u16, has: &[&'static str]) -> Self {
        let mut refused = self.expect_with(status, has, &[]);
        refused.steps.push(Step::AckRefusal { cseq: 1 });
        refused
    }

    /// The refusal of a re-INVITE, and its ACK.
    pub(crate) fn refused_within(self, status: u16, cseq: u32) -> Self {
        let mut refused = self.expect(status);
        refused.steps.push(Step::AckRefusal { cseq });
        refused
    }

    /// The last request may travel over so many hops.
    pub(crate) fn hops(mut self, hops: u32) -> Self {
        if let Some(Step::Send { headers, .. }) = self.steps.last_mut() {
            headers.push_str(&format!("Max-Forwards: {hops}\n"));
        }
        self
    }

    /// A plain call that is up.
    pub(crate) fn call(self) -> Self {
        self.invite(PCMU).expect_with(200, &["m=audio [0-9]+ RTP/AVP 0 101"], &[]).ack(1)
    }

    pub(crate) fn bye(self, cseq: u32) -> Self {
        self.then("BYE", cseq).expect(200)
    }

    fn xml(&self, transport: &str) -> String {
        let mut xml = format!("<?xml version=\"1.0\"?>\n<scenario name=\"{}\">\n", self.name);
        for step in &self.steps {
            self.step(step, transport, &mut xml);
        }
        xml + "</scenario>\n"
    }

    fn step(&self, step: &Step, transport: &str, xml: &mut String) {
        match step {
            Step::Send { method, to_tag, cseq, headers, body } => {
                let tag = if *to_tag { "[peer_tag_param]" } else { "" };
                let branch = "[branch]";
                let message = self.message(method, (*cseq, tag, branch), transport, (headers, body));
                let resend = if *method == "ACK" || transport != "UDP" { "" } else { " retrans=\"500\"" };
                let _ = writeln!(xml, "<send{resend}><![CDATA[\n{message}\n]]></send>");
            }
            Step::AckRefusal { cseq } => {
                let message =
                    self.message("ACK", (*cseq, "[peer_tag_param]", "[branch-3]"), transport, ("", ""));
                let _ = writeln!(xml, "<send><![CDATA[\n{message}\n]]></send>");
            }
            Step::Expect { status, has, lacks } => {
                for early in [100, 180, 183] {
                    // One optional line keeps the distance of an ACK from its INVITE.
                    if early == 100 {
                        let _ = writeln!(xml, "<recv response=\"{early}\" optional=\"true\"></recv>");
                    }
                }
                let checks = checks(has, lacks);
                let _ =
                    writeln!(xml, "<recv response=\"{status}\" auth=\"{}\">{checks}</recv>", *status == 401);
            }
            Step::ExpectRequest { method, has } => {
                let _ = writeln!(xml, "<recv request=\"{method}\">{}</recv>", checks(has, &[]));
                xml.push_str(
                    "<send><![CDATA[\nSIP/2.0 200 OK\n[last_Via:]\n[last_From:]\n[last_To:]\n[last_Call-ID:]\n\
                     [last_CSeq:]\nContent-Length: 0\n\n]]></send>\n",
                );
            }
            Step::Pause(ms) => {
                let _ = writeln!(xml, "<pause milliseconds=\"{ms}\"/>");
            }
        }
    }

    fn message(
        &self,
        method: &str,
        (cseq, tag, branch): (u32, &str, &str),
        transport: &str,
        (headers, body): (&str, &str),
    ) -> String {
        let to = self.to;
        let hops = if headers.contains("Max-Forwards") { "" } else { "Max-Forwards: 70\n" };
        format!(
            "{method} sip:{to}@[remote_ip]:[remote_port] SIP/2.0\nVia: SIP/2.0/{transport} [local_ip]:[local_port];branch={branch}\n\
             From: \"Anna\" <sip:anna@[local_ip]:[local_port]>;tag=[call_number]\n\
             To: <sip:{to}@[remote_ip]:[remote_port]>{tag}\nCall-ID: [call_id]\nCSeq: {cseq} {method}\n\
             Contact: <sip:anna@[local_ip]:[local_port];transport={transport}>\n{hops}{headers}\
             Content-Length: [len]\n\n{body}"
        )
    }

    /// Runs it with sipp against a server; the error is what sipp says.
    pub(crate) async fn run(&self, server: std::net::SocketAddr, transport: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let file = folder.path().join("scenario.xml");
        std::fs::write(&file, self.xml(transport)).map_err(|error| error.to_string())?;
        let mut output = sipp(&file, server, transport, folder.path()).await?;
        // Between looking for a free port and taking it, somebody else may have taken it.
        if !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("bind") {
            output = sipp(&file, server, transport, folder.path()).await?;
        }
        if output.status.success() {
            return Ok(());
        }
        let errors: String = std::fs::read_dir(folder.path())
            .map_err(|error| error.to_string())?
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().ends_with(".log"))
            .map(|entry| std::fs::read_to_string(entry.path()).unwrap_or_default())
            .collect();
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{}: {}\n{said}{errors}", self.name, output.status))
    }
}

fn checks(has: &[&str], lacks: &[&str]) -> String {
    if has.is_empty() && lacks.is_empty() {
        return String::new();
    }
    let one = |(n, (pattern, attribute)): (usize, (&&str, &str))| {
        let pattern = pattern.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        format!("<ereg regexp=\"{pattern}\" search_in=\"msg\" {attribute}=\"true\" assign_to=\"c{n}\"/>")
    };
    let has = has.iter().map(|pattern| (pattern, "check_it"));
    let lacks = lacks.iter().map(|pattern| (pattern, "check_it_inverse"));
    let all: Vec<String> = has.chain(lacks).enumerate().map(one).collect();
    let logged: String = (0..all.len()).map(|n| format!("<log message=\"[$c{n}]\"/>")).collect();
    format!("<action>{}{logged}</action>", all.join(""))
}

async fn sipp(
    file: &Path,
    server: std::net::SocketAddr,
    transport: &str,
    folder: &Path,
) -> Result<Output, String> {
    let mode = match transport {
        "TCP" => "t1",
        "TLS" => "l1",
        _ => "u1",
    };
    let mut command = tokio::process::Command::new("sipp");
    command.arg("-sf").arg(file).args(["-m", "1", "-nostdin", "-trace_err", "-trace_msg", "-i", "127.0.0.1"]);
    command.args(["-timeout", "20s", "-timeout_error", "-t", mode, "-au", "anna", "-ap", "secret"]);
    // A port of its own: those that it tries by itself may be taken by another one that runs now.
    let port = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = port.map_err(|error| error.to_string())?.port().to_string();
    command.args(["-p", &port]).arg(server.to_string()).current_dir(folder).kill_on_drop(true);
    command.output().await.map_err(|error| format!("sipp: {error}"))
}

/// Whether sipp is here. In continuous integration it must be.
pub(crate) fn have_sipp() -> bool {
    has_program("sipp", "-v")
}

/// A telephone of sipp's that answers one call.
pub(crate) fn uas(port: u16) -> tokio::process::Child {
    let mut command = tokio::process::Command::new("sipp");
    command.args(["-sn", "uas", "-m", "1", "-nostdin", "-i", "127.0.0.1", "-p"]).arg(port.to_string());
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).kill_on_drop(true);
    command.spawn().unwrap()
}
