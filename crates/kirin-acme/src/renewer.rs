//! The renewer of one certificate: gets it, serves it, and renews it in time.

use std::fs::File;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kirin_server::{CertificateFiles, Tls};
use tokio::sync::Notify;

use crate::challenges::Challenges;
use crate::config::AcmeConfig;
use crate::error::AcmeError;
use crate::lifetime::IssuedCertificate;
use crate::order;
use crate::schedule::{self, BETWEEN_ATTEMPTS, BETWEEN_CERTIFICATES, Failures};
use crate::state_directory::StateDirectory;

/// The longest time for one order. An order takes seconds; one that hangs must not block later
/// ones.
const CONVERSATION: Duration = Duration::from_secs(600);

/// The number of attempts at one order if the authority rejects its nonces. The library has sent
/// each request three times by then.
const NONCE_ATTEMPTS: usize = 5;

/// The time between two looks at the lock of another Kirin.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// The time between two questions whether the authority wants an early renewal, for example because
/// it has to revoke the certificate.
const BETWEEN_QUESTIONS: Duration = Duration::from_secs(6 * 3600);

/// Returns whether both are the same listeners.
pub fn is_same(one: &[Arc<Tls>], other: &[Arc<Tls>]) -> bool {
    one.len() == other.len()
        && one.iter().all(|tls| other.iter().any(|other| Arc::ptr_eq(tls, other)))
}

/// A certificate, the listeners that serve it, and the state that is needed to renew it.
pub struct CertificateRenewer {
    config: AcmeConfig,
    listeners: Vec<Arc<Tls>>,
    challenges: Arc<Challenges>,
    state: StateDirectory,
    /// The certificate that is served.
    issued: Option<IssuedCertificate>,
    /// The earliest time of the next order. It holds whatever dates the present certificate has.
    earliest: SystemTime,
    /// Ends the waiting for the next attempt.
    renew_now: Arc<Notify>,
}

impl CertificateRenewer {
    /// Opens the directory.
    pub fn open(
        config: AcmeConfig,
        listeners: Vec<Arc<Tls>>,
        challenges: Arc<Challenges>,
        renew_now: Arc<Notify>,
    ) -> Result<Self, AcmeError> {
        let state = StateDirectory::open(&config.state, &config.directory)?;
        Ok(Self {
            config,
            listeners,
            challenges,
            state,
            issued: None,
            earliest: UNIX_EPOCH,
            renew_now,
        })
    }

    /// Serves the certificate that is in the directory, if there is one.
    pub fn serve_kept_one(&mut self) {
        if self.file().exists()
            && let Err(error) = self.serve_kept()
        {
            tracing::warn!(%error, "{} is not served; a new one is asked for", self.file().display());
        }
    }

    /// Returns which certificate it keeps, and for which listeners.
    pub fn subject(&self) -> (AcmeConfig, Vec<Arc<Tls>>) {
        (self.config.clone(), self.listeners.clone())
    }

    /// Returns the files and directories that root has made.
    pub fn paths_of_root(&self) -> Vec<PathBuf> {
        self.state.paths_of_root()
    }

    /// Gets and renews the certificate. Never returns.
    pub async fn keep(mut self) {
        let names = self.config.domains.join(", ");
        let mut failures = self.state.failures(self.first_domain());
        if let Some(wait) = schedule::wait_at_start(failures, SystemTime::now()) {
            tracing::warn!(
                "{} attempts to get a certificate for {names} have failed; next one in {} min, or on HUP ({})",
                failures.count,
                wait.as_secs() / 60,
                self.meanwhile()
            );
            self.rest(Duration::ZERO, wait).await;
        }
        loop {
            self.until_due().await;
            let turn = self.turn().await;
            if self.serve_what_another_got() {
                continue;
            }
            tracing::info!("asking {} for a certificate for {names}", self.config.directory);
            let renewed = match turn {
                Ok(lock) => {
                    let renewed = self.renew().await;
                    // Other Kirins look for the result in the directory when the lock is free.
                    drop(lock);
                    renewed
                }
                Err(error) => Err(error),
            };
            match renewed {
                Ok(issued) => {
                    failures = Failures::default();
                    self.state.keep_failures(self.first_domain(), failures);
                    let until = httpdate::fmt_http_date(issued.lifetime.until);
                    tracing::info!("serving a new certificate for {names}, good until {until}");
                    self.issued = Some(issued);
                    self.earliest = SystemTime::now() + BETWEEN_CERTIFICATES;
                }
                Err(error) => {
                    failures = Failures {
                        count: failures.count.saturating_add(1),
                        last: SystemTime::now(),
                    };
                    self.state.keep_failures(self.first_domain(), failures);
                    let wait = schedule::wait_after(
                        failures.count,
                        error.is_rate_limit(),
                        schedule::random_fraction(),
                    );
                    tracing::error!(
                        "no certificate for {names} from {}: {error} ({}; next attempt in {} min, or on HUP; {})",
                        self.config.directory,
                        error.advice(),
                        wait.as_secs() / 60,
                        self.meanwhile()
                    );
                    self.rest(BETWEEN_ATTEMPTS, wait).await;
                }
            }
        }
    }

    /// Describes what clients get until there is a new certificate.
    fn meanwhile(&self) -> String {
        match &self.issued {
            None => "handshakes are refused until then".into(),
            Some(issued) => {
                let until = httpdate::fmt_http_date(issued.lifetime.until);
                format!("the one from before is served, good until {until}")
            }
        }
    }

    /// Waits until it is time to order a certificate.
    async fn until_due(&self) {
        let Some(issued) = &self.issued else { return };
        if !issued.is_for(&self.config.domains) {
            return;
        }
        let due =
            schedule::renewal(issued.lifetime, schedule::random_fraction()).max(self.earliest);
        // The wall clock decides. Somebody may set it, and it goes on while the machine sleeps.
        while let Ok(rest @ 1..) = due.duration_since(SystemTime::now()).map(|rest| rest.as_secs())
        {
            self.rest(Duration::ZERO, Duration::from_secs(rest).min(BETWEEN_QUESTIONS)).await;
            match order::should_be_renewed(&self.config, &self.state, issued).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(%error, "{} does not say when to renew", self.config.directory)
                }
            }
        }
    }

    /// Waits until no other Kirin orders certificates in this directory.
    async fn turn(&self) -> Result<File, AcmeError> {
        let mut is_logged = false;
        loop {
            if let Some(lock) = self.state.try_lock()? {
                return Ok(lock);
            }
            if !std::mem::replace(&mut is_logged, true) {
                tracing::info!(
                    "another Kirin asks {} for certificates; this one waits and uses what is in {}",
                    self.config.directory,
                    self.config.state.display()
                );
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Serves the certificate in the directory if another Kirin has put a new one there that need
    /// not be renewed yet. Returns whether it does.
    fn serve_what_another_got(&mut self) -> bool {
        let Ok(kept) = std::fs::read(self.file())
            .map_err(drop)
            .and_then(|pem| IssuedCertificate::from_pem(&pem).map_err(drop))
        else {
            return false;
        };
        let is_new = self.issued.as_ref().is_none_or(|issued| issued.der != kept.der);
        let is_due = schedule::renewal(kept.lifetime, 1.0) <= SystemTime::now();
        if !is_new || is_due || !kept.is_for(&self.config.domains) || self.serve_kept().is_err() {
            return false;
        }
        let until = httpdate::fmt_http_date(kept.lifetime.until);
        tracing::info!(
            "serving a certificate that another Kirin got for {}, good until {until}",
            self.first_domain()
        );
        true
    }

    /// Waits for `time`, or until a renewal is asked for, but at least for `least`.
    async fn rest(&self, least: Duration, time: Duration) {
        let mut asked = pin!(self.renew_now.notified());
        // A request during `least` counts, too.
        asked.as_mut().enable();
        tokio::time::sleep(least).await;
        tokio::select! {
            () = asked => {}
            () = tokio::time::sleep(time.saturating_sub(least)) => {}
        }
    }

    async fn renew(&self) -> Result<IssuedCertificate, AcmeError> {
        let result = match self.order().await {
            // The authority will never know it again.
            Err(error) if error.is_unknown_account() => {
                self.state.forget_account()?;
                self.order().await
            }
            result => result,
        };
        let pem = result?;
        // The new certificate is checked before it replaces one that can be used.
        let issued = IssuedCertificate::from_pem(pem.as_bytes())?;
        if !issued.is_for(&self.config.domains) {
            return Err(AcmeError::Certificate(
                "it is not for the names that were asked for".into(),
            ));
        }
        self.state.keep_certificate(self.first_domain(), &pem)?;
        self.install()?;
        Ok(issued)
    }

    async fn order(&self) -> Result<String, AcmeError> {
        let order =
            again_if_bad_nonce(|| order::certificate(&self.config, &self.state, &self.challenges));
        tokio::time::timeout(CONVERSATION, order)
            .await
            .map_err(|_| AcmeError::TimedOut(CONVERSATION))?
    }

    fn serve_kept(&mut self) -> Result<(), AcmeError> {
        let path = self.file();
        let pem = std::fs::read(&path).map_err(|error| AcmeError::State(path, error))?;
        let issued = IssuedCertificate::from_pem(&pem)?;
        self.install()?;
        self.issued = Some(issued);
        Ok(())
    }

    fn install(&self) -> Result<(), AcmeError> {
        let files = CertificateFiles { chain: self.file(), key: self.file() };
        self.listeners.iter().try_for_each(|tls| tls.install(std::slice::from_ref(&files)))?;
        Ok(())
    }

    fn file(&self) -> PathBuf {
        self.state.certificate(self.first_domain())
    }

    fn first_domain(&self) -> &str {
        self.config.domains.first().map_or("", String::as_str)
    }
}

/// Repeats an attempt at once while the authority rejects its own nonces. That error says nothing
/// about the request.
async fn again_if_bad_nonce<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, AcmeError>
where
    F: Future<Output = Result<T, AcmeError>>,
{
    for _ in 1..NONCE_ATTEMPTS {
        match attempt().await {
            Err(error) if error.is_bad_nonce() => {
                tracing::debug!("the authority refused a nonce of its own; asking again");
            }
            result => return result,
        }
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_bad_nonce_is_retried_at_once() {
        for (kind, failures, expected) in [
            ("badNonce", 4, Ok(5)),
            ("badNonce", 9, Err(5)),
            ("rateLimited", 1, Err(1)),
            ("", 0, Ok(1)),
        ] {
            let mut attempts = 0;
            let result = again_if_bad_nonce(|| {
                attempts += 1;
                let problem = format!(r#"{{"type": "urn:ietf:params:acme:error:{kind}"}}"#);
                let refusal = AcmeError::Refused(serde_json::from_str(&problem).unwrap());
                std::future::ready(if attempts > failures { Ok(()) } else { Err(refusal) })
            })
            .await;
            assert_eq!(
                result.map(|()| attempts).map_err(|_| attempts),
                expected,
                "{kind} {failures}"
            );
        }
    }
}
