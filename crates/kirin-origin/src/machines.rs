//! The machines that have this server behind their stores. Each announces itself again and again,
//! in a sorted set on the server, and is forgotten a while after it has ended.
//!
//! The commands that announce read nothing, so the server reports nothing for them. Only those that
//! want to know the machines read the set.

use std::time::{Duration, Instant};

use bytes::Bytes;
use redis::Value;

use crate::engine_clock::EngineClock;
use crate::error::OriginError;
use crate::origin::StoreOrigin;
use crate::replies::unexpected;

impl StoreOrigin {
    /// Announces a machine for `lasting`, and forgets those whose time is over. `card` is what it
    /// says about itself in a few hundred bytes; no other machine says the same. Takes one trip.
    pub async fn announce_machine(
        &self,
        card: &[u8],
        lasting: Duration,
    ) -> Result<(), OriginError> {
        let (clock, name) = (self.engine_clock()?, self.config.names.machines());
        let now = Instant::now();
        let end = milliseconds(clock.at_most(now + lasting));
        let mut commands = redis::pipe();
        commands
            .cmd("ZREMRANGEBYSCORE")
            .arg(name)
            .arg("-inf")
            .arg(milliseconds(clock.at_least(now)));
        commands.cmd("ZADD").arg(name).arg(end).arg(card);
        // The last machine that ends leaves nothing.
        commands.cmd("EXPIRE").arg(name).arg(lasting.as_secs() + 1);
        let servers = self.servers()?;
        let _permit = self.permit()?;
        let announced = servers.of(name).ask_all(&commands).await;
        announced.map(drop).map_err(|error| self.failed(error))
    }

    /// Forgets a machine that has announced itself with `card`. Takes one trip.
    pub async fn withdraw_machine(&self, card: &[u8]) -> Result<(), OriginError> {
        let name = self.config.names.machines();
        let mut command = redis::cmd("ZREM");
        command.arg(name).arg(card);
        let servers = self.servers()?;
        let _permit = self.permit()?;
        let withdrawn = servers.of(name).ask(&command).await;
        withdrawn.map(drop).map_err(|error| self.failed(error))
    }

    /// Returns what the machines say about themselves, in no order, but of at most `most` machines.
    /// One that has died counts until its time is over. Takes one trip.
    pub async fn machines(&self, most: usize) -> Result<Vec<Bytes>, OriginError> {
        let mut command = self.command_about_machines("ZRANGEBYSCORE")?;
        command.arg("LIMIT").arg(0).arg(most);
        match self.ask_about_machines(&command).await? {
            Value::Array(cards) => {
                let cards = cards.into_iter().map(|card| match card {
                    Value::BulkString(card) => Ok(card.into()),
                    card => Err(unexpected("ZRANGEBYSCORE", &card)),
                });
                cards.collect()
            }
            reply => Err(unexpected("ZRANGEBYSCORE", &reply)),
        }
    }

    /// Returns how many machines there are, as [`StoreOrigin::machines`] counts them. Takes one
    /// trip.
    pub async fn count_machines(&self) -> Result<u64, OriginError> {
        let command = self.command_about_machines("ZCOUNT")?;
        match self.ask_about_machines(&command).await? {
            Value::Int(count) => Ok(u64::try_from(count).unwrap_or_default()),
            reply => Err(unexpected("ZCOUNT", &reply)),
        }
    }

    /// Returns a command about the machines whose time is not over.
    fn command_about_machines(&self, command: &str) -> Result<redis::Cmd, OriginError> {
        let now = self.engine_clock()?.at_least(Instant::now());
        let mut command = redis::cmd(command);
        command.arg(self.config.names.machines());
        command.arg(format!("({}", milliseconds(now))).arg("+inf");
        Ok(command)
    }

    async fn ask_about_machines(&self, command: &redis::Cmd) -> Result<Value, OriginError> {
        let servers = self.servers()?;
        let _permit = self.permit()?;
        let server = servers.of(self.config.names.machines());
        server.ask(command).await.map_err(|error| self.failed(error))
    }

    fn engine_clock(&self) -> Result<EngineClock, OriginError> {
        let clock = *self.clock.lock();
        clock.ok_or_else(|| OriginError::Away(self.state.lock().reason()))
    }
}

fn milliseconds(micros: u64) -> u64 {
    micros / 1000
}
