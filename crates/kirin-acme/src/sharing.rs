//! What machines share: records on the origin of the store, which only those with the same key can
//! read, and the lease of the machine that orders.
//!
//! ```text
//! acme/account/AUTHORITY               the account, as in `account.json`
//! acme/certificate/AUTHORITY/NAMES     the key and its certificates, as in `NAME.pem`
//! acme/failures/AUTHORITY/NAMES        the failures in a row
//! acme/answer/TOKEN                    the answer to an open challenge http-01
//! acme/proof/NAME                      the answer to an open challenge tls-alpn-01
//! ```
//!
//! `NAMES` is the first of the certificate's names in alphabetical order, and a digest of all. So
//! machines with other `domains` have another record.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use instant_acme::AccountCredentials;
use kirin_origin::{LeaseAnswer, OriginError, StoreOrigin};
use ring::digest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::challenges;
use crate::config::AcmeConfig;
use crate::lifetime::{IssuedCertificate, Lifetime};
use crate::schedule::Failures;
use crate::shared_key::SharedKey;
use crate::state_directory::authority_name;

/// How long failures are remembered: longer than the longest pause between two attempts.
const FAILURES_LAST: Duration = Duration::from_secs(30 * 86_400);

/// The time between two tries to read a certificate that could not be read.
const BETWEEN_TRIES: Duration = Duration::from_secs(5);

/// Why a record cannot be had or written.
#[derive(Debug, thiserror::Error)]
pub enum SharingError {
    /// The origin is away, or refuses.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// A record was made with another key.
    #[error(
        "{0} on the origin was made with another `shared_key_file`; give all machines the same file, or remove the keys {1}* from the origin if the file was replaced; nothing is overwritten"
    )]
    OtherKey(String, String),
    /// A record has the right key, and is not what this program writes.
    #[error("{0} on the origin is not what this Kirin writes: {1}; is the other one newer?")]
    Content(String, String),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers to encrypt with")]
    Random,
}

/// A certificate that machines share.
pub struct SharedCertificate {
    /// Its key and its chain in PEM.
    pub pem: String,
    /// Its names and dates.
    pub issued: IssuedCertificate,
    /// The record that has it.
    pub record: Bytes,
}

/// What machines share of one certificate.
pub struct Sharing {
    origin: Arc<StoreOrigin>,
    key: SharedKey,
    lease: String,
    account: String,
    certificate: String,
    failures: String,
    /// Changes when the certificate may be another.
    changes: watch::Receiver<u64>,
    /// Since when the record of the certificate cannot be read.
    trouble_since: Option<Instant>,
    /// The last trouble that was logged.
    logged: Option<String>,
}

impl Sharing {
    /// Returns what this machine shares with others by an origin, if it has a key.
    pub fn new(config: &AcmeConfig, origin: &Arc<StoreOrigin>) -> Option<Self> {
        let shared = config.shared_key.as_ref()?;
        let authority = authority_name(&config.directory);
        let names = names_of(&config.domains);
        let certificate = format!("acme/certificate/{authority}/{names}");
        Some(Self {
            changes: origin.watch_record(certificate.as_bytes()),
            origin: Arc::clone(origin),
            key: shared.key.clone(),
            lease: format!("acme/{authority}"),
            account: format!("acme/account/{authority}"),
            certificate,
            failures: format!("acme/failures/{authority}/{names}"),
            trouble_since: None,
            logged: None,
        })
    }

    /// Waits until the certificate may be another than the one that was read last. If it could not
    /// be read, the server may not report its change, so this ends soon.
    pub async fn changed(&mut self) {
        let changed = self.changes.changed();
        // The sender is as old as the origin, so there is no error.
        match self.trouble_since {
            None => _ = changed.await,
            Some(_) => _ = timeout(BETWEEN_TRIES, changed).await,
        }
    }

    /// Returns since when the certificate cannot be read, if it cannot.
    pub fn trouble_since(&self) -> Option<Instant> {
        self.trouble_since
    }

    /// Reads the certificate that machines share, if it is there. What is in the way is logged
    /// once.
    pub async fn certificate(&mut self) -> Result<Option<SharedCertificate>, SharingError> {
        // A change from here on is not missed.
        self.changes.borrow_and_update();
        let read = self.read_certificate().await;
        match &read {
            Ok(_) => (self.trouble_since, self.logged) = (None, None),
            Err(error) => self.note_trouble(error),
        }
        read
    }

    async fn read_certificate(&self) -> Result<Option<SharedCertificate>, SharingError> {
        let Some((text, record)) = self.read(&self.certificate).await? else { return Ok(None) };
        let pem = String::from_utf8(text).map_err(|error| self.unknown(&error))?;
        let issued = IssuedCertificate::from_pem(pem.as_bytes());
        let issued = issued.map_err(|error| self.unknown(&error))?;
        Ok(Some(SharedCertificate { pem, issued, record }))
    }

    fn note_trouble(&mut self, error: &SharingError) {
        self.trouble_since.get_or_insert_with(Instant::now);
        let text = error.to_string();
        if self.logged.as_ref() == Some(&text) {
            return;
        }
        match error {
            // The origin's own messages say that it is away.
            SharingError::Origin(_) => tracing::debug!(%error, "no certificate from the origin"),
            _ => tracing::error!(
                "{error}; this machine goes on with the certificate that it has, and shares nothing"
            ),
        }
        self.logged = Some(text);
    }

    /// Shares a certificate in place of the record `old`. Returns whether it was still that.
    pub async fn replace_certificate(
        &self,
        old: Option<&[u8]>,
        pem: &str,
        lifetime: Lifetime,
    ) -> Result<bool, SharingError> {
        let record = self.seal(&self.certificate, pem.as_bytes())?;
        let rest = lifetime.until.duration_since(SystemTime::now()).unwrap_or_default();
        let name = self.certificate.as_bytes();
        Ok(self.origin.replace_record(name, old, Some(&record), Some(rest)).await?)
    }

    /// Returns the account that machines share.
    pub async fn account(&self) -> Result<Option<AccountCredentials>, SharingError> {
        self.read_json(&self.account).await
    }

    /// Shares an account, if machines have none yet. They get along without it.
    pub async fn share_account(&self, account: &AccountCredentials) {
        if let Err(error) = self.add_json(&self.account, account).await {
            tracing::warn!(%error, "the account is not shared");
        }
    }

    /// Forgets the account that machines share.
    pub async fn forget_account(&self) {
        if let Err(error) = self.remove(&self.account).await {
            tracing::warn!(%error, "the account is still shared");
        }
    }

    /// Returns the failures in a row of all machines. There are none if the origin does not say.
    pub async fn failures(&self) -> Failures {
        self.read_json(&self.failures).await.ok().flatten().unwrap_or_default()
    }

    /// Writes the failures in a row. This machine must have the lease. An error is ignored: the
    /// certificate matters more.
    pub async fn keep_failures(&self, failures: Failures) {
        let kept = match failures.count {
            0 => self.remove(&self.failures).await,
            _ => self.write_failures(failures).await,
        };
        if let Err(error) = kept {
            tracing::debug!(%error, "other machines do not know of the failures");
        }
    }

    async fn write_failures(&self, failures: Failures) -> Result<(), SharingError> {
        let old = self.read(&self.failures).await?.map(|(_, record)| record);
        let new = self.seal_json(&self.failures, &failures)?;
        let (name, lasting) = (self.failures.as_bytes(), Some(FAILURES_LAST));
        self.origin.replace_record(name, old.as_deref(), Some(&new), lasting).await?;
        Ok(())
    }

    /// Lets all machines answer the challenge that `record` names.
    pub async fn offer_answer(&self, record: &str, key_authorization: &str) {
        let offered = challenges::offer(&self.origin, &self.key, record, key_authorization).await;
        if let Err(error) = offered {
            tracing::warn!(%error, "only this machine can answer the authority's request");
        }
    }

    /// Takes the lease of the machine that orders from this authority.
    pub async fn lease(&self) -> LeaseAnswer {
        self.origin.lease(self.lease.as_bytes()).await
    }

    /// Reads a record. Returns its text, and the record itself.
    async fn read(&self, name: &str) -> Result<Option<(Vec<u8>, Bytes)>, SharingError> {
        let Some(record) = self.origin.read_record(name.as_bytes()).await? else { return Ok(None) };
        match self.key.open(name, &record) {
            Some(text) => Ok(Some((text, record))),
            None => Err(SharingError::OtherKey(self.in_engine(name), self.in_engine("acme/"))),
        }
    }

    async fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, SharingError> {
        let Some((text, _)) = self.read(name).await? else { return Ok(None) };
        let value = serde_json::from_slice(&text);
        value
            .map(Some)
            .map_err(|error| SharingError::Content(self.in_engine(name), error.to_string()))
    }

    async fn add_json(&self, name: &str, value: &impl Serialize) -> Result<(), SharingError> {
        let record = self.seal_json(name, value)?;
        self.origin.replace_record(name.as_bytes(), None, Some(&record), None).await?;
        Ok(())
    }

    async fn remove(&self, name: &str) -> Result<(), SharingError> {
        if let Some((_, record)) = self.read(name).await? {
            self.origin.replace_record(name.as_bytes(), Some(&record), None, None).await?;
        }
        Ok(())
    }

    fn seal(&self, name: &str, text: &[u8]) -> Result<Vec<u8>, SharingError> {
        self.key.seal(name, text).ok_or(SharingError::Random)
    }

    fn seal_json(&self, name: &str, value: &impl Serialize) -> Result<Vec<u8>, SharingError> {
        let text = serde_json::to_vec(value);
        let text =
            text.map_err(|error| SharingError::Content(self.in_engine(name), error.to_string()))?;
        self.seal(name, &text)
    }

    fn unknown(&self, error: &dyn std::error::Error) -> SharingError {
        SharingError::Content(self.in_engine(&self.certificate), error.to_string())
    }

    /// Returns the name of a record as an operator finds it on the server.
    fn in_engine(&self, name: &str) -> String {
        let name = self.origin.config().names.record(name.as_bytes());
        String::from_utf8_lossy(&name).into_owned()
    }
}

/// Returns the part of record names that stands for these names of a certificate.
fn names_of(domains: &[String]) -> String {
    let mut domains: Vec<&str> = domains.iter().map(String::as_str).collect();
    domains.sort_unstable();
    let digest = digest::digest(&digest::SHA256, domains.join(" ").as_bytes());
    let first = domains.first().map_or_else(String::new, |first| format!("{first}/"));
    // It keeps lists of names apart, and no secret.
    let number = digest.as_ref().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    format!("{first}{number:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_names_of_a_certificate_does_not_matter() {
        let names =
            |list: &[&str]| names_of(&list.iter().map(|&name| name.into()).collect::<Vec<_>>());
        assert_eq!(names(&["b.test", "a.test"]), names(&["a.test", "b.test"]));
        assert!(names(&["b.test", "a.test"]).starts_with("a.test/"));
        assert_ne!(names(&["a.test"]), names(&["a.test", "b.test"]));
        assert_ne!(names(&["a.test", "b.test"]), names(&["a.test", "c.test"]));
    }
}
