//! `[[upstream]]`: other servers, and how Kirin uses them.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use kirin_client_tls::ClientTlsSettings;
use kirin_http::RequestPath;
use kirin_proxy::{
    Balancing, ClientTls, ForwardedPolicy, HealthConfig, HostPolicy, Method, NamedFilesConfig,
    PoolLimits, QueueLimits, ServerAddress, ServerConfig, ServerScheme, Timeouts, UpstreamConfig,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::balancing::check_balancing;
use crate::default::{defaults, seconds, unwritten_number, unwritten_seconds, whole_seconds, yes};
use crate::fastcgi::check_fastcgi;
use crate::health_check::{HealthSection, check_health};
use crate::name::check_name;
use crate::source::{ConfigError, ConfigSource, ErrorCollector};
use crate::tls::CertificateSection;
use crate::units::{Number, Seconds};
use crate::upstream_server::{ServerEntry, check_server};
use crate::word::{ConfigWords, Word};
use crate::written::Written;

/// The most idle connections that may be kept.
const MAX_IDLE: u64 = 65_536;

/// The most requests that may wait.
const MAX_QUEUE: u64 = 65_536;

/// Other servers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamSection {
    /// The name that routes use: `proxy:NAME`.
    pub name: Written<String>,
    /// Servers that answer the same requests: `HOST:PORT`, `unix:PATH`, `http://HOST`,
    /// `https://HOST` (HTTP/2 if they accept it), `h2c://HOST:PORT` for HTTP/2 without TLS; or
    /// `fastcgi://unix:PATH`, `fastcgi://HOST:PORT`, and the same with `scgi` or `uwsgi`. A table
    /// says more about a server, such as `{ address = "10.0.0.2:80", weight = 3, backup = true,
    /// max_in_flight = 8 }`. A name stands for all of its addresses. A server with `weight = 3`
    /// (default 1) gets three times as many requests. A `backup` gets none while another server can
    /// be asked, or the queue has room.
    #[schemars(with = "Vec<String>")]
    pub servers: Vec<Written<ServerEntry>>,
    /// Which server gets a request: `"round-robin"`; `"least-connections"`, the server with the
    /// fewest requests; `"latency"`, of two random servers the one that is expected to answer
    /// earlier; or `"hash"`, by `hash_key`.
    #[serde(default)]
    pub balance: Written<Word<Method>>,
    /// For `balance = "hash"`: the value that leads to the same server again. It is `target` (path
    /// and query), `address`, `header:NAME` or `cookie:NAME`. Servers take turns with requests that
    /// do not have it.
    pub hash_key: Option<Written<String>>,
    /// A cookie that Kirin gives visitors. It brings them back to the server that had them first,
    /// while that server is there. Default: none.
    pub sticky_cookie: Option<Written<String>>,
    /// The number of requests in a row without a response after which a server gets none for
    /// `ejection_time`; 0 for never. Every status counts as a response. When all servers have
    /// failed, Kirin asks all of them.
    #[serde(default = "max_failures")]
    pub max_failures: u32,
    /// How long a failed server gets no requests. Then one request tries it. If that fails, the
    /// server gets none for twice as long, up to 16 times.
    #[serde(default = "ejection_time")]
    pub ejection_time: Seconds,
    /// The most requests that one server handles at the same time, counted over all event loops. An
    /// upgraded connection (WebSocket) counts until it closes. A server can have a limit of its
    /// own: `{ address = "10.0.0.2:80", max_in_flight = 8 }`. Default: no limit.
    pub max_in_flight: Option<NonZeroU32>,
    /// The most requests that wait when all servers that could take them are at `max_in_flight`. A
    /// further one is answered 503. With `0` none waits. Clients take turns: a client with many
    /// requests in the queue delays another one by one request.
    #[serde(default = "unwritten_number::<1024, 0, MAX_QUEUE>")]
    pub queue: Written<Number<0, MAX_QUEUE>>,
    /// How long a request may wait in the queue. Then it is answered 503.
    #[serde(default = "unwritten_seconds::<30>")]
    pub queue_wait: Written<Seconds>,
    /// How long a recovered server takes to return from 1/16 of its weight to all of it. Default:
    /// it gets all of it at once.
    pub slow_start: Option<Seconds>,
    /// The percentage of requests that Kirin may retry on a second or third server, besides 10 a
    /// second. Kirin retries a request that no server has seen. If the server ended the connection,
    /// Kirin also retries an idempotent request (GET, HEAD, PUT, DELETE, OPTIONS, TRACE). It
    /// retries a request with a body only if it had read the body completely (`request_buffering`).
    /// With 0, only those 10 a second are retried.
    #[serde(default = "retry_percent")]
    pub retry_percent: Written<Number<0, 100>>,
    /// A check of each server's health at intervals, such as `{ path = "/health" }`. For servers
    /// that do not speak HTTP/1, Kirin only connects: `{}`. Default: no checks.
    pub health: Option<Written<HealthSection>>,
    /// The `Host` that servers get: `"client"`, the one that the client asked for; `"upstream"`,
    /// the one in `servers`; or a name.
    #[serde(default)]
    pub host: Written<HostText>,
    /// The fields that name the client to servers: `"X-Forwarded-For"` (with `-Proto` and `-Host`),
    /// `"Forwarded"`, `"both"` or `"none"`. Kirin removes what a client writes there itself. If the
    /// listener has the client in `trusted`, Kirin appends to it instead.
    #[serde(default)]
    pub forwarded: Written<Word<ForwardedPolicy>>,
    /// The name of this proxy in `Via`, in requests and responses. `""` removes the field: some
    /// servers do not compress for clients that send it.
    #[serde(default)]
    pub via: Written<ViaName>,
    /// How long connecting may take, with the TLS handshake.
    #[serde(default = "connect_timeout")]
    pub connect_timeout: Seconds,
    /// How long a server may read nothing while Kirin sends it a request.
    #[serde(default = "send_timeout")]
    pub send_timeout: Seconds,
    /// How long the head of a response may take after the end of the request. Then the client gets
    /// 504.
    #[serde(default = "first_byte_timeout")]
    pub first_byte_timeout: Seconds,
    /// How long a server may be silent inside a response. Then Kirin cuts the client's connection.
    /// WebSockets have no such limit.
    #[serde(default = "idle_timeout")]
    pub idle_timeout: Seconds,
    /// The most idle connections that Kirin keeps, for each server and event loop; 0 for none.
    /// Default: 64, but 0 for FastCGI, because a process of php-fpm serves nobody else while a
    /// connection to it is open.
    pub keep_connections: Option<Written<Number<0, MAX_IDLE>>>,
    /// How long Kirin keeps an idle connection. If the server names a shorter time in `Keep-Alive`,
    /// Kirin keeps it for a second less than that. The time should be shorter than the server's
    /// own.
    #[serde(default = "keep_time")]
    pub keep_time: Written<Seconds>,
    /// The number of requests after which Kirin closes a connection; 0 for never.
    #[serde(default)]
    pub max_requests: Written<u64>,
    /// The age at which Kirin closes a connection that has no request. Default: never.
    pub max_age: Option<Written<Seconds>>,
    /// How often Kirin looks names up again. If that fails, the addresses stay.
    #[serde(default = "seconds::<30>")]
    pub resolve: Seconds,
    /// For `https://` servers, such as `{ ca = "internal-ca.pem" }`. Default: the authorities of
    /// the system verify certificates.
    pub tls: Option<Written<UpstreamTlsSection>>,
    /// For `fastcgi://` servers: the directory of their scripts. It is `DOCUMENT_ROOT` and the
    /// start of `SCRIPT_FILENAME`. If it is not on this machine, write an absolute path of the
    /// server.
    pub root: Option<Written<String>>,
    /// The directories whose files servers may name in `X-Sendfile`, for Kirin to send
    /// ([proxy.md](proxy.md#files-that-servers-name)). A response with a file that is not below one
    /// of them is answered 500. Default: none, and a response that names a file is answered 502.
    #[serde(default)]
    pub sendfile: Vec<Written<String>>,
    /// The same for `X-Accel-Redirect`, which has a path of the site: paths, and the directory of
    /// each, such as `{ "/protected" = "/srv/files" }`. Clients cannot ask for these paths.
    #[serde(default)]
    pub accel_redirect: BTreeMap<Written<String>, Written<String>>,
    /// For `fastcgi://` servers: the script of a directory. The one of the root serves all paths
    /// that name no script. Default: `index.php`.
    pub index: Option<Written<String>>,
    /// For `fastcgi://` servers: the extension of scripts. Default: `.php`.
    pub extension: Option<Written<String>>,
    /// For `fastcgi://` servers: whether a script also runs for paths behind its name. `/a.php/b`
    /// is then `/a.php` with the `PATH_INFO` `/b`. With `false` it goes to the index of the root,
    /// and a route for `= /a.php` has all requests that run this script, if it is no index.
    /// Default: `true`.
    #[schemars(with = "Option<bool>")]
    pub path_info: Option<Written<bool>>,
}

impl UpstreamSection {
    /// Returns whether a server takes only so many requests at the same time.
    pub fn is_limited(&self) -> bool {
        let has_limit = |server: &Written<ServerEntry>| server.max_in_flight.is_some();
        self.max_in_flight.is_some() || self.servers.iter().any(has_limit)
    }
}

defaults! {
    max_failures: u32 = Balancing::default().max_failures;
    ejection_time: Seconds = whole_seconds(Balancing::default().ejection_time);
    retry_percent: Written<Number<0, 100>> =
        Written::default_value(Number::new(Balancing::default().retry_percent.into()));
    connect_timeout: Seconds = whole_seconds(Timeouts::default().connect);
    send_timeout: Seconds = whole_seconds(Timeouts::default().send);
    first_byte_timeout: Seconds = whole_seconds(Timeouts::default().first_byte);
    idle_timeout: Seconds = whole_seconds(Timeouts::default().idle);
    keep_time: Written<Seconds> =
        Written::default_value(whole_seconds(PoolLimits::default().idle_time));
}

/// TLS to servers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamTlsSection {
    /// The certificates, in PEM, of the authorities that Kirin trusts. Default: those of the
    /// system.
    pub ca: Option<String>,
    /// The name that certificates must have, and that Kirin asks for (SNI). Default: the name of
    /// the server.
    pub server_name: Option<String>,
    /// Whether Kirin verifies certificates. Without that, anybody between Kirin and the server can
    /// read and change everything.
    #[serde(default = "yes")]
    pub verify: bool,
    /// The certificate that Kirin shows, and its key: `{ chain = "client.pem", key = "client.key"
    /// }`. Default: none.
    pub certificate: Option<CertificateSection>,
}

/// The `host` key, as it is written.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(transparent)]
#[schemars(inline)]
pub struct HostText(String);

impl Default for HostText {
    fn default() -> Self {
        Self("client".into())
    }
}

/// The `via` key, as it is written.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ViaName(String);

impl Default for ViaName {
    fn default() -> Self {
        Self("kirin".into())
    }
}

impl ConfigWords for Method {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("round-robin", Self::RoundRobin),
        ("least-connections", Self::LeastConnections),
        ("latency", Self::PeakEwma),
        ("hash", Self::Hash),
    ];
}

impl ConfigWords for ForwardedPolicy {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("X-Forwarded-For", Self::X),
        ("Forwarded", Self::Forwarded),
        ("both", Self::Both),
        ("none", Self::Nothing),
    ];
}

/// Checks `section` and reads the files that it names.
pub fn check_upstream(
    section: &UpstreamSection,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<UpstreamConfig> {
    let name = section.name.as_str();
    let named = errors.keep(check_name("upstream", &section.name, source));
    let servers = section.servers.iter();
    let servers = servers.map(|entry| check_server(entry, section.max_in_flight, source));
    let servers: Vec<ServerConfig> = errors.keep(servers.collect::<Result<_, ConfigError>>())?;
    if servers.is_empty() {
        let message = format!("upstream `{name}` needs `servers`, such as [\"127.0.0.1:3000\"]");
        errors.push(source.error(section.name.span(), message));
        return None;
    }
    let fastcgi = errors.keep(check_fastcgi(section, &servers, source));
    let queue = errors.keep(check_queue(section, &servers, source));
    let health = errors.keep(health(section, &servers, source));
    let balancing = errors.keep(check_balancing(section, source));
    let host = errors.keep(host(&section.host, source));
    let via = errors.keep(via(&section.via, source));
    let uses_tls = servers.iter().any(|server| server.address.scheme == ServerScheme::Https);
    let tls = errors.keep(tls(section, uses_tls, source));
    let named_files = errors.keep(named_files(section, source));
    let (fastcgi, _) = (fastcgi?, named?);
    let idle = match &section.keep_connections {
        Some(idle) => idle.length(),
        None if fastcgi.is_some() => 0,
        None => PoolLimits::default().idle,
    };
    Some(UpstreamConfig {
        name: name.to_owned(),
        health: health?,
        servers,
        balancing: balancing?,
        queue: queue?,
        timeouts: Timeouts {
            connect: section.connect_timeout.into(),
            send: section.send_timeout.into(),
            first_byte: section.first_byte_timeout.into(),
            idle: section.idle_timeout.into(),
        },
        pool: PoolLimits {
            idle,
            idle_time: (*section.keep_time).into(),
            max_requests: *section.max_requests,
            max_age: section.max_age.as_deref().map(|age| (*age).into()),
        },
        host: host?,
        forwarded: section.forwarded.0,
        via: via?,
        tls: tls?,
        fastcgi,
        named_files: named_files?,
        resolve: section.resolve.into(),
        spool_directory: std::env::temp_dir(),
    })
}

/// Checks the directories of files that servers may name.
fn named_files(
    section: &UpstreamSection,
    source: &ConfigSource,
) -> Result<NamedFilesConfig, ConfigError> {
    let roots = section.sendfile.iter().map(|root| source.existing_directory(root));
    let location = |(path, directory): (&Written<String>, &Written<String>)| {
        let decoded = path.trim_end_matches('/');
        let is_path = path.starts_with('/') && RequestPath::parse(path).is_ok();
        if !is_path || path.contains(['%', '?', '*', '{']) || path.contains("//") {
            let message = format!(
                "`accel_redirect` has the path `{}`: it must be a path, written decoded, such as \
                 `/protected`",
                path.as_str()
            );
            return Err(source.error(path.span(), message));
        }
        Ok((format!("{decoded}/"), source.existing_directory(directory)?))
    };
    let mut locations: Vec<_> =
        section.accel_redirect.iter().map(location).collect::<Result<_, _>>()?;
    // The longest path counts.
    locations.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    Ok(NamedFilesConfig { roots: roots.collect::<Result<_, _>>()?, locations })
}

fn health(
    section: &UpstreamSection,
    servers: &[ServerConfig],
    source: &ConfigSource,
) -> Result<Option<HealthConfig>, ConfigError> {
    let is_http = servers.iter().any(|server| !server.address.scheme.is_cgi());
    section.health.as_ref().map(|health| check_health(health, is_http, source)).transpose()
}

/// Checks the keys of the queue, which would be ignored if no server has `max_in_flight`.
fn check_queue(
    section: &UpstreamSection,
    servers: &[ServerConfig],
    source: &ConfigSource,
) -> Result<QueueLimits, ConfigError> {
    if servers.iter().all(|server| server.max_in_flight.is_none()) {
        let keys = [
            ("queue", section.queue.is_written(), section.queue.span()),
            ("queue_wait", section.queue_wait.is_written(), section.queue_wait.span()),
        ];
        if let Some((key, _, span)) = keys.into_iter().find(|(_, is_written, _)| *is_written) {
            let message =
                format!("`{key}` is for servers with `max_in_flight`: without, no request waits");
            return Err(source.error(span, message));
        }
    }
    Ok(QueueLimits { length: section.queue.length(), wait: (*section.queue_wait).into() })
}

fn host(text: &Written<HostText>, source: &ConfigSource) -> Result<HostPolicy, ConfigError> {
    host_policy(&text.0).map_err(|message| source.error(text.span(), message))
}

/// Returns the `Host` that `text` stands for, or an error message.
pub(super) fn host_policy(text: &str) -> Result<HostPolicy, String> {
    match text {
        "client" => Ok(HostPolicy::Client),
        "upstream" => Ok(HostPolicy::Upstream),
        // A name is allowed here if Kirin could connect to it.
        name if format!("http://{name}").parse::<ServerAddress>().is_ok() => {
            Ok(HostPolicy::Name(name.into()))
        }
        name => Err(format!("`host` is `{name}`: allowed are \"client\", \"upstream\" and a name")),
    }
}

/// Returns the name. RFC 9110 section 7.6.3 allows every token; Kirin allows only bytes that are
/// unreserved in addresses too (RFC 3986 section 2.3).
fn via(text: &Written<ViaName>, source: &ConfigSource) -> Result<Option<String>, ConfigError> {
    let name = &text.0;
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if !name.bytes().all(is_unreserved) {
        let message = format!("`via` is `{name}`: allowed are letters, digits and `-._~`");
        return Err(source.error(text.span(), message));
    }
    Ok((!name.is_empty()).then(|| name.clone()))
}

fn tls(
    section: &UpstreamSection,
    is_used: bool,
    source: &ConfigSource,
) -> Result<ClientTls, ConfigError> {
    let (settings, span) = match &section.tls {
        Some(tls) if !is_used => {
            let message = "`tls` of an upstream without an https:// server";
            return Err(source.error(tls.span(), message));
        }
        None if !is_used => return Ok(ClientTls::default()),
        Some(tls) => {
            let settings = ClientTlsSettings {
                ca: tls.ca.as_ref().map(|file| source.path(file)),
                server_name: tls.server_name.clone(),
                verify: tls.verify,
                certificate: tls.certificate.as_ref().map(|files| files.paths(source)),
            };
            (settings, tls.span())
        }
        None => {
            let settings = ClientTlsSettings::default();
            (settings, section.name.span())
        }
    };
    ClientTls::load(&settings).map_err(|error| source.error(span, format!("`tls`: {error}")))
}

#[cfg(test)]
#[path = "upstream_tests.rs"]
mod tests;
