//! Until when a token is taken.

use sayback_runtime::clock::stamp;
use serde::Deserialize;

/// The last moment of a token: `2027-01-31`, which is that day to its end in UTC, or `2027-01-31T18:00:00Z`.
///
/// Kept as it is written: stamps of one form come in the order of their letters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Expiry(String);

/// That is no day and no moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no day; write expires = \"2027-01-31\" or \"2027-01-31T18:00:00Z\"")]
pub struct NoDay(String);

impl TryFrom<String> for Expiry {
    type Error = NoDay;

    fn try_from(text: String) -> Result<Self, NoDay> {
        let (day, time) = text.split_once('T').map_or((text.as_str(), None), |(day, time)| (day, Some(time)));
        let sound = is_day(day) && time.is_none_or(is_time);
        if sound { Ok(Self(text)) } else { Err(NoDay(text)) }
    }
}

impl Expiry {
    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.is_over_at(&stamp())
    }

    /// Whether it is over at a moment that is written like `2026-11-30T13:00:00Z`.
    fn is_over_at(&self, now: &str) -> bool {
        match self.0.len() {
            // The day itself still counts.
            10 => now.get(..10).is_some_and(|today| today > self.0.as_str()),
            _ => now >= self.0.as_str(),
        }
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The figures between separators, if they are there in just that form: `[4, 2, 2]` digits with `-` between.
fn figures(text: &str, separator: char) -> Option<Vec<u32>> {
    let parts = text.split(separator).map(|part| {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse().ok().filter(|_| digits && (part.len() == 2 || part.len() == 4))
    });
    parts.collect()
}

fn is_day(text: &str) -> bool {
    let Some([year, month, day]) = figures(text, '-').and_then(|parts| <[u32; 3]>::try_from(parts).ok())
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    text.len() == 10 && text.find('-') == Some(4) && (1..=12).contains(&month) && (1..=longest).contains(&day)
}

fn is_time(text: &str) -> bool {
    let Some(time) = text.strip_suffix('Z').filter(|time| time.len() == 8) else { return false };
    let parts = figures(time, ':').and_then(|parts| <[u32; 3]>::try_from(parts).ok());
    parts.is_some_and(|[hour, minute, second]| hour < 24 && minute < 60 && second < 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expiry(text: &str) -> Result<Expiry, NoDay> {
        Expiry::try_from(text.to_owned())
    }

    #[test]
    fn a_day_counts_to_its_end_and_a_moment_to_itself() {
        let day = expiry("2027-01-31").unwrap();
        for (now, over) in [
            ("2026-12-31T23:59:59Z", false),
            ("2027-01-31T23:59:59Z", false),
            ("2027-02-01T00:00:00Z", true),
            ("2030-01-01T00:00:00Z", true),
        ] {
            assert_eq!(day.is_over_at(now), over, "{now}");
        }
        let moment = expiry("2027-01-31T18:00:00Z").unwrap();
        assert!(!moment.is_over_at("2027-01-31T17:59:59Z") && moment.is_over_at("2027-01-31T18:00:00Z"));
    }

    #[test]
    fn what_is_no_day_is_refused_with_what_would_be_one() {
        for wrong in [
            "",
            "T",
            "soon",
            "2027",
            "2027-1-31",
            "2027-13-01",
            "2027-00-10",
            "2027-02-29",
            "2027-04-31",
            "31-01-2027",
            "2027-01-31T",
            "2027-01-31T24:00:00Z",
            "2027-01-31T18:00:00",
            "2027-01-31T18:00:00+01:00",
            "2027-01-31 18:00:00Z",
            "+027-01-31",
            "2027-01-31T18:00Z",
            "20277-01-1",
            "２０２７-01-31",
            "01-2027-31",
        ] {
            let refused = expiry(wrong).unwrap_err().to_string();
            assert!(refused.contains("2027-01-31T18:00:00Z"), "{wrong}: {refused}");
        }
        for right in ["2028-02-29", "2027-12-31T00:00:00Z", "9999-12-31"] {
            assert_eq!(expiry(right).unwrap().as_str(), right);
        }
    }
}
