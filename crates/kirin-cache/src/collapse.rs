//! Decides whether a request shares a response that is still being received ("request collapsing",
//! RFC 9111 section 4).

use crate::cache_control::RequestDirectives;
use crate::policy::Policy;
use crate::reuse::{Reuse, reuse};

/// The handling of a request while the response to a similar one is being stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collapse {
    /// The request shares the response.
    Share,
    /// The request waits until the response is stored. Only then can it be validated.
    WaitUntilStored,
    /// The request is forwarded, because the response is too old for it.
    Forward,
}

/// Returns how to handle a request. `is_earlier` means that the request arrived before the response
/// did.
pub fn collapse(
    policy: &Policy,
    request: &RequestDirectives,
    now: u64,
    is_earlier: bool,
) -> Collapse {
    match reuse(policy, request, now, false) {
        Reuse::Fresh | Reuse::Stale | Reuse::StaleWhileRevalidate => Collapse::Share,
        // The response is newer than the request, so it needs no validation.
        Reuse::ValidateRequested if is_earlier => Collapse::Share,
        Reuse::ValidateRequested => Collapse::Forward,
        Reuse::ValidateStale if policy.validate_always || policy.lifetime <= policy.initial_age => {
            Collapse::WaitUntilStored
        }
        // The response became stale before its body was complete.
        Reuse::ValidateStale => Collapse::Forward,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use httparse::Header;

    #[test]
    fn an_arriving_response_is_shared_if_it_could_be_reused_from_memory() {
        let plain = Policy { received: 1000, lifetime: 60, ..Policy::default() };
        let swr = Policy { stale_while_revalidate: 10, ..plain };
        let no_cache = Policy { validate_always: true, ..plain };
        let stale = Policy { initial_age: 100, ..plain };
        for (policy, list, now, [earlier, later]) in [
            (plain, "", 1000, [Collapse::Share; 2]),
            (plain, "", 1059, [Collapse::Share; 2]),
            (plain, "", 1060, [Collapse::Forward; 2]),
            (swr, "", 1065, [Collapse::Share; 2]),
            (swr, "", 1075, [Collapse::Forward; 2]),
            (plain, "max-stale", 1075, [Collapse::Share; 2]),
            (plain, "no-cache", 1000, [Collapse::Share, Collapse::Forward]),
            (plain, "max-age=5", 1006, [Collapse::Share, Collapse::Forward]),
            (plain, "max-age=5", 1005, [Collapse::Share; 2]),
            (no_cache, "", 1000, [Collapse::WaitUntilStored; 2]),
            (no_cache, "", 1075, [Collapse::WaitUntilStored; 2]),
            (stale, "", 1000, [Collapse::WaitUntilStored; 2]),
            (stale, "max-stale", 1000, [Collapse::Share; 2]),
        ] {
            let request = RequestDirectives::from_fields(&[Header {
                name: "Cache-Control",
                value: list.as_bytes(),
            }]);
            let got = [true, false].map(|is_earlier| collapse(&policy, &request, now, is_earlier));
            assert_eq!(got, [earlier, later], "{list} at {now}: {policy:?}");
        }
    }
}
