//! Routes: a list of places to look, in order; the first that has the answer gives it.
//!
//! One router a loop; it answers every request of the loop's connections. A route that only names
//! places is answered by
//! [`Routes::look`]; what else it says (`redirect`, `basic_auth`, `rewrite`, `error_pages`,
//! `headers`) is done around that by [`Routes::answer_by_rules`].

mod error_pages;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use http::{Method, StatusCode};
use kirin_compress::Codings;
use kirin_files::AppFiles;
use kirin_http::{Answer, Handler, Origin, RequestBody, RequestHead, Response};
use kirin_proxy::{ProxyPlace, Upstream};
use kirin_store::{Now, Store};
use kirin_workers::{App, MetaVariables};

use crate::filters::cache::counters::CacheCounters;
use crate::filters::cache::settings::CacheSettings;
use crate::filters::cache::{Ask, Cache, Looked};
use crate::filters::compress::Compress;
use crate::filters::compress_threads::CompressThreads;
use crate::filters::push::{Push, PushTerms};
use crate::filters::ssi::filter::SsiFilter;
use crate::places::lua::LuaPlace;
use crate::places::store::{StorePlace, key_of};
use crate::purge::requests::PurgeRequests;
use crate::request::kept_request::KeptRequest;
use crate::request::subrequest::{Lineage, Parent};
use crate::routing::basic_auth::Admission;
use crate::routing::path_rest::{self, meant_path};
use crate::routing::route::{self, Place, PlaceError, Route};
use crate::routing::rules::Rules;
use crate::routing::settings::SiteConfig;

/// The routes with everything they name. Answers that come later share it.
pub struct Router(Rc<Routes>);

/// All that a request can be answered by, also one that comes of another request
/// ([`crate::request::subrequest`]).
pub struct Routes {
    /// The longest path first.
    routes: Vec<Route>,
    store: StorePlace,
    cache: Rc<Cache>,
    ssi: SsiFilter,
    push: Rc<Push>,
    purge_requests: PurgeRequests,
    threads: CompressThreads,
    has_apps: bool,
    /// Files that applications hand back.
    app_files: Rc<AppFiles>,
    /// The cookie that names the visitor's session.
    session_cookie: Option<Arc<str>>,
}

/// A request as the places of its route get it.
pub struct Lookup<'a> {
    /// As it was sent: for applications.
    pub sent: &'a RequestHead<'a>,
    /// With its path rewritten: for all others.
    pub seen: &'a RequestHead<'a>,
    /// What applications are told besides.
    pub meta: MetaVariables<'a>,
    /// Whether it comes of another request.
    pub lineage: &'a Lineage,
}

/// A place of a route, by its number.
#[derive(Clone, Copy)]
pub struct At {
    /// Of the route.
    pub route: usize,
    /// Of the place in it.
    pub place: usize,
}

impl Router {
    /// Opens what the routes of `site` name. `apps` and `upstreams` are in the order of the
    /// configuration, to which the places of routes refer. What the caches do is counted in
    /// `counters`.
    pub fn open(
        site: &SiteConfig,
        store: Arc<Store>,
        apps: &[Arc<App>],
        upstreams: &[Arc<Upstream>],
        counters: Arc<CacheCounters>,
    ) -> Result<Self, PlaceError> {
        // Routes share an upstream's connections.
        let proxies: Vec<_> = upstreams
            .iter()
            .map(|upstream| Rc::new(ProxyPlace::open(Arc::clone(upstream))))
            .collect();
        let turns = Rc::default();
        let open = |route| Route::open(route, apps, &proxies, &store, site, &turns);
        let routes = site.routes.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let threads = CompressThreads::default();
        let cache = Cache::new(Arc::clone(&store), threads.clone(), counters);
        let (ssi, push) =
            (SsiFilter::new(Arc::clone(&store)), Push::new(Arc::clone(&store), &routes));
        let purge_requests = PurgeRequests::new(Arc::clone(&store), site.purge_from.clone());
        let store = StorePlace::new(store, threads.clone());
        let has_apps = !apps.is_empty() || !upstreams.is_empty();
        let (app_files, session_cookie) = (Rc::default(), site.session_cookie.clone());
        Ok(Self(Rc::new(Routes {
            routes,
            store,
            cache,
            ssi,
            push,
            purge_requests,
            threads,
            has_apps,
            app_files,
            session_cookie,
        })))
    }
}

impl Handler for Router {
    fn answer(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> Answer {
        self.0.answer(request, origin, &Lineage::default())
    }
}

impl Routes {
    /// Answers a request of a client or, by its `lineage`, one that comes of it.
    pub fn answer(
        self: &Rc<Self>,
        request: &RequestHead<'_>,
        origin: Origin<'_>,
        lineage: &Lineage,
    ) -> Answer {
        let path = match meant_path(request.path) {
            Ok(path) => path,
            Err(status) => return Answer::Now(Response::error(status)),
        };
        let Some(index) = self.find(&path) else {
            return Answer::Now(self.no_route(request));
        };
        let route = &self.routes[index];
        match &route.rules {
            None => {
                if let Err(refusal) = route.admit(request, origin, lineage) {
                    return Answer::Now(refusal);
                }
                let (meta, first) = (MetaVariables::default(), At { route: index, place: 0 });
                self.look(first, &Lookup { sent: request, seen: request, meta, lineage }, origin)
            }
            Some(rules) => self.answer_by_rules(index, rules, request, origin, lineage),
        }
    }

    /// The `ssi` filter.
    pub fn ssi(&self) -> &SsiFilter {
        &self.ssi
    }

    /// The store place.
    pub fn store(&self) -> &StorePlace {
        &self.store
    }

    /// The cookie that names the visitor's session.
    pub fn session_cookie(&self) -> Option<&str> {
        self.session_cookie.as_deref()
    }

    /// The route with the longest path that `path` lies below. The `*` of OPTIONS is for all, which
    /// is the application of `/` if there is one.
    fn find(&self, path: &[u8]) -> Option<usize> {
        if path == b"*" {
            return self.find(b"/").filter(|index| self.routes[*index].answers_all());
        }
        self.routes.iter().position(|route| route.is_for(path))
    }

    fn no_route(&self, request: &RequestHead<'_>) -> Response {
        match request.method {
            Method::OPTIONS if request.path == "*" => route::server_options(self.has_apps),
            _ => Response::error(StatusCode::NOT_FOUND),
        }
    }

    /// Asks one place after the other, beginning with `first`.
    pub fn look(self: &Rc<Self>, first: At, lookup: &Lookup<'_>, origin: Origin<'_>) -> Answer {
        let (now, route) = (Now::from_unix_seconds(origin.now), &self.routes[first.route]);
        if let Some(response) = self.purge_requests.answer(lookup.sent, lookup.seen, origin) {
            return Answer::Now(response);
        }
        for (index, place) in route.places.iter().enumerate().skip(first.place) {
            let is_last = index + 1 == route.places.len();
            let response = match place {
                Place::Store => {
                    let terms = route.store_terms(is_last);
                    let parent = self.parent(route, lookup, origin);
                    match self.store.answer(lookup.seen, now, terms, parent) {
                        Some(answer) => return answer,
                        None => None,
                    }
                }
                Place::Files(_, hidden) if hidden.hide(lookup.seen.path) => None,
                Place::Files(files, _) if route.has_filter() => {
                    let (parent, compress) =
                        (self.parent(route, lookup, origin), route.compress.of_pages());
                    let ask = |request: &RequestHead<'_>| files.answer(request, Instant::now());
                    match self.ssi.around_files(parent, lookup.seen, (compress, &self.threads), ask)
                    {
                        Some(answer) => return answer,
                        None => None,
                    }
                }
                Place::Files(files, _) => files.answer(lookup.seen, Instant::now()),
                Place::Lua(script) => {
                    let at = At { place: index, ..first };
                    match script.answer(self, at, lookup, origin) {
                        // A later answer may be another place's, which has been filtered then.
                        Some(Answer::Now(response)) => {
                            return self.filtered(at, lookup, origin, response);
                        }
                        Some(later) => return later,
                        None => None,
                    }
                }
                Place::App(app) => {
                    let resolved = path_rest::without_dots(lookup.sent.path);
                    let path = lookup.meta.path.or(resolved.as_deref());
                    let meta = MetaVariables { path, ..lookup.meta };
                    let ask = || self.ask_app(route, app, lookup, &meta);
                    if let Some(settings) = &route.cache {
                        return self.look_in_cache(route, settings, lookup, origin, ask);
                    }
                    return self.filter(route, lookup, origin, |request| {
                        let answer =
                            route.limit_body(app.answer(request, origin, &self.app_files, &meta));
                        self.push.around(lookup.seen, route.push_terms(origin), answer)
                    });
                }
                Place::Proxy(proxy) => {
                    let target = path_rest::target(lookup.seen);
                    let resolved = path_rest::without_dots(lookup.sent.path);
                    let meta = MetaVariables {
                        path: lookup.meta.path.or(resolved.as_deref()),
                        ..lookup.meta
                    };
                    if let Some(settings) = &route.cache {
                        let path = target.split('?').next().unwrap_or(&target);
                        let ask = || route.ask_proxy(proxy, path, &meta);
                        return self.look_in_cache(route, settings, lookup, origin, ask);
                    }
                    let buffered = route.request_buffering;
                    return self.filter(route, lookup, origin, |request| {
                        route.limit_body(proxy.answer(request, &target, origin, &meta, buffered))
                    });
                }
            };
            if let Some(response) = response {
                return Answer::Now(response);
            }
        }
        Answer::Now(route.nobody_answered(lookup.seen, &self.store, origin))
    }

    /// The request, at a place of its route, as one that others come of.
    pub fn parent_at<'a>(
        self: &'a Rc<Self>,
        at: At,
        lookup: &Lookup<'a>,
        origin: Origin<'a>,
    ) -> Parent<'a> {
        self.parent(&self.routes[at.route], lookup, origin)
    }

    /// The script at a place.
    pub fn script(&self, at: At) -> Option<&LuaPlace> {
        match self.routes.get(at.route)?.places.get(at.place)? {
            Place::Lua(script) => Some(script),
            _ => None,
        }
    }

    /// What a script has answered after waiting, with what the route does to it.
    pub fn filtered(
        self: &Rc<Self>,
        at: At,
        lookup: &Lookup<'_>,
        origin: Origin<'_>,
        response: Response,
    ) -> Answer {
        self.filter(&self.routes[at.route], lookup, origin, |_| Answer::Now(response))
    }

    /// The answer from the cache, or the place's, which that may keep.
    fn look_in_cache(
        self: &Rc<Self>,
        route: &Route,
        settings: &Arc<CacheSettings>,
        lookup: &Lookup<'_>,
        origin: Origin<'_>,
        ask: impl Fn() -> Ask,
    ) -> Answer {
        let on_behalf_of = (origin, lookup.meta.user);
        if route.has_filter() {
            // What is kept is put together for each visitor anew.
            return self.filter(route, lookup, origin, |request| {
                match self.cache.look(settings, request, on_behalf_of, Codings::NONE, &ask) {
                    Looked::Hit(response) => Answer::Now(response),
                    Looked::Forward(forward) => forward.answer(request, origin, ask()),
                }
            });
        }
        match self.cache.look(settings, lookup.sent, on_behalf_of, route.compress.of_app(), &ask) {
            Looked::Hit(response) => Answer::Now(response),
            Looked::Forward(forward) => {
                self.filter(route, lookup, origin, |request| forward.answer(request, origin, ask()))
            }
        }
    }

    /// What asks an application, also when the request has been answered.
    fn ask_app(
        &self,
        route: &Route,
        app: &Arc<App>,
        lookup: &Lookup<'_>,
        meta: &MetaVariables<'_>,
    ) -> Ask {
        let (push, key) = (Rc::clone(&self.push), key_of(lookup.seen).map(<[u8]>::to_vec));
        let ask = route.ask_app(app, &self.app_files, meta);
        let (syntax, protection) = (route.syntax(), route.protection);
        Rc::new(move |request, origin| {
            let terms = PushTerms { syntax, protection: protection.with_client(origin.client) };
            push.around_page(&request.method, key.clone(), terms, ask(request, origin))
        })
    }

    /// The answer of a place that runs code, with what the route does to it: `ssi`, then
    /// `compress`.
    fn filter(
        self: &Rc<Self>,
        route: &Route,
        lookup: &Lookup<'_>,
        origin: Origin<'_>,
        ask: impl FnOnce(&RequestHead<'_>) -> Answer,
    ) -> Answer {
        Compress::around(lookup.sent, route.compress.of_app(), &self.threads, |request| match route
            .has_filter()
        {
            true => self.ssi.around(Parent { request, ..self.parent(route, lookup, origin) }, ask),
            false => ask(request),
        })
    }

    /// The request as one that others come of.
    fn parent<'a>(
        self: &'a Rc<Self>,
        route: &Route,
        lookup: &Lookup<'a>,
        origin: Origin<'a>,
    ) -> Parent<'a> {
        let Lookup { sent: request, meta, lineage, .. } = *lookup;
        let protection = route.protection.with_client(origin.client);
        let (user, syntax) = (meta.user, route.syntax());
        Parent { routes: self, request, origin, user, syntax, protection, lineage }
    }

    /// Answers by a route that has rules.
    fn answer_by_rules(
        self: &Rc<Self>,
        index: usize,
        rules: &Arc<Rules>,
        request: &RequestHead<'_>,
        origin: Origin<'_>,
        lineage: &Lineage,
    ) -> Answer {
        if let Err(refusal) = self.routes[index].admit(request, origin, lineage) {
            return self.finish(rules, refusal, request, (origin, lineage));
        }
        let answer = match (&rules.redirect, &rules.basic_auth) {
            (Some(redirect), _) => {
                let rest = path_rest::rest_below(request.path, &self.routes[index].path);
                Answer::Now(redirect.respond(&rest, request.query))
            }
            (None, None) => self.look_by_rules(index, rules, request, (origin, lineage), None),
            (None, Some(basic_auth)) => match basic_auth.admit(request, origin.peer, origin.now) {
                Admission::Admitted(user) => {
                    self.look_by_rules(index, rules, request, (origin, lineage), Some(&user))
                }
                Admission::Refused(response) => Answer::Now(response),
                Admission::ToCheck(check) => {
                    let (routes, rules) = (Rc::clone(self), Arc::clone(rules));
                    let (kept, lineage) = (KeptRequest::of(request, origin), lineage.clone());
                    Answer::later(move |body| async move {
                        let Some(basic_auth) = &rules.basic_auth else {
                            return Response::error(StatusCode::INTERNAL_SERVER_ERROR);
                        };
                        let user = match basic_auth.check(check).await {
                            Ok(user) => user,
                            Err(refused) => return refused,
                        };
                        let answer = kept.with(|request, origin| {
                            routes.look_by_rules(
                                index,
                                &rules,
                                request,
                                (origin, &lineage),
                                Some(&user),
                            )
                        });
                        match answer {
                            Answer::Now(response) => response,
                            Answer::Later(later) => later(body).await,
                        }
                    })
                }
            },
        };
        match answer {
            Answer::Now(response) => self.finish(rules, response, request, (origin, lineage)),
            Answer::Later(later) if rules.error_pages.paths().next().is_none() => {
                let rules = Arc::clone(rules);
                Answer::later(move |body| async move {
                    let mut response = later(body).await;
                    rules.response_fields.apply(&mut response);
                    response
                })
            }
            Answer::Later(later) => {
                let (routes, rules) = (Rc::clone(self), Arc::clone(rules));
                let (kept, lineage) = (KeptRequest::of(request, origin), lineage.clone());
                Answer::later(move |body| async move {
                    let response = later(body).await;
                    let finished = kept.with(|request, origin| {
                        routes.finish(&rules, response, request, (origin, &lineage))
                    });
                    finished.response(RequestBody::empty()).await
                })
            }
        }
    }

    /// Asks the places about the rewritten path, on behalf of `user`.
    fn look_by_rules(
        self: &Rc<Self>,
        index: usize,
        rules: &Rules,
        request: &RequestHead<'_>,
        (origin, lineage): (Origin<'_>, &Lineage),
        user: Option<&str>,
    ) -> Answer {
        let (route, first) = (&self.routes[index], At { route: index, place: 0 });
        let meta = MetaVariables { user, ..MetaVariables::default() };
        let Some(rewrite) = &rules.rewrite else {
            return self.look(
                first,
                &Lookup { sent: request, seen: request, meta, lineage },
                origin,
            );
        };
        let rest = path_rest::rest_below(request.path, &route.path);
        let path = rewrite.path(&rest);
        let target = match request.query {
            Some(query) => [&path, "?", query].concat(),
            None => path.clone(),
        };
        let (script_name, path_info) = rewrite.mount(&route.path, &rest);
        let seen = RequestHead { target: &target, path: &path, ..request.clone() };
        let meta = MetaVariables { script_name, path: Some(&path_info), ..meta };
        let mut answer =
            self.look(first, &Lookup { sent: request, seen: &seen, meta, lineage }, origin);
        // A directory's redirect to its own path with a slash: the client knows it by another.
        if let Answer::Now(response) = &mut answer
            && response.answered_by == kirin_files::ANSWERED_BY
            && response.fields.get("location").is_some()
        {
            let query = request.query.map(|query| format!("?{query}")).unwrap_or_default();
            let location = format!("{}{rest}/{query}", path_rest::encode(route.path.as_bytes()));
            response.fields.remove("location");
            response.fields.push("Location", location);
        }
        answer
    }
}
