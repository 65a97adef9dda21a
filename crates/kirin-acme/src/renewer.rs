//! The renewer of one certificate: gets it, serves it, and renews it in time.
//!
//! `turn.rs` waits until this Kirin may order, `taking_over.rs` serves what another one got.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kirin_origin::StoreOrigin;
use kirin_server::{CertificateFiles, Tls};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::account::forget_account;
use crate::challenge_kind::{AttemptKinds, ChallengeKind};
use crate::challenges::Challenges;
use crate::config::AcmeConfig;
use crate::error::AcmeError;
use crate::lifetime::IssuedCertificate;
use crate::order;
use crate::schedule::{
    self, BETWEEN_ATTEMPTS, BETWEEN_CERTIFICATES, Failures, Occasion, wait_after_others,
};
use crate::sharing::Sharing;
use crate::state_directory::StateDirectory;

/// The longest time for one order. An order takes seconds; one that hangs must not block later
/// ones.
const CONVERSATION: Duration = Duration::from_secs(600);

/// The number of attempts at one order if the authority rejects its nonces. The library has sent
/// each request three times by then.
const NONCE_ATTEMPTS: usize = 5;

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
    pub(crate) config: AcmeConfig,
    listeners: Vec<Arc<Tls>>,
    challenges: Arc<Challenges>,
    pub(crate) state: StateDirectory,
    /// What machines share of it.
    pub(crate) sharing: Option<Sharing>,
    /// The certificate that is served.
    pub(crate) issued: Option<IssuedCertificate>,
    /// The earliest time of the next order. It holds whatever dates the present certificate has.
    pub(crate) earliest: SystemTime,
    /// The failures in a row, as far as this machine knows.
    pub(crate) failures: Failures,
    /// The last reason to try at once.
    occasion: Occasion,
    /// Ends the waiting for the next attempt.
    renew_now: Arc<Notify>,
}

/// Why a rest has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestEnd {
    /// The time is over, or a renewal is asked for.
    Over,
    /// Another machine got a certificate, which is served now.
    TookOver,
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
            sharing: None,
            issued: None,
            earliest: UNIX_EPOCH,
            failures: Failures::default(),
            occasion: Occasion { at: SystemTime::now(), is_by_operator: false },
            renew_now,
        })
    }

    /// Shares the certificate with other machines from now on, if the configuration says so.
    pub fn share(&mut self, origin: &Arc<StoreOrigin>) {
        self.sharing = Sharing::new(&self.config, origin);
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
        self.failures = self.state.failures(self.first_domain());
        self.look().await;
        if let Some(wait) = schedule::wait_at_start(self.failures, SystemTime::now()) {
            tracing::warn!(
                "{} attempts to get a certificate for {names} have failed; next one in {} min, or on HUP ({})",
                self.failures.count,
                wait.as_secs() / 60,
                self.meanwhile()
            );
            self.rest(Duration::ZERO, wait).await;
        }
        loop {
            self.until_due().await;
            let turn = match self.turn().await {
                Ok(Some(turn)) => Ok(turn),
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            if turn.is_ok()
                && let Some(wait) = self.wait_after_others().await
            {
                drop(turn);
                tracing::info!(
                    "another machine got no certificate for {names}; next attempt in {} min, or on HUP ({})",
                    wait.as_secs() / 60,
                    self.meanwhile()
                );
                self.rest(Duration::ZERO, wait).await;
                continue;
            }
            tracing::info!("asking {} for a certificate for {names}", self.config.directory);
            let (turn, renewed) = match turn {
                Ok(turn) => (Some(turn), self.renew().await),
                Err(error) => (None, Err(error)),
            };
            match renewed {
                Ok(issued) => {
                    let until = httpdate::fmt_http_date(issued.lifetime.until);
                    tracing::info!("serving a new certificate for {names}, good until {until}");
                    self.issued = Some(issued);
                    self.earliest = SystemTime::now() + BETWEEN_CERTIFICATES;
                    // Others look for the result when the turn is over.
                    self.look().await;
                    self.keep_failures(Failures::default()).await;
                }
                Err(error) => {
                    let failures = Failures {
                        count: self.failures.count.saturating_add(1),
                        last: SystemTime::now(),
                        is_rate_limit: error.is_rate_limit(),
                    };
                    self.keep_failures(failures).await;
                    drop(turn);
                    let random = schedule::random_fraction();
                    let wait = schedule::wait_after(failures.count, failures.is_rate_limit, random);
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
    async fn until_due(&mut self) {
        while let Some(issued) = self.issued.clone() {
            if !issued.is_for(&self.config.domains) {
                return;
            }
            let due =
                schedule::renewal(issued.lifetime, schedule::random_fraction()).max(self.earliest);
            if self.rest_until(due, &issued).await == RestEnd::Over {
                return;
            }
        }
    }

    /// Waits until a certificate is due, or the authority wants it renewed.
    async fn rest_until(&mut self, due: SystemTime, issued: &IssuedCertificate) -> RestEnd {
        // The wall clock decides. Somebody may set it, and it goes on while the machine sleeps.
        while let Ok(rest @ 1..) = due.duration_since(SystemTime::now()).map(|rest| rest.as_secs())
        {
            let rest = Duration::from_secs(rest).min(BETWEEN_QUESTIONS);
            if self.rest(Duration::ZERO, rest).await == RestEnd::TookOver {
                return RestEnd::TookOver;
            }
            let (state, sharing) = (&self.state, self.sharing.as_ref());
            match order::should_be_renewed(&self.config, state, sharing, issued).await {
                Ok(true) => return RestEnd::Over,
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(%error, "{} does not say when to renew", self.config.directory)
                }
            }
        }
        RestEnd::Over
    }

    /// Returns how long to wait because another machine has just tried.
    async fn wait_after_others(&mut self) -> Option<Duration> {
        let shared = self.sharing.as_ref()?.failures().await;
        if shared.last > self.failures.last {
            self.failures = shared;
        }
        wait_after_others(shared, self.occasion, SystemTime::now())
    }

    /// Notes the failures in a row, for the next start of the program and for other machines.
    async fn keep_failures(&mut self, failures: Failures) {
        self.failures = failures;
        self.state.keep_failures(self.first_domain(), failures);
        if let Some(sharing) = &self.sharing {
            sharing.keep_failures(failures).await;
        }
    }

    /// Waits for `time`, or until a renewal is asked for, but at least for `least`. It also ends
    /// when the certificate of another machine is served.
    pub(crate) async fn rest(&mut self, least: Duration, time: Duration) -> RestEnd {
        let renew_now = Arc::clone(&self.renew_now);
        let mut asked = pin!(renew_now.notified());
        // A request during `least` counts, too.
        asked.as_mut().enable();
        let end = Instant::now() + time;
        tokio::time::sleep(least).await;
        loop {
            tokio::select! {
                () = asked.as_mut() => {
                    self.occasion = Occasion { at: SystemTime::now(), is_by_operator: true };
                    return RestEnd::Over;
                }
                () = tokio::time::sleep_until(end) => return RestEnd::Over,
                () = changed(&mut self.sharing) => {}
            }
            if self.look().await {
                return RestEnd::TookOver;
            }
        }
    }

    async fn renew(&self) -> Result<IssuedCertificate, AcmeError> {
        let result = match self.order().await {
            // The authority will never know it again.
            Err(error) if error.is_unknown_account() => {
                forget_account(&self.state, self.sharing.as_ref()).await?;
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

    /// Orders a certificate. If the names cannot be proven in one way, another order may prove them
    /// in another.
    async fn order(&self) -> Result<String, AcmeError> {
        let is_new = self.failures.last < self.occasion.at;
        let kinds = AttemptKinds::choose(&self.config.challenges, self.failures.count, is_new);
        match (self.order_by(kinds.first).await, kinds.second) {
            (Err(error), Some(second)) if error.may_be_proven_otherwise() => {
                tracing::warn!("{error} ({}); trying {second}", error.advice());
                self.order_by(second).await
            }
            (result, _) => result,
        }
    }

    async fn order_by(&self, kind: ChallengeKind) -> Result<String, AcmeError> {
        let order = again_if_bad_nonce(|| {
            let sharing = self.sharing.as_ref();
            order::certificate(&self.config, &self.state, sharing, &self.challenges, kind)
        });
        tokio::time::timeout(CONVERSATION, order)
            .await
            .map_err(|_| AcmeError::TimedOut(CONVERSATION))?
    }

    pub(crate) fn serve_kept(&mut self) -> Result<(), AcmeError> {
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

    pub(crate) fn file(&self) -> PathBuf {
        self.state.certificate(self.first_domain())
    }

    pub(crate) fn first_domain(&self) -> &str {
        self.config.domains.first().map_or("", String::as_str)
    }
}

/// Waits until what machines share may be another. Never returns if they share nothing.
async fn changed(sharing: &mut Option<Sharing>) {
    match sharing {
        Some(sharing) => sharing.changed().await,
        None => std::future::pending().await,
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
