//! The filters of a route, in their order: from the place outwards `push`, `cache`, `ssi` and
//! `compress`. The chain is built when the route opens.
//!
//! So the store has responses as the application has sent them. Pages are assembled for each
//! visitor.

use std::rc::Rc;
use std::sync::Arc;

use kirin_compress::Codings;
use kirin_http::{Answer, RequestHead, Response};
use kirin_origin::NearStore;

use super::advise::sampling::Sampling;
use super::backend::Backend;
use super::cache::counters::CacheCounters;
use super::cache::memory::Cache;
use super::cache::{CacheLookup, RouteCache};
use super::compress;
use super::compress_codings::Compress;
use super::compress_threads::CompressThreads;
use super::push::reach::Reach;
use super::push::{Push, PushBackend};
use super::ssi::filter::SsiFilter;
use super::ssi::source::IncludeSources;
use crate::pages::page_response::PageResponses;
use crate::request::context::Request;
use crate::routing::settings::{GatewayConfig, RouteConfig, SiteConfig};

/// The parts that the filters of all routes of one event loop share.
#[derive(Clone)]
pub struct FilterParts {
    near: NearStore,
    /// The responses with pages of the store.
    pub responses: Rc<PageResponses>,
    /// The items and sessions that pages include.
    pub sources: Rc<IncludeSources>,
    sampling: Arc<Sampling>,
    cache: Rc<Cache>,
    ssi: Rc<SsiFilter>,
    threads: CompressThreads,
}

impl FilterParts {
    /// Creates the parts. Only this event loop counts in `counters`.
    pub fn new(
        config: &GatewayConfig,
        near: &NearStore,
        sampling: &Arc<Sampling>,
        counters: Arc<CacheCounters>,
    ) -> Self {
        let threads = CompressThreads::default();
        let responses = PageResponses::new(near.clone(), threads.clone());
        let session_cookie = config.session_cookie.clone();
        let sources = Rc::new(IncludeSources { near: near.clone(), session_cookie });
        Self {
            near: near.clone(),
            cache: Cache::new(&responses, counters),
            ssi: SsiFilter::new(Rc::clone(&sources)),
            sampling: Arc::clone(sampling),
            responses,
            sources,
            threads,
        }
    }

    /// Returns the parts for another configuration. What does not depend on it stays.
    pub fn continued(&self, config: &GatewayConfig) -> Self {
        if self.sources.session_cookie == config.session_cookie {
            return self.clone();
        }
        let session_cookie = config.session_cookie.clone();
        let sources = Rc::new(IncludeSources { near: self.near.clone(), session_cookie });
        Self { ssi: SsiFilter::new(Rc::clone(&sources)), sources, ..self.clone() }
    }

    /// Returns the filter that stores pages of the routes of a site.
    pub fn push(&self, site: &SiteConfig) -> Rc<Push> {
        let reachable = site.routes.iter().map(RouteConfig::reachable);
        Push::new(self.near.clone(), Reach::new(Arc::clone(&site.table), reachable))
    }

    /// Returns the filters of a route. `push` is that of its site.
    pub fn of_route(&self, route: &RouteConfig, push: &Rc<Push>) -> Filters {
        let cache = route.cache.as_ref().map(|settings| RouteCache {
            cache: Rc::clone(&self.cache),
            settings: Arc::clone(settings),
        });
        Filters {
            sampling: Arc::clone(&self.sampling),
            push: Rc::clone(push),
            cache,
            ssi: route.has_directives().then(|| Rc::clone(&self.ssi)),
            compress: route.compress,
            threads: self.threads.clone(),
        }
    }
}

/// The filters of one route on one event loop.
pub struct Filters {
    /// Observes the answers of places that run code, if a run of `kirin advise` is on.
    pub sampling: Arc<Sampling>,
    /// Stores pages that applications send with `Kirin-Store`.
    pub push: Rc<Push>,
    /// The cache, if the route has one.
    pub cache: Option<RouteCache>,
    /// Carries out directives in what files and code answer, if the route wants that.
    pub ssi: Option<Rc<SsiFilter>>,
    /// The codings in which responses are compressed.
    pub compress: Compress,
    /// The threads that compress.
    pub threads: CompressThreads,
}

impl Filters {
    /// Puts the `push` filter around an application.
    pub fn push_from(&self, backend: impl Backend + 'static) -> Rc<dyn Backend> {
        Rc::new(PushBackend::new(Rc::clone(&self.push), backend))
    }

    /// Returns the answer of a place that runs code, through all filters.
    pub fn around(&self, request: &Request<'_>, backend: &Rc<dyn Backend>) -> Answer {
        let Some(cache) = &self.cache else {
            return self.around_page(request, |request| backend.answer(request));
        };
        if self.ssi.is_some() {
            // The cache stores pages with their directives, which are carried out for each visitor.
            return self.around_page(request, |request| {
                match cache.look(request, Codings::NONE, backend) {
                    CacheLookup::Hit(response) => Answer::Now(response),
                    CacheLookup::Forward(forward) => forward.answer(request, backend),
                }
            });
        }
        // Responses of the cache have coded variants of their own.
        match cache.look(request, self.compress.for_code(), backend) {
            CacheLookup::Hit(response) => Answer::Now(response),
            CacheLookup::Forward(forward) => {
                self.around_page(request, |request| forward.answer(request, backend))
            }
        }
    }

    /// Returns the response of a script, through `ssi` and `compress`.
    pub fn around_response(&self, request: &Request<'_>, response: Response) -> Answer {
        self.around_page(request, |_| Answer::Now(response))
    }

    /// Returns the response of a directory, through `ssi`. `ask` looks for a file; it may be called
    /// twice. Only assembled pages are compressed here: `kirin-files` compresses files. `directory`
    /// is the same number for the same directory only.
    pub fn around_files(
        &self,
        request: &Request<'_>,
        directory: u64,
        ask: impl Fn(&RequestHead<'_>) -> Option<Response>,
    ) -> Option<Answer> {
        match &self.ssi {
            None => ask(request.rewritten).map(Answer::Now),
            Some(ssi) => {
                let codings = self.compress.for_pages();
                ssi.around_files(request, directory, codings, &self.threads, ask)
            }
        }
    }

    fn around_page(
        &self,
        request: &Request<'_>,
        ask: impl FnOnce(&Request<'_>) -> Answer,
    ) -> Answer {
        let codings = self.compress.for_code();
        compress::around(request, codings, &self.threads, |request| match &self.ssi {
            Some(ssi) => ssi.around(request, ask),
            None => ask(request),
        })
    }
}
