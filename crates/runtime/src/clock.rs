//! The one place that reads the clock.

#![expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sayback_core::Time;

/// The call clock: it begins with the call and never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A call that begins now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// A call that began at `origin`.
    pub fn since(origin: Instant) -> Self {
        Self { origin }
    }

    /// Now, on the call clock.
    pub fn now(&self) -> Time {
        self.at(Instant::now())
    }

    /// A moment of the machine's clock on the call clock.
    pub fn at(&self, moment: Instant) -> Time {
        Time::from_micros(micros(moment.saturating_duration_since(self.origin)))
    }

    /// A moment of the call clock on the machine's.
    pub fn instant(&self, at: Time) -> Instant {
        self.origin + Duration::from_micros(at.as_micros())
    }
}

/// Seconds since 1970, for stamps that people read.
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Milliseconds since 1970, for what other processes count from too.
pub fn unix_millis() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Now in UTC, as `2026-11-30T13:00:00Z`.
pub fn stamp() -> String {
    stamp_of(unix_seconds())
}

/// Seconds since 1970 in UTC, as `2026-11-30T13:00:00Z`.
pub fn stamp_of(seconds: u64) -> String {
    let (day, second) = (i64::try_from(seconds / 86_400).unwrap_or(0), seconds % 86_400);
    format!("{}T{:02}:{:02}:{:02}Z", date(day), second / 3_600, second / 60 % 60, second % 60)
}

/// Today's date as `2026-11-30`, in UTC.
pub fn today() -> String {
    date(day_number())
}

/// Today and the week after it, by name: small models cannot count days.
pub fn calendar() -> String {
    let today = day_number();
    let days: Vec<String> = (2..8).map(|ahead| named(today + ahead)).collect();
    format!("{}. Tomorrow is {}, then come {}", named(today), named(today + 1), days.join(", "))
}

/// The dates of the weekdays that a text names, ` Thursday is 2026-12-03.` each: what small models get wrong most.
pub fn days_named(text: &str) -> String {
    let (today, text) = (day_number(), text.to_lowercase());
    let days = (0..7).map(|ahead| named(today + ahead));
    let said = days.filter_map(|day| {
        let (name, date) = day.split_once(' ')?;
        text.contains(&name.to_lowercase()).then(|| format!(" {name} is {date}."))
    });
    said.collect()
}

fn day_number() -> i64 {
    i64::try_from(unix_seconds() / 86_400).unwrap_or(0)
}

fn named(days: i64) -> String {
    let names = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
    let name = names[usize::try_from(days.rem_euclid(7)).unwrap_or(0)];
    format!("{name} {}", date(days))
}

fn date(days: i64) -> String {
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A day number since 1970-01-01 as year, month and day of the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(20_787), (2026, 11, 30));
        assert_eq!(civil(19_782), (2024, 2, 29));
        assert_eq!(named(20_787), "Monday 2026-11-30");
    }
}
