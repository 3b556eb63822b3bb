//! `sayback conversations`: what is stored.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use sayback_core::Item;

use crate::exit::Stop;

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// One conversation to look at; without it, all are listed
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Where conversations are stored
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<u8, Stop> {
    let store = super::stored::open(args.store.as_deref())?;
    let Some(id) = &args.id else {
        let listed = store.conversations().map_err(Stop::unusable)?;
        if listed.is_empty() {
            out!("No conversations in {}", store.path().display());
        }
        for one in listed {
            let unknown =
                if one.unknown > 0 { format!(", {} of unknown outcome", one.unknown) } else { String::new() };
            out!("{}  {} UTC  {}  {} confirmed{unknown}", one.id, one.changed, one.agent, one.runs);
        }
        return Ok(0);
    };
    let stored = store.conversation(id).map_err(Stop::unusable)?;
    let stored = stored.ok_or_else(|| super::stored::unknown(&store, id))?;
    let conversation = super::stored::read(id, &stored)?;
    for (index, item) in conversation.items.iter().enumerate() {
        out!("{:>4} {}", index + 1, summary(item));
    }
    for run in &stored.runs {
        out!("     {}", super::stored::of_run(run));
    }
    if let Some(open) = &conversation.open {
        out!("     (still open) {}", open.question);
    }
    Ok(0)
}

/// One item, for people.
pub(crate) fn summary(item: &Item) -> String {
    match item {
        Item::Caller { text } => format!("you    {text}"),
        Item::Agent { text, complete: true } => format!("agent  {text}"),
        Item::Agent { text, complete: false } => format!("agent  {text} …"),
        Item::Call { call } => format!("call   {} {}", call.name, call.input),
        Item::Result { text, confirmed_by, .. } => match confirmed_by {
            Some(by) => format!("result {text} (confirmed by {by:?})"),
            None => format!("result {text}"),
        },
        Item::Told { text } => format!("told   {text}"),
    }
}
