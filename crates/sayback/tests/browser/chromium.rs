//! A headless Chromium, driven over its own protocol: a page is opened, and a script in it is waited for.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use sayback_rig::{runs, skip};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, MutexGuard};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Where Debian and others put it.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// A busy machine starts it slowly.
const PATIENCE: Duration = Duration::from_secs(40);

/// One browser at a time: two that play and recognise at once are more than a small machine does in real time.
static TURN: Mutex<()> = Mutex::const_new(());

/// A running browser with one page.
pub(crate) struct Chromium {
    child: Child,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    session: String,
    number: u64,
    _profile: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// The browser's program; if there is none, that is said loudly, and fails in continuous integration.
pub(crate) fn program() -> Option<&'static str> {
    let found = PROGRAMS.into_iter().find(|name| runs(name, "--version"));
    if found.is_none() {
        skip("there is no Chromium; get it with: scripts/setup --peers");
    }
    found
}

impl Chromium {
    /// Opens an address. `microphone` is a recording that its microphone hears once, instead of a beeping.
    pub(crate) async fn open(program: &str, address: &str, microphone: Option<&Path>) -> Self {
        let turn = TURN.lock().await;
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new(program);
        command.args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--autoplay-policy=no-user-gesture-required",
            "--use-fake-ui-for-media-stream",
            "--use-fake-device-for-media-stream",
            "--remote-debugging-port=0",
        ]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        if let Some(path) = microphone {
            command.arg(format!("--use-file-for-fake-audio-capture={}%noloop", path.display()));
        }
        let child = command.arg("about:blank").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let told = profile.path().join("DevToolsActivePort");
        let limit = Instant::now() + PATIENCE;
        let (port, path) = loop {
            let text = std::fs::read_to_string(&told).unwrap_or_default();
            if let Some((port, path)) = text.split_once('\n').filter(|(_, path)| path.len() > 10) {
                break (port.to_owned(), path.trim().to_owned());
            }
            assert!(Instant::now() < limit, "the browser does not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let (socket, _) = connect_async(format!("ws://127.0.0.1:{port}{path}")).await.unwrap();
        let mut browser =
            Self { child, socket, session: String::new(), number: 0, _profile: profile, _turn: turn };
        let target = browser.ask("Target.createTarget", json!({ "url": address })).await;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.ask("Target.attachToTarget", attach).await;
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        let script = "document.readyState === 'complete' && location.protocol === 'http:'";
        while browser.run(script).await != json!(true) {
            assert!(Instant::now() < limit, "the page does not load");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        browser
    }

    /// What a script in the page comes to, once its promise is kept.
    pub(crate) async fn run(&mut self, script: &str) -> Value {
        let asked = json!({
            "expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true });
        let answer = self.ask("Runtime.evaluate", asked).await;
        assert!(answer.get("exceptionDetails").is_none(), "{answer:#}");
        answer["result"]["value"].clone()
    }

    async fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut asked = json!({ "id": self.number, "method": method, "params": parameters });
        if !self.session.is_empty() {
            asked["sessionId"] = json!(self.session);
        }
        self.socket.send(Message::Text(asked.to_string().into())).await.unwrap();
        loop {
            let message = self.socket.next().await.expect("the browser lives").unwrap();
            let Message::Text(text) = message else { continue };
            let answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == json!(self.number) {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
