//! A server of an upstream: its address, or a table that says more.

use std::fmt;
use std::num::NonZeroU32;

use kirin_proxy::{MAX_WEIGHT, ServerAddress, ServerConfig};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::source::{ConfigError, ConfigSource};
use crate::written::Written;

/// A server.
#[derive(Debug)]
pub struct ServerEntry {
    address: String,
    weight: Option<u32>,
    backup: bool,
    /// The most requests at the same time, if the server has a limit of its own.
    pub max_in_flight: Option<NonZeroU32>,
}

/// A server that is written as a table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerTable {
    address: String,
    weight: Option<u32>,
    #[serde(default)]
    backup: bool,
    max_in_flight: Option<NonZeroU32>,
}

impl<'de> Deserialize<'de> for ServerEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ServerEntryVisitor;
        impl<'de> Visitor<'de> for ServerEntryVisitor {
            type Value = ServerEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "an address, or { address = …, weight = …, backup = …, max_in_flight = … }",
                )
            }

            fn visit_str<E: de::Error>(self, address: &str) -> Result<ServerEntry, E> {
                Ok(ServerEntry {
                    address: address.into(),
                    weight: None,
                    backup: false,
                    max_in_flight: None,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ServerEntry, A::Error> {
                let table = ServerTable::deserialize(MapAccessDeserializer::new(map))?;
                let ServerTable { address, weight, backup, max_in_flight } = table;
                Ok(ServerEntry { address, weight, backup, max_in_flight })
            }
        }
        deserializer.deserialize_any(ServerEntryVisitor)
    }
}

/// Checks `entry`. Without a limit of its own it has the limit `max_in_flight`.
pub fn check_server(
    entry: &Written<ServerEntry>,
    max_in_flight: Option<NonZeroU32>,
    source: &ConfigSource,
) -> Result<ServerConfig, ConfigError> {
    let ServerEntry { address, weight, backup, max_in_flight: own } = &**entry;
    let mut address: ServerAddress =
        address.parse().map_err(|error| source.error(entry.span(), format!("{error}")))?;
    if let kirin_proxy::Location::Unix(path) = &mut address.location {
        *path = source.path(&path);
    }
    let weight = weight.unwrap_or(1);
    if !(1..=MAX_WEIGHT).contains(&weight) {
        let message = format!("`weight` is {weight}: allowed is 1 to {MAX_WEIGHT}");
        return Err(source.error(entry.span(), message));
    }
    Ok(ServerConfig { address, weight, backup: *backup, max_in_flight: own.or(max_in_flight) })
}
