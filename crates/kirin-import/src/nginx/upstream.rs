//! `[[upstream]]`: the servers behind `proxy_pass` and its relatives.

use toml::{Table, Value};

use super::context::Context;
use super::directive::Directive;
use super::scope::Scope;
use super::units::text;
use super::upstream_block::add_block;
use crate::section::Section;
use crate::times::{time, time_of};

/// How requests reach servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP, perhaps with TLS.
    Http,
    /// HTTP/2 for gRPC.
    Grpc,
    /// FastCGI.
    FastCgi,
    /// SCGI.
    Scgi,
    /// uwsgi.
    Uwsgi,
}

impl Protocol {
    /// Returns how the names of the directives begin.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Http => "proxy",
            Self::Grpc => "grpc",
            Self::FastCgi => "fastcgi",
            Self::Scgi => "scgi",
            Self::Uwsgi => "uwsgi",
        }
    }

    /// Returns whether requests are variables of CGI.
    pub fn is_cgi(self) -> bool {
        matches!(self, Self::FastCgi | Self::Scgi | Self::Uwsgi)
    }

    /// Returns what the address of a server begins with.
    fn scheme(self, is_tls: bool) -> &'static str {
        match (self, is_tls) {
            (Self::Http, false) => "",
            (Self::Http | Self::Grpc, true) => "https://",
            (Self::Grpc, false) => "h2c://",
            (Self::FastCgi, _) => "fastcgi://",
            (Self::Scgi, _) => "scgi://",
            (Self::Uwsgi, _) => "uwsgi://",
        }
    }
}

/// The servers that a directive names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// How requests reach them.
    pub protocol: Protocol,
    /// Whether they speak TLS.
    pub is_tls: bool,
    /// The name of a block `upstream`, or an address.
    pub authority: String,
    /// The path behind the address, with its slash.
    pub path: Option<String>,
}

impl Target {
    /// Reads an address of `proxy_pass` and its relatives.
    pub fn read(protocol: Protocol, address: &str) -> Option<Self> {
        let (is_tls, rest) = match address.split_once("://") {
            Some(("http" | "grpc" | "uwsgi" | "fastcgi" | "scgi", rest)) => (false, rest),
            Some(("https" | "grpcs" | "suwsgi", rest)) => (true, rest),
            Some(_) => return None,
            None if matches!(protocol, Protocol::Http) => return None,
            None => (false, address),
        };
        if let Some(socket) = rest.strip_prefix("unix:") {
            // The path of the request stands behind a colon.
            let (socket, path) = match socket.split_once(':') {
                Some((socket, path)) => (socket, Some(path.to_owned())),
                None => (socket, None),
            };
            let authority = format!("unix:{socket}");
            let path = path.filter(|path| !path.is_empty());
            return Some(Self { protocol, is_tls, authority, path });
        }
        let at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(at)?;
        let path = (!path.is_empty()).then(|| path.to_owned());
        (!authority.is_empty() && !authority.contains(['$', '{'])).then(|| Self {
            protocol,
            is_tls,
            authority: authority.to_owned(),
            path,
        })
    }

    /// Returns the address of a server as Kirin writes it. nginx takes a port that is not there
    /// as `port`.
    pub fn server_address(&self, address: &str, port: u16) -> Option<String> {
        let scheme = self.protocol.scheme(self.is_tls);
        if address.starts_with("unix:") {
            return (!self.is_tls).then(|| format!("{scheme}{address}"));
        }
        let has_port = match address.rsplit_once(':') {
            Some((_, port)) if !port.ends_with(']') => {
                port.parse::<u16>().ok().filter(|port| *port > 0)?;
                true
            }
            _ => false,
        };
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        address.chars().all(is_host).then(|| match has_port {
            true => format!("{scheme}{address}"),
            false => format!("{scheme}{address}:{port}"),
        })
    }

    /// Returns a name for the upstream that people can read.
    fn name(&self) -> String {
        if let Some(path) = self.authority.strip_prefix("unix:") {
            let file = path.rsplit('/').next().unwrap_or(path);
            let stem = file.split('.').next().unwrap_or(file);
            let is_php = file.starts_with("php");
            return if is_php { "php".into() } else { stem.to_owned() };
        }
        let (host, port) = self.authority.rsplit_once(':').unwrap_or((&self.authority, ""));
        let kind = if self.protocol == Protocol::FastCgi { "php" } else { "local" };
        match host {
            "127.0.0.1" | "localhost" | "[::1]" if self.protocol == Protocol::FastCgi => {
                kind.into()
            }
            "127.0.0.1" | "localhost" | "[::1]" => format!("{kind}-{port}"),
            host if host.parse::<std::net::IpAddr>().is_ok() => format!("{host}-{port}"),
            host => host.split('.').next().unwrap_or(host).to_owned(),
        }
    }
}

/// Adds the upstream of `target` with the settings that hold in `scope`. `more` are further keys.
/// Returns its name. An error says why there can be none.
pub fn add_upstream<'a>(
    target: &Target,
    scope: &Scope<'a>,
    context: &Context<'a>,
    more: Vec<(String, Value)>,
) -> Result<String, String> {
    let mut section = Section::new("[[upstream]]");
    let block = context.globals.named_upstream(&target.authority);
    let name = match block {
        Some(block) => {
            section.comment(block.at());
            add_block(&mut section, target, block, context)?;
            target.authority.clone()
        }
        None => {
            let port = if target.is_tls { 443 } else { 80 };
            let address = target
                .server_address(&target.authority, port)
                .ok_or_else(|| format!("Kirin cannot have the server `{}`", target.authority))?;
            section.set("servers", Value::Array(vec![text(address)]));
            target.name()
        }
    };
    let host = host_key(target, block.is_some(), scope, context);
    if let Some(host) = host {
        section.set("host", text(host));
    }
    add_timeouts(&mut section, target.protocol, scope, context);
    add_retries(&mut section, target.protocol, scope, context);
    add_tls(&mut section, target, scope, context);
    for (key, value) in more {
        section.set(&key, value);
    }
    Ok(context.output.upstream(&name, section))
}

/// Returns the value of `host`. Returns `None` if servers get that of the client.
fn host_key<'a>(
    target: &Target,
    is_block: bool,
    scope: &Scope<'a>,
    context: &Context<'a>,
) -> Option<String> {
    if target.protocol.is_cgi() {
        return None;
    }
    let of_target = || match is_block {
        // nginx sends the name of the block.
        true => target.authority.replace('_', "-"),
        false => "upstream".to_owned(),
    };
    let name = format!("{}_set_header", target.protocol.prefix());
    let set = scope.list(&name).iter().find(|set| set.arg(0).eq_ignore_ascii_case("host"));
    let Some(set) = set else { return Some(of_target()) };
    match set.arg(1) {
        "$host"
        | "$http_host"
        | "$host:$server_port"
        | "$http_host:$server_port"
        | "$host:$proxy_port" => {
            context.carried(set);
            None
        }
        "$proxy_host" | "$proxy_host:$proxy_port" => {
            context.carried(set);
            Some(of_target())
        }
        value => {
            let constant = context.variables(scope).constant(value);
            match constant.filter(|host| is_host(host)) {
                Some(host) => {
                    context.carried(set);
                    Some(host)
                }
                None => {
                    context.left_out(set, "servers get the client's `Host`, or the name in `host`");
                    None
                }
            }
        }
    }
}

fn is_host(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._:[]".contains(c))
}

fn add_timeouts<'a>(
    section: &mut Section,
    protocol: Protocol,
    scope: &Scope<'a>,
    context: &Context<'a>,
) {
    let prefix = protocol.prefix();
    let keys: [(&str, &[&str]); 3] = [
        ("connect_timeout", &["connect_timeout"]),
        ("send_timeout", &["send_timeout"]),
        ("read_timeout", &["first_byte_timeout", "idle_timeout"]),
    ];
    for (name, keys) in keys {
        let Some(directive) = scope.one(&format!("{prefix}_{name}")) else { continue };
        let Some(value) = time_of(directive.arg(0)) else { continue };
        for key in keys {
            section.set(key, value.clone());
        }
        context.carried(directive);
    }
}

fn add_retries<'a>(
    section: &mut Section,
    protocol: Protocol,
    scope: &Scope<'a>,
    context: &Context<'a>,
) {
    let Some(directive) = scope.one(&format!("{}_next_upstream", protocol.prefix())) else {
        return;
    };
    if directive.is_off() {
        section.set("retry_percent", 0);
        context.carried_but(directive, "10 retries a second remain");
        return;
    }
    section.set("retry_percent", 20);
    let by_status =
        directive.args.iter().any(|arg| arg.starts_with("http_") || arg == "non_idempotent");
    match by_status {
        true => context.left_out(
            directive,
            "Kirin retries requests that no server has seen or that may be repeated, but never by \
             the status",
        ),
        false => context.carried(directive),
    }
}

fn add_tls<'a>(section: &mut Section, target: &Target, scope: &Scope<'a>, context: &Context<'a>) {
    if !target.is_tls {
        return;
    }
    let prefix = target.protocol.prefix();
    let one = |name: &str| scope.one(&format!("{prefix}_ssl_{name}"));
    let mut table = Table::new();
    let is_verified = one("verify").is_some_and(Directive::is_on);
    if !is_verified {
        table.insert("verify".into(), Value::Boolean(false));
        section.comment("nginx does not verify the certificate. Leave `tls` out to do it.");
    }
    if let Some(directive) = one("trusted_certificate").filter(|_| is_verified) {
        let path = context.globals.configuration_path(directive.arg(0));
        table.insert("ca".into(), text(path));
        context.carried(directive);
    }
    if let Some(directive) = one("name") {
        match context.variables(scope).constant(directive.arg(0)) {
            Some(name) => {
                table.insert("server_name".into(), text(name));
                context.carried(directive);
            }
            None => context.left_out(directive, "`server_name` has no variables"),
        }
    }
    if let (Some(chain), Some(key)) = (one("certificate"), one("certificate_key")) {
        let path =
            |directive: &Directive| text(context.globals.configuration_path(directive.arg(0)));
        let pair = [("chain".to_owned(), path(chain)), ("key".to_owned(), path(key))];
        table.insert("certificate".into(), Value::Table(Table::from_iter(pair)));
        context.carried(chain);
        context.carried(key);
    }
    if let Some(directive) = one("verify") {
        context.carried(directive);
    }
    if !table.is_empty() {
        section.set("tls", table);
    }
}

/// Returns the time of an option such as `fail_timeout=10s`.
pub fn time_option(directive: &Directive, key: &str) -> Option<Value> {
    directive.option(key).and_then(crate::times::seconds).map(time)
}
