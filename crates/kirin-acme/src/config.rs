//! Which certificate to get, and from whom.

use std::path::PathBuf;

/// A certificate to get from an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeConfig {
    /// The names that the certificate is for, in lower case; at least one.
    pub domains: Vec<String>,
    /// The address of e-mail to which the authority may write.
    pub email: Option<String>,
    /// The authority: the https address of its ACME directory.
    pub directory: String,
    /// The directory in which the account's key and the certificates are kept.
    pub state: PathBuf,
}
