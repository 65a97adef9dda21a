//! The keys of `[store]` for an origin: the server that has the items of which the store keeps
//! copies.

use std::io;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use kirin_origin::address::Address;
use kirin_origin::names::Names;
use kirin_origin::{OriginConfig, check_stale_limit};

use crate::source::{ConfigError, ConfigSource, ErrorCollector};
use crate::store::StoreSection;
use crate::written::Written;

/// The largest file with a password, in bytes. Redis takes no longer line than 64 KB, and nobody
/// has such a password.
const MAX_PASSWORD_FILE_BYTES: u64 = 4096;

/// Returns the settings of the origin, or `None` within if there is none.
pub fn check_origin(
    section: &StoreSection,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<Option<OriginConfig>> {
    let Some(origin) = &section.origin else {
        for (key, span) in keys_of_origin(section) {
            let message = format!(
                "`store.{key}` is for an origin, and there is none: add `origin` to [store], or \
                 remove `{key}`"
            );
            errors.push(source.error(span, message));
        }
        return Some(None);
    };
    if let Some(snapshot) = &section.snapshot {
        let message = "`store.snapshot` with `store.origin`: the items are on the origin, and the \
                       store has copies only, which nothing proves after a start; remove one of \
                       the two";
        errors.push(source.error(snapshot.span(), message));
    }
    let names = Names::new(&section.origin_prefix).map_err(|error| {
        source.error(section.origin_prefix.span(), format!("`store.origin_prefix`: {error}"))
    });
    let names = errors.keep(names);
    let stale_limit = (*section.stale_limit).into();
    let checked = check_stale_limit(stale_limit).map_err(|error| {
        let message = format!("`store.stale_limit` is {}: {error}", *section.stale_limit);
        source.error(section.stale_limit.span(), message)
    });
    errors.keep(checked);
    let address = errors.keep(check_address(origin, source));
    let password = section.origin_password_file.as_ref();
    let password = errors.keep(password.map(|file| read_password(file, source)).transpose());
    let address = address?;
    let loaded = errors.keep(load(&address, section, origin.span(), source));
    let address = match (password?, &section.origin_password_file) {
        (Some(password), Some(file)) => {
            let address = address.with_password(password).map_err(|error| {
                let message = format!(
                    "`store.origin_password_file`: {error}; remove one of the two passwords"
                );
                source.error(file.span(), message)
            });
            errors.keep(address)?
        }
        _ => address,
    };
    let timeout = (*section.origin_timeout).into();
    Some(Some(OriginConfig { address, names: names?, timeout, stale_limit, ..loaded? }))
}

/// Returns the files that the keys of the origin name.
pub fn origin_files(section: &StoreSection, source: &ConfigSource) -> Vec<PathBuf> {
    let files = [&section.origin_ca, &section.origin_password_file];
    files.into_iter().flatten().map(|file| source.path(file.as_str())).collect()
}

/// Returns the keys that are written and have no meaning without an origin.
fn keys_of_origin(section: &StoreSection) -> impl Iterator<Item = (&'static str, Range<usize>)> {
    let span_of = |text: &Option<Written<String>>| text.as_ref().map(Written::span);
    let keys = [
        ("origin_ca", span_of(&section.origin_ca)),
        ("origin_password_file", span_of(&section.origin_password_file)),
        ("origin_prefix", Some(section.origin_prefix.span())),
        ("origin_timeout", Some(section.origin_timeout.span())),
        ("stale_limit", Some(section.stale_limit.span())),
    ];
    // A default has an empty span.
    keys.into_iter().filter_map(|(key, span)| Some((key, span.filter(|span| !span.is_empty())?)))
}

fn check_address(origin: &Written<String>, source: &ConfigSource) -> Result<Address, ConfigError> {
    origin.parse().map_err(|error| source.error(origin.span(), format!("`store.origin`: {error}")))
}

/// Returns the settings with the certificates of authorities. `span` is that of the address.
fn load(
    address: &Address,
    section: &StoreSection,
    span: Range<usize>,
    source: &ConfigSource,
) -> Result<OriginConfig, ConfigError> {
    let ca = match &section.origin_ca {
        Some(file) if !address.uses_tls() => {
            let message = format!(
                "`store.origin_ca`: the origin {address} has no certificate; only one with TLS \
                 (rediss://) has"
            );
            return Err(source.error(file.span(), message));
        }
        ca => ca.as_ref(),
    };
    let (key, span) = ca.map_or(("origin", span), |file| ("origin_ca", file.span()));
    OriginConfig::new(address.clone(), ca.map(|file| source.path(file.as_str())))
        .map_err(|error| source.error(span, format!("`store.{key}`: {error}")))
}

fn read_password(file: &Written<String>, source: &ConfigSource) -> Result<String, ConfigError> {
    let path = source.path(file.as_str());
    password_in(&path).map_err(|problem| {
        let message = format!("`store.origin_password_file`: {}: {problem}", path.display());
        source.error(file.span(), message)
    })
}

/// Returns the password in a file, without the end of its line. The error never has a part of it.
fn password_in(path: &Path) -> Result<String, String> {
    let cannot = |error: io::Error| format!("cannot be read: {error}");
    let metadata = std::fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() || metadata.len() > MAX_PASSWORD_FILE_BYTES {
        return Err(format!("is not a file of at most {MAX_PASSWORD_FILE_BYTES} bytes"));
    }
    let text = std::fs::read_to_string(path).map_err(cannot)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() || line.contains(['\n', '\r', '\0']) {
        return Err("has no password: it must have one line with nothing else".into());
    }
    if metadata.permissions().mode() & 0o004 != 0 {
        let path = path.display();
        tracing::warn!("the password file {path} can be read by every user of this machine");
    }
    Ok(line.to_owned())
}

#[cfg(test)]
#[path = "store_origin_tests.rs"]
mod tests;
