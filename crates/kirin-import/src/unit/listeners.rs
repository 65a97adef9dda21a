//! `listeners`: addresses, certificates, and what the proxies in front say.

use toml::Value;

use crate::draft::{Draft, append};
use crate::report::Place;
use crate::steps::network;
use crate::unit::json::{Entry, Json, Node};

/// Where Debian's package and the images of Unit keep the bundles of certificates.
const BUNDLES: &str = "/var/lib/unit/certs";

/// Reads a listener.
pub(crate) fn listener(entry: &Entry, place: &Place, draft: &mut Draft) {
    let address = entry.key.as_str();
    draft.notes.carried(place, &format!("\"{address}\""), "");
    draft.listener(address).section.comment(place.to_string());
    for key in entry.node.entries() {
        let place = Place { line: key.line, ..place.clone() };
        match key.key.as_str() {
            "pass" => {}
            "tls" => tls(&key.node, address, &place, draft),
            "forwarded" => forwarded(&key.node, address, &place, draft),
            "client_ip" => client_ip(&key.node, address, &place, draft),
            "backlog" => {
                draft.notes.by_itself(&place, "\"backlog\"", "Kirin takes what the system allows");
            }
            other => draft.notes.unknown(&place, &format!("\"{other}\"")),
        }
    }
}

fn tls(node: &Node, address: &str, place: &Place, draft: &mut Draft) {
    for key in node.entries() {
        let place = Place { line: key.line, ..place.clone() };
        let directive = format!("\"{}\": {}", key.key, key.node.summary());
        match key.key.as_str() {
            "certificate" => {
                for bundle in key.node.elements().iter().filter_map(Node::text) {
                    let file = format!("{BUNDLES}/{bundle}");
                    draft.listener(address).certificate(&file, &file);
                }
                let text = "The file of the bundle in the state directory of Unit, which has \
                            chain and key. Copy it, and write its path.";
                draft.notes.carried(&place, &directive, text);
            }
            "conf_commands" => {
                let text = "Kirin has TLS 1.2 and 1.3 with the suites of rustls (docs/tls.md)";
                draft.notes.left_out(&place, &directive, text);
            }
            "session" => {
                draft.notes.by_itself(&place, &directive, "sessions resume by tickets");
            }
            _ => draft.notes.unknown(&place, &directive),
        }
    }
}

/// Reads `forwarded`: who is believed, and in which fields.
fn forwarded(node: &Node, address: &str, place: &Place, draft: &mut Draft) {
    for key in node.entries() {
        let place = Place { line: key.line, ..place.clone() };
        let directive = format!("\"{}\": {}", key.key, key.node.summary());
        match key.key.as_str() {
            "client_ip" => field(&key.node, &directive, address, &place, draft),
            "protocol" => {
                let standard = key
                    .node
                    .text()
                    .is_some_and(|field| field.eq_ignore_ascii_case("X-Forwarded-Proto"));
                if standard {
                    draft.notes.by_itself(&place, &directive, "that of a trusted proxy counts");
                } else {
                    let text = "Kirin reads `X-Forwarded-Proto`: let the proxy send that";
                    draft.notes.left_out(&place, &directive, text);
                }
            }
            "source" => sources(&key.node, &directive, address, &place, draft),
            "recursive" => recursive(&key.node, &directive, &place, draft),
            _ => draft.notes.unknown(&place, &directive),
        }
    }
}

/// Reads `client_ip`, as it was before `forwarded`.
fn client_ip(node: &Node, address: &str, place: &Place, draft: &mut Draft) {
    for key in node.entries() {
        let place = Place { line: key.line, ..place.clone() };
        let directive = format!("\"{}\": {}", key.key, key.node.summary());
        match key.key.as_str() {
            "header" => field(&key.node, &directive, address, &place, draft),
            "source" => sources(&key.node, &directive, address, &place, draft),
            "recursive" => recursive(&key.node, &directive, &place, draft),
            _ => draft.notes.unknown(&place, &directive),
        }
    }
}

fn field(node: &Node, directive: &str, address: &str, place: &Place, draft: &mut Draft) {
    match node.text() {
        Some(field) => {
            draft.listener(address).section.set("forwarded", field);
            draft.notes.carried(place, directive, "");
        }
        None => draft.notes.left_out(place, directive, "it is no text"),
    }
}

fn recursive(node: &Node, directive: &str, place: &Place, draft: &mut Draft) {
    if node.value == Json::Bool(true) {
        draft.notes.by_itself(place, directive, "Kirin skips all trusted addresses");
    } else {
        let text = "Kirin skips all trusted addresses. If `source` has only proxies, this is the \
                    same";
        draft.notes.by_itself(place, directive, text);
    }
}

fn sources(node: &Node, directive: &str, address: &str, place: &Place, draft: &mut Draft) {
    let mut lacking = Vec::new();
    for source in node.elements().iter().filter_map(Node::text) {
        match source {
            "unix" => {
                append(&mut draft.listener(address).section, "trusted", Value::from("unix:"));
            }
            source => match network(source) {
                Some(network) => {
                    append(&mut draft.listener(address).section, "trusted", network.into());
                }
                None => lacking.push(source.to_owned()),
            },
        }
    }
    if lacking.is_empty() {
        draft.notes.carried(place, directive, "");
    } else {
        let text = format!(
            "Kirin has networks such as `10.0.0.0/8`, without ranges and `!`. It \
                            does not trust {}",
            lacking.join(", ")
        );
        draft.notes.left_out(place, directive, &text);
    }
}
