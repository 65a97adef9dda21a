//! Other servers: `reverse_proxy`, `php_fastcgi` and `forward_auth`.

use toml::{Table, Value};

use crate::caddy::fields::field;
use crate::caddy::placeholders::has_placeholder;
use crate::caddy::tree::Directive;
use crate::draft::Draft;
use crate::report::Outcome;
use crate::section::Section;
use crate::steps::effects::Effect;
use crate::times::time_with_unit;

/// The upstream of a directive while it is made.
#[derive(Debug, Default)]
struct Upstream {
    keys: Section,
    servers: Vec<String>,
    /// The weights of `weighted_round_robin`.
    weights: Vec<i64>,
    /// Whether all servers but the first are for its failures.
    first: bool,
    tls: bool,
    tls_keys: Table,
    h2c: bool,
    health: Table,
    headers: Table,
    request_headers: Table,
    lacking: Vec<String>,
    /// Why the route must be closed.
    closed: Option<String>,
}

/// Reads `reverse_proxy`. Returns the keys of the route, and why it must be closed.
pub(crate) fn reverse_proxy(
    directive: &Directive,
    arguments: &[String],
    draft: &mut Draft,
) -> (Section, Option<String>, Outcome) {
    let mut upstream = Upstream::default();
    arguments.iter().for_each(|address| upstream.server(address));
    directive.inner().iter().for_each(|inner| upstream.option(inner));
    let mut route = Section::default();
    if !upstream.headers.is_empty() {
        route.set("headers", upstream.headers.clone());
    }
    if !upstream.request_headers.is_empty() {
        route.set("request_headers", upstream.request_headers.clone());
    }
    if upstream.servers.is_empty() && upstream.closed.is_none() {
        upstream.closed = Some("there is no address of a server that Kirin can take".to_owned());
    }
    let closed = upstream.closed.take();
    let outcome = upstream.outcome(closed.as_deref());
    if closed.is_none() {
        let name = upstream.finish(&directive.place.to_string(), draft);
        route.set("try", vec![format!("proxy:{name}")]);
    }
    (route, closed, outcome)
}

/// Reads `php_fastcgi`. Returns the place.
pub(crate) fn php_fastcgi(
    directive: &Directive,
    arguments: &[String],
    root: Option<&str>,
    draft: &mut Draft,
) -> (Option<String>, Outcome) {
    let mut upstream = Upstream::default();
    arguments.iter().for_each(|address| upstream.server(address));
    let mut root = root.unwrap_or(".").to_owned();
    for inner in directive.inner() {
        match inner.name() {
            "root" => inner.argument(0).unwrap_or(".").clone_into(&mut root),
            "split" | "try_files" | "resolve_root_symlink" => {}
            "index" => upstream.keys.set("index", inner.argument(0).unwrap_or("index.php")),
            _ => upstream.option(inner),
        }
    }
    let servers = upstream.servers.iter().map(|server| format!("fastcgi://{server}"));
    upstream.servers = servers.collect();
    upstream.keys.set("root", root);
    if upstream.servers.is_empty() {
        return (None, upstream.outcome(Some("it has no address")));
    }
    let outcome = upstream.outcome(None);
    let name = upstream.finish(&directive.place.to_string(), draft);
    (Some(format!("proxy:{name}")), outcome)
}

/// Reads `forward_auth`.
pub(crate) fn forward_auth(
    directive: &Directive,
    arguments: &[String],
    draft: &mut Draft,
) -> (Vec<Effect>, Outcome) {
    let mut upstream = Upstream::default();
    arguments.iter().for_each(|address| upstream.server(address));
    let mut auth = Table::new();
    let mut fields: Vec<Value> = Vec::new();
    let mut lacking = Vec::new();
    for inner in directive.inner() {
        let in_block = inner.inner().iter().flat_map(|inner| &inner.words);
        match inner.name() {
            "uri" => drop(auth.insert("path".to_owned(), inner.argument(0).unwrap_or("/").into())),
            "copy_headers" => {
                for name in inner.arguments().iter().chain(in_block) {
                    let (name, other) = name.split_once('>').unwrap_or((name, ""));
                    fields.push(Value::from(name));
                    if !other.is_empty() {
                        lacking.push(format!("the name `{other}` of `{name}`"));
                    }
                }
            }
            _ => upstream.option(inner),
        }
    }
    let uri_good = auth.get("path").and_then(Value::as_str).is_none_or(|uri| !has_placeholder(uri));
    if upstream.servers.is_empty() || upstream.closed.is_some() || !uri_good {
        let text = "PROTECTION NOT CARRIED OVER: write `auth_request` (docs/routes.md). The \
                    route is closed";
        let closed = Effect::Closed("`forward_auth` could not be carried over".to_owned());
        return (vec![closed], Outcome::LeftOut(text.to_owned()));
    }
    lacking.append(&mut upstream.lacking);
    let name = upstream.finish(&directive.place.to_string(), draft);
    auth.insert("ask".to_owned(), format!("proxy:{name}").into());
    if !fields.is_empty() {
        auth.insert("fields".to_owned(), Value::Array(fields));
    }
    let mut keys = Section::default();
    keys.set("auth_request", auth);
    let outcome = if lacking.is_empty() {
        Outcome::Carried("Paths differ in upper and lower case.".to_owned())
    } else {
        Outcome::LeftOut(format!("carried without {}", lacking.join(", ")))
    };
    (vec![Effect::Login(keys)], outcome)
}

impl Upstream {
    /// Adds the address of a server.
    fn server(&mut self, address: &str) {
        let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
        match scheme {
            "https" => self.tls = true,
            "h2c" => self.h2c = true,
            _ => {}
        }
        let unix = address.strip_prefix("unix/").or(address.strip_prefix("unix+h2c/"));
        let server = match unix {
            Some(path) => format!("unix:{path}"),
            None if rest.starts_with(':') => format!("127.0.0.1{rest}"),
            None => rest.trim_end_matches('/').to_owned(),
        };
        let port = server.rsplit_once(':').map(|(_, port)| port);
        let is_range = unix.is_none() && port.is_some_and(|port| port.contains('-'));
        if has_placeholder(&server) || is_range || server.contains('/') && unix.is_none() {
            self.lacking.push(format!("the address `{address}`"));
            if self.servers.is_empty() {
                self.closed = Some("an address of a server has a placeholder or a path".to_owned());
            }
        } else {
            let has_port = port.is_some() && !server.ends_with(']');
            let default = if scheme == "https" { 443 } else { 80 };
            self.servers.push(if has_port { server } else { format!("{server}:{default}") });
        }
    }

    fn option(&mut self, inner: &Directive) {
        let first = inner.argument(0).unwrap_or_default();
        let mut lacks = false;
        match inner.name() {
            "to" => inner.arguments().iter().for_each(|address| self.server(address)),
            "lb_policy" => lacks = !self.policy(inner),
            "lb_try_duration" | "lb_try_interval" | "lb_retries" | "flush_interval"
            | "buffer_requests" | "buffer_responses" | "health_headers" | "trusted_proxies"
            | "request_buffers" | "response_buffers" | "stream_timeout" | "stream_close_delay" => {}
            "health_uri" => drop(self.health.insert("path".to_owned(), first.into())),
            "health_interval" | "health_timeout" => {
                let key = inner.name().trim_start_matches("health_");
                lacks = !duration(&mut self.health, key, first);
            }
            "health_status" => {
                let class = first.strip_suffix("xx").map(|class| format!("{class}00-{class}99"));
                self.health.insert("status".to_owned(), class.as_deref().unwrap_or(first).into());
            }
            "max_fails" => match first.parse::<i64>() {
                Ok(count) => self.keys.set("max_failures", count),
                Err(_) => lacks = true,
            },
            "fail_duration" => {
                let mut table = Table::new();
                lacks = !duration(&mut table, "ejection_time", first);
                table.into_iter().for_each(|(key, value)| self.keys.set(&key, value));
            }
            "header_up" => self.header_up(inner),
            "header_down" => field(inner.arguments(), &mut self.headers, &mut self.lacking),
            "transport" => self.transport(inner),
            "rewrite" | "method" => {
                self.closed = Some(format!("`{}` of a proxy", inner.name()));
                lacks = true;
            }
            _ => lacks = true,
        }
        if lacks {
            self.lacking.push(format!("`{}`", inner.line()));
        }
    }

    fn policy(&mut self, inner: &Directive) -> bool {
        let argument = inner.argument(1);
        let (balance, hash) = match inner.argument(0).unwrap_or_default() {
            "round_robin" | "random" => ("round-robin", None),
            "least_conn" => ("least-connections", None),
            "random_choose" => ("latency", None),
            "ip_hash" | "client_ip_hash" => ("hash", Some("address".to_owned())),
            "uri_hash" => ("hash", Some("target".to_owned())),
            "header" => ("hash", argument.map(|name| format!("header:{name}"))),
            "cookie" => {
                self.keys.set("sticky_cookie", argument.unwrap_or("lb"));
                return true;
            }
            "weighted_round_robin" => {
                let weights = inner.arguments().iter().skip(1).map(|weight| weight.parse());
                self.weights = weights.collect::<Result<_, _>>().unwrap_or_default();
                return !self.weights.is_empty();
            }
            "first" => {
                self.first = true;
                return true;
            }
            _ => return false,
        };
        self.keys.set("balance", balance);
        if let Some(hash) = hash {
            self.keys.set("hash_key", hash);
        }
        true
    }

    fn header_up(&mut self, inner: &Directive) {
        let name = inner.argument(0).unwrap_or_default();
        let value = inner.argument(1).unwrap_or_default();
        let plain = name.trim_start_matches(['-', '+', '>']).to_ascii_lowercase();
        let forwarded = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"];
        if plain == "host" {
            match value {
                "{upstream_hostport}" | "{http.reverse_proxy.upstream.hostport}" => {
                    self.keys.set("host", "upstream");
                }
                "{host}" | "{http.request.host}" | "{hostport}" | "{http.request.hostport}" => {}
                name if !has_placeholder(name) && !name.is_empty() => self.keys.set("host", name),
                _ => self.lacking.push(format!("`{}`", inner.line())),
            }
        } else if forwarded.contains(&plain.as_str()) {
            // Kirin writes these fields itself.
        } else {
            field(inner.arguments(), &mut self.request_headers, &mut self.lacking);
        }
    }

    fn transport(&mut self, inner: &Directive) {
        for option in inner.inner() {
            let first = option.argument(0).unwrap_or_default();
            let mut times = Table::new();
            let known = match option.name() {
                "tls" => {
                    self.tls = true;
                    true
                }
                "tls_insecure_skip_verify" => {
                    self.tls = true;
                    self.tls_keys.insert("verify".to_owned(), Value::from(false));
                    true
                }
                "tls_server_name" => {
                    self.tls_keys.insert("server_name".to_owned(), Value::from(first));
                    true
                }
                "tls_trusted_ca_certs" => {
                    self.tls_keys.insert("ca".to_owned(), Value::from(first));
                    true
                }
                "versions" => {
                    self.h2c = option.arguments().iter().any(|version| version == "h2c");
                    true
                }
                "dial_timeout" => duration(&mut times, "connect_timeout", first),
                "response_header_timeout" => duration(&mut times, "first_byte_timeout", first),
                "read_timeout" => duration(&mut times, "idle_timeout", first),
                "write_timeout" => duration(&mut times, "send_timeout", first),
                "keepalive" => duration(&mut times, "keep_time", first),
                "root" => {
                    self.keys.set("root", first);
                    true
                }
                "split" | "compression" | "max_conns_per_host" | "read_buffer" | "write_buffer" => {
                    true
                }
                _ => false,
            };
            if !known {
                self.lacking.push(format!("`{}`", option.line()));
            }
            times.into_iter().for_each(|(key, value)| self.keys.set(&key, value));
        }
        if inner.argument(0) == Some("fastcgi") {
            let servers = self.servers.iter().map(|server| format!("fastcgi://{server}"));
            self.servers = servers.collect();
            if self.keys.get("root").is_none() {
                self.closed = Some("`transport fastcgi` has no `root`".to_owned());
            }
        }
    }

    fn outcome(&self, closed: Option<&str>) -> Outcome {
        match closed {
            Some(reason) => Outcome::LeftOut(format!("{reason}. The route is closed")),
            None if self.lacking.is_empty() => Outcome::Carried(String::new()),
            None => Outcome::LeftOut(format!("carried without {}", self.lacking.join(", "))),
        }
    }

    /// Adds the upstream. Returns its name.
    fn finish(mut self, place: &str, draft: &mut Draft) -> String {
        let scheme = match (self.tls, self.h2c) {
            (true, _) => "https://",
            (_, true) => "h2c://",
            _ => "",
        };
        let server = |(number, server): (usize, &String)| {
            let address = format!("{scheme}{server}");
            let mut table =
                Table::from_iter([("address".to_owned(), Value::from(address.as_str()))]);
            if let Some(weight) = self.weights.get(number).filter(|weight| **weight > 0) {
                table.insert("weight".to_owned(), Value::from(*weight));
            }
            if self.first && number > 0 {
                table.insert("backup".to_owned(), Value::from(true));
            }
            if table.len() == 1 { Value::from(address) } else { Value::Table(table) }
        };
        let servers: Vec<_> = self.servers.iter().enumerate().map(server).collect();
        let wanted = self.servers.first().cloned().unwrap_or_default();
        let wanted = wanted.rsplit("//").next().unwrap_or_default();
        let wanted = wanted.trim_start_matches("unix:").trim_start_matches('/').to_owned();
        let mut keys = Section::default();
        keys.comment(place);
        keys.set("servers", servers);
        keys.keys.append(&mut self.keys.keys);
        if self.health.contains_key("path") {
            keys.set("health", self.health);
        }
        if self.tls && !self.tls_keys.is_empty() {
            keys.set("tls", self.tls_keys);
        }
        draft.upstreams.add(&wanted, keys)
    }
}

/// Sets a time. Returns whether it is one that Kirin can take.
fn duration(table: &mut Table, key: &str, text: &str) -> bool {
    let time = time_with_unit(text);
    let good = time.is_some();
    table.extend(time.map(|time| (key.to_owned(), time)));
    good
}
