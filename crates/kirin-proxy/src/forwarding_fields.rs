//! The fields that tell a server about the client: `X-Forwarded-*` and `Forwarded` (RFC 7239). This
//! is a pure part of the encoding of request heads.
//!
//! Kirin drops these fields if an untrusted client sent them. It extends those of a trusted proxy.

use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;

use kirin_cgi::is_given;
use kirin_http::{ForwardedFields, Origin, Peer, RequestHead, proxy_field, write_ip};

use crate::request_head::HeadPolicy;

/// Fields that are always written here, whatever the client has sent.
const WRITTEN: [&str; 4] =
    ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"];

/// Appends the field lines.
pub(crate) fn write(
    request: &RequestHead<'_>,
    origin: Origin<'_>,
    policy: HeadPolicy<'_>,
    out: &mut Vec<u8>,
) {
    if policy.forwarded.has_x() {
        write_x(request, origin, policy.given, out);
    }
    if policy.forwarded.has_forwarded() {
        write_forwarded(request, origin, out);
    }
}

/// Returns whether a field with this name is always written here, or left out.
pub(crate) fn writes(name: &str) -> bool {
    WRITTEN.iter().any(|other| name.eq_ignore_ascii_case(other))
}

fn write_x(request: &RequestHead<'_>, origin: Origin<'_>, given: &[Arc<str>], out: &mut Vec<u8>) {
    out.extend_from_slice(b"X-Forwarded-For: ");
    match origin.proxy {
        Some(proxy) if *proxy.fields == ForwardedFields::X => {
            for value in values(request, "x-forwarded-for") {
                out.extend_from_slice(value);
                out.extend_from_slice(b", ");
            }
            write_address(proxy.peer, out);
        }
        Some(proxy) if proxy.peer != origin.peer => {
            write_address(origin.peer, out);
            out.extend_from_slice(b", ");
            write_address(proxy.peer, out);
        }
        _ => write_address(origin.peer, out),
    }
    out.extend_from_slice(b"\r\nX-Forwarded-Proto: ");
    out.extend_from_slice(scheme(origin));
    out.extend_from_slice(b"\r\n");
    let told = origin.proxy.filter(|proxy| proxy.fields.are_x());
    let host = told.and_then(|_| values(request, "x-forwarded-host").next());
    let host = host.unwrap_or(request.host.as_bytes());
    if !host.is_empty() {
        write_line("X-Forwarded-Host", host, out);
    }
    if told.is_some() {
        for field in request.fields.iter().filter(|field| proxy_field(field.name).is_some()) {
            // The fields of a rule are among the others already.
            if !writes(field.name) && !is_given(given, field.name) {
                write_line(field.name, field.value.trim_ascii(), out);
            }
        }
    }
}

fn write_forwarded(request: &RequestHead<'_>, origin: Origin<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Forwarded: ");
    let told = origin.proxy.filter(|proxy| *proxy.fields == ForwardedFields::Forwarded);
    if let Some(proxy) = told {
        for value in values(request, "forwarded") {
            out.extend_from_slice(value);
            out.extend_from_slice(b", ");
        }
        write_node(proxy.peer, out);
    } else {
        write_node(origin.peer, out);
        out.extend_from_slice(b";proto=");
        out.extend_from_slice(scheme(origin));
        if !request.host.is_empty() {
            // No character of a host must be escaped in a quoted string.
            out.extend_from_slice(b";host=\"");
            out.extend_from_slice(request.host.as_bytes());
            out.push(b'"');
        }
        if let Some(proxy) = origin.proxy.filter(|proxy| proxy.peer != origin.peer) {
            out.extend_from_slice(b", ");
            write_node(proxy.peer, out);
        }
    }
    out.extend_from_slice(b"\r\n");
}

fn values<'a>(request: &RequestHead<'a>, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let lines = request.fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
    lines.map(|field| field.value.trim_ascii()).filter(|value| !value.is_empty())
}

fn scheme(origin: Origin<'_>) -> &'static [u8] {
    if origin.secure { b"https" } else { b"http" }
}

fn write_line(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn write_address(peer: &Peer, out: &mut Vec<u8>) {
    match peer {
        Peer::Tcp(address) => write_ip(address.ip().to_canonical(), out),
        Peer::Unix => out.extend_from_slice(b"unknown"),
    }
}

/// Writes `for=192.0.2.1`, `for="[2001:db8::1]"` or `for=unknown` (RFC 7239 section 6).
fn write_node(peer: &Peer, out: &mut Vec<u8>) {
    let _ = match peer {
        Peer::Tcp(address) => match address.ip().to_canonical() {
            IpAddr::V4(ip) => write!(out, "for={ip}"),
            IpAddr::V6(ip) => write!(out, "for=\"[{ip}]\""),
        },
        Peer::Unix => out.write_all(b"for=unknown"),
    };
}
