//! The versions of a page: the bodies that were seen, and when.
//!
//! A page that only changes with time has one body after the other. If an old body is asked for
//! after a new one has been answered, something else than time makes the difference.

use std::collections::BTreeSet;
use std::time::Duration;

/// The most versions that are kept of a page.
pub const MAX_VERSIONS: usize = 32;

/// The most visitors that are counted of a version.
const MAX_VISITORS: usize = 8;

/// One body.
#[derive(Clone, Debug)]
pub struct BodyVersion {
    /// The key in a cache without the target: the values of the fields of `Vary`.
    pub variant: u64,
    /// The hash of the body.
    pub body: u64,
    /// When it was first answered completely.
    pub first: Duration,
    /// When the last request with it was sent.
    pub last: Duration,
    /// How often it was seen.
    pub count: u64,
    /// The visitors, at most [`MAX_VISITORS`].
    visitors: BTreeSet<u64>,
}

/// The bodies of a page.
#[derive(Clone, Debug, Default)]
pub struct Versions {
    list: Vec<BodyVersion>,
    /// How many versions have been removed to make room.
    removed: u64,
}

/// How long a page stayed the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steadiness {
    /// The time from the first to the last request.
    pub observed: Duration,
    /// How often it changed.
    pub changes: u64,
    /// The shortest time between two changes. `None` without two changes.
    pub shortest: Option<Duration>,
    /// The most visitors that have seen one version.
    pub visitors: usize,
}

impl Versions {
    /// Adds a body that `visitor` got.
    pub fn add(
        &mut self,
        variant: u64,
        body: u64,
        visitor: u64,
        asked: Duration,
        answered: Duration,
    ) {
        let known =
            self.list.iter_mut().find(|version| version.variant == variant && version.body == body);
        let version = match known {
            Some(version) => version,
            None => {
                if self.list.len() == MAX_VERSIONS {
                    self.list.remove(0);
                    self.removed += 1;
                }
                let visitors = BTreeSet::new();
                self.list.push(BodyVersion {
                    variant,
                    body,
                    first: answered,
                    last: asked,
                    count: 0,
                    visitors,
                });
                let Some(version) = self.list.last_mut() else { return };
                version
            }
        };
        version.first = version.first.min(answered);
        version.last = version.last.max(asked);
        version.count += 1;
        if version.visitors.len() < MAX_VISITORS {
            version.visitors.insert(visitor);
        }
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns whether a body has been seen.
    pub fn has(&self, body: u64) -> bool {
        self.list.iter().any(|version| version.body == body)
    }

    /// Returns whether a body has been seen more than once.
    pub fn has_repeated(&self) -> bool {
        self.list.iter().any(|version| version.count > 1)
    }

    /// Returns when a body was first answered and last asked for.
    pub fn time_of(&self, body: u64) -> Option<(Duration, Duration)> {
        let version = self.list.iter().find(|version| version.body == body)?;
        Some((version.first, version.last))
    }

    /// Returns the bodies.
    pub fn bodies(&self) -> impl Iterator<Item = u64> {
        self.list.iter().map(|version| version.body)
    }

    /// Returns how long the page stayed the same, or `None` if not only time makes a difference: an
    /// old body has come again, or most bodies have come once only.
    pub fn steadiness(&self) -> Option<Steadiness> {
        let mut sorted: Vec<&BodyVersion> = self.list.iter().collect();
        sorted.sort_by_key(|version| (version.variant, version.first));
        let mut steady = Steadiness { changes: self.removed, ..Steadiness::default() };
        let mut change_before = None;
        for pair in sorted.windows(2) {
            let [old, new] = pair else { continue };
            if old.variant != new.variant {
                change_before = None;
                continue;
            }
            if old.last > new.first {
                return None;
            }
            steady.changes += 1;
            let between = new.first.saturating_sub(change_before.unwrap_or(old.first));
            steady.shortest = Some(steady.shortest.map_or(between, |least| least.min(between)));
            change_before = Some(new.first);
        }
        // A body that comes once may be new each time, however slowly they come.
        let seen_once = self.list.iter().filter(|version| version.count == 1).count();
        if self.list.len() > 1 && seen_once > 1 + self.list.len() / 4 {
            return None;
        }
        let first = self.list.iter().map(|version| version.first).min().unwrap_or_default();
        let last = self.list.iter().map(|version| version.last).max().unwrap_or_default();
        steady.observed = last.saturating_sub(first);
        steady.visitors = self.list.iter().map(|version| version.visitors.len()).max().unwrap_or(0);
        Some(steady)
    }
}

impl Steadiness {
    /// Returns a freshness lifetime in seconds for which the page is old for half of the time
    /// between two changes at most. `None` if it changes too often.
    pub fn ttl_seconds(&self) -> Option<u64> {
        const STEPS: [u64; 8] = [60, 30, 20, 10, 5, 3, 2, 1];
        let known = match self.shortest {
            // The page may have changed just before and after the run.
            None => self.observed,
            Some(shortest) => shortest.min(self.observed) / 2,
        };
        STEPS.into_iter().find(|step| Duration::from_secs(*step) <= known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the steadiness of bodies, one for each second: `aab` is the body `a` at the seconds
    /// 0 and 1, and `b` at 2. Each request is from another visitor.
    fn of(bodies: &str) -> Option<Steadiness> {
        let mut versions = Versions::default();
        for (second, body) in bodies.bytes().enumerate() {
            let at = Duration::from_secs(second as u64);
            versions.add(0, u64::from(body), second as u64, at, at + Duration::from_millis(5));
        }
        versions.steadiness()
    }

    #[test]
    fn consecutive_bodies_are_versions_of_a_changing_page() {
        for (bodies, expected) in [
            ("a", Some((0, None))),
            ("aaaa", Some((0, Some(2)))),
            ("aaaaaaaaaaabbbbbbbbbbbbcccccccccc", Some((2, Some(5)))),
            ("aabbaa", None),
            ("aaaaab", Some((1, Some(2)))),
            // New each time.
            ("abcdefgh", None),
            ("ab", None),
            ("aabbccddeeff", Some((5, Some(1)))),
        ] {
            let found = of(bodies).map(|steady| (steady.changes, steady.ttl_seconds()));
            assert_eq!(found, expected, "{bodies}");
        }
    }

    #[test]
    fn a_late_answer_with_an_old_version_is_not_a_difference() {
        let mut versions = Versions::default();
        let at = Duration::from_secs;
        versions.add(0, 1, 1, at(0), at(1));
        versions.add(0, 1, 2, at(2), at(9));
        versions.add(0, 2, 3, at(3), at(4));
        versions.add(0, 2, 4, at(10), at(11));
        assert!(versions.steadiness().is_some());
        versions.add(0, 1, 5, at(5), at(6));
        assert!(versions.steadiness().is_none());
    }

    #[test]
    fn variants_are_pages_of_their_own() {
        let mut versions = Versions::default();
        for second in 0..10 {
            let at = Duration::from_secs(second);
            versions.add(second % 2, second % 2, second, at, at);
        }
        assert_eq!(versions.steadiness().map(|steady| steady.changes), Some(0));
    }

    #[test]
    fn many_versions_take_bounded_memory() {
        let mut versions = Versions::default();
        for number in 0..1000 {
            let at = Duration::from_secs(number);
            versions.add(0, number / 2, number, at, at);
        }
        assert_eq!(versions.list.len(), MAX_VERSIONS);
        assert_eq!(versions.steadiness().map(|steady| steady.changes), Some(499));
    }
}
