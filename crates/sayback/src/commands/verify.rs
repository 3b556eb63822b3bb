//! `sayback verify BUNDLE…`: the evidence of recorded calls.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use sayback_replay::bundle::{Verified, verify};
use serde_json::json;

use crate::exit::{FAULTS, Stop};

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Recorded calls: folders with a call.json
    #[arg(required = true)]
    bundles: Vec<PathBuf>,
    /// Prints one JSON object a recording instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<u8, Stop> {
    let mut faults = 0;
    for folder in &args.bundles {
        let verified = verify(folder).map_err(Stop::unusable)?;
        // A recording that breaks off may lack anything behind its last line: that is a fault too.
        faults += verified.findings.len() + usize::from(verified.seal.is_none());
        if args.json { print_json(folder, &verified) } else { print(folder, &verified) }
    }
    if !args.json {
        out!("{} verified, {faults} faults", args.bundles.len());
    }
    Ok(if faults == 0 { 0 } else { FAULTS })
}

fn print(folder: &Path, verified: &Verified) {
    match &verified.seal {
        Some(seal) => out!("{}: sealed {seal}", folder.display()),
        None => {
            out!("{}: unsealed: the recording was not finished; its end may be missing", folder.display())
        }
    }
    for decision in &verified.decisions {
        out!("  {decision}");
    }
    let Verified { sounds, vetoes, .. } = verified;
    out!("  {sounds} stretches of sound and the vetoes of {vetoes} checks were compared");
    for finding in &verified.findings {
        out!("  FAULT {finding}");
    }
}

fn print_json(folder: &Path, verified: &Verified) {
    let findings: Vec<_> =
        verified.findings.iter().map(|f| json!({"file": f.file, "line": f.line, "what": f.what})).collect();
    out!(
        "{}",
        json!({
            "path": folder.to_string_lossy(), "sealed": verified.seal, "decisions": verified.decisions.len(),
            "sounds": verified.sounds, "vetoes": verified.vetoes, "findings": findings,
        })
    );
}
