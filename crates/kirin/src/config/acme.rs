//! `acme` of `[listener.tls]`: what a user writes, and what it means.

use std::env;
use std::path::{Path, PathBuf};

use kirin_acme::AcmeConfig as Settings;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_spanned::Spanned;

use super::check::absolute;
use super::default;
use super::load::{ConfigError, Source};

/// Names in a certificate at most; Let's Encrypt's limit.
const MAX_DOMAINS: usize = 100;

/// Where root keeps what programs need to remember, if systemd does not say it.
const STATE_OF_ROOT: &str = "/var/lib/kirin";

/// A certificate from an authority that speaks ACME.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcmeConfig {
    /// The names that the certificate is for, such as `["example.org", "www.example.org"]`. All
    /// must lead to this Kirin in the DNS. No wildcards: they cannot be proven by HTTP.
    #[schemars(with = "Vec<String>")]
    pub domains: Vec<Spanned<String>>,
    /// Where the authority may write to when something is wrong. Default: no address, which Let's
    /// Encrypt is content with.
    #[schemars(with = "Option<String>")]
    pub email: Option<Spanned<String>>,
    /// The authority: the address of its ACME directory. Default: Let's Encrypt. To use an
    /// authority is to agree to its terms of service.
    #[serde(default = "default::acme_directory")]
    #[schemars(with = "String", default = "default::acme_directory_plain")]
    pub directory: Spanned<String>,
    /// Where the account's key and the certificates are kept, in a directory that only Kirin's user
    /// can read. Default: `acme` in systemd's `$STATE_DIRECTORY`, or else in `/var/lib/kirin` for
    /// root and in `~/.local/state/kirin` for others.
    #[schemars(with = "Option<String>")]
    pub state: Option<Spanned<String>>,
}

/// Checks `config`.
pub fn check_acme(config: &Spanned<AcmeConfig>, source: &Source) -> Result<Settings, ConfigError> {
    let span = config.span();
    let config = config.get_ref();
    if !(1..=MAX_DOMAINS).contains(&config.domains.len()) {
        return Err(
            source.error(span, format!("`acme.domains`: allowed are 1 to {MAX_DOMAINS} names"))
        );
    }
    let mut domains = Vec::new();
    for domain in &config.domains {
        let name = domain.get_ref().to_ascii_lowercase();
        if !is_dns_name(&name) {
            let message = format!(
                "`{name}` is not a name that ACME can prove here: allowed are names in the DNS such as www.example.org, \
                 without wildcards, ports and addresses"
            );
            return Err(source.error(domain.span(), message));
        }
        if !domains.contains(&name) {
            domains.push(name);
        }
    }
    if let Some(email) = &config.email
        && !email
            .get_ref()
            .split_once('@')
            .is_some_and(|(user, host)| !user.is_empty() && is_dns_name(host))
    {
        let message = format!("`{}` is not an address of e-mail", email.get_ref());
        return Err(source.error(email.span(), message));
    }
    let directory = config.directory.get_ref();
    if directory.strip_prefix("https://").is_none_or(str::is_empty) {
        let message = format!("`{directory}`: the authority's directory is an https:// address");
        return Err(source.error(config.directory.span(), message));
    }
    let state = match &config.state {
        Some(state) => absolute(&source.directory.join(state.get_ref())),
        None => default_state().ok_or_else(|| {
            source.error(
                span,
                "name a directory for ACME's keys with `state`: there is no $HOME to put it into",
            )
        })?,
    };
    let email = config.email.as_ref().map(|email| email.get_ref().clone());
    Ok(Settings { domains, email, directory: directory.clone(), state })
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

/// A name as RFC 1123 section 2.1 has it, of two labels at least, the last of which is not a
/// number.
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
    fn names_in_the_dns_are_told_from_others() {
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
