//! Session timers (RFC 4028): a call whose far end has vanished does not last for ever.

use std::time::Duration;

use sayback_core::Time;

/// We do not take shorter ones (RFC 4028, 5).
pub(super) const SHORTEST: Duration = Duration::from_secs(90);

/// Who refreshes the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresher {
    /// Whoever sent the request.
    Uac,
    /// Whoever answered it.
    Uas,
}

impl Refresher {
    /// Its name in the header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uac => "uac",
            Self::Uas => "uas",
        }
    }
}

/// A `Session-Expires` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionExpires {
    /// How long the session lasts without a refresh.
    pub interval: Duration,
    /// Who refreshes, if that is said.
    pub refresher: Option<Refresher>,
}

impl SessionExpires {
    /// Reads the header's value.
    pub fn parse(value: &str) -> Option<Self> {
        let mut parts = value.split(';').map(str::trim);
        let interval = Duration::from_secs(parts.next()?.parse().ok()?);
        let refresher = parts.find_map(|part| {
            let (key, value) = part.split_once('=')?;
            let named = |name: &str| value.trim().eq_ignore_ascii_case(name);
            match () {
                () if !key.trim().eq_ignore_ascii_case("refresher") => None,
                () if named("uac") => Some(Refresher::Uac),
                () if named("uas") => Some(Refresher::Uas),
                () => None,
            }
        });
        Some(Self { interval, refresher })
    }
}

/// The far end wants a shorter session than we take: a 422.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooShort;

/// What is to be done when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// We refresh.
    Refresh,
    /// The far end should have: the call is over.
    Expired,
}

/// The timer of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTimer {
    interval: Duration,
    /// Whether refreshing is ours.
    ours: bool,
    since: Time,
}

impl SessionTimer {
    /// As the answerer of a request: what it asks for (`supported`: its sender knows timers), or else our own wish.
    ///
    /// # Errors
    /// If the interval is too short for us.
    pub fn answering(
        asked: Option<SessionExpires>,
        supported: bool,
        wish: Duration,
        now: Time,
    ) -> Result<Self, TooShort> {
        let interval = asked.map_or(wish, |asked| asked.interval);
        if interval < SHORTEST {
            return Err(TooShort);
        }
        // Somebody who does not know timers cannot refresh.
        let theirs = supported && asked.and_then(|asked| asked.refresher) != Some(Refresher::Uas);
        Ok(Self { interval: interval.min(wish.max(SHORTEST)), ours: !theirs, since: now })
    }

    /// As the sender of a request that was answered so; `None`: the far end wants no timer, and we refresh all the same.
    pub fn asking(answered: Option<SessionExpires>, wish: Duration, now: Time) -> Self {
        let interval = answered.map_or(wish, |answered| answered.interval).max(SHORTEST);
        let ours = answered.and_then(|answered| answered.refresher) != Some(Refresher::Uas);
        Self { interval, ours, since: now }
    }

    /// The header's value in our answer.
    pub fn header(&self) -> String {
        let refresher = if self.ours { Refresher::Uas } else { Refresher::Uac };
        format!("{};refresher={}", self.interval.as_secs(), refresher.name())
    }

    /// The header's value in a refresh of ours: whoever sends it is its `uac`.
    pub fn header_of_request(&self) -> String {
        format!("{};refresher=uac", self.interval.as_secs())
    }

    /// A refresh came or was answered.
    pub fn refreshed(&mut self, now: Time) {
        self.since = now;
    }

    /// When something is to be done, and what.
    pub fn due(&self) -> (Time, Due) {
        if self.ours {
            (self.since + self.interval / 2, Due::Refresh)
        } else {
            let spare = Duration::from_secs(32).min(self.interval / 3);
            (self.since + (self.interval - spare), Due::Expired)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WISH: Duration = Duration::from_secs(1_800);

    #[test]
    fn headers_are_read_in_every_form() {
        let read = |value| SessionExpires::parse(value).map(|read| (read.interval.as_secs(), read.refresher));
        assert_eq!(read("1800"), Some((1_800, None)));
        assert_eq!(read("90 ; refresher=UAS"), Some((90, Some(Refresher::Uas))));
        assert_eq!(read("100;x=y;refresher = uac"), Some((100, Some(Refresher::Uac))));
        assert_eq!(read("soon"), None);
    }

    #[test]
    fn the_caller_refreshes_if_it_can_and_a_silent_one_is_given_up() {
        let asked = SessionExpires::parse("300;refresher=uac");
        let timer = SessionTimer::answering(asked, true, WISH, Time::ZERO).unwrap();
        assert_eq!(timer.header(), "300;refresher=uac");
        assert_eq!(timer.due(), (Time::from_millis(268_000), Due::Expired));
    }

    #[test]
    fn we_refresh_for_those_who_do_not_know_how_or_ask_us_to() {
        let timer = SessionTimer::answering(None, false, WISH, Time::ZERO).unwrap();
        assert_eq!((timer.header(), timer.due().1), ("1800;refresher=uas".to_owned(), Due::Refresh));
        let asked = SessionExpires::parse("120;refresher=uas");
        let mut timer = SessionTimer::answering(asked, true, WISH, Time::ZERO).unwrap();
        timer.refreshed(Time::from_millis(10_000));
        assert_eq!(timer.due(), (Time::from_millis(70_000), Due::Refresh));
    }

    #[test]
    fn an_interval_below_90_seconds_is_refused() {
        let asked = SessionExpires::parse("60");
        assert_eq!(SessionTimer::answering(asked, true, WISH, Time::ZERO), Err(TooShort));
    }
}
