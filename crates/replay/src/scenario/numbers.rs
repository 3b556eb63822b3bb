//! Durations and shares as people write them, and how long words take to say.

use std::time::Duration;

/// Longest duration that a file may name: a day.
const LONGEST_MICROS: u64 = 24 * 3_600 * 1_000_000;

/// How long it takes to say `text`, where a file gives no length: 60 ms and 65 ms per letter or digit, whole
/// milliseconds. A "yes" takes 255 ms. It is a rule, not a measurement: the same file means the same call everywhere.
pub fn length_of_speech(text: &str) -> Duration {
    let letters = text.chars().filter(|c| c.is_alphanumeric()).count() as u64;
    Duration::from_millis(60 + 65 * letters)
}

/// `400ms`, `1.2s`, `1m30s`. Exact to the microsecond; `None` if it is no duration, finer, or above a day.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let (number, tail) = rest.split_at(end);
        let unit_end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        total = total.checked_add(scaled(number.trim(), unit_micros(unit)?)?)?;
        rest = tail.trim_start();
    }
    (total <= LONGEST_MICROS).then(|| Duration::from_micros(total))
}

/// Whether this reads like a duration and is above a day.
pub(crate) fn is_too_long(text: &str) -> bool {
    let (mut rest, mut total) = (text.trim(), 0.0);
    while let Some(end) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        let (number, tail) = rest.split_at(end);
        let unit_end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let (Some(unit), Ok(number)) = (unit_micros(unit), number.trim().parse::<f64>()) else {
            return false;
        };
        total += number * unit as f64;
        rest = tail.trim_start();
    }
    rest.is_empty() && total > LONGEST_MICROS as f64
}

/// `60%`, a whole number from 0 to 100.
pub(crate) fn percent(text: &str) -> Option<u8> {
    let number = text.trim().strip_suffix('%')?.trim_end();
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    number.parse().ok().filter(|percent| *percent <= 100)
}

fn unit_micros(unit: &str) -> Option<u64> {
    Some(match unit {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" | "min" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return None,
    })
}

/// A decimal number times `unit`, in whole microseconds.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |s: &str| !s.is_empty() && s.len() <= 12 && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = fraction.parse::<u64>().ok()?.checked_mul(unit)?;
    if part % scale != 0 {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(part / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_than_a_day_is_told_from_what_is_none() {
        for text in ["25h", "999999999999999s", "86400s 1ms", "1e"] {
            assert!(duration(text).is_none(), "{text}");
            assert_eq!(is_too_long(text), text != "1e", "{text}");
        }
        assert!(!is_too_long("24h") && !is_too_long("soon") && !is_too_long(""));
    }

    #[test]
    fn durations_are_exact() {
        let micros = |text| duration(text).map(|d| d.as_micros());
        assert_eq!(micros("400ms"), Some(400_000));
        assert_eq!(micros("1.2s"), Some(1_200_000));
        assert_eq!(micros("0.0005ms"), None, "finer than a microsecond");
        assert_eq!(micros("1m30s"), Some(90_000_000));
        assert_eq!(micros("2 s"), Some(2_000_000));
        for wrong in
            ["", "400", "ms", "-1s", "1,2s", "1s2", "1d", "25h", "1.s", "1e3s", "99999999999999h", "٣s"]
        {
            assert_eq!(micros(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn shares_are_whole_and_at_most_all() {
        assert_eq!(percent("60%"), Some(60));
        assert_eq!(percent("0 %"), Some(0));
        for wrong in ["101%", "60", "%", "+6%", "1.5%", "300%"] {
            assert_eq!(percent(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn words_take_their_letters() {
        assert_eq!(length_of_speech("yes"), Duration::from_millis(255));
        assert_eq!(length_of_speech("Yes."), Duration::from_millis(255));
        assert_eq!(length_of_speech(""), Duration::from_millis(60));
    }
}
