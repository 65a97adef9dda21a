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
/// The parts of a write in a cluster.
pub(crate) const PUT_NUMBERS: EngineScript = EngineScript { index: 3, name: "put_numbers.lua" };
pub(crate) const PUT_TAG: EngineScript = EngineScript { index: 4, name: "put_tag.lua" };
pub(crate) const PUT_ITEM: EngineScript = EngineScript { index: 5, name: "put_item.lua" };
/// The parts of a purge in a cluster.
pub(crate) const PURGE_NAME: EngineScript = EngineScript { index: 6, name: "purge_name.lua" };
pub(crate) const PURGE_NUMBERS: EngineScript = EngineScript { index: 7, name: "purge_numbers.lua" };
/// Takes, renews or ends a lease.
pub(crate) const LEASE: EngineScript = EngineScript { index: 8, name: "lease.lua" };
/// Replaces a record.
pub(crate) const RECORD: EngineScript = EngineScript { index: 9, name: "record.lua" };
/// Adds to the buckets of a limit.
pub(crate) const COUNT: EngineScript = EngineScript { index: 10, name: "count.lua" };

/// Returns the text of a script: what it shares with others, and itself.
macro_rules! script {
    ($($part:literal)*) => { concat!($(include_str!(concat!("scripts/", $part, ".lua"))),*) };
}

/// Their texts, by their indexes.
const TEXTS: [&str; 11] = [
    script!("numbers" "present" "tags" "item" "put"),
    script!("numbers" "purging" "purge"),
    script!("touch"),
    script!("numbers" "present" "put_numbers"),
    script!("numbers" "tags" "put_tag"),
    script!("numbers" "item" "put_item"),
    script!("numbers" "purging" "purge_name"),
    script!("numbers" "purging" "purge_numbers"),
    script!("lease"),
    script!("record"),
    script!("numbers" "count"),
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
        let mut commands = redis::pipe();
        for script in TEXTS {
            commands.cmd("SCRIPT").arg("LOAD").arg(script);
        }
        let hashes = self.ask_all(&commands).await?.iter().map(text).collect();
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
