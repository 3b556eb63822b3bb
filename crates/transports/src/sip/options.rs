//! How a server takes telephone calls.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use sayback_media::codec::CodecKind;

use super::crypto::SrtpPolicy;
use super::transfer::Destination;
use crate::wire::Far;

/// What SIP messages travel over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SipTransport {
    /// Datagrams.
    Udp,
    /// A stream in the clear.
    Tcp,
    /// An encrypted stream.
    Tls,
}

/// Where SIP messages are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Over what.
    pub transport: SipTransport,
    /// At which address and port; port 0: any that is free.
    pub address: SocketAddr,
}

/// A certificate and its key, in PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, with those that vouch for it behind it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// A carrier or a telephone system, known by its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trunk {
    /// Its name in logs.
    pub name: String,
    /// Addresses that it calls from, each with the number of bits that count.
    pub addresses: Vec<(IpAddr, u8)>,
    /// What is behind it.
    pub far: Far,
}

impl Trunk {
    /// Whether it calls from this address.
    pub fn has(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|(net, bits)| in_net(*net, *bits, address))
    }
}

fn in_net(net: IpAddr, bits: u8, address: IpAddr) -> bool {
    match (net, address) {
        (IpAddr::V4(net), IpAddr::V4(address)) => {
            let off = u32::from(net) ^ u32::from(address);
            off.checked_shr(32 - u32::from(bits.min(32))).unwrap_or(0) == 0
        }
        (IpAddr::V6(net), IpAddr::V6(address)) => {
            let off = u128::from(net) ^ u128::from(address);
            off.checked_shr(128 - u32::from(bits.min(128))).unwrap_or(0) == 0
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

/// A telephone that calls with a name and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its password.
    pub password: String,
    /// What is behind it: usually the caller's own telephone.
    pub far: Far,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User").field("name", &self.name).field("far", &self.far).finish_non_exhaustive()
    }
}

/// A telephone system that is to send us its calls.
#[derive(Clone, PartialEq, Eq)]
pub struct Registrar {
    /// Its address: `sip:pbx.example`.
    pub server: String,
    /// Our name there.
    pub user: String,
    /// Our password.
    pub password: String,
    /// How long a registration is to last; it is refreshed in time.
    pub expires: Duration,
}

impl std::fmt::Debug for Registrar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (server, user) = (&self.server, &self.user);
        f.debug_struct("Registrar").field("server", server).field("user", user).finish_non_exhaustive()
    }
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SipOptions {
    /// Where SIP messages are taken.
    pub listen: Vec<Listen>,
    /// The address that far ends are told, where it is not the machine's own (behind a translating router).
    pub advertise: Option<IpAddr>,
    /// Ports for sound, a pair for each call.
    pub media_ports: RangeInclusive<u16>,
    /// Codecs, the best first.
    pub codecs: Vec<CodecKind>,
    /// Whether sound is encrypted.
    pub srtp: SrtpPolicy,
    /// Who calls by address.
    pub trunks: Vec<Trunk>,
    /// Who calls by name and password.
    pub users: Vec<User>,
    /// Whether everybody else may call too. From the machine itself everybody may.
    pub anyone: bool,
    /// What is behind the packets of everybody else.
    pub far: Far,
    /// For `tls`.
    pub tls: Option<TlsFiles>,
    /// Where we are registered, if anywhere.
    pub registrar: Option<Registrar>,
    /// Where the model may send callers, by name. Empty: nowhere.
    pub transfers: std::collections::BTreeMap<String, Destination>,
    /// Dead calls are noticed within this (RFC 4028).
    pub session_timer: Duration,
    /// Sessions shorter than this are refused; 90 s by RFC 4028, which the server's file cannot change.
    pub shortest_session: Duration,
    /// Whoever is called has this long to answer.
    pub ring: Duration,
    /// A call without a packet for this long is over.
    pub media_timeout: Duration,
}

impl Default for SipOptions {
    fn default() -> Self {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 5_060);
        Self {
            listen: vec![Listen { transport: SipTransport::Udp, address }],
            advertise: None,
            media_ports: 20_000..=29_999,
            codecs: CodecKind::ALL.to_vec(),
            srtp: SrtpPolicy::default(),
            trunks: Vec::new(),
            users: Vec::new(),
            anyone: false,
            far: Far::default(),
            tls: None,
            registrar: None,
            transfers: std::collections::BTreeMap::new(),
            session_timer: Duration::from_secs(1_800),
            shortest_session: super::timer::SHORTEST,
            ring: Duration::from_secs(60),
            media_timeout: Duration::from_secs(60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trunk_is_known_by_the_bits_that_count() {
        let nets = [("192.0.2.0", 24), ("2001:db8::", 32), ("198.51.100.7", 32)];
        let addresses = nets.iter().map(|(net, bits)| (net.parse().unwrap(), *bits)).collect();
        let trunk = Trunk { name: "carrier".to_owned(), addresses, far: Far::Trunk };
        for (address, known) in [
            ("192.0.2.255", true),
            ("192.0.3.1", false),
            ("198.51.100.7", true),
            ("198.51.100.8", false),
            ("2001:db8:9::1", true),
            ("2001:db9::1", false),
        ] {
            assert_eq!(trunk.has(address.parse().unwrap()), known, "{address}");
        }
        let all = Trunk { addresses: vec![("0.0.0.0".parse().unwrap(), 0)], ..trunk };
        assert!(all.has("8.8.8.8".parse().unwrap()) && !all.has("::1".parse().unwrap()));
    }

    #[test]
    fn passwords_are_not_shown() {
        let user = User { name: "anna".to_owned(), password: "secret".to_owned(), far: Far::Endpoint };
        assert!(!format!("{user:?}").contains("secret"));
    }
}
