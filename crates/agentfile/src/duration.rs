//! Durations as people write them: `350ms`, `8s`, `1.5s`, `2min`.

use std::time::Duration;

/// Longest duration that a file may ask for: a day. What is longer is a slip of the pen.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads `350ms`, `8s`, `1.5s`, `2min` or `1h`; the error says what is wrong with it.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit_ms = match unit.trim() {
        "ms" => 1.0,
        "s" => 1_000.0,
        "min" | "m" => 60_000.0,
        "h" => 3_600_000.0,
        "" => return Err(format!("`{text}` has no unit")),
        _ => return Err(format!("`{text}` is no duration")),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{text}` is no duration"))?;
    let ms = number * unit_ms;
    if !ms.is_finite() || ms > LONGEST.as_millis() as f64 {
        return Err(format!("`{text}` is longer than a day"));
    }
    Ok(Duration::from_micros((ms * 1_000.0).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_written() {
        let ms = Duration::from_millis;
        for (text, want) in
            [("350ms", ms(350)), ("8s", ms(8_000)), ("1.5s", ms(1_500)), ("2min", ms(120_000))]
        {
            assert_eq!(parse_duration(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "8", "s", "8 parsecs", "-1s", "1.2.3s", "9999999h", "∞s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
