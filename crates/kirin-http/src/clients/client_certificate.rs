//! The certificate of a client in the form that an application is told.

use std::path::Path;
use std::sync::Arc;

/// A certificate that a client has presented and that an authority of the listener has signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The name of its subject as RFC 4514 writes it, such as `CN=alice,O=Example`.
    pub subject: String,
    /// Its serial number in hexadecimal digits. It is unique for the authority.
    pub serial: String,
    /// The file with the authorities that have verified it.
    pub authorities: Arc<Path>,
}
