//! Password checks, which are slow by design. They run on threads of their own, a few at a time. A
//! success is remembered for a while. Clients take turns, so that a client that guesses delays only
//! itself.
//!
//! There is one for the program, so that the bound holds for all loops and routes together.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use kirin_balance::{ClientKey, FairQueue};
use kirin_http::BasicCredentials;
use parking_lot::Mutex;
use sha2::Sha256;
use tokio::sync::oneshot;

use crate::routing::password_file::Account;

/// How long a success is remembered, in seconds. A changed hash is another key, so that a new
/// password counts at once.
const REMEMBERED_SECONDS: u64 = 300;

/// The most successes that are remembered.
const REMEMBERED: usize = 4096;

/// The most checks that wait for their turn. One more is answered 503: a flood of guesses must not
/// fill the memory.
const MAX_WAITING: usize = 256;

/// A digest of a user, a password and a hash. It is worthless without the key, which is made at the
/// start.
type Digest = [u8; 32];

/// The checks of the program.
pub struct PasswordChecks {
    key: Digest,
    turns: Arc<Mutex<Turns>>,
    recent: Mutex<Recent>,
}

/// The checks that wait for their turn.
struct Turns {
    /// How many checks may begin now.
    free: usize,
    waiting: FairQueue<oneshot::Sender<Turn>>,
}

/// The right to do a check. Dropping it gives the turn to the next.
struct Turn(Arc<Mutex<Turns>>);

/// Too many checks wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl PasswordChecks {
    /// Allows as many checks at a time as half of the `cores`, so that guesses leave the rest for
    /// serving.
    pub fn new(cores: usize) -> Result<Self, String> {
        let mut key = Digest::default();
        getrandom::fill(&mut key).map_err(|error| format!("no random numbers: {error}"))?;
        Ok(Self {
            key,
            turns: Arc::new(Mutex::new(Turns {
                free: (cores / 2).max(1),
                waiting: FairQueue::new(MAX_WAITING),
            })),
            recent: Mutex::default(),
        })
    }

    /// Returns whether this password was right a short while ago. The check takes microseconds.
    pub fn knows(&self, account: &Account, credentials: &BasicCredentials, now: u64) -> bool {
        account.exists && self.recent.lock().has(&self.digest(account, credentials), now)
    }

    /// Checks the password that `client` has sent. It takes as long for users that do not exist.
    pub async fn check(
        &self,
        client: ClientKey,
        account: Account,
        credentials: &BasicCredentials,
        now: u64,
    ) -> Result<bool, Busy> {
        let turn = Turn::take(&self.turns, client).await?;
        // Another request of the visitor may have succeeded meanwhile.
        if self.knows(&account, credentials, now) {
            return Ok(true);
        }
        let digest = self.digest(&account, credentials);
        let password = credentials.password.clone();
        let Account { hash, exists } = account;
        let checked = tokio::task::spawn_blocking(move || hash.is_of(&password)).await;
        drop(turn);
        let right = checked.unwrap_or(false) && exists;
        if right {
            self.recent.lock().add(digest, now);
        }
        Ok(right)
    }

    fn digest(&self, account: &Account, credentials: &BasicCredentials) -> Digest {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else {
            return Digest::default();
        };
        for part in [account.hash.as_bytes(), &credentials.user, &credentials.password] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

impl std::fmt::Debug for PasswordChecks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordChecks")
    }
}

impl Turn {
    /// Waits for the turn of a check of `client`. Fails if another check takes its place in the
    /// queue.
    async fn take(turns: &Arc<Mutex<Turns>>, client: ClientKey) -> Result<Self, Busy> {
        let receiver = {
            let mut state = turns.lock();
            if state.free > 0 {
                state.free -= 1;
                return Ok(Self(Arc::clone(turns)));
            }
            let (sender, receiver) = oneshot::channel();
            // A check that is displaced sees the end of its sender.
            state.waiting.enter(client, sender).map_err(|_| Busy)?;
            receiver
        };
        receiver.await.map_err(|_| Busy)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let Some(next) = state.waiting.serve(0) else {
            state.free += 1;
            return;
        };
        drop(state);
        // A turn that is not received is dropped, which passes it on.
        let _ = next.send(Self(Arc::clone(&self.0)));
    }
}

/// Recent successes and the seconds until which they count, the oldest first.
#[derive(Default)]
struct Recent {
    until: HashMap<Digest, u64>,
    order: VecDeque<Digest>,
}

impl Recent {
    fn has(&self, digest: &Digest, now: u64) -> bool {
        self.until.get(digest).is_some_and(|until| now < *until)
    }

    fn add(&mut self, digest: Digest, now: u64) {
        if self.until.insert(digest, now + REMEMBERED_SECONDS).is_none() {
            self.order.push_back(digest);
        }
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.until.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::password_hash::PasswordHash;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    const HASH: &str = "$2y$04$DOnGkAhY38tS4uXZqairYOMJVc3527cKZh8iYA7yBT1ceWIzGnGZm";

    fn account(exists: bool) -> Account {
        Account { hash: PasswordHash::parse(HASH).unwrap(), exists }
    }

    fn credentials(user: &str, password: &str) -> BasicCredentials {
        BasicCredentials { user: user.into(), password: password.into() }
    }

    fn check(
        checks: &PasswordChecks,
        exists: bool,
        user: &str,
        password: &str,
    ) -> Result<bool, Busy> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(checks.check(None, account(exists), &credentials(user, password), 100))
    }

    #[test]
    fn a_success_is_remembered_for_a_while_for_this_user_password_and_hash_alone() {
        let checks = PasswordChecks::new(2).unwrap();
        let right = credentials("bob", "opensesame");
        assert!(!checks.knows(&account(true), &right, 100));
        assert_eq!(check(&checks, true, "bob", "opensesame"), Ok(true));
        assert!(checks.knows(&account(true), &right, 100));
        assert!(checks.knows(&account(true), &right, 100 + REMEMBERED_SECONDS - 1));
        assert!(!checks.knows(&account(true), &right, 100 + REMEMBERED_SECONDS));
        assert!(!checks.knows(&account(true), &credentials("bo", "bopensesame"), 100));
        assert!(!checks.knows(&account(true), &credentials("bob", "opensesam"), 100));
        assert!(!checks.knows(&account(false), &right, 100));
        let other =
            PasswordHash::parse("$5$abc$nLqWOK0qJLCJKZMXLNybgoG547cshuV27v9Qm1qzJl4").unwrap();
        assert!(!checks.knows(&Account { hash: other, exists: true }, &right, 100));
    }

    #[test]
    fn wrong_passwords_and_unknown_users_are_not_let_in_nor_remembered() {
        let checks = PasswordChecks::new(2).unwrap();
        assert_eq!(check(&checks, true, "bob", "wrong"), Ok(false));
        assert_eq!(check(&checks, false, "nobody", "opensesame"), Ok(false));
        assert!(checks.recent.lock().order.is_empty());
    }

    #[test]
    fn no_more_than_so_many_wait_and_none_is_counted_for_ever() {
        let checks = PasswordChecks::new(2).unwrap();
        let turn = poll(&mut take(&checks, None)).map(Result::unwrap);
        let mut waiting: Vec<_> = (0..MAX_WAITING).map(|_| take(&checks, None)).collect();
        assert!(waiting.iter_mut().all(|wait| poll(wait).is_pending()));
        assert_eq!(check(&checks, true, "bob", "opensesame"), Err(Busy));
        drop(waiting);
        drop(turn);
        assert_eq!(checks.turns.lock().free, 1);
        assert!(checks.turns.lock().waiting.is_empty());
        assert_eq!(check(&checks, true, "bob", "opensesame"), Ok(true));
    }

    #[test]
    fn a_client_that_guesses_keeps_no_other_waiting_or_out() {
        let checks = PasswordChecks::new(2).unwrap();
        let mut first = take(&checks, Some(1));
        let Poll::Ready(Ok(turn)) = poll(&mut first) else { panic!("nobody else is there") };
        let mut guesses: Vec<_> = (0..MAX_WAITING).map(|_| take(&checks, Some(1))).collect();
        assert!(guesses.iter_mut().all(|wait| poll(wait).is_pending()));
        let mut other = take(&checks, Some(2));
        assert!(poll(&mut other).is_pending());
        assert!(matches!(poll(&mut guesses[MAX_WAITING - 1]), Poll::Ready(Err(Busy))));
        drop(turn);
        assert!(poll(&mut guesses[0]).map(drop).is_ready(), "and its turn is dropped");
        assert!(matches!(poll(&mut other), Poll::Ready(Ok(_))));
    }

    type Taking<'a> = Pin<Box<dyn Future<Output = Result<Turn, Busy>> + 'a>>;

    fn take(checks: &PasswordChecks, client: ClientKey) -> Taking<'_> {
        Box::pin(Turn::take(&checks.turns, client))
    }

    fn poll(taking: &mut Taking<'_>) -> Poll<Result<Turn, Busy>> {
        taking.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_memory_for_successes_is_bounded() {
        let mut recent = Recent::default();
        for number in 0..(REMEMBERED + 10) as u64 {
            let mut digest = Digest::default();
            digest[..8].copy_from_slice(&number.to_le_bytes());
            recent.add(digest, number);
            assert!(recent.has(&digest, number));
        }
        assert_eq!((recent.until.len(), recent.order.len()), (REMEMBERED, REMEMBERED));
    }
}
