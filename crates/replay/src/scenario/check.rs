//! Whether an event log is what a scenario expects, and if not, what is different.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::expect::{Expect, Expected, contains};

/// How many events are shown on either side of the place where one was missed.
const AROUND: usize = 4;
/// Longest text shown of one field.
const LONGEST_FIELD: usize = 60;

/// An expectation that was not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The scenario.
    pub path: PathBuf,
    /// Line of the expectation, from 1.
    pub line: usize,
    /// Its column, from 1.
    pub column: usize,
    /// What was expected, in one line.
    pub expected: String,
    /// What happened instead, and the events around it; several lines.
    pub found: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(f, "{path}:{}:{}: expected {}\n{}", self.line, self.column, self.expected, self.found)
    }
}

/// Compares an event log, one JSON object per event in order, with what was expected; every unmet expectation is in
/// the result.
///
/// Expectations of an `event` must be met in their order by different events; those with `count`, and `never`, look
/// at the whole log. Where an `event` could be matched in several places, all are tried, so that a `within` behind it
/// is met if any way meets it. After an unmet one the search goes on as if it had not been there.
pub fn check_expectations(path: &Path, expects: &[Expect], events: &[Value]) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut ends: Option<Vec<usize>> = None;
    for expect in expects {
        let found = match expect.how {
            Expected::Never => never(expect, events),
            Expected::Count(count) => counted(expect, events, count),
            Expected::Next { .. } => {
                let next = next_ends(expect, events, ends.as_deref());
                if next.is_empty() {
                    Some(missed(expect, events, ends.as_ref().and_then(|ends| ends.first().copied())))
                } else {
                    ends = Some(next);
                    None
                }
            }
        };
        if let Some(found) = found {
            failures.push(Failure {
                path: path.to_owned(),
                line: expect.line,
                column: expect.column,
                expected: described(expect),
                found,
            });
        }
    }
    failures
}

/// Where this expectation can be matched, given where the one before it could end; `None`: there is none before.
fn next_ends(expect: &Expect, events: &[Value], before: Option<&[usize]>) -> Vec<usize> {
    let mut latest: Option<usize> = None;
    let mut candidates = before.unwrap_or_default().iter().peekable();
    let mut ends = Vec::new();
    for (index, event) in events.iter().enumerate() {
        while candidates.peek().is_some_and(|candidate| **candidate < index) {
            latest = candidates.next().copied();
        }
        if before.is_some() && latest.is_none() {
            continue;
        }
        // Times do not fall along the log, so the latest end before this event leaves the shortest wait.
        let since = latest.map_or(0.0, |latest| time(&events[latest]));
        if matches(expect, event) && in_time(expect, time(event) - since) {
            ends.push(index);
        }
    }
    ends
}

fn in_time(expect: &Expect, waited_ms: f64) -> bool {
    match expect.how {
        Expected::Next { within: Some(within) } => waited_ms <= within.as_secs_f64() * 1_000.0 + 1e-6,
        Expected::Next { within: None } | Expected::Count(_) | Expected::Never => true,
    }
}

fn matches(expect: &Expect, event: &Value) -> bool {
    name(event) == expect.event && differences(expect, event).is_empty()
}

fn name(event: &Value) -> &str {
    event.get("event").and_then(Value::as_str).unwrap_or("?")
}

fn time(event: &Value) -> f64 {
    event.get("t_ms").and_then(Value::as_f64).unwrap_or(0.0)
}

/// How an event of the right name differs, one sentence per field.
fn differences(expect: &Expect, event: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    for (key, matcher) in &expect.fields {
        let value = event.get(key);
        if !matcher.matches(value) {
            let is = value.map_or("absent".to_owned(), |value| shortened(&value.to_string()));
            differences.push(format!("{key} is {is}, expected {matcher}"));
        }
    }
    if let Some(part) = &expect.contains
        && !strings(event).any(|text| contains(text, part))
    {
        differences.push(format!("no text of it contains {part:?}"));
    }
    differences
}

fn strings(event: &Value) -> impl Iterator<Item = &str> {
    let fields = event.as_object().into_iter().flatten();
    fields.filter(|(key, _)| key.as_str() != "event").filter_map(|(_, value)| value.as_str())
}

fn described(expect: &Expect) -> String {
    let mut text = match expect.how {
        Expected::Next { .. } => expect.event.clone(),
        Expected::Count(count) => format!("exactly {count} of {}", expect.event),
        Expected::Never => format!("never {}", expect.event),
    };
    let mut conditions: Vec<_> =
        expect.fields.iter().map(|(key, matcher)| format!("{key} = {matcher}")).collect();
    conditions.extend(expect.contains.iter().map(|part| format!("containing {part:?}")));
    if !conditions.is_empty() {
        let _ = write!(text, " with {}", conditions.join(", "));
    }
    if let Expected::Next { within: Some(within) } = expect.how {
        let _ = write!(text, ", within {within:?}");
    }
    text
}

fn never(expect: &Expect, events: &[Value]) -> Option<String> {
    let index = events.iter().position(|event| matches(expect, event))?;
    let total = events.iter().filter(|event| matches(expect, event)).count();
    let more = if total > 1 { format!(" ({total} times in all)") } else { String::new() };
    Some(format!("  but it happened at {:.1} ms{more}\n{}", time(&events[index]), around(events, index)))
}

fn counted(expect: &Expect, events: &[Value], count: u32) -> Option<String> {
    let found: Vec<_> = (0..events.len()).filter(|index| matches(expect, &events[*index])).collect();
    if found.len() == count as usize {
        return None;
    }
    let mut text = format!("  but there are {}\n", found.len());
    for index in found.iter().take(2 * AROUND) {
        let _ = writeln!(text, "{}", shown(&events[*index], '>'));
    }
    if found.is_empty() {
        text += &nearest_event(expect, events, None).1;
    }
    Some(text.trim_end().to_owned())
}

/// Why nothing matched after the event that was matched last.
fn missed(expect: &Expect, events: &[Value], after: Option<usize>) -> String {
    let (centre, reason) = nearest_event(expect, events, after);
    let centre = centre.or(after).unwrap_or(0);
    let place = match after {
        Some(after) => {
            let event = &events[after];
            format!(
                "  looked after {} at {:.1} ms, which the expectation before it matched\n",
                name(event),
                time(event)
            )
        }
        None => String::new(),
    };
    format!("{place}{reason}\n{}", around(events, centre))
}

/// The event that comes closest and why it is not the one.
fn nearest_event(expect: &Expect, events: &[Value], after: Option<usize>) -> (Option<usize>, String) {
    let is_later = |index: usize| after.is_none_or(|after| index > after);
    let same_name = (0..events.len()).filter(|index| name(&events[*index]) == expect.event);
    let closest =
        same_name.min_by_key(|index| (differences(expect, &events[*index]).len(), !is_later(*index)));
    let Some(index) = closest else {
        return (None, format!("  no {} in the log of {} events", expect.event, events.len()));
    };
    let event = &events[index];
    let differences = differences(expect, event);
    let at = time(event);
    let reason = if !differences.is_empty() {
        format!("  closest: the one at {at:.1} ms, where {}", differences.join("; "))
    } else if is_later(index) {
        let since = after.map_or(0.0, |after| time(&events[after]));
        format!("  it came too late: at {at:.1} ms, {:.1} ms after", at - since)
    } else {
        format!("  it came too early: at {at:.1} ms")
    };
    (Some(index), reason)
}

/// The events on either side of one, a line each.
pub(crate) fn around(events: &[Value], centre: usize) -> String {
    let from = centre.saturating_sub(AROUND);
    let to = (centre + AROUND + 1).min(events.len());
    let lines = (from..to).map(|index| shown(&events[index], if index == centre { '>' } else { ' ' }));
    lines.collect::<Vec<_>>().join("\n")
}

fn shown(event: &Value, mark: char) -> String {
    let mut line = format!("  {mark} {:>9.1} ms  {:<17}", time(event), name(event));
    for (key, value) in event.as_object().into_iter().flatten() {
        if key != "event" && key != "t_ms" {
            let _ = write!(line, " {key}={}", shortened(&value.to_string()));
        }
    }
    line
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(LONGEST_FIELD).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
