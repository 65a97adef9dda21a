//! The admin listener in the configuration.

use kirin_http::ListenAddress;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_spanned::Spanned;

use super::Config;
use super::check::address;
use super::load::{ConfigError, Source};

/// The admin listener ([purge.md](purge.md)).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdminConfig {
    /// `unix:PATH`, which only the user that Kirin serves as (and root) may open, or a port on a
    /// loopback address, `127.0.0.1:PORT`, which every process of the machine can.
    #[schemars(with = "String")]
    pub address: Spanned<String>,
}

/// The address of the admin listener, which nobody reaches from another machine.
pub fn check_admin(config: &Config, source: &Source) -> Result<Option<ListenAddress>, ConfigError> {
    let Some(admin) = &config.admin else { return Ok(None) };
    let checked = address(&admin.address, source)?;
    match checked {
        ListenAddress::Tcp(tcp) if !tcp.ip().to_canonical().is_loopback() => {
            let message = format!(
                "`admin` listens on {tcp}, which others can reach, and asks for no password: allowed are unix:PATH and a port on \
                 127.0.0.1 or [::1]"
            );
            Err(source.error(admin.address.span(), message))
        }
        checked => Ok(Some(checked)),
    }
}
