//! Keeps the connection of an origin: connects, proves again and again that the copies are true,
//! and connects again when the connection has ended. The connection to a cluster is one to each
//! master, and has ended when one of them has.
//!
//! The proof is a trip to each server. All that the server had to tell before it has come before
//! its reply. So everything was true when the first trip began. The store forgets its copies
//! `stale_limit` after the beginning of the last trip that has succeeded. That also holds if this
//! process is stopped, or if the network swallows everything: nothing needs to be noticed for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::try_join_all;
use kirin_store::Now;
use redis::Value;

use crate::counters::add;
use crate::encoding::{NUMBER_LIMIT, Purged};
use crate::engine_clock::EngineClock;
use crate::error::{ConnectError, OriginError};
use crate::origin::StoreOrigin;
use crate::random::jitter;
use crate::replies::{field, micros_of, numbers_of, table_of, unexpected};
use crate::servers::Servers;
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
                Ok(servers) => {
                    let reason = tokio::select! {
                        reason = self.keep(&servers) => reason,
                        reason = self.watch_master(&servers) => reason,
                        reason = self.watch_map(&servers) => reason,
                    };
                    servers.end();
                    reason
                }
                Err(error) => {
                    self.find_latest_master(&error).await;
                    error
                }
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
    async fn connect(self: &Arc<Self>) -> Result<Arc<Servers>, ConnectError> {
        let epoch = self.epoch.fetch_add(1, Ordering::AcqRel) + 1;
        let origin = Arc::downgrade(self);
        let receiver = Arc::new(move |push| {
            if let Some(origin) = origin.upgrade() {
                origin.receive(epoch, push);
            }
        });
        let sentinels = self.sentinels.as_ref();
        let servers = Arc::new(Servers::open(&self.config, sentinels, receiver).await?);
        // What was true on the last connection may have changed since. What is read from now on is
        // reported.
        let learned = self.numbers.learned();
        {
            // A reader that has its reply from before takes the numbers over first.
            let _no_reader = self.reading_numbers.lock().await;
            self.forget_everything();
        }
        self.numbers_are_due.store(true, Ordering::SeqCst);
        let ended = |error: OriginError| ConnectError::Ended(error.to_string());
        servers.load_scripts().await.map_err(ended)?;
        self.prove(&servers).await.map_err(ended)?;
        // Another run of the server may have lost its last writes. So may a replica that took over.
        let number = self.numbers.complete_up_to();
        let run = servers.run();
        let is_same_run = run.is_some() && *self.last_run.lock() == run;
        let has_lost = number < learned || learned > 0 && !is_same_run;
        if has_lost {
            tracing::warn!("the origin may have lost purges, so all its items are purged");
        }
        if number == 0 || has_lost {
            self.purge_everything(&servers).await.map_err(ended)?;
        }
        *self.last_run.lock() = run;
        add(&self.counters.connections, 1);
        let (address, server) = (&servers.first.address, servers.facts());
        *self.state.lock() = OriginState::Connected { server: server.clone() };
        tracing::info!(address, server = server.name, version = server.version, "origin connected");
        self.serve_with(Arc::clone(&servers));
        Ok(servers)
    }

    /// Proves that copies are true as long as the connection lasts. Returns why it has ended.
    async fn keep(&self, servers: &Servers) -> ConnectError {
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
            if let Err(error) = self.prove(servers).await {
                self.end_connection(self.epoch.load(Ordering::Acquire));
                return ConnectError::Ended(error.to_string());
            }
            proven_at = Instant::now();
        }
    }

    /// Makes the next attempt to connect begin with a Sentinel that knows the latest failover. The
    /// last one may have missed it, if the server that it has named cannot be used.
    async fn find_latest_master(&self, error: &ConnectError) {
        if let (Some(sentinels), false) =
            (&self.sentinels, matches!(error, ConnectError::NoMaster { .. }))
        {
            let _ = sentinels.latest().await;
        }
    }

    /// Ends the connection when the Sentinels name another master. Returns only then.
    async fn watch_master(&self, servers: &Servers) -> ConnectError {
        let (Some(sentinels), Some(master)) = (&self.sentinels, &servers.first.master) else {
            return std::future::pending().await;
        };
        let other = sentinels.wait_for_another(master).await;
        self.end_connection(self.epoch.load(Ordering::Acquire));
        ConnectError::OtherMaster(other)
    }

    /// Ends the connection when a master of a cluster tells of another map. Returns only then.
    async fn watch_map(&self, servers: &Servers) -> ConnectError {
        let change = servers.wait_for_another_map(self.config.stale_limit).await;
        self.end_connection(self.epoch.load(Ordering::Acquire));
        change
    }

    /// Makes a trip to each server, and reads the numbers if they are due. Afterwards the copies
    /// may be served for `stale_limit` after the beginning of the trip.
    ///
    /// The trip may take half of that time, because it waits behind all replies that are on their
    /// way.
    pub(crate) async fn prove(&self, servers: &Servers) -> Result<(), OriginError> {
        let limit = self.config.stale_limit / 2;
        let proved = tokio::time::timeout(limit, self.prove_at_leisure(servers)).await;
        proved.unwrap_or(Err(OriginError::TimedOut(limit)))
    }

    async fn prove_at_leisure(&self, servers: &Servers) -> Result<(), OriginError> {
        let now = Now::on_steady_clock();
        if self.numbers_are_due.load(Ordering::SeqCst) {
            self.read_numbers(servers, 0).await?;
        }
        let number = self.numbers.complete_up_to();
        let asked_at = Instant::now();
        let mut commands = redis::pipe();
        commands.cmd("TIME").cmd("HELLO");
        // The clock is that of the first server, so its reply must not wait for others.
        let (replies, others) = tokio::join!(
            async {
                let replies = servers.first.ask_all_at_leisure(&commands).await;
                (replies, Instant::now())
            },
            try_join_all(servers.others().iter().map(async |server| {
                let mut commands = redis::pipe();
                commands.cmd("HELLO");
                is_master(&server.ask_all_at_leisure(&commands).await?)
            }))
        );
        let (replies, answered_at) = (replies.0?, replies.1);
        others?;
        let [time, hello] = replies.as_slice() else {
            return Err(OriginError::Unexpected(format!("{} replies for 2", replies.len())));
        };
        is_master(std::slice::from_ref(hello))?;
        let micros = micros_of(time).ok_or_else(|| unexpected("TIME", time))?;
        *self.clock.lock() = Some(EngineClock::new(micros, asked_at, answered_at));
        servers.has_proven(number);
        // A change that was told meanwhile proves nothing until it is read.
        if !self.numbers_are_due.load(Ordering::SeqCst) {
            self.store.forget_at(now.plus_seconds(self.config.stale_limit.as_secs()));
        }
        Ok(())
    }

    /// Reads the numbers of purges and the table of prefixes, and drops the copies that it kills.
    /// Does nothing if the table is complete up to `wanted` and not due. It takes no longer than a
    /// command, also if others read before.
    pub(crate) async fn read_numbers(
        &self,
        servers: &Servers,
        wanted: u64,
    ) -> Result<(), OriginError> {
        let limit = self.config.timeout;
        let read = tokio::time::timeout(limit, async {
            let _only_one = self.reading_numbers.lock().await;
            if !self.numbers_are_due.load(Ordering::SeqCst)
                && self.numbers.complete_up_to() >= wanted
            {
                return Ok(());
            }
            let mut reading = NumbersReading::begin(&self.numbers_are_due);
            let read = self.read_numbers_at_once(servers).await;
            reading.is_done = read.is_ok();
            read
        });
        read.await.unwrap_or(Err(OriginError::TimedOut(limit)))
    }

    async fn read_numbers_at_once(&self, servers: &Servers) -> Result<(), OriginError> {
        let names = &self.config.names;
        // The table comes second, so it has at least the purges up to the number. A server without
        // memory takes no MULTI.
        let mut commands = redis::pipe();
        commands.cmd("GET").arg(names.number()).cmd("HGETALL").arg(names.purges());
        let replies = servers.first.ask_all(&commands).await?;
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

    fn note_away(&self, error: &ConnectError) {
        let away = OriginState::Away { reason: error.to_string() };
        let mut state = self.state.lock();
        // A server that stays away is named once.
        if *state != away {
            tracing::warn!(reason = %error, "origin is away");
            *state = away;
        }
    }
}

/// A reading of the numbers. If it is given up, they are due again.
struct NumbersReading<'a> {
    are_due: &'a AtomicBool,
    is_done: bool,
}

impl<'a> NumbersReading<'a> {
    fn begin(are_due: &'a AtomicBool) -> Self {
        are_due.store(false, Ordering::SeqCst);
        Self { are_due, is_done: false }
    }
}

impl Drop for NumbersReading<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.are_due.store(true, Ordering::SeqCst);
        }
    }
}

/// Checks the reply to `HELLO`. A server that has become a replica goes on to answer.
fn is_master(replies: &[Value]) -> Result<(), OriginError> {
    let role = replies.first().and_then(|hello| field(hello, "role"));
    if role.is_some_and(|role| role != "master") {
        return Err(OriginError::Away("the server has become a replica".into()));
    }
    Ok(())
}
