//! The tokens of addresses that have been used (RFC 9000 section 8.1.4): each shows an address
//! once. Otherwise somebody could send a recorded one from a forged address.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use quinn_proto::{TokenLog, TokenReuseError};

/// How many used tokens are kept. When there are more, no token of an earlier time counts any more.
const MOST_TOKENS: usize = 32 * 1024;

/// Tokens have the second in which they were made.
const SECOND: Duration = Duration::from_secs(1);

/// The used tokens of a UDP address. All event loops share it.
pub(super) struct UsedTokens(Mutex<Used>);

struct Used {
    numbers: HashSet<u128>,
    /// Older tokens do not count.
    from: SystemTime,
}

impl UsedTokens {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Used { numbers: HashSet::new(), from: UNIX_EPOCH }))
    }

    fn use_once(&self, number: u128, issued: SystemTime, now: SystemTime) -> bool {
        let mut used = self.0.lock();
        if used.numbers.len() >= MOST_TOKENS {
            used.numbers.clear();
            used.from = now + SECOND;
        }
        issued >= used.from && used.numbers.insert(number)
    }
}

impl TokenLog for UsedTokens {
    fn check_and_insert(
        &self,
        nonce: u128,
        issued: SystemTime,
        _lifetime: Duration,
    ) -> Result<(), TokenReuseError> {
        match self.use_once(nonce, issued, SystemTime::now()) {
            true => Ok(()),
            false => Err(TokenReuseError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_counts_once_also_when_older_ones_are_forgotten() {
        let (used, now) = (UsedTokens::new(), UNIX_EPOCH + 1000 * SECOND);
        for number in 0..MOST_TOKENS as u128 {
            assert!(used.use_once(number, now, now));
            assert!(!used.use_once(number, now, now));
        }
        assert!(!used.use_once(0, now, now), "it was used, and is forgotten");
        assert!(!used.use_once(1 << 40, now, now), "it is as old as those that are forgotten");
        assert!(used.use_once(1 << 41, now + SECOND, now));
        assert!(!used.use_once(1 << 41, now + SECOND, now));
    }
}
