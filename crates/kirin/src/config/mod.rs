//! The configuration: what a user writes, as types. The doc comment of each field is its entry in
//! `docs/configuration.md`, which is generated from here.
//!
//! [`load`] reads a file; [`check`] turns what it says into a [`Site`], in which everything named
//! exists.

pub mod acme;
pub mod admin;
mod balancing;
pub mod cache;
pub mod check;
mod check_route;
pub mod compress;
pub mod default;
mod fastcgi;
mod files;
mod health_check;
pub mod load;
pub mod lua;
mod preload;
mod proxies;
pub mod reference;
mod rules;
mod server_entry;
pub mod tls;
pub mod units;
pub mod upstream;

pub use check::{Site, check};
pub use compress::CompressKey;
pub use load::{ConfigError, load};
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_spanned::Spanned;

use units::{ByteSize, RequestRate, Seconds};

/// The whole file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of event loops, each a thread that serves its connections alone. Default: the cores
    /// that the process may use.
    #[schemars(with = "Option<usize>")]
    pub threads: Option<Spanned<usize>>,
    /// The user that Kirin, once it has opened its ports and logs, and its applications run as.
    /// Only root can become another user. Default: the one that starts it.
    #[schemars(with = "Option<String>")]
    pub user: Option<Spanned<String>>,
    /// Client connections at most, of all listeners together; more wait until others end. Default:
    /// the limit on open files (`ulimit -n`) less an eighth of it, or less 512 if that is less, so
    /// that files and workers can still be opened.
    #[schemars(with = "Option<usize>")]
    pub connections: Option<Spanned<usize>>,
    /// How many bytes Kirin may hold for its clients in all.
    #[serde(default)]
    pub limits: LimitsConfig,
    /// Addresses to listen on.
    #[serde(default)]
    pub listener: Vec<ListenerConfig>,
    /// The store: items in memory, written with any memcached client.
    #[serde(default)]
    pub store: StoreConfig,
    /// The admin listener, for operators: purging and status. Default: none.
    pub admin: Option<admin::AdminConfig>,
    /// Applications, each with its own workers.
    #[serde(default)]
    pub app: Vec<AppConfig>,
    /// Scripts: what each of them may take.
    #[serde(default)]
    pub lua: lua::LuaConfig,
    /// Other HTTP servers.
    #[serde(default)]
    pub upstream: Vec<upstream::UpstreamConfig>,
    /// Which request goes where. The route with the longest matching `path` is taken.
    #[serde(default)]
    pub route: Vec<RouteConfig>,
}

/// How many bytes Kirin may hold for its clients in all: bodies of requests, responses that clients
/// have not taken yet, and the files in which either waits. No address may hold more than what is
/// left for all others. A request that finds no room is answered 503, and a response that finds
/// none is cut. Where three quarters are taken, the connections of the address that holds most are
/// cut.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsConfig {
    /// Memory. Pages and files that clients share are not counted.
    #[serde(default = "default::client_memory")]
    #[schemars(with = "String", default = "default::client_memory")]
    pub client_memory: ByteSize,
    /// Space in temporary files.
    #[serde(default = "default::client_disk")]
    #[schemars(with = "String", default = "default::client_disk")]
    pub client_disk: ByteSize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self { client_memory: default::client_memory(), client_disk: default::client_disk() }
    }
}

/// An address to listen on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListenerConfig {
    /// `HOST:PORT`, `PORT` (on 127.0.0.1), `*:PORT` (all addresses) or `unix:PATH`. Port 0 takes a
    /// free one.
    #[schemars(with = "String")]
    pub address: Spanned<String>,
    /// Where to write a line for each response: a file, `stdout` or `stderr`. Default: nowhere. The
    /// line is the combined format, then the place that answered and the seconds it took, and `cut`
    /// if the client did not get the whole response.
    #[schemars(with = "Option<String>")]
    pub access_log: Option<Spanned<String>>,
    /// How long an idle connection is kept, such as `"75s"`.
    #[serde(default = "default::keep_alive")]
    #[schemars(with = "String", default = "default::keep_alive")]
    pub keep_alive: Seconds,
    /// TLS: clients of this listener come by https.
    pub tls: Option<tls::TlsConfig>,
    /// Sends clients of this listener, which is one without TLS, to https on the same host and this
    /// port, such as `443` (308). What is below `/.well-known/acme-challenge/` is served all the
    /// same. Default: none, everything is served here.
    #[schemars(with = "Option<u16>")]
    pub redirect_to_https: Option<Spanned<u16>>,
    /// How long a request head may take, from its first byte (of a new connection, from connecting)
    /// to its last.
    #[serde(default = "default::patience")]
    #[schemars(with = "String", default = "default::patience")]
    pub head_timeout: Seconds,
    /// How long a client may be silent inside a request body.
    #[serde(default = "default::patience")]
    #[schemars(with = "String", default = "default::patience")]
    pub body_timeout: Seconds,
    /// How long a client may take nothing of a response.
    #[serde(default = "default::patience")]
    #[schemars(with = "String", default = "default::patience")]
    pub write_timeout: Seconds,
    /// Bytes a second that a client must send of a body, and take of a response: averaged over the
    /// time that it is waited for, of which the first `body_timeout` or `write_timeout` is free.
    /// `"0B"` for none.
    #[serde(default = "default::min_rate")]
    #[schemars(with = "String", default = "default::min_rate")]
    pub min_rate: ByteSize,
    /// The largest request head; a larger one is answered 431.
    #[serde(default = "default::head_limit")]
    #[schemars(with = "String", default = "default::head_limit")]
    pub head_limit: ByteSize,
    /// The longest request line, its line end included; a longer one is answered 414.
    #[serde(default = "default::request_line_limit")]
    #[schemars(with = "String", default = "default::request_line_limit")]
    pub request_line_limit: ByteSize,
    /// Connections from one address (of IPv6, from one /64) at most; one more is closed at once.
    /// Those of a trusted proxy are counted for whom its PROXY header announces, or else not at
    /// all. Default: no limit.
    #[schemars(with = "Option<usize>")]
    pub connections_per_address: Option<Spanned<usize>>,
    /// Memory that may be held for clients of this listener. Default: `limits.client_memory`.
    #[schemars(with = "Option<String>")]
    pub client_memory: Option<Spanned<ByteSize>>,
    /// Space in temporary files that may be held for clients of this listener. Default:
    /// `limits.client_disk`.
    #[schemars(with = "Option<String>")]
    pub client_disk: Option<Spanned<ByteSize>>,
    /// Proxies and load balancers in front of Kirin, whose word on who the client is counts:
    /// addresses, networks such as `"10.0.0.0/8"`, and `"unix:"` for whoever connects to a unix
    /// socket. Nobody else's counts, and applications do not see it.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub trusted: Vec<Spanned<String>>,
    /// What those proxies write: `"X-Forwarded-For"` (with `X-Forwarded-Proto`) or `"Forwarded"`.
    /// The other one is not looked at, since proxies pass on what clients say there.
    #[serde(default = "default::forwarded")]
    #[schemars(with = "String", default = "default::forwarded_plain")]
    pub forwarded: Spanned<String>,
    /// Whether the host that they tell (`X-Forwarded-Host`, or `host` in `Forwarded`) takes the
    /// place of `Host`.
    #[serde(default)]
    pub forwarded_host: bool,
    /// Whether each connection begins with a PROXY protocol header, of version 1 or 2. Connections
    /// that are not from `trusted` are closed then.
    #[serde(default)]
    pub proxy_protocol: bool,
}

/// The store.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// Memory for items and all that belongs to them, such as `"64MB"`.
    #[serde(default = "default::store_memory")]
    #[schemars(with = "String", default = "default::store_memory")]
    pub memory: ByteSize,
    /// The largest item, such as `"1MB"`.
    #[serde(default = "default::store_item_limit")]
    #[schemars(with = "String", default = "default::store_item_limit")]
    pub item_limit: ByteSize,
    /// Addresses of the memcached port, `HOST:PORT` or `unix:PATH`. There is no password on it:
    /// keep it on the loopback interface or on a unix socket. Applications that Kirin starts find a
    /// unix socket of their own in the environment variable `KIRIN_STORE`.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub memcached: Vec<Spanned<String>>,
    /// Keeps clients from making the same item anew all at once, also those that only know `get`:
    /// within this time before an item expires, one of them misses and the others get the old
    /// value. Default: none, an item is there until it expires.
    #[schemars(with = "Option<String>")]
    pub stampede_guard: Option<Seconds>,
    /// A file for the items while Kirin is stopped: loaded at the start, written at the end and at
    /// the command `snapshot` on the memcached port. Times to live count on meanwhile. Default:
    /// none, the store starts empty.
    #[schemars(with = "Option<String>")]
    pub snapshot: Option<Spanned<String>>,
    /// The cookie whose value is the key of the visitor's session, as session middleware writes it:
    /// a JSON object under 32 to 128 hexadecimal digits. Pages then have it as `session` variables.
    /// Default: none, there are no such variables.
    #[schemars(with = "Option<String>")]
    pub session_cookie: Option<Spanned<String>>,
    /// Who may purge pages with the method `PURGE`, on all listeners: addresses, networks such as
    /// `"10.0.0.0/8"`, and `"unix:"`. Default: nobody, and `PURGE` goes to the application as any
    /// other method. Read [purge.md](purge.md) before it has the address of a proxy.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub purge_from: Vec<Spanned<String>>,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            memory: default::store_memory(),
            item_limit: default::store_item_limit(),
            memcached: Vec::new(),
            stampede_guard: None,
            snapshot: None,
            session_cookie: None,
            purge_from: Vec::new(),
        }
    }
}

/// An application and its workers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppConfig {
    /// The name that routes use: `app:NAME`.
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// The PSGI file.
    #[schemars(with = "String")]
    pub load: Spanned<String>,
    /// The directory in which the application runs. Default: that of the configuration file.
    #[schemars(with = "Option<String>")]
    pub directory: Option<Spanned<String>>,
    /// Number of worker processes; each serves one request at a time.
    #[serde(default = "default::workers")]
    #[schemars(with = "usize", default = "default::workers_plain")]
    pub workers: Spanned<usize>,
    /// Whether the application is loaded once, before its workers are forked, so that they share
    /// its memory: `true`, `false`, or `"auto"`: unless it opens connections or databases while it
    /// is loaded, which processes cannot share. Without it each worker loads the application itself
    /// ([perl.md](perl.md#preloading)). Default: `"auto"`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub preload: preload::PreloadChoice,
    /// Environment variables for the application.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Requests that may wait for an idle worker; one more is answered 503. Clients take turns: one
    /// that has many requests in the queue delays another by one of them.
    #[serde(default = "default::queue")]
    pub queue: usize,
    /// How long a request may wait for an idle worker before it is answered 503.
    #[serde(default = "default::queue_wait")]
    #[schemars(with = "String", default = "default::queue_wait")]
    pub queue_wait: Seconds,
    /// How long a worker may take for a request. Then the client gets 504, the worker logs where it
    /// is (a Perl stack), and a second later it is killed.
    #[serde(default = "default::deadline")]
    #[schemars(with = "String", default = "default::deadline")]
    pub deadline: Seconds,
    /// How long the application may take to load.
    #[serde(default = "default::start_limit")]
    #[schemars(with = "String", default = "default::start_limit")]
    pub start_limit: Seconds,
    /// Requests after which a worker is replaced; 0 for never. Each worker draws up to a tenth
    /// less, so that they do not all go at once.
    #[serde(default)]
    pub max_requests: u64,
    /// Age at which a worker is replaced, such as `"1h"`; up to a tenth less by lot. Looked at
    /// every second, and never while the worker is at a request. Default: never.
    #[schemars(with = "Option<String>")]
    pub max_age: Option<Seconds>,
    /// Resident memory at which a worker is replaced, such as `"300MB"`, as `ps` shows it: what it
    /// shares with its parent counts. Looked at every second, and never while the worker is at a
    /// request. Default: never.
    #[schemars(with = "Option<String>")]
    pub max_memory: Option<ByteSize>,
    /// The largest request body; a larger one is answered 413.
    #[serde(default = "default::body_limit")]
    #[schemars(with = "String", default = "default::body_limit")]
    pub body_limit: ByteSize,
    /// Directories from which the application may have files sent by name, with `X-Sendfile`. Files
    /// that it has opened itself and returns as its response need none. Default: none.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub sendfile: Vec<Spanned<String>>,
}

/// Which request goes where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// The path and everything below it: `/static` means `/static` and `/static/…`, not `/statics`.
    #[schemars(with = "String")]
    pub path: Spanned<String>,
    /// Places to look, in order; the first that has the answer gives it. `store`: the item whose
    /// key is the request target. `files:DIR`: the file of that path below the directory.
    /// `lua:FILE`: the script ([lua.md](lua.md)). `app:NAME`: the application, which always
    /// answers. `proxy:NAME`: the upstream, which always answers, too. Needed, unless there is a
    /// `redirect`.
    #[serde(default, rename = "try")]
    #[schemars(with = "Vec<String>")]
    pub places: Vec<Spanned<String>>,
    /// Fields of all responses, errors included, such as `{ "X-Frame-Options" = "DENY" }`; they
    /// take the place of fields of the same name. `""` removes one.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Sends clients on to another path or site: `"/new"` or `"https://example.org/"`. What follows
    /// the route's path, and the query, are kept. No place is asked, and no password.
    #[schemars(with = "Option<String>")]
    pub redirect: Option<Spanned<String>>,
    /// The status of a redirect: 301, 302, 303, 307 or 308.
    #[serde(default = "default::redirect_status")]
    #[schemars(with = "u16", default = "default::redirect_status_plain")]
    pub redirect_status: Spanned<u16>,
    /// The path, written decoded, that places see instead of the route's own: with `path = "/shop"`
    /// and `rewrite = "/v2"` they look for `/v2/cart` when `/shop/cart` is asked for. With `rewrite
    /// = "/"` an application is mounted there, with the route's path in `SCRIPT_NAME`.
    #[schemars(with = "Option<String>")]
    pub rewrite: Option<Spanned<String>>,
    /// Pages that stand in for Kirin's own error texts, by status: `{ 404 = "/errors/404.html", 5xx
    /// = "/errors/sorry.html" }`. They are paths of this site, found in the store or in files; the
    /// status stays.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub error_pages: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Whether `error_pages` stand in for errors that an application or a stored response gives,
    /// too.
    #[serde(default)]
    pub intercept_errors: bool,
    /// A file of names and passwords, as `htpasswd -B` makes it, for visitors to give one of
    /// (bcrypt, SHA-crypt or Argon2). Applications find the name in `REMOTE_USER`. Read anew when
    /// it has changed.
    #[schemars(with = "Option<String>")]
    pub basic_auth: Option<Spanned<String>>,
    /// What the password is for, as browsers show it.
    #[serde(default = "default::basic_auth_realm")]
    #[schemars(with = "String", default = "default::basic_auth_realm_plain")]
    pub basic_auth_realm: Spanned<String>,
    /// Whether a directory without an index page shows a list of its files.
    #[serde(default)]
    pub listing: bool,
    /// Which symbolic links that lead out of a directory of `files:` are followed: `"owner"` for
    /// those whose owner also owns what they lead to, `true` for all, `false` for none
    /// ([files.md](files.md#symbolic-links)).
    #[serde(default)]
    #[schemars(with = "bool")]
    pub follow_links: files::FollowLinksConfig,
    /// The largest request body; a larger one is answered 413. Default: what the application's own
    /// `body_limit` says; for an upstream none.
    #[schemars(with = "Option<String>")]
    pub body_limit: Option<ByteSize>,
    /// Whether a request's body is read whole before an upstream hears of it, so that its servers
    /// do not wait for slow clients. Otherwise it is passed on as it comes. Applications always get
    /// whole bodies. With it `body_limit` is `"64MB"` if nobody says otherwise. Default: `true` if
    /// a server of the upstream has `max_in_flight`, but for gRPC; otherwise `false`.
    pub request_buffering: Option<bool>,
    /// Limits on the rate of requests, such as `[{ rate = "10/s", burst = 20 }]`; a request above
    /// any of them is answered 429 with `Retry-After`. All places of the route count.
    #[serde(default)]
    #[schemars(with = "Vec<RateLimitConfig>")]
    pub rate_limit: Vec<RateLimitConfig>,
    /// Whether the directives in `text/html` are carried out: includes, variables, conditions
    /// ([ssi.md](ssi.md)). Default: in pages that a program has written into the store, and not in
    /// files and what applications, other servers and scripts answer, stored or not; `true` and
    /// `false` are for all places of the route.
    pub ssi: Option<bool>,
    /// Whether the tags of ESI in `text/html` are carried out: includes, variables
    /// ([esi.md](esi.md)). For all places of the route. Default: `false`.
    #[serde(default)]
    pub esi: bool,
    /// Compression for clients that accept it: `true`, `false`, or the codings to use, such as
    /// `["br", "gzip"]`. Default: on for the store and files, off for applications; `true` and a
    /// list are for all places of the route. Read
    /// [compression.md](compression.md) on BREACH before it is switched on for an application.
    #[serde(default)]
    #[schemars(with = "Option<bool>")]
    pub compress: CompressKey,
    /// Whether answers of the route's application or other server are kept in the store's memory
    /// and given to others, as their `Cache-Control` allows: `true`, or a table of what follows
    /// below ([cache.md](cache.md)).
    #[serde(default)]
    #[schemars(with = "Option<bool>")]
    pub cache: cache::Cache,
}

/// A limit on the rate of requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimitConfig {
    /// What requests are counted by: `address` (of IPv6 the /64), `header:NAME` or `cookie:NAME`. A
    /// request without the header or cookie counts for its address.
    #[serde(default = "default::rate_key")]
    #[schemars(with = "String", default = "default::rate_key_plain")]
    pub key: Spanned<String>,
    /// Requests in the long run: a number each `s`, `m` or `h`, such as `"10/s"`.
    #[schemars(with = "String")]
    pub rate: RequestRate,
    /// Requests that may come at once, after a while without.
    #[serde(default = "default::burst")]
    #[schemars(with = "usize", default = "default::burst_plain")]
    pub burst: Spanned<usize>,
}
