//! Health checks: a request to each server every few seconds, whether or not there are visitors.
//!
//! Each upstream has one task for them. It runs on the runtime that started it, never on an event
//! loop.

use std::sync::{Arc, Weak};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinSet;

use crate::address::ServerScheme;
use crate::config::{HealthConfig, UpstreamConfig};
use crate::connect::connect;
use crate::server::ProxiedServer;
use crate::socket::ServerStream;
use crate::upstream::Upstream;

/// The bytes of a response that contain the status.
const STATUS_LINE_BYTES: usize = 12;

/// Starts the health checks of `upstream`, if its configuration wants them.
pub(crate) fn begin(upstream: &Arc<Upstream>) {
    if let Some(health) = &upstream.config().health {
        tokio::spawn(keep(Arc::downgrade(upstream), health.clone()));
    }
}

async fn keep(upstream: Weak<Upstream>, health: HealthConfig) {
    let mut interval = tokio::time::interval(health.interval);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let Some(upstream) = upstream.upgrade() else { return };
        // A panic in one round must not end the task.
        let _ = kirin_http::panics::catch_in(probe_all(&upstream, &health)).await;
    }
}

async fn probe_all(upstream: &Arc<Upstream>, health: &HealthConfig) {
    let set = upstream.set();
    let mut probes = JoinSet::new();
    for (index, server) in set.servers.iter().enumerate() {
        let (upstream, server, health) = (Arc::clone(upstream), Arc::clone(server), health.clone());
        probes.spawn(async move { (index, probe(&server, upstream.config(), &health).await) });
    }
    while let Some(probed) = probes.join_next().await {
        let Ok((index, result)) = probed else { continue };
        let (Some(server), name) = (set.servers.get(index), upstream.name()) else { continue };
        match (set.known.probed(index, result.is_ok(), Instant::now()), result) {
            (None, _) => {}
            (Some(_), Ok(())) => tracing::info!(upstream = name, %server, "is healthy again"),
            (Some(_), Err(reason)) => {
                tracing::warn!(upstream = name, %server, reason, "is not healthy and gets no requests");
            }
        }
    }
}

/// Checks that `server` answers as it should.
async fn probe(
    server: &ProxiedServer,
    config: &UpstreamConfig,
    health: &HealthConfig,
) -> Result<(), String> {
    let asking = async {
        let stream = connect(server, &config.tls, true, health.timeout)
            .await
            .map_err(|error| error.to_string())?;
        // Servers with other protocols only have to accept a connection.
        if !matches!(server.scheme(), ServerScheme::Http | ServerScheme::Https) {
            return Ok(None);
        }
        let host = health.host.as_deref().unwrap_or(&server.authority);
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: kirin-health\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            health.path
        );
        match stream {
            ServerStream::Tcp(stream) => ask(stream, &request).await,
            ServerStream::Unix(stream) => ask(stream, &request).await,
            ServerStream::Tls(stream) => ask(*stream, &request).await,
        }
        .map(Some)
    };
    let status = tokio::time::timeout(health.timeout, asking)
        .await
        .map_err(|_| format!("no answer within {:?}", health.timeout))??;
    match status {
        Some(status) if !health.status.contains(&status) => Err(format!("status {status}")),
        _ => Ok(()),
    }
}

/// Sends `request` and returns the status of the response.
async fn ask(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &str,
) -> Result<u16, String> {
    stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
    stream.flush().await.map_err(|error| error.to_string())?;
    let mut line = [0; STATUS_LINE_BYTES];
    stream.read_exact(&mut line).await.map_err(|error| format!("no status line: {error}"))?;
    status_of(&line).ok_or_else(|| "what it says is not HTTP/1".into())
}

fn status_of(line: &[u8; STATUS_LINE_BYTES]) -> Option<u16> {
    let digits = line.strip_prefix(b"HTTP/1.")?.get(1..)?.strip_prefix(b" ")?;
    let is_number = digits.len() == 3 && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(digits).ok()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_from_the_first_line() {
        assert_eq!(status_of(b"HTTP/1.1 200"), Some(200));
        assert_eq!(status_of(b"HTTP/1.0 503"), Some(503));
        for line in [b"HTTP/2 200 O", b"HTTP/1.1 +20", b"HTTP/1.1\t200", b"220 smtp.exa"] {
            assert_eq!(status_of(line), None, "{}", String::from_utf8_lossy(line));
        }
    }
}
