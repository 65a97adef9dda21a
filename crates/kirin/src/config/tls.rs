//! `[listener.tls]`: what a user writes, and what it means.

use std::path::PathBuf;
use std::sync::Arc;

use kirin_server::{CertificateFiles, ClientAuthorities, Tls, TlsSettings};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_spanned::Spanned;

use super::acme::{AcmeConfig, check_acme};
use super::check::absolute;
use super::load::{ConfigError, Source};
use super::{default, units::Seconds};

/// TLS on a listener.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// Certificates and their keys, such as `[{ chain = "example.org.pem", key = "example.org.key"
    /// }]`. A client gets the one that is for the name it asks for (wildcards included), or else
    /// the first. HUP reads the files again.
    #[serde(default = "default::certificates")]
    #[schemars(with = "Vec<CertificateConfig>")]
    pub certificates: Spanned<Vec<CertificateConfig>>,
    /// Gets a certificate from an authority and renews it, such as `{ domains = ["example.org"] }`,
    /// instead of `certificates`. The authority must find Kirin on port 80 of the names, so there
    /// must be a listener without TLS, too.
    #[schemars(with = "Option<AcmeConfig>")]
    pub acme: Option<Spanned<AcmeConfig>>,
    /// How long a handshake may take.
    #[serde(default = "default::handshake_time")]
    #[schemars(with = "String", default = "default::handshake_time")]
    pub handshake_time: Seconds,
    /// Certificates, in PEM, of the authorities whose certificates clients may show. Applications
    /// find the outcome in `SSL_CLIENT_VERIFY` and the name in `SSL_CLIENT_S_DN`. Default: none,
    /// clients are not asked.
    #[schemars(with = "Option<String>")]
    pub client_ca: Option<Spanned<String>>,
    /// `required`: a client without a certificate of `client_ca` is turned away in the handshake.
    /// `optional`: it is served without one; a wrong one is turned away all the same.
    #[serde(default)]
    pub client_verify: ClientVerify,
    /// Tells browsers for how long they shall come by https only (Strict-Transport-Security), such
    /// as `"365d"`. Default: does not.
    #[schemars(with = "Option<String>")]
    pub hsts: Option<Seconds>,
    /// Whether `hsts` is for all names below this one, too.
    #[serde(default)]
    pub hsts_subdomains: bool,
}

/// A certificate and its key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertificateConfig {
    /// A PEM file: the certificate, then those that lead to its authority.
    #[schemars(with = "String")]
    pub chain: Spanned<String>,
    /// A PEM file with its private key.
    #[schemars(with = "String")]
    pub key: Spanned<String>,
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
pub struct TlsSite {
    /// The certificates, read.
    pub tls: Arc<Tls>,
    /// The value of Strict-Transport-Security.
    pub hsts: Option<String>,
    /// The certificate that it gets from an authority.
    pub acme: Option<kirin_acme::AcmeConfig>,
}

/// Checks `config` and reads the files that it names.
pub fn check_tls(config: &TlsConfig, source: &Source) -> Result<TlsSite, ConfigError> {
    let path =
        |file: &Spanned<String>| -> PathBuf { absolute(&source.directory.join(file.get_ref())) };
    let span = config.certificates.span();
    let certificates: Vec<_> = (config.certificates.get_ref().iter())
        .map(|files| CertificateFiles { chain: path(&files.chain), key: path(&files.key) })
        .collect();
    let acme = config.acme.as_ref().map(|acme| check_acme(acme, source)).transpose()?;
    match (&config.acme, certificates.is_empty()) {
        (None, true) => {
            let message = "TLS needs `certificates`, each with a chain and a key, or `acme` with the domains to get one for";
            return Err(if span.is_empty() {
                source.error_in_all(message)
            } else {
                source.error(span, message)
            });
        }
        (Some(acme), false) => {
            let message = "a listener has either `certificates` or `acme`; put the other names on a listener of their own";
            return Err(source.error(acme.span(), message));
        }
        _ => {}
    }
    let client_authorities = config.client_ca.as_ref().map(|file| ClientAuthorities {
        file: path(file),
        required: config.client_verify == ClientVerify::Required,
    });
    let settings = TlsSettings {
        certificates,
        client_authorities,
        handshake_time: config.handshake_time.into(),
    };
    let tls = Tls::load(settings).map_err(|error| source.error(span, error.to_string()))?;
    let subdomains = if config.hsts_subdomains { "; includeSubDomains" } else { "" };
    let hsts = config.hsts.map(|time| format!("max-age={}{subdomains}", time.0));
    Ok(TlsSite { tls: Arc::new(tls), hsts, acme })
}
