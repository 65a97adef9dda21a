//! The certificate that a client has shown, as an application is told of it.

use std::path::Path;
use std::sync::Arc;

/// A certificate that a client has shown and that an authority of the listener vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The name of its holder as RFC 4514 writes it, such as `CN=alice,O=Example`.
    pub subject: String,
    /// Its number in hexadecimal digits; with the authority it is unique.
    pub serial: String,
    /// The file of the authorities that vouch for it.
    pub authorities: Arc<Path>,
}
