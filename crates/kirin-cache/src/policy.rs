//! The policy of a stored response: how long it is fresh, how it may be reused when stale, and
//! which requests it may answer. It is made from the directives of the response when it arrives.

/// The permission to reuse a stale response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Staleness {
    /// Its directives and the client may allow it.
    #[default]
    Allowed,
    /// Only its directives may allow it. `s-maxage` forbids other reuse (RFC 9111 section
    /// 5.2.2.10), but an explicit `stale-while-revalidate` or `stale-if-error` beside it counts.
    AsDirected,
    /// It must not be reused.
    Forbidden,
}

/// The policy of a stored response. Times are in seconds, and `received` counts from the Unix
/// epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// When the response was received.
    pub received: u64,
    /// Its age when it was received (RFC 9111 section 4.2.3: `corrected_initial_age`).
    pub initial_age: u64,
    /// The age up to which it is fresh.
    pub lifetime: u64,
    /// How long it may be reused stale while it is revalidated.
    pub stale_while_revalidate: u64,
    /// How long it may be reused stale in place of an error.
    pub stale_if_error: u64,
    /// Whether each reuse must be validated (`no-cache`).
    pub validate_always: bool,
    /// Whether it may be reused when stale.
    pub staleness: Staleness,
    /// Whether it may answer requests with `Cookie`.
    pub serves_cookies: bool,
    /// Whether it may answer requests with `Authorization`.
    pub serves_authorization: bool,
}

impl Policy {
    /// Returns its age (RFC 9111 section 4.2.3).
    pub fn age(&self, now: u64) -> u64 {
        self.initial_age.saturating_add(now.saturating_sub(self.received))
    }

    /// Returns the remaining freshness in seconds, or 0 if it is stale.
    pub fn fresh_for(&self, now: u64) -> u64 {
        self.lifetime.saturating_sub(self.age(now))
    }

    /// Returns how long it has been stale, in seconds.
    pub fn stale_for(&self, now: u64) -> u64 {
        self.age(now).saturating_sub(self.lifetime)
    }

    /// Returns the remaining freshness in seconds. If it is stale, the result is negative: the time
    /// since then.
    pub fn ttl(&self, now: u64) -> i64 {
        let seconds = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
        match self.fresh_for(now) {
            0 => -seconds(self.stale_for(now)),
            fresh_for => seconds(fresh_for),
        }
    }

    /// Returns whether it may replace an error now (RFC 5861 section 4).
    pub fn serves_error(&self, now: u64) -> bool {
        self.staleness != Staleness::Forbidden
            && !self.validate_always
            && self.stale_if_error > 0
            && self.stale_for(now) <= self.stale_if_error
    }

    /// Returns when it becomes useless, in seconds since the Unix epoch. If it can be validated, it
    /// is useful for at least `kept_for` seconds after its freshness.
    pub fn useful_until(&self, validatable: bool, kept_for: u64) -> u64 {
        let grace = match self.staleness {
            Staleness::Forbidden => 0,
            Staleness::Allowed | Staleness::AsDirected => {
                self.stale_while_revalidate.max(self.stale_if_error)
            }
        };
        let fresh = self.lifetime.saturating_sub(self.initial_age);
        let useful = fresh.saturating_add(grace.max(if validatable { kept_for } else { 0 }));
        self.received.saturating_add(useful).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICY: Policy = Policy {
        received: 1000,
        initial_age: 10,
        lifetime: 60,
        stale_while_revalidate: 0,
        stale_if_error: 20,
        validate_always: false,
        staleness: Staleness::Allowed,
        serves_cookies: false,
        serves_authorization: false,
    };

    #[test]
    fn the_age_grows_from_its_value_at_reception() {
        for (now, age, fresh_for, stale_for) in [
            (1000, 10, 50, 0),
            (1049, 59, 1, 0),
            (1050, 60, 0, 0),
            (1051, 61, 0, 1),
            (990, 10, 50, 0),
        ] {
            let got = (POLICY.age(now), POLICY.fresh_for(now), POLICY.stale_for(now));
            assert_eq!(got, (age, fresh_for, stale_for), "{now}");
            assert_eq!(POLICY.ttl(now), fresh_for as i64 - stale_for as i64, "{now}");
        }
    }

    #[test]
    fn stale_if_error_ends_after_its_time() {
        assert!(POLICY.serves_error(1070));
        assert!(!POLICY.serves_error(1071));
        assert!(!Policy { staleness: Staleness::Forbidden, ..POLICY }.serves_error(1060));
        assert!(!Policy { validate_always: true, ..POLICY }.serves_error(1060));
        assert!(!Policy { stale_if_error: 0, ..POLICY }.serves_error(1050));
    }

    #[test]
    fn a_response_is_kept_while_it_can_be_reused_or_validated() {
        assert_eq!(POLICY.useful_until(false, 100), 1071);
        assert_eq!(POLICY.useful_until(true, 100), 1151);
        assert_eq!(
            Policy { staleness: Staleness::Forbidden, ..POLICY }.useful_until(false, 100),
            1051
        );
    }

    proptest! {
        #[test]
        fn a_response_is_never_fresh_and_stale_at_once(received: u64, initial_age: u64, lifetime: u64, now: u64) {
            let policy = Policy { received, initial_age, lifetime, ..Policy::default() };
            prop_assert!(policy.fresh_for(now) == 0 || policy.stale_for(now) == 0);
            let _ = policy.useful_until(true, u64::MAX);
        }
    }
}
