//! The evidence about one target: what its visitors got. Its size is bounded, whatever they send.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use crate::observation::{Freshness, Observation, ObservedBody, Visitor};
use crate::pieces::HashedPiece;
use crate::versions::Versions;

/// The most samples of a target.
pub const MAX_SAMPLES: usize = 64;

/// The most bodies of a target of which pieces are kept at the same time.
pub const MAX_BODIES: usize = 8;

/// The most values that are counted of one kind: addresses, values of a cookie, statuses.
const MAX_COUNTED: usize = 16;

/// The number of a cookie's name in the survey.
pub type CookieName = u16;

/// What one visitor got. Requests that differ in nothing are one sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The hash of the body.
    pub body: u64,
    /// The key in a cache without the target: the values of the fields of `Vary`.
    pub variant: u64,
    /// The visitor's cookies, in the order of their names.
    pub cookies: Vec<(CookieName, u64)>,
    /// The visitor's other credentials.
    pub credentials: Option<u64>,
    /// The fields of the request that may be credentials.
    pub others: Option<u64>,
    /// The visitor's address.
    pub address: u64,
    /// `Accept-Language`.
    pub language: u64,
    /// `Accept`.
    pub accept: u64,
    /// `User-Agent`.
    pub agent: u64,
    /// When it was first answered.
    pub first: Duration,
    /// When it was last asked for.
    pub last: Duration,
    /// How often.
    pub count: u64,
}

impl Sample {
    /// Returns a number for what the request says about the visitor. `None`: nothing.
    pub fn identity(&self) -> Option<u64> {
        let is_anonymous =
            self.cookies.is_empty() && self.credentials.is_none() && self.others.is_none();
        (!is_anonymous).then(|| number(&(&self.cookies, self.credentials, self.others)))
    }

    fn is_of_same(&self, other: &Self) -> bool {
        let parts = |sample: &Self| {
            (
                (sample.body, sample.variant, sample.credentials, sample.address),
                (sample.others, sample.language, sample.accept, sample.agent),
            )
        };
        parts(self) == parts(other) && self.cookies == other.cookies
    }
}

/// A body with its pieces, and who got it.
#[derive(Clone, Debug)]
pub struct BodyOf {
    /// The sample.
    pub sample: Sample,
    /// The pieces.
    pub pieces: Arc<[HashedPiece]>,
}

/// Bodies that were got while visitors without credentials got the same.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The bodies of visitors without credentials: the first and the last.
    pub anonymous: Vec<BodyOf>,
    /// The last body of each of some other visitors.
    pub known: Vec<BodyOf>,
}

impl Window {
    /// Returns the number of pieces that it holds.
    pub fn pieces(&self) -> usize {
        self.anonymous.iter().chain(&self.known).map(|body| body.pieces.len()).sum()
    }
}

/// What responses said in their heads, and how often.
#[derive(Clone, Debug, Default)]
pub struct HeadCounts {
    /// Set a cookie.
    pub sets_cookie: u64,
    /// Were for one visitor, and the visitor had no credentials.
    pub private_to_anonymous: u64,
    /// Were for one visitor, and the visitor had credentials.
    pub private_to_known: u64,
    /// Were for all, and the visitor had credentials.
    pub public_to_known: u64,
    /// Had `Vary: *`.
    pub varies_by_all: u64,
    /// Had the request's own values in a body that no visitor without credentials got.
    pub own_values: Vec<u64>,
    /// Were stored by the application.
    pub stored: u64,
    /// The names in `Vary`.
    pub vary: BTreeSet<String>,
    /// The names of fields of requests that may name the visitor.
    pub other_fields: BTreeSet<String>,
    /// Had the media type of a page with directives (`text/html`).
    pub html: u64,
    /// What the last one said about freshness.
    pub freshness: Freshness,
}

/// The counts of requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestCounts {
    /// All.
    pub requests: u64,
    /// Those of visitors without credentials.
    pub anonymous: u64,
    /// The time of the place.
    pub place_time: Duration,
    /// Requests with a body.
    pub with_body: u64,
    /// Bodies that were too long.
    pub too_long: u64,
    /// Files.
    pub files: u64,
}

/// The evidence about one target.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The counts.
    pub counts: RequestCounts,
    /// What heads said.
    pub said: HeadCounts,
    /// The statuses, with the number of requests without and with credentials.
    pub statuses: BTreeMap<u16, (u64, u64)>,
    /// The versions that all visitors got.
    pub all_versions: Versions,
    /// The versions that visitors without credentials got.
    pub anonymous_versions: Versions,
    /// What visitors got.
    pub samples: Vec<Sample>,
    /// The addresses.
    pub addresses: BTreeSet<u64>,
    /// The addresses of visitors without credentials.
    pub anonymous_addresses: BTreeSet<u64>,
    /// The values of each cookie.
    pub cookie_values: BTreeMap<CookieName, BTreeSet<u64>>,
    /// The bodies of the present window.
    pub window: Window,
    /// The bodies of the best window before.
    pub best_window: Option<Window>,
    /// When the target was last asked for.
    pub last: Duration,
}

impl Evidence {
    /// Adds one answer. `names` are the numbers of the visitor's cookies. At most `piece_room` more
    /// pieces are held afterwards. Returns whether this was enough for the pieces of the body.
    pub fn add(
        &mut self,
        observation: &Observation,
        names: &[CookieName],
        piece_room: usize,
    ) -> bool {
        let Observation { visitor, statement, status, .. } = observation;
        let is_anonymous = visitor.is_anonymous();
        self.last = self.last.max(observation.asked);
        self.counts.requests += 1;
        self.counts.anonymous += u64::from(is_anonymous);
        self.counts.place_time += observation.place_time;
        self.counts.with_body += u64::from(observation.has_request_body);
        // Neither says anything about the page.
        if is_no_page(*status) {
            return true;
        }
        if self.statuses.len() < MAX_COUNTED || self.statuses.contains_key(status) {
            let (anonymous, known) = self.statuses.entry(*status).or_default();
            *(if is_anonymous { anonymous } else { known }) += 1;
        }
        let said = &mut self.said;
        said.sets_cookie += u64::from(statement.sets_cookie);
        said.private_to_anonymous += u64::from(statement.is_private && is_anonymous);
        said.private_to_known += u64::from(statement.is_private && !is_anonymous);
        said.public_to_known += u64::from(statement.is_public && !is_anonymous);
        said.stored += u64::from(statement.is_stored);
        said.html += u64::from(statement.is_html);
        said.freshness = statement.freshness;
        for (name, _) in &visitor.others {
            if said.other_fields.len() < MAX_COUNTED {
                said.other_fields.insert(name.clone());
            }
        }
        for name in &statement.vary {
            said.varies_by_all += u64::from(name == "*");
            if said.vary.len() < MAX_COUNTED {
                said.vary.insert(name.clone());
            }
        }
        let (hashed, has_own_value) = match &observation.body {
            ObservedBody::Complete { hashed, has_own_value } => (hashed, *has_own_value),
            ObservedBody::TooLong => {
                self.counts.too_long += 1;
                return true;
            }
            ObservedBody::File => {
                self.counts.files += 1;
                return true;
            }
            ObservedBody::Missing => return true,
        };
        self.count_visitor(visitor, names);
        let sample = sample(observation, hashed.hash, names);
        let own = &mut self.said.own_values;
        if has_own_value && !is_anonymous && own.len() < MAX_COUNTED && !own.contains(&sample.body)
        {
            own.push(sample.body);
        }
        let (asked, answered) = (observation.asked, observation.answered);
        let who = number(&(sample.identity(), visitor.address));
        self.all_versions.add(sample.variant, sample.body, who, asked, answered);
        if is_anonymous {
            self.anonymous_versions.add(sample.variant, sample.body, who, asked, answered);
        }
        self.keep_sample(&sample);
        match &hashed.pieces {
            Some(pieces) if !statement.is_coded => self.keep_pieces(sample, pieces, piece_room),
            _ => true,
        }
    }

    /// Returns the number of pieces that it holds.
    pub fn pieces(&self) -> usize {
        self.window.pieces() + self.best_window.as_ref().map_or(0, Window::pieces)
    }

    /// Returns the number of different visitors in the samples.
    pub fn visitors(&self) -> usize {
        let known = self.samples.iter().filter_map(Sample::identity);
        known.collect::<BTreeSet<_>>().len() + self.anonymous_addresses.len()
    }

    fn count_visitor(&mut self, visitor: &Visitor, names: &[CookieName]) {
        let count = |values: &mut BTreeSet<u64>, value| {
            if values.len() < MAX_COUNTED {
                values.insert(value);
            }
        };
        count(&mut self.addresses, visitor.address);
        if visitor.is_anonymous() {
            count(&mut self.anonymous_addresses, visitor.address);
        }
        for (name, (_, value)) in names.iter().zip(&visitor.cookies) {
            if self.cookie_values.len() < MAX_COUNTED || self.cookie_values.contains_key(name) {
                count(self.cookie_values.entry(*name).or_default(), *value);
            }
        }
    }

    /// Keeps a sample. If there is no room, it replaces the oldest one of the body that has most.
    fn keep_sample(&mut self, sample: &Sample) {
        if let Some(same) = self.samples.iter_mut().find(|other| other.is_of_same(sample)) {
            same.first = same.first.min(sample.first);
            same.last = same.last.max(sample.last);
            same.count += 1;
            return;
        }
        if self.samples.len() == MAX_SAMPLES {
            let mut of_body: BTreeMap<u64, usize> = BTreeMap::new();
            for sample in &self.samples {
                *of_body.entry(sample.body).or_default() += 1;
            }
            let most = of_body.into_iter().max_by_key(|(_, count)| *count).map(|(body, _)| body);
            let of_most = self.samples.iter().enumerate().filter(|(_, old)| Some(old.body) == most);
            let oldest = of_most.min_by_key(|(_, old)| old.last).map(|(index, _)| index);
            self.samples.swap_remove(oldest.unwrap_or(0));
        }
        self.samples.push(sample.clone());
    }

    /// Keeps the pieces of a body for the search of gaps. If there is no room for them, the bodies
    /// of the present window go. Returns whether there is room.
    fn keep_pieces(&mut self, sample: Sample, pieces: &Arc<[HashedPiece]>, room: usize) -> bool {
        let most = self.pieces() + room;
        let identity = sample.identity();
        let body = BodyOf { sample, pieces: Arc::clone(pieces) };
        if identity.is_none() {
            let is_new = !self.window.anonymous.is_empty()
                && self.window.anonymous.iter().all(|other| other.sample.body != body.sample.body);
            // The page has changed. If it is new each time, the bodies are compared as they are.
            if is_new && self.anonymous_versions.has_repeated() {
                let old = std::mem::take(&mut self.window);
                let best = self.best_window.as_ref().map_or(0, |best| best.known.len());
                if old.known.len() >= best {
                    self.best_window = Some(old);
                }
            }
            self.window.anonymous.truncate(1);
            let first = self.window.anonymous.first();
            if first.is_none_or(|first| first.sample.body != body.sample.body) {
                self.window.anonymous.push(body);
            }
        } else {
            let known = &mut self.window.known;
            match known.iter().position(|other| other.sample.identity() == identity) {
                Some(index) => known[index] = body,
                None if known.len() < MAX_BODIES - 2 => known.push(body),
                None => {}
            }
        }
        let has_room = self.pieces() <= most;
        if !has_room {
            self.window.known.clear();
            self.window.anonymous.clear();
        }
        has_room
    }
}

/// Returns whether a status is about this request or this moment only: errors of the server, parts,
/// conditions, and refusals for what the request itself has caused.
fn is_no_page(status: u16) -> bool {
    matches!(status, ..200 | 206 | 304 | 400 | 405 | 408 | 411..=418 | 421 | 425 | 428 | 429 | 431 | 500..)
}

/// Returns what the visitor got as a sample.
fn sample(observation: &Observation, body: u64, names: &[CookieName]) -> Sample {
    let Observation { visitor, statement, status, .. } = observation;
    let mut cookies: Vec<_> =
        names.iter().copied().zip(visitor.cookies.iter().map(|(_, value)| *value)).collect();
    cookies.sort_unstable();
    let of_field = |name: &str| match name {
        "accept-language" => visitor.language,
        "accept" => visitor.accept,
        "accept-encoding" => visitor.encoding,
        "user-agent" => visitor.agent,
        _ => 0,
    };
    let mut variant: Vec<u64> = statement.vary.iter().map(|name| of_field(name)).collect();
    if statement.is_coded {
        // The cache adds this field by itself.
        variant.push(visitor.encoding);
    }
    Sample {
        body: number(&(body, status)),
        variant: number(&variant),
        cookies,
        credentials: visitor.credentials,
        others: (!visitor.others.is_empty()).then(|| number(&visitor.others)),
        address: visitor.address,
        language: visitor.language,
        accept: visitor.accept,
        agent: visitor.agent,
        first: observation.answered,
        last: observation.asked,
        count: 1,
    }
}

/// Returns one number for values that are hashes with the key of the run already.
fn number(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
