//! Which server of an upstream gets a request.

use std::time::Duration;

use kirin_http::token::is_token;
use kirin_proxy::{Balancing, HashKey, Method};

use crate::source::{ConfigError, ConfigSource};
use crate::upstream::UpstreamSection;
use crate::written::Written;

/// Checks the keys of `section` that choose a server.
pub fn check_balancing(
    section: &UpstreamSection,
    source: &ConfigSource,
) -> Result<Balancing, ConfigError> {
    let method = section.balance.0;
    let key = match (&section.hash_key, method) {
        (Some(key), Method::Hash) => Some(hash_key(key, source)?),
        (Some(key), _) => {
            return Err(source.error(key.span(), "`hash_key` is for `balance = \"hash\"`"));
        }
        (None, Method::Hash) => {
            let message = "`balance = \"hash\"` needs a `hash_key`, such as \"target\"";
            return Err(source.error(section.balance.span(), message));
        }
        (None, _) => None,
    };
    let sticky = match &section.sticky_cookie {
        Some(name) if !is_token(name.as_bytes()) => {
            let message =
                format!("`sticky_cookie`: `{}` is not the name of a cookie", name.as_str());
            return Err(source.error(name.span(), message));
        }
        name => name.as_ref().map(|name| name.to_string()),
    };
    Ok(Balancing {
        method,
        key,
        sticky,
        max_failures: section.max_failures,
        ejection_time: section.ejection_time.into(),
        slow_start: section.slow_start.map_or(Duration::ZERO, Duration::from),
        retry_percent: section.retry_percent.get() as u32,
    })
}

fn hash_key(text: &Written<String>, source: &ConfigSource) -> Result<HashKey, ConfigError> {
    match text.split_once(':') {
        None if text.as_str() == "target" => Ok(HashKey::Target),
        None if text.as_str() == "address" => Ok(HashKey::Address),
        Some(("header", name)) if is_token(name.as_bytes()) => Ok(HashKey::Header(name.into())),
        Some(("cookie", name)) if is_token(name.as_bytes()) => Ok(HashKey::Cookie(name.into())),
        _ => {
            let allowed = "`target`, `address`, `header:NAME` and `cookie:NAME`";
            let message = format!("`hash_key` is `{}`: allowed are {allowed}", text.as_str());
            Err(source.error(text.span(), message))
        }
    }
}
