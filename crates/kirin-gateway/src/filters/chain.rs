//! The filters of a route, in their order: from the place outwards `push`, `cache`, `ssi` and
//! `compress`. The chain is built when the route opens.
//!
//! So the store has responses as the application has sent them. Pages are assembled for each
//! visitor.

use std::rc::Rc;
use std::sync::Arc;

use kirin_compress::Codings;
use kirin_http::{Answer, RequestHead, Response};

use super::advise::sampling::Sampling;
use super::backend::Backend;
use super::cache::{CacheLookup, RouteCache};
use super::compress;
use super::compress_codings::Compress;
use super::compress_threads::CompressThreads;
use super::push::{Push, PushBackend};
use super::ssi::filter::SsiFilter;
use crate::request::context::Request;

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
