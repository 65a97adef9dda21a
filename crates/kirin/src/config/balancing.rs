//! Who of an upstream's servers gets a request, as a user writes it.

use std::time::Duration;

use kirin_http::token::is_token;
use kirin_proxy::{Balancing, HashKey, Method};
use serde_spanned::Spanned;

use super::load::{ConfigError, Source};
use super::upstream::UpstreamConfig;

/// Checks what `config` says of it.
pub fn balancing(config: &UpstreamConfig, source: &Source) -> Result<Balancing, ConfigError> {
    let method = match config.balance.get_ref().as_str() {
        "round-robin" => Method::RoundRobin,
        "least-connections" => Method::LeastConnections,
        "latency" => Method::PeakEwma,
        "hash" => Method::Hash,
        other => {
            let allowed = "\"round-robin\", \"least-connections\", \"latency\" and \"hash\"";
            let message = format!("`balance` is `{other}`: allowed are {allowed}");
            return Err(source.error(config.balance.span(), message));
        }
    };
    let key = match (&config.hash_key, method) {
        (Some(key), Method::Hash) => Some(hash_key(key, source)?),
        (Some(key), _) => {
            return Err(source.error(key.span(), "`hash_key` is for `balance = \"hash\"`"));
        }
        (None, Method::Hash) => {
            let message = "`balance = \"hash\"` needs a `hash_key`, such as \"target\"";
            return Err(source.error(config.balance.span(), message));
        }
        (None, _) => None,
    };
    let sticky = match &config.sticky_cookie {
        Some(name) if !is_token(name.get_ref().as_bytes()) => {
            let message = format!("`sticky_cookie`: `{}` is no name of a cookie", name.get_ref());
            return Err(source.error(name.span(), message));
        }
        name => name.as_ref().map(|name| name.get_ref().clone()),
    };
    let retry_percent = *config.retry_percent.get_ref();
    if retry_percent > 100 {
        let message = format!("`retry_percent` is {retry_percent}: allowed is 0 to 100");
        return Err(source.error(config.retry_percent.span(), message));
    }
    Ok(Balancing {
        method,
        key,
        sticky,
        max_failures: config.max_failures,
        ejection_time: config.ejection_time.into(),
        slow_start: config.slow_start.map_or(Duration::ZERO, Duration::from),
        retry_percent,
    })
}

fn hash_key(text: &Spanned<String>, source: &Source) -> Result<HashKey, ConfigError> {
    match text.get_ref().split_once(':') {
        None if text.get_ref() == "target" => Ok(HashKey::Target),
        None if text.get_ref() == "address" => Ok(HashKey::Address),
        Some(("header", name)) if is_token(name.as_bytes()) => Ok(HashKey::Header(name.into())),
        Some(("cookie", name)) if is_token(name.as_bytes()) => Ok(HashKey::Cookie(name.into())),
        _ => {
            let allowed = "`target`, `address`, `header:NAME` and `cookie:NAME`";
            let message = format!("`hash_key` is `{}`: allowed are {allowed}", text.get_ref());
            Err(source.error(text.span(), message))
        }
    }
}
