//! Opening the places of a route from their configuration.

use std::rc::Rc;
use std::sync::Arc;

use kirin_files::{AppFiles, Files, FilesConfig, FilesError};
use kirin_lua::LuaError;
use kirin_workers::App;

use super::Place;
use super::app::AppPlace;
use super::files::FilesPlace;
use super::hidden_scripts::HiddenScripts;
use super::lua::{LuaPlace, ScriptSettings};
use super::proxy::ProxyPlace;
use super::script_turns::ScriptTurns;
use super::store::{StorePlace, Terms};
use crate::filters::chain::Filters;
use crate::filters::ssi::source::IncludeSources;
use crate::pages::page_response::PageResponses;
use crate::request::answers::PlaceNumber;
use crate::routing::settings::{PlaceConfig, RouteConfig, SiteConfig};

/// The resources that the places of all routes of one event loop share.
pub struct PlaceResources<'a> {
    /// The configuration of the site.
    pub site: &'a SiteConfig,
    /// The applications, in the order of the configuration.
    pub apps: &'a [Arc<App>],
    /// The upstreams, in the order of the configuration. Routes share their connections.
    pub upstreams: Vec<Rc<kirin_proxy::ProxyPlace>>,
    /// The responses with pages of the store.
    pub responses: Rc<PageResponses>,
    /// The items and sessions that pages include.
    pub sources: Rc<IncludeSources>,
    /// The files that applications hand back.
    pub app_files: Rc<AppFiles>,
    /// The turns of scripts.
    pub turns: Rc<ScriptTurns>,
}

/// The reason for which a place of a route cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Its directory.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// Its script.
    #[error(transparent)]
    Lua(#[from] LuaError),
}

/// Opens the place `number` of `route`. This is the registration of all places.
pub fn open(
    route: &RouteConfig,
    number: PlaceNumber,
    filters: &Rc<Filters>,
    resources: &PlaceResources<'_>,
) -> Result<Box<dyn Place>, PlaceError> {
    let (filters, site) = (Rc::clone(filters), resources.site);
    let body_limit_bytes = route.body_limit_bytes;
    Ok(match &route.places[number.place] {
        PlaceConfig::Store => {
            let behind = &route.places[number.place + 1..];
            let terms = Terms {
                codings: route.compress.for_pages(),
                is_last: behind.is_empty(),
                is_renewable: !behind.is_empty() && route.places.iter().any(PlaceConfig::runs_code),
                includes: route.ssi.unwrap_or(true),
            };
            let responses = Rc::clone(&resources.responses);
            Box::new(StorePlace::new(responses, Rc::clone(&resources.sources), terms))
        }
        PlaceConfig::Files(root) => {
            let files = Files::open(FilesConfig {
                follow_links: route.follow_links,
                listing: route.listing,
                compress: route.compress.for_shared(),
                ..FilesConfig::new(root)
            })?;
            let hidden = HiddenScripts::new(&site.script_extensions);
            Box::new(FilesPlace::new(files, hidden, filters, route.path.clone()))
        }
        PlaceConfig::App(index) => {
            let (app, files) =
                (Arc::clone(&resources.apps[*index]), Rc::clone(&resources.app_files));
            Box::new(AppPlace::new(app, files, body_limit_bytes, filters))
        }
        PlaceConfig::Lua(file) => {
            let settings = ScriptSettings {
                file: file.clone(),
                session_cookie: site.session_cookie.clone(),
                limits: site.lua,
                body_limit_bytes,
            };
            let (store, turns) = (resources.responses.store(), &resources.turns);
            Box::new(LuaPlace::open(settings, number, store, turns, filters)?)
        }
        PlaceConfig::Proxy(index) => {
            let upstream = Rc::clone(&resources.upstreams[*index]);
            let buffering = route.request_buffering;
            Box::new(ProxyPlace::new(upstream, buffering, body_limit_bytes, filters))
        }
    })
}
