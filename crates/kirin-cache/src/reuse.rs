//! Decides whether a stored response answers a request (RFC 9111 section 4, RFC 5861).

use crate::cache_control::RequestDirectives;
use crate::policy::{Policy, Staleness};

/// The handling of a request for which a response is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The stored response answers it.
    Fresh,
    /// The stored response answers it. It is stale, but the client accepts that.
    Stale,
    /// The stored response answers it. It is stale and is revalidated meanwhile.
    StaleWhileRevalidate,
    /// The stored response must be validated first, because it is stale.
    ValidateStale,
    /// The stored response must be validated first, because the client requires it.
    ValidateRequested,
}

/// Returns how to handle a request. After a soft purge (`is_purged`) a fresh response counts as
/// just stale.
pub fn reuse(policy: &Policy, request: &RequestDirectives, now: u64, is_purged: bool) -> Reuse {
    let fresh_for = if is_purged { 0 } else { policy.fresh_for(now) };
    if policy.validate_always {
        return Reuse::ValidateStale;
    }
    if fresh_for > 0 {
        let is_too_old = request.max_age.is_some_and(|limit| policy.age(now) > limit);
        let goes_too_soon = request.min_fresh.is_some_and(|least| fresh_for < least);
        return match request.no_cache || is_too_old || goes_too_soon {
            true => Reuse::ValidateRequested,
            false => Reuse::Fresh,
        };
    }
    if policy.staleness == Staleness::Forbidden || request.no_cache || request.min_fresh.is_some() {
        return Reuse::ValidateStale;
    }
    // "max-age … unless max-stale is also present, the client is not willing to accept a stale
    // response" (section 5.2.1.1)
    if request.max_age.is_some_and(|limit| policy.age(now) > limit || request.max_stale.is_none()) {
        return Reuse::ValidateStale;
    }
    let stale_for = policy.stale_for(now);
    if policy.stale_while_revalidate > 0 && stale_for <= policy.stale_while_revalidate {
        return Reuse::StaleWhileRevalidate;
    }
    // A purge comes from the site itself, so `max-stale` of a client does not override it.
    match request.max_stale {
        Some(limit)
            if stale_for <= limit && !is_purged && policy.staleness == Staleness::Allowed =>
        {
            Reuse::Stale
        }
        _ => Reuse::ValidateStale,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::directives;
    use httparse::Header;

    fn request_directives(list: &str) -> RequestDirectives {
        assert!(directives(list.as_bytes()).count() > 0 || list.is_empty());
        RequestDirectives::from_fields(&[Header { name: "Cache-Control", value: list.as_bytes() }])
    }

    #[test]
    fn directives_of_request_and_response_decide_the_reuse() {
        let plain = Policy { received: 1000, lifetime: 60, ..Policy::default() };
        let swr = Policy { stale_while_revalidate: 10, ..plain };
        let strict = Policy { staleness: Staleness::Forbidden, ..swr };
        let shared = Policy { staleness: Staleness::AsDirected, ..swr };
        let no_cache = Policy { validate_always: true, ..swr };
        for (policy, request, now, expected) in [
            (plain, "", 1059, Reuse::Fresh),
            (plain, "", 1060, Reuse::ValidateStale),
            (plain, "max-age=30", 1030, Reuse::Fresh),
            (plain, "max-age=30", 1031, Reuse::ValidateRequested),
            (plain, "max-age=0", 1001, Reuse::ValidateRequested),
            (plain, "no-cache", 1000, Reuse::ValidateRequested),
            (plain, "min-fresh=20", 1040, Reuse::Fresh),
            (plain, "min-fresh=20", 1041, Reuse::ValidateRequested),
            (plain, "max-stale", 9999, Reuse::Stale),
            (plain, "max-stale=5", 1065, Reuse::Stale),
            (plain, "max-stale=5", 1066, Reuse::ValidateStale),
            (plain, "max-stale=5, no-cache", 1061, Reuse::ValidateStale),
            (plain, "max-stale=5, max-age=62", 1062, Reuse::Stale),
            (plain, "max-stale=5, max-age=62", 1063, Reuse::ValidateStale),
            (plain, "only-if-cached", 1059, Reuse::Fresh),
            (strict, "max-stale", 1061, Reuse::ValidateStale),
            (strict, "", 1061, Reuse::ValidateStale),
            (shared, "", 1061, Reuse::StaleWhileRevalidate),
            (shared, "max-stale", 1071, Reuse::ValidateStale),
            (swr, "", 1070, Reuse::StaleWhileRevalidate),
            (swr, "", 1071, Reuse::ValidateStale),
            (swr, "max-age=9999", 1065, Reuse::ValidateStale),
            (swr, "min-fresh=1", 1065, Reuse::ValidateStale),
            (swr, "max-stale=99", 1071, Reuse::Stale),
            (no_cache, "max-stale", 1000, Reuse::ValidateStale),
        ] {
            assert_eq!(
                reuse(&policy, &request_directives(request), now, false),
                expected,
                "{request} at {now}: {policy:?}"
            );
        }
    }

    #[test]
    fn a_soft_purge_makes_a_response_stale_at_once() {
        let plain = Policy { received: 1000, lifetime: 60, ..Policy::default() };
        let swr = Policy { stale_while_revalidate: 10, ..plain };
        assert_eq!(reuse(&plain, &request_directives(""), 1000, true), Reuse::ValidateStale);
        assert_eq!(
            reuse(&plain, &request_directives("max-stale"), 1000, true),
            Reuse::ValidateStale
        );
        assert_eq!(reuse(&swr, &request_directives(""), 1000, true), Reuse::StaleWhileRevalidate);
        assert_eq!(reuse(&swr, &request_directives(""), 1071, true), Reuse::ValidateStale);
    }
}
