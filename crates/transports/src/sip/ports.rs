//! Ports for sound: an even one for the packets, the next one for their reports.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::net::UdpSocket;

use super::media::Sockets;

/// No pair of ports is free.
#[derive(Debug, thiserror::Error)]
#[error("no pair of ports between {from} and {to} is free for sound; widen `media_ports`")]
pub(super) struct NoPorts {
    from: u16,
    to: u16,
}

/// Hands out pairs, each time from where the last one was found, so that late packets of a call that is over do not
/// meet the next one.
#[derive(Debug)]
pub(super) struct Ports {
    from: u16,
    to: u16,
    next: AtomicU32,
}

impl Ports {
    pub(super) fn new(range: &RangeInclusive<u16>) -> Self {
        let from = range.start().saturating_add(range.start() % 2);
        Self { from, to: *range.end(), next: AtomicU32::new(0) }
    }

    /// Two sockets next to each other.
    pub(super) async fn take(&self, address: IpAddr) -> Result<Sockets, NoPorts> {
        let pairs = u32::from(self.to.saturating_sub(self.from).saturating_add(1)) / 2;
        for _ in 0..pairs {
            let pair = self.next.fetch_add(1, Ordering::Relaxed) % pairs;
            let port = self.from.saturating_add(u16::try_from(pair * 2).unwrap_or(u16::MAX));
            let bind = |port| UdpSocket::bind(SocketAddr::new(address, port));
            if let (Ok(rtp), Ok(reports)) = (bind(port).await, bind(port.saturating_add(1)).await) {
                return Ok(Sockets { rtp, reports });
            }
        }
        Err(NoPorts { from: self.from, to: self.to })
    }
}

/// The address of ours that packets to there leave from. Nothing is sent for it.
pub(super) async fn own_address(towards: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr = if towards.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).await.ok()?;
    socket.connect(towards).await.ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pairs_are_even_and_follow_each_other() {
        let ports = Ports::new(&(42_001..=42_009));
        let local = "127.0.0.1".parse().unwrap();
        let pair = ports.take(local).await.unwrap();
        let (first, second) =
            (pair.rtp.local_addr().unwrap().port(), pair.reports.local_addr().unwrap().port());
        assert_eq!((first % 2, second), (0, first + 1));
        let next = ports.take(local).await.unwrap().rtp.local_addr().unwrap().port();
        assert!(next != first && next % 2 == 0);
    }

    #[tokio::test]
    async fn a_range_that_is_taken_is_told() {
        let ports = Ports::new(&(42_101..=42_103));
        let local = "127.0.0.1".parse().unwrap();
        let pair = ports.take(local).await.unwrap();
        let error = ports.take(local).await.unwrap_err().to_string();
        assert!(error.contains("42102") && error.contains("media_ports"), "{error}");
        drop(pair);
        assert!(ports.take(local).await.is_ok());
    }
}
