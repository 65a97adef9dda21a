//! The address of metrics alone (`metrics` in the configuration).
//!
//! It may be reached by other machines, because Prometheus often runs on one. So it answers nothing
//! but `GET /metrics`, and takes few connections.

use std::rc::Rc;

use http::{Method, StatusCode};
use kirin_config::Config;
use kirin_http::{Answer, Handler, ListenAddress, Origin, RequestHead, Response};
use kirin_observe::refusal::refusal;
use kirin_observe::stage::{Stage, drain_limit, wait_to_serve};
use kirin_server::listener::{self, ListenError};
use kirin_server::{
    BindOptions, ConnectionAdmission, ConnectionCount, InForce, Limits, Listener, Observers, Server,
};
use tokio::sync::watch;
use tokio::task::spawn_local;

use crate::admin::Admin;
use crate::serve::sockets::{SocketError, Sockets};

/// The most connections. They do not count as connections of clients.
const CONNECTIONS: usize = 64;

/// Why the address of metrics cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum MetricsOpenError {
    /// The socket cannot be opened.
    #[error("metrics: {0}")]
    Socket(#[from] SocketError),
    /// The address of the socket cannot be read.
    #[error("metrics: {0}")]
    Listen(#[from] ListenError),
}

/// Opens the sockets.
pub fn open(config: &Config, sockets: &mut Sockets) -> Result<Vec<Listener>, MetricsOpenError> {
    let Some(address) = &config.metrics else { return Ok(Vec::new()) };
    let opened = sockets.open(address, 1, &BindOptions::default())?;
    let listeners: Vec<Listener> = opened.by_loop.into_iter().flatten().collect();
    for listener in &listeners {
        match listener.address().map_err(|error| ListenError::Io(address.clone(), error))? {
            ListenAddress::Tcp(address) => {
                tracing::info!("metrics on http://{address}/metrics");
                if !address.ip().to_canonical().is_loopback() {
                    tracing::warn!(
                        "everybody who reaches {address} can read the metrics: have a firewall let only Prometheus in"
                    );
                }
            }
            ListenAddress::Unix(path) => tracing::info!("metrics on unix:{}", path.display()),
        }
    }
    Ok(listeners)
}

/// Serves one socket until the program ends. Must run on an event loop.
pub async fn serve(listener: Listener, admin: Admin, mut stage: watch::Receiver<Stage>) {
    if !wait_to_serve(&mut stage).await {
        return;
    }
    let Ok(address) = listener.address() else { return };
    let admission = ConnectionAdmission::new(ConnectionCount::new(CONNECTIONS), None);
    let limits = Limits { admission: Some(admission), ..Limits::default() };
    let handler = Rc::new(MetricsHandler(admin));
    let server = InForce::new(Server::new(handler, address, limits, Observers::default()));
    let upkeep = spawn_local(listener::maintain_connections(Rc::clone(&server)));
    let ending = stage.clone();
    let stop = drain_limit(ending);
    if let Err(error) = listener::accept_until(listener, Rc::clone(&server), stop).await {
        tracing::error!(%error, "the address of metrics cannot be used");
    }
    let limit = drain_limit(stage).await;
    listener::drain(server, limit, None).await;
    upkeep.abort();
}

/// Answers `GET /metrics` and nothing else.
struct MetricsHandler(Admin);

impl Handler for MetricsHandler {
    fn answer(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> Answer {
        if refusal(request, origin).is_some() {
            return Answer::Now(Response::error(StatusCode::FORBIDDEN));
        }
        match (request.path, &request.method) {
            ("/metrics", &Method::GET | &Method::HEAD) => self.0.current().metrics.answer(request),
            ("/metrics", _) => {
                let mut response = Response::error(StatusCode::METHOD_NOT_ALLOWED);
                response.fields.push("Allow", "GET, HEAD");
                Answer::Now(response)
            }
            _ => Answer::Now(Response::error(StatusCode::NOT_FOUND)),
        }
    }
}
