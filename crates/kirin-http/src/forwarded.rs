//! Who is behind the proxies: `X-Forwarded-For` or `Forwarded` (RFC 7239), read from the right and
//! believed only as far as trusted proxies wrote them.
//!
//! Pure: called by the connection for each request if the listener trusts anybody at all.
//! Everything that the nearest trusted proxy did not write itself may have been made up by the
//! client, so that the first address from the right that is not a trusted proxy's is the client.

use std::net::{IpAddr, SocketAddr};

use httparse::Header;
use ipnet::IpNet;

use crate::forwarded_element::{self, Element};
use crate::host::parse_host;
use crate::peer::Peer;

/// Peers whose word counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedPeers {
    /// Addresses.
    pub networks: Vec<IpNet>,
    /// Whoever can open our unix socket.
    pub unix: bool,
}

impl TrustedPeers {
    /// Whether `peer` is one.
    pub fn contains(&self, peer: &Peer) -> bool {
        match peer {
            Peer::Unix => self.unix,
            Peer::Tcp(address) => self.contains_ip(address.ip().to_canonical()),
        }
    }

    fn contains_ip(&self, ip: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&ip))
    }
}

/// The fields that trusted proxies write. One of the two: a proxy that writes one passes on
/// whatever a client says in the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedFields {
    /// `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
    #[default]
    X,
    /// `Forwarded`.
    Forwarded,
}

/// Whom to believe what.
#[derive(Clone, Debug, Default)]
pub struct Forwarding {
    /// The proxies.
    pub trusted: TrustedPeers,
    /// What they write.
    pub fields: ForwardedFields,
    /// Whether the host that they tell takes the place of `Host`.
    pub host: bool,
}

/// The client as trusted proxies tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedClient<'a> {
    /// Its address; port 0 if they do not tell it.
    pub peer: Peer,
    /// Whether its connection is encrypted.
    pub secure: Option<bool>,
    /// The host that it asked for.
    pub host: Option<&'a str>,
}

impl Forwarding {
    /// The client of a request with these fields that came from `peer`. None: it is `peer` itself.
    pub fn client<'a>(&self, peer: &Peer, fields: &'a [Header<'a>]) -> Option<ForwardedClient<'a>> {
        if !self.trusted.contains(peer) {
            return None;
        }
        let mut client = match self.fields {
            ForwardedFields::X => self.by_x_fields(fields),
            ForwardedFields::Forwarded => self.by_forwarded(fields),
        };
        if !self.host {
            client.host = None;
        }
        let told = client.address.is_some() || client.secure.is_some() || client.host.is_some();
        told.then(|| ForwardedClient {
            peer: client.address.map_or_else(|| peer.clone(), Peer::Tcp),
            secure: client.secure,
            host: client.host,
        })
    }

    fn by_x_fields<'a>(&self, fields: &'a [Header<'a>]) -> Told<'a> {
        let hops = from_right(fields, "x-forwarded-for");
        let (mut address, mut hop, mut count) = (None, 0, 0);
        let mut ended = false;
        for member in hops {
            count += 1;
            if ended {
                continue;
            }
            match node(member) {
                Some(node) => {
                    hop = count - 1;
                    address = Some(node);
                    ended = !self.trusted.contains_ip(node.ip());
                }
                // `unknown`, or no address at all: what is to the left of it belongs to nobody we
                // know.
                None => ended = true,
            }
        }
        // One value for each hop, or one in all, which the nearest proxy wrote.
        let of_hop = |name| {
            let values = from_right(fields, name).count();
            from_right(fields, name).nth(if values == count { hop } else { 0 })
        };
        let host = if self.host { of_hop("x-forwarded-host").and_then(valid_host) } else { None };
        Told { address, secure: of_hop("x-forwarded-proto").and_then(is_https), host }
    }

    fn by_forwarded<'a>(&self, fields: &'a [Header<'a>]) -> Told<'a> {
        let mut told = Told::default();
        for field in
            fields.iter().rev().filter(|field| field.name.eq_ignore_ascii_case("forwarded"))
        {
            // In a line that is malformed anywhere a client may have hidden what a proxy added.
            let Some(elements) = forwarded_element::parse(field.value) else { return told };
            for element in elements.iter().rev() {
                let Element { for_node, proto, host } = element;
                let Some(node) = for_node.as_deref().and_then(node) else { return told };
                told.address = Some(node);
                told.secure = proto.as_deref().and_then(is_https);
                told.host = host.and_then(valid_host);
                if !self.trusted.contains_ip(node.ip()) {
                    return told;
                }
            }
        }
        told
    }
}

#[derive(Default)]
struct Told<'a> {
    address: Option<SocketAddr>,
    secure: Option<bool>,
    host: Option<&'a str>,
}

/// Members of the list in all lines of the field `name`, the last first.
fn from_right<'a>(fields: &'a [Header<'a>], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let lines = fields.iter().rev().filter(move |field| field.name.eq_ignore_ascii_case(name));
    lines
        .flat_map(|field| field.value.rsplit(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty())
}

/// An address as proxies write it: `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]`,
/// `[2001:db8::1]:4711`.
fn node(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let (ip, port) = match bare.parse::<IpAddr>() {
        Ok(ip) => (ip, 0),
        Err(_) => text.parse::<SocketAddr>().map(|address| (address.ip(), address.port())).ok()?,
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}

fn is_https(scheme: &[u8]) -> Option<bool> {
    match scheme {
        _ if scheme.eq_ignore_ascii_case(b"https") => Some(true),
        _ if scheme.eq_ignore_ascii_case(b"http") => Some(false),
        _ => None,
    }
}

fn valid_host(host: &[u8]) -> Option<&str> {
    parse_host(host).ok().filter(|host| !host.is_empty())
}

#[cfg(test)]
#[path = "forwarded_tests.rs"]
mod tests;
