//! Whether a response that is still coming is the answer to another request that it can be shared
//! with ("request collapsing", RFC 9111 section 4).

use crate::cache_control::RequestDirectives;
use crate::policy::Policy;
use crate::reuse::{Reuse, reuse};

/// What becomes of a request while a response to one like it is being stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collapse {
    /// It is answered with what comes.
    Share,
    /// It waits for the end: what is stored then can be validated, and until then nothing can be
    /// done with it.
    WaitUntilStored,
    /// The place is asked once more: what comes is too old for it.
    AskAnew,
}

/// Decides. `is_earlier` says that the request was there before the response was.
pub fn collapse(
    policy: &Policy,
    request: &RequestDirectives,
    now: u64,
    is_earlier: bool,
) -> Collapse {
    match reuse(policy, request, now, false) {
        Reuse::Fresh | Reuse::Stale | Reuse::StaleWhileRevalidate => Collapse::Share,
        // It has come from the place after this was asked: more is not to be had.
        Reuse::ValidateAsked if is_earlier => Collapse::Share,
        Reuse::ValidateAsked => Collapse::AskAnew,
        Reuse::ValidateStale if policy.validate_always || policy.lifetime <= policy.initial_age => {
            Collapse::WaitUntilStored
        }
        // Its time is over before its body is.
        Reuse::ValidateStale => Collapse::AskAnew,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use httparse::Header;

    #[test]
    fn a_response_that_comes_is_shared_for_as_long_as_it_would_be_used_from_memory() {
        let plain = Policy { received: 1000, lifetime: 60, ..Policy::default() };
        let swr = Policy { stale_while_revalidate: 10, ..plain };
        let no_cache = Policy { validate_always: true, ..plain };
        let stale = Policy { initial_age: 100, ..plain };
        for (policy, list, now, [earlier, later]) in [
            (plain, "", 1000, [Collapse::Share; 2]),
            (plain, "", 1059, [Collapse::Share; 2]),
            (plain, "", 1060, [Collapse::AskAnew; 2]),
            (swr, "", 1065, [Collapse::Share; 2]),
            (swr, "", 1075, [Collapse::AskAnew; 2]),
            (plain, "max-stale", 1075, [Collapse::Share; 2]),
            (plain, "no-cache", 1000, [Collapse::Share, Collapse::AskAnew]),
            (plain, "max-age=5", 1006, [Collapse::Share, Collapse::AskAnew]),
            (plain, "max-age=5", 1005, [Collapse::Share; 2]),
            (no_cache, "", 1000, [Collapse::WaitUntilStored; 2]),
            (no_cache, "", 1075, [Collapse::WaitUntilStored; 2]),
            (stale, "", 1000, [Collapse::WaitUntilStored; 2]),
            (stale, "max-stale", 1000, [Collapse::Share; 2]),
        ] {
            let request =
                RequestDirectives::of(&[Header { name: "Cache-Control", value: list.as_bytes() }]);
            let got = [true, false].map(|is_earlier| collapse(&policy, &request, now, is_earlier));
            assert_eq!(got, [earlier, later], "{list} at {now}: {policy:?}");
        }
    }
}
