//! A server of the test's own that answers with exactly the bytes it is given, cut exactly where it is told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What the server does with a connection once it has read the request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes again and again, until nobody listens.
    SendForEver(Vec<u8>),
    /// Sends nothing more, and waits until the client hangs up.
    Stall,
    /// Reads the next request on the same connection.
    NextRequest,
}

/// A running server; every connection sees the same acts.
pub(crate) struct Server {
    pub(crate) base_url: String,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<String>>,
    connections: Mutex<u32>,
    hung_up: Notify,
}

impl Server {
    pub(crate) async fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                *shared.connections.lock().unwrap() += 1;
                tokio::spawn(serve(connection, acts.clone(), Arc::clone(&shared)));
            }
        });
        Self { base_url, seen }
    }

    /// Requests so far, heads and bodies.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> u32 {
        *self.seen.connections.lock().unwrap()
    }

    /// Waits until a client has closed a connection that the server holds open.
    pub(crate) async fn hung_up(&self) {
        self.seen.hung_up.notified().await;
    }
}

async fn serve(mut connection: TcpStream, acts: Vec<Act>, seen: Arc<Seen>) {
    connection.set_nodelay(true).unwrap();
    if read_request(&mut connection, &seen).await.is_none() {
        return;
    }
    for act in acts {
        let going = match act {
            Act::Send(bytes) => connection.write_all(&bytes).await.is_ok(),
            Act::SendForEver(bytes) => {
                while connection.write_all(&bytes).await.is_ok() {}
                false
            }
            Act::Stall => {
                let mut byte = [0];
                let _ = connection.read(&mut byte).await;
                false
            }
            Act::NextRequest => read_request(&mut connection, &seen).await.is_some(),
        };
        if !going {
            seen.hung_up.notify_one();
            return;
        }
    }
}

async fn read_request(connection: &mut TcpStream, seen: &Seen) -> Option<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        // A body may be sound: its length is counted in bytes.
        if let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&request[..end]);
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if request.len() - end - 4 >= length.unwrap_or(0_usize) {
                seen.requests.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
                return Some(());
            }
        }
        match connection.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => request.extend_from_slice(&buffer[..read]),
        }
    }
}

/// A response with this status and body, whole.
pub(crate) fn response(status: &str, kind: &str, extra: &str, body: &str) -> Vec<Act> {
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{extra}content-length: {}\r\n\r\n", body.len());
    vec![Act::Send((head + body).into_bytes())]
}

/// The head of an event stream in HTTP chunks.
pub(crate) fn stream_head() -> Act {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
    Act::Send(head.into())
}

/// One HTTP chunk: the client sees each as a piece of its own, however TCP joins them.
pub(crate) fn http_chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// An event stream cut into pieces of `size` bytes, and properly ended.
pub(crate) fn stream_in_pieces(body: &str, size: usize) -> Vec<Act> {
    let mut acts = vec![stream_head()];
    acts.extend(body.as_bytes().chunks(size).map(|piece| Act::Send(http_chunk(piece))));
    acts.push(Act::Send(b"0\r\n\r\n".to_vec()));
    acts
}
