//! How much one token and one address may ask for: requests in a time, calls begun in a time, answers that stay open.
//!
//! What is counted is kept for those who ask now, and for so many at most: whoever comes when all places are taken shares
//! one with everybody else who does.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use sayback_runtime::clock::Clock;

use crate::Problem;

/// Tokens and addresses that are counted by themselves.
const PLACES: usize = 10_000;
const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;

/// What one may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Requests in a second; as many at once.
    pub requests: NonZeroU32,
    /// Calls and conversations begun in a minute; as many at once.
    pub starts: NonZeroU32,
    /// Answers that stay open, as event logs do.
    pub streams: NonZeroU32,
}

/// Bounds of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// For each token.
    pub token: Bounds,
    /// For each address, whatever its tokens. Those of this machine have no bounds: a proxy may stand there.
    pub address: Bounds,
    /// A proxy stands in front: the address is the last one that it put into `X-Forwarded-For`.
    pub behind_proxy: bool,
}

impl Default for HttpLimits {
    fn default() -> Self {
        let at = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MAX);
        let bounds =
            |starts, streams| Bounds { requests: at(2_000), starts: at(starts), streams: at(streams) };
        Self { token: bounds(600, 500), address: bounds(120, 100), behind_proxy: false }
    }
}

/// Who is counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Counted {
    Token(Arc<str>),
    Address(IpAddr),
    /// All for whom there was no place.
    Others,
}

impl Counted {
    /// An address, unless it is this machine's. Whoever has one of IPv6 has 2^64 of them.
    pub(crate) fn address(address: IpAddr) -> Option<Self> {
        match address.to_canonical() {
            address if address.is_loopback() => None,
            IpAddr::V6(address) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                Some(Self::Address(IpAddr::V6(network.into())))
            }
            address @ IpAddr::V4(_) => Some(Self::Address(address)),
        }
    }
}

/// What somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Request,
    Start,
    Stream,
}

/// Until when what was asked for is paid for, in microseconds of the limiter's clock.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    requests: u64,
    starts: u64,
    streams: u32,
}

/// Counts what tokens and addresses ask for.
#[derive(Debug)]
pub struct Limiter {
    limits: HttpLimits,
    clock: Clock,
    table: Mutex<Table>,
    refused: [AtomicU64; 3],
}

#[derive(Debug, Default)]
struct Table {
    used: BTreeMap<Counted, Used>,
    /// When idle places were last cleared.
    cleared: u64,
}

/// Holds a place for an answer that stays open.
#[derive(Debug)]
pub(crate) struct Held {
    limiter: Arc<Limiter>,
    of: Vec<Counted>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut table = self.limiter.table();
        for counted in &self.of {
            if let Some(used) = table.used.get_mut(counted) {
                used.streams = used.streams.saturating_sub(1);
            }
        }
    }
}

impl Limiter {
    /// Counts under these limits.
    pub fn new(limits: HttpLimits) -> Self {
        Self { limits, clock: Clock::start(), table: Mutex::default(), refused: Default::default() }
    }

    /// Whether an address is told by a proxy.
    pub(crate) fn behind_proxy(&self) -> bool {
        self.limits.behind_proxy
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests, begun calls and open answers that were refused.
    pub(crate) fn refused(&self) -> [u64; 3] {
        [0, 1, 2].map(|n: usize| self.refused.get(n).map_or(0, |count| count.load(Ordering::Relaxed)))
    }

    /// Answers that are open, and how many are counted by themselves.
    pub(crate) fn kept(&self) -> (u64, usize) {
        let table = self.table();
        let open = table.used.iter().filter(|(who, _)| !matches!(who, Counted::Address(_)));
        (open.map(|(_, used)| u64::from(used.streams)).sum(), table.used.len())
    }

    /// Takes a wish, or says when it may be asked for again.
    ///
    /// # Errors
    /// 429.
    pub(crate) fn take(&self, who: &Counted, wish: Wish) -> Result<(), Problem> {
        self.take_at(who, wish, self.clock.now().as_micros())
    }

    fn take_at(&self, who: &Counted, wish: Wish, now: u64) -> Result<(), Problem> {
        let bounds = match who {
            Counted::Token(_) => self.limits.token,
            Counted::Address(_) | Counted::Others => self.limits.address,
        };
        let mut table = self.table();
        let who = table.place(who, now);
        let used = table.used.entry(who).or_default();
        let wait = match wish {
            Wish::Request => pay(&mut used.requests, now, bounds.requests, SECOND),
            Wish::Start => pay(&mut used.starts, now, bounds.starts, MINUTE),
            Wish::Stream if used.streams >= bounds.streams.get() => Some(10 * SECOND),
            Wish::Stream => {
                used.streams += 1;
                None
            }
        };
        let Some(wait) = wait else { return Ok(()) };
        if let Some(count) = self.refused.get(wish as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let (kind, most) = match wish {
            Wish::Request => ("too-many-requests", format!("{} requests in a second", bounds.requests)),
            Wish::Start => ("too-many-starts", format!("{} calls begun in a minute", bounds.starts)),
            Wish::Stream => ("too-many-streams", format!("{} answers that stay open", bounds.streams)),
        };
        let detail = format!("at most {most}; the server's file says so in [limits]");
        let seconds = u32::try_from(wait.div_ceil(SECOND)).unwrap_or(u32::MAX);
        Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, kind, detail).after(seconds.max(1)))
    }

    /// Takes a place for an answer that stays open, of all who are counted for it.
    ///
    /// # Errors
    /// 429; then no place is held.
    pub(crate) fn hold(self: &Arc<Self>, all: &[Counted]) -> Result<Held, Problem> {
        let mut held = Held { limiter: Arc::clone(self), of: Vec::new() };
        for who in all {
            self.take(who, Wish::Stream)?;
            // Where it went: with the others, if there was no place.
            let there = self.table().used.contains_key(who);
            held.of.push(if there { who.clone() } else { Counted::Others });
        }
        Ok(held)
    }
}

impl Table {
    /// Where somebody is counted: by themselves, if there is a place.
    fn place(&mut self, who: &Counted, now: u64) -> Counted {
        if self.used.contains_key(who) {
            return who.clone();
        }
        if self.used.len() >= PLACES && now >= self.cleared.saturating_add(SECOND) {
            self.cleared = now;
            self.used.retain(|_, used| used.streams > 0 || used.requests > now || used.starts > now);
        }
        if self.used.len() >= PLACES { Counted::Others } else { who.clone() }
    }
}

/// Pays for one of `most` in a period, or says how long it takes until one can be paid for. What was not used is kept for
/// one period and no longer.
fn pay(paid: &mut u64, now: u64, most: NonZeroU32, period: u64) -> Option<u64> {
    let price = (period / u64::from(most.get())).max(1);
    let after = (*paid).max(now) + price;
    let over = after.saturating_sub(now).saturating_sub(period);
    if over > 0 {
        return Some(over);
    }
    *paid = after;
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(requests: u32, starts: u32, streams: u32) -> Bounds {
        let at = |number| NonZeroU32::new(number).unwrap();
        Bounds { requests: at(requests), starts: at(starts), streams: at(streams) }
    }

    fn limiter(token: Bounds, address: Bounds) -> Arc<Limiter> {
        Arc::new(Limiter::new(HttpLimits { token, address, behind_proxy: false }))
    }

    fn token(name: &str) -> Counted {
        Counted::Token(name.into())
    }

    #[test]
    fn so_many_at_once_and_then_one_by_one() {
        let limiter = limiter(bounds(10, 2, 1), bounds(1, 1, 1));
        let taken = |at: u64, wish| {
            let mut taken = 0;
            while limiter.take_at(&token("a"), wish, at).is_ok() {
                taken += 1;
            }
            taken
        };
        assert_eq!(taken(0, Wish::Request), 10);
        assert_eq!((taken(99_999, Wish::Request), taken(100_000, Wish::Request)), (0, 1));
        assert_eq!(taken(600_000, Wish::Request), 5);
        assert_eq!(taken(3_600 * SECOND, Wish::Request), 10, "what was not used is not kept for long");
        assert_eq!(taken(0, Wish::Start), 2);
        let refused = limiter.take_at(&token("a"), Wish::Start, 0).unwrap_err();
        assert_eq!((refused.status().as_u16(), refused.retry_after()), (429, Some(30)));
        assert_eq!((taken(29 * SECOND, Wish::Start), taken(30 * SECOND, Wish::Start)), (0, 1));
        assert!(limiter.take_at(&token("b"), Wish::Start, 0).is_ok(), "another token has bounds of its own");
    }

    #[test]
    fn a_place_for_an_open_answer_is_given_back_also_when_another_has_none() {
        let limiter = limiter(bounds(9, 9, 2), bounds(9, 9, 1));
        let address = Counted::address("192.0.2.1".parse().unwrap()).unwrap();
        let all = [token("a"), address.clone()];
        let first = limiter.hold(&all).unwrap();
        assert!(limiter.hold(&all).is_err(), "the address has no place");
        assert_eq!(limiter.kept().0, 1, "and the token's was given back");
        drop(first);
        assert_eq!(limiter.kept().0, 0);
        assert!(limiter.hold(&all).is_ok());
    }

    #[test]
    fn any_number_of_addresses_takes_bounded_memory_and_is_still_bounded() {
        let limiter = limiter(bounds(9, 9, 9), bounds(5, 5, 5));
        let address = |n: u32| Counted::address(IpAddr::V4((0x0a00_0000 + n).into())).unwrap();
        let mut taken = 0;
        for n in 0..200_000 {
            taken += usize::from(limiter.take_at(&address(n), Wish::Request, 1).is_ok());
        }
        assert_eq!(limiter.kept().1, PLACES + 1, "and one for all others");
        assert_eq!(taken, PLACES + 5);
        // Once they are idle their places are free again.
        assert!(limiter.take_at(&address(500_000), Wish::Request, 5 * SECOND).is_ok());
        assert_eq!(limiter.kept().1, 1);
    }

    #[test]
    fn this_machine_is_not_counted_and_a_network_of_ipv6_is_one() {
        let counted = |text: &str| Counted::address(text.parse().unwrap());
        for own in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(counted(own), None, "{own}");
        }
        assert_eq!(counted("2001:db8::1"), counted("2001:db8::ffff:1"));
        assert_ne!(counted("2001:db8::1"), counted("2001:db8:0:1::1"));
        assert_eq!(counted("::ffff:192.0.2.1"), counted("192.0.2.1"));
    }
}
