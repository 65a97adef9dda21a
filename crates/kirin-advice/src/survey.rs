//! A survey: the evidence about all targets that were asked for during a run. Its memory is
//! bounded.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use crate::evidence::{CookieName, Evidence};
use crate::observation::{Observation, ObservedTarget};

/// The most targets. A new one replaces one that cost little, or is left out.
pub const MAX_TARGETS: usize = 1000;

/// The most pieces of bodies, 8 bytes each, of all targets together.
pub const MAX_PIECES: usize = 2_000_000;

/// The longest target in bytes: host, path and query. Requests with a longer one are only counted.
pub const MAX_TARGET_BYTES: usize = 1024;

/// The most names of cookies. Cookies with further names count as one credential.
pub const MAX_COOKIE_NAMES: usize = 256;

/// The most cookies of a request. Further ones count as one credential.
pub const MAX_COOKIES: usize = 16;

/// The longest name of a cookie in bytes.
const MAX_COOKIE_NAME_BYTES: usize = 64;

/// How many targets are looked at for one that can be replaced.
const PROBES: usize = 8;

/// The most values and visitors that are counted of a cookie.
const MAX_VALUES: usize = 64;

/// The fewest values of a cookie that may name sessions.
const MIN_SESSION_VALUES: usize = 3;

/// Starts of the names of cookies by which analytics tell visitors apart. No page depends on them.
const ANALYTICS: [&str; 12] = [
    "_ga",
    "_gid",
    "_gat",
    "_gcl",
    "_fbp",
    "__utm",
    "_pk_",
    "_hj",
    "ajs_",
    "_clck",
    "_clsk",
    "intercom-",
];

/// How much evidence is needed, and what is known of the site.
#[derive(Clone, Debug)]
pub struct Demands {
    /// The fewest different visitors: values of each cookie that names sessions, and addresses of
    /// visitors without credentials.
    pub visitors: usize,
    /// The fewest addresses. It is less than `visitors` only if all visitors come through one proxy
    /// that the front does not know.
    pub addresses: usize,
    /// The cookies that name sessions. If there is none, the survey finds them.
    pub sessions: Vec<String>,
}

impl Default for Demands {
    fn default() -> Self {
        Self { visitors: 3, addresses: 3, sessions: Vec::new() }
    }
}

/// A cookie as all requests of the run had it.
#[derive(Clone, Debug, Default)]
struct Cookie {
    name: String,
    values: BTreeSet<u64>,
    visitors: BTreeSet<u64>,
}

/// The evidence of a run.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    targets: Vec<(ObservedTarget, Evidence)>,
    indices: HashMap<ObservedTarget, usize>,
    cookies: Vec<Cookie>,
    cookie_names: HashMap<String, CookieName>,
    pieces: usize,
    next_probe: usize,
    totals: Totals,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The requests to places that run code.
    pub requests: u64,
    /// The time of these places.
    pub place_time: Duration,
    /// The requests for targets for which there was no room.
    pub left_out: u64,
    /// The bodies whose pieces had no room.
    pub without_pieces: u64,
}

impl Survey {
    /// Adds one answer.
    pub fn add(&mut self, mut observation: Observation) {
        self.totals.requests += 1;
        self.totals.place_time += observation.place_time;
        let Some(index) = self.index_of(&observation) else {
            self.totals.left_out += 1;
            return;
        };
        let names = self.names_of(&mut observation);
        let room = MAX_PIECES - self.pieces;
        let Some((_, evidence)) = self.targets.get_mut(index) else { return };
        let before = evidence.pieces();
        let has_room = evidence.add(&observation, &names, room);
        self.pieces = self.pieces - before + evidence.pieces();
        self.totals.without_pieces += u64::from(!has_room);
    }

    /// Returns the counts.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the targets with their evidence.
    pub fn targets(&self) -> impl Iterator<Item = (&ObservedTarget, &Evidence)> {
        self.targets.iter().map(|(target, evidence)| (target, evidence))
    }

    /// Returns the name of a cookie.
    pub fn cookie_name(&self, name: CookieName) -> &str {
        self.cookies.get(usize::from(name)).map_or("", |cookie| cookie.name.as_str())
    }

    /// Returns the cookies that name sessions: those of `demands`, or those of which nearly each
    /// visitor has a value of his own.
    pub fn sessions(&self, demands: &Demands) -> Vec<CookieName> {
        let all = self.cookies.iter().enumerate();
        let is_session = |cookie: &Cookie| match demands.sessions.as_slice() {
            [] => {
                cookie.values.len() >= MIN_SESSION_VALUES
                    && cookie.values.len() * 2 >= cookie.visitors.len()
                    && !ANALYTICS.iter().any(|start| cookie.name.starts_with(start))
            }
            names => names.contains(&cookie.name),
        };
        all.filter(|(_, cookie)| is_session(cookie)).map(|(index, _)| index as CookieName).collect()
    }

    /// Returns the index of the target of an observation. Makes room for a new one if it can.
    fn index_of(&mut self, observation: &Observation) -> Option<usize> {
        let target = &observation.target;
        if let Some(index) = self.indices.get(target) {
            return Some(*index);
        }
        let length =
            target.host.len() + target.path.len() + target.query.as_ref().map_or(0, String::len);
        // Strangers ask for any number of paths that do not exist.
        if length > MAX_TARGET_BYTES || matches!(observation.status, 400..=499) {
            return None;
        }
        let index = match self.targets.len() {
            MAX_TARGETS => {
                let index = self.replaceable()?;
                let (old, evidence) = std::mem::take(&mut self.targets[index]);
                self.indices.remove(&old);
                self.pieces -= evidence.pieces();
                self.totals.left_out += evidence.counts.requests;
                index
            }
            index => {
                self.targets.push(Default::default());
                index
            }
        };
        self.targets[index].0 = target.clone();
        self.indices.insert(target.clone(), index);
        Some(index)
    }

    /// Returns the cheapest of a few targets, if it was asked for once only.
    fn replaceable(&mut self) -> Option<usize> {
        let start = self.next_probe;
        self.next_probe = (start + PROBES) % MAX_TARGETS;
        let probes = (0..PROBES).map(|step| (start + step) % MAX_TARGETS);
        let once = probes.filter(|index| self.targets[*index].1.counts.requests == 1);
        once.min_by_key(|index| self.targets[*index].1.counts.place_time)
    }

    /// Returns the numbers of the names of a visitor's cookies. Cookies for which there is no room
    /// become a part of the visitor's credentials.
    fn names_of(&mut self, observation: &mut Observation) -> Vec<CookieName> {
        let visitor = &mut observation.visitor;
        let mut names = Vec::new();
        let mut rest = visitor.credentials;
        let mut kept = Vec::new();
        for (name, value) in std::mem::take(&mut visitor.cookies) {
            match self.name_of(&name).filter(|_| names.len() < MAX_COOKIES) {
                Some(number) => {
                    names.push(number);
                    kept.push((name, value));
                }
                None => rest = Some(rest.unwrap_or(0).rotate_left(1) ^ value),
            }
        }
        visitor.cookies = kept;
        visitor.credentials = rest;
        let mut who = visitor.address;
        visitor.cookies.iter().for_each(|(_, value)| who = who.rotate_left(7) ^ value);
        for (number, (_, value)) in names.iter().zip(&visitor.cookies) {
            let Some(cookie) = self.cookies.get_mut(usize::from(*number)) else { continue };
            if cookie.values.len() < MAX_VALUES && cookie.visitors.len() < MAX_VALUES {
                cookie.values.insert(*value);
                cookie.visitors.insert(who);
            }
        }
        names
    }

    fn name_of(&mut self, name: &str) -> Option<CookieName> {
        if let Some(number) = self.cookie_names.get(name) {
            return Some(*number);
        }
        if self.cookies.len() == MAX_COOKIE_NAMES || name.len() > MAX_COOKIE_NAME_BYTES {
            return None;
        }
        let number = CookieName::try_from(self.cookies.len()).ok()?;
        self.cookies.push(Cookie { name: name.to_owned(), ..Cookie::default() });
        self.cookie_names.insert(name.to_owned(), number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use super::*;
    use crate::observation::ObservedBody;
    use crate::pieces::{self, HashedBody, Splitter};
    use crate::test_site::{PAGE, TestSite, Visit};

    fn answer(path: usize, hashed: &HashedBody) -> Observation {
        let target =
            ObservedTarget { path: format!("/{path}"), is_read: true, ..ObservedTarget::default() };
        let body = ObservedBody::Complete { hashed: hashed.clone(), has_own_value: false };
        Observation { target, status: 200, body, ..Observation::default() }
    }

    #[test]
    fn bodies_whose_pieces_have_no_room_are_counted() {
        let mut splitter = Splitter::new(RandomState::new());
        splitter.add(&[b','; pieces::MAX_PIECES]);
        let long = splitter.finish();
        let (most, rest) = (MAX_PIECES / pieces::MAX_PIECES, MAX_PIECES % pieces::MAX_PIECES);
        let mut survey = Survey::default();
        for path in 0..most + 5 {
            survey.add(answer(path, &long));
        }
        assert_eq!(survey.totals().without_pieces, 5);
        // A body that was there before costs nothing, and a short one still has room.
        let mut splitter = Splitter::new(RandomState::new());
        splitter.add(&vec![b','; rest]);
        survey.add(answer(0, &long));
        survey.add(answer(most, &splitter.finish()));
        assert_eq!(survey.totals().without_pieces, 5);
        let pieces = survey.targets().map(|(_, evidence)| evidence.pieces()).sum::<usize>();
        assert_eq!(pieces, MAX_PIECES);
    }
    #[test]
    fn requests_of_strangers_take_bounded_memory() {
        let mut site = TestSite::new();
        for number in 0..3000 {
            let (path, address) =
                (format!("/x{number}"), format!("10.0.{}.{}", number / 256, number % 256));
            let (name, value) = (format!("cookie{number}"), format!("value {number}"));
            let cookies: Vec<_> = (0..40).map(|_| (name.as_str(), value.as_str())).collect();
            let body = "<b>".repeat(2000);
            site.ask(Visit {
                path: &path,
                cookies: &cookies,
                address: &address,
                body: &body,
                ..Visit::default()
            });
        }
        assert_eq!(site.survey.targets().count(), MAX_TARGETS);
        let pieces = site.survey.targets().map(|(_, evidence)| evidence.pieces()).sum::<usize>();
        assert!(pieces <= MAX_PIECES, "{pieces}");
        assert!(site.survey.totals().left_out >= 2000);
        assert!(site.report().entries.len() <= 200);
        // One page with many visitors.
        let mut site = TestSite::new();
        for number in 0..1000 {
            let (value, body) = (format!("value {number}"), format!("{PAGE}{number}"));
            let cookies = [("sid", value.as_str())];
            site.ask(Visit { cookies: &cookies, body: &body, ..Visit::default() });
        }
        for (_, evidence) in site.survey.targets() {
            assert!(evidence.samples.len() <= crate::evidence::MAX_SAMPLES);
            let bodies = evidence.window.known.len() + evidence.window.anonymous.len();
            assert!(bodies <= crate::evidence::MAX_BODIES);
        }
    }

    #[test]
    fn paths_that_do_not_exist_take_no_room() {
        let mut site = TestSite::new();
        for number in 0..100 {
            let path = format!("/x{number}");
            site.ask(Visit { path: &path, status: 404, ..Visit::default() });
        }
        assert_eq!(site.survey.targets().count(), 0);
        assert_eq!(site.report().requests, 100);
    }
}
