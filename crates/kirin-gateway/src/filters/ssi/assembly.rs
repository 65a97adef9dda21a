//! Putting a page together: what is in memory at once, without a task; what takes waiting all at
//! the same time.
//!
//! [`Assembly::run`] first; if that has not been enough, [`Assembly::settle`]. Called by the store
//! place and by the `ssi` filter of routes.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use kirin_http::ClientWatch;
use kirin_ssi::{Progress, Rendering, Template, Trouble};
use kirin_store::{Now, Store};
use tokio::task::JoinSet;
use xxhash_rust::xxh3::Xxh3;

use super::cacheability::Cacheability;
use super::part::{Failure, Part};
use super::source::{PageSource, Parts, Surroundings};
use crate::request::subrequest::{KeptParent, Variables};

/// A page that is being put together.
pub struct Assembly {
    rendering: Rendering,
    parts: Parts,
    /// What it shares with the page that it is a part of.
    around: Option<Rc<Variables>>,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// All of it is there.
    Whole,
    /// Requests take waiting.
    Waiting,
}

/// A page with all its parts.
pub struct Assembled {
    /// The body.
    pub pieces: Vec<Bytes>,
    /// Of all that is in it: other parts, another digest.
    pub digest: u128,
    /// What its parts say about keeping it.
    pub cacheability: Cacheability,
}

/// [`Surroundings`] that outlive the connection's read buffer.
pub struct KeptSurroundings {
    /// The store, for items that the page includes.
    pub store: Arc<Store>,
    /// The time of the request.
    pub now: Now,
    /// The request for the page.
    pub parent: KeptParent,
}

impl KeptSurroundings {
    /// Has `work` look at them again.
    pub fn with<R>(&self, work: impl FnOnce(Surroundings<'_>) -> R) -> R {
        let (store, now) = (&*self.store, self.now);
        self.parent.with(|parent| work(Surroundings { store, now, parent }))
    }
}

impl Assembly {
    /// Of the page with this digest, which depends on its bytes. `around` has the variables of the
    /// page that this one is a part of.
    pub fn of(template: &Arc<Template>, digest: u128, around: Option<&Rc<Variables>>) -> Self {
        let (template, around) = (Arc::clone(template), around.cloned());
        let scope = around.as_ref().map(|around| around.given.clone()).unwrap_or_default();
        let parts = Parts::of(digest, &scope);
        Self { rendering: Rendering::within(template, scope), parts, around }
    }

    /// Carries out what can be at once.
    pub fn run(&mut self, page: Surroundings<'_>) -> Stage {
        loop {
            let progress = self.rendering.run(&mut PageSource { parts: &mut self.parts, page });
            let answered = std::mem::take(&mut self.parts.answered);
            let is_over = answered.is_empty();
            for (id, part) in answered {
                self.fill(id, part, &page);
            }
            match progress {
                Progress::Done if self.rendering.is_settled_whole() => return Stage::Whole,
                // What has been filled in may let it go on, and an alternate may have been there at
                // once.
                Progress::Done | Progress::Wait(_) if !is_over => {}
                Progress::Done | Progress::Wait(_) => return Stage::Waiting,
            }
        }
    }

    /// Waits for everything, or until `client` has gone. Call on an event loop.
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

    /// Waits for everything. `ready` is called whenever there may be more to
    /// [`Assembly::take_ready`]. Call on an event loop.
    pub async fn settle(&mut self, page: &KeptSurroundings, mut ready: impl FnMut(&mut Self)) {
        // Requests end with the set: a client that has gone is not worked for.
        let mut requests = JoinSet::new();
        let mut ids = HashMap::new();
        loop {
            for (id, waiting) in self.parts.waiting.drain(..) {
                ids.insert(requests.spawn_local(waiting.part()).id(), id);
            }
            ready(self);
            let Some(joined) = requests.join_next_with_id().await else { break };
            let (task, part) = match joined {
                Ok(joined) => joined,
                Err(error) => (error.id(), Err(Failure::Lost(error.to_string()))),
            };
            let Some(id) = ids.remove(&task) else { continue };
            let stage = page.with(|page| {
                self.fill(id, part, &page);
                self.run(page)
            });
            if stage == Stage::Whole {
                ready(self);
                break;
            }
        }
    }

    fn fill(&mut self, id: usize, part: Result<Part, Failure>, page: &Surroundings<'_>) {
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

    /// What has gone wrong so far.
    pub fn trouble(&self) -> Option<Trouble> {
        self.rendering.trouble()
    }

    /// The pieces that are final and have not been taken yet.
    pub fn take_ready(&mut self) -> Vec<Bytes> {
        self.rendering.take_ready()
    }

    /// The page, when it is whole. What has gone wrong is logged.
    pub fn finish(mut self, name: &str) -> Assembled {
        self.log_trouble(name);
        if let Some(around) = self.around.take() {
            *around.left.borrow_mut() = Some(self.rendering.scope().clone());
        }
        if self.trouble().is_some() {
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

    /// Logs what has gone wrong.
    pub fn log_trouble(&self, name: &str) {
        let text = |key: &Bytes| String::from_utf8_lossy(key).into_owned();
        match self.trouble() {
            None => {}
            Some(Trouble::Missing(key)) => {
                tracing::warn!(page = name, missing = %text(&key), "an include is not in the store and is left out");
            }
            Some(Trouble::Cut(key)) => {
                tracing::error!(page = name, include = %text(&key), "includes go in a circle, too deep or are too many; left out here");
            }
        }
    }
}
