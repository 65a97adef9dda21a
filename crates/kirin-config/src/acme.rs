//! `acme` of `[listener.tls]`: the certificate that Kirin gets from an authority.

use std::env;
use std::path::{Path, PathBuf};

use kirin_acme::AcmeConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// DNS all of them must lead to this Kirin. Wildcards are not allowed: HTTP cannot prove them.
    pub domains: Vec<Written<String>>,
    /// The address to which the authority writes when something is wrong. Default: no address,
    /// which Let's Encrypt accepts.
    pub email: Option<Written<String>>,
    /// The authority: the address of its ACME directory. Default: Let's Encrypt. Whoever uses an
    /// authority agrees to its terms of service.
    #[serde(default)]
    pub directory: Written<AcmeDirectory>,
    /// The directory for the account's key and the certificates. Only Kirin's user can read it.
    /// Default: `acme` in systemd's `$STATE_DIRECTORY`, or else in `/var/lib/kirin` for root and in
    /// `~/.local/state/kirin` for others.
    pub state: Option<String>,
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
        let name = domain.to_ascii_lowercase();
        if !is_dns_name(&name) {
            let message = format!(
                "`{name}` is not a name that ACME can prove here: allowed are names in the DNS such \
                 as www.example.org, without wildcards, ports and addresses"
            );
            return Err(source.error(domain.span(), message));
        }
        if !domains.contains(&name) {
            domains.push(name);
        }
    }
    if let Some(email) = &section.email
        && !email.split_once('@').is_some_and(|(user, host)| !user.is_empty() && is_dns_name(host))
    {
        let message = format!("`{}` is not an address of e-mail", email.as_str());
        return Err(source.error(email.span(), message));
    }
    let directory = &section.directory.0;
    if directory.strip_prefix("https://").is_none_or(str::is_empty) {
        let message = format!("`{directory}`: the authority's directory is an https:// address");
        return Err(source.error(section.directory.span(), message));
    }
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
    Ok(AcmeConfig { domains, email, directory: directory.clone(), state })
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

/// Returns whether `name` is a host name as RFC 1123 section 2.1 defines it. It must have at least
/// two labels, and the last one must not be a number.
fn is_dns_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let last_is_word =
        name.rsplit('.').next().is_some_and(|last| !last.bytes().all(|b| b.is_ascii_digit()));
    name.len() <= 253 && name.contains('.') && last_is_word && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::is_dns_name;

    #[test]
    fn only_dns_names_get_certificates() {
        for name in ["example.org", "a.b.c-d.test", "xn--mnchen-3ya.de", "1.example"] {
            assert!(is_dns_name(name), "{name}");
        }
        let long = format!("{}.org", "a".repeat(64));
        for name in [
            "",
            "localhost",
            "*.example.org",
            "a..b",
            ".a.b",
            "a.b.",
            "127.0.0.1",
            "::1",
            "a.b:80",
            "a/../b.c",
            "ü.de",
            &long,
        ] {
            assert!(!is_dns_name(name), "{name}");
        }
    }
}
