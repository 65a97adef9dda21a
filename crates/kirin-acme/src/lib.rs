#![forbid(unsafe_code)]
//! Certificates from an authority that speaks ACME (RFC 8555): ordered, proven, kept, served and
//! renewed without an operator.
//!
//! The program opens this before it gives up root's rights. While it serves, it runs this as tasks
//! of the main thread. The event loops share two things with it: the answers to the authority's
//! challenges, and the certificates of their listeners.
//!
//! Several machines with one origin behind their stores may share an account and certificates
//! (`sharing.rs`). One of them at a time orders (`turn.rs`), and all serve the result
//! (`taking_over.rs`).

mod account;
mod challenge_certificates;
mod challenge_kind;
mod challenges;
mod config;
mod error;
mod external_account;
mod lifetime;
mod order;
mod renewer;
mod schedule;
mod shared_key;
mod sharing;
mod state_directory;
mod taking_over;
mod turn;

pub use challenge_kind::ChallengeKind;
pub use challenges::{ChallengeAnswer, ChallengeLookup, Challenges, challenge_token};
pub use config::AcmeConfig;
pub use error::AcmeError;
pub use external_account::{ExternalAccount, ExternalAccountKey};
pub use shared_key::{SharedKey, SharedKeyFile};

use std::sync::Arc;

use kirin_origin::StoreOrigin;
use kirin_server::Tls;
use kirin_user::{ParentDirectory, User};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use challenges::SharedAnswers;
use renewer::CertificateRenewer;

/// All certificates that come from authorities, with a renewer for each.
pub struct Acme {
    renewers: Vec<CertificateRenewer>,
    /// The certificates that are kept, each by a task.
    kept: Vec<KeptCertificate>,
    challenges: Arc<Challenges>,
    renew_now: Arc<Notify>,
    /// The origin of the store, by which machines share certificates.
    origin: Option<Arc<StoreOrigin>>,
}

/// A certificate that a task keeps. Dropping it ends the task.
struct KeptCertificate {
    config: AcmeConfig,
    listeners: Vec<Arc<Tls>>,
    _task: JoinSet<()>,
}

/// Other certificates, ready to be kept in place of the present ones.
pub struct OtherCertificates {
    wanted: Vec<(AcmeConfig, Vec<Arc<Tls>>)>,
    renewers: Vec<CertificateRenewer>,
}

impl Acme {
    /// Makes the directories for certificates, and serves the certificates that are in them
    /// already.
    ///
    /// `certificates` has the certificate of each listener, and the TLS settings that serve it. The
    /// directories will belong to `owner` if root opens them.
    pub fn open<'a>(
        certificates: impl Iterator<Item = (&'a AcmeConfig, &'a Arc<Tls>)>,
        owner: Option<&User>,
    ) -> Result<Self, AcmeError> {
        let mut acme = Self {
            renewers: Vec::new(),
            kept: Vec::new(),
            challenges: Arc::new(Challenges::default()),
            renew_now: Arc::new(Notify::new()),
            origin: None,
        };
        acme.renewers = acme.prepare(certificates, owner)?.renewers;
        acme.renewers.iter_mut().for_each(CertificateRenewer::serve_kept_one);
        Ok(acme)
    }

    /// Opens what other certificates need. Nothing changes before [`Acme::change`] is called.
    pub fn prepare<'a>(
        &self,
        certificates: impl Iterator<Item = (&'a AcmeConfig, &'a Arc<Tls>)>,
        owner: Option<&User>,
    ) -> Result<OtherCertificates, AcmeError> {
        // Listeners with the same settings share a certificate.
        let mut wanted: Vec<(AcmeConfig, Vec<Arc<Tls>>)> = Vec::new();
        for (config, tls) in certificates {
            match wanted.iter_mut().find(|(other, _)| other == config) {
                Some((_, listeners)) => listeners.push(Arc::clone(tls)),
                None => wanted.push((config.clone(), vec![Arc::clone(tls)])),
            }
        }
        let is_new = |(config, listeners): &&(AcmeConfig, Vec<Arc<Tls>>)| {
            !self.kept.iter().any(|kept| kept.is(config, listeners))
        };
        let new: Vec<_> = wanted.iter().filter(is_new).cloned().collect();
        for (config, _) in &new {
            ParentDirectory::check(&config.state.join("account"), owner)
                .map_err(|error| AcmeError::State(config.state.clone(), error))?;
        }
        let renewers = new
            .into_iter()
            .map(|(config, listeners)| {
                CertificateRenewer::open(
                    config,
                    listeners,
                    Arc::clone(&self.challenges),
                    Arc::clone(&self.renew_now),
                )
            })
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(owner) = owner {
            let paths = renewers.iter().flat_map(CertificateRenewer::paths_of_root);
            paths.into_iter().try_for_each(|path| owner.give(&path))?;
        }
        Ok(OtherCertificates { wanted, renewers })
    }

    /// Returns the answers to the authorities' challenges.
    pub fn challenges(&self) -> Arc<Challenges> {
        Arc::clone(&self.challenges)
    }

    /// Returns a handle that ends all waiting when it is notified. Failed attempts are repeated
    /// then, and authorities are asked about early renewals.
    pub fn renew_now(&self) -> Arc<Notify> {
        Arc::clone(&self.renew_now)
    }

    /// Starts to get and renew certificates, until this is dropped. Must run in a runtime. Machines
    /// with the same origin behind their stores share them, if they have a key for that.
    pub fn keep(&mut self, origin: Option<Arc<StoreOrigin>>) {
        self.origin = origin;
        let renewers = std::mem::take(&mut self.renewers);
        self.keep_all(renewers);
    }

    /// Keeps other certificates from now on, and serves those that are there already. A certificate
    /// that stays is kept as before.
    pub fn change(&mut self, other: OtherCertificates) {
        let OtherCertificates { wanted, mut renewers } = other;
        self.kept
            .retain(|kept| wanted.iter().any(|(config, listeners)| kept.is(config, listeners)));
        renewers.iter_mut().for_each(CertificateRenewer::serve_kept_one);
        self.keep_all(renewers);
    }

    fn keep_all(&mut self, renewers: Vec<CertificateRenewer>) {
        for mut renewer in renewers {
            if let Some(origin) = &self.origin {
                renewer.share(origin);
            }
            self.kept.push(KeptCertificate::keep(renewer));
        }
        self.challenges.share(self.shared_answers());
    }

    /// Returns where the answers of other machines are, if any certificate is shared.
    fn shared_answers(&self) -> Option<SharedAnswers> {
        let origin = self.origin.clone()?;
        let keys = self.kept.iter().filter_map(|kept| kept.config.shared_key.as_ref());
        let mut keys: Vec<_> = keys.map(|shared| shared.key.clone()).collect();
        // Listeners have the same key, as a rule.
        keys.dedup();
        (!keys.is_empty()).then_some(SharedAnswers { origin, keys })
    }
}

impl KeptCertificate {
    fn keep(renewer: CertificateRenewer) -> Self {
        let (config, listeners) = renewer.subject();
        let mut task = JoinSet::new();
        task.spawn(renewer.keep());
        Self { config, listeners, _task: task }
    }

    fn is(&self, config: &AcmeConfig, listeners: &[Arc<Tls>]) -> bool {
        self.config == *config && renewer::is_same(&self.listeners, listeners)
    }
}
