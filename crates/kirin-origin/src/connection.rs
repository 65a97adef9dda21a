//! One connection to a server, which reports changes of all that was read over it.
//!
//! The crate `redis` frames the commands and matches the replies (RESP3). It never repeats a
//! command and never connects again. It hands over each push of the server before any later reply,
//! in the same task. So an invalidation has been applied when the reply behind it is seen.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, ProtocolVersion, PushInfo, PushKind,
    RedisConnectionInfo, RedisError, ServerErrorKind, Value,
};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::address::{Credentials, NodeAddress, Topology};
use crate::config::OriginConfig;
use crate::error::{ConnectError, LEAST_VERSION, OriginError};
use crate::replies::{field, text};
use crate::sentinel::{NamedMaster, Sentinels};
use crate::server_facts::{ServerFacts, ServerRun};

/// Commands that wait until the connection's task takes them.
const QUEUE_LENGTH: usize = 1024;

/// What the server tells without having been asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// These keys have changed, or are no longer watched.
    Changed(Vec<Vec<u8>>),
    /// All keys have gone.
    AllChanged,
    /// The connection has ended. It may be said twice.
    Ended,
}

/// Takes what the server tells. It must not wait.
pub(crate) type PushReceiver = Arc<dyn Fn(Push) + Send + Sync>;

/// A connection. It also ends when it is dropped.
pub(crate) struct Connection {
    commands: MultiplexedConnection,
    limit: Duration,
    /// The server, without a password.
    pub(crate) address: String,
    /// The server, if a Sentinel or a cluster has named it.
    pub(crate) master: Option<NamedMaster>,
    pub(crate) facts: ServerFacts,
    /// The names by which the server knows the scripts.
    pub(crate) scripts: OnceLock<Vec<String>>,
    task: ConnectionTask,
}

/// The task that reads and writes. It ends when this is dropped.
pub(crate) struct ConnectionTask(JoinHandle<()>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reports the end of a connection, also if its task is aborted.
struct ReportEnd(PushReceiver);

impl Drop for ReportEnd {
    fn drop(&mut self) {
        (self.0)(Push::Ended);
    }
}

impl Connection {
    /// Connects to the server, which `sentinels` name if there are any. From then on it reports
    /// changes to `receiver`. All of it together may take the `timeout` of `config`, so may the
    /// Sentinels before, and so may each command later.
    pub(crate) async fn open(
        config: &OriginConfig,
        sentinels: Option<&Sentinels>,
        receiver: PushReceiver,
    ) -> Result<Self, ConnectError> {
        let Some(sentinels) = sentinels else {
            let address = config.address.to_string();
            return Self::open_server(config, address, None, receiver).await;
        };
        Self::open_master(config, sentinels.master().await?, receiver).await
    }

    /// Connects to a master that Sentinels or the nodes of a cluster have named.
    pub(crate) async fn open_master(
        config: &OriginConfig,
        master: NamedMaster,
        receiver: PushReceiver,
    ) -> Result<Self, ConnectError> {
        let address = format!("{} of {}", master.node, config.address);
        Self::open_server(config, address, Some(master), receiver).await
    }

    /// Connects to the server `master`, or else to the one in the address of `config`. Errors name
    /// it by `address`.
    async fn open_server(
        config: &OriginConfig,
        address: String,
        master: Option<NamedMaster>,
        receiver: PushReceiver,
    ) -> Result<Self, ConnectError> {
        let limit = config.timeout;
        let opened = Self::open_server_at_leisure(config, &address, master, receiver);
        tokio::time::timeout(limit, opened).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} ms", limit.as_millis());
            Err(ConnectError::Unreachable { address, reason })
        })
    }

    async fn open_server_at_leisure(
        config: &OriginConfig,
        address: &str,
        master: Option<NamedMaster>,
        receiver: PushReceiver,
    ) -> Result<Self, ConnectError> {
        let unreachable =
            |reason: String| ConnectError::Unreachable { address: address.into(), reason };
        let credentials = config.address.credentials.as_ref();
        let info = introduction(config.address.database(), credentials);
        let opened = match (&config.address.topology, &master) {
            (Topology::UnixSocket { path, .. }, _) => match UnixStream::connect(path).await {
                Ok(stream) => begin(stream, &info, receiver).await,
                Err(error) => Err(error.to_string()),
            },
            (Topology::Server { node, .. }, _) | (_, Some(NamedMaster { node, .. })) => {
                begin_at(node, config.tls.as_ref(), &info, receiver).await
            }
            (Topology::Sentinel { .. } | Topology::Cluster { .. }, None) => {
                Err("nobody has named its master".into())
            }
        };
        let (commands, task) = opened.map_err(unreachable)?;
        let mut connection = Self {
            commands,
            limit: config.timeout,
            address: address.into(),
            master,
            facts: ServerFacts::default(),
            scripts: OnceLock::new(),
            task,
        };
        let is_cluster = matches!(config.address.topology, Topology::Cluster { .. });
        connection.facts = connection.read_facts(is_cluster).await?;
        if is_cluster {
            let failover = connection.cluster_epoch().await.map_err(unreachable)?;
            connection.master = connection.master.map(|master| NamedMaster { failover, ..master });
        }
        let mut tracking = redis::cmd("CLIENT");
        tracking.arg("TRACKING").arg("ON");
        connection.ask(&tracking).await.map_err(|error| unreachable(error.to_string()))?;
        Ok(connection)
    }

    /// Ends the connection. Commands that wait for a reply fail, and so does each later one: a
    /// server that is no longer the master may still answer.
    pub(crate) fn end(&self) {
        self.task.0.abort();
    }

    /// Returns which run of the server this is, if it says.
    pub(crate) fn run_of_server(&self) -> Option<ServerRun> {
        let failover = self.master.as_ref().and_then(|master| master.failover);
        self.facts.run.clone().map(|id| ServerRun { id, failover })
    }

    /// Asks the server what it is. Returns an error if it cannot be an origin.
    async fn read_facts(&self, is_cluster: bool) -> Result<ServerFacts, ConnectError> {
        let address = &self.address;
        let hello = self.ask(&redis::cmd("HELLO")).await;
        let hello = hello.map_err(|error| ConnectError::Unreachable {
            address: address.clone(),
            reason: error.to_string(),
        })?;
        let field = |name: &str| field(&hello, name);
        let name = field("server").unwrap_or_default();
        let version = field("version").unwrap_or_default();
        if !is_late_enough(&version) {
            let found = format!("{name} {version}");
            return Err(ConnectError::TooOld { address: address.clone(), found });
        }
        let wrong = |found, advice| {
            Err(ConnectError::WrongKind { address: address.clone(), found, advice })
        };
        match field("mode").as_deref() {
            Some("cluster") if !is_cluster => {
                return wrong("a node of a cluster", "its address begins with redis-cluster://");
            }
            Some("sentinel") => {
                return wrong("a Sentinel", "its address begins with redis-sentinel://");
            }
            Some("standalone") if is_cluster => {
                return wrong("a server without a cluster", "its address begins with redis://");
            }
            _ => {}
        }
        if field("role").is_some_and(|role| role != "master") {
            return wrong("a replica", "the origin must be a master, because Kirin writes to it");
        }
        let mut facts = ServerFacts { name, version, evicts: true, run: None };
        self.read_info(&mut facts).await;
        Ok(facts)
    }

    /// Reads what `INFO` tells. A server that does not allow it may evict, and has no known run.
    async fn read_info(&self, facts: &mut ServerFacts) {
        let Ok(info) = self.ask(&redis::cmd("INFO")).await else { return };
        let info = text(&info);
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
        facts.evicts = field("maxmemory_policy:").is_none_or(|policy| policy != "noeviction");
        facts.run = field("run_id:").map(str::to_owned);
    }

    /// Sends a command and waits for its reply, at most for the limit of this connection.
    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Value, OriginError> {
        let mut connection = self.commands.clone();
        let asked = command.query_async(&mut connection);
        self.within_limit(async { asked.await.map_err(|error| origin_error(&error)) }).await
    }

    /// Sends several commands at once and waits for their replies, at most for the same limit.
    pub(crate) async fn ask_all(&self, commands: &Pipeline) -> Result<Vec<Value>, OriginError> {
        self.within_limit(self.ask_all_at_leisure(commands)).await
    }

    /// Does the same for a caller that has a limit of its own.
    pub(crate) async fn ask_all_at_leisure(
        &self,
        commands: &Pipeline,
    ) -> Result<Vec<Value>, OriginError> {
        let mut connection = self.commands.clone();
        let replies: Result<Vec<Value>, _> = commands.query_async(&mut connection).await;
        let replies = replies.map_err(|error| origin_error(&error))?;
        // Another server has the name. Who ignores the errors of values must not ignore that.
        let elsewhere = replies.iter().find_map(|reply| match reply {
            Value::ServerError(error) if error.kind().is_some_and(is_of_cluster) => Some(error),
            _ => None,
        });
        match elsewhere {
            Some(error) => Err(origin_error(&error.clone().into())),
            None => Ok(replies),
        }
    }

    async fn within_limit<T>(
        &self,
        asked: impl Future<Output = Result<T, OriginError>>,
    ) -> Result<T, OriginError> {
        let limit = self.limit;
        tokio::time::timeout(limit, asked).await.unwrap_or(Err(OriginError::TimedOut(limit)))
    }
}

/// Returns how Kirin introduces itself to the database of a server, or to a Sentinel, which has
/// number 0 only.
pub(crate) fn introduction(
    database: u32,
    credentials: Option<&Credentials>,
) -> RedisConnectionInfo {
    let mut info = RedisConnectionInfo::default()
        .set_protocol(ProtocolVersion::RESP3)
        .set_lib_name("kirin", env!("CARGO_PKG_VERSION"))
        .set_db(i64::from(database));
    if let Some(credentials) = credentials {
        info = info.set_password(credentials.password());
        if let Some(user) = credentials.user() {
            info = info.set_username(user);
        }
    }
    info
}

/// Connects to a server or a Sentinel, introduces Kirin, and starts the task of the connection.
/// Returns the reason if that fails.
pub(crate) async fn begin_at(
    node: &NodeAddress,
    tls: Option<&Arc<ClientConfig>>,
    info: &RedisConnectionInfo,
    receiver: PushReceiver,
) -> Result<(MultiplexedConnection, ConnectionTask), String> {
    let stream = TcpStream::connect((node.host.as_str(), node.port)).await;
    let stream = stream.map_err(|error| error.to_string())?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let Some(tls) = tls else { return begin(stream, info, receiver).await };
    let name = ServerName::try_from(node.host.clone()).map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await;
    begin(stream.map_err(|error| error.to_string())?, info, receiver).await
}

/// Does the same over a stream.
async fn begin<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    info: &RedisConnectionInfo,
    receiver: PushReceiver,
) -> Result<(MultiplexedConnection, ConnectionTask), String> {
    let report_end = ReportEnd(Arc::clone(&receiver));
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_pipeline_buffer_size(QUEUE_LENGTH)
        .set_push_sender(move |push: PushInfo| {
            if let Some(push) = understood(push) {
                receiver(push);
            }
            Ok::<(), redis::aio::SendError>(())
        });
    let begun = MultiplexedConnection::new_with_config(info, stream, config).await;
    let (commands, driver) = begun.map_err(|error| text_of(&error))?;
    let task = tokio::spawn(async move {
        let _report_end = report_end;
        driver.await;
    });
    Ok((commands, ConnectionTask(task)))
}

/// Returns what a push means for Kirin.
fn understood(push: PushInfo) -> Option<Push> {
    match (push.kind, push.data.into_iter().next()) {
        (PushKind::Invalidate, Some(Value::Array(keys))) => {
            let names = keys.into_iter().map(|key| match key {
                Value::BulkString(name) => Some(name),
                _ => None,
            });
            // What is not understood may have been any key.
            Some(names.collect::<Option<_>>().map_or(Push::AllChanged, Push::Changed))
        }
        // FLUSHALL and FLUSHDB send null.
        (PushKind::Invalidate, _) => Some(Push::AllChanged),
        (PushKind::Disconnection, _) => Some(Push::Ended),
        _ => None,
    }
}

fn is_late_enough(version: &str) -> bool {
    let numbers = |version: &str| -> Vec<u32> {
        version.split('.').map(|number| number.parse().unwrap_or(0)).collect()
    };
    numbers(version) >= numbers(LEAST_VERSION)
}

/// Returns an error of the server as its own text, and another one as that of the crate.
pub(crate) fn text_of(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    }
}

/// Returns whether a server of a cluster does not serve a name, now or any more.
fn is_of_cluster(kind: ServerErrorKind) -> bool {
    matches!(
        kind,
        ServerErrorKind::Ask
            | ServerErrorKind::Moved
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown
    )
}

fn origin_error(error: &RedisError) -> OriginError {
    match error.kind() {
        ErrorKind::Server(ServerErrorKind::Ask | ServerErrorKind::TryAgain) => {
            let reason = text_of(error);
            OriginError::Refused(format!("the cluster is moving the slot of this key ({reason})"))
        }
        ErrorKind::Server(ServerErrorKind::BusyLoading | ServerErrorKind::MasterDown) => {
            OriginError::Away(text_of(error))
        }
        ErrorKind::Server(_) | ErrorKind::Extension => OriginError::Refused(text_of(error)),
        ErrorKind::Io => OriginError::Interrupted(text_of(error)),
        _ => OriginError::Unexpected(text_of(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushes_name_keys_or_all() {
        let push = |data| understood(PushInfo { kind: PushKind::Invalidate, data });
        let name = |name: &str| Value::BulkString(name.as_bytes().to_vec());
        let keys = push(vec![Value::Array(vec![name("a"), name("b")])]);
        assert_eq!(keys, Some(Push::Changed(vec![b"a".to_vec(), b"b".to_vec()])));
        assert_eq!(push(vec![Value::Nil]), Some(Push::AllChanged));
        assert_eq!(push(vec![]), Some(Push::AllChanged));
        assert_eq!(push(vec![Value::Array(vec![Value::Int(1)])]), Some(Push::AllChanged));
        let other = PushInfo { kind: PushKind::Message, data: vec![name("a")] };
        assert_eq!(understood(other), None);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        for (version, is_enough) in
            [("6.2.14", true), ("6.2.5", false), ("6.10.0", true), ("7.0.15", true), ("", false)]
        {
            assert_eq!(is_late_enough(version), is_enough, "{version}");
        }
    }
}
