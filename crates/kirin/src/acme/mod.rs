//! Certificates from an authority that speaks ACME (RFC 8555): asked for, proven, kept, served and
//! renewed without anybody's doing.
//!
//! The program opens this before it gives up its rights, and runs it as tasks of the main thread
//! while it serves. The event loops share two things with it: the answers to the authority's
//! challenges, which they look at for one path only, and the certificates of their listeners.

mod challenges;
mod error;
mod keeper;
mod lifetime;
mod order;
mod schedule;
mod state;

pub use challenges::{Challenges, PATH as CHALLENGE_PATH};
pub use error::AcmeError;

use std::sync::Arc;

use kirin_http::Tls;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::config::acme::AcmeSite;
use crate::config::check::Site;
use crate::life::parent_directory::ParentDirectory;
use crate::life::user::{User, UserError};
use keeper::Keeper;

/// All certificates that come from authorities.
pub struct Acme {
    keepers: Vec<Keeper>,
    challenges: Arc<Challenges>,
    wish: Arc<Notify>,
}

impl Acme {
    /// Makes the directories in which it keeps what it gets, and serves what is in them.
    pub fn open(site: &Site) -> Result<Self, AcmeError> {
        // Listeners of the same names share a certificate.
        let mut wanted: Vec<(&AcmeSite, Vec<Arc<Tls>>)> = Vec::new();
        for tls in site.listeners.iter().filter_map(|listener| listener.tls.as_ref()) {
            let Some(acme) = &tls.acme else { continue };
            match wanted.iter_mut().find(|(other, _)| *other == acme) {
                Some((_, listeners)) => listeners.push(Arc::clone(&tls.tls)),
                None => wanted.push((acme, vec![Arc::clone(&tls.tls)])),
            }
        }
        let challenges = Arc::new(Challenges::default());
        let wish = Arc::new(Notify::new());
        for (acme, _) in &wanted {
            ParentDirectory::check(&acme.state.join("account"), site.user.as_ref())
                .map_err(|error| AcmeError::State(acme.state.clone(), error))?;
        }
        let keepers = wanted
            .into_iter()
            .map(|(acme, listeners)| {
                Keeper::open(acme.clone(), listeners, Arc::clone(&challenges), Arc::clone(&wish))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { keepers, challenges, wish })
    }

    /// What is kept will belong to `user`.
    pub fn give_to(&self, user: &User) -> Result<(), UserError> {
        self.keepers
            .iter()
            .flat_map(|keeper| keeper.paths_of_root())
            .try_for_each(|path| user.give(&path))
    }

    /// The answers to the authorities' challenges.
    pub fn challenges(&self) -> Arc<Challenges> {
        Arc::clone(&self.challenges)
    }

    /// Told of it, it does not wait any longer: it tries again what has failed, and asks the
    /// authority whether it wants certificates renewed.
    pub fn wish(&self) -> Arc<Notify> {
        Arc::clone(&self.wish)
    }

    /// Gets certificates and renews them, as long as what this gives is held.
    pub fn keep(self) -> JoinSet<()> {
        self.keepers.into_iter().map(Keeper::keep).collect()
    }
}
