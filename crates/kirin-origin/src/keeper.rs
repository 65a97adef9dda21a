//! Keeps the connection of an origin: connects, proves again and again that the copies are true,
//! and connects again when the connection has ended.
//!
//! The proof is a trip to the server. All that the server had to tell before it has come before its
//! reply. So everything was true when the trip began. The store forgets its copies
//! `stale_limit` after the beginning of the last trip that has succeeded. That also holds if this
//! process is stopped, or if the network swallows everything: nothing needs to be noticed for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kirin_store::Now;
use redis::Value;

use crate::connection::{Connection, text};
use crate::counters::add;
use crate::encoding::{LastNumbers, NUMBER_LIMIT, Purged};
use crate::engine_clock::EngineClock;
use crate::error::{ConnectError, OriginError};
use crate::origin::StoreOrigin;
use crate::state::OriginState;

/// The pauses between attempts to connect. They double from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The longest time between two proofs.
const LONGEST_PROOF_INTERVAL: Duration = Duration::from_millis(500);

impl StoreOrigin {
    /// Keeps the connection. It never returns.
    pub async fn run(self: Arc<Self>) {
        let mut pause = FIRST_PAUSE;
        loop {
            let begun = Instant::now();
            let reason = match self.connect().await {
                Ok(connection) => self.keep(&connection).await,
                Err(error) => error,
            };
            self.note_away(&reason);
            pause = if begun.elapsed() > LONGEST_PAUSE {
                FIRST_PAUSE
            } else {
                (pause * 2).min(LONGEST_PAUSE)
            };
            tokio::time::sleep(pause.mul_f64(jitter())).await;
        }
    }

    /// Connects, and reads the numbers. Commands use the connection from then on.
    async fn connect(self: &Arc<Self>) -> Result<Arc<Connection>, ConnectError> {
        let epoch = self.epoch.fetch_add(1, Ordering::AcqRel) + 1;
        let origin = Arc::downgrade(self);
        let receiver = Arc::new(move |push| {
            if let Some(origin) = origin.upgrade() {
                origin.receive(epoch, push);
            }
        });
        let connection = Arc::new(Connection::open(&self.config, receiver).await?);
        // What was true on the last connection may have changed since. What is read from now on is
        // reported.
        let learned = self.numbers.learned();
        self.forget_everything();
        self.numbers_are_due.store(true, Ordering::SeqCst);
        let ended = |error: OriginError| ConnectError::Ended(error.to_string());
        connection.load_scripts().await.map_err(ended)?;
        self.prove(&connection).await.map_err(ended)?;
        let known = self.numbers.learned();
        if known == 0 || known < learned {
            // The server is new, or it has lost purges: perhaps a replica took over. Nobody knows
            // which items they had purged.
            if learned > 0 {
                tracing::warn!("the origin has lost purges, so all its items are purged");
            }
            self.purge_everything(&connection).await.map_err(ended)?;
        }
        add(&self.counters.connections, 1);
        *self.state.lock() =
            OriginState::Connected { since: Instant::now(), server: connection.facts.clone() };
        let (address, server) = (&self.config.address, &connection.facts);
        tracing::info!(%address, server = server.name, version = server.version, "origin connected");
        if server.evicts {
            tracing::warn!(
                "the origin may evict any key (maxmemory-policy): with volatile-* or noeviction, tags outlive \
                 their items"
            );
        }
        self.serve_with(Arc::clone(&connection));
        Ok(connection)
    }

    /// Proves that copies are true as long as the connection lasts. Returns why it has ended.
    async fn keep(&self, connection: &Connection) -> ConnectError {
        let interval = (self.config.stale_limit / 5).min(LONGEST_PROOF_INTERVAL);
        let mut proven_at = Instant::now();
        loop {
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(interval.saturating_sub(proven_at.elapsed())) => {}
            }
            if !self.is_connected() {
                return ConnectError::Ended("the server has closed the connection".into());
            }
            if proven_at.elapsed() < interval && !self.numbers_are_due.load(Ordering::SeqCst) {
                continue;
            }
            if let Err(error) = self.prove(connection).await {
                self.end_connection(self.epoch.load(Ordering::Acquire));
                return ConnectError::Ended(error.to_string());
            }
            proven_at = Instant::now();
        }
    }

    /// Makes a trip to the server, and reads the numbers if they are due. Afterwards the copies may
    /// be served for `stale_limit` after the beginning of the trip.
    async fn prove(&self, connection: &Connection) -> Result<(), OriginError> {
        let now = Now::on_steady_clock();
        let asked_at = Instant::now();
        if self.numbers_are_due.load(Ordering::SeqCst) {
            self.read_numbers(connection, 0).await?;
        }
        let time = connection.ask(&redis::cmd("TIME")).await?;
        let micros = micros_of(&time).ok_or_else(|| unexpected("TIME", &time))?;
        *self.clock.lock() = Some(EngineClock::new(micros, asked_at));
        // A change that was told meanwhile proves nothing until it is read.
        if !self.numbers_are_due.load(Ordering::SeqCst) {
            self.store.forget_at(now.plus_seconds(self.config.stale_limit.as_secs()));
        }
        Ok(())
    }

    /// Reads the numbers of purges and the table of prefixes, and drops the copies that it kills.
    /// Does nothing if the table is complete up to `wanted` and not due.
    pub(crate) async fn read_numbers(
        &self,
        connection: &Connection,
        wanted: u64,
    ) -> Result<(), OriginError> {
        let _only_one = self.reading_numbers.lock().await;
        let is_due = self.numbers_are_due.swap(false, Ordering::SeqCst);
        if !is_due && self.numbers.complete_up_to() >= wanted {
            return Ok(());
        }
        let read = self.read_numbers_at_once(connection).await;
        if read.is_err() {
            self.numbers_are_due.store(true, Ordering::SeqCst);
        }
        read
    }

    async fn read_numbers_at_once(&self, connection: &Connection) -> Result<(), OriginError> {
        let names = &self.config.names;
        let mut commands = redis::pipe();
        commands.atomic();
        commands.cmd("GET").arg(names.number()).cmd("HGETALL").arg(names.purges());
        let replies = connection.ask_all(&commands).await?;
        let [number, table] = replies.as_slice() else {
            return Err(OriginError::Unexpected(format!("{} replies for 2", replies.len())));
        };
        let numbers = numbers_of(number).unwrap_or_default();
        let mut table = table_of(table);
        if !table.iter().any(|(prefix, _)| prefix.is_empty()) {
            // The numbers were lost. The next writer begins again.
            table = vec![(Bytes::new(), Purged { hard: NUMBER_LIMIT, soft: 0 })];
        }
        let now = Now::on_steady_clock();
        for prefix in self.numbers.take_table(numbers.of_any, table) {
            self.prefix_was_purged(&prefix, now);
        }
        Ok(())
    }

    fn note_away(&self, reason: &ConnectError) {
        let mut state = self.state.lock();
        let reason = reason.to_string();
        // A server that stays away is named once.
        let is_news = !matches!(&*state, OriginState::Away { reason: old, .. } if *old == reason);
        let since = match &*state {
            OriginState::Away { since, .. } => *since,
            OriginState::Connected { .. } => Instant::now(),
        };
        if is_news {
            tracing::warn!(reason, "origin is away");
        }
        *state = OriginState::Away { since, reason };
    }
}

/// Returns the numbers in the reply to `GET {k}n`, if there are any.
pub(crate) fn numbers_of(reply: &Value) -> Option<LastNumbers> {
    match reply {
        Value::BulkString(bytes) => LastNumbers::parse(bytes),
        _ => None,
    }
}

/// Returns the rows of the reply to `HGETALL {k}p`. A row that nobody can read kills all items.
fn table_of(reply: &Value) -> Vec<(Bytes, Purged)> {
    let Some(rows) = reply.as_map_iter() else { return Vec::new() };
    let rows = rows.map(|(prefix, purged)| match (prefix, purged) {
        (Value::BulkString(prefix), Value::BulkString(purged)) => {
            Some((Bytes::copy_from_slice(prefix), Purged::parse(purged)?))
        }
        _ => None,
    });
    rows.collect::<Option<_>>().unwrap_or_default()
}

/// Returns the time of a reply to `TIME`: seconds and microseconds.
fn micros_of(reply: &Value) -> Option<u64> {
    let Value::Array(parts) = reply else { return None };
    let [seconds, micros] = parts.as_slice() else { return None };
    let seconds: u64 = text(seconds).parse().ok()?;
    seconds.checked_mul(1_000_000)?.checked_add(text(micros).parse().ok()?)
}

/// Returns the error for a reply that a command cannot have.
pub(crate) fn unexpected(command: &str, reply: &Value) -> OriginError {
    let mut shown = format!("{reply:?}");
    shown.truncate(shown.floor_char_boundary(100));
    OriginError::Unexpected(format!("{shown} to {command}"))
}

/// Returns a random factor from one half to one, so that many Kirins do not connect at the same
/// moment.
fn jitter() -> f64 {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    0.5 + f64::from(random) / f64::from(u32::MAX) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_differ_by_up_to_a_half() {
        let factors: Vec<f64> = (0..50).map(|_| jitter()).collect();
        assert!(factors.iter().all(|factor| (0.5..=1.0).contains(factor)), "{factors:?}");
        assert!(factors.iter().any(|factor| *factor != factors[0]), "{factors:?}");
    }

    #[test]
    fn the_time_of_a_server_has_two_parts() {
        let part = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let time = Value::Array(vec![part("1700000000"), part("000042")]);
        assert_eq!(micros_of(&time), Some(1_700_000_000_000_042));
        assert_eq!(micros_of(&Value::Array(vec![part("1")])), None);
        assert_eq!(micros_of(&Value::Nil), None);
    }
}
