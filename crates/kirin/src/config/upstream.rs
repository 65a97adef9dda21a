//! `[[upstream]]`: what a user writes, and what it means.

use std::num::NonZeroU32;
use std::ops::Range;

use kirin_proxy::{
    ClientTls, ClientTlsSettings, ForwardedPolicy, HealthConfig, HostPolicy, PoolLimits,
    QueueLimits, Scheme, ServerAddress, ServerConfig, Timeouts, UpstreamConfig as Settings,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_spanned::Spanned;

use super::balancing::balancing;
use super::check::absolute;
use super::fastcgi::fastcgi;
use super::health_check::{UpstreamHealthConfig, check_health};
use super::load::{ConfigError, Source};
use super::server_entry::{ServerEntry, server};
use super::units::Seconds;
use super::{default, tls::CertificateConfig};

/// Idle connections at most that may be kept.
const MAX_IDLE: usize = 65_536;

/// Requests at most that may wait.
const MAX_QUEUE: usize = 65_536;

/// Other servers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    /// The name that routes use: `proxy:NAME`.
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// Servers that answer the same requests: `HOST:PORT`, `unix:PATH`, `http://HOST`,
    /// `https://HOST` (HTTP/2 if they take it), `h2c://HOST:PORT` for HTTP/2 without TLS; or
    /// `fastcgi://unix:PATH`, `fastcgi://HOST:PORT`, and the same with `scgi` or `uwsgi`; or one
    /// with more to say, such as `{ address = "10.0.0.2:80", weight = 3, backup = true,
    /// max_in_flight = 8 }`. A name stands for all of its addresses. One with `weight = 3` (default
    /// 1) gets three times as much, a `backup` nothing as long as another can be asked.
    #[schemars(with = "Vec<String>")]
    pub servers: Vec<Spanned<ServerEntry>>,
    /// Which of them gets a request: `"round-robin"`; `"least-connections"`, who is at the fewest
    /// requests; `"latency"`, of two by lot the one that is expected to answer earlier; or
    /// `"hash"`, by `hash_key`.
    #[serde(default = "default::balance")]
    #[schemars(with = "String", default = "default::balance_plain")]
    pub balance: Spanned<String>,
    /// For `balance = "hash"`, what leads to the same server again: `target` (path and query),
    /// `address`, `header:NAME` or `cookie:NAME`. Requests without it are sent in turn.
    #[schemars(with = "Option<String>")]
    pub hash_key: Option<Spanned<String>>,
    /// A cookie that Kirin gives visitors, to bring them back to the server that had them first, as
    /// long as it is there. Default: none.
    #[schemars(with = "Option<String>")]
    pub sticky_cookie: Option<Spanned<String>>,
    /// Requests in a row without a response after which a server gets none for `ejection_time`; 0
    /// for never. A response is one whatever its status. When all have failed, all are asked.
    #[serde(default = "default::max_failures")]
    pub max_failures: u32,
    /// How long a server is left alone. Then one request tries it; if that fails, it is for twice
    /// as long, up to 16 times.
    #[serde(default = "default::ejection_time")]
    #[schemars(with = "String", default = "default::ejection_time")]
    pub ejection_time: Seconds,
    /// Requests that each server may be at at the same time, of all event loops together; an
    /// upgraded connection (WebSocket) is one until it closes. For one server alone: `{ address =
    /// "10.0.0.2:80", max_in_flight = 8 }`. Default: any number.
    pub max_in_flight: Option<NonZeroU32>,
    /// Requests that may wait when all servers that could take them are at `max_in_flight`; one
    /// more is answered 503. `0`: none waits. Clients take turns: one that has many requests in the
    /// queue delays another by one of them.
    #[serde(default = "default::upstream_queue")]
    #[schemars(with = "usize", default = "default::queue")]
    pub queue: Spanned<usize>,
    /// How long a request may wait so before it is answered 503.
    #[serde(default = "default::upstream_queue_wait")]
    #[schemars(with = "String", default = "default::queue_wait")]
    pub queue_wait: Spanned<Seconds>,
    /// In which a server that has come back grows from a sixteenth to all of its weight. Default:
    /// it gets all at once.
    #[schemars(with = "Option<String>")]
    pub slow_start: Option<Seconds>,
    /// Of 100 requests those that may be sent to a second or third server, beside 10 a second. Sent
    /// again is what no server has seen, and what may be repeated (GET, HEAD, PUT, DELETE, OPTIONS,
    /// TRACE) if the server ended the connection; with a body only if it was read whole before
    /// (`request_buffering`). 0 for those 10 alone.
    #[serde(default = "default::retry_percent")]
    #[schemars(with = "u32", default = "default::retry_percent_plain")]
    pub retry_percent: Spanned<u32>,
    /// Asks each server now and then whether it is well, such as `{ path = "/health" }`. Of servers
    /// that speak no HTTP/1 it is enough that they can be connected to: `{}`. Default: nobody asks.
    #[schemars(with = "Option<UpstreamHealthConfig>")]
    pub health: Option<Spanned<UpstreamHealthConfig>>,
    /// The `Host` that they get: `"client"`, the one that was asked for; `"upstream"`, the one in
    /// `servers`; or a name.
    #[serde(default = "default::host")]
    #[schemars(with = "String", default = "default::host_plain")]
    pub host: Spanned<String>,
    /// How they hear of the client: `"X-Forwarded-For"` (with `-Proto` and `-Host`), `"Forwarded"`,
    /// `"both"` or `"none"`. What a client says there itself is left out, unless it is `trusted` on
    /// the listener; then it is added to.
    #[serde(default = "default::forwarded")]
    #[schemars(with = "String", default = "default::forwarded_plain")]
    pub forwarded: Spanned<String>,
    /// Our name in `Via`, of requests and responses. `""` for no such field: some servers do not
    /// compress for who sends it.
    #[serde(default = "default::via")]
    #[schemars(with = "String", default = "default::via_plain")]
    pub via: Spanned<String>,
    /// How long connecting may take, a TLS handshake included.
    #[serde(default = "default::connect_timeout")]
    #[schemars(with = "String", default = "default::connect_timeout")]
    pub connect_timeout: Seconds,
    /// How long a server may take nothing of a request.
    #[serde(default = "default::patience")]
    #[schemars(with = "String", default = "default::patience")]
    pub send_timeout: Seconds,
    /// How long the head of a response may take, from the end of the request on; then the client
    /// gets 504.
    #[serde(default = "default::patience")]
    #[schemars(with = "String", default = "default::patience")]
    pub first_byte_timeout: Seconds,
    /// How long a server may be silent inside a response; then the client's connection is cut. Not
    /// for WebSockets.
    #[serde(default = "default::patience")]
    #[schemars(with = "String", default = "default::patience")]
    pub idle_timeout: Seconds,
    /// Idle connections that are kept, for each server and event loop; 0 for none. Default: 64, and
    /// with FastCGI 0, because a process of php-fpm serves nobody else as long as a connection to
    /// it is open.
    #[schemars(with = "Option<usize>")]
    pub keep_connections: Option<Spanned<usize>>,
    /// For how long an idle connection is kept, or a second less than the server says in
    /// `Keep-Alive` if that is shorter. Should be shorter than what the server itself has.
    #[serde(default = "default::keep_time_spanned")]
    #[schemars(with = "String", default = "default::keep_time")]
    pub keep_time: Spanned<Seconds>,
    /// Requests after which a connection is closed; 0 for never.
    #[serde(default = "default::connection_requests")]
    #[schemars(with = "u64", default = "default::connection_requests_plain")]
    pub max_requests: Spanned<u64>,
    /// Age at which a connection is closed, when it has no request. Default: never.
    #[schemars(with = "Option<String>")]
    pub max_age: Option<Spanned<Seconds>>,
    /// How often names are looked up again. If that fails, the addresses stay.
    #[serde(default = "default::resolve")]
    #[schemars(with = "String", default = "default::resolve")]
    pub resolve: Seconds,
    /// For `https://` servers, such as `{ ca = "internal-ca.pem" }`. Default: certificates are
    /// verified by the authorities of the system.
    #[schemars(with = "Option<UpstreamTlsConfig>")]
    pub tls: Option<Spanned<UpstreamTlsConfig>>,
    /// For `fastcgi://` servers: the directory of their scripts, which is `DOCUMENT_ROOT` and the
    /// beginning of `SCRIPT_FILENAME`. If it is not on this machine, an absolute path of theirs.
    #[schemars(with = "Option<String>")]
    pub root: Option<Spanned<String>>,
    /// For `fastcgi://` servers: the script of a directory, and of the root for all paths that name
    /// no script. Default: `index.php`.
    #[schemars(with = "Option<String>")]
    pub index: Option<Spanned<String>>,
    /// For `fastcgi://` servers: what names of scripts end in. Default: `.php`.
    #[schemars(with = "Option<String>")]
    pub extension: Option<Spanned<String>>,
}

/// TLS to servers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamTlsConfig {
    /// Certificates, in PEM, of the authorities to believe. Default: those of the system.
    #[schemars(with = "Option<String>")]
    pub ca: Option<Spanned<String>>,
    /// The name that certificates must be for, and that is asked for (SNI). Default: the server's.
    #[schemars(with = "Option<String>")]
    pub server_name: Option<Spanned<String>>,
    /// Whether certificates are verified. Without, whoever is between can read and change
    /// everything.
    #[serde(default = "default::yes")]
    pub verify: bool,
    /// A certificate to show, and its key: `{ chain = "client.pem", key = "client.key" }`. Default:
    /// none.
    pub certificate: Option<CertificateConfig>,
}

/// Checks `config` and reads the files that it names.
pub fn check_upstream(config: &UpstreamConfig, source: &Source) -> Result<Settings, ConfigError> {
    let name = config.name.get_ref();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_name) {
        let message =
            format!("upstream name `{name}`: allowed are 1 to 64 letters, digits, `-` and `_`");
        return Err(source.error(config.name.span(), message));
    }
    let mut servers = Vec::new();
    for entry in &config.servers {
        servers.push(server(entry, config.max_in_flight, source)?);
    }
    if servers.is_empty() {
        let message = format!("upstream `{name}` needs `servers`, such as [\"127.0.0.1:3000\"]");
        return Err(source.error(config.name.span(), message));
    }
    let fastcgi = fastcgi(config, &servers, source)?;
    let queue = queue(config, &servers, source)?;
    let idle = match &config.keep_connections {
        Some(idle) if *idle.get_ref() > MAX_IDLE => {
            let message =
                format!("`keep_connections` is {}: allowed is 0 to {MAX_IDLE}", idle.get_ref());
            return Err(source.error(idle.span(), message));
        }
        Some(idle) => *idle.get_ref(),
        None if fastcgi.is_some() => 0,
        None => PoolLimits::default().idle,
    };
    let uses_tls = servers.iter().any(|server| server.address.scheme == Scheme::Https);
    Ok(Settings {
        name: name.clone(),
        health: health(config, &servers, source)?,
        servers,
        balancing: balancing(config, source)?,
        queue,
        timeouts: Timeouts {
            connect: config.connect_timeout.into(),
            send: config.send_timeout.into(),
            first_byte: config.first_byte_timeout.into(),
            idle: config.idle_timeout.into(),
        },
        pool: PoolLimits {
            idle,
            idle_time: (*config.keep_time.get_ref()).into(),
            max_requests: *config.max_requests.get_ref(),
            max_age: config.max_age.as_ref().map(|age| (*age.get_ref()).into()),
        },
        host: host(&config.host, source)?,
        forwarded: forwarded(&config.forwarded, source)?,
        via: via(&config.via, source)?,
        tls: tls(config, uses_tls, source)?,
        fastcgi,
        resolve: config.resolve.into(),
        spool_directory: std::env::temp_dir(),
    })
}

fn health(
    config: &UpstreamConfig,
    servers: &[ServerConfig],
    source: &Source,
) -> Result<Option<HealthConfig>, ConfigError> {
    let is_http = servers.iter().any(|server| !server.address.scheme.is_cgi());
    config.health.as_ref().map(|health| check_health(health, is_http, source)).transpose()
}

/// Keys of a queue that nobody ever comes to are a mistake.
fn queue(
    config: &UpstreamConfig,
    servers: &[ServerConfig],
    source: &Source,
) -> Result<QueueLimits, ConfigError> {
    let (length, wait) = (&config.queue, &config.queue_wait);
    if servers.iter().all(|server| server.max_in_flight.is_none()) {
        let written = [("queue", length.span()), ("queue_wait", wait.span())];
        if let Some((key, span)) = written.into_iter().find(|(_, span)| is_written(span)) {
            let message =
                format!("`{key}` is for servers with `max_in_flight`: without, no request waits");
            return Err(source.error(span, message));
        }
    }
    if *length.get_ref() > MAX_QUEUE {
        let message = format!("`queue` is {}: allowed is 0 to {MAX_QUEUE}", length.get_ref());
        return Err(source.error(length.span(), message));
    }
    Ok(QueueLimits { length: *length.get_ref(), wait: (*wait.get_ref()).into() })
}

/// Whether a key that has a default stands in the file.
pub(super) fn is_written(span: &Range<usize>) -> bool {
    !span.is_empty()
}

pub(super) fn host(text: &Spanned<String>, source: &Source) -> Result<HostPolicy, ConfigError> {
    match text.get_ref().as_str() {
        "client" => Ok(HostPolicy::Client),
        "upstream" => Ok(HostPolicy::Upstream),
        // What is a host where one connects to is one here.
        name if format!("http://{name}").parse::<ServerAddress>().is_ok() => {
            Ok(HostPolicy::Name(name.into()))
        }
        name => {
            let message =
                format!("`host` is `{name}`: allowed are \"client\", \"upstream\" and a name");
            Err(source.error(text.span(), message))
        }
    }
}

fn forwarded(text: &Spanned<String>, source: &Source) -> Result<ForwardedPolicy, ConfigError> {
    match text.get_ref().as_str() {
        "X-Forwarded-For" => Ok(ForwardedPolicy::X),
        "Forwarded" => Ok(ForwardedPolicy::Forwarded),
        "both" => Ok(ForwardedPolicy::Both),
        "none" => Ok(ForwardedPolicy::Nothing),
        other => {
            let allowed = "\"X-Forwarded-For\", \"Forwarded\", \"both\" and \"none\"";
            Err(source
                .error(text.span(), format!("`forwarded` is `{other}`: allowed are {allowed}")))
        }
    }
}

/// `pseudonym` is a token (RFC 9110 section 7.6.3).
fn via(text: &Spanned<String>, source: &Source) -> Result<Option<String>, ConfigError> {
    let name = text.get_ref();
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if !name.bytes().all(is_token) {
        let message = format!("`via` is `{name}`: allowed are letters, digits and `-._~`");
        return Err(source.error(text.span(), message));
    }
    Ok((!name.is_empty()).then(|| name.clone()))
}

fn tls(config: &UpstreamConfig, is_used: bool, source: &Source) -> Result<ClientTls, ConfigError> {
    let path = |file: &Spanned<String>| absolute(&source.directory.join(file.get_ref()));
    let none = UpstreamTlsConfig { verify: true, ..UpstreamTlsConfig::default() };
    let (tls, span) = match &config.tls {
        Some(tls) if !is_used => {
            let message = "`tls` of an upstream without an https:// server";
            return Err(source.error(tls.span(), message));
        }
        None if !is_used => return Ok(ClientTls::default()),
        Some(tls) => (tls.get_ref(), tls.span()),
        None => (&none, config.name.span()),
    };
    let settings = ClientTlsSettings {
        ca: tls.ca.as_ref().map(path),
        server_name: tls.server_name.as_ref().map(|name| name.get_ref().clone()),
        verify: tls.verify,
        certificate: tls.certificate.as_ref().map(|files| (path(&files.chain), path(&files.key))),
    };
    ClientTls::load(&settings).map_err(|error| source.error(span, format!("`tls`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::super::check::tests::{LISTENER, check_text};
    use kirin_gateway::routing::settings::PlaceSite;
    use kirin_proxy::{ForwardedPolicy, HashKey, HostPolicy, Method};
    use std::time::Duration;

    #[test]
    fn what_servers_of_cgi_have_no_use_for_is_refused() {
        let scgi = "servers = [\"scgi://a:1\"]";
        let fastcgi = "servers = [\"fastcgi://a:1\"]\nroot = \"x\"";
        for (servers, key, allowed) in [
            (scgi, "host = \"upstream\"", "HTTP_HOST"),
            (fastcgi, "host = \"client\"", "HTTP_HOST"),
            (scgi, "forwarded = \"none\"", "REMOTE_ADDR"),
            (fastcgi, "forwarded = \"Forwarded\"", "REMOTE_ADDR"),
            (scgi, "via = \"\"", "`Via`"),
            (fastcgi, "via = \"kirin\"", "`Via`"),
            (scgi, "keep_connections = 0", "connection of its own"),
            (scgi, "keep_time = \"5s\"", "connection of its own"),
            (scgi, "max_requests = 5", "connection of its own"),
            (scgi, "max_age = \"5m\"", "connection of its own"),
            (scgi, "tls = {}", "without an https"),
            (fastcgi, "health = { path = \"/\" }", "connected to"),
            (scgi, "health = { host = \"a\" }", "connected to"),
            (scgi, "health = { status = \"200\" }", "connected to"),
        ] {
            let error = check(&format!("{servers}\n{key}")).unwrap_err();
            let line = 5 + servers.lines().count();
            let name = key.split(' ').next().unwrap_or_default();
            let parts = [format!("kirin.toml:{line}:"), format!("`{name}`"), allowed.into()];
            assert!(parts.iter().all(|part| error.contains(part)), "{key}: {error}");
        }
        let kept = "keep_connections = 2\nkeep_time = \"5s\"\nmax_requests = 5\nmax_age = \"5m\"\nhealth = {}";
        assert_eq!(check(&format!("{fastcgi}\n{kept}")).unwrap().pool.idle, 2);
        assert!(
            check(&format!("{scgi}\nhealth = {{ interval = \"5s\" }}")).unwrap().health.is_some()
        );
    }

    #[test]
    fn a_limit_is_for_each_server_or_for_one() {
        let of = |upstream: &str| -> Vec<Option<u32>> {
            let servers = check(upstream).unwrap().servers;
            servers.iter().map(|server| server.max_in_flight.map(Into::into)).collect()
        };
        let servers = "servers = [\"a:1\", { address = \"a:2\", max_in_flight = 2 }]";
        assert_eq!(of(servers), [None, Some(2)]);
        assert_eq!(of(&format!("{servers}\nmax_in_flight = 8")), [Some(8), Some(2)]);
        let limits = check(&format!("{servers}\nqueue = 0\nqueue_wait = \"1s\"")).unwrap().queue;
        assert_eq!((limits.length, limits.wait), (0, Duration::from_secs(1)));
        let limits = check("servers = [\"a:1\"]\nmax_in_flight = 1").unwrap().queue;
        assert_eq!((limits.length, limits.wait), (1024, Duration::from_secs(30)));
    }

    fn check(upstream: &str) -> Result<kirin_proxy::UpstreamConfig, String> {
        let route = "[[route]]\npath = \"/\"\ntry = [\"store\", \"proxy:api\"]\n";
        let text = format!("{LISTENER}[[upstream]]\nname = \"api\"\n{upstream}\n{route}");
        let mut site = check_text(&text)?;
        assert_eq!(site.gateway.routes[0].places[1], PlaceSite::Proxy(0));
        Ok(site.upstreams.remove(0))
    }

    #[test]
    fn an_upstream_needs_servers_only() {
        let upstream = check("servers = [\"127.0.0.1:3000\", \"unix:x.sock\"]").unwrap();
        assert_eq!(upstream.servers[0].address.to_string(), "127.0.0.1:3000");
        assert!(
            upstream.servers[1].address.to_string().starts_with("unix:/"),
            "{:?}",
            upstream.servers[1]
        );
        assert_eq!((upstream.host, upstream.forwarded), (HostPolicy::Client, ForwardedPolicy::X));
        assert_eq!((upstream.via.as_deref(), upstream.pool.idle), (Some("kirin"), 64));
    }

    #[test]
    fn what_is_said_of_an_upstream_is_taken() {
        let upstream = check(
            "servers = [\"h2c://a.test:1\"]\nhost = \"www.a.test:8080\"\nforwarded = \"none\"\nvia = \"\"\n\
             first_byte_timeout = \"5m\"\nkeep_connections = 0\nmax_age = \"1h\"\n",
        )
        .unwrap();
        assert_eq!(upstream.host, HostPolicy::Name("www.a.test:8080".into()));
        assert_eq!((upstream.forwarded, upstream.via), (ForwardedPolicy::Nothing, None));
        assert_eq!(upstream.timeouts.first_byte, Duration::from_secs(300));
        assert_eq!(
            (upstream.pool.idle, upstream.pool.max_age),
            (0, Some(Duration::from_secs(3600)))
        );
    }

    #[test]
    fn fastcgi_servers_have_a_root_and_keep_no_connections_by_themselves() {
        let upstream =
            check("servers = [\"fastcgi://unix:/run/php.sock\"]\nroot = \"public\"").unwrap();
        let fastcgi = upstream.fastcgi.unwrap();
        assert!(fastcgi.root.starts_with('/') && fastcgi.root.ends_with("/public"), "{fastcgi:?}");
        assert_eq!((fastcgi.index.as_str(), fastcgi.extension.as_str()), ("index.php", ".php"));
        assert_eq!(upstream.pool.idle, 0);
        let upstream = check(
            "servers = [\"fastcgi://a:9000\"]\nroot = \"/x\"\nextension = \".fcgi\"\nkeep_connections = 4",
        )
        .unwrap();
        let fastcgi = upstream.fastcgi.unwrap();
        assert_eq!((fastcgi.root.as_str(), fastcgi.index.as_str()), ("/x", "index.fcgi"));
        assert_eq!(upstream.pool.idle, 4);
        assert!(check("servers = [\"scgi://a:1\", \"scgi://unix:/x\"]").unwrap().fastcgi.is_none());
    }

    #[test]
    fn balancing_and_health_checks_are_taken() {
        let upstream = check(
            "servers = [\"a.test:1\", { address = \"b.test:2\", weight = 3 }, { address = \"c.test:3\", backup = true }]\n\
             balance = \"hash\"\nhash_key = \"cookie:sid\"\nsticky_cookie = \"server\"\nmax_failures = 1\n\
             slow_start = \"30s\"\nretry_percent = 5\nhealth = { path = \"/up\", status = \"204\", interval = \"1s\" }\n",
        )
        .unwrap();
        let weights: Vec<_> =
            upstream.servers.iter().map(|server| (server.weight, server.backup)).collect();
        assert_eq!(weights, [(1, false), (3, false), (1, true)]);
        let balancing = upstream.balancing;
        assert_eq!(
            (balancing.method, balancing.key),
            (Method::Hash, Some(HashKey::Cookie("sid".into())))
        );
        assert_eq!((balancing.sticky.as_deref(), balancing.max_failures), (Some("server"), 1));
        assert_eq!((balancing.slow_start, balancing.retry_percent), (Duration::from_secs(30), 5));
        let health = upstream.health.unwrap();
        assert_eq!(
            (health.path.as_str(), health.status, health.unhealthy_after),
            ("/up", 204..=204, 3)
        );
        assert_eq!(
            (health.interval, health.timeout),
            (Duration::from_secs(1), Duration::from_secs(2))
        );
    }

    #[test]
    fn errors_name_line_value_and_what_is_allowed() {
        for (upstream, expected) in [
            ("servers = []", vec!["kirin.toml:4:8", "needs `servers`"]),
            (
                "servers = [\"ftp://a\"]",
                vec!["kirin.toml:5:12", "`ftp://a` is not a server", "unix:/PATH"],
            ),
            ("servers = [1]", vec!["kirin.toml:5:12", "an address, or {"]),
            ("servers = [{ address = \"a:1\", wait = 1 }]", vec!["kirin.toml:5:", "wait"]),
            ("servers = [{ address = \"a:1\", weight = 0 }]", vec!["kirin.toml:5:12", "1 to 1000"]),
            ("servers = [\"a:1\"]\nbalance = \"x\"", vec!["kirin.toml:6:11", "least-connections"]),
            ("servers = [\"a:1\"]\nbalance = \"hash\"", vec!["kirin.toml:6:11", "hash_key"]),
            ("servers = [\"a:1\"]\nhash_key = \"target\"", vec!["kirin.toml:6:12", "balance"]),
            ("servers = [\"a:1\"]\nsticky_cookie = \"a b\"", vec!["kirin.toml:6:17", "cookie"]),
            ("servers = [\"a:1\"]\nretry_percent = 101", vec!["kirin.toml:6:17", "0 to 100"]),
            (
                "servers = [\"a:1\"]\nhealth = { path = \"up\" }",
                vec!["kirin.toml:6:19", "begins with"],
            ),
            (
                "servers = [\"a:1\"]\nhealth = { path = \"/\", status = \"ok\" }",
                vec!["kirin.toml:6:", "200-399"],
            ),
            ("servers = [\"a:1\"]\nhost = \"a b\"", vec!["kirin.toml:6:8", "\"upstream\""]),
            ("servers = [\"a:1\"]\nforwarded = \"x\"", vec!["kirin.toml:6:13", "\"both\""]),
            ("servers = [\"a:1\"]\nvia = \"a b\"", vec!["kirin.toml:6:7", "`via`"]),
            ("servers = [\"a:1\"]\ntls = {}", vec!["kirin.toml:6:7", "without an https"]),
            ("servers = [\"a:1\"]\nroot = \"x\"", vec!["kirin.toml:6:8", "without a fastcgi"]),
            ("servers = [\"a:1\"]\nmax_in_flight = 0", vec!["kirin.toml:6:17", "nonzero"]),
            (
                "servers = [{ address = \"a:1\", max_in_flight = 0 }]",
                vec!["kirin.toml:5:", "nonzero"],
            ),
            ("servers = [\"a:1\"]\nqueue = 5", vec!["kirin.toml:6:9", "max_in_flight"]),
            ("servers = [\"a:1\"]\nqueue_wait = \"5s\"", vec!["kirin.toml:6:14", "max_in_flight"]),
            (
                "servers = [\"a:1\"]\nmax_in_flight = 1\nqueue = 65537",
                vec!["kirin.toml:7:9", "0 to 65536"],
            ),
            ("servers = [\"a:1\"]\nhealth = {}", vec!["kirin.toml:", "health", "path"]),
            (
                "servers = [\"scgi://a:1\"]\nindex = \"x.php\"",
                vec!["kirin.toml:6:9", "without a fastcgi"],
            ),
            ("servers = [\"fastcgi://a:1\"]", vec!["kirin.toml:4:8", "needs `root`"]),
            ("servers = [\"fastcgi://a\"]\nroot = \"x\"", vec!["kirin.toml:5:12", "no port"]),
            (
                "servers = [\"a:1\", \"fastcgi://a:2\"]\nroot = \"x\"",
                vec!["kirin.toml:5:19", "in one upstream"],
            ),
            (
                "servers = [\"scgi://a:1\", \"uwsgi://a:2\"]",
                vec!["kirin.toml:5:26", "in one upstream"],
            ),
            (
                "servers = [\"fastcgi://a:1\"]\nroot = \"x\"\nextension = \"php\"",
                vec!["kirin.toml:7:13", "a dot"],
            ),
            (
                "servers = [\"fastcgi://a:1\"]\nroot = \"x\"\nindex = \"index.html\"",
                vec!["kirin.toml:7:9", "ends in `.php`"],
            ),
            (
                "servers = [\"https://a\"]\ntls = { ca = \"no.pem\" }",
                vec!["kirin.toml:6:7", "no.pem"],
            ),
        ] {
            let error = check(upstream).unwrap_err();
            assert!(expected.iter().all(|part| error.contains(part)), "{upstream}: {error}");
        }
    }
}
