//! The parts of an event loop that places need when they open.

use std::error::Error;
use std::rc::Rc;
use std::sync::Arc;

use kirin_files::{AppFiles, FileCache};
use kirin_origin::{NearStore, Scratch};
use kirin_proxy::{ProxyPlace, Upstream};
use kirin_workers::App;

use super::script_turns::ScriptTurns;
use super::status::StatusPage;
use crate::filters::chain::{FilterParts, Filters};
use crate::filters::mirror::route_mirror::RouteMirror;
use crate::filters::ssi::source::IncludeSources;
use crate::pages::page_response::PageResponses;
use crate::request::answers::PlaceNumber;
use crate::routing::settings::{GatewayConfig, RouteConfig};

/// The resources that the places of all routes of one event loop share.
pub struct PlaceResources<'a> {
    /// The settings of all sites.
    pub config: &'a GatewayConfig,
    /// The applications, in the order of the configuration.
    pub apps: &'a [Arc<App>],
    /// The upstreams, in the order of the configuration. Routes share their connections.
    pub upstreams: Vec<Rc<ProxyPlace>>,
    /// What places of another configuration share with these.
    pub shared: SharedParts,
    /// The responses with pages of the store.
    pub responses: Rc<PageResponses>,
    /// The items and sessions that pages include.
    pub sources: Rc<IncludeSources>,
    /// The status page of the program.
    pub status_page: StatusPage,
}

/// The parts of an event loop that stay when its routes are opened again.
#[derive(Clone)]
pub struct SharedParts {
    /// The open-file cache of all `files:` places.
    pub file_cache: Rc<FileCache>,
    /// The files that applications hand back.
    pub app_files: Rc<AppFiles>,
    /// The turns of scripts.
    pub turns: Rc<ScriptTurns>,
    /// Where scripts change items of the server behind the store, if there is one.
    pub scratch: Option<Rc<Scratch>>,
    /// The connections to upstreams.
    proxies: Vec<(Arc<Upstream>, Rc<ProxyPlace>)>,
}

impl SharedParts {
    /// Returns the parts for a configuration with these upstreams: those of `before` as far as
    /// nothing about them has changed.
    fn new(
        config: &GatewayConfig,
        near: &NearStore,
        upstreams: &[Arc<Upstream>],
        before: Option<&Self>,
    ) -> Self {
        let limits = config.open_file_cache;
        let same_limits = before.filter(|before| *before.file_cache.limits() == limits);
        let proxy_of = |upstream: &Arc<Upstream>| {
            let known = before.into_iter().flat_map(|before| &before.proxies);
            let known = known.clone().find(|(known, _)| Arc::ptr_eq(known, upstream));
            let open = || Rc::new(ProxyPlace::open(Arc::clone(upstream)));
            (Arc::clone(upstream), known.map_or_else(open, |(_, proxy)| Rc::clone(proxy)))
        };
        let (file_cache, app_files) = match same_limits {
            Some(before) => {
                before.file_cache.forget_gone_places();
                (Rc::clone(&before.file_cache), Rc::clone(&before.app_files))
            }
            None => (Rc::new(FileCache::new(limits)), Rc::new(AppFiles::new(&limits))),
        };
        Self {
            file_cache,
            app_files,
            scratch: match before {
                Some(before) => before.scratch.clone(),
                None => near.origin().map(|origin| {
                    let limit = near.store().item_limit_bytes();
                    Rc::new(Scratch::new(Arc::clone(origin), limit))
                }),
            },
            turns: before.map(|before| Rc::clone(&before.turns)).unwrap_or_default(),
            proxies: upstreams.iter().map(proxy_of).collect(),
        }
    }
}

impl<'a> PlaceResources<'a> {
    /// Creates the resources. `upstreams` are in the order of the configuration, as `apps` are.
    /// `before` are the parts of the routes that are open already.
    pub fn new(
        config: &'a GatewayConfig,
        filters: &FilterParts,
        apps: &'a [Arc<App>],
        upstreams: &[Arc<Upstream>],
        status_page: StatusPage,
        before: Option<&SharedParts>,
    ) -> Self {
        let shared = SharedParts::new(config, filters.responses.near(), upstreams, before);
        Self {
            config,
            apps,
            upstreams: shared.proxies.iter().map(|(_, proxy)| Rc::clone(proxy)).collect(),
            shared,
            responses: Rc::clone(&filters.responses),
            sources: Rc::clone(&filters.sources),
            status_page,
        }
    }
}

/// The opening of one place of a route.
pub struct Opening<'a> {
    /// The route.
    pub route: &'a RouteConfig,
    /// The number of the place.
    pub number: PlaceNumber,
    /// The filters of the route.
    pub filters: &'a Rc<Filters>,
    /// The mirror of the route.
    pub mirror: Option<&'a Rc<RouteMirror>>,
    /// The resources of the event loop.
    pub resources: &'a PlaceResources<'a>,
}

/// The reason for which a place of a route cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PlaceError(Box<dyn Error + Send + Sync>);

impl PlaceError {
    /// Makes the error of a place from what failed in it.
    pub fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }
}
