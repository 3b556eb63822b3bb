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
        // Delta-seconds have 32 bits.
        let interval = Duration::from_secs(u64::from(parts.next()?.parse::<u32>().ok()?));
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

/// What a request says of the session's timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskedTimer {
    /// Its `Session-Expires`.
    pub expires: Option<SessionExpires>,
    /// Its `Min-SE`: nobody on the way may make the interval shorter than this.
    pub least: Option<Duration>,
    /// Whether its sender knows timers.
    pub supported: bool,
}

/// What we want of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerTerms {
    /// How long a session lasts without a refresh, where the far end says nothing.
    pub wish: Duration,
    /// We take none that is shorter.
    pub shortest: Duration,
}

/// What is to be done when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// We refresh.
    Refresh,
    /// Whoever should have refreshed has not: the call is over.
    Expired,
}

/// The timer of one session.
///
/// ```text
/// since ──────── interval / 2 ──── again … ───────── interval - spare ──── interval
///   │            we refresh        it failed         nobody has: BYE
///   └── a refresh came, or was answered
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTimer {
    interval: Duration,
    /// Whether refreshing is ours.
    ours: bool,
    since: Time,
    /// When a refresh that failed is tried again.
    again: Option<Time>,
    /// No answer makes the interval shorter than this.
    shortest: Duration,
}

impl SessionTimer {
    /// As the answerer of a request.
    ///
    /// # Errors
    /// If the interval is too short for us.
    pub fn answering(asked: AskedTimer, terms: TimerTerms, now: Time) -> Result<Self, TooShort> {
        let interval = asked.expires.map_or(terms.wish, |asked| asked.interval);
        if interval < terms.shortest {
            return Err(TooShort);
        }
        // Somebody who does not know timers cannot refresh.
        let refresher = asked.expires.and_then(|asked| asked.refresher);
        let theirs = asked.supported && refresher != Some(Refresher::Uas);
        let shortest = terms.shortest;
        let interval = interval.min(terms.wish.max(shortest).max(asked.least.unwrap_or_default()));
        Ok(Self { interval, ours: !theirs, since: now, again: None, shortest })
    }

    /// As the sender of a request that was answered so; `None`: the far end wants no timer, and we refresh all the same.
    pub fn asking(answered: Option<SessionExpires>, terms: TimerTerms, now: Time) -> Self {
        let interval = answered.map_or(terms.wish, |answered| answered.interval).max(terms.shortest);
        let ours = answered.and_then(|answered| answered.refresher) != Some(Refresher::Uas);
        Self { interval, ours, since: now, again: None, shortest: terms.shortest }
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

    /// A refresh of ours was answered; the answer may name another interval and leave the next one to the far end.
    pub fn refreshed(&mut self, answered: Option<SessionExpires>, now: Time) {
        if let Some(answered) = answered {
            self.interval = answered.interval.max(self.shortest);
            self.ours = answered.refresher != Some(Refresher::Uas);
        }
        (self.since, self.again) = (now, None);
    }

    /// A refresh of ours was not taken; it is tried again after `wait`.
    pub fn failed(&mut self, now: Time, wait: Duration) {
        self.again = Some(now + wait);
    }

    /// Somebody on the way wants longer intervals: the next refresh asks for one.
    pub fn lengthen(&mut self, least: Duration) {
        self.interval = self.interval.max(least);
    }

    /// How long to wait after a failure that says nothing about it.
    pub fn patience(&self) -> Duration {
        (self.interval / 8).max(Duration::from_secs(1))
    }

    /// When something is to be done, and what.
    pub fn due(&self) -> (Time, Due) {
        let refresh = self.again.unwrap_or(self.since + self.interval / 2);
        if self.ours && refresh < self.end() { (refresh, Due::Refresh) } else { (self.end(), Due::Expired) }
    }

    /// When the session is over without a refresh (RFC 4028, 10: a little before the far end ends it).
    pub fn end(&self) -> Time {
        let spare = Duration::from_secs(32).min(self.interval / 3);
        self.since + (self.interval - spare)
    }
}

/// How long to wait before a re-INVITE that met one of the far end's is sent again (RFC 3261, 14.1): whoever made the
/// call waits longer, so that the two do not meet again. `random` is any number.
pub(super) fn glare_wait(we_called: bool, random: u16) -> Duration {
    let (least, steps) = if we_called { (2_100, 191) } else { (0, 201) };
    Duration::from_millis(least + u64::from(random % steps) * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: TimerTerms = TimerTerms { wish: Duration::from_secs(1_800), shortest: SHORTEST };

    #[test]
    fn headers_are_read_in_every_form() {
        let read = |value| SessionExpires::parse(value).map(|read| (read.interval.as_secs(), read.refresher));
        assert_eq!(read("1800"), Some((1_800, None)));
        assert_eq!(read("90 ; refresher=UAS"), Some((90, Some(Refresher::Uas))));
        assert_eq!(read("100;x=y;refresher = uac"), Some((100, Some(Refresher::Uac))));
        assert_eq!(read("soon"), None);
    }

    fn asked(value: &str) -> AskedTimer {
        AskedTimer { expires: SessionExpires::parse(value), least: None, supported: true }
    }

    #[test]
    fn the_caller_refreshes_if_it_can_and_a_silent_one_is_given_up() {
        let timer = SessionTimer::answering(asked("300;refresher=uac"), TERMS, Time::ZERO).unwrap();
        assert_eq!(timer.header(), "300;refresher=uac");
        assert_eq!(timer.due(), (Time::from_millis(268_000), Due::Expired));
    }

    #[test]
    fn we_refresh_for_those_who_do_not_know_how_or_ask_us_to() {
        let timer = SessionTimer::answering(AskedTimer::default(), TERMS, Time::ZERO).unwrap();
        assert_eq!((timer.header(), timer.due().1), ("1800;refresher=uas".to_owned(), Due::Refresh));
        let mut timer = SessionTimer::answering(asked("120;refresher=uas"), TERMS, Time::ZERO).unwrap();
        timer.refreshed(None, Time::from_millis(10_000));
        assert_eq!(timer.due(), (Time::from_millis(70_000), Due::Refresh));
    }

    #[test]
    fn an_interval_below_90_seconds_is_refused() {
        assert_eq!(SessionTimer::answering(asked("60"), TERMS, Time::ZERO), Err(TooShort));
    }

    #[test]
    fn an_interval_is_not_made_shorter_than_anybody_on_the_way_takes() {
        let least = Some(Duration::from_secs(2_400));
        let timer =
            SessionTimer::answering(AskedTimer { least, ..asked("3600") }, TERMS, Time::ZERO).unwrap();
        assert_eq!(timer.header(), "2400;refresher=uac");
    }

    #[test]
    fn a_refresh_that_fails_is_tried_again_until_the_session_is_over() {
        let mut timer = SessionTimer::answering(asked("120;refresher=uas"), TERMS, Time::ZERO).unwrap();
        timer.failed(Time::from_millis(60_000), Duration::from_secs(15));
        assert_eq!(timer.due(), (Time::from_millis(75_000), Due::Refresh));
        timer.failed(Time::from_millis(75_000), Duration::from_secs(15));
        assert_eq!(timer.due(), (Time::from_millis(88_000), Due::Expired));
        // The far end has asked us to leave the next one to it.
        timer.refreshed(SessionExpires::parse("300;refresher=uas"), Time::from_millis(80_000));
        assert_eq!(timer.due(), (Time::from_millis(348_000), Due::Expired));
    }

    #[test]
    fn whoever_made_the_call_waits_longer_after_two_refreshes_have_met() {
        for random in [0, 190, 200, 30_000, u16::MAX] {
            let (ours, theirs) = (glare_wait(true, random), glare_wait(false, random));
            assert!((2_100..=4_000).contains(&ours.as_millis()), "{ours:?}");
            assert!(theirs.as_millis() <= 2_000, "{theirs:?}");
        }
    }
}
