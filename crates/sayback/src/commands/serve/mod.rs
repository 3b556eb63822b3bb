//! `sayback serve`: calls over the network, an HTTP API, and the agents that answer.

mod archive;
#[cfg(feature = "webrtc")]
mod browsers;
mod config;
mod desks;
mod noted;
mod recordings;
mod stores;
mod telephones;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args as ClapArgs;
use futures::future::BoxFuture;
use sayback_runtime::approvals::ApprovalQueue;
use sayback_runtime::switchboard::{Switchboard, Witnesses};
use sayback_server::adk::Sessions;
use sayback_server::recordings::Archive;
use sayback_server::webhook::{Delivered, deliver};
use sayback_server::{Access, Api, Gauge, Limiter, Tls};
use tokio::net::TcpListener;

use crate::engines::Waits;
use crate::exit::Stop;
use archive::{Moves, ObjectArchive, Recorded};
use config::Config;
use desks::AgentDesks;
use noted::Noted;
use recordings::Recordings;
use stores::Stores;
use telephones::Telephones;

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The server's file
    #[arg(default_value = "configs/hosted.toml")]
    config: PathBuf,
    /// Reads the server's file and its agents, says what is wrong or missing, and does not start
    #[arg(long)]
    check: bool,
}

impl Args {
    /// The server's file.
    #[cfg(feature = "telemetry")]
    pub(crate) fn file(&self) -> &std::path::Path {
        &self.config
    }
}

/// Runs the server; `beside` runs for as long as it does.
pub(crate) fn run(args: &Args, beside: Option<BoxFuture<'static, ()>>) -> Result<u8, Stop> {
    let config = config::load(&args.config)?;
    let access = Access::new(config.tokens.clone(), config.listen)
        .map_err(|error| Stop::unusable(format!("{}: {error}", args.config.display())))?;
    for name in access.expired_tokens() {
        eprintln!("sayback: the token of {name:?} has expired and is refused; see expires in [[auth.token]]");
    }
    let unusable = |error| Stop::unusable(format!("{}: [tls]: {error}", args.config.display()));
    let tls = config.tls.clone().map(Tls::new).transpose().map_err(unusable)?;
    let desks = Arc::new(AgentDesks::new(config.agents.clone())?);
    if args.check {
        let missing = desks.missing()?;
        if !missing.is_empty() {
            let what = missing.join("\n  ");
            return Err(Stop::missing(format!(
                "{}: missing for its agents:\n  {what}",
                args.config.display()
            )));
        }
        out!("{}: all is well", args.config.display());
        return Ok(0);
    }
    let waits = Waits::new()?;
    beside.map(|beside| waits.runtime().spawn(beside));
    waits.runtime().block_on(serve(config, (access, tls), desks))
}

/// Makes a token: what is to be sent, and what is to be written down.
pub(crate) fn token() -> Result<u8, Stop> {
    let mut bytes = [0; 32];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut random| std::io::Read::read_exact(&mut random, &mut bytes))
        .map_err(|error| Stop::missing(format!("no random numbers: {error}")))?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    out!("token  {token}");
    out!("sha256 {}", sayback_server::access::hash(&token));
    eprintln!("Keep the token; write its sha256 into the server's file:");
    eprintln!("  [[auth.token]]\n  name = \"…\"\n  sha256 = \"…\"\n  roles = [\"read\", \"call\"]");
    Ok(0)
}

/// Text sessions, which outlive the server where there is a store.
fn text_sessions(desks: &Arc<AgentDesks>, stores: &Stores, kept: &Arc<dyn Witnesses>) -> Sessions {
    let sessions =
        Sessions::new(Arc::clone(desks) as _, stores.approvals.clone()).written_by(Arc::clone(kept));
    let (Some(stored), Some(conversations)) = (&stores.sessions, &stores.conversations) else {
        return sessions;
    };
    sessions.kept_in(Arc::clone(stored), Arc::clone(conversations))
}

async fn serve(
    config: Config,
    (access, tls): (Access, Option<Tls>),
    desks: Arc<AgentDesks>,
) -> Result<u8, Stop> {
    let listener = bind(config.listen).await?;
    let address = listener.local_addr().unwrap_or(config.listen);
    let audio_socket = match config.audio_socket {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let stores = Stores::open(&config.store, config.ledger).await?;
    let (recorded, moves, archive) = archived(&config)?;
    let (kept, approvals) = (witnesses(&config, &stores, recorded), stores.approvals.clone());
    let sessions = text_sessions(&desks, &stores, &kept);
    let board = Switchboard::with_approvals(Arc::clone(&desks) as _, Some(kept), config.limits, approvals);
    let telephones = match config.sip.clone() {
        Some(options) => Some(Telephones::start(options, board.clone()).await?),
        None => None,
    };
    let api = Api {
        board: board.clone(),
        access: Arc::new(access),
        dialer: telephones.clone().map(|telephones| Arc::new(telephones) as _),
        browsers: browsers(&config, &board),
        recordings: config.record.as_ref().map(|recording| recordings::kept(recording, archive)),
        gauges: gauges(&config, &board, moves.as_ref()),
        sessions,
        approvals: stores.approvals.clone(),
        conversations: stores.conversations.clone(),
        ledger: stores.ledger.clone(),
        limiter: Arc::new(Limiter::new(config.http)),
    };
    let media = sayback_transports::media_stream::router(board.clone(), config.media.clone());
    let routes = sayback_server::router(api, media);
    out!("listening on {}://{address}", if tls.is_some() { "https" } else { "http" });
    for line in telephones.iter().flat_map(Telephones::listening) {
        out!("listening for SIP on {line}");
    }
    if let Some(listener) = audio_socket {
        take_audio_socket(listener, &board);
    }
    // Calls are taken at once; those that come before the models are there wait for them.
    let loading = tokio::spawn(async move { desks.load_all().await });
    let (tell, over) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(answer(listener, tls, routes, over));
    tokio::select! {
        () = stopped() => {}
        broken = first_fault(loading) => return Err(broken),
    }
    eprintln!("sayback: no more calls are taken; those that go on have {} s", config.drain.as_secs());
    tokio::select! {
        () = board.drain(config.drain) => {}
        () = stopped() => eprintln!("sayback: stopping at once"),
    }
    if let Some(telephones) = telephones {
        telephones.stop().await;
    }
    let _ = tell.send(());
    // Whoever still reads events of a call that is over is not waited for.
    let _ = tokio::time::timeout(std::time::Duration::from_secs(5), serving).await;
    finish(moves, &stores.approvals).await;
    #[cfg(feature = "telemetry")]
    crate::telemetry::flushed().await;
    Ok(0)
}

fn take_audio_socket(listener: TcpListener, board: &Switchboard) {
    let address = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
    out!("listening for AudioSocket on {address}");
    tokio::spawn(sayback_transports::media_stream::serve_audio_socket(listener, board.clone()));
}

/// Moves away what is still here, and says goodbye to other servers: last, because until then it says that it lives.
async fn finish(moves: Option<Arc<Moves>>, approvals: &ApprovalQueue) {
    if let Some(moves) = moves {
        moves.finish(LAST_MOVES).await;
    }
    if let Err(error) = approvals.leave().await {
        tracing::warn!("other servers find out by themselves that this one ends: {error}");
    }
}

/// Which calls are recorded, who moves their recordings away, and where they are then.
type Archived = (Recorded, Option<Arc<Moves>>, Option<Arc<dyn Archive>>);

/// Starts to move recordings away, if the server's file says where to.
fn archived(config: &Config) -> Result<Archived, Stop> {
    let recorded = Recorded::default();
    let (Some(record), Some(place)) = (&config.record, &config.objects) else {
        return Ok((recorded, None, None));
    };
    let objects = place.open().map_err(|error| Stop::unusable(format!("[store] {error}")))?;
    let moves = Moves::of(&record.folder, objects.clone(), recorded.clone())?;
    tokio::spawn(Arc::clone(&moves).keep_moving());
    Ok((recorded, Some(moves), Some(Arc::new(ObjectArchive::new(objects)))))
}

/// Answers over HTTP, with TLS or without, until it is told to stop.
async fn answer(
    listener: TcpListener,
    tls: Option<Tls>,
    routes: sayback_server::Router,
    over: tokio::sync::oneshot::Receiver<()>,
) -> std::io::Result<()> {
    let over = async {
        // A sender that is gone says the same.
        let _ = over.await;
    };
    match tls {
        Some(tls) => sayback_server::serve_tls(listener, tls, routes, over).await,
        None => sayback_server::serve(listener, routes, over).await,
    }
}

/// Who takes calls from browsers, if the server's file says so.
fn browsers(config: &Config, board: &Switchboard) -> Option<Arc<dyn sayback_server::Browsers>> {
    #[cfg(feature = "webrtc")]
    if let Some(options) = config.webrtc.clone() {
        return Some(Arc::new(browsers::Pages::new(options, board.clone())));
    }
    #[cfg(not(feature = "webrtc"))]
    let _ = (config, board);
    None
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Stop> {
    TcpListener::bind(address).await.map_err(|error| {
        Stop::missing(format!(
            "cannot listen on {address}: {error}\n  hint: choose another port in the server's file"
        ))
    })
}

/// Ends only if the models cannot be loaded.
async fn first_fault(loading: tokio::task::JoinHandle<Result<(), Stop>>) -> Stop {
    match loading.await {
        Ok(Ok(())) => std::future::pending().await,
        Ok(Err(stop)) => stop,
        Err(error) => Stop::missing(format!("the models could not be loaded: {error}")),
    }
}

/// Waits for somebody to ask for the end: SIGTERM, or Ctrl-C.
async fn stopped() {
    let interrupted = tokio::signal::ctrl_c();
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut terminated) => {
            tokio::select! {
                _ = interrupted => {}
                _ = terminated.recv() => {}
            }
        }
        Err(_) => {
            let _ = interrupted.await;
        }
    }
}

/// At its end a server takes so long to move recordings away.
const LAST_MOVES: std::time::Duration = std::time::Duration::from_secs(10);

/// Whose runs of our own are noted: no token has this name.
const OWN: &str = "sayback's own calls";

/// Who hears of each call.
fn witnesses(config: &Config, stores: &Stores, recorded: Recorded) -> Arc<dyn Witnesses> {
    let recordings = Recordings::new(config.record.clone(), stores.conversations.clone(), recorded);
    let recordings = Some(Arc::new(recordings) as _);
    let (ledger, unnoted) = (stores.ledger.of_app(OWN), config.ledger.unnoted);
    Arc::new(Noted { ledger, unnoted, recordings })
}

/// What is to be seen at `/metrics` of the parts beside the calls.
fn gauges(config: &Config, board: &Switchboard, moves: Option<&Arc<Moves>>) -> Vec<Gauge> {
    let mut gauges = start_webhooks(config, board);
    gauges.extend(moves.into_iter().flat_map(Moves::gauges));
    #[cfg(feature = "telemetry")]
    gauges.push(Gauge {
        name: "sayback_spans_lost_total",
        help: "spans that never reached the collector",
        kind: "counter",
        value: Arc::new(|| crate::telemetry::lost() as f64),
    });
    gauges
}

/// Starts the webhooks, and gives what is to be seen of them.
fn start_webhooks(config: &Config, board: &Switchboard) -> Vec<Gauge> {
    let mut all = Vec::new();
    for hook in config.webhooks.clone() {
        let delivered = Arc::new(Delivered::default());
        tokio::spawn(deliver(hook, board.calls().news(), Arc::clone(&delivered)));
        all.push(delivered);
    }
    if all.is_empty() {
        return Vec::new();
    }
    let all = Arc::new(all);
    let figure = |name, help, of: fn(&Delivered) -> u64| {
        let all = Arc::clone(&all);
        let value = Arc::new(move || all.iter().map(|d| of(d)).sum::<u64>() as f64);
        Gauge { name, help, kind: "counter", value }
    };
    vec![
        figure("sayback_webhook_events_total", "events that a webhook took", Delivered::sent),
        figure("sayback_webhook_lost_total", "events that no webhook took", Delivered::lost),
    ]
}
