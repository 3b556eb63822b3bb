//! `sayback models`: what there is, and getting it.

use std::collections::BTreeSet;

use clap::{Args as ClapArgs, Subcommand};
use sayback_providers::models::{Manifest, ModelError, ProgressBar};

use crate::exit::Stop;

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Models>,
}

#[derive(Debug, Subcommand)]
enum Models {
    /// Lists them with size, licence, and whether they are here
    List,
    /// Gets one or more, or a whole set (core, base, llm)
    Fetch {
        /// Names or sets
        #[arg(required = true)]
        names: Vec<String>,
    },
}

pub(crate) fn run(args: &Args) -> Result<u8, Stop> {
    let manifest = Manifest::load().map_err(Stop::unusable)?;
    match &args.command {
        None | Some(Models::List) => list(&manifest),
        Some(Models::Fetch { names }) => {
            let mut bar = ProgressBar::new();
            manifest.fetch_all(names, &mut |step| bar.show(step)).map_err(stopped)?;
            Ok(0)
        }
    }
}

/// A wrong name or setting is the asker's; a source that does not answer is missing.
fn stopped(error: ModelError) -> Stop {
    match error {
        ModelError::Unknown { .. }
        | ModelError::BadManifest { .. }
        | ModelError::Setting { .. }
        | ModelError::Io { .. } => Stop::unusable(error),
        ModelError::Checksum { .. }
        | ModelError::NoSource { .. }
        | ModelError::Source { .. }
        | ModelError::Convert { .. } => Stop::missing(error),
    }
}

fn list(manifest: &Manifest) -> Result<u8, Stop> {
    out!("{:<28} {:>9}  {:<24} {:<8} role", "name", "size", "licence", "here");
    for model in manifest.list() {
        let here = if manifest.is_present(&model.name).map_err(Stop::unusable)? { "yes" } else { "no" };
        let size = format!("{:.1} MB", model.size() as f64 / 1e6);
        out!("{:<28} {:>9}  {:<24} {:<8} {}", model.name, size, model.licence, here, model.role);
        for file in &model.files {
            // Two sources of one file have one checksum.
            let sums: BTreeSet<_> = file.sources.iter().map(|source| source.sha256()).collect();
            for sum in sums {
                out!("  {:<26} sha256 {sum}", file.name);
            }
        }
    }
    out!("folder: {}", manifest.folder().display());
    Ok(0)
}
