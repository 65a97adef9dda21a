//! `[admin]`: the listener for operators.

use kirin_http::ListenAddress;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::listener::check_address;
use crate::source::{ConfigError, ConfigSource};
use crate::written::Written;

/// The admin listener ([purge.md](purge.md#the-admin-listener)). Without this section it is a unix
/// socket that `kirin status` and the like find by themselves.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdminSection {
    /// `unix:PATH` or `127.0.0.1:PORT`. Only root and the user that Kirin serves as may open the
    /// unix socket. Every process of the machine can connect to a port on a loopback address.
    pub address: Written<String>,
}

/// Returns the address of the admin listener, which no other machine can reach.
pub fn check_admin(
    admin: &AdminSection,
    source: &ConfigSource,
) -> Result<ListenAddress, ConfigError> {
    let checked = check_address(&admin.address, source)?;
    match checked {
        ListenAddress::Tcp(tcp) if !tcp.ip().to_canonical().is_loopback() => {
            let message = format!(
                "`admin` listens on {tcp}, which others can reach, and asks for no password: \
                 allowed are unix:PATH and a port on 127.0.0.1 or [::1]"
            );
            Err(source.error(admin.address.span(), message))
        }
        checked => Ok(checked),
    }
}
