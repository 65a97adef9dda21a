//! Records: small values that machines share under names of their own.
//!
//! A record is no item of the store. No purge reaches it, and no machine keeps a copy for others.
//! The server reports the next change of what a machine has read, as it does for items, so a
//! machine can wait for it.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use redis::Value;
use tokio::sync::watch;

use crate::engine_scripts::RECORD;
use crate::error::OriginError;
use crate::origin::StoreOrigin;
use crate::replies::unexpected;

/// The most bytes of a record.
pub const RECORD_LIMIT_BYTES: usize = 256 << 10;

/// Those that wait for changes, by the names of the records. Only the program chooses names that
/// are waited for, so there are few.
#[derive(Debug, Default)]
pub(crate) struct RecordWatches(Mutex<HashMap<Vec<u8>, watch::Sender<u64>>>);

impl RecordWatches {
    /// Wakes those that wait for a record.
    pub(crate) fn record_has_changed(&self, name: &[u8]) {
        if let Some(changes) = self.0.lock().get(name) {
            changes.send_modify(|count| *count += 1);
        }
    }

    /// Wakes all: any record may have changed.
    pub(crate) fn all_have_changed(&self) {
        self.0.lock().values().for_each(|changes| changes.send_modify(|count| *count += 1));
    }
}

impl StoreOrigin {
    /// Reads a record. Takes one trip.
    pub async fn read_record(&self, name: &[u8]) -> Result<Option<Bytes>, OriginError> {
        let names = [name];
        Ok(self.read_records(&names).await?.pop().flatten())
    }

    /// Reads several records, in one trip to each server.
    pub async fn read_records(&self, names: &[&[u8]]) -> Result<Vec<Option<Bytes>>, OriginError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let servers = self.servers()?;
        let _permit = self.permit()?;
        let in_engine = names.iter().map(|name| self.config.names.record(name)).collect();
        let replies = servers.get_all(in_engine).await.map_err(|error| self.failed(error))?;
        let values = replies.into_iter().map(|reply| match reply {
            Value::BulkString(value) => Ok(Some(value.into())),
            Value::Nil => Ok(None),
            reply => Err(unexpected("GET", &reply)),
        });
        values.collect()
    }

    /// Writes a record, which expires after `lasting` if that is given. Takes one trip.
    pub async fn write_record(
        &self,
        name: &[u8],
        value: &[u8],
        lasting: Option<Duration>,
    ) -> Result<(), OriginError> {
        check_length(value)?;
        let servers = self.servers()?;
        let _permit = self.permit()?;
        let name = self.config.names.record(name);
        let mut command = redis::cmd("SET");
        command.arg(&name).arg(value);
        if let Some(lasting) = lasting {
            command.arg("PX").arg(milliseconds(lasting));
        }
        servers.of(&name).ask(&command).await.map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Replaces a record that is `old`; `None` is one that does not exist. With `None` for `new` it
    /// is removed. Returns whether it was `old`, and so was replaced. Takes one trip.
    pub async fn replace_record(
        &self,
        name: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
        lasting: Option<Duration>,
    ) -> Result<bool, OriginError> {
        check_length(new.unwrap_or_default())?;
        let servers = self.servers()?;
        let _permit = self.permit()?;
        let name = self.config.names.record(name);
        let is_there = |value: Option<&[u8]>| if value.is_some() { &b"1"[..] } else { b"0" };
        let lasting = lasting.map_or(0, milliseconds).to_string();
        let arguments = [
            is_there(old),
            old.unwrap_or_default(),
            is_there(new),
            new.unwrap_or_default(),
            lasting.as_bytes(),
        ];
        let replaced = servers.of(&name).run(RECORD, std::slice::from_ref(&name), &arguments).await;
        let replaced = replaced.map_err(|error| self.failed(error))?;
        Ok(replaced.first() == Some(&1))
    }

    /// Returns what changes when a record may be another than the one that was read last: the
    /// server has reported it, or the connection is a new one. It tells nothing of a record that
    /// was not read since the last change.
    pub fn watch_record(&self, name: &[u8]) -> watch::Receiver<u64> {
        self.record_watches.0.lock().entry(name.to_vec()).or_default().subscribe()
    }
}

fn check_length(value: &[u8]) -> Result<(), OriginError> {
    match value.len() > RECORD_LIMIT_BYTES {
        true => Err(OriginError::RecordTooLong(value.len())),
        false => Ok(()),
    }
}

/// Returns a time that the server takes: it refuses zero.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}
