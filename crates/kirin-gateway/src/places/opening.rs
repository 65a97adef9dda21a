//! The parts of an event loop that places need when they open.

use std::error::Error;
use std::rc::Rc;
use std::sync::Arc;

use kirin_files::{AppFiles, FileCache};
use kirin_proxy::{ProxyPlace, Upstream};
use kirin_workers::App;

use super::script_turns::ScriptTurns;
use super::status::StatusPage;
use crate::filters::chain::{FilterParts, Filters};
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
    /// The responses with pages of the store.
    pub responses: Rc<PageResponses>,
    /// The items and sessions that pages include.
    pub sources: Rc<IncludeSources>,
    /// The open-file cache of all `files:` places.
    pub file_cache: Rc<FileCache>,
    /// The files that applications hand back.
    pub app_files: Rc<AppFiles>,
    /// The status page of the program.
    pub status_page: StatusPage,
    /// The turns of scripts.
    pub turns: Rc<ScriptTurns>,
}

impl<'a> PlaceResources<'a> {
    /// Creates the resources. `upstreams` are in the order of the configuration, as `apps` are.
    pub fn new(
        config: &'a GatewayConfig,
        filters: &FilterParts,
        apps: &'a [Arc<App>],
        upstreams: &[Arc<Upstream>],
        status_page: StatusPage,
    ) -> Self {
        let open_upstream =
            |upstream: &Arc<Upstream>| Rc::new(ProxyPlace::open(Arc::clone(upstream)));
        Self {
            config,
            apps,
            upstreams: upstreams.iter().map(open_upstream).collect(),
            responses: Rc::clone(&filters.responses),
            sources: Rc::clone(&filters.sources),
            file_cache: Rc::new(FileCache::new(config.open_file_cache)),
            app_files: Rc::new(AppFiles::new(&config.open_file_cache)),
            status_page,
            turns: Rc::default(),
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
