//! Where the parts of a page come from.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use kirin_ssi::{NotAsked, Requested, Requesting, Scope, Source, Target, Template, Zone};
use kirin_store::{Now, Store};
use xxhash_rust::xxh3::Xxh3;

use super::cacheability::Cacheability;
use super::part::{Answered, Failure, MAX_PARTS_BYTES, Part, Waiting};
use super::{date, variables};
use crate::pages::page::Page;
use crate::pages::session::{self, Session};
use crate::request::subrequest::{Parent, Refused, Variables};

/// What is around a page while it is carried out.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Where keys are.
    pub store: &'a Store,
    /// The time.
    pub now: Now,
    /// Who asks.
    pub parent: Parent<'a>,
}

/// What the parts of a page have come to so far.
pub struct Parts {
    /// Of the page and the items in it, in their order.
    items: Xxh3,
    /// Whether there is more in the page than items, so that their digest does not tell pages
    /// apart.
    has_more: bool,
    pub(super) cacheability: Cacheability,
    /// Answers that were in memory.
    pub(super) answered: Vec<(usize, Result<Part, Failure>)>,
    /// Requests that take waiting and have not been started.
    pub(super) waiting: Vec<(usize, Waiting)>,
    /// What has been requested, by id, and the variables that go with it.
    requested: Vec<(Bytes, Rc<Variables>)>,
    /// What has come of requests.
    bytes: usize,
    /// What is to be requested if that fails, with its id.
    alternates: Vec<(usize, Bytes)>,
    /// The visitor's session, when it has been looked for: the page is about one visitor from its
    /// beginning to its end.
    session: Option<Option<Session>>,
}

impl Parts {
    /// Of a page with this digest, to which these variables are given.
    pub fn of(page: u128, given: &Scope) -> Self {
        let mut items = Xxh3::new();
        items.update(&page.to_le_bytes());
        Self {
            items,
            has_more: !given.is_empty(),
            cacheability: Cacheability::default(),
            answered: Vec::new(),
            waiting: Vec::new(),
            requested: Vec::new(),
            bytes: 0,
            alternates: Vec::new(),
            session: None,
        }
    }

    /// The digest of the page and its items, if there is nothing else in it.
    pub fn digest_of_items(&self) -> Option<u128> {
        (!self.has_more).then(|| self.items.digest128())
    }

    fn take(&mut self, id: usize, answer: Answered) {
        match answer {
            Answered::Now(part) => self.answered.push((id, part)),
            Answered::Later(waiting) => self.waiting.push((id, waiting)),
        }
    }

    /// Requests the alternate of what has failed, if it has one that has not been tried. Whether it
    /// has.
    pub fn try_alternate(&mut self, id: usize, failure: &Failure, page: &Surroundings<'_>) -> bool {
        let Some(place) = self.alternates.iter().position(|(other, _)| *other == id) else {
            return false;
        };
        let (_, alternate) = self.alternates.swap_remove(place);
        let Some((name, variables)) = self.requested.get_mut(id) else { return false };
        let Ok(answer) = page.parent.get(&alternate, variables) else {
            return false;
        };
        let include = String::from_utf8_lossy(&alternate);
        tracing::info!(page = page.name(), %failure, %include, "an include cannot be had, its alternate is asked for");
        *name = alternate.clone();
        self.take(id, Answered::of(answer));
        true
    }

    /// The variables that a part has left, if it has been put together.
    pub fn left_by(&self, id: usize) -> Option<Scope> {
        self.requested.get(id)?.1.left.take()
    }

    /// Takes in what a part says, or why it is not there; gives the content.
    pub fn content(
        &mut self,
        id: usize,
        part: Result<Part, Failure>,
        page: &Surroundings<'_>,
    ) -> Option<Vec<Bytes>> {
        let part = part.and_then(|part| {
            self.bytes += part.pieces.iter().map(Bytes::len).sum::<usize>();
            if self.bytes > MAX_PARTS_BYTES { Err(Failure::TooMuch) } else { Ok(part) }
        });
        match part {
            Ok(part) => {
                self.cacheability.add_part(&part.fields, kirin_clock::wall_seconds());
                Some(part.pieces)
            }
            Err(failure) => {
                let name = self.requested.get(id).map(|(name, _)| &name[..]).unwrap_or_default();
                let include = String::from_utf8_lossy(name);
                tracing::warn!(page = page.name(), %include, %failure, "an include cannot be had");
                self.cacheability.add_failure();
                None
            }
        }
    }
}

impl Surroundings<'_> {
    /// What to call the page in the log.
    pub fn name(&self) -> &str {
        self.parent.request.target
    }
}

/// Both together: what a rendering asks.
pub struct PageSource<'a> {
    /// The parts of the page.
    pub parts: &'a mut Parts,
    /// The page around them.
    pub page: Surroundings<'a>,
}

impl Source for PageSource<'_> {
    fn item(&mut self, key: &[u8]) -> Option<Arc<Template>> {
        let Surroundings { store, now, .. } = self.page;
        let syntax = self.page.parent.syntax;
        let page = store
            .get(key, now)
            .map(|item| store.companion::<Page>(&item, now, Page::compile).read_with(syntax));
        let protection = self.page.parent.protection;
        let page = page.filter(|page| protection.admits(page.protection));
        // A coded body would be noise in the middle of the page.
        let page =
            page.filter(|page| page.head.as_ref().is_none_or(|head| head.stored_coding.is_none()));
        let Some(page) = page else {
            // Which part is missing makes a difference, too.
            self.parts.items.update(b"missing");
            return None;
        };
        self.parts.items.update(&page.digest.to_le_bytes());
        if let Some(head) = page.head.as_ref().filter(|head| head.says_cacheability) {
            self.parts.cacheability.add_part(&head.fields, kirin_clock::wall_seconds());
        }
        Some(Arc::clone(&page.template))
    }

    fn variable(&mut self, name: &str) -> Option<Bytes> {
        self.parts.has_more = true;
        if session::is_variable(name) {
            return self.session()?.variable(name);
        }
        let Parent { request, origin, user, .. } = self.page.parent;
        let variable = variables::variable(name, request, origin, user);
        if variable
            .as_ref()
            .map_or_else(|| variables::is_visitors(name), |variable| variable.is_visitors)
        {
            self.parts.cacheability.add_visitor();
        }
        variable.map(|variable| variable.value)
    }

    fn date(&mut self, zone: Zone, format: &str) -> Bytes {
        self.parts.has_more = true;
        date::format(kirin_clock::wall_seconds(), zone, format)
    }

    fn request(&mut self, include: Requesting<'_>, scope: &Scope, id: usize) -> Requested {
        let Requesting { target, name, alternate } = include;
        self.parts.has_more = true;
        if target == Target::File && !is_beside(name) {
            return self.fail(name, &"a file is named relative to the page, and not above it");
        }
        let variables = Rc::new(Variables { given: scope.clone(), left: RefCell::default() });
        let answer = match self.page.parent.get(name, &variables) {
            Ok(answer) => answer,
            Err(Refused::Cut { again: true }) => {
                self.parts.cacheability.add_failure();
                return Requested::Failed;
            }
            Err(refused) => return self.fail(name, &refused),
        };
        self.parts.requested.resize_with(id, Default::default);
        self.parts.requested.push((Bytes::copy_from_slice(name), variables));
        self.parts
            .alternates
            .extend(alternate.map(|alternate| (id, Bytes::copy_from_slice(alternate))));
        self.parts.take(id, Answered::of(answer));
        Requested::Pending
    }

    fn refuse(&mut self, name: &[u8], why: NotAsked) {
        self.fail(name, &why);
    }
}

impl PageSource<'_> {
    /// A request that is not made: the log says why.
    fn fail(&mut self, name: &[u8], why: &dyn std::fmt::Display) -> Requested {
        let include = String::from_utf8_lossy(name);
        tracing::warn!(page = self.page.name(), %include, %why, "an include cannot be had");
        self.parts.cacheability.add_failure();
        Requested::Failed
    }

    fn session(&mut self) -> Option<&Session> {
        let Surroundings { store, now, parent } = self.page;
        let cookie = parent.routes.session_cookie()?;
        // That there is none, too, is about who asks.
        self.parts.cacheability.add_session();
        self.parts
            .session
            .get_or_insert_with(|| Session::of(parent.request, cookie, store, now))
            .as_ref()
    }
}

/// Whether `name` is a path below the page's directory, when it is decoded.
fn is_beside(name: &[u8]) -> bool {
    let path = name.split(|byte| *byte == b'?').next().unwrap_or_default();
    let path = variables::unescaped(path);
    !path.starts_with(b"/") && !path.split(|byte| *byte == b'/').any(|segment| segment == b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_beside_the_page_or_below() {
        for (name, beside) in [
            ("a.html", true),
            ("b/a.html?x=../y", true),
            ("..a", true),
            ("/a.html", false),
            ("../a.html", false),
            ("b/../../a.html", false),
            ("..", false),
            ("%2e%2e/a.html", false),
            ("b/..%2f..%2Fa.html", false),
            ("%2Fa.html", false),
            ("%2e%2ea", true),
        ] {
            assert_eq!(is_beside(name.as_bytes()), beside, "{name}");
        }
    }
}
