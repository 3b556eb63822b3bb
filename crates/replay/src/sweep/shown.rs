//! A sweep as a table for people, and as JSON.

use std::io::{self, Write};
use std::path::Path;

use sayback_core::Time;
use serde_json::{Value, json};

use super::{Flip, Sweep, SweepStep};

fn ms(time: Time) -> f64 {
    time.as_micros() as f64 / 1_000.0
}

fn offset(micros: i64) -> String {
    format!("{:+.3} ms", micros as f64 / 1_000.0)
}

/// Writes the table: neighbouring onsets with the same outcome are one line.
///
/// # Errors
/// What the writer says.
pub fn write_sweep(out: &mut dyn Write, path: &Path, title: &str, sweep: &Sweep) -> io::Result<()> {
    let evidence = json!(sweep.evidence);
    writeln!(out, "{}  {}", path.display(), title.replace(char::is_control, " "))?;
    writeln!(out, "    question  {:?}", sweep.question)?;
    writeln!(out, "    answer    {:?} (line {})", sweep.answer, sweep.line)?;
    writeln!(out, "    line      {}, known by {}", sweep.transport, evidence.as_str().unwrap_or_default())?;
    let (first, last) = sweep.ear_end;
    writeln!(out, "    sounds    from {:.3} ms", ms(sweep.began))?;
    if first == last {
        writeln!(out, "    heard     at {:.3} ms, the end at the caller's ear", ms(first))?;
    } else {
        writeln!(
            out,
            "    heard     between {:.3} and {:.3} ms: the file does not give the line's length",
            ms(first),
            ms(last)
        )?;
    }
    writeln!(out, "    H         at {:.3} ms\n", ms(sweep.horizon))?;
    writeln!(out, "    {:>27}  {:>6}  {:7}  what comes of it", "onset - H", "onsets", "")?;
    for group in sweep.steps.chunk_by(|a, b| (a.counts, a.runs, &a.outcome) == (b.counts, b.runs, &b.outcome))
    {
        write_group(out, group)?;
    }
    writeln!(out)?;
    for flip in &sweep.flips {
        writeln!(out, "    flips     {}", flip_line(sweep, flip))?;
    }
    for fault in sweep.faults() {
        writeln!(out, "    FAULT     {fault}")?;
    }
    Ok(())
}

fn write_group(out: &mut dyn Write, group: &[SweepStep]) -> io::Result<()> {
    let Some((first, last)) = group.first().zip(group.last()) else { return Ok(()) };
    let range = format!("{} .. {}", plain(first.offset_micros), plain(last.offset_micros));
    let counts = if first.counts { "counts" } else { "-" };
    writeln!(out, "    {range:>27}  {:>6}  {counts:7}  {}", group.len(), first.outcome)
}

fn plain(micros: i64) -> String {
    format!("{:+} ms", micros as f64 / 1_000.0)
}

fn flip_line(sweep: &Sweep, flip: &Flip) -> String {
    let to = if flip.counts { "counts" } else { "does not count" };
    let at = sweep.horizon.as_micros() as i64 + flip.after_micros;
    let after_ear = |end: Time| at - end.as_micros() as i64;
    let (first, last) = sweep.ear_end;
    let ear = if first == last {
        format!("{} from the end at the caller's ear", offset(after_ear(first)))
    } else {
        format!(
            "{} to {} from the end at the caller's ear",
            offset(after_ear(last)),
            offset(after_ear(first))
        )
    };
    let exactly = if flip.after_micros - flip.before_micros == 1 {
        format!("at H {}", offset(flip.after_micros))
    } else {
        format!("between H {} and H {}", offset(flip.before_micros), offset(flip.after_micros))
    };
    format!("{exactly}: from there an answer {to}; {ear}")
}

/// One JSON object a sweep.
pub fn sweep_json(path: &Path, title: &str, sweep: &Sweep) -> Value {
    let step = |step: &SweepStep| {
        json!({
            "offset_ms": step.offset_micros as f64 / 1_000.0,
            "onset_ms": ms(step.onset),
            "counts": step.counts,
            "runs": step.runs,
            "outcome": step.outcome,
        })
    };
    let flip = |flip: &Flip| {
        json!({
            "before_ms": flip.before_micros as f64 / 1_000.0,
            "after_ms": flip.after_micros as f64 / 1_000.0,
            "counts": flip.counts,
        })
    };
    let faults = sweep.faults();
    json!({
        "path": path.display().to_string(),
        "title": title,
        "question": sweep.question,
        "answer": sweep.answer,
        "line": sweep.line,
        "transport": sweep.transport.name(),
        "evidence": sweep.evidence,
        "began_ms": ms(sweep.began),
        "ear_earliest_ms": ms(sweep.ear_end.0),
        "ear_latest_ms": ms(sweep.ear_end.1),
        "horizon_ms": ms(sweep.horizon),
        "flips": sweep.flips.iter().map(flip).collect::<Vec<_>>(),
        "faults": faults,
        "passed": faults.is_empty(),
        "steps": sweep.steps.iter().map(step).collect::<Vec<_>>(),
    })
}
