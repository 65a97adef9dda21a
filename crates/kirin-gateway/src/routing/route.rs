//! A route with everything it names opened.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use crate::routing::rate_limit::RateLimit;
use http::{Method, StatusCode};
use kirin_files::{AppFiles, Files, FilesConfig, FilesError};
use kirin_http::{Answer, AnsweredBy, Body, Origin, RequestHead, Response};
use kirin_lua::LuaError;
use kirin_proxy::{BodyBuffering, ProxyPlace};
use kirin_ssi::Syntax;
use kirin_store::{Now, Store};
use kirin_workers::{App, MetaVariables};

use crate::filters::cache::Ask;
use crate::filters::cache::settings::CacheSettings;
use crate::filters::compress_codings::Compress;
use crate::filters::push::PushTerms;
use crate::places::hidden_scripts::HiddenScripts;
use crate::places::lua::LuaPlace;
use crate::places::script_turns::ScriptTurns;
use crate::places::store::{StorePlace, Terms};
use crate::request::subrequest::Lineage;
use crate::routing::protection::Protection;
use crate::routing::rules::Rules;
use crate::routing::settings::{PlaceSite, RouteSite, SiteConfig};

/// What places without code answer, as the value of `Allow`.
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// What a server with applications may answer.
const ALLOW_WITH_APPS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// One route of one loop.
pub struct Route {
    /// Decoded, without a slash at its end; empty for `/`.
    pub path: String,
    /// Where to look.
    pub places: Vec<Place>,
    /// None if the route only names places.
    pub rules: Option<Arc<Rules>>,
    body_limit_bytes: Option<u64>,
    /// Whether an upstream gets whole bodies only.
    pub request_buffering: BodyBuffering,
    rate_limits: Vec<Arc<RateLimit>>,
    /// What is compressed.
    pub compress: Compress,
    /// How answers are kept.
    pub cache: Option<Arc<CacheSettings>>,
    /// What directives are carried out in: not said, pages of the store.
    ssi: Option<bool>,
    esi: bool,
    /// What a request of this route has passed when its places are asked.
    pub protection: Protection,
}

/// A place, opened.
pub enum Place {
    /// The store.
    Store,
    /// A directory.
    Files(Box<Files>, HiddenScripts),
    /// An application.
    App(Arc<App>),
    /// A script.
    Lua(Box<LuaPlace>),
    /// An upstream.
    Proxy(Rc<ProxyPlace>),
}

/// A place of a route that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// A directory.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// A script.
    #[error(transparent)]
    Lua(#[from] LuaError),
}

impl Route {
    /// Opens what `route` names. `apps` and `upstreams` are in the order of the configuration.
    pub fn open(
        route: &RouteSite,
        apps: &[Arc<App>],
        upstreams: &[Rc<ProxyPlace>],
        store: &Arc<Store>,
        site: &SiteConfig,
        turns: &Rc<ScriptTurns>,
    ) -> Result<Self, PlaceError> {
        let mut places = Vec::new();
        for place in &route.places {
            places.push(match place {
                PlaceSite::Store => Place::Store,
                PlaceSite::Files(root) => {
                    let (listing, compress) = (route.listing, route.compress.of_shared());
                    let follow_links = route.follow_links;
                    let config =
                        FilesConfig { follow_links, listing, compress, ..FilesConfig::new(root) };
                    Place::Files(
                        Box::new(Files::open(config)?),
                        HiddenScripts::new(&site.script_extensions),
                    )
                }
                PlaceSite::App(index) => Place::App(Arc::clone(&apps[*index])),
                PlaceSite::Lua(file) => {
                    let (sessions, limit) = (site.session_cookie.clone(), route.body_limit_bytes);
                    let script =
                        LuaPlace::open(file.clone(), store, sessions, site.lua, limit, turns)?;
                    Place::Lua(Box::new(script))
                }
                PlaceSite::Proxy(index) => Place::Proxy(Rc::clone(&upstreams[*index])),
            });
        }
        let rules = (!route.rules.is_empty()).then(|| Arc::clone(&route.rules));
        let protection =
            Protection::of_route(&route.path, &route.rules, !route.rate_limits.is_empty());
        Ok(Self {
            path: route.path.clone(),
            places,
            rules,
            body_limit_bytes: route.body_limit_bytes,
            request_buffering: route.request_buffering,
            rate_limits: route.rate_limits.clone(),
            compress: route.compress,
            cache: route.cache.clone(),
            ssi: route.ssi,
            esi: route.esi,
            protection,
        })
    }

    /// Whether `path`, as it is meant, is this route's or below it.
    pub fn is_for(&self, path: &[u8]) -> bool {
        path.strip_prefix(self.path.as_bytes())
            .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    /// What directives are carried out in what files and applications answer; in pages of the
    /// store, SSI is on by itself.
    pub fn syntax(&self) -> Syntax {
        Syntax { ssi: self.ssi == Some(true), esi: self.esi }
    }

    /// Whether what files and applications answer is looked at for directives.
    pub fn has_filter(&self) -> bool {
        self.syntax() != Syntax::default()
    }

    /// How it wants the store asked.
    pub fn store_terms(&self, is_last: bool) -> Terms {
        let runs_code =
            |place: &Place| matches!(place, Place::App(_) | Place::Lua(_) | Place::Proxy(_));
        Terms {
            codings: self.compress.of_pages(),
            is_last,
            is_renewable: !is_last && self.places.iter().any(runs_code),
            includes: self.ssi.unwrap_or(true),
        }
    }

    /// What it says of pages that its application stores for a request.
    pub fn push_terms(&self, origin: Origin<'_>) -> PushTerms {
        PushTerms { syntax: self.syntax(), protection: self.protection.with_client(origin.client) }
    }

    /// Counts a client's request; gives the refusal when it is one too many.
    pub fn admit(
        &self,
        request: &RequestHead<'_>,
        origin: Origin<'_>,
        lineage: &Lineage,
    ) -> Result<(), Response> {
        if self.rate_limits.is_empty() || lineage.is_subrequest() {
            return Ok(());
        }
        let now = Instant::now();
        for limit in &self.rate_limits {
            limit.count(request, origin.peer, now).map_err(|too_many| {
                let mut response = Response::error(StatusCode::TOO_MANY_REQUESTS);
                // Whole seconds, after which there is room indeed (RFC 6585 section 4).
                let seconds = too_many.retry_after.as_secs() + 1;
                response.fields.push("Retry-After", seconds.to_string());
                response
            })?;
        }
        Ok(())
    }

    /// The answer of an application or an upstream, which reads no more of the body than the route
    /// allows.
    pub fn limit_body(&self, answer: Answer) -> Answer {
        limit_body(answer, self.body_limit_bytes)
    }

    /// What asks an application, also when the request has been answered.
    pub fn ask_app(&self, app: &Arc<App>, files: &Rc<AppFiles>, meta: &MetaVariables<'_>) -> Ask {
        let (app, files, limit_bytes) = (Arc::clone(app), Rc::clone(files), self.body_limit_bytes);
        let script_name = meta.script_name.to_owned();
        let (path, user) = (meta.path.map(str::to_owned), meta.user.map(str::to_owned));
        Rc::new(move |request, origin| {
            let (path, user) = (path.as_deref(), user.as_deref());
            let meta = MetaVariables { script_name: &script_name, path, user };
            limit_body(app.answer(request, origin, &files, &meta), limit_bytes)
        })
    }

    /// What asks an upstream, likewise; its servers get `path`.
    pub fn ask_proxy(&self, proxy: &Rc<ProxyPlace>, path: &str, meta: &MetaVariables<'_>) -> Ask {
        let (proxy, path, buffered) = (Rc::clone(proxy), path.to_owned(), self.request_buffering);
        let limit_bytes = self.body_limit_bytes;
        let script_name = meta.script_name.to_owned();
        let (path_info, user) = (meta.path.map(str::to_owned), meta.user.map(str::to_owned));
        Rc::new(move |request, origin| {
            let (path_info, user) = (path_info.as_deref(), user.as_deref());
            let meta = MetaVariables { script_name: &script_name, path: path_info, user };
            let target = match request.query {
                Some(query) => format!("{path}?{query}"),
                None => path.clone(),
            };
            limit_body(proxy.answer(request, &target, origin, &meta, buffered), limit_bytes)
        })
    }

    /// Whether the last of its places answers everything.
    pub fn answers_all(&self) -> bool {
        matches!(self.places.last(), Some(Place::App(_) | Place::Proxy(_)))
    }

    /// No place had the answer: there is nothing of that name, or nothing that takes the method.
    pub fn nobody_answered(
        &self,
        request: &RequestHead<'_>,
        store: &StorePlace,
        origin: Origin<'_>,
    ) -> Response {
        let (now, protection) =
            (Now::from_unix_seconds(origin.now), self.protection.with_client(origin.client));
        let is_there = |place: &Place| match place {
            Place::Store => store.has(request, protection, now),
            Place::Files(_, hidden) if hidden.hide(request.path) => false,
            Place::Files(files, _) => files.has(request, Instant::now()),
            Place::App(_) | Place::Lua(_) | Place::Proxy(_) => false,
        };
        if request.is_get_or_head() || !self.places.iter().any(is_there) {
            return Response::error(StatusCode::NOT_FOUND);
        }
        match request.method {
            Method::OPTIONS => options(ALLOW),
            _ => {
                let mut response = Response::error(StatusCode::METHOD_NOT_ALLOWED);
                response.fields.push("Allow", ALLOW);
                response
            }
        }
    }
}

fn limit_body(answer: Answer, limit_bytes: Option<u64>) -> Answer {
    match (answer, limit_bytes) {
        (Answer::Later(later), Some(limit)) => Answer::Later(Box::new(move |mut body| {
            body.limit(limit);
            later(body)
        })),
        (answer, _) => answer,
    }
}

/// `OPTIONS *`: about the server as a whole (RFC 9110 section 9.3.7).
pub fn server_options(has_apps: bool) -> Response {
    options(if has_apps { ALLOW_WITH_APPS } else { ALLOW })
}

fn options(allow: &'static str) -> Response {
    let mut response = Response::new(AnsweredBy::SERVER, StatusCode::NO_CONTENT, Body::Empty);
    response.fields.push("Allow", allow);
    response
}
