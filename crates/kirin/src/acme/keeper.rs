//! Keeps one certificate: gets it, serves it, and gets the next in time.

use super::challenges::Challenges;
use super::error::AcmeError;
use super::lifetime::Issued;
use super::order;
use super::schedule::{self, BETWEEN_ATTEMPTS, BETWEEN_CERTIFICATES, Failures};
use super::state::State;
use crate::config::acme::AcmeSite;
use kirin_http::{CertificateFiles, Tls};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

/// A conversation with the authority takes seconds; one that hangs must not be the last.
const CONVERSATION: Duration = Duration::from_secs(600);

/// How often the authority is asked whether it wants a certificate renewed early, as when it has to revoke it.
const BETWEEN_QUESTIONS: Duration = Duration::from_secs(6 * 3600);

/// A certificate, those who serve it, and what is needed to get another.
pub struct Keeper {
    site: AcmeSite,
    listeners: Vec<Arc<Tls>>,
    challenges: Arc<Challenges>,
    state: State,
    /// What is served.
    issued: Option<Issued>,
    /// Before this no other certificate is asked for, whatever dates are in the one that is served.
    earliest: SystemTime,
    /// Somebody wants it to be tried now.
    wish: Arc<Notify>,
}

impl Keeper {
    /// Opens the directory and serves the certificate that is in it.
    pub fn open(
        site: AcmeSite,
        listeners: Vec<Arc<Tls>>,
        challenges: Arc<Challenges>,
        wish: Arc<Notify>,
    ) -> Result<Self, AcmeError> {
        let state = State::open(&site.state, &site.directory)?;
        let mut keeper =
            Self { site, listeners, challenges, state, issued: None, earliest: UNIX_EPOCH, wish };
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
        let names = self.site.domains.join(", ");
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
            tracing::info!("asking {} for a certificate for {names}", self.site.directory);
            match self.renew().await {
                Ok(issued) => {
                    let until = httpdate::fmt_http_date(issued.lifetime.until);
                    tracing::info!("serving a new certificate for {names}, good until {until}");
                    self.issued = Some(issued);
                    self.earliest = SystemTime::now() + BETWEEN_CERTIFICATES;
                    failures = Failures::default();
                    self.state.keep_failures(self.first_domain(), failures);
                }
                Err(error) => {
                    failures = Failures { count: failures.count.saturating_add(1), last: SystemTime::now() };
                    self.state.keep_failures(self.first_domain(), failures);
                    let wait = schedule::wait_after(failures.count, error.is_rate_limit(), schedule::draw());
                    tracing::error!(
                        "no certificate for {names} from {}: {error} ({}; next attempt in {} min, or on HUP; {})",
                        self.site.directory,
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
        if !issued.is_for(&self.site.domains) {
            return;
        }
        let due = schedule::renewal(issued.lifetime, schedule::draw()).max(self.earliest);
        // The wall clock decides, which may be set, and goes on while the machine sleeps.
        while let Ok(rest @ 1..) = due.duration_since(SystemTime::now()).map(|rest| rest.as_secs()) {
            self.rest(Duration::ZERO, Duration::from_secs(rest).min(BETWEEN_QUESTIONS)).await;
            match order::should_be_renewed(&self.site, &self.state, issued).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "{} does not say when to renew", self.site.directory),
            }
        }
    }

    /// Waits this long, or until somebody wishes otherwise, but not less than `least`.
    async fn rest(&self, least: Duration, time: Duration) {
        let mut wished = pin!(self.wish.notified());
        // A wish in the first part counts, too.
        wished.as_mut().enable();
        tokio::time::sleep(least).await;
        tokio::select! {
            () = wished => {}
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
        if !issued.is_for(&self.site.domains) {
            return Err(AcmeError::Certificate("it is not for the names that were asked for".into()));
        }
        self.state.keep_certificate(self.first_domain(), &pem)?;
        self.install()?;
        Ok(issued)
    }

    async fn order(&self) -> Result<String, AcmeError> {
        let order = order::certificate(&self.site, &self.state, &self.challenges);
        tokio::time::timeout(CONVERSATION, order).await.map_err(|_| AcmeError::TimedOut(CONVERSATION))?
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
        self.site.domains.first().map_or("", String::as_str)
    }
}
