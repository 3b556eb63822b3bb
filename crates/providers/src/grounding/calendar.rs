//! Dates and times as tools take them.

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Day {
    pub(super) year: i32,
    pub(super) month: u8,
    pub(super) day: u8,
}

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    pub(super) hour: u8,
    pub(super) minute: u8,
}

impl Day {
    /// Reads `2026-11-30`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut part = |length: usize| parts.next().filter(|part| part.len() == length && all_digits(part));
        let (year, month, day) = (part(4)?, part(2)?, part(2)?);
        let (year, month, day) = (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
        let is_day = (1..=days_in(year, month)).contains(&day) && parts.next().is_none();
        is_day.then_some(Self { year, month, day })
    }

    /// Days since 1 January 1970, by counting whole 400-year cycles from 1 March 0000.
    pub(super) fn number(self) -> i64 {
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let year = i64::from(self.year) - i64::from(month <= 2);
        let (cycle, of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        cycle * 146_097 + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year - 719_468
    }

    /// 0 is Monday.
    pub(super) fn weekday(self) -> u8 {
        // 1 January 1970 was a Thursday.
        u8::try_from((self.number() + 3).rem_euclid(7)).unwrap_or(0)
    }
}

/// Reads a date, a time, or both: `2026-11-30`, `15:30`, `3:30 pm`, `2026-11-30T15:30:00Z`, `2026-11-30 15:30`.
pub(super) fn moment(text: &str) -> Option<(Option<Day>, Option<Clock>)> {
    if let Some(day) = Day::parse(text) {
        return Some((Some(day), None));
    }
    if let Some((day, clock)) = text.split_once(['T', 't', ' '])
        && let (Some(day), Some(clock)) = (Day::parse(day), clock_of(clock))
    {
        return Some((Some(day), Some(clock)));
    }
    clock_of(text).map(|clock| (None, Some(clock)))
}

/// Seconds and zones are nobody's words and are not looked at.
fn clock_of(text: &str) -> Option<Clock> {
    let (hour, rest) = text.trim().split_once(':')?;
    let minute = rest.get(..2)?;
    if hour.len() > 2 || !all_digits(hour) || !all_digits(minute) {
        return None;
    }
    let (hour, minute) = (hour.parse().ok()?, minute.parse().ok()?);
    (hour < 24 && minute < 60).then_some(Clock { hour, minute })
}

/// 0 for what is no month.
fn days_in(year: i32, month: u8) -> u8 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u8::from(is_leap),
        _ => 0,
    }
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        Day::parse(text).unwrap()
    }

    #[test]
    fn weekdays_and_distances_are_right() {
        for (text, weekday) in [("2026-11-30", 0), ("1970-01-01", 3), ("2024-02-29", 3), ("2000-03-01", 2)] {
            assert_eq!(day(text).weekday(), weekday, "{text}");
        }
        assert_eq!(day("2026-12-01").number() - day("2026-11-30").number(), 1);
        assert_eq!(day("2024-03-01").number() - day("2024-02-28").number(), 2);
        assert_eq!(day("1970-01-01").number(), 0);
    }

    #[test]
    fn days_that_no_calendar_has_are_none() {
        for text in ["2026-11-31", "2026-02-29", "2100-02-29", "2026-00-01", "2026-01-00", "2026-13-01"] {
            assert_eq!(Day::parse(text), None, "{text}");
        }
        assert!(Day::parse("2024-02-29").is_some() && Day::parse("2000-02-29").is_some());
    }

    #[test]
    fn moments_are_read_in_their_common_forms() {
        let clock = |hour, minute| Some(Clock { hour, minute });
        assert_eq!(moment("15:30"), Some((None, clock(15, 30))));
        assert_eq!(moment("3:30 pm"), Some((None, clock(3, 30))));
        assert_eq!(moment("2026-11-30"), Some((Some(day("2026-11-30")), None)));
        for text in ["2026-11-30T15:30:00Z", "2026-11-30 15:30", "2026-11-30T15:30:00.5+01:00"] {
            assert_eq!(moment(text), Some((Some(day("2026-11-30")), clock(15, 30))), "{text}");
        }
        for text in ["", "2026-13-01", "2026-11-30T99:00", "25:00", "a:10", "10:ä", "note: 12", "1:2"] {
            assert_eq!(moment(text), None, "{text}");
        }
    }
}
