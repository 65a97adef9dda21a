#![forbid(unsafe_code)]
//! Certificates from an authority that speaks ACME (RFC 8555): ordered, proven, kept, served and
//! renewed without an operator.
//!
//! The program opens this before it gives up root's rights. While it serves, it runs this as tasks
//! of the main thread. The event loops share two things with it: the answers to the authority's
//! challenges, and the certificates of their listeners.

mod challenges;
mod config;
mod error;
mod lifetime;
mod order;
mod renewer;
mod schedule;
mod state_directory;

pub use challenges::{Challenges, PATH as CHALLENGE_PATH};
pub use config::AcmeConfig;
pub use error::AcmeError;

use std::sync::Arc;

use kirin_server::Tls;
use kirin_user::{ParentDirectory, User};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use renewer::CertificateRenewer;

/// All certificates that come from authorities, with a renewer for each.
pub struct Acme {
    renewers: Vec<CertificateRenewer>,
    challenges: Arc<Challenges>,
    renew_now: Arc<Notify>,
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
        // Listeners with the same settings share a certificate.
        let mut wanted: Vec<(&AcmeConfig, Vec<Arc<Tls>>)> = Vec::new();
        for (config, tls) in certificates {
            match wanted.iter_mut().find(|(other, _)| *other == config) {
                Some((_, listeners)) => listeners.push(Arc::clone(tls)),
                None => wanted.push((config, vec![Arc::clone(tls)])),
            }
        }
        let challenges = Arc::new(Challenges::default());
        let renew_now = Arc::new(Notify::new());
        for (config, _) in &wanted {
            ParentDirectory::check(&config.state.join("account"), owner)
                .map_err(|error| AcmeError::State(config.state.clone(), error))?;
        }
        let renewers = wanted
            .into_iter()
            .map(|(config, listeners)| {
                CertificateRenewer::open(
                    config.clone(),
                    listeners,
                    Arc::clone(&challenges),
                    Arc::clone(&renew_now),
                )
            })
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(owner) = owner {
            let paths = renewers.iter().flat_map(CertificateRenewer::paths_of_root);
            paths.into_iter().try_for_each(|path| owner.give(&path))?;
        }
        Ok(Self { renewers, challenges, renew_now })
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

    /// Starts to get and renew certificates. Dropping the returned tasks ends this.
    pub fn keep(&mut self) -> JoinSet<()> {
        self.renewers.drain(..).map(CertificateRenewer::keep).collect()
    }
}
