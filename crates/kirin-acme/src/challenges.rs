//! The challenges by which an authority checks that a name leads here: http-01 (RFC 8555 section
//! 8.3), and the search for the answers to tls-alpn-01 (`challenge_certificates.rs`).
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
use kirin_server::ChallengeCertificate;
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

/// The answers to open challenges: at most one for each name in the configuration.
#[derive(Debug)]
pub struct Challenges {
    /// The key authorizations, by token.
    open: RwLock<HashMap<String, String>>,
    /// The certificates, by name in lower case.
    certificates: RwLock<HashMap<String, OfferedCertificate>>,
    /// Where the answers of other machines are.
    shared: RwLock<Option<SharedAnswers>>,
    lookups: Arc<Semaphore>,
}

/// A certificate that proves a name, and the order that it is for.
#[derive(Debug)]
struct OfferedCertificate {
    certificate: ChallengeCertificate,
    order: Arc<()>,
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
    record: String,
    _permit: OwnedSemaphorePermit,
}

impl Default for Challenges {
    fn default() -> Self {
        Self {
            open: RwLock::default(),
            certificates: RwLock::default(),
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
        match self.lookup_token(token) {
            Some(lookup) => ChallengeAnswer::Elsewhere(lookup),
            None => ChallengeAnswer::Unknown,
        }
    }

    /// Returns the certificate that proves a name, if an order of this machine needs that.
    pub(crate) fn own_certificate(&self, name: &str) -> Option<ChallengeCertificate> {
        let certificates = self.certificates.read().unwrap_or_else(PoisonError::into_inner);
        certificates.get(name).map(|offered| offered.certificate.clone())
    }

    fn lookup_token(&self, token: &str) -> Option<ChallengeLookup> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        self.lookup(token_record(token))
    }

    /// Returns a question to the origin for the key authorization that proves a name.
    pub(crate) fn lookup_name(&self, name: &str) -> Option<ChallengeLookup> {
        self.lookup(name_record(name))
    }

    /// Returns a question to the origin, if machines share certificates, and not too many requests
    /// wait for it.
    fn lookup(&self, record: String) -> Option<ChallengeLookup> {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        let shared = shared.as_ref().filter(|shared| shared.origin.is_connected())?;
        let permit = Arc::clone(&self.lookups).try_acquire_owned().ok()?;
        Some(ChallengeLookup { shared: shared.clone(), record, _permit: permit })
    }

    /// Sets where the answers of other machines are from now on.
    pub(crate) fn share(&self, shared: Option<SharedAnswers>) {
        *self.shared.write().unwrap_or_else(PoisonError::into_inner) = shared;
    }

    /// Returns a place for the answers of one order.
    pub(crate) fn answers(self: &Arc<Self>) -> OfferedAnswers {
        OfferedAnswers {
            challenges: Arc::clone(self),
            tokens: Vec::new(),
            names: Vec::new(),
            order: Arc::default(),
        }
    }
}

impl ChallengeLookup {
    /// Asks the origin. Returns the response if another machine has the answer.
    pub async fn response(self) -> Option<Response> {
        self.key_authorization().await.map(response)
    }

    /// Asks the origin, by one trip.
    pub(crate) async fn key_authorization(self) -> Option<String> {
        let Self { shared, record: name, .. } = &self;
        let read = shared.origin.read_record(name.as_bytes()).await;
        let record =
            read.inspect_err(|error| tracing::debug!(%error, "no answer is known")).ok()??;
        let mut opened = shared.keys.iter().filter_map(|key| key.open(name, &record));
        String::from_utf8(opened.next()?).ok()
    }
}

fn response(key_authorization: String) -> Response {
    let body = Body::from(key_authorization.into_bytes());
    let mut response = Response::new(AnsweredBy::SERVER, StatusCode::OK, body);
    response.fields.push("Content-Type", "application/octet-stream");
    response
}

/// Lets all machines answer the challenge that `record` names.
pub async fn offer(
    origin: &StoreOrigin,
    key: &SharedKey,
    record: &str,
    key_authorization: &str,
) -> Result<(), SharingError> {
    let text = key.seal(record, key_authorization.as_bytes()).ok_or(SharingError::Random)?;
    Ok(origin.write_record(record.as_bytes(), &text, Some(ANSWER_LASTS)).await?)
}

/// Returns the name of the record that answers the challenge `token`.
pub fn token_record(token: &str) -> String {
    format!("acme/answer/{token}")
}

/// Returns the name of the record that proves a name. An authority that makes a TLS handshake does
/// not send the token.
pub fn name_record(name: &str) -> String {
    format!("acme/proof/{name}")
}

/// The answers of one order. They are removed when this is dropped.
pub struct OfferedAnswers {
    challenges: Arc<Challenges>,
    tokens: Vec<String>,
    names: Vec<String>,
    /// Its identity.
    order: Arc<()>,
}

impl OfferedAnswers {
    /// Adds the answer to the challenge `token`.
    pub fn add(&mut self, token: &str, key_authorization: &str) {
        self.tokens.push(token.to_owned());
        let mut open = self.challenges.open.write().unwrap_or_else(PoisonError::into_inner);
        open.insert(token.to_owned(), key_authorization.to_owned());
    }

    /// Adds the certificate that proves a name. Of two orders for a name, the later one has it.
    pub fn add_certificate(&mut self, name: &str, certificate: ChallengeCertificate) {
        self.names.push(name.to_owned());
        let certificates = &self.challenges.certificates;
        let mut certificates = certificates.write().unwrap_or_else(PoisonError::into_inner);
        let order = Arc::clone(&self.order);
        certificates.insert(name.to_owned(), OfferedCertificate { certificate, order });
    }
}

impl Drop for OfferedAnswers {
    fn drop(&mut self) {
        let mut open = self.challenges.open.write().unwrap_or_else(PoisonError::into_inner);
        self.tokens.iter().for_each(|token| _ = open.remove(token));
        let certificates = &self.challenges.certificates;
        let mut certificates = certificates.write().unwrap_or_else(PoisonError::into_inner);
        for name in &self.names {
            if certificates.get(name).is_some_and(|it| Arc::ptr_eq(&it.order, &self.order)) {
                certificates.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kirin_origin::OriginConfig;
    use kirin_server::ChallengeCertificates;
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
        assert!(challenges.lookup_token("a").is_none(), "nothing is shared");
        challenges.share(Some(SharedAnswers { origin: Arc::clone(&origin), keys }));
        assert!(challenges.lookup_token("a").is_none(), "the origin is away");
        tokio::spawn(Arc::clone(&origin).run());
        while !origin.is_connected() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        offer(&origin, &key, &token_record("a"), "a.print").await.unwrap();
        assert!(challenges.lookup_token(&"a".repeat(MAX_TOKEN_BYTES + 1)).is_none());
        let mut lookups: Vec<_> = (0..MOST_LOOKUPS).map(|_| challenges.lookup_token("a")).collect();
        assert!(lookups.iter().all(Option::is_some) && challenges.lookup_token("a").is_none());
        let found = lookups.pop().flatten().unwrap().response().await;
        assert_eq!(found.map(|response| response.status), Some(StatusCode::OK));
        let unknown = challenges.lookup_token("b").expect("one of them is over");
        assert!(unknown.response().await.is_none());
        // The certificate for a name is made here.
        assert!(challenges.find("a.test").await.is_none());
        offer(&origin, &key, &name_record("a.test"), "a.print").await.unwrap();
        assert!(challenges.find("A.test").await.is_some());
        assert!(challenges.find("b.test").await.is_none());
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
