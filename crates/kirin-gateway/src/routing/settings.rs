//! The configuration of the gateway: the routes, and what holds for all of them.

use std::borrow::Cow;
use std::sync::Arc;

use kirin_cgi_programs::ProgramSettings;
use kirin_files::{CacheLimits, FollowLinks, MediaTypes};
use kirin_http::{PeerSet, ResponseLog};
use kirin_proxy::BodyBuffering;
use kirin_ssi::Syntax;
use kirin_store::NamespaceNames;

use crate::filters::cache::settings::CacheSettings;
use crate::filters::compress_codings::Compress;
use crate::filters::mirror::settings::MirrorSettings;
use crate::filters::push::reach::ReachableRoute;
use crate::places::kind::{PlaceConfig, STORE};
use crate::routing::conditions::RouteConditions;
use crate::routing::host_table::HostTable;
use crate::routing::path_pattern::PathPattern;
use crate::routing::protection::Protection;
use crate::routing::route_table::RouteTable;
use crate::routing::rules::Rules;

/// The sites, and what holds for all of them.
#[derive(Debug)]
pub struct GatewayConfig {
    /// The sites.
    pub sites: Vec<SiteConfig>,
    /// The hosts of the sites.
    pub hosts: Arc<HostTable>,
    /// The namespaces of the sites.
    pub namespaces: NamespaceNames,
    /// The cookie that names the visitor's session.
    pub session_cookie: Option<Arc<str>>,
    /// The peers that may purge by HTTP.
    pub purge_from: PeerSet,
    /// The limits of scripts.
    pub lua: kirin_lua::Limits,
    /// File name extensions that a `files:` place must not serve: those of all FastCGI upstreams.
    pub script_extensions: Vec<String>,
    /// The limits of the open-file caches of each event loop.
    pub open_file_cache: CacheLimits,
}

/// A site: the routes that answer requests for its hosts.
#[derive(Debug)]
pub struct SiteConfig {
    /// The name of its part of the store. `None`: the root.
    pub name: Option<String>,
    /// Whether each host that a wildcard matches has a part of the store of its own.
    pub separates_hosts: bool,
    /// The routes, in the order of the file.
    pub routes: Vec<RouteConfig>,
    /// The table that finds a route. All loops share it.
    pub table: Arc<RouteTable>,
}

impl GatewayConfig {
    /// Returns what metrics and reports call a site: its name in the store, or else its first
    /// wildcard. Returns `None` for a site without a name that has all hosts that no other has.
    pub fn site_label(&self, site: usize) -> Option<Cow<'_, str>> {
        let name = self.sites.get(site)?.name.as_deref();
        name.map(Cow::Borrowed).or_else(|| self.hosts.first_wildcard(site).map(Cow::Owned))
    }
}

/// A route.
#[derive(Debug)]
pub struct RouteConfig {
    /// Its number, which no other route has while the program runs.
    pub number: u32,
    /// The paths that the route is for.
    pub path: PathPattern,
    /// What a request must have besides.
    pub conditions: RouteConditions,
    /// The places, in the order in which they are asked.
    pub places: Vec<PlaceConfig>,
    /// The route of the place that `auth_request` asks, if it asks a place.
    pub authority: Option<Box<RouteConfig>>,
    /// Whether directories are listed.
    pub listing: bool,
    /// Which links that lead out of its directories are followed.
    pub follow_links: FollowLinks,
    /// The access log of its responses. Logs of routes have numbers in the configuration.
    pub log: ResponseLog,
    /// Whether compressed variants beside files are sent.
    pub precompressed: bool,
    /// The names of index pages.
    pub index: Vec<String>,
    /// The path of the page for navigations that no place answers, percent-encoded.
    pub fallback: Option<String>,
    /// Whether its files never change.
    pub immutable: bool,
    /// The media types of files.
    pub media_types: Arc<MediaTypes>,
    /// The rules around the places.
    pub rules: Arc<Rules>,
    /// The largest request body, in bytes.
    pub body_limit_bytes: Option<u64>,
    /// Whether an upstream gets complete bodies only.
    pub request_buffering: BodyBuffering,
    /// The codings of responses.
    pub compress: Compress,
    /// The cache, if responses are cached.
    pub cache: Option<Arc<CacheSettings>>,
    /// The mirror, if another upstream gets copies of requests.
    pub mirror: Option<Arc<MirrorSettings>>,
    /// The settings of its CGI programs, if it has a place with such programs.
    pub programs: Option<ProgramSettings>,
    /// Whether SSI directives are carried out. By default they are in pages of the store only.
    pub ssi: Option<bool>,
    /// Whether ESI tags are carried out.
    pub esi: bool,
}

impl RouteConfig {
    /// Returns a route with one place and no other key, which no path leads to. It has no number,
    /// because nothing counts its requests for themselves.
    pub fn unreachable(path: PathPattern, place: PlaceConfig) -> Self {
        Self {
            number: u32::MAX,
            path,
            conditions: RouteConditions::default(),
            places: vec![place],
            authority: None,
            listing: false,
            follow_links: FollowLinks::Inside,
            log: ResponseLog::None,
            precompressed: false,
            index: Vec::new(),
            fallback: None,
            immutable: false,
            media_types: Arc::default(),
            rules: Arc::default(),
            body_limit_bytes: None,
            request_buffering: BodyBuffering::Off,
            compress: Compress::default(),
            cache: None,
            mirror: None,
            programs: None,
            ssi: None,
            esi: false,
        }
    }

    /// Returns the directives that are carried out in what files and code answer. In pages of the
    /// store, SSI is on by default.
    pub fn syntax(&self) -> Syntax {
        Syntax { ssi: self.ssi == Some(true), esi: self.esi }
    }

    /// Returns whether Kirin looks for directives in the responses of files and code.
    pub fn has_directives(&self) -> bool {
        self.syntax() != Syntax::default()
    }

    /// Returns what decides which keys of the store the route serves.
    pub fn reachable(&self) -> ReachableRoute {
        ReachableRoute {
            rewrite: self.rules.rewrite.clone(),
            has_store: self.places.iter().any(|place| place.kind.name == STORE),
            protection: self.protection(),
        }
    }

    /// Returns the conditions that a request has passed when the places of the route are asked,
    /// without those of its client.
    pub fn protection(&self) -> Protection {
        let name = format!("{} {}", self.path, self.conditions);
        Protection::from_rules(name.trim_end(), &self.rules)
    }
}
