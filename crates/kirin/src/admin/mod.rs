//! The admin listener: operators and deployment scripts send requests to a running Kirin, by HTTP
//! on a unix socket or a loopback port.
//!
//! The program opens it ([`open`]), and the first event loop serves it ([`serve`]) with the
//! connection engine of all listeners. There is no password: everybody who can open the socket, or
//! is on the machine, may use it. Web pages in a browser on the machine may not. So requests that
//! such a page could have caused are refused ([`refusal`]).

mod blocks_change;
pub mod default_socket;
mod machines_answer;
mod maintenance_change;
pub mod operator_changes;
mod purge_body;
mod server_change;
pub mod shared_blocks;
mod trial_decision;
pub mod unknown_name;
mod workers_change;

use std::rc::Rc;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::{Method, StatusCode};
use kirin_config::Config;
use kirin_gateway::explanation::stored::Question;
use kirin_gateway::filters::advise::sampling::Sampling;
use kirin_gateway::routing::route_names::RouteNames;
use kirin_gateway::routing::site_names::SiteNames;
use kirin_http::media_type::essence;
use kirin_http::{Answer, Handler, ListenAddress, Origin, RequestHead, Response};
use kirin_observe::advise::{Observable, Runs};
use kirin_observe::answers::{json, not_allowed, read, refusal_of_body, text};
use kirin_observe::machines::Machines;
use kirin_observe::machines::question::MachineQuestion;
use kirin_observe::metrics::Metrics;
use kirin_observe::observed::ObservedParts;
use kirin_observe::refusal::refusal;
use kirin_observe::stage::{Stage, drain_limit, wait_to_serve};
use kirin_observe::{profile, status_page, top};
use kirin_origin::NearStore;
use kirin_server::listener::{self, ListenError};
use kirin_server::{BindOptions, InForce, Limits, Listener, Observers, Server};
use kirin_store::Now;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::spawn_local;

use crate::life::control_request::{ControlRequest, ControlRequests, Done};
use crate::serve::sockets::{SocketError, Sockets};
use blocks_change::{BlockRequest, UnblockRequest};
use maintenance_change::MaintenanceRequest;
use purge_body::BodyFormat;
use server_change::ChangeRequest;
use trial_decision::TrialRequest;
use workers_change::WorkersRequest;

/// The access mode of a unix socket: only the user that serves may connect.
const UNIX_MODE: u32 = 0o600;

/// The field that a form must have. Browsers do not let pages of other sites send it without a
/// preflight request (CORS).
const FORM_FIELD: &str = "kirin-admin";

/// The answer of the admin listener to a person's request for `/`.
const ENDPOINTS: &str = "\
GET /status
GET /top, as `kirin top` reads it
GET /machines/status and /machines/top, of all machines with the same origin
GET /metrics, for Prometheus
POST /explain, as `kirin explain` sends it
POST /profile, as `kirin profile` sends it
POST /reload, as `kirin reload` sends it
POST /upgrade, as `kirin upgrade` sends it
POST /upstream, as `kirin upstream` sends it
POST /workers, as `kirin workers` sends it
POST /trial, as `kirin reload --promote` and `--give-up` send it
POST /maintenance, as `kirin maintenance` sends it
POST /block and /unblock, as `kirin block` and `kirin unblock` send it
POST, GET, DELETE /advise, as `kirin advise` sends it
POST /purge with Content-Type: application/json, such as \
{\"keys\": [\"/\"], \"prefixes\": [\"/recent/\"], \"tags\": [\"memo-7\"], \"soft\": false}
";

/// The answers to operators. A clone is the same. Another configuration replaces its parts.
#[derive(Clone)]
pub struct Admin {
    parts: Arc<ArcSwap<AdminParts>>,
    requests: ControlRequests,
}

/// The parts of the program that operators can see and purge, under one configuration.
#[derive(Clone)]
pub struct AdminParts {
    /// What can be seen.
    pub observed: ObservedParts,
    /// The store that is purged.
    pub near: NearStore,
    /// This machine and the others with the same origin.
    pub machines: Option<Arc<Machines>>,
    /// The sites, for purges of one of them.
    pub sites: Arc<SiteNames>,
    /// The runs of `kirin advise`.
    pub advise: Arc<Runs>,
    /// The names of the routes, by their numbers.
    pub route_names: Arc<RouteNames>,
    /// The cookies that name sessions, as configured.
    pub session_cookies: Vec<String>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
}

/// Opens the sockets of the configuration. Call this while the process has one thread.
pub fn open(config: &Config, sockets: &mut Sockets) -> Result<Vec<Listener>, AdminOpenError> {
    let Some(address) = &config.admin else { return Ok(Vec::new()) };
    let options = BindOptions { unix_mode: Some(UNIX_MODE), ..BindOptions::default() };
    let opened = sockets.open(address, 1, &options)?;
    let listeners: Vec<Listener> = opened.by_loop.into_iter().flatten().collect();
    for listener in &listeners {
        match listener.address().map_err(|error| ListenError::Io(address.clone(), error))? {
            ListenAddress::Tcp(address) => tracing::info!("admin on http://{address}/"),
            ListenAddress::Unix(path) => tracing::info!("admin on unix:{}", path.display()),
        }
    }
    Ok(listeners)
}

/// Why the admin listener cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum AdminOpenError {
    /// The socket cannot be opened.
    #[error("admin: {0}")]
    Socket(#[from] SocketError),
    /// The address of the socket cannot be read.
    #[error("admin: {0}")]
    Listen(#[from] ListenError),
}

/// Serves one socket until the program ends. Must run on an event loop.
pub async fn serve(listener: Listener, admin: Admin, mut stage: watch::Receiver<Stage>) {
    if !wait_to_serve(&mut stage).await {
        return;
    }
    let Ok(address) = listener.address() else { return };
    let server =
        InForce::new(Server::new(Rc::new(admin), address, Limits::default(), Observers::default()));
    let house = spawn_local(listener::maintain_connections(Rc::clone(&server)));
    let ending = stage.clone();
    let stop = drain_limit(ending);
    if let Err(error) = listener::accept_until(listener, Rc::clone(&server), stop).await {
        tracing::error!(%error, "the admin listener cannot be used");
    }
    let limit = drain_limit(stage).await;
    listener::drain(server, limit, None).await;
    house.abort();
}

impl Handler for Admin {
    fn answer(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> Answer {
        if let Some(reason) = refusal(request, origin) {
            return Answer::Now(text(StatusCode::FORBIDDEN, reason));
        }
        match (request.path, &request.method) {
            ("/status", &Method::GET | &Method::HEAD) => machines_answer::status(&self.current()),
            ("/top", &Method::GET | &Method::HEAD) => {
                status_page::answer_top(self.snapshot(), request)
            }
            ("/machines/status", &Method::GET | &Method::HEAD) => {
                machines_answer::all(&self.current(), MachineQuestion::Status)
            }
            ("/machines/top", &Method::GET | &Method::HEAD) => {
                machines_answer::all(&self.current(), MachineQuestion::Top)
            }
            ("/metrics", &Method::GET | &Method::HEAD) => self.current().metrics.answer(request),
            ("/purge", &Method::POST) => self.current().purge(request, origin.now),
            ("/advise", method) => self.current().advise(request, method),
            ("/explain", &Method::POST) => self.current().explain(request, origin.now),
            ("/profile", &Method::POST) => profile::answer(&self.current().observed.apps, request),
            ("/reload", &Method::POST) => self.control(request, ControlRequest::Reload),
            ("/upgrade", &Method::POST) => self.control(request, ControlRequest::Upgrade),
            ("/upstream", &Method::POST) => {
                self.change(request, async |parts, change: ChangeRequest| {
                    change.apply(parts.observed.upstreams.iter().map(|upstream| &**upstream))
                })
            }
            ("/workers", &Method::POST) => self
                .change(request, async |parts, change: WorkersRequest| {
                    change.apply(&parts.observed.apps)
                }),
            ("/trial", &Method::POST) => self
                .change(request, async |parts, change: TrialRequest| {
                    change.apply(&parts.observed.apps).await
                }),
            ("/maintenance", &Method::POST) => {
                self.change(request, async |parts, change: MaintenanceRequest| {
                    change.apply(&parts.observed.maintenance, &parts.sites, &parts.route_names)
                })
            }
            ("/block", &Method::POST) => {
                self.change(request, async |parts, change: BlockRequest| change.apply(parts).await)
            }
            ("/unblock", &Method::POST) => self
                .change(request, async |parts, change: UnblockRequest| change.apply(parts).await),
            ("/", &Method::GET | &Method::HEAD) if status_page::is_wanted(request) => {
                status_page::answer(self.snapshot(), request)
            }
            ("/", &Method::GET | &Method::HEAD) => Answer::Now(text(StatusCode::OK, ENDPOINTS)),
            ("/status" | "/top" | "/machines/status" | "/machines/top" | "/metrics" | "/", _) => {
                Answer::Now(not_allowed("GET, HEAD"))
            }
            (
                "/purge" | "/explain" | "/profile" | "/reload" | "/upgrade" | "/upstream"
                | "/workers" | "/trial" | "/maintenance" | "/block" | "/unblock",
                _,
            ) => Answer::Now(not_allowed("POST")),
            _ => Answer::Now(text(
                StatusCode::NOT_FOUND,
                "there is /status, /top, /machines/status, /machines/top, /metrics, /purge, \
                 /profile, /advise, /explain, /reload, /upgrade, /upstream, /workers, /trial, \
                 /maintenance, /block and /unblock\n",
            )),
        }
    }
}

impl Admin {
    /// Returns the answers to operators about these parts.
    pub fn new(parts: AdminParts, requests: ControlRequests) -> Self {
        Self { parts: Arc::new(ArcSwap::from_pointee(parts)), requests }
    }

    /// Answers about other parts from now on.
    pub fn replace(&self, parts: AdminParts) {
        self.parts.store(Arc::new(parts));
    }

    /// Returns the parts.
    pub fn current(&self) -> Arc<AdminParts> {
        self.parts.load_full()
    }

    /// Has the main thread carry out what an operator wishes.
    fn control<W: DeserializeOwned + 'static, T: Serialize + 'static>(
        &self,
        request: &RequestHead<'_>,
        kind: fn(W, Done<T>) -> ControlRequest,
    ) -> Answer {
        if let Some(refusal) = refusal_of_body(request) {
            return Answer::Now(refusal);
        }
        let requests = self.requests.clone();
        Answer::later(move |body| async move {
            match read(body).await.map(|body| serde_json::from_slice(&body)) {
                Err(status) => Response::error(status),
                Ok(Ok(wish)) => requests.carry_out(|done| kind(wish, done)).await,
                Ok(Err(error)) => text(StatusCode::BAD_REQUEST, &format!("{error}\n")),
            }
        })
    }

    /// Answers an operator who changes something of the running program.
    fn change<T: DeserializeOwned>(
        &self,
        request: &RequestHead<'_>,
        apply: impl AsyncFnOnce(&AdminParts, T) -> Result<String, String> + 'static,
    ) -> Answer {
        if let Some(refusal) = refusal_of_body(request) {
            return Answer::Now(refusal);
        }
        let admin = self.clone();
        Answer::later(move |body| async move {
            let body = match read(body).await {
                Ok(body) => body,
                Err(status) => return Response::error(status),
            };
            // A reload may have replaced the parts while the body came.
            let parts = admin.current();
            match serde_json::from_slice::<T>(&body) {
                Err(error) => text(StatusCode::BAD_REQUEST, &format!("{error}\n")),
                Ok(change) => match apply(&parts, change).await {
                    Ok(done) => text(StatusCode::OK, &done),
                    Err(message) => text(StatusCode::CONFLICT, &format!("{message}\n")),
                },
            }
        })
    }

    /// Returns the switch of `kirin advise` that all event loops see.
    pub fn sampling(&self) -> Arc<Sampling> {
        Arc::clone(&self.current().advise.sampling)
    }

    /// Returns what takes a snapshot of the program.
    pub fn snapshot(&self) -> impl status_page::Snapshots + use<> {
        let parts = self.current();
        move || top::snapshot(&parts.observed)
    }
}

impl AdminParts {
    /// Answers `kirin advise`.
    fn advise(&self, request: &RequestHead<'_>, method: &Method) -> Answer {
        if method == Method::POST
            && let Some(refusal) = refusal_of_body(request)
        {
            return Answer::Now(refusal);
        }
        let apps = self.observed.apps.iter().map(|app| format!("app:{}", app.name()));
        let upstreams =
            self.observed.upstreams.iter().map(|upstream| format!("proxy:{}", upstream.name()));
        let observable = Observable {
            places: apps.chain(upstreams).collect(),
            route_names: Arc::clone(&self.route_names),
            sessions: self.session_cookies.clone(),
        };
        self.advise.answer(request, observable)
    }

    /// Answers `kirin explain`: what the store has for a request.
    fn explain(&self, request: &RequestHead<'_>, now: u64) -> Answer {
        if let Some(refusal) = refusal_of_body(request) {
            return Answer::Now(refusal);
        }
        let near = self.near.clone();
        Answer::later(move |body| async move {
            let body = match read(body).await {
                Ok(body) => body,
                Err(status) => return Response::error(status),
            };
            match serde_json::from_slice::<Question>(&body) {
                Ok(question) => {
                    question.load(&near, now).await;
                    json(&serde_json::json!(question.answer(near.store(), now)))
                }
                Err(error) => text(StatusCode::BAD_REQUEST, &format!("{error}\n")),
            }
        })
    }

    fn purge(&self, request: &RequestHead<'_>, now: u64) -> Answer {
        let media_type = request.field("content-type").unwrap_or_default();
        let form = match essence(media_type).to_ascii_lowercase().as_slice() {
            b"application/json" => BodyFormat::Json,
            b"application/x-www-form-urlencoded" if request.field(FORM_FIELD).is_some() => {
                BodyFormat::UrlEncoded
            }
            b"application/x-www-form-urlencoded" => {
                return Answer::Now(text(
                    StatusCode::FORBIDDEN,
                    "a form needs the field `Kirin-Admin: 1`, which no web page can send from elsewhere\n",
                ));
            }
            _ => {
                return Answer::Now(text(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "Content-Type is application/json or application/x-www-form-urlencoded\n",
                ));
            }
        };
        let (near, sites) = (self.near.clone(), Arc::clone(&self.sites));
        Answer::later(move |body| async move {
            let body = match read(body).await {
                Ok(body) => body,
                Err(status) => return Response::error(status),
            };
            match purge_body::parse(form, &body, &sites) {
                Ok(purge) => match purge.apply(&near, Now::from_unix_seconds(now)).await {
                    Ok(purged) => {
                        tracing::info!(
                            keys = purged.keys,
                            prefixes = purged.prefixes,
                            tags = purged.tags,
                            "purged by admin"
                        );
                        json(&machines_answer::purged(&purged, &near).await)
                    }
                    Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, &format!("{error}\n")),
                },
                Err(message) => text(StatusCode::BAD_REQUEST, &format!("{message}\n")),
            }
        })
    }
}
