//! Servers behind Apache: `ProxyPass`, balancers and handlers.

use std::collections::HashMap;

use toml::{Table, Value};

use crate::apache::tree::Directive;
use crate::draft::Draft;
use crate::section::Section;

/// Balancers by their names: what `BalancerMember` and `ProxySet` say.
#[derive(Debug, Default)]
pub(crate) struct Balancers {
    keys: HashMap<String, Section>,
}

/// Where requests go: the place, the path of the URL, and the options that Kirin does not have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) place: String,
    pub(crate) path: String,
    pub(crate) lacking: Vec<String>,
}

impl Balancers {
    /// Reads `<Proxy balancer://NAME>`. Returns whether it is one.
    pub(crate) fn read(&mut self, section: &Directive, draft: &mut Draft) -> bool {
        let Some(name) = section.argument(0).strip_prefix("balancer://") else { return false };
        let mut keys = Section::default();
        keys.comment(section.place.to_string());
        let mut servers = Vec::new();
        for directive in section.body() {
            let mut lacking = Vec::new();
            match directive.name.as_str() {
                "balancermember" => servers.extend(member(directive, &mut lacking)),
                "proxyset" => set(&directive.arguments, &mut keys, &mut lacking),
                name if crate::apache::access::is_access(name) => {}
                _ => lacking.push(directive.name.clone()),
            }
            if lacking.is_empty() {
                draft.notes.carried(&directive.place, &directive.line, "");
            } else {
                let text = format!("Kirin has no {}", lacking.join(", "));
                draft.notes.left_out(&directive.place, &directive.line, &text);
            }
        }
        keys.set("servers", servers);
        self.keys.insert(name.trim_end_matches('/').to_ascii_lowercase(), keys);
        draft.notes.carried(&section.place, &section.line, "");
        true
    }

    /// Returns the address of the server of a URL.
    pub(crate) fn address(url: &str) -> Option<String> {
        server(url).map(|(address, _)| address)
    }

    /// Returns where a URL leads. `options` are those of `ProxyPass`.
    pub(crate) fn target(
        &self,
        url: &str,
        options: &[String],
        place: &str,
        draft: &mut Draft,
    ) -> Option<Target> {
        if let Some(rest) = url.strip_prefix("balancer://") {
            let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
            let mut keys = self.keys.get(&name.to_ascii_lowercase())?.clone();
            let empty = keys.get("servers").and_then(Value::as_array).is_none_or(Vec::is_empty);
            if empty {
                return None;
            }
            let mut lacking = Vec::new();
            set(options, &mut keys, &mut lacking);
            let name = draft.upstreams.add(name, keys);
            return Some(Target { place: format!("proxy:{name}"), path: slash(path), lacking });
        }
        let (server, path) = server(url)?;
        let mut keys = Section::default();
        keys.comment(place);
        keys.set("servers", vec![server.clone()]);
        if server.starts_with("https://") {
            keys.set("host", "upstream");
        }
        let mut lacking = Vec::new();
        set(options, &mut keys, &mut lacking);
        let wanted = server.rsplit("//").next().unwrap_or_default();
        let wanted = wanted.trim_start_matches("unix:").trim_start_matches('/');
        if server.starts_with("fastcgi://") {
            keys.set("root", if path.is_empty() { "/srv/www" } else { path.as_str() });
        }
        let name = draft.upstreams.add(wanted, keys);
        Some(Target { place: format!("proxy:{name}"), path: slash(&path), lacking })
    }
}

fn slash(path: &str) -> String {
    format!("/{}", path.trim_start_matches('/'))
}

/// Returns the address of a server and the path of a URL.
fn server(url: &str) -> Option<(String, String)> {
    if let Some(rest) = url.strip_prefix("unix:") {
        let (socket, url) = rest.split_once('|').unwrap_or((rest, ""));
        let scheme = if url.starts_with("fcgi:") { "fastcgi://" } else { "" };
        let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
        let path = path.map_or("", |(_, path)| path);
        return Some((format!("{scheme}unix:{socket}"), path.to_owned()));
    }
    let (scheme, rest) = url.split_once("://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if host.is_empty() || host.contains(['$', '%', '{']) || path.contains(['$', '%']) {
        return None;
    }
    let (prefix, port) = match scheme {
        "http" | "ws" => ("", 80),
        "https" | "wss" => ("https://", 443),
        "h2c" => ("h2c://", 80),
        "fcgi" => ("fastcgi://", 9000),
        "scgi" => ("scgi://", 4000),
        "uwsgi" => ("uwsgi://", 3031),
        _ => return None,
    };
    let behind = host.rfind(']').map_or(0, |end| end + 1);
    let has_port = host.get(behind..).is_some_and(|rest| rest.contains(':'));
    let host = if has_port { host.to_owned() } else { format!("{host}:{port}") };
    let path =
        if scheme == "fcgi" && !path.is_empty() { format!("/{path}") } else { path.to_owned() };
    Some((format!("{prefix}{host}"), path))
}

/// Reads `BalancerMember URL [key=value …]`.
fn member(directive: &Directive, lacking: &mut Vec<String>) -> Option<Value> {
    let Some((address, _)) = server(directive.argument(0)) else {
        lacking.push(format!("address `{}`", directive.argument(0)));
        return None;
    };
    let mut table = Table::from_iter([("address".to_owned(), Value::from(address.as_str()))]);
    for option in directive.arguments.iter().skip(1) {
        match option.split_once('=') {
            Some(("loadfactor", weight)) => {
                if let Some(weight) = weight.parse::<f64>().ok().filter(|weight| *weight >= 1.0) {
                    #[allow(clippy::cast_possible_truncation)]
                    table.insert("weight".to_owned(), Value::from(weight.min(1000.0) as i64));
                }
            }
            Some(("status", status)) if status.contains('D') => return None,
            Some(("status", "+H" | "H")) => drop(table.insert("backup".to_owned(), true.into())),
            Some(("max", most)) => {
                if let Ok(most) = most.parse::<i64>() {
                    table.insert("max_in_flight".to_owned(), Value::from(most));
                }
            }
            Some((
                "route" | "retry" | "timeout" | "connectiontimeout" | "keepalive" | "ping",
                _,
            )) => {}
            _ => lacking.push(format!("`{option}`")),
        }
    }
    Some(if table.len() == 1 { Value::from(address) } else { Value::Table(table) })
}

/// Reads the options of `ProxyPass` and `ProxySet`.
fn set(options: &[String], keys: &mut Section, lacking: &mut Vec<String>) {
    for option in options {
        match option.split_once('=') {
            Some(("lbmethod", "bybusyness")) => keys.set("balance", "least-connections"),
            Some(("lbmethod", "byrequests" | "bytraffic")) => {}
            Some(("stickysession", cookie)) => {
                keys.set("sticky_cookie", cookie.split('|').next().unwrap_or_default());
            }
            Some(("timeout", time)) if time.parse::<u32>().is_ok() => {
                keys.set("first_byte_timeout", format!("{time}s"));
                keys.set("idle_timeout", format!("{time}s"));
            }
            Some(("connectiontimeout", time)) if time.parse::<u32>().is_ok() => {
                keys.set("connect_timeout", format!("{time}s"));
            }
            Some(("retry", time)) if time.parse::<u32>().is_ok_and(|time| time > 0) => {
                keys.set("ejection_time", format!("{time}s"));
            }
            Some(("max", most)) if most.parse::<i64>().is_ok_and(|most| most > 0) => {
                keys.set("max_in_flight", most.parse::<i64>().unwrap_or(1));
            }
            Some((
                "keepalive" | "disablereuse" | "enablereuse" | "nofailover" | "upgrade" | "acquire"
                | "flushpackets",
                _,
            )) => {}
            None if matches!(option.as_str(), "nocanon" | "interpolate") => {}
            _ => lacking.push(format!("`{option}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_servers_and_paths() {
        for (url, expected) in [
            ("http://127.0.0.1:3000/api", Some(("127.0.0.1:3000", "api"))),
            ("https://a.example/", Some(("https://a.example:443", ""))),
            ("http://[::1]/", Some(("[::1]:80", ""))),
            ("unix:/run/a.sock|http://localhost/x", Some(("unix:/run/a.sock", "x"))),
            ("fcgi://127.0.0.1:9000/srv/www", Some(("fastcgi://127.0.0.1:9000", "/srv/www"))),
            ("unix:/run/php.sock|fcgi://localhost", Some(("fastcgi://unix:/run/php.sock", ""))),
            ("ftp://a/", None),
            ("http://$1/", None),
        ] {
            let expected = expected.map(|(server, path)| (server.to_owned(), path.to_owned()));
            assert_eq!(server(url), expected, "{url}");
        }
    }
}
