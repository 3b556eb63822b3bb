//! `sayback-llm`: a language model in a GGUF file behind the OpenAI chat API, on loopback.
//!
//! It is a program of its own because llama.cpp and whisper.cpp carry the same symbols and cannot share a binary.
//! Whoever starts it reads one line, `listening on 127.0.0.1:PORT`, from its standard output, and keeps its standard
//! input open: when that closes, however the parent ended, the program ends too.
//!
//! Besides the standard it understands one field, `choices`: the answer is exactly one of these words.

mod answer;
mod api;
mod engine;
mod grammar;
mod prompt;
mod server;
mod slots;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use axum::serve::ListenerExt;
use clap::Parser;

/// What the command line says.
#[derive(Debug, Parser)]
#[command(version, about = "A local language model behind the OpenAI chat API, on loopback.")]
struct Arguments {
    /// The model, a GGUF file of the Qwen 2.5 family.
    #[arg(long)]
    model: PathBuf,
    /// Port on 127.0.0.1; 0 takes a free one and says which.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Threads that compute; more than the idle cores makes it slower, not faster.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Conversations whose prompts are kept warm side by side: one and its checks need two.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    slots: u16,
    /// Longest conversation, in tokens.
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(256..=32_768))]
    context: u32,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sayback-llm: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<()> {
    if !arguments.model.is_file() {
        anyhow::bail!("there is no model at {}", arguments.model.display());
    }
    end_with_parent();
    let name =
        arguments.model.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let port = arguments.port;
    let engine = engine::start(engine::Settings {
        model: arguments.model,
        threads: i32::from(arguments.threads),
        slots: arguments.slots,
        context: arguments.context,
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port))
            .await
            .with_context(|| format!("cannot listen on 127.0.0.1:{port}"))?;
        let mut stdout = std::io::stdout();
        writeln!(stdout, "listening on {}", listener.local_addr()?)?;
        stdout.flush()?;
        // Each piece of an answer is a small packet that the next must not wait for.
        let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
        Ok(axum::serve(listener, server::routes(engine, name)).await?)
    })
}

/// Ends the program when standard input does.
fn end_with_parent() {
    std::thread::spawn(|| {
        let (mut input, mut buffer) = (std::io::stdin(), [0; 256]);
        while input.read(&mut buffer).is_ok_and(|read| read > 0) {}
        std::process::exit(0);
    });
}
