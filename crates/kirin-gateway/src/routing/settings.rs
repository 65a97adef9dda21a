//! What configures the gateway: the routes, and what holds for all of them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::routing::rate_limit::RateLimit;
use kirin_files::FollowLinks;
use kirin_http::TrustedPeers;
use kirin_proxy::BodyBuffering;

use crate::filters::cache::settings::CacheSettings;
use crate::filters::compress_codings::Compress;
use crate::routing::rules::Rules;

/// The routes of a site, and what holds for all of them.
#[derive(Debug)]
pub struct SiteConfig {
    /// The routes, longest path first.
    pub routes: Vec<RouteSite>,
    /// The cookie that names the visitor's session.
    pub session_cookie: Option<Arc<str>>,
    /// The peers that may purge by HTTP.
    pub purge_from: TrustedPeers,
    /// The limits of scripts.
    pub lua: kirin_lua::Limits,
    /// File name extensions that a `files:` place must not serve: those of all FastCGI upstreams.
    pub script_extensions: Vec<String>,
}

/// A route.
#[derive(Debug)]
pub struct RouteSite {
    /// Path without a slash at its end; empty for `/`.
    pub path: String,
    /// Where to look, in order.
    pub places: Vec<PlaceSite>,
    /// Whether directories are listed.
    pub listing: bool,
    /// Which links that lead out of its directories are followed.
    pub follow_links: FollowLinks,
    /// What it says besides.
    pub rules: Arc<Rules>,
    /// Largest request body in bytes.
    pub body_limit_bytes: Option<u64>,
    /// Whether an upstream gets whole bodies only.
    pub request_buffering: BodyBuffering,
    /// Limits on the rate of requests; shared by all loops.
    pub rate_limits: Vec<Arc<RateLimit>>,
    /// What is compressed.
    pub compress: Compress,
    /// How answers are kept.
    pub cache: Option<Arc<CacheSettings>>,
    /// What directives are carried out in.
    pub ssi: Option<bool>,
    /// Whether tags of ESI are carried out.
    pub esi: bool,
}

/// A place of a route.
#[derive(Debug, PartialEq, Eq)]
pub enum PlaceSite {
    /// The store.
    Store,
    /// A directory.
    Files(PathBuf),
    /// The application of this index.
    App(usize),
    /// A script.
    Lua(PathBuf),
    /// The upstream of this index.
    Proxy(usize),
}
