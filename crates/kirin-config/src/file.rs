//! The keys of a configuration file, as a user writes them.
//!
//! The doc comment of each key is its entry in `docs/configuration.md`, which is made from here.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::admin::AdminSection;
use crate::app::AppSection;
use crate::files::OpenFileCacheSection;
use crate::listener::{ListenerSection, MAX_CONNECTIONS};
use crate::lua::LuaSection;
use crate::route::RouteSection;
use crate::site::SiteSection;
use crate::store::StoreSection;
use crate::traces::TracesSection;
use crate::units::{ByteSize, Number};
use crate::upstream::UpstreamSection;
use crate::written::Written;

/// The largest number of event loops: more than any machine has cores.
const MAX_THREADS: u64 = 1024;

/// The complete file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// Other files of the configuration, such as `["sites/*.toml", "apps.toml"]`
    /// ([configuration-files.md](configuration-files.md)).
    #[serde(default)]
    #[expect(dead_code, reason = "the files are read before the keys")]
    pub include: Vec<Written<String>>,
    /// The number of event loops. Each is a thread that serves its own connections. Default: the
    /// number of cores that the process may use.
    pub threads: Option<Number<1, MAX_THREADS>>,
    /// The user that Kirin and its applications run as, once Kirin has opened its ports and logs.
    /// Only root can become another user. Default: the user that starts Kirin.
    pub user: Option<Written<String>>,
    /// The most client connections of all listeners together. Further connections wait until others
    /// end. Default: the limit on open files (`ulimit -n`) minus those of `[open_file_cache]`, and
    /// minus an eighth of the limit, but at most minus 512. These descriptors remain for workers.
    pub connections: Option<Number<1, MAX_CONNECTIONS>>,
    /// The most bytes that Kirin holds for its clients.
    #[serde(default)]
    pub limits: LimitsSection,
    /// The addresses that Kirin listens on.
    #[serde(default)]
    pub listener: Vec<ListenerSection>,
    /// The store: items in memory, which any memcached client can write.
    #[serde(default)]
    pub store: StoreSection,
    /// The admin listener, for operators: purging and status. Default: a unix socket in a directory
    /// of the user that serves.
    pub admin: Option<AdminSection>,
    /// The collector that gets the traces of requests. Default: none.
    pub traces: Option<TracesSection>,
    /// An address for Prometheus: `HOST:PORT`, `*:PORT` or `unix:PATH`. `GET /metrics` answers
    /// there with the [metrics](metrics.md), and nothing else does. There is no password, so use an
    /// address that only your own network reaches. Default: none. The admin listener answers it
    /// too.
    pub metrics: Option<Written<String>>,
    /// Patterns of paths, such as `["/@{user}", "/static/*"]`, by which `kirin top` and the status
    /// page group requests. The first that matches counts. A variable in braces stands for a part
    /// of one segment; `*` as the last segment stands for the rest of the path. A query names the
    /// parameters that matter: `/gitweb?a`, `/doku.php?id&do`. Kirin finds other patterns by itself
    /// ([top.md](top.md#url-patterns)).
    #[serde(default)]
    pub url_patterns: Vec<Written<String>>,
    /// The applications, each with its own workers.
    #[serde(default)]
    pub app: Vec<AppSection>,
    /// What Kirin remembers of files between requests.
    #[serde(default)]
    pub open_file_cache: OpenFileCacheSection,
    /// The limits of scripts.
    #[serde(default)]
    pub lua: LuaSection,
    /// Other HTTP servers.
    #[serde(default)]
    pub upstream: Vec<UpstreamSection>,
    /// Which request goes where. Kirin takes the route with the most specific
    /// matching `path`. These
    /// routes are for all hosts that no `[[site]]` has. Without them, such a request is answered
    /// 421.
    #[serde(default)]
    pub route: Vec<RouteSection>,
    /// Sites: hosts, each with its own routes.
    #[serde(default)]
    pub site: Vec<SiteSection>,
}

/// The most bytes that Kirin holds for its clients: request bodies, responses that clients have not
/// taken yet, and the files in which either waits. No address may hold more than what is left for
/// all others. A request that finds no room is answered 503, and a response that finds none is cut.
/// When three quarters are taken, Kirin cuts the connections of the address that holds most.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    /// Memory. Pages and files that clients share are not counted.
    pub client_memory: ByteSize,
    /// Space in temporary files.
    pub client_disk: ByteSize,
}

impl Default for LimitsSection {
    fn default() -> Self {
        Self { client_memory: ByteSize(256 << 20), client_disk: ByteSize(4 << 30) }
    }
}
