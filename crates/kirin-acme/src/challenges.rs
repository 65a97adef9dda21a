//! The http-01 challenge (RFC 8555 section 8.3), by which an authority checks that a name leads
//! here.
//!
//! The order of a certificate writes the answers, and the event loops read them. If machines share
//! the certificate, the authority's request may reach another machine than the one that orders. So
//! the answers are also on the origin of the store, encrypted like all that machines share: nobody
//! who only writes to the origin can prove the names to an authority.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use kirin_http::{AnsweredBy, Body, Method, RequestHead, Response, StatusCode};
use kirin_origin::StoreOrigin;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::shared_key::SharedKey;
use crate::sharing::SharingError;

/// The path below which an authority asks.
pub const PATH: &str = "/.well-known/acme-challenge/";

/// The longest token that is asked for at the origin, in bytes. Authorities use about 43.
const MAX_TOKEN_BYTES: usize = 128;

/// The most requests that wait for the origin. Further ones go to the routes at once.
const MOST_LOOKUPS: usize = 8;

/// How long an answer is on the origin: longer than an order may take.
const ANSWER_LASTS: Duration = Duration::from_secs(15 * 60);

/// The key authorizations of open challenges, by token.
#[derive(Debug)]
pub struct Challenges {
    open: RwLock<HashMap<String, String>>,
    /// Where the answers of other machines are.
    shared: RwLock<Option<SharedAnswers>>,
    lookups: Arc<Semaphore>,
}

/// The answers of all machines.
#[derive(Clone, Debug)]
pub struct SharedAnswers {
    /// The origin.
    pub origin: Arc<StoreOrigin>,
    /// The keys of the certificates that are shared.
    pub keys: Vec<SharedKey>,
}

/// What is known of a request that may be an authority's.
pub enum ChallengeAnswer {
    /// The response.
    Known(Response),
    /// Another machine may have the answer.
    Elsewhere(ChallengeLookup),
    /// No such challenge is open. The routes may answer, since another ACME client may run there.
    Unknown,
}

/// A question to the origin for the answer to a challenge.
pub struct ChallengeLookup {
    shared: SharedAnswers,
    token: String,
    _permit: OwnedSemaphorePermit,
}

impl Default for Challenges {
    fn default() -> Self {
        Self {
            open: RwLock::default(),
            shared: RwLock::default(),
            lookups: Arc::new(Semaphore::new(MOST_LOOKUPS)),
        }
    }
}

/// Returns the token of a path below [`PATH`]. It consists of base64url characters (RFC 8555
/// section 8.3). A path with `..` or `%2F` would be another page of the site.
pub fn challenge_token(path: &str) -> Option<&str> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    path.strip_prefix(PATH).filter(|token| !token.is_empty() && token.bytes().all(is_part))
}

impl Challenges {
    /// Returns what is known of a request for the answer to the challenge `token`.
    pub fn answer(&self, request: &RequestHead<'_>, token: &str) -> ChallengeAnswer {
        if request.method != Method::GET {
            return ChallengeAnswer::Unknown;
        }
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(key_authorization) = open.get(token) {
            return ChallengeAnswer::Known(response(key_authorization.clone()));
        }
        drop(open);
        match self.lookup(token) {
            Some(lookup) => ChallengeAnswer::Elsewhere(lookup),
            None => ChallengeAnswer::Unknown,
        }
    }

    /// Returns a question to the origin, if machines share certificates, and not too many requests
    /// wait for it.
    fn lookup(&self, token: &str) -> Option<ChallengeLookup> {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        let shared = shared.as_ref().filter(|shared| shared.origin.is_connected())?;
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let permit = Arc::clone(&self.lookups).try_acquire_owned().ok()?;
        Some(ChallengeLookup { shared: shared.clone(), token: token.into(), _permit: permit })
    }

    /// Sets where the answers of other machines are from now on.
    pub(crate) fn share(&self, shared: Option<SharedAnswers>) {
        *self.shared.write().unwrap_or_else(PoisonError::into_inner) = shared;
    }

    /// Returns a place for the answers of one order.
    pub(crate) fn answers(self: &Arc<Self>) -> OfferedAnswers {
        OfferedAnswers { challenges: Arc::clone(self), tokens: Vec::new() }
    }
}

impl ChallengeLookup {
    /// Asks the origin. Returns the response if another machine has the answer. Takes one trip.
    pub async fn response(self) -> Option<Response> {
        let name = record_name(&self.token);
        let read = self.shared.origin.read_record(name.as_bytes()).await;
        let record =
            read.inspect_err(|error| tracing::debug!(%error, "no answer is known")).ok()??;
        let mut opened = self.shared.keys.iter().filter_map(|key| key.open(&name, &record));
        String::from_utf8(opened.next()?).ok().map(response)
    }
}

fn response(key_authorization: String) -> Response {
    let body = Body::from(key_authorization.into_bytes());
    let mut response = Response::new(AnsweredBy::SERVER, StatusCode::OK, body);
    response.fields.push("Content-Type", "application/octet-stream");
    response
}

/// Lets all machines answer a challenge.
pub async fn offer(
    origin: &StoreOrigin,
    key: &SharedKey,
    token: &str,
    key_authorization: &str,
) -> Result<(), SharingError> {
    let name = record_name(token);
    let record = key.seal(&name, key_authorization.as_bytes()).ok_or(SharingError::Random)?;
    Ok(origin.write_record(name.as_bytes(), &record, Some(ANSWER_LASTS)).await?)
}

fn record_name(token: &str) -> String {
    format!("acme/answer/{token}")
}

/// The answers of one order. They are removed when this is dropped.
pub struct OfferedAnswers {
    challenges: Arc<Challenges>,
    tokens: Vec<String>,
}

impl OfferedAnswers {
    /// Adds the answer to the challenge `token`.
    pub fn add(&mut self, token: &str, key_authorization: &str) {
        self.tokens.push(token.to_owned());
        let mut open = self.challenges.open.write().unwrap_or_else(PoisonError::into_inner);
        open.insert(token.to_owned(), key_authorization.to_owned());
    }
}

impl Drop for OfferedAnswers {
    fn drop(&mut self) {
        let mut open = self.challenges.open.write().unwrap_or_else(PoisonError::into_inner);
        self.tokens.iter().for_each(|token| _ = open.remove(token));
    }
}

#[cfg(test)]
mod tests {
    use kirin_origin::OriginConfig;
    use kirin_store::{Store, StoreConfig};
    use kirin_tests::RedisServer;

    use super::*;

    #[tokio::test]
    async fn a_few_requests_at_a_time_wait_for_the_origin() {
        let redis = RedisServer::start();
        let address = format!("redis://{}", redis.address()).parse().unwrap();
        let store = Arc::new(Store::new(StoreConfig {
            memory_bytes: 1 << 20,
            item_limit_bytes: 1 << 10,
            shards: 1,
            evict: true,
        }));
        let origin = StoreOrigin::new(OriginConfig::new(address, None).unwrap(), store);
        let challenges = Challenges::default();
        let key = SharedKey::parse(&"ab".repeat(32)).unwrap();
        let keys = vec![SharedKey::parse(&"cd".repeat(32)).unwrap(), key.clone()];
        assert!(challenges.lookup("a").is_none(), "nothing is shared");
        challenges.share(Some(SharedAnswers { origin: Arc::clone(&origin), keys }));
        assert!(challenges.lookup("a").is_none(), "the origin is away");
        tokio::spawn(Arc::clone(&origin).run());
        while !origin.is_connected() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        offer(&origin, &key, "a", "a.print").await.unwrap();
        assert!(challenges.lookup(&"a".repeat(MAX_TOKEN_BYTES + 1)).is_none());
        let mut lookups: Vec<_> = (0..MOST_LOOKUPS).map(|_| challenges.lookup("a")).collect();
        assert!(lookups.iter().all(Option::is_some) && challenges.lookup("a").is_none());
        let found = lookups.pop().flatten().unwrap().response().await;
        assert_eq!(found.map(|response| response.status), Some(StatusCode::OK));
        let unknown = challenges.lookup("b").expect("one of them is over");
        assert!(unknown.response().await.is_none());
    }

    #[test]
    fn the_answers_of_an_order_are_removed_with_it() {
        let challenges = Arc::new(Challenges::default());
        let open = || challenges.open.read().unwrap().len();
        let mut first = challenges.answers();
        first.add("a", "a.print");
        {
            let mut second = challenges.answers();
            second.add("b", "b.print");
            assert_eq!(open(), 2);
        }
        assert_eq!(challenges.open.read().unwrap().get("a").map(String::as_str), Some("a.print"));
        drop(first);
        assert_eq!(open(), 0);
    }

    #[test]
    fn a_token_has_only_characters_of_base64url() {
        let token = |rest: &str| challenge_token(&format!("{PATH}{rest}")).map(str::to_owned);
        assert_eq!(token("Ab-_9").as_deref(), Some("Ab-_9"));
        for other in ["", "a/b", "..", "a%2Fb", "a.b", "a b"] {
            assert_eq!(token(other), None, "{other:?}");
        }
        assert_eq!(challenge_token("/.well-known/other/a"), None);
    }
}
