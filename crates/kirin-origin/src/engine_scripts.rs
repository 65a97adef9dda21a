//! The scripts that run in the engine. Each does in one step what must not be torn apart.

use redis::Value;

use crate::connection::Connection;
use crate::error::OriginError;
use crate::replies::{text, unexpected};

/// Writes an item or a tombstone.
pub(crate) const PUT: EngineScript = EngineScript { index: 0, name: "put.lua" };
/// Purges tags, prefixes and items.
pub(crate) const PURGE: EngineScript = EngineScript { index: 1, name: "purge.lua" };
/// Changes when an item expires.
pub(crate) const TOUCH: EngineScript = EngineScript { index: 2, name: "touch.lua" };

/// Their texts, by their indexes.
const TEXTS: [&str; 3] = [
    concat!(include_str!("scripts/numbers.lua"), include_str!("scripts/put.lua")),
    concat!(include_str!("scripts/numbers.lua"), include_str!("scripts/purge.lua")),
    include_str!("scripts/touch.lua"),
];

/// A script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineScript {
    index: usize,
    name: &'static str,
}

impl Connection {
    /// Lets the server know the scripts.
    pub(crate) async fn load_scripts(&self) -> Result<(), OriginError> {
        let mut hashes = Vec::new();
        for script in TEXTS {
            let mut command = redis::cmd("SCRIPT");
            command.arg("LOAD").arg(script);
            hashes.push(text(&self.ask(&command).await?));
        }
        // Loaded again after the server has forgotten them, they have the same hashes.
        let _ = self.scripts.set(hashes);
        Ok(())
    }

    /// Runs a script. Returns the numbers that it returns.
    pub(crate) async fn run(
        &self,
        script: EngineScript,
        keys: &[Vec<u8>],
        arguments: &[&[u8]],
    ) -> Result<Vec<i64>, OriginError> {
        let hash = self.scripts.get().and_then(|hashes| hashes.get(script.index));
        let mut command = redis::cmd("EVALSHA");
        command.arg(hash.map_or("", String::as_str)).arg(keys.len()).arg(keys).arg(arguments);
        let reply = match self.ask(&command).await {
            // Somebody has told the server to forget its scripts. This one did not run.
            Err(OriginError::Refused(reason)) if reason.starts_with("NOSCRIPT") => {
                self.load_scripts().await?;
                self.ask(&command).await?
            }
            replied => replied?,
        };
        let Value::Array(values) = &reply else { return Err(unexpected(script.name, &reply)) };
        let numbers = values.iter().map(|value| match value {
            Value::Int(number) => Some(*number),
            _ => None,
        });
        numbers.collect::<Option<_>>().ok_or_else(|| unexpected(script.name, &reply))
    }
}
