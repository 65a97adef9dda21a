//! `[listener.tls]`: what a user writes, and what it means.

use super::check::absolute;
use super::load::{ConfigError, Source};
use super::{default, units::Seconds};
use kirin_http::{CertificateFiles, ClientAuthorities, Tls, TlsSettings};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_spanned::Spanned;
use std::path::PathBuf;
use std::sync::Arc;

/// TLS on a listener.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// Certificates and their keys, such as `[{ chain = "example.org.pem", key = "example.org.key" }]`. A client gets the one
    /// that is for the name it asks for (wildcards included), or else the first. HUP reads the files again.
    #[schemars(with = "Vec<CertificateConfig>")]
    pub certificates: Spanned<Vec<CertificateConfig>>,
    /// How long a handshake may take.
    #[serde(default = "default::handshake_time")]
    #[schemars(with = "String", default = "default::handshake_time")]
    pub handshake_time: Seconds,
    /// Certificates, in PEM, of the authorities whose certificates clients may show. Applications find the outcome in
    /// `SSL_CLIENT_VERIFY` and the name in `SSL_CLIENT_S_DN`. Default: none, clients are not asked.
    #[schemars(with = "Option<String>")]
    pub client_ca: Option<Spanned<String>>,
    /// `required`: a client without a certificate of `client_ca` is turned away in the handshake. `optional`: it is served
    /// without one; a wrong one is turned away all the same.
    #[serde(default)]
    pub client_verify: ClientVerify,
    /// Tells browsers for how long they shall come by https only (Strict-Transport-Security), such as `"365d"`. Default: does
    /// not.
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
}

/// Checks `config` and reads the files that it names.
pub fn check_tls(config: &TlsConfig, source: &Source) -> Result<TlsSite, ConfigError> {
    let path = |file: &Spanned<String>| -> PathBuf { absolute(&source.directory.join(file.get_ref())) };
    let span = config.certificates.span();
    let certificates: Vec<_> = (config.certificates.get_ref().iter())
        .map(|files| CertificateFiles { chain: path(&files.chain), key: path(&files.key) })
        .collect();
    if certificates.is_empty() {
        return Err(source.error(span, "`certificates` is empty: name a chain and a key"));
    }
    let client_authorities = config.client_ca.as_ref().map(|file| ClientAuthorities {
        file: path(file),
        required: config.client_verify == ClientVerify::Required,
    });
    let settings =
        TlsSettings { certificates, client_authorities, handshake_time: config.handshake_time.into() };
    let tls = Tls::load(settings).map_err(|error| source.error(span, error.to_string()))?;
    let subdomains = if config.hsts_subdomains { "; includeSubDomains" } else { "" };
    let hsts = config.hsts.map(|time| format!("max-age={}{subdomains}", time.0));
    Ok(TlsSite { tls: Arc::new(tls), hsts })
}
