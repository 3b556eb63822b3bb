//! The command `sayback`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[macro_use]
mod out;

mod answered;
mod commands;
mod engines;
mod exit;
mod kinds;
mod log;
mod script;
#[cfg(all(feature = "serve", feature = "telemetry"))]
mod telemetry;
mod tuned;
mod vendors;

use exit::Stop;

#[derive(Debug, Parser)]
#[command(
    name = "sayback",
    version,
    about = "A voice agent that acts only on a yes it heard",
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A call on this machine's microphone and speaker
    #[cfg(feature = "mic")]
    Talk(commands::talk::Args),
    /// The same agent in text
    Chat(commands::chat::Args),
    /// Lists stored conversations, or shows one with what ran in it
    Conversations(commands::conversations::Args),
    /// Runs scenarios (*.call.toml) and recorded calls on a virtual clock; folders are searched
    Replay(commands::replay::Args),
    /// Moves the caller's answer across the end of the question, and says where the decision flips
    Sweep(commands::sweep::Args),
    /// Checks the evidence of recorded calls, and decides them again
    Verify(commands::verify::Args),
    /// Answers calls over the network
    #[cfg(feature = "serve")]
    Serve(commands::serve::Args),
    /// Makes a token for the server's HTTP API
    #[cfg(feature = "serve")]
    Token,
    /// Checks an agent file and lints its questions
    Check(commands::check::Args),
    /// Prints what an MCP server offers, as tools of an agent file
    Mcp(commands::mcp::Args),
    /// Runs conformance cases
    Conform(commands::conform::Args),
    /// Local models: list them, or fetch one with its checksum
    Models(commands::models::Args),
    /// Lists microphones and speakers
    #[cfg(feature = "mic")]
    Devices,
    /// Measures the speaker-to-microphone delay and stores it
    #[cfg(feature = "mic")]
    Calibrate(commands::talk::DeviceArgs),
    /// Says what works here and what is missing, with the command that mends it; with an agent, what that one needs
    Doctor(commands::doctor::Args),
}

fn main() -> ExitCode {
    // Two TLS providers in one process panic at the first connection: ours is installed before anything else.
    sayback_providers::openai::install_crypto();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, not errors.
            let usable = !error.use_stderr();
            let _ = error.print();
            return ExitCode::from(if usable { 0 } else { 2 });
        }
    };
    let done = begin_log(&cli.command).and_then(|beside| run(cli.command, beside));
    let code = done.unwrap_or_else(|stop| {
        eprintln!("sayback: {stop}");
        stop.code
    });
    match out::lost() {
        Some(lost) => {
            eprintln!("sayback: {lost}");
            ExitCode::from(if code == 0 { exit::UNUSABLE } else { code })
        }
        None => ExitCode::from(code),
    }
}

/// What runs beside a server.
type Beside = Option<futures::future::BoxFuture<'static, ()>>;

/// Begins the log, and for a server with a collector the spans; gives what sends them.
fn begin_log(command: &Command) -> Result<Beside, Stop> {
    let filter = log::filter(std::env::var("SAYBACK_LOG").ok().as_deref());
    #[cfg(all(feature = "serve", feature = "telemetry"))]
    if let Command::Serve(args) = command
        && let Some(wanted) = telemetry::wanted(args.file())
    {
        use tracing_subscriber::layer::SubscriberExt;
        use tracing_subscriber::util::SubscriberInitExt;
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let lines = tracing_subscriber::Layer::with_filter(lines, filter);
        let (spans, sending) = telemetry::layer(&wanted.otlp)?;
        tracing_subscriber::registry().with(lines).with(spans).init();
        return Ok(Some(Box::pin(sending.run())));
    }
    #[cfg(not(all(feature = "serve", feature = "telemetry")))]
    let _ = command;
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    Ok(None)
}

#[cfg_attr(
    not(feature = "serve"),
    expect(unused_variables, reason = "only a server has something beside it")
)]
fn run(command: Command, beside: Beside) -> Result<u8, Stop> {
    match command {
        #[cfg(feature = "mic")]
        Command::Talk(args) => commands::talk::run(&args),
        Command::Chat(args) => commands::chat::run(&args),
        Command::Conversations(args) => commands::conversations::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Sweep(args) => commands::sweep::run(&args),
        Command::Verify(args) => commands::verify::run(&args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => commands::serve::run(&args, beside),
        #[cfg(feature = "serve")]
        Command::Token => commands::serve::token(),
        Command::Check(args) => commands::check::run(&args),
        Command::Mcp(args) => commands::mcp::run(&args),
        Command::Conform(args) => commands::conform::run(&args),
        Command::Models(args) => commands::models::run(&args),
        #[cfg(feature = "mic")]
        Command::Devices => commands::talk::devices(),
        #[cfg(feature = "mic")]
        Command::Calibrate(args) => commands::talk::calibrate(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
    }
}
