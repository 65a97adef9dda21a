//! Variables of pages, in nginx's names: of its SSI module and of its core. Apache's come to the same in lower case.

use crate::path_rest;
use crate::subrequest::Parent;
use bytes::Bytes;
use kirin_http::{Client, ListenAddress, Peer};

/// The longest variable of several lines or cookies put together.
const MAX_JOINED_BYTES: usize = 32 * 1024;

/// A value, and for whom it is the same.
pub struct Variable {
    /// The value.
    pub value: Bytes,
    /// Whether it depends on who asks, and not only on what is asked for.
    pub is_visitors: bool,
}

/// The variable `name`, which is in lower case; none if it has no value.
pub fn variable(name: &str, parent: &Parent<'_>) -> Option<Variable> {
    let Parent { request, origin, .. } = parent;
    let ours = |value: &[u8]| Some(Variable { value: Bytes::copy_from_slice(value), is_visitors: false });
    let visitors = |value: &[u8]| Some(Variable { value: Bytes::copy_from_slice(value), is_visitors: true });
    match name {
        "request_uri" => match request.query {
            Some(query) => ours([request.path, "?", query].concat().as_bytes()),
            None => ours(request.path.as_bytes()),
        },
        // Decoded and without dots, as nginx has it.
        "uri" | "document_uri" => ours(&path_rest::decoded(request.path)?),
        "document_name" => {
            let path = path_rest::decoded(request.path)?;
            let name = path.rsplit(|byte| *byte == b'/').next()?;
            ours(name)
        }
        "request" => {
            let (method, version) = (request.method.as_str(), request.version.name());
            ours([method, " ", request.target, " ", version].concat().as_bytes())
        }
        "request_method" => ours(request.method.as_str().as_bytes()),
        "query_string" | "args" => ours(request.query?.as_bytes()),
        "query_string_unescaped" => ours(&unescaped(request.query?)),
        "is_args" => ours(request.query.map_or(b"", |_| b"?")),
        "host" => ours(without_port(host(parent)).to_ascii_lowercase().as_bytes()),
        "http_host" => ours(Some(request.host).filter(|host| !host.is_empty())?.as_bytes()),
        "server_name" => ours(without_port(host(parent)).as_bytes()),
        "server_port" => ours(local_port(parent).to_string().as_bytes()),
        "scheme" | "request_scheme" => ours(if origin.secure { b"https" } else { b"http" }),
        "https" => ours(if origin.secure { b"on" } else { b"" }),
        "server_protocol" => ours(request.version.name().as_bytes()),
        "server_software" => ours(b"Kirin"),
        "remote_addr" => visitors(origin.peer.to_string().as_bytes()),
        "remote_port" => match origin.peer {
            Peer::Tcp(address) => visitors(address.port().to_string().as_bytes()),
            Peer::Unix => None,
        },
        "remote_user" => visitors(parent.user?.as_bytes()),
        "ssl_client_s_dn" => match origin.client {
            Client::Verified(certificate) => visitors(certificate.subject.as_bytes()),
            Client::NotAsked | Client::Anonymous => None,
        },
        _ => {
            if let Some(cookie) = name.strip_prefix("cookie_") {
                Some(Variable { value: cookie_named(parent, cookie)?, is_visitors: true })
            } else if let Some(argument) = name.strip_prefix("arg_") {
                ours(argument_named(request.query?, argument)?.as_bytes())
            } else if let Some(field) = name.strip_prefix("http_") {
                Some(Variable { value: field_named(parent, field)?, is_visitors: true })
            } else {
                None
            }
        }
    }
}

/// Whether the absence of this variable, too, says something about who asks.
pub fn is_visitors(name: &str) -> bool {
    matches!(name, "remote_user" | "ssl_client_s_dn" | "remote_port")
        || name.starts_with("cookie_")
        || (name.starts_with("http_") && name != "http_host")
}

/// What the client calls this server, or its address.
fn host<'a>(parent: &Parent<'a>) -> &'a str {
    if parent.request.host.is_empty() { "localhost" } else { parent.request.host }
}

fn without_port(host: &str) -> &str {
    let name_end = host.rfind(']').map_or(0, |bracket| bracket + 1);
    host[name_end..].find(':').map_or(host, |colon| &host[..name_end + colon])
}

fn local_port(parent: &Parent<'_>) -> u16 {
    match parent.origin.local {
        ListenAddress::Tcp(address) => address.port(),
        ListenAddress::Unix(_) if parent.origin.secure => 443,
        ListenAddress::Unix(_) => 80,
    }
}

/// The value of a cookie, as it was sent. Names are compared without case, since those of variables have none.
fn cookie_named(parent: &Parent<'_>, name: &str) -> Option<Bytes> {
    let lines = parent.request.fields.iter().filter(|field| field.name.eq_ignore_ascii_case("cookie"));
    let mut pairs = lines.flat_map(|field| field.value.split(|byte| *byte == b';'));
    pairs.find_map(|pair| {
        let pair = pair.trim_ascii();
        let equals = memchr::memchr(b'=', pair)?;
        let is_it = pair[..equals].eq_ignore_ascii_case(name.as_bytes());
        is_it.then(|| Bytes::copy_from_slice(&pair[equals + 1..]))
    })
}

/// The value of an argument, as it was sent.
fn argument_named<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| {
        let (other, value) = pair.split_once('=')?;
        other.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// The lines of a field, whose name is written with `_` for `-`.
fn field_named(parent: &Parent<'_>, name: &str) -> Option<Bytes> {
    let is_it = |other: &str| {
        other.len() == name.len()
            && other.bytes().zip(name.bytes()).all(|(theirs, ours)| match theirs {
                b'-' => ours == b'_',
                theirs => theirs.to_ascii_lowercase() == ours,
            })
    };
    let mut lines = parent.request.fields.iter().filter(|field| is_it(field.name));
    let mut value = lines.next()?.value.to_vec();
    let separator: &[u8] = if name == "cookie" { b"; " } else { b", " };
    for line in lines {
        if value.len() + line.value.len() > MAX_JOINED_BYTES {
            break;
        }
        value.extend_from_slice(separator);
        value.extend_from_slice(line.value);
    }
    Some(Bytes::from(value))
}

/// A query with its percent-encoding taken off, as Apache has it.
fn unescaped(query: &str) -> Vec<u8> {
    let digit =
        |byte: Option<&u8>| char::from(*byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = query.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(high << 4 | low);
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}
