//! The address of the engine, as the configuration has it.
//!
//! ```text
//! redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]
//! redis+unix://[USER[:PASSWORD]@]/PATH[?db=DB]
//! redis-sentinel://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]]…/NAME[?OPTION[&OPTION]…]
//! redis-cluster://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]]…
//! ```
//!
//! `rediss`, `rediss-sentinel` and `rediss-cluster` are the same with TLS. User, password and the
//! path of a socket are percent-decoded. The crate `url` cannot parse lists of hosts.
//!
//! The options behind a master are `db=DB`, `sentinel_user=USER` and `sentinel_password=PASSWORD`.
//! Sentinels are not told the password of the servers, because they do not need it.
//!
//! The passwords appear neither in the texts and debug output of an address, nor in an error.

use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// The port of a server of the engine, if the address has none.
pub const DEFAULT_PORT: u16 = 6379;

/// The port of a Sentinel, if the address has none.
pub const DEFAULT_SENTINEL_PORT: u16 = 26379;

/// The largest number of a database. The engine counts them in a C `int`.
const DATABASE_LIMIT: u32 = i32::MAX as u32;

/// The longest host name in bytes (RFC 1035 section 2.3.4).
const HOST_LIMIT_BYTES: usize = 253;

/// The longest path of a unix socket in bytes. Linux has room for 108, of which one is the end.
const SOCKET_PATH_LIMIT_BYTES: usize = 107;

/// Bytes of a user that an address shows encoded.
const USER_ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// Bytes of a socket's path that an address shows encoded.
const PATH_ENCODED: &AsciiSet = &USER_ENCODED.remove(b'/');

/// The address of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// How the engine is reached.
    pub topology: Topology,
    /// The user and the password for the servers of the engine. Without them, Kirin does not log
    /// in.
    pub credentials: Option<Credentials>,
    /// The user and the password for the Sentinels. Without them, Kirin does not log in there.
    pub sentinel_credentials: Option<Credentials>,
}

/// How an engine is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One server, over TCP.
    Server {
        /// The server.
        node: NodeAddress,
        /// Whether the connection uses TLS.
        tls: bool,
        /// The number of the database.
        database: u32,
    },
    /// One server, over a unix socket.
    UnixSocket {
        /// The absolute path of the socket.
        path: PathBuf,
        /// The number of the database.
        database: u32,
    },
    /// A master that Sentinels know.
    Sentinel {
        /// The Sentinels, at least one.
        sentinels: Vec<NodeAddress>,
        /// The name of the master.
        name: String,
        /// Whether connections to Sentinels and servers use TLS.
        tls: bool,
        /// The number of the database.
        database: u32,
    },
    /// A cluster. It has one database, number 0.
    Cluster {
        /// The nodes that are asked for all others, at least one.
        nodes: Vec<NodeAddress>,
        /// Whether connections use TLS.
        tls: bool,
    },
}

/// The host and the port of a server or a Sentinel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeAddress {
    /// A host name in small letters, or an IP address without brackets.
    pub host: String,
    /// The port, never 0.
    pub port: u16,
}

/// The user and the password for an engine.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: Option<String>,
    password: String,
}

/// The reason why a text is not the address of an engine. It never shows a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text does not begin with a scheme.
    #[error("the address of the origin has no scheme: write redis://HOST:PORT")]
    NoScheme,
    /// The scheme is another one.
    #[error(
        "the scheme `{0}` of the origin is unknown: allowed are redis, rediss, redis+unix, redis-sentinel, \
         rediss-sentinel, redis-cluster and rediss-cluster"
    )]
    UnknownScheme(String),
    /// A user, a password or a path has a character that must be encoded.
    #[error(
        "the user, the password or the path of the origin is not percent-encoded text: write `%25` for `%`, \
         `%2F` for `/`, `%3F` for `?`, `%23` for `#`, `%40` for `@` and `%3A` for `:` in a user"
    )]
    Unencoded,
    /// A host is neither a name nor an IP address.
    #[error(
        "`{0}` is not the host of an origin: write a name, an IPv4 address, or an IPv6 address in []"
    )]
    Host(String),
    /// A host has more than one `:`. It is not shown, because it may be a password without its `@`.
    #[error(
        "a host of the origin has more than one `:`: write an IPv6 address in [], and `@` behind a password"
    )]
    Colons,
    /// The port of the host is not a number, or out of range.
    #[error("the port of the origin `{host}` is not a number from 1 to 65535")]
    Port {
        /// The host before the port.
        host: String,
    },
    /// The scheme takes one server, and there are more.
    #[error("the origin has {0} servers: only redis-sentinel and redis-cluster take more than one")]
    SeveralServers(usize),
    /// The number of the database is malformed.
    #[error(
        "`{0}` is not a database of the origin: allowed is a number from 0 to {DATABASE_LIMIT}"
    )]
    Database(String),
    /// There is no name of a master, or it is malformed.
    #[error(
        "`{0}` is not the name of a master: write redis-sentinel://HOST/NAME, with letters, digits, `.`, `-` and `_`"
    )]
    MasterName(String),
    /// The path of the unix socket is missing, malformed or too long.
    #[error(
        "the path of the origin's socket has {0} bytes: write redis+unix:///PATH with 2 to {SOCKET_PATH_LIMIT_BYTES}"
    )]
    SocketPath(usize),
    /// A unix socket has a host.
    #[error("the origin's socket has a host: write redis+unix:///PATH, with a third `/`")]
    SocketHost,
    /// Something follows the servers of a cluster.
    #[error("`{0}` follows the servers of a cluster: allowed is nothing, it has one database only")]
    AfterCluster(String),
    /// The query is not the number of the database.
    #[error(
        "`?{0}` follows the origin: allowed is `?db=N`, and only for redis+unix and redis-sentinel"
    )]
    Query(String),
    /// The query of a master has something else, or the same twice.
    #[error(
        "`{0}` follows the name of a master: allowed is `?` with db=N, sentinel_user=USER and \
         sentinel_password=PASSWORD, each once, with `&` between them"
    )]
    SentinelQuery(String),
    /// There is a second password.
    #[error("{0} has a password already")]
    SecondPassword(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Server,
    UnixSocket,
    Sentinel,
    Cluster,
}

/// The schemes by their names, and whether they mean TLS.
const SCHEMES: [(&str, Kind, bool); 7] = [
    ("redis", Kind::Server, false),
    ("rediss", Kind::Server, true),
    ("redis+unix", Kind::UnixSocket, false),
    ("redis-sentinel", Kind::Sentinel, false),
    ("rediss-sentinel", Kind::Sentinel, true),
    ("redis-cluster", Kind::Cluster, false),
    ("rediss-cluster", Kind::Cluster, true),
];

impl Address {
    /// Returns the address with a password from elsewhere. The user stays.
    pub fn with_password(self, password: String) -> Result<Self, AddressError> {
        let user = match self.credentials {
            Some(ref known) if !known.password.is_empty() => {
                return Err(AddressError::SecondPassword(self.to_string()));
            }
            Some(known) => known.user,
            None => None,
        };
        Ok(Self { credentials: Some(Credentials { user, password }), ..self })
    }

    /// Returns the number of the database.
    pub fn database(&self) -> u32 {
        match self.topology {
            Topology::Server { database, .. }
            | Topology::UnixSocket { database, .. }
            | Topology::Sentinel { database, .. } => database,
            Topology::Cluster { .. } => 0,
        }
    }

    /// Returns whether connections use TLS.
    pub fn uses_tls(&self) -> bool {
        match self.topology {
            Topology::Server { tls, .. }
            | Topology::Sentinel { tls, .. }
            | Topology::Cluster { tls, .. } => tls,
            Topology::UnixSocket { .. } => false,
        }
    }
}

impl Credentials {
    /// Returns the user, or `None` for the engine's default user.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the password. It must not go into a log. A user without a password has an empty
    /// one, as `nopass` users of the engine take any.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// Returns the user if it may be shown. A user without a password is not: `redis-cli` takes
    /// such a text for a password, so somebody may have meant that.
    fn shown_user(&self) -> Option<&str> {
        self.user().filter(|_| !self.password.is_empty())
    }

    /// Parses the text before the `@`. Returns `None` if it names neither user nor password.
    fn parse(text: &str) -> Result<Option<Self>, AddressError> {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let user = Some(decode_text(user)?).filter(|user| !user.is_empty());
        Ok(Self::of(user, decode_text(password)?))
    }

    /// Returns credentials, or `None` if there is neither a user nor a password.
    fn of(user: Option<String>, password: String) -> Option<Self> {
        let is_empty = user.is_none() && password.is_empty();
        (!is_empty).then_some(Self { user, password })
    }
}

impl NodeAddress {
    /// Parses `HOST` or `HOST:PORT`.
    fn parse(text: &str, default_port: u16) -> Result<Self, AddressError> {
        let bracketed = text.strip_prefix('[').and_then(|text| text.split_once(']'));
        let (host, port) = match bracketed {
            Some((ip, after)) => {
                let ip = ip.parse::<Ipv6Addr>().map_err(|_| AddressError::Host(shown(text)))?;
                let port = match after.strip_prefix(':') {
                    Some(port) => Some(port),
                    None if after.is_empty() => None,
                    None => return Err(AddressError::Host(shown(text))),
                };
                (ip.to_string(), port)
            }
            None => match text.split_once(':') {
                Some((_, port)) if port.contains(':') => return Err(AddressError::Colons),
                Some((host, port)) => (host_name(host)?, Some(port)),
                None => (host_name(text)?, None),
            },
        };
        let Some(port) = port else { return Ok(Self { host, port: default_port }) };
        match parse_decimal(port) {
            Some(port) if port > 0 => Ok(Self { host, port }),
            _ => Err(AddressError::Port { host }),
        }
    }
}

/// Checks a host name or an IPv4 address, and returns it in small letters.
fn host_name(host: &str) -> Result<String, AddressError> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if host.is_empty() || host.len() > HOST_LIMIT_BYTES || !host.bytes().all(is_name) {
        return Err(AddressError::Host(shown(host)));
    }
    Ok(host.to_ascii_lowercase())
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (kind, tls, rest) = split_scheme(text)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, after) = rest.split_at(end);
        // The password may have a `/`. No error may show it as a host or a path then.
        if after.contains('@') {
            return Err(AddressError::Unencoded);
        }
        let (credentials, hosts) = match authority.rsplit_once('@') {
            Some((credentials, hosts)) => (Credentials::parse(credentials)?, hosts),
            None => (None, authority),
        };
        let (path, query) = match after.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (after, None),
        };
        let mut sentinel_credentials = None;
        let topology = match kind {
            Kind::Server => {
                let node = match <[NodeAddress; 1]>::try_from(nodes(hosts, DEFAULT_PORT)?) {
                    Ok([node]) => node,
                    Err(nodes) => return Err(AddressError::SeveralServers(nodes.len())),
                };
                if let Some(query) = query {
                    return Err(AddressError::Query(shown(query)));
                }
                let database = match path.strip_prefix('/').unwrap_or(path) {
                    "" => 0,
                    number => parse_database(number)?,
                };
                Topology::Server { node, tls, database }
            }
            Kind::UnixSocket => {
                if !hosts.is_empty() {
                    return Err(AddressError::SocketHost);
                }
                Topology::UnixSocket { path: socket_path(path)?, database: query_database(query)? }
            }
            Kind::Sentinel => {
                let sentinels = nodes(hosts, DEFAULT_SENTINEL_PORT)?;
                let name = master_name(path.strip_prefix('/').unwrap_or(path))?;
                let options = SentinelOptions::parse(query)?;
                let database = options.database.unwrap_or_default();
                sentinel_credentials = options.credentials();
                Topology::Sentinel { sentinels, name, tls, database }
            }
            Kind::Cluster => {
                let nodes = nodes(hosts, DEFAULT_PORT)?;
                if !matches!(after, "" | "/") {
                    return Err(AddressError::AfterCluster(shown(after)));
                }
                Topology::Cluster { nodes, tls }
            }
        };
        Ok(Self { topology, credentials, sentinel_credentials })
    }
}

/// What the query of a master says.
#[derive(Default)]
struct SentinelOptions {
    database: Option<u32>,
    user: Option<String>,
    password: Option<String>,
}

impl SentinelOptions {
    fn parse(query: Option<&str>) -> Result<Self, AddressError> {
        let mut options = Self::default();
        for option in query.into_iter().flat_map(|query| query.split('&')) {
            // A password with an `&` goes on there.
            let is_shown = options.password.is_none();
            let unknown =
                || AddressError::SentinelQuery(if is_shown { shown(option) } else { "…".into() });
            let (name, value) = option.split_once('=').ok_or_else(unknown)?;
            let was_there = match name {
                "db" => options.database.replace(parse_database(value)?).is_some(),
                "sentinel_user" => options.user.replace(decode_text(value)?).is_some(),
                "sentinel_password" => options.password.replace(decode_text(value)?).is_some(),
                _ => return Err(unknown()),
            };
            if was_there {
                return Err(unknown());
            }
        }
        Ok(options)
    }

    /// Returns the user and the password for the Sentinels, if there is one of them.
    fn credentials(self) -> Option<Credentials> {
        let user = self.user.filter(|user| !user.is_empty());
        Credentials::of(user, self.password.unwrap_or_default())
    }
}

/// Splits `text` after `://`.
fn split_scheme(text: &str) -> Result<(Kind, bool, &str), AddressError> {
    let (name, rest) = text.split_once("://").ok_or(AddressError::NoScheme)?;
    // Other text may be a password.
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    if !name.bytes().all(is_scheme) {
        return Err(AddressError::NoScheme);
    }
    let (_, kind, tls) = SCHEMES
        .into_iter()
        .find(|(known, ..)| *known == name)
        .ok_or_else(|| AddressError::UnknownScheme(name.into()))?;
    Ok((kind, tls, rest))
}

fn nodes(hosts: &str, default_port: u16) -> Result<Vec<NodeAddress>, AddressError> {
    hosts.split(',').map(|host| NodeAddress::parse(host, default_port)).collect()
}

/// Checks the name of a master. Sentinel allows the same characters.
fn master_name(name: &str) -> Result<String, AddressError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if name.is_empty() || !name.bytes().all(is_allowed) {
        return Err(AddressError::MasterName(shown(name)));
    }
    Ok(name.into())
}

fn socket_path(encoded: &str) -> Result<PathBuf, AddressError> {
    let path = decode(encoded)?;
    if path.len() < 2 || path.len() > SOCKET_PATH_LIMIT_BYTES {
        return Err(AddressError::SocketPath(path.len()));
    }
    if path.contains(&0) {
        return Err(AddressError::Unencoded);
    }
    Ok(OsString::from_vec(path).into())
}

fn query_database(query: Option<&str>) -> Result<u32, AddressError> {
    let Some(query) = query else { return Ok(0) };
    match query.strip_prefix("db=") {
        Some(number) => parse_database(number),
        None => Err(AddressError::Query(shown(query))),
    }
}

fn parse_database(text: &str) -> Result<u32, AddressError> {
    parse_decimal(text)
        .filter(|number| *number <= DATABASE_LIMIT)
        .ok_or_else(|| AddressError::Database(shown(text)))
}

/// Returns a text for an error. What follows a `=` is left out, because it may be a password.
fn shown(text: &str) -> String {
    text.split_once('=').map_or(text, |(name, _)| name).into()
}

/// Parses a decimal number without a sign.
fn parse_decimal<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Returns `text` percent-decoded. Each `%` must have two hexadecimal digits behind it, so that a
/// password with a forgotten `%25` is noticed.
fn decode(text: &str) -> Result<Vec<u8>, AddressError> {
    let is_code = |rest: &str| {
        rest.as_bytes()
            .first_chunk::<2>()
            .is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_code) {
        return Err(AddressError::Unencoded);
    }
    Ok(percent_decode_str(text).collect())
}

fn decode_text(text: &str) -> Result<String, AddressError> {
    String::from_utf8(decode(text)?).map_err(|_| AddressError::Unencoded)
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse() {
            Ok(IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
            _ => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Address {
    /// Writes the address without the passwords, and without the user of the Sentinels.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (&self.topology, self.uses_tls()) {
            (Topology::Server { .. }, false) => "redis://",
            (Topology::Server { .. }, true) => "rediss://",
            (Topology::UnixSocket { .. }, _) => "redis+unix://",
            (Topology::Sentinel { .. }, false) => "redis-sentinel://",
            (Topology::Sentinel { .. }, true) => "rediss-sentinel://",
            (Topology::Cluster { .. }, false) => "redis-cluster://",
            (Topology::Cluster { .. }, true) => "rediss-cluster://",
        })?;
        if let Some(user) = self.credentials.as_ref().and_then(Credentials::shown_user) {
            write!(f, "{}@", percent_encode(user.as_bytes(), USER_ENCODED))?;
        }
        match &self.topology {
            Topology::Server { node, .. } => write!(f, "{node}")?,
            Topology::UnixSocket { path, .. } => {
                write!(f, "{}", percent_encode(path.as_os_str().as_bytes(), PATH_ENCODED))?;
            }
            Topology::Sentinel { sentinels, name, .. } => {
                write_nodes(sentinels, f)?;
                write!(f, "/{name}")?;
            }
            Topology::Cluster { nodes, .. } => write_nodes(nodes, f)?,
        }
        match (&self.topology, self.database()) {
            (_, 0) => Ok(()),
            (Topology::Server { .. }, database) => write!(f, "/{database}"),
            (_, database) => write!(f, "?db={database}"),
        }
    }
}

fn write_nodes(nodes: &[NodeAddress], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, node) in nodes.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        write!(f, "{comma}{node}")?;
    }
    Ok(())
}

impl fmt::Debug for Credentials {
    /// Writes the user, and that there is a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.shown_user()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
