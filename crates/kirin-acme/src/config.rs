//! Which certificate to get, and from whom.

use std::path::PathBuf;

use crate::challenge_kind::ChallengeKind;
use crate::external_account::ExternalAccount;
use crate::shared_key::SharedKeyFile;

/// A certificate to get from an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeConfig {
    /// The names that the certificate is for, in lower case; at least one.
    pub domains: Vec<String>,
    /// The address of e-mail to which the authority may write.
    pub email: Option<String>,
    /// The authority: the https address of its ACME directory.
    pub directory: String,
    /// The ways to prove the names, the best first.
    pub challenges: Vec<ChallengeKind>,
    /// The customer's account at the authority to which Kirin's account is bound.
    pub external_account: Option<ExternalAccount>,
    /// The directory in which the account's key and the certificates are kept.
    pub state: PathBuf,
    /// The key with which account and certificate are also kept on the origin of the store, so that
    /// several machines share them. `None`: this machine shares nothing.
    pub shared_key: Option<SharedKeyFile>,
}
