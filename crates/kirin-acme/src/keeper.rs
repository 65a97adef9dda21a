//! Keeps one certificate: gets it, serves it, and gets the next in time.

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
use crate::lifetime::Issued;
use crate::order;
use crate::schedule::{self, BETWEEN_ATTEMPTS, BETWEEN_CERTIFICATES, Failures};
use crate::state::State;

/// A conversation with the authority takes seconds; one that hangs must not be the last.
const CONVERSATION: Duration = Duration::from_secs(600);

/// How often a conversation begins anew because of a bad nonce. The library has sent each request
/// three times by then.
const NONCE_ATTEMPTS: usize = 5;

/// How often a Kirin that waits for another one looks whether it is done.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// How often the authority is asked whether it wants a certificate renewed early, as when it has to
/// revoke it.
const BETWEEN_QUESTIONS: Duration = Duration::from_secs(6 * 3600);

/// A certificate, those who serve it, and what is needed to get another.
pub struct Keeper {
    config: AcmeConfig,
    listeners: Vec<Arc<Tls>>,
    challenges: Arc<Challenges>,
    state: State,
    /// What is served.
    issued: Option<Issued>,
    /// Before this no other certificate is asked for, whatever dates are in the one that is served.
    earliest: SystemTime,
    /// Ends the waiting for the next attempt.
    renew_now: Arc<Notify>,
}

impl Keeper {
    /// Opens the directory and serves the certificate that is in it.
    pub fn open(
        config: AcmeConfig,
        listeners: Vec<Arc<Tls>>,
        challenges: Arc<Challenges>,
        renew_now: Arc<Notify>,
    ) -> Result<Self, AcmeError> {
        let state = State::open(&config.state, &config.directory)?;
        let mut keeper = Self {
            config,
            listeners,
            challenges,
            state,
            issued: None,
            earliest: UNIX_EPOCH,
            renew_now,
        };
        if keeper.file().exists()
            && let Err(error) = keeper.serve_kept()
        {
            tracing::warn!(%error, "{} is not served; a new one is asked for", keeper.file().display());
        }
        Ok(keeper)
    }

    /// What root has made for it.
    pub fn paths_of_root(&self) -> Vec<PathBuf> {
        self.state.paths_of_root()
    }

    /// Gets certificates for ever.
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
                    // Not earlier: others look for the result in the directory.
                    drop(lock);
                    renewed
                }
                Err(error) => Err(error),
            };
            match renewed {
                Ok(issued) => {
                    let until = httpdate::fmt_http_date(issued.lifetime.until);
                    tracing::info!("serving a new certificate for {names}, good until {until}");
                    self.issued = Some(issued);
                    self.earliest = SystemTime::now() + BETWEEN_CERTIFICATES;
                    failures = Failures::default();
                    self.state.keep_failures(self.first_domain(), failures);
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
                        schedule::draw(),
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

    /// What clients get while there is no new certificate.
    fn meanwhile(&self) -> String {
        match &self.issued {
            None => "handshakes are refused until then".into(),
            Some(issued) => {
                let until = httpdate::fmt_http_date(issued.lifetime.until);
                format!("the one from before is served, good until {until}")
            }
        }
    }

    /// Waits until a certificate is to be asked for.
    async fn until_due(&self) {
        let Some(issued) = &self.issued else { return };
        if !issued.is_for(&self.config.domains) {
            return;
        }
        let due = schedule::renewal(issued.lifetime, schedule::draw()).max(self.earliest);
        // The wall clock decides, which may be set, and goes on while the machine sleeps.
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

    /// Waits until no other Kirin talks with the authority for this directory.
    async fn turn(&self) -> Result<File, AcmeError> {
        let mut is_said = false;
        loop {
            if let Some(lock) = self.state.try_lock()? {
                return Ok(lock);
            }
            if !std::mem::replace(&mut is_said, true) {
                tracing::info!(
                    "another Kirin asks {} for certificates; this one waits and uses what is in {}",
                    self.config.directory,
                    self.config.state.display()
                );
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Serves the certificate in the directory, if it is another one than is served and need not be
    /// renewed yet.
    fn serve_what_another_got(&mut self) -> bool {
        let Ok(kept) = std::fs::read(self.file())
            .map_err(drop)
            .and_then(|pem| Issued::from_pem(&pem).map_err(drop))
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

    /// Waits this long, or until a renewal is asked for, but not less than `least`.
    async fn rest(&self, least: Duration, time: Duration) {
        let mut asked = pin!(self.renew_now.notified());
        // A request during the first part counts, too.
        asked.as_mut().enable();
        tokio::time::sleep(least).await;
        tokio::select! {
            () = asked => {}
            () = tokio::time::sleep(time.saturating_sub(least)) => {}
        }
    }

    async fn renew(&self) -> Result<Issued, AcmeError> {
        let result = match self.order().await {
            // It would be unknown for ever.
            Err(error) if error.is_unknown_account() => {
                self.state.forget_account()?;
                self.order().await
            }
            result => result,
        };
        let pem = result?;
        // Is looked at before it takes the place of one that can be used.
        let issued = Issued::from_pem(pem.as_bytes())?;
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
        let issued = Issued::from_pem(&pem)?;
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

/// Does it again at once while the authority refuses its own numbers, which says nothing about the
/// request.
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
    async fn a_bad_nonce_is_no_reason_to_wait_and_other_refusals_are() {
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
