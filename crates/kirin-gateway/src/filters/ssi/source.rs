//! The source of the parts of a page.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use foldhash::HashMap;
use kirin_http::percent;
use kirin_origin::{Look, NearStore};
use kirin_ssi::{
    FoundItem, IncludeRefusal, IncludeTarget, RenderSource, Requested, Requesting, Scope, Template,
    Zone,
};
use kirin_store::{ItemRef, Now};
use xxhash_rust::xxh3::Xxh3;

use super::cacheability::Cacheability;
use super::part::{MAX_PARTS_BYTES, PagePart, PartAnswer, PartFailure, WaitingPart};
use super::{date, variables};
use crate::pages::page::Page;
use crate::pages::session::{self, Session};
use crate::request::context::Request;
use crate::request::lineage::{SharedVariables, SubrequestRefusal};

/// The most items that are loaded because a page may need them next.
const MOST_ITEMS_AHEAD: usize = 32;

/// The largest sum of the items that one page waits for, in bytes. It may hold all of them at once,
/// even if the store has no room for copies.
const MAX_LOADED_BYTES: usize = 64 << 20;

/// The store with the items that pages include, and with the sessions of visitors.
pub struct IncludeSources {
    /// The store.
    pub near: NearStore,
    /// The name of the cookie of visitors' sessions.
    pub session_cookie: Option<Arc<str>>,
}

/// The surroundings of a page while it is carried out.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Items and sessions.
    pub sources: &'a IncludeSources,
    /// The time of the request.
    pub now: Now,
    /// The request for the page.
    pub request: &'a Request<'a>,
}

/// The parts of a page so far.
pub struct Parts {
    /// The digest of the page and the items in it, in their order.
    items: Xxh3,
    /// Whether the page has more than items, so that their digest does not identify it.
    has_more: bool,
    pub(super) cacheability: Cacheability,
    /// Answers that were in memory.
    pub(super) answered: Vec<(usize, Result<PagePart, PartFailure>)>,
    /// Requests that must be waited for and have not been started.
    pub(super) waiting: Vec<(usize, WaitingPart)>,
    /// The targets of requests by id, with the variables of each.
    requested: Vec<(Bytes, Rc<SharedVariables>)>,
    /// The bytes of all parts so far.
    bytes: usize,
    /// The targets to request if the first target fails, with the id of the request.
    alternates: Vec<(usize, Bytes)>,
    /// The visitor's session, once it has been looked for. All of a page is about the same session.
    session: Option<Option<Session>>,
    /// The items that the page waits for or has waited for. Most pages wait for none.
    awaited: Option<Box<AwaitedItems>>,
}

/// Items that only the server behind the store has.
struct AwaitedItems {
    /// The keys of those that must be known before the page goes on.
    unknown: Vec<Bytes>,
    /// Those that the page has waited for.
    loaded: HashMap<Bytes, Option<ItemRef>>,
    /// The bytes that they may still have.
    room_bytes: usize,
    /// Whether nothing is waited for any more: what is not in memory counts as missing.
    loads_no_more: bool,
}

impl Default for AwaitedItems {
    fn default() -> Self {
        Self {
            unknown: Vec::new(),
            loaded: HashMap::default(),
            room_bytes: MAX_LOADED_BYTES,
            loads_no_more: false,
        }
    }
}

impl Parts {
    /// Creates the parts of a page with this digest, to which these variables are given.
    pub fn new(page: u128, given: &Scope) -> Self {
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
            awaited: None,
        }
    }

    fn awaited(&mut self) -> &mut AwaitedItems {
        self.awaited.get_or_insert_default()
    }

    /// Looks for an item. If it is not known, it is noted as one to be loaded.
    fn look(&mut self, key: &[u8], page: &Surroundings<'_>) -> Look {
        if let Some(awaited) = &self.awaited
            && let Some(item) = awaited.loaded.get(key)
        {
            return item.clone().map_or(Look::Nothing, Look::Item);
        }
        match page.sources.near.look(key, page.now) {
            Look::Unknown => self.await_item(key),
            found => found,
        }
    }

    #[cold]
    fn await_item(&mut self, key: &[u8]) -> Look {
        let awaited = self.awaited();
        if awaited.loads_no_more {
            return Look::Nothing;
        }
        awaited.unknown.push(Bytes::copy_from_slice(key));
        Look::Unknown
    }

    /// Looks for the visitor's session, if the page `template` asks for it. Returns false if it
    /// must be loaded first. Without a server behind the store the session is always known.
    pub fn knows_session(&mut self, template: &Template, page: &Surroundings<'_>) -> bool {
        let sources = page.sources;
        if self.session.is_some()
            || sources.near.origin().is_none()
            || !template.variables().any(session::is_variable)
        {
            return true;
        }
        let Some(cookie) = sources.session_cookie.as_deref() else { return true };
        let found = match session::key_of_request(page.request, cookie) {
            None => Look::Nothing,
            Some(key) => self.look(&key, page),
        };
        self.session = match found {
            Look::Unknown => return false,
            Look::Nothing => Some(None),
            Look::Item(item) => Some(Session::of_item(&item, sources.near.store(), page.now)),
        };
        true
    }

    /// Returns whether items must be loaded before the page goes on.
    pub fn has_unknown(&self) -> bool {
        self.awaited.as_ref().is_some_and(|awaited| !awaited.unknown.is_empty())
    }

    /// Notes items that the page may need next, so that one trip brings them together.
    pub fn look_ahead(&mut self, keys: impl Iterator<Item = Bytes>, page: &Surroundings<'_>) {
        let (near, awaited) = (&page.sources.near, self.awaited());
        for key in keys.take(MOST_ITEMS_AHEAD) {
            if let Some(key) = page.request.namespace.full_name(&key)
                && !awaited.loaded.contains_key(&*key)
                && !awaited.unknown.iter().any(|other| *other == *key)
                && near.is_unknown(&key, page.now)
            {
                awaited.unknown.push(Bytes::copy_from_slice(&key));
            }
        }
    }

    /// Forgets which items are to be loaded: the page asks for them again.
    pub fn forget_unknown(&mut self) {
        if let Some(awaited) = &mut self.awaited {
            awaited.unknown.clear();
        }
    }

    /// Takes the keys of the items to be loaded.
    pub fn take_unknown(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.awaited().unknown)
    }

    /// Returns how many bytes the next items may have that the page waits for.
    pub fn room_bytes(&mut self) -> usize {
        self.awaited().room_bytes
    }

    /// Takes the items that were loaded.
    pub fn learn(&mut self, keys: Vec<Bytes>, items: Vec<Option<ItemRef>>) {
        let bytes: usize = items.iter().flatten().map(|item| item.value_slice().len()).sum();
        let awaited = self.awaited();
        awaited.room_bytes = awaited.room_bytes.saturating_sub(bytes);
        awaited.loaded.extend(keys.into_iter().zip(items));
    }

    /// Lets the page wait for no further items: the server does not answer in time, or they are too
    /// large. So a page with many items does not wait for each of them.
    pub fn load_no_more(&mut self) {
        self.awaited().loads_no_more = true;
    }

    /// Returns the digest of the page and its items, if it has nothing else.
    pub fn digest_of_items(&self) -> Option<u128> {
        (!self.has_more).then(|| self.items.digest128())
    }

    fn take(&mut self, id: usize, answer: PartAnswer) {
        match answer {
            PartAnswer::Now(part) => self.answered.push((id, part)),
            PartAnswer::Later(waiting) => self.waiting.push((id, waiting)),
        }
    }

    /// Requests the alternate of a part that has failed. Returns whether there was one that had not
    /// been tried.
    pub fn try_alternate(
        &mut self,
        id: usize,
        failure: &PartFailure,
        page: &Surroundings<'_>,
    ) -> bool {
        let Some(place) = self.alternates.iter().position(|(other, _)| *other == id) else {
            return false;
        };
        let (_, alternate) = self.alternates.swap_remove(place);
        let Some((name, variables)) = self.requested.get_mut(id) else { return false };
        let Ok(answer) = page.request.get(&alternate, variables) else {
            return false;
        };
        let include = String::from_utf8_lossy(&alternate);
        tracing::info!(page = page.name(), %failure, %include, "an include cannot be had, its alternate is asked for");
        *name = alternate.clone();
        self.take(id, PartAnswer::from_answer(answer));
        true
    }

    /// Returns the variables that a part has left, if it is a page with directives.
    pub fn left_by(&self, id: usize) -> Option<Scope> {
        self.requested.get(id)?.1.left.take()
    }

    /// Adds a part, or the reason why it is not there. Returns its content.
    pub fn content(
        &mut self,
        id: usize,
        part: Result<PagePart, PartFailure>,
        page: &Surroundings<'_>,
    ) -> Option<Vec<Bytes>> {
        let part = part.and_then(|part| {
            self.bytes += part.pieces.iter().map(Bytes::len).sum::<usize>();
            if self.bytes > MAX_PARTS_BYTES { Err(PartFailure::TooMuch) } else { Ok(part) }
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
    /// Returns the name of the page for the log.
    pub fn name(&self) -> &str {
        self.request.head.target
    }
}

/// The source that a rendering asks: the parts of a page and its surroundings.
pub struct PageSource<'a> {
    /// The parts of the page.
    pub parts: &'a mut Parts,
    /// The surroundings of the page.
    pub page: Surroundings<'a>,
}

impl RenderSource for PageSource<'_> {
    fn item(&mut self, key: &[u8]) -> FoundItem {
        let Surroundings { sources, now, request } = self.page;
        let (store, syntax) = (sources.near.store(), request.syntax);
        let look = request.namespace.full_name(key).map(|key| self.parts.look(&key, &self.page));
        let item = match look {
            Some(Look::Item(item)) => Some(item),
            Some(Look::Unknown) => return FoundItem::Unknown,
            Some(Look::Nothing) | None => None,
        };
        let page =
            item.map(|item| store.companion::<Page>(&item, now, Page::compile).read_with(syntax));
        let protection = request.protection;
        let page = page.filter(|page| protection.admits(page.protection));
        // The page cannot contain a coded body.
        let page =
            page.filter(|page| page.head.as_ref().is_none_or(|head| head.stored_coding.is_none()));
        let Some(page) = page else {
            // The digest also depends on which part is missing.
            self.parts.items.update(b"missing");
            return FoundItem::Missing;
        };
        if !self.parts.knows_session(&page.template, &self.page) {
            return FoundItem::Unknown;
        }
        self.parts.items.update(&page.digest.to_le_bytes());
        if let Some(head) = page.head.as_ref().filter(|head| head.says_cacheability) {
            self.parts.cacheability.add_part(&head.fields, kirin_clock::wall_seconds());
        }
        FoundItem::Template(Arc::clone(&page.template))
    }

    fn variable(&mut self, name: &str) -> Option<Bytes> {
        self.parts.has_more = true;
        if session::is_variable(name) {
            return self.session()?.variable(name);
        }
        let Request { head, origin, user, given, .. } = *self.page.request;
        let user = user.map(|user| user.name);
        let variable = variables::variable(name, head, origin, user, given.as_slice());
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
        if target == IncludeTarget::File && !is_beside(name) {
            return self.fail(name, &"a file is named relative to the page, and not above it");
        }
        let variables = Rc::new(SharedVariables { given: scope.clone(), left: RefCell::default() });
        let answer = match self.page.request.get(name, &variables) {
            Ok(answer) => answer,
            Err(SubrequestRefusal::Cut { again: true }) => {
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
        self.parts.take(id, PartAnswer::from_answer(answer));
        Requested::Pending
    }

    fn refuse(&mut self, name: &[u8], why: IncludeRefusal) {
        self.fail(name, &why);
    }
}

impl PageSource<'_> {
    /// Logs why a request is not made.
    fn fail(&mut self, name: &[u8], why: &dyn std::fmt::Display) -> Requested {
        let include = String::from_utf8_lossy(name);
        tracing::warn!(page = self.page.name(), %include, %why, "an include cannot be had");
        self.parts.cacheability.add_failure();
        Requested::Failed
    }

    fn session(&mut self) -> Option<&Session> {
        let Surroundings { sources, now, request } = self.page;
        let cookie = sources.session_cookie.as_deref()?;
        // The absence of a session is about the visitor too.
        self.parts.cacheability.add_session();
        let store = sources.near.store();
        let find = || {
            let item = store.get(&session::key_of_request(request, cookie)?, now)?;
            Session::of_item(&item, store, now)
        };
        self.parts.session.get_or_insert_with(find).as_ref()
    }
}

/// Returns whether `name` is a path below the directory of the page, after decoding.
fn is_beside(name: &[u8]) -> bool {
    let path = name.split(|byte| *byte == b'?').next().unwrap_or_default();
    let path = percent::decode(path);
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
