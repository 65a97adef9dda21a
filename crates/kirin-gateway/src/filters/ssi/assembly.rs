//! Assembles a page: parts in memory at once and without a task, all other parts at the same time.
//!
//! [`Assembly::run`] comes first. If it has to wait, [`Assembly::settle`] continues. The `store`
//! place and the `ssi` filter call them.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use kirin_http::{ClientWatch, InRequest};
use kirin_origin::NotLoaded;
use kirin_ssi::{RenderProblem, RenderProgress, Rendering, Template};
use kirin_store::Now;
use tokio::task::JoinSet;
use xxhash_rust::xxh3::Xxh3;

use super::cacheability::Cacheability;
use super::part::{PagePart, PartFailure};
use super::source::{IncludeSources, PageSource, Parts, Surroundings};
use crate::request::kept_request::KeptRequest;
use crate::request::lineage::SharedVariables;

/// A page that is being assembled.
pub struct Assembly {
    rendering: Rendering,
    parts: Parts,
    /// The variables that it shares with the page that it is a part of.
    around: Option<Rc<SharedVariables>>,
}

/// The progress of an assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssemblyStage {
    /// The page is complete.
    Whole,
    /// Some subrequests have no answer yet.
    Waiting,
    /// Some items must be loaded first ([`Assembly::know`]).
    Unknown,
}

/// A page with all its parts.
pub struct Assembled {
    /// The body.
    pub pieces: Vec<Bytes>,
    /// The digest of everything in it. Other parts give another digest.
    pub digest: u128,
    /// The restrictions of its parts on caching it.
    pub cacheability: Cacheability,
}

/// [`Surroundings`] that outlive the connection's read buffer.
pub struct KeptSurroundings {
    sources: Rc<IncludeSources>,
    now: Now,
    /// The request for the page.
    pub request: KeptRequest,
}

impl KeptSurroundings {
    /// Creates the surroundings of the page that `request` asks for.
    pub fn new(sources: &Rc<IncludeSources>, now: Now, request: KeptRequest) -> Self {
        Self { sources: Rc::clone(sources), now, request }
    }

    /// Calls `work` with the surroundings.
    pub fn with<R>(&self, work: impl FnOnce(Surroundings<'_>) -> R) -> R {
        let (sources, now) = (&self.sources, self.now);
        self.request.with(|request| work(Surroundings { sources, now, request }))
    }
}

impl Assembly {
    /// Starts a page. `digest` is the digest of its bytes, `around` has the variables of the page
    /// that this one is a part of.
    pub fn new(
        template: &Arc<Template>,
        digest: u128,
        around: Option<&Rc<SharedVariables>>,
    ) -> Self {
        let (template, around) = (Arc::clone(template), around.cloned());
        let scope = around.as_ref().map(|around| around.given.clone()).unwrap_or_default();
        let parts = Parts::new(digest, &scope);
        Self { rendering: Rendering::within(template, scope), parts, around }
    }

    /// Carries out the directives, as far as that is possible without waiting.
    pub fn run(&mut self, page: Surroundings<'_>) -> AssemblyStage {
        if let Some(template) = self.rendering.template()
            && !self.parts.knows_session(template, &page)
        {
            return AssemblyStage::Unknown;
        }
        loop {
            let progress = self.rendering.run(&mut PageSource { parts: &mut self.parts, page });
            let answered = std::mem::take(&mut self.parts.answered);
            let is_over = answered.is_empty();
            for (id, part) in answered {
                self.fill(id, part, &page);
            }
            match progress {
                RenderProgress::Done if self.rendering.is_settled_whole() => {
                    return AssemblyStage::Whole;
                }
                // The page may continue after a part was filled in. An alternate may have been
                // there at once.
                _ if !is_over => self.parts.forget_unknown(),
                RenderProgress::Done | RenderProgress::Wait(_) => return AssemblyStage::Waiting,
                RenderProgress::Unknown => {
                    self.parts.look_ahead(self.rendering.keys_ahead(), &page);
                    return AssemblyStage::Unknown;
                }
            }
        }
    }

    /// Loads the items that must be known first, and goes on as far as possible. No request of a
    /// part is begun. Call it at the stage [`AssemblyStage::Unknown`].
    pub async fn know(&mut self, page: &KeptSurroundings) -> AssemblyStage {
        loop {
            self.load(page).await;
            let stage = page.with(|page| self.run(page));
            if stage != AssemblyStage::Unknown {
                return stage;
            }
        }
    }

    async fn load(&mut self, page: &KeptSurroundings) {
        let keys = self.parts.take_unknown();
        match page.sources.near.load_within(&keys, self.parts.room_bytes()).await {
            Ok(items) => self.parts.learn(keys, items),
            Err(problem) => {
                if problem == NotLoaded::TooLarge {
                    page.with(|page| {
                        tracing::warn!(page = page.name(), "{problem}, no more of them are loaded");
                    });
                }
                self.parts.load_no_more();
            }
        }
    }

    /// Waits for all parts, or until `client` has left. Call on an event loop.
    pub async fn settle_whole(&mut self, page: &KeptSurroundings, client: Option<ClientWatch>) {
        match client {
            None => self.settle(page, |_| ()).await,
            Some(client) => tokio::select! {
                biased;
                () = self.settle(page, |_| ()) => {}
                () = client.gone() => {}
            },
        }
    }

    /// Waits for all parts. Calls `ready` whenever there may be more for [`Assembly::take_ready`].
    /// Call on an event loop.
    pub async fn settle(&mut self, page: &KeptSurroundings, mut ready: impl FnMut(&mut Self)) {
        // The requests end with the set, so that nothing works for a client that has left.
        let mut requests = JoinSet::new();
        let mut ids = HashMap::new();
        loop {
            for (id, waiting) in self.parts.waiting.drain(..) {
                let part = InRequest::of_current(waiting.part());
                ids.insert(requests.spawn_local(part).id(), id);
            }
            ready(self);
            if self.parts.has_unknown() {
                self.load(page).await;
                if page.with(|page| self.run(page)) == AssemblyStage::Whole {
                    ready(self);
                    break;
                }
                continue;
            }
            let Some(joined) = requests.join_next_with_id().await else { break };
            let (task, part) = match joined {
                Ok(joined) => joined,
                Err(error) => (error.id(), Err(PartFailure::Lost(error.to_string()))),
            };
            let Some(id) = ids.remove(&task) else { continue };
            let stage = page.with(|page| {
                self.fill(id, part, &page);
                self.run(page)
            });
            if stage == AssemblyStage::Whole {
                ready(self);
                break;
            }
        }
    }

    fn fill(&mut self, id: usize, part: Result<PagePart, PartFailure>, page: &Surroundings<'_>) {
        if let Err(failure) = &part
            && self.parts.try_alternate(id, failure, page)
        {
            return;
        }
        if let Some(scope) = self.parts.left_by(id) {
            self.rendering.adopt(id, &scope);
        }
        let content = self.parts.content(id, part, page);
        self.rendering.fill(id, content);
    }

    /// Returns the first problem so far.
    pub fn problem(&self) -> Option<RenderProblem> {
        self.rendering.problem()
    }

    /// Returns the pieces that are final and have not been taken yet.
    pub fn take_ready(&mut self) -> Vec<Bytes> {
        self.rendering.take_ready()
    }

    /// Returns the complete page, and logs its problems.
    pub fn finish(mut self, name: &str) -> Assembled {
        self.log_problem(name);
        if let Some(around) = self.around.take() {
            *around.left.borrow_mut() = Some(self.rendering.scope().clone());
        }
        if self.problem().is_some() {
            self.parts.cacheability.add_failure();
        }
        let pieces = self.rendering.take_ready();
        let digest = self.parts.digest_of_items().unwrap_or_else(|| {
            let mut content = Xxh3::new();
            pieces.iter().for_each(|piece| content.update(piece));
            content.digest128()
        });
        Assembled { pieces, digest, cacheability: self.parts.cacheability }
    }

    /// Logs the problems of the page.
    pub fn log_problem(&self, name: &str) {
        let text = |key: &Bytes| String::from_utf8_lossy(key).into_owned();
        match self.problem() {
            None => {}
            Some(RenderProblem::Missing(key)) => {
                tracing::warn!(page = name, missing = %text(&key), "an include is not in the store and is left out");
            }
            Some(RenderProblem::Cut(key)) => {
                tracing::error!(page = name, include = %text(&key), "includes go in a circle, too deep or are too many; left out here");
            }
        }
    }
}
