//! `acme` of `[listener.tls]`: the certificate that Kirin gets from an authority.

use std::env;
use std::path::{Path, PathBuf};

use kirin_acme::AcmeConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::acme_external_account::{ExternalAccountSection, check_external_account};
use crate::acme_shared_key::read_shared_key;
use crate::acme_values::{acme_directory, acme_domain, acme_email};
use crate::include::absolute;
use crate::source::{ConfigError, ConfigSource};
use crate::written::Written;

/// The most names in a certificate: the limit of Let's Encrypt.
const MAX_DOMAINS: usize = 100;

/// The parent of root's ACME directory, if systemd names none.
const STATE_OF_ROOT: &str = "/var/lib/kirin";

/// A certificate from an authority that speaks ACME.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcmeSection {
    /// The names that the certificate is for, such as `["example.org", "www.example.org"]`. In the
    /// DNS all of them must lead to this Kirin. Wildcards are not allowed: Kirin cannot prove them.
    pub domains: Vec<Written<String>>,
    /// The address to which the authority writes when something is wrong. Default: no address,
    /// which Let's Encrypt accepts.
    pub email: Option<Written<String>>,
    /// The authority: the address of its ACME directory. Default: Let's Encrypt. Whoever uses an
    /// authority agrees to its terms of service.
    #[serde(default)]
    pub directory: Written<AcmeDirectory>,
    /// Your account at the authority, such as `{ id = "kid-1", key_file = "eab.key" }`. Some
    /// authorities need it (external account binding). Default: none.
    pub external_account: Option<ExternalAccountSection>,
    /// The directory for the account's key and the certificates. Only Kirin's user can read it.
    /// Default: `acme` in systemd's `$STATE_DIRECTORY`, or else in `/var/lib/kirin` for root and in
    /// `~/.local/state/kirin` for others.
    pub state: Option<String>,
    /// A file with a secret, such as `"acme.key"`: 32 random bytes as 64 hexadecimal digits
    /// (`openssl rand -hex 32`) or in base64. Machines with the same file and the same
    /// `store.origin` share one account, one certificate and one order. What they share is
    /// encrypted. Default: this machine gets a certificate of its own.
    pub shared_key_file: Option<Written<String>>,
}

/// The address of an authority's ACME directory (RFC 8555 section 7.1.1).
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(transparent)]
#[schemars(inline)]
pub struct AcmeDirectory(String);

impl Default for AcmeDirectory {
    fn default() -> Self {
        Self("https://acme-v02.api.letsencrypt.org/directory".into())
    }
}

/// Checks `section`.
pub fn check_acme(
    section: &Written<AcmeSection>,
    source: &ConfigSource,
) -> Result<AcmeConfig, ConfigError> {
    let span = section.span();
    if !(1..=MAX_DOMAINS).contains(&section.domains.len()) {
        return Err(
            source.error(span, format!("`acme.domains`: allowed are 1 to {MAX_DOMAINS} names"))
        );
    }
    let mut domains = Vec::new();
    for domain in &section.domains {
        let name = acme_domain(domain).map_err(|message| source.error(domain.span(), message))?;
        if !domains.contains(&name) {
            domains.push(name);
        }
    }
    if let Some(email) = &section.email {
        acme_email(email).map_err(|message| source.error(email.span(), message))?;
    }
    let directory = acme_directory(&section.directory.0)
        .map_err(|message| source.error(section.directory.span(), message))?;
    let state = match &section.state {
        Some(state) => source.path(state),
        None => default_state().ok_or_else(|| {
            source.error(
                span,
                "name a directory for ACME's keys with `state`: there is no $HOME to put it into",
            )
        })?,
    };
    let email = section.email.as_ref().map(|email| email.to_string());
    let shared_key = section.shared_key_file.as_ref();
    let shared_key = shared_key.map(|file| read_shared_key(file, source)).transpose()?;
    let external = section.external_account.as_ref();
    let external_account =
        external.map(|section| check_external_account(section, source)).transpose()?;
    // The listeners decide about the challenges, and not all of them are known yet.
    let challenges = Vec::new();
    Ok(AcmeConfig { domains, email, directory, challenges, external_account, state, shared_key })
}

fn default_state() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    // systemd.exec(5): several, with colons between them.
    let of_systemd = set("STATE_DIRECTORY").and_then(|list| env::split_paths(&list).next());
    let of_root = || rustix::process::geteuid().is_root().then(|| PathBuf::from(STATE_OF_ROOT));
    let of_user = || {
        let state = set("XDG_STATE_HOME").map(PathBuf::from);
        let state = state.or_else(|| Some(Path::new(&set("HOME")?).join(".local/state")));
        state.map(|state| state.join("kirin"))
    };
    of_systemd.or_else(of_root).or_else(of_user).map(|directory| absolute(&directory.join("acme")))
}
