//! The address of a client, directly or behind proxies.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use actix_web::{
    HttpRequest,
    http::header::{HeaderMap, HeaderValue, X_FORWARDED_FOR},
};
use ipnet::IpNet;

use crate::{Error, Result};

/// A network whose proxies are trusted to name the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustedProxy(IpNet);

impl FromStr for TrustedProxy {
    type Err = Error;

    /// A network such as `10.0.0.0/8`, or one address.
    fn from_str(text: &str) -> Result<Self> {
        let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network.map(Self).map_err(|_| {
            Error::invalid("trusted_proxies", format!("{text:?} is not a network such as 10.0.0.0/8, nor an address"))
        })
    }
}

/// The client's address: the peer of the connection, or the address that trusted proxies name.
pub(crate) fn client_address(proxies: &[TrustedProxy], request: &HttpRequest) -> Option<IpAddr> {
    let peer = request.peer_addr()?.ip().to_canonical();
    Some(behind(proxies, peer, request.headers()))
}

/// The client that connects from `peer`; `None` for a trusted proxy, whose client is not known
/// before the request.
pub(crate) fn of_connection(proxies: &[TrustedProxy], peer: SocketAddr) -> Option<IpAddr> {
    let address = peer.ip().to_canonical();
    (!is_trusted(proxies, address)).then_some(address)
}

/// The network of one internet subscriber: an IPv4 address, or 64 bits of IPv6.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

/// The client of the outermost trusted proxy. Each proxy appends its client to the right of
/// `X-Forwarded-For`, so entries to the left of an untrusted address may be forged.
fn behind(proxies: &[TrustedProxy], peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let mut address = peer;
    if !is_trusted(proxies, address) {
        return address;
    }
    // As bytes, because invalid text on the left must not prevent reading the entries of trusted
    // proxies.
    let lines: Vec<&[u8]> = headers.get_all(X_FORWARDED_FOR).map(HeaderValue::as_bytes).collect();
    for entry in lines.iter().rev().flat_map(|line| line.rsplit(|byte| *byte == b',')) {
        // Stop at an entry that is not an address.
        let Some(before) = str::from_utf8(entry).ok().and_then(|entry| parse(entry.trim())) else { break };
        address = before;
        if !is_trusted(proxies, address) {
            break;
        }
    }
    address
}

fn is_trusted(proxies: &[TrustedProxy], address: IpAddr) -> bool {
    proxies.iter().any(|TrustedProxy(network)| network.contains(&address))
}

/// Parses an address as proxies write it, possibly with a port.
fn parse(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().or_else(|_| text.parse().map(|address: SocketAddr| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client according to these lines of `X-Forwarded-For`, if `10.0.0.0/8` and `::1` are
    /// trusted.
    fn client(peer: &str, lines: &[&str]) -> String {
        let proxies: Vec<TrustedProxy> = ["10.0.0.0/8", "::1"].iter().filter_map(|text| text.parse().ok()).collect();
        assert_eq!(proxies.len(), 2);
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(
                X_FORWARDED_FOR,
                HeaderValue::from_bytes(line.as_bytes()).unwrap_or_else(|error| panic!("{error}")),
            );
        }
        let peer = peer.parse::<IpAddr>().unwrap_or_else(|error| panic!("{error}"));
        behind(&proxies, peer, &headers).to_string()
    }

    #[test]
    fn only_trusted_proxies_name_the_client() {
        for (peer, lines, wanted) in [
            ("192.0.2.1", &["198.51.100.7"][..], "192.0.2.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", &["203.0.113.9, 198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", &["203.0.113.9, 198.51.100.7, 10.0.0.2"], "198.51.100.7"),
            ("10.0.0.1", &["203.0.113.9", "198.51.100.7,10.0.0.2"], "198.51.100.7"),
            ("10.0.0.1", &["198.51.100.7", ""], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.7, unknown, 10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            ("10.0.0.1", &["198.51.100.7:4711"], "198.51.100.7"),
            ("10.0.0.1", &["[2001:db8::7]:4711"], "2001:db8::7"),
            ("10.0.0.1", &["[2001:db8::7]"], "2001:db8::7"),
            ("::1", &["::ffff:198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", &["198.51.100.7, é"], "10.0.0.1"),
            ("10.0.0.1", &["é, 198.51.100.7"], "198.51.100.7"),
        ] {
            assert_eq!(client(peer, lines), wanted, "{peer} {lines:?}");
        }
    }

    #[test]
    fn a_network_is_one_or_an_address() {
        for good in ["10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "::1", "0.0.0.0/0"] {
            assert!(good.parse::<TrustedProxy>().is_ok(), "{good}");
        }
        for bad in ["", "10.0.0.0/33", "10.0.0", "proxy.example", "10.0.0.1:80"] {
            assert!(bad.parse::<TrustedProxy>().is_err(), "{bad}");
        }
    }
}
