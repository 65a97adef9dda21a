//! `[listener.tls]`: certificates, and what clients must show.

use std::path::PathBuf;
use std::sync::Arc;

use kirin_acme::AcmeConfig;
use kirin_server::{CertificateFiles, ClientAuthorities, TicketSecret, Tls, TlsSettings};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::acme::{AcmeSection, check_acme};
use crate::acme_shared_key::key_in;
use crate::default::seconds;
use crate::secret_file::named_secret;
use crate::source::{ConfigError, ConfigSource};
use crate::units::Seconds;
use crate::written::Written;

/// TLS on a listener.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsSection {
    /// Certificates and their keys, such as `[{ chain = "example.org.pem", key = "example.org.key"
    /// }]`. A client gets the certificate for the name that it asks for (wildcards count), or else
    /// the first one. On HUP Kirin reads the files again.
    #[serde(default)]
    pub certificates: Written<Vec<CertificateSection>>,
    /// Gets a certificate from an authority and renews it, such as `{ domains = ["example.org"] }`.
    /// It replaces `certificates`. The authority looks for Kirin on port 443 of the names, and on
    /// port 80 if there is also a listener without TLS.
    pub acme: Option<Written<AcmeSection>>,
    /// How long a handshake may take.
    #[serde(default = "seconds::<10>")]
    pub handshake_time: Seconds,
    /// Certificates, in PEM, of the authorities whose certificates clients may show. Applications
    /// find the result in `SSL_CLIENT_VERIFY` and the name in `SSL_CLIENT_S_DN`. Default: Kirin
    /// does not ask clients.
    pub client_ca: Option<String>,
    /// `required`: Kirin refuses a client without a certificate of `client_ca` in the handshake.
    /// `optional`: a client may have no certificate. Kirin refuses a wrong certificate in both
    /// cases.
    #[serde(default)]
    pub client_verify: ClientVerify,
    /// A file with a key of 32 bytes, as 64 hexadecimal digits or 44 characters of base64. Machines
    /// with the same key resume the TLS sessions of each other, also after a new start. Make it by
    /// `(umask 077; openssl rand -hex 32 > FILE)`, and replace it from time to time: an attacker
    /// with the key can decrypt recorded connections of TLS 1.2. Default: a key of this listener,
    /// which survives reloads and upgrades.
    pub ticket_key_file: Option<Written<String>>,
    /// How long browsers shall use https only (Strict-Transport-Security), such as `"365d"`.
    /// Default: Kirin does not send that field.
    pub hsts: Option<Seconds>,
    /// Whether `hsts` is also for all names below this one.
    #[serde(default)]
    pub hsts_subdomains: bool,
    /// Whether the listener also serves HTTP/3, on the UDP port with the number of its TCP port.
    /// Responses over HTTP/1 and HTTP/2 tell browsers about it by `Alt-Svc`. Default: if the UDP
    /// port can be bound; otherwise Kirin warns at the start. With `true`, that is an error.
    /// Listeners with `proxy_protocol` and those of `start_server` have HTTP/3 only with `true`.
    pub http3: Option<Written<bool>>,
    /// Whether clients of HTTP/3 that come again may send requests in their first packet (0-RTT),
    /// which saves them a round trip. An attacker can record that packet and send it again. So only
    /// GET, HEAD and OPTIONS are answered there, others with status 425. Applications and upstreams
    /// get the field `Early-Data: 1`, and may answer with 425 too.
    #[serde(default)]
    pub early_data: Written<bool>,
}

/// A certificate and its key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertificateSection {
    /// A PEM file: the certificate, then those that lead to its authority.
    pub chain: String,
    /// A PEM file with the private key of the certificate.
    pub key: String,
}

impl CertificateSection {
    /// Returns the paths of the chain and of the key.
    pub fn paths(&self, source: &ConfigSource) -> (PathBuf, PathBuf) {
        (source.path(&self.chain), source.path(&self.key))
    }
}

/// Whether clients must show a certificate.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ClientVerify {
    /// They must.
    #[default]
    Required,
    /// They may.
    Optional,
}

/// TLS of a checked listener.
#[derive(Clone, Debug)]
pub struct ListenerTls {
    /// The certificates, as they were read.
    pub tls: Arc<Tls>,
    /// The value of Strict-Transport-Security.
    pub hsts: Option<String>,
    /// The certificate that the listener gets from an authority.
    pub acme: Option<AcmeConfig>,
    /// The file with the secret of session tickets that machines have together.
    pub ticket_key_file: Option<PathBuf>,
    /// Whether the listener also serves HTTP/3.
    pub http3: Http3,
}

/// Whether a listener also serves HTTP/3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http3 {
    /// If its UDP port can be bound.
    IfPossible,
    /// It must.
    Required,
    /// It does not.
    Off,
}

impl ListenerTls {
    /// Returns the files that are read again.
    pub fn files(&self) -> Vec<PathBuf> {
        let key = self.acme.as_ref().and_then(|acme| acme.shared_key.as_ref());
        let external = self.acme.as_ref().and_then(|acme| acme.external_account.as_ref());
        let mut files = self.tls.files();
        files.extend(key.map(|key| key.path.clone()));
        files.extend(external.map(|account| account.path.clone()));
        files.extend(self.ticket_key_file.clone());
        files
    }
}

/// Checks `section` and reads the files that it names.
pub fn check_tls(section: &TlsSection, source: &ConfigSource) -> Result<ListenerTls, ConfigError> {
    let span = section.certificates.span();
    let certificates: Vec<_> = (section.certificates.iter())
        .map(|files| files.paths(source))
        .map(|(chain, key)| CertificateFiles { chain, key })
        .collect();
    let acme = section.acme.as_ref().map(|acme| check_acme(acme, source)).transpose()?;
    match (&section.acme, certificates.is_empty()) {
        (None, true) => {
            let message = "TLS needs `certificates`, each with a chain and a key, or `acme` with \
                           the domains to get one for";
            return Err(source.error(span, message));
        }
        (Some(acme), false) => {
            let message = "a listener has either `certificates` or `acme`; put the other names on \
                           a listener of their own";
            return Err(source.error(acme.span(), message));
        }
        _ => {}
    }
    let client_authorities = section.client_ca.as_ref().map(|file| ClientAuthorities {
        file: source.path(file),
        required: section.client_verify == ClientVerify::Required,
    });
    if let Some(message) = hindrance_of_early_data(section) {
        return Err(source.error(section.early_data.span(), message));
    }
    let ticket_key = section.ticket_key_file.as_ref();
    let ticket_key =
        ticket_key.map(|file| named_secret(file, "ticket_key_file", key_in, source)).transpose()?;
    let settings = TlsSettings {
        certificates,
        client_authorities,
        handshake_time: section.handshake_time.into(),
        ticket_secret: ticket_key.as_ref().map(|(_, key)| TicketSecret::from(*key.bytes())),
        early_data: *section.early_data,
    };
    let tls = Tls::load(settings).map_err(|error| source.error(span, error.to_string()))?;
    let subdomains = if section.hsts_subdomains { "; includeSubDomains" } else { "" };
    let hsts = section.hsts.map(|time| format!("max-age={}{subdomains}", time.0));
    let ticket_key_file = ticket_key.map(|(path, _)| path);
    let http3 = match section.http3.as_deref() {
        None => Http3::IfPossible,
        Some(true) => Http3::Required,
        Some(false) => Http3::Off,
    };
    Ok(ListenerTls { tls: Arc::new(tls), hsts, acme, ticket_key_file, http3 })
}

/// Returns why a listener that wants early data cannot have it.
fn hindrance_of_early_data(section: &TlsSection) -> Option<&'static str> {
    if !*section.early_data {
        None
    } else if section.http3.as_deref() == Some(&false) {
        Some("`early_data` is for HTTP/3, which `http3 = false` turns off")
    } else {
        section.client_ca.as_ref().map(|_| {
            "`early_data` is not possible with `client_ca`: a client shows its certificate in the \
             handshake, and early data comes before it"
        })
    }
}
