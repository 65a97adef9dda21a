//! `[[listener]]`: an address, what its clients may take, and the proxies in front of it.

use kirin_acme::AcmeConfig;
use kirin_http::request::HeadLimits;
use kirin_http::{Forwarding, ListenAddress};
use kirin_server::Limits;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::access_log::{AccessLogConfig, AccessLogKey, LogsOfFile};
use crate::acme_challenges::possible_challenges;
use crate::default::{defaults, size, whole_seconds};
use crate::forwarded::ForwardedKey;
use crate::peers::peers;
use crate::source::{ConfigError, ConfigSource, ErrorCollector};
use crate::tls::{ListenerTls, TlsSection, check_tls};
use crate::units::{ByteSize, Number, Seconds};
use crate::written::Written;

/// The largest number of connections: more than Linux has descriptors for.
pub const MAX_CONNECTIONS: u64 = 1 << 30;

/// The largest request head that a listener may allow, in bytes.
const MAX_HEAD_BYTES: usize = 1024 * 1024;

/// The smallest limit on what clients hold, in bytes. Below it a single upload would find no room.
const MIN_CLIENT_BYTES: u64 = 1 << 20;

/// An address to listen on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListenerSection {
    /// `IP:PORT`, `PORT` (on 127.0.0.1), `*:PORT` or `:PORT` (all addresses) or `unix:PATH`. Port 0
    /// takes a free port.
    pub address: Written<String>,
    /// Where Kirin writes a line for each response: a file, `"stdout"`, `"stderr"`, `"journald"` or
    /// `"syslog"`, or a table with the keys below ([access-log.md](access-log.md)). `false`: no
    /// log. Default: no log.
    #[schemars(with = "Option<String>")]
    pub access_log: Option<Written<AccessLogKey>>,
    /// How long Kirin keeps an idle connection, such as `"75s"`.
    #[serde(default = "keep_alive")]
    pub keep_alive: Seconds,
    /// TLS: clients of this listener use https.
    pub tls: Option<TlsSection>,
    /// The port to which clients of this listener are redirected for https on the same host, such
    /// as `443` (308). The listener itself has no TLS. Paths below `/.well-known/acme-challenge/`
    /// are served without a redirect. Default: no redirect.
    pub redirect_to_https: Option<Written<u16>>,
    /// How long a request head may take from its first byte to its last. For a new connection the
    /// time starts when the client connects.
    #[serde(default = "head_timeout")]
    pub head_timeout: Seconds,
    /// How long a client may be silent inside a request body.
    #[serde(default = "body_timeout")]
    pub body_timeout: Seconds,
    /// How long a client may read nothing while Kirin sends it a response.
    #[serde(default = "write_timeout")]
    pub write_timeout: Seconds,
    /// The bytes a second that a client must send of a body and take of a response. Kirin takes the
    /// average over the time that it waits for the client, after the first `body_timeout` or
    /// `write_timeout`. `"0B"` is no minimum.
    #[serde(default = "min_rate")]
    pub min_rate: ByteSize,
    /// The largest request head. A larger one is answered 431.
    #[serde(default = "head_limit")]
    pub head_limit: ByteSize,
    /// The longest request line, with its line end. A longer one is answered 414.
    #[serde(default = "request_line_limit")]
    pub request_line_limit: ByteSize,
    /// The most connections from one address (for IPv6, from one /64). Kirin closes a further one
    /// at once. A connection of a trusted proxy counts for the client that its PROXY header names;
    /// without that header it does not count. Default: no limit.
    pub connections_per_address: Option<Number<1, MAX_CONNECTIONS>>,
    /// The most memory that Kirin holds for clients of this listener. Default:
    /// `limits.client_memory`.
    pub client_memory: Option<Written<ByteSize>>,
    /// The most space in temporary files that Kirin holds for clients of this listener. Default:
    /// `limits.client_disk`.
    pub client_disk: Option<Written<ByteSize>>,
    /// The proxies and load balancers in front of Kirin: addresses, networks such as
    /// `"10.0.0.0/8"`, and `"unix:"` for all peers on a unix socket. Kirin believes only these
    /// about who the client is. It removes such fields of all other peers, so that applications do
    /// not see them.
    #[serde(default)]
    pub trusted: Vec<Written<String>>,
    /// The field in which these proxies name the client: `"X-Forwarded-For"`, `"Forwarded"`, or the
    /// name of a field that has one address, such as `"X-Real-IP"` or `"CF-Connecting-IP"`. Kirin
    /// also reads `X-Forwarded-Proto`, but not with `"Forwarded"`. Kirin ignores other kinds,
    /// because proxies pass on what clients write there.
    #[serde(default)]
    pub forwarded: ForwardedKey,
    /// Whether the host that the proxies name (`X-Forwarded-Host`, or `host` in `Forwarded`)
    /// replaces `Host`.
    #[serde(default)]
    pub forwarded_host: bool,
    /// Whether each connection starts with a PROXY protocol header, of version 1 or 2. Kirin then
    /// closes connections that do not come from `trusted`.
    #[serde(default)]
    pub proxy_protocol: bool,
}

defaults! {
    keep_alive: Seconds = whole_seconds(Limits::default().keep_alive);
    head_timeout: Seconds = whole_seconds(Limits::default().head_time);
    body_timeout: Seconds = whole_seconds(Limits::default().body_time);
    write_timeout: Seconds = whole_seconds(Limits::default().write_time);
    min_rate: ByteSize = ByteSize(Limits::default().min_rate_bytes);
    head_limit: ByteSize = size(HeadLimits::default().head_bytes);
    request_line_limit: ByteSize = size(HeadLimits::default().request_line_bytes);
}

/// A listener as the program opens it.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// The address.
    pub address: ListenAddress,
    /// Its access log.
    pub access_log: Option<AccessLogConfig>,
    /// The limits of its clients.
    pub limits: Limits,
    /// The most memory that is held for its clients, in bytes; `None`
    /// for the limit of all clients.
    pub client_memory_bytes: Option<u64>,
    /// The most space in files that is held for its clients, in bytes; `None`
    /// for the limit of all clients.
    pub client_disk_bytes: Option<u64>,
    /// The most connections from one address.
    pub connections_per_address: Option<u32>,
    /// Its certificates, if clients use https.
    pub tls: Option<ListenerTls>,
    /// The port of https to which clients are redirected.
    pub redirect_to_https: Option<u16>,
    /// The proxies in front of it.
    pub forwarding: Option<Forwarding>,
    /// Whether the proxies start connections with a PROXY header.
    pub proxy_protocol: bool,
}

/// Checks `section` and reads the certificates that it names.
pub fn check_listener(
    section: &ListenerSection,
    logs: &LogsOfFile,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<ListenerConfig> {
    let tls = section.tls.as_ref().map(|tls| errors.keep(check_tls(tls, source)));
    if let Some(port) = &section.redirect_to_https
        && (tls.is_some() || **port == 0)
    {
        let message = "`redirect_to_https` is a port, 1 to 65535, on a listener without `tls`";
        errors.push(source.error(port.span(), message));
    }
    let address = errors.keep(check_address(&section.address, source));
    if let (Some(ListenAddress::Unix(_)), Some(tls)) = (&address, &section.tls)
        && let Some(http3) = tls.http3.as_ref().filter(|http3| ***http3)
    {
        let message = "HTTP/3 needs a UDP port: a listener on a unix socket has none";
        errors.push(source.error(http3.span(), message));
    }
    let limits = errors.keep(limits(section, source));
    let client_memory = errors.keep(client_limit(&section.client_memory, "client_memory", source));
    let client_disk = errors.keep(client_limit(&section.client_disk, "client_disk", source));
    let forwarding = errors.keep(forwarding(section, source));
    let access_log = match &section.access_log {
        Some(key) => logs.check(key, source, errors),
        None => Some(None),
    };
    Some(ListenerConfig {
        address: address?,
        access_log: access_log?,
        limits: limits?,
        client_memory_bytes: client_memory?,
        client_disk_bytes: client_disk?,
        connections_per_address: section
            .connections_per_address
            .map(|limit| u32::try_from(limit.get()).unwrap_or(u32::MAX)),
        tls: match tls {
            Some(tls) => Some(tls?),
            None => None,
        },
        redirect_to_https: section.redirect_to_https.as_deref().copied(),
        forwarding: forwarding?,
        proxy_protocol: section.proxy_protocol,
    })
}

/// Returns the address that `text` names.
pub fn check_address(
    text: &Written<String>,
    source: &ConfigSource,
) -> Result<ListenAddress, ConfigError> {
    let address = text.parse().map_err(|error: kirin_http::InvalidListenAddress| {
        source.error(text.span(), error.to_string())
    })?;
    Ok(match address {
        ListenAddress::Unix(path) => ListenAddress::Unix(source.path(path)),
        tcp => tcp,
    })
}

/// Checks the rules for all listeners together, and says how an authority can look for Kirin.
/// Certificates are stored under the first of their names, so two different ones cannot begin with
/// the same name.
pub fn check_acme_listeners(
    sections: &[ListenerSection],
    listeners: &mut [ListenerConfig],
    source: &ConfigSource,
) -> Result<(), ConfigError> {
    let challenges = possible_challenges(listeners);
    let mut seen: Vec<&AcmeConfig> = Vec::new();
    for (section, listener) in sections.iter().zip(listeners) {
        let written = section.tls.as_ref().and_then(|tls| tls.acme.as_ref());
        let acme = listener.tls.as_mut().and_then(|tls| tls.acme.as_mut());
        let (Some(written), Some(acme)) = (written, acme) else { continue };
        acme.challenges.clone_from(&challenges);
        if seen.iter().any(|other| *other != acme && other.domains.first() == acme.domains.first())
        {
            let message = "listeners whose `domains` begin with the same name must have all of \
                           `acme` in common";
            return Err(source.error(written.span(), message));
        }
        seen.push(acme);
    }
    Ok(())
}

/// Returns why a limit on what clients hold is too small, if it is.
pub fn too_small_for_clients(key: &str, size: ByteSize) -> Option<String> {
    (size.0 < MIN_CLIENT_BYTES).then(|| format!("`{key}` is {size}: at least 1MB is needed"))
}

fn client_limit(
    size: &Option<Written<ByteSize>>,
    key: &str,
    source: &ConfigSource,
) -> Result<Option<u64>, ConfigError> {
    let Some(size) = size else { return Ok(None) };
    match too_small_for_clients(key, **size) {
        None => Ok(Some(size.0)),
        Some(message) => Err(source.error(size.span(), message)),
    }
}

fn limits(section: &ListenerSection, source: &ConfigSource) -> Result<Limits, ConfigError> {
    let head = HeadLimits {
        head_bytes: section.head_limit.length(),
        request_line_bytes: section.request_line_limit.length(),
    };
    if head.head_bytes > MAX_HEAD_BYTES
        || !(64..=head.head_bytes).contains(&head.request_line_bytes)
    {
        let message = format!(
            "`head_limit` is {} and `request_line_limit` {}: allowed is 64B up to `head_limit` \
             for the line and up to 1MB for the head",
            section.head_limit, section.request_line_limit
        );
        return Err(source.error(section.address.span(), message));
    }
    Ok(Limits {
        head,
        keep_alive: section.keep_alive.into(),
        head_time: section.head_timeout.into(),
        body_time: section.body_timeout.into(),
        write_time: section.write_timeout.into(),
        min_rate_bytes: section.min_rate.0,
        admission: None,
        blocked: Default::default(),
        client_bytes: None,
    })
}

/// Returns the peers whose fields the listener believes, and the fields. `None` if it has no
/// `trusted`.
fn forwarding(
    section: &ListenerSection,
    source: &ConfigSource,
) -> Result<Option<Forwarding>, ConfigError> {
    let trusted = peers(&section.trusted, "trusted", source)?;
    if section.trusted.is_empty() {
        if section.proxy_protocol || section.forwarded_host {
            let message = "`proxy_protocol` and `forwarded_host` need `trusted`: the addresses of \
                           the proxies";
            return Err(source.error(section.address.span(), message));
        }
        return Ok(None);
    }
    Ok(Some(Forwarding {
        trusted,
        fields: section.forwarded.0.clone(),
        host: section.forwarded_host,
    }))
}
