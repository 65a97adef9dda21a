//! An upstream as a place of routes on one event loop: its connections, and the answer to a request.

use crate::choose::Chooser;
use crate::config::UpstreamConfig;
use crate::connect::connect;
use crate::content::Content;
use crate::deadlines::Deadlines;
use crate::exchange::{Call, exchange};
use crate::failure::Failure;
use crate::pool::{Connection, Pool};
use crate::read_buffer::Buffers;
use crate::request_head::{HeadPolicy, encode};
use crate::server::Server;
use crate::socket::Socket;
use crate::upstream::Upstream;
use kirin_http::{Answer, Origin, RequestBody, RequestHead, Response};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Servers at most that are tried for one request when they cannot be reached.
const MAX_SERVERS_TRIED: usize = 3;

/// The place on one event loop.
pub struct ProxyPlace(Rc<State>);

/// What the place's requests share.
pub(crate) struct State {
    upstream: Arc<Upstream>,
    chooser: Chooser,
    /// By the server's number.
    pools: RefCell<HashMap<u64, Rc<Pool>>>,
    pub(crate) deadlines: Rc<Deadlines>,
    pub(crate) buffers: Buffers,
    keeps_house: Cell<bool>,
}

/// A connection that a request has for itself.
pub(crate) struct Link {
    pub(crate) connection: Connection,
    pub(crate) server: Arc<Server>,
    pool: Rc<Pool>,
}

impl ProxyPlace {
    /// The place on this loop. Connections are made when they are needed.
    pub fn open(upstream: Arc<Upstream>) -> Self {
        Self(Rc::new(State {
            upstream,
            chooser: Chooser::default(),
            pools: RefCell::default(),
            deadlines: Rc::default(),
            buffers: Buffers::default(),
            keeps_house: Cell::new(false),
        }))
    }

    /// Answers one request, of which the servers get `target` as path and query. Call on an event loop, from a task of its
    /// `LocalSet`. `buffered`: the request's body is read whole before a server hears of it.
    pub fn answer(
        &self,
        request: &RequestHead<'_>,
        target: &str,
        origin: Origin<'_>,
        buffered: bool,
    ) -> Answer {
        let config = self.0.config();
        let policy =
            HeadPolicy { host: &config.host, forwarded: config.forwarded, via: config.via.as_deref() };
        let mut head = encode(request, target, origin, policy);
        head.expects_continue &= !buffered;
        let call = Call { head, informational: None, client: None };
        let state = Rc::clone(&self.0);
        Answer::later(move |body| state.answer_later(call, body, buffered))
    }
}

impl Link {
    /// Keeps the connection for another request, for as long as the server says that it keeps it.
    pub(crate) fn give_back(mut self, place: &State, server_time: Option<Duration>) {
        self.connection.served += 1;
        self.connection.socket.read_deadline.set(0);
        self.pool.put(self.connection, &place.deadlines, &place.config().pool, server_time);
    }
}

impl State {
    pub(crate) fn config(&self) -> &UpstreamConfig {
        self.upstream.config()
    }

    /// What follows a response is none of it, and whose response it is nobody knows.
    pub(crate) fn log_excess(&self, link: &Link, bytes: usize) {
        let upstream = self.upstream.name();
        tracing::warn!(upstream, server = %link.server, bytes, "bytes after the end of a response; connection closed");
    }

    async fn answer_later(self: Rc<Self>, mut call: Call, body: RequestBody, buffered: bool) -> Response {
        self.keep_house();
        call.informational = body.informational();
        call.client = body.client();
        let spool = buffered.then_some(self.config().spool_directory.as_path());
        let mut content = match Content::prepare(body, spool, call.head.expects_continue).await {
            Ok(content) => content,
            Err(failure) => return self.refuse(&call, None, &failure),
        };
        let mut tried = Vec::new();
        loop {
            let chosen = self.chooser.choose(&self.upstream.servers(), &tried);
            let Some(server) = chosen else { return self.refuse(&call, None, &Failure::NoServer) };
            let failure = match self.ask(&server, &mut call, &mut content).await {
                Ok(response) => return response,
                Err(failure) => failure,
            };
            tried.push(server.id);
            let has_other = self.upstream.servers().iter().any(|other| !tried.contains(&other.id));
            if failure.is_unsent() && content.is_whole() && has_other && tried.len() < MAX_SERVERS_TRIED {
                self.log(&call, Some(&server), &failure, "request goes to another server");
                continue;
            }
            return self.refuse(&call, Some(&server), &failure);
        }
    }

    /// Has `server` answer; by a new connection if an idle one has been ended in the moment in which it was used.
    async fn ask(
        self: &Rc<Self>,
        server: &Arc<Server>,
        call: &mut Call,
        content: &mut Content,
    ) -> Result<Response, Failure> {
        let pool = self.pool(server);
        let idle =
            poll_fn(|context| Poll::Ready(pool.take(&self.deadlines, &self.config().pool, context))).await;
        if let Some(connection) = idle {
            let link = Link { connection, server: Arc::clone(server), pool: Rc::clone(&pool) };
            match exchange(self, link, call, content).await {
                Err(Failure::NotSent(_)) if content.is_whole() => {}
                Err(Failure::Closed(_)) if content.is_whole() && call.head.is_idempotent() => {}
                answered => return answered,
            }
        }
        let stream = connect(server, &self.config().tls, self.config().timeouts.connect).await?;
        let socket = Rc::new(Socket::new(stream));
        self.deadlines.add(&socket);
        let connection = Connection { socket, served: 0, born: self.deadlines.now() };
        exchange(self, Link { connection, server: Arc::clone(server), pool }, call, content).await
    }

    fn pool(&self, server: &Server) -> Rc<Pool> {
        Rc::clone(self.pools.borrow_mut().entry(server.id).or_default())
    }

    fn refuse(&self, call: &Call, server: Option<&Server>, failure: &Failure) -> Response {
        self.log(call, server, failure, "request failed");
        Response::error(failure.status())
    }

    fn log(&self, call: &Call, server: Option<&Server>, failure: &Failure, what: &str) {
        let (upstream, request) = (self.upstream.name(), call.head.request_line());
        let server = server.map(ToString::to_string).unwrap_or_else(|| "none".into());
        if failure.is_worth_a_line() {
            tracing::warn!(upstream, server, request, %failure, "{what}");
        } else {
            tracing::debug!(upstream, server, request, %failure, "{what}");
        }
    }

    /// Has a task look after the connections, once a second.
    fn keep_house(self: &Rc<Self>) {
        if !self.keeps_house.replace(true) {
            tokio::task::spawn_local(keep_house(Rc::downgrade(self)));
        }
    }

    fn sweep(&self) {
        self.deadlines.tick();
        let servers = self.upstream.servers();
        self.pools.borrow_mut().retain(|id, pool| {
            pool.sweep(self.deadlines.now(), &self.config().pool);
            let is_there = servers.iter().any(|server| server.id == *id);
            if !is_there {
                pool.clear();
            }
            is_there
        });
    }
}

async fn keep_house(state: Weak<State>) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    second.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    second.tick().await;
    loop {
        second.tick().await;
        let Some(state) = state.upgrade() else { return };
        state.sweep();
    }
}
