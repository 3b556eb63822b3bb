//! The telephone side of a server: where it listens, and who takes what comes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rsipstack::EndpointBuilder;
use rsipstack::dialog::dialog::Dialog;
use rsipstack::dialog::dialog_layer::DialogLayer;
use rsipstack::dialog::invite_dialog::InviteDialog;
use rsipstack::platform::CancellationToken;
use rsipstack::sip::Port;
use rsipstack::sip::prelude::HeadersExt;
use rsipstack::sip::{
    Auth, Header, HostWithPort, Method, Param, Request, Scheme, StatusCode, Transport, Uri,
};
use rsipstack::transaction::TransactionReceiver;
use rsipstack::transaction::endpoint::EndpointInnerRef;
use rsipstack::transaction::transaction::Transaction;
use rsipstack::transport::TransportLayer;
use rsipstack::transport::tcp_listener::TcpListenerConnection;
use rsipstack::transport::tls::{TlsConfig, TlsListenerConnection};
use rsipstack::transport::udp::UdpConnection;
use sayback_runtime::clock::Clock;
use sayback_runtime::switchboard::Switchboard;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::auth::Door;
use super::crypto::Crypto;
use super::incoming;
use super::media::Sockets;
use super::messages::{ALLOW, abilities, header};
use super::offer::Ours;
use super::options::{Listen, SipOptions, SipTransport};
use super::outbound::{self, Dial, DialError};
use super::ports::{Ports, own_address};
use super::register;
use super::socket::SipSocket;
use super::timer::TimerTerms;

/// What a server calls itself.
const AGENT: &str = concat!("sayback/", env!("CARGO_PKG_VERSION"));

/// How long a registrar may take to let us go.
const GOODBYE: Duration = Duration::from_secs(2);

/// A request that overtakes the ACK of its call is held for so long.
const ACK_WAIT: Duration = Duration::from_secs(2);

/// Why telephone calls cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum SipError {
    /// An address cannot be listened on.
    #[error("cannot listen for SIP on {address} ({transport:?}): {reason}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Over what.
        transport: SipTransport,
        /// Why.
        reason: String,
    },
    /// TLS without a usable certificate.
    #[error("SIP over TLS needs a certificate and a key in `tls`: {0}")]
    Tls(String),
    /// The stack did not start.
    #[error("the SIP stack did not start: {0}")]
    Stack(String),
}

/// What all calls of a server share.
pub(super) struct House {
    pub(super) options: SipOptions,
    pub(super) board: Switchboard,
    pub(super) layer: Arc<DialogLayer>,
    pub(super) door: Door,
    pub(super) clock: Clock,
    ports: Ports,
    endpoint: EndpointInnerRef,
    own_port: Option<u16>,
    /// Calls that we made; they run beside those that came in.
    made: Mutex<JoinSet<()>>,
    /// Dialogs whose ACK has not come yet, and those that have it.
    acknowledged: Mutex<BTreeMap<String, watch::Receiver<bool>>>,
    /// INVITEs that are being set up: Call-ID, From tag and CSeq.
    beginning: Mutex<BTreeSet<String>>,
}

impl House {
    fn beginning(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.beginning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a call begins; `None` if the same one has begun already.
    pub(super) fn begin_once(self: &Arc<Self>, request: &Request) -> Option<BegunOnce> {
        let part = |name: &str| header(request, name).unwrap_or_default();
        let key = format!("{}|{}|{}", part("Call-ID"), part("From"), part("CSeq"));
        let fresh = self.beginning().insert(key.clone());
        fresh.then(|| BegunOnce { house: Arc::clone(self), key })
    }

    fn acknowledgements(&self) -> MutexGuard<'_, BTreeMap<String, watch::Receiver<bool>>> {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A dialog waits for its ACK; it is told of it through what this gives.
    pub(super) fn awaits_ack(&self, dialog: &InviteDialog) -> watch::Sender<bool> {
        let (sender, receiver) = watch::channel(false);
        self.acknowledgements().insert(dialog.id().to_string(), receiver);
        sender
    }

    /// A dialog is over.
    pub(super) fn forget(&self, dialog: &InviteDialog) {
        self.acknowledgements().remove(&dialog.id().to_string());
        self.layer.remove_dialog(&dialog.id());
    }

    /// Waits until a dialog's ACK has been taken; requests that follow on its heels come a moment too soon for the stack,
    /// which would leave them unanswered. False: it never came.
    async fn is_acknowledged(&self, dialog: &InviteDialog) -> bool {
        let receiver = self.acknowledgements().get(&dialog.id().to_string()).cloned();
        let Some(mut receiver) = receiver else { return true };
        let known = tokio::time::timeout(ACK_WAIT, receiver.wait_for(|acknowledged| *acknowledged)).await;
        matches!(known, Ok(Ok(_)))
    }

    /// Where a request came from.
    pub(super) fn source(&self, tx: &Transaction) -> Option<SocketAddr> {
        tx.connection.as_ref()?.get_remote_addr()?.get_socketaddr().ok()
    }

    /// Two sockets for sound towards there, and our side of the session.
    pub(super) async fn sound(&self, towards: SocketAddr) -> Result<(Sockets, Ours), String> {
        let own = own_address(towards).await.ok_or_else(|| format!("there is no way to {towards}"))?;
        let any = if own.is_ipv4() { IpAddr::from([0, 0, 0, 0]) } else { IpAddr::from([0u16; 8]) };
        let bind = if own.is_loopback() { own } else { any };
        let sockets = self.ports.take(bind).await.map_err(|error| error.to_string())?;
        let port = sockets.rtp.local_addr().map_err(|error| error.to_string())?.port();
        let mut random = [0u8; 38];
        getrandom::fill(&mut random).map_err(|error| format!("no random numbers: {error}"))?;
        let (key, id) = random.split_at(30);
        let key: [u8; 30] = key.try_into().map_err(|_| "a key of the wrong length".to_owned())?;
        let id: [u8; 8] = id.try_into().map_err(|_| "an id of the wrong length".to_owned())?;
        let ours = Ours {
            address: self.options.advertise.filter(|_| !own.is_loopback()).unwrap_or(own),
            port,
            // Some readers take ids as signed numbers.
            id: u64::from_be_bytes(id) >> 2,
            version: 1,
            codecs: self.options.codecs.clone(),
            srtp: self.options.srtp,
            key: Crypto::from_random(key),
        };
        Ok((sockets, ours))
    }

    /// What we want of sessions.
    pub(super) fn timer_terms(&self) -> TimerTerms {
        TimerTerms { wish: self.options.session_timer, shortest: self.options.shortest_session }
    }

    /// Any number; zero if the machine has no random ones.
    pub(super) fn random(&self) -> u16 {
        let mut bytes = [0u8; 2];
        let _ = getrandom::fill(&mut bytes);
        u16::from_be_bytes(bytes)
    }

    /// Holds a call that we made, beside those that came in.
    pub(super) fn keep(&self, call: impl Future<Output = ()> + Send + 'static) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(done) = made.try_join_next() {
            if let Err(error) = done {
                tracing::error!("a call broke off: {error}");
            }
        }
        made.spawn(call);
    }

    /// The port that we are called back at.
    pub(super) fn own_port(&self) -> Option<Port> {
        self.own_port.map(Port::from)
    }

    /// Where a SIP address is to be reached.
    pub(super) async fn resolve(&self, uri: &Uri) -> Option<SocketAddr> {
        let host = uri.host_with_port.host.to_string();
        let port = uri.host_with_port.port.as_ref().map_or(5_060, |port| port.value());
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        tokio::net::lookup_host((host, port)).await.ok()?.next()
    }

    /// Where later requests of a dialog are to be sent: our address as the far end sees it, and the port that it used.
    pub(super) fn contact(&self, tx: &Transaction, ours: &Ours) -> Option<Uri> {
        let connection = tx.connection.as_ref()?;
        let port = connection.get_addr().addr.port;
        let transport = connection.transport();
        let named = transport != Transport::Udp;
        let params = named.then_some(Param::Transport(transport)).into_iter().collect();
        let user = tx.original.uri.user().map(|user| Auth { user: user.to_owned(), password: None });
        Some(Uri {
            scheme: Some(Scheme::Sip),
            auth: user,
            host_with_port: HostWithPort { host: ours.address.into(), port },
            params,
            ..Uri::default()
        })
    }
}

/// Keeps an INVITE known as long as its call is set up or up.
pub(super) struct BegunOnce {
    house: Arc<House>,
    key: String,
}

impl Drop for BegunOnce {
    fn drop(&mut self) {
        self.house.beginning().remove(&self.key);
    }
}

/// A server that takes telephone calls, until it is stopped.
pub struct SipServer {
    house: Arc<House>,
    listening: Vec<Listen>,
    cancel: CancellationToken,
    serving: JoinHandle<()>,
    taking: JoinHandle<()>,
    /// Our registration, until it was left.
    registering: Mutex<Option<JoinHandle<()>>>,
    leave: CancellationToken,
}

impl std::fmt::Debug for SipServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SipServer").field("listening", &self.listening).finish_non_exhaustive()
    }
}

impl SipServer {
    /// Listens, and takes calls for the switchboard. To be called on the executor that runs the calls.
    ///
    /// # Errors
    /// If it cannot listen.
    pub async fn start(options: SipOptions, board: Switchboard) -> Result<Self, SipError> {
        let cancel = CancellationToken::new();
        let transports = TransportLayer::new(cancel.clone());
        let mut listening = Vec::new();
        for listen in &options.listen {
            listening.push(open(&transports, *listen, &options, &cancel).await?);
        }
        let endpoint = EndpointBuilder::new()
            .with_cancel_token(cancel.clone())
            .with_transport_layer(transports)
            .with_user_agent(AGENT)
            .build();
        let incoming =
            endpoint.incoming_transactions().map_err(|error| SipError::Stack(error.to_string()))?;
        let inner = Arc::clone(&endpoint.inner);
        let house = House {
            ports: Ports::new(&options.media_ports),
            options,
            board,
            layer: Arc::new(DialogLayer::new(Arc::clone(&inner))),
            door: Door::default(),
            clock: Clock::start(),
            endpoint: Arc::clone(&inner),
            own_port: listening.first().map(|listen| listen.address.port()),
            made: Mutex::new(JoinSet::new()),
            acknowledged: Mutex::default(),
            beginning: Mutex::default(),
        };
        let house = Arc::new(house);
        let leave = cancel.child_token();
        let registering = house
            .options
            .registrar
            .clone()
            .map(|registrar| tokio::spawn(register::keep(registrar, Arc::clone(&inner), leave.clone())));
        let registering = Mutex::new(registering);
        let serving = tokio::spawn(async move { endpoint.serve().await });
        let taking = tokio::spawn(take_all(Arc::clone(&house), incoming, cancel.clone()));
        Ok(Self { house, listening, cancel, serving, taking, registering, leave })
    }

    /// Where it listens, with the ports that it was given.
    pub fn listening(&self) -> &[Listen] {
        &self.listening
    }

    /// Transactions that are under way: a number that must not grow with the calls that have been.
    pub fn transactions(&self) -> usize {
        self.house.endpoint.get_stats().running_transactions
    }

    /// Calls somebody, and waits until the call is up; it then goes on by itself. Gives the call's id.
    ///
    /// # Errors
    /// If there is no room, or no call came about.
    pub async fn dial(&self, dial: Dial) -> Result<String, DialError> {
        outbound::dial(Arc::clone(&self.house), dial).await
    }

    /// Leaves the registrar, so that no more calls are sent here, and stops listening, without waiting for what goes on.
    pub async fn shut(&self) {
        self.leave_registrar().await;
        self.cancel.cancel();
    }

    /// Says goodbye to the registrar while there is still somebody to hear its answer.
    async fn leave_registrar(&self) {
        self.leave.cancel();
        let registering = self.registering.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut registering) = registering else { return };
        if tokio::time::timeout(GOODBYE, &mut registering).await.is_err() {
            registering.abort();
            tracing::info!("the registrar did not say that it has let us go");
        }
    }

    /// Stops listening. Calls that are still up are cut off: let the switchboard drain first.
    pub async fn stop(self) {
        self.shut().await;
        for task in [self.serving, self.taking] {
            if let Err(error) = task.await {
                tracing::error!("the telephone side broke off: {error}");
            }
        }
    }
}

async fn open(
    transports: &TransportLayer,
    listen: Listen,
    options: &SipOptions,
    cancel: &CancellationToken,
) -> Result<Listen, SipError> {
    let Listen { transport, address } = listen;
    let failed = |reason: String| SipError::Listen { address, transport, reason };
    let external = |port| options.advertise.map(|address| SocketAddr::new(address, port));
    match transport {
        SipTransport::Udp => {
            let socket = SipSocket::bind(address).await.map_err(|error| failed(error.to_string()))?;
            let bound = socket.local_addr().map_err(|error| failed(error.to_string()))?;
            let token = Some(cancel.child_token());
            let connection = UdpConnection::from_socket(Arc::new(socket), external(bound.port()), token);
            let connection = connection.await.map_err(|error| failed(error.to_string()))?;
            transports.add_transport(connection.into());
            Ok(Listen { transport, address: bound })
        }
        SipTransport::Tcp => {
            free(address).map_err(|error| failed(error.to_string()))?;
            let listener = TcpListenerConnection::new(address, external(address.port()));
            let listener = listener.await.map_err(|error| failed(error.to_string()))?;
            transports.add_transport(listener.into());
            Ok(listen)
        }
        SipTransport::Tls => {
            free(address).map_err(|error| failed(error.to_string()))?;
            let config = tls(options)?;
            let listener = TlsListenerConnection::new(address, external(address.port()), config);
            let listener = listener.await.map_err(|error| failed(error.to_string()))?;
            transports.add_transport(listener.into());
            Ok(listen)
        }
    }
}

/// The stack binds a stream's port later and only logs a failure; whoever starts a server wants to know it now.
fn free(address: SocketAddr) -> std::io::Result<()> {
    let socket =
        if address.is_ipv4() { tokio::net::TcpSocket::new_v4() } else { tokio::net::TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(1).map(drop)
}

fn tls(options: &SipOptions) -> Result<TlsConfig, SipError> {
    let files = options.tls.as_ref().ok_or_else(|| SipError::Tls("none is named".to_owned()))?;
    let read = |path: &std::path::Path| {
        std::fs::read(path).map_err(|error| SipError::Tls(format!("{}: {error}", path.display())))
    };
    Ok(TlsConfig {
        cert: Some(read(&files.certificate)?),
        key: Some(read(&files.key)?),
        ..TlsConfig::default()
    })
}

/// Gives every request to a task of its own, until the stack stops.
async fn take_all(house: Arc<House>, mut incoming: TransactionReceiver, cancel: CancellationToken) {
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            came = incoming.recv() => match came {
                Some(tx) => {
                    tasks.spawn(take(Arc::clone(&house), tx));
                }
                None => break,
            },
            // The stack keeps its end of the queue open for as long as it is known to anybody.
            () = cancel.cancelled() => break,
            Some(done) = tasks.join_next(), if !tasks.is_empty() => {
                if let Err(error) = done {
                    tracing::error!("a request broke off: {error}");
                }
            }
        }
    }
    tasks.shutdown().await;
}

async fn take(house: Arc<House>, mut tx: Transaction) {
    let within = tx.original.to_header().ok().and_then(|to| to.tag().ok().flatten()).is_some();
    if within {
        match house.layer.match_dialog(&tx) {
            // None of our provisional answers is reliable: there is nothing to acknowledge (RFC 3262, 3).
            Some(_) if tx.original.method == Method::PRack => {
                let _ = tx.reply(StatusCode::CallTransactionDoesNotExist).await;
            }
            Some(Dialog::Invite(mut dialog)) => {
                let waits = !matches!(tx.original.method, Method::Ack | Method::Bye);
                if waits && !house.is_acknowledged(&dialog).await {
                    // RFC 3261, 14.2: the INVITE before it is not over.
                    let later = vec![Header::RetryAfter("2".into())];
                    let _ = tx.reply_with(StatusCode::ServerInternalError, later, None).await;
                    return;
                }
                if let Err(error) = dialog.handle(&mut tx).await {
                    tracing::debug!("{}: {error}", tx.original.method);
                }
            }
            Some(_) | None => {
                if tx.original.method != Method::Ack {
                    let _ = tx.reply(StatusCode::CallTransactionDoesNotExist).await;
                }
            }
        }
        return;
    }
    match tx.original.method {
        Method::Invite => incoming::take(house, tx).await,
        Method::Options => {
            let mut headers = abilities();
            headers.push(Header::Accept("application/sdp".into()));
            let open = house.board.is_open();
            let status = if open { StatusCode::OK } else { StatusCode::ServiceUnavailable };
            let _ = tx.reply_with(status, headers, None).await;
        }
        Method::Ack | Method::Cancel => {}
        Method::Bye | Method::Info | Method::Update | Method::PRack | Method::Notify => {
            let _ = tx.reply(StatusCode::CallTransactionDoesNotExist).await;
        }
        Method::Register | Method::Subscribe | Method::Publish | Method::Message | Method::Refer => {
            let _ =
                tx.reply_with(StatusCode::MethodNotAllowed, vec![Header::Allow(ALLOW.into())], None).await;
        }
    }
}
