//! Finds the client behind trusted proxies from `X-Forwarded-For`, `Forwarded` (RFC 7239), or a
//! field with one address.
//!
//! Pure. The connection calls it for each request if the listener trusts any proxy. The nearest
//! trusted proxy has written the last entry of a field. A client can have made up everything before
//! the entries of trusted proxies. So the client is the first address from the right that is not a
//! trusted proxy's.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use httparse::Header;

use crate::forwarded_element::{self, Element};
use crate::host::parse_host;
use crate::peer::Peer;
use crate::peer_set::PeerSet;

/// The fields that trusted proxies write. It is one kind only: a proxy that writes one kind passes
/// on whatever a client has written in the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ForwardedFields {
    /// `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
    #[default]
    X,
    /// `Forwarded`.
    Forwarded,
    /// A field of this name with the client's address alone, such as `X-Real-IP`; and
    /// `X-Forwarded-Proto` and `X-Forwarded-Host`.
    Address(Arc<str>),
}

impl ForwardedFields {
    /// Returns whether the proxies write fields whose names begin with `X-`.
    pub fn are_x(&self) -> bool {
        !matches!(self, Self::Forwarded)
    }
}

/// Which proxies are trusted, and for what.
#[derive(Clone, Debug, Default)]
pub struct Forwarding {
    /// The trusted proxies.
    pub trusted: PeerSet,
    /// The fields that they write.
    pub fields: ForwardedFields,
    /// Whether the host that they name replaces `Host`.
    pub host: bool,
}

/// The client that trusted proxies name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedClient<'a> {
    /// Its address. The port is 0 if they do not name one.
    pub peer: Peer,
    /// Whether its connection is encrypted.
    pub secure: Option<bool>,
    /// The host that it asked for.
    pub host: Option<&'a str>,
}

impl Forwarding {
    /// Returns the client of a request with these fields from `peer`. `None` means that it is
    /// `peer` itself.
    pub fn client<'a>(&self, peer: &Peer, fields: &'a [Header<'a>]) -> Option<ForwardedClient<'a>> {
        if !self.trusted.contains(peer) {
            return None;
        }
        let mut client = match &self.fields {
            ForwardedFields::X => self.by_x_fields(fields),
            ForwardedFields::Forwarded => self.by_forwarded(fields),
            ForwardedFields::Address(name) => by_address_field(fields, name),
        };
        if !self.host {
            client.host = None;
        }
        let named = client.address.is_some() || client.secure.is_some() || client.host.is_some();
        named.then(|| ForwardedClient {
            peer: client.address.map_or_else(|| peer.clone(), Peer::Tcp),
            secure: client.secure,
            host: client.host,
        })
    }

    fn by_x_fields<'a>(&self, fields: &'a [Header<'a>]) -> NamedClient<'a> {
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
                // The entry is `unknown` or not an address. The entries to the left of it come from
                // an unknown party.
                None => ended = true,
            }
        }
        // The field has one value for each hop, or one value only, which the nearest proxy wrote.
        let of_hop = |name| {
            let values = from_right(fields, name).count();
            from_right(fields, name).nth(if values == count { hop } else { 0 })
        };
        let host = if self.host { of_hop("x-forwarded-host").and_then(valid_host) } else { None };
        NamedClient { address, secure: of_hop("x-forwarded-proto").and_then(is_https), host }
    }

    fn by_forwarded<'a>(&self, fields: &'a [Header<'a>]) -> NamedClient<'a> {
        let mut named = NamedClient::default();
        for field in
            fields.iter().rev().filter(|field| field.name.eq_ignore_ascii_case("forwarded"))
        {
            // If a line is malformed anywhere, a client may have hidden what a proxy added.
            let Some(elements) = forwarded_element::parse(field.value) else { return named };
            for element in elements.iter().rev() {
                let Element { for_node, proto, host } = element;
                let Some(node) = for_node.as_deref().and_then(node) else { return named };
                named.address = Some(node);
                named.secure = proto.as_deref().and_then(is_https);
                named.host = host.and_then(valid_host);
                if !self.trusted.contains_ip(node.ip()) {
                    return named;
                }
            }
        }
        named
    }
}

/// Reads the address from the field `name`. A value that is not one address names no client: in a
/// list, the proxy may have written any of the addresses.
fn by_address_field<'a>(fields: &'a [Header<'a>], name: &str) -> NamedClient<'a> {
    let mut lines = fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
    let address = match (lines.next(), lines.next()) {
        (Some(line), None) => node(line.value.trim_ascii()),
        _ => None,
    };
    let nearest = |name| from_right(fields, name).next();
    NamedClient {
        address,
        secure: nearest("x-forwarded-proto").and_then(is_https),
        host: nearest("x-forwarded-host").and_then(valid_host),
    }
}

#[derive(Default)]
struct NamedClient<'a> {
    address: Option<SocketAddr>,
    secure: Option<bool>,
    host: Option<&'a str>,
}

/// Returns the members of the list in all lines of the field `name`, the last one first.
fn from_right<'a>(fields: &'a [Header<'a>], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let lines = fields.iter().rev().filter(move |field| field.name.eq_ignore_ascii_case(name));
    lines
        .flat_map(|field| field.value.rsplit(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty())
}

/// Parses an address as proxies write it: `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`,
/// `[2001:db8::1]`, `[2001:db8::1]:4711`.
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
