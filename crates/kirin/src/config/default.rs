//! Defaults, and the configurations behind `kirin serve app.psgi`, `kirin serve DIR` and `kirin
//! serve http://…`.

use std::num::NonZeroU32;
use std::path::Path;

use kirin_http::request::HeadLimits;
use serde_spanned::Spanned;

use super::units::{ByteSize, Seconds};

pub(super) fn handshake_time() -> Seconds {
    Seconds(10)
}

pub(super) fn certificates() -> Spanned<Vec<super::tls::CertificateConfig>> {
    Spanned::new(0..0, Vec::new())
}

pub(super) fn acme_directory_plain() -> String {
    "https://acme-v02.api.letsencrypt.org/directory".into()
}

pub(super) fn acme_directory() -> Spanned<String> {
    Spanned::new(0..0, acme_directory_plain())
}

pub(super) fn keep_alive() -> Seconds {
    Seconds(75)
}

pub(super) fn patience() -> Seconds {
    Seconds(60)
}

pub(super) fn min_rate() -> ByteSize {
    ByteSize(kirin_server::Limits::default().min_rate_bytes)
}

pub(super) fn client_memory() -> ByteSize {
    ByteSize(256 << 20)
}

pub(super) fn client_disk() -> ByteSize {
    ByteSize(4 << 30)
}

pub(super) fn head_limit() -> ByteSize {
    ByteSize(HeadLimits::default().head_bytes as u64)
}

pub(super) fn request_line_limit() -> ByteSize {
    ByteSize(HeadLimits::default().request_line_bytes as u64)
}

pub(super) fn rate_key_plain() -> String {
    "address".into()
}

pub(super) fn rate_key() -> Spanned<String> {
    Spanned::new(0..0, rate_key_plain())
}

pub(super) fn burst_plain() -> usize {
    10
}

pub(super) fn burst() -> Spanned<usize> {
    Spanned::new(0..0, burst_plain())
}

pub(super) fn store_memory() -> ByteSize {
    ByteSize(64 << 20)
}

pub(super) fn store_item_limit() -> ByteSize {
    ByteSize(1 << 20)
}

pub(super) fn workers_plain() -> usize {
    5
}

pub(super) fn workers() -> Spanned<usize> {
    Spanned::new(0..0, workers_plain())
}

pub(super) fn queue() -> usize {
    1024
}

pub(super) fn queue_wait() -> Seconds {
    Seconds(30)
}

pub(super) fn upstream_queue() -> Spanned<usize> {
    Spanned::new(0..0, queue())
}

pub(super) fn upstream_queue_wait() -> Spanned<Seconds> {
    Spanned::new(0..0, queue_wait())
}

pub(super) fn connection_requests_plain() -> u64 {
    0
}

pub(super) fn connection_requests() -> Spanned<u64> {
    Spanned::new(0..0, connection_requests_plain())
}

pub(super) fn keep_time_spanned() -> Spanned<Seconds> {
    Spanned::new(0..0, keep_time())
}

pub(super) fn deadline() -> Seconds {
    Seconds(60)
}

pub(super) fn start_limit() -> Seconds {
    Seconds(60)
}

pub(super) fn body_limit() -> ByteSize {
    ByteSize(64 << 20)
}

pub(super) fn redirect_status_plain() -> u16 {
    308
}

pub(super) fn redirect_status() -> Spanned<u16> {
    Spanned::new(0..0, redirect_status_plain())
}

pub(super) fn basic_auth_realm_plain() -> String {
    "Restricted".into()
}

pub(super) fn basic_auth_realm() -> Spanned<String> {
    Spanned::new(0..0, basic_auth_realm_plain())
}

pub(super) fn yes() -> bool {
    true
}

pub(super) fn host_plain() -> String {
    "client".into()
}

pub(super) fn host() -> Spanned<String> {
    Spanned::new(0..0, host_plain())
}

pub(super) fn balance_plain() -> String {
    "round-robin".into()
}

pub(super) fn balance() -> Spanned<String> {
    Spanned::new(0..0, balance_plain())
}

pub(super) fn max_failures() -> u32 {
    kirin_proxy::Balancing::default().max_failures
}

pub(super) fn ejection_time() -> Seconds {
    Seconds(kirin_proxy::Balancing::default().ejection_time.as_secs())
}

pub(super) fn retry_percent_plain() -> u32 {
    kirin_proxy::Balancing::default().retry_percent
}

pub(super) fn retry_percent() -> Spanned<u32> {
    Spanned::new(0..0, retry_percent_plain())
}

pub(super) fn health_interval() -> Seconds {
    Seconds(5)
}

pub(super) fn health_timeout() -> Seconds {
    Seconds(2)
}

pub(super) fn health_status_plain() -> String {
    "200-399".into()
}

pub(super) fn health_status() -> Spanned<String> {
    Spanned::new(0..0, health_status_plain())
}

pub(super) fn healthy_after() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(1)
}

pub(super) fn unhealthy_after() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(2)
}

pub(super) fn via_plain() -> String {
    "kirin".into()
}

pub(super) fn via() -> Spanned<String> {
    Spanned::new(0..0, via_plain())
}

pub(super) fn connect_timeout() -> Seconds {
    Seconds(kirin_proxy::Timeouts::default().connect.as_secs())
}

pub(super) fn keep_time() -> Seconds {
    Seconds(kirin_proxy::PoolLimits::default().idle_time.as_secs())
}

pub(super) fn resolve() -> Seconds {
    Seconds(30)
}

pub(super) fn forwarded_plain() -> String {
    "X-Forwarded-For".into()
}

pub(super) fn forwarded() -> Spanned<String> {
    Spanned::new(0..0, forwarded_plain())
}

/// What `kirin serve TARGET` serves.
#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    /// A PSGI file; with a `public` directory beside it, if there is one.
    Psgi {
        /// Whether there is.
        has_public: bool,
    },
    /// A directory.
    Directory,
    /// Another HTTP server.
    Server,
}

/// Says what `target` is.
pub fn classify(target: &str) -> Result<Target, String> {
    if target.contains("://") {
        return target
            .parse::<kirin_proxy::ServerAddress>()
            .map(|_| Target::Server)
            .map_err(|error| error.to_string());
    }
    let path = Path::new(target);
    if path.is_dir() {
        return Ok(Target::Directory);
    }
    if !path.is_file() {
        return Err(format!(
            "`{target}`: no such file or directory; give a PSGI file, a directory or an http:// address"
        ));
    }
    let is_configuration = path.extension().is_some_and(|extension| extension == "toml");
    if is_configuration {
        return Err(format!(
            "`{target}` is a configuration file: use `kirin serve --config {target}`"
        ));
    }
    let has_public = path.parent().is_some_and(|parent| parent.join("public").is_dir());
    Ok(Target::Psgi { has_public })
}

/// The configuration that `kirin serve TARGET` stands for, as a user could write it. Paths in it
/// are relative to the directory of the target.
pub fn configuration(
    target: &Path,
    kind: &Target,
    entrances: &Entrances,
    workers: usize,
) -> String {
    let listener = format!("{}\n[store]\nmemory = \"{}\"\n", entrances.listeners(), store_memory());
    match kind {
        Target::Directory => format!("{listener}\n[[route]]\npath = \"/\"\ntry = [\"files:.\"]\n"),
        Target::Server => format!(
            "{listener}\n[[upstream]]\nname = \"web\"\nservers = [{}]\n\n[[route]]\npath = \"/\"\n\
             try = [\"store\", \"proxy:web\"]\n",
            quoted(&target.to_string_lossy())
        ),
        Target::Psgi { has_public } => {
            let name = target.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            let files = if *has_public { "\"files:public\", " } else { "" };
            format!(
                "{listener}\n[[app]]\nname = \"web\"\nload = {}\nworkers = {workers}\n\n[[route]]\npath = \"/\"\n\
                 try = [\"store\", {files}\"app:web\"]\n",
                quoted(&name)
            )
        }
    }
}

/// Where `kirin serve TARGET` listens.
#[derive(Debug)]
pub enum Entrances<'a> {
    /// At one address, without TLS.
    Plain(&'a str),
    /// By https, with a certificate from an authority, and by HTTP, which is sent to https.
    Https {
        /// The address of https.
        https: &'a str,
        /// That of HTTP.
        http: &'a str,
        /// The names of the certificate.
        domains: &'a [String],
        /// The address of the account.
        email: Option<&'a str>,
        /// The authority, if not the default.
        directory: Option<&'a str>,
    },
}

impl Entrances<'_> {
    fn listeners(&self) -> String {
        let listener = |address: &str| {
            format!("[[listener]]\naddress = {}\naccess_log = \"stderr\"\n", quoted(address))
        };
        match self {
            Self::Plain(address) => listener(address),
            Self::Https { https, http, domains, email, directory } => {
                let domains: Vec<_> = domains.iter().map(|domain| quoted(domain)).collect();
                let mut acme = format!("domains = [{}]", domains.join(", "));
                for (key, value) in [("email", email), ("directory", directory)] {
                    if let Some(value) = value {
                        acme.push_str(&format!(", {key} = {}", quoted(value)));
                    }
                }
                let port = https
                    .rsplit(':')
                    .next()
                    .and_then(|port| port.parse().ok())
                    .filter(|port| *port != 0);
                let port: u16 = port.unwrap_or(443);
                format!(
                    "{}\n[listener.tls]\nacme = {{ {acme} }}\n\n{}redirect_to_https = {port}\n",
                    listener(https),
                    listener(http)
                )
            }
        }
    }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}
