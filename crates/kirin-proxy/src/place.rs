//! An upstream as a place of routes on one event loop: its connections, and the answer to a
//! request.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use kirin_balance::{Attempt, Claim};
use kirin_cgi::MetaVariables;
use kirin_http::{Answer, BodyLength, Origin, RequestBody, RequestHead, Response, Version};

use crate::address::Scheme;
use crate::cgi::{self, CgiRequest, Records, ScriptFiles};
use crate::choose::{Choice, Chooser, ServerSet};
use crate::config::{BodyBuffering, ServerConfig, UpstreamConfig};
use crate::connect::connect;
use crate::content::Content;
use crate::deadlines::Deadlines;
use crate::exchange::{Call, exchange};
use crate::failure::Failure;
use crate::http2_connection::{Http2Connections, Sender};
use crate::http2_exchange;
use crate::pool::{Connection, Pool};
use crate::read_buffer::Buffers;
use crate::request_head::{HeadPolicy, encode};
use crate::server::Server;
use crate::socket::Socket;
use crate::upstream::Upstream;

/// Servers at most that are tried for one request when they cannot be reached.
const MAX_SERVERS_TRIED: usize = 3;

/// The place on one event loop.
pub struct ProxyPlace(Rc<State>);

/// What the place's requests share.
pub(crate) struct State {
    upstream: Arc<Upstream>,
    chooser: Chooser,
    /// By the server's number.
    links: RefCell<HashMap<u64, Rc<Links>, foldhash::fast::RandomState>>,
    pub(crate) deadlines: Rc<Deadlines>,
    pub(crate) buffers: Buffers,
    scripts: ScriptFiles,
    keeps_house: Cell<bool>,
}

/// The connections to one server.
#[derive(Default)]
struct Links {
    idle: Pool,
    http2: Http2Connections,
}

/// A connection that a request has for itself.
pub(crate) struct Link {
    pub(crate) connection: Connection,
    pub(crate) server: Arc<Server>,
    /// Counts as long as the response is not whole.
    pub(crate) attempt: Rc<Attempt>,
    links: Rc<Links>,
}

impl ProxyPlace {
    /// The place on this loop. Connections are made when they are needed.
    pub fn open(upstream: Arc<Upstream>) -> Self {
        Self(Rc::new(State {
            upstream,
            chooser: Chooser::new(),
            links: RefCell::default(),
            deadlines: Rc::default(),
            buffers: Buffers::default(),
            scripts: ScriptFiles::default(),
            keeps_house: Cell::new(false),
        }))
    }

    /// Answers one request, of which the servers get `target` as path and query. Call on an event
    /// loop. `meta` is for servers that speak FastCGI, SCGI or uwsgi. `buffering`: whether the
    /// request's body is read whole before a server hears of it.
    pub fn answer(
        &self,
        request: &RequestHead<'_>,
        target: &str,
        origin: Origin<'_>,
        meta: &MetaVariables<'_>,
        buffering: BodyBuffering,
    ) -> Answer {
        let config = self.0.config();
        let (buffered, limit_bytes) = match buffering {
            BodyBuffering::Off => (false, None),
            BodyBuffering::On => (true, None),
            BodyBuffering::UnlessGrpc { .. } if is_grpc(request, config) => (false, None),
            BodyBuffering::UnlessGrpc { limit_bytes } => (true, Some(limit_bytes)),
        };
        let cgi = match CgiRequest::of(request, target, origin, meta, config) {
            Ok(cgi) => cgi,
            Err(response) => return Answer::Now(response),
        };
        let policy = HeadPolicy {
            host: &config.host,
            forwarded: config.forwarded,
            via: config.via.as_deref(),
        };
        let mut head = encode(request, target, origin, policy);
        head.expects_continue &= !buffered && cgi.is_none();
        let call = Call { head, cgi, informational: None, client: None };
        let choice = Choice::of(request, target, origin, &config.balancing);
        let state = Rc::clone(&self.0);
        Answer::later(move |mut body| {
            if let Some(limit_bytes) = limit_bytes {
                body.limit(limit_bytes);
            }
            state.answer_later(call, choice, body, buffered)
        })
    }
}

/// Whether a request is a call of gRPC, which takes HTTP/2 on both sides.
fn is_grpc(request: &RequestHead<'_>, config: &UpstreamConfig) -> bool {
    let speaks_http2 =
        |server: &ServerConfig| matches!(server.address.scheme, Scheme::H2c | Scheme::Https);
    request.version == Version::Http2
        && request.field("content-type").is_some_and(|kind| kind.starts_with(b"application/grpc"))
        && config.servers.iter().all(speaks_http2)
}

/// A server that has been chosen.
struct Asked<'a> {
    server: &'a Arc<Server>,
    /// The request's slot there, until its response is whole.
    attempt: &'a Rc<Attempt>,
}

impl Asked<'_> {
    fn link(&self, connection: Connection, links: &Rc<Links>) -> Link {
        Link {
            connection,
            server: Arc::clone(self.server),
            attempt: self.sent(),
            links: Rc::clone(links),
        }
    }

    /// The request is sent now.
    fn sent(&self) -> Rc<Attempt> {
        self.attempt.sent(Instant::now());
        Rc::clone(self.attempt)
    }
}

impl Link {
    /// Keeps the connection for another request, for as long as the server says that it keeps it.
    pub(crate) fn give_back(mut self, place: &Rc<State>, server_time: Option<Duration>) {
        if let Some(records) = self.connection.socket.records() {
            if !records.borrow_mut().has_ended() {
                tokio::task::spawn_local(cgi::linger(self, Rc::clone(place)));
                return;
            }
            if !records.borrow_mut().begin_next() {
                return;
            }
        }
        self.connection.served += 1;
        self.connection.socket.read_deadline.set(0);
        self.links.idle.put(self.connection, &place.deadlines, &place.config().pool, server_time);
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

    async fn answer_later(
        self: Rc<Self>,
        mut call: Call,
        mut choice: Choice,
        mut body: RequestBody,
        buffered: bool,
    ) -> Response {
        self.keep_house();
        body.leave_out_of_trailers(std::mem::take(&mut call.head.no_trailers));
        call.informational = body.informational();
        call.client = body.client();
        if let Some(cgi) = &mut call.cgi
            && let Err(response) = cgi.find_script(self.config(), &self.scripts).await
        {
            return response;
        }
        // CGI has to know the length.
        let buffered = buffered || (call.cgi.is_some() && body.length() == BodyLength::Chunked);
        let spool = buffered.then_some(self.config().spool_directory.as_path());
        // What is boxed here and below is rare and large: a request without it is small enough for
        // the allocator's quick way.
        let content = match body.length() {
            BodyLength::None => Ok(Content::Nothing),
            _ => Box::pin(Content::prepare(body, spool, call.head.expects_continue)).await,
        };
        let mut content = match content {
            Ok(content) => content,
            Err(failure) => return self.refuse(&call, None, &failure),
        };
        if call.cgi.is_some() {
            content.drop_trailers();
        }
        self.upstream.retries.count_request();
        // Those of one time, so that numbers mean the same to the end.
        let mut set = self.servers();
        let mut attempt = match self.take_turn(&mut set, &mut choice, call.client.as_ref()).await {
            Ok(attempt) => Rc::new(attempt),
            Err(failure) => return self.refuse(&call, None, &failure),
        };
        let mut repeated = false;
        loop {
            let index = attempt.index();
            let Some(server) = set.servers.get(index).map(Arc::clone) else {
                return self.refuse(&call, None, &Failure::NoServer);
            };
            let asked = Asked { server: &server, attempt: &attempt };
            let failure = match self.ask(&asked, &mut call, &mut content).await {
                Ok(response) => return self.stick(response, &choice, set.known.id(index)),
                Err(failure) => failure,
            };
            // A server that has looked at nothing may do so at the second time: it was about to go,
            // or had too much to do.
            if matches!(failure, Failure::NotSent(_))
                && content.is_whole()
                && !std::mem::replace(&mut repeated, true)
            {
                self.log(&call, Some(&server), &failure, "request is sent again");
                continue;
            }
            if failure.is_servers() && attempt.failed(Instant::now()) {
                tracing::warn!(upstream = self.upstream.name(), %server, "has failed too often and gets no requests for a while");
            }
            // Who waits for another server holds none.
            drop(attempt);
            choice.add_tried(index);
            let is_safe =
                failure.is_unsent() || (failure.is_unanswered() && call.head.is_idempotent());
            let may_go_on = is_safe
                && content.is_whole()
                && choice.tried() < MAX_SERVERS_TRIED
                && set.known.has_candidate(choice.wish(), Instant::now())
                && self.upstream.may_retry(Instant::now());
            if !may_go_on {
                return self.refuse(&call, Some(&server), &failure);
            }
            self.log(&call, Some(&server), &failure, "request goes to another server");
            attempt = match self.take_turn(&mut set, &mut choice, call.client.as_ref()).await {
                Ok(attempt) => Rc::new(attempt),
                // The last has gone meanwhile: what the one has said is what there is to say.
                Err(Failure::NoServer | Failure::AllUnhealthy) => {
                    return self.refuse(&call, Some(&server), &failure);
                }
                Err(failure) => return self.refuse(&call, None, &failure),
            };
        }
    }

    /// Begins a request to the server of `set` that is to get it.
    pub(crate) fn choose(&self, set: &ServerSet, choice: &Choice) -> Claim {
        self.chooser.begin(set, &self.config().balancing, choice)
    }

    /// The servers that there are now.
    pub(crate) fn servers(&self) -> Arc<ServerSet> {
        self.upstream.set()
    }

    /// Tells the visitor which server to come back to, if that is wanted.
    fn stick(&self, mut response: Response, choice: &Choice, server: Option<u64>) -> Response {
        if let (Some(name), Some(server)) = (&self.config().balancing.sticky, server)
            && let Some(cookie) = choice.new_cookie(name, server)
        {
            response.fields.push("Set-Cookie", cookie);
        }
        response
    }

    /// Has `server` answer; by a new connection if one that was there has been ended in the moment
    /// in which it was used.
    async fn ask(
        self: &Rc<Self>,
        asked: &Asked<'_>,
        call: &mut Call,
        content: &mut Content,
    ) -> Result<Response, Failure> {
        let server = asked.server;
        let links = self.links(server);
        let http1_only = call.head.upgrades() && server.scheme() != Scheme::H2c;
        if !http1_only && let Some(sender) = links.http2.take(self.deadlines.now()).await {
            match Box::pin(self.ask_by_http2(&links, sender, asked, call, content)).await {
                Err(Failure::NotSent(_)) if content.is_whole() => {}
                answered => return answered,
            }
        }
        let limits = &self.config().pool;
        let idle =
            poll_fn(|context| Poll::Ready(links.idle.take(&self.deadlines, limits, context))).await;
        if let Some(connection) = idle {
            match exchange(self, asked.link(connection, &links), call, content).await {
                Err(Failure::NotSent(_)) if content.is_whole() => {}
                Err(Failure::Closed(_)) if content.is_whole() && call.head.is_idempotent() => {}
                answered => return answered,
            }
        }
        Box::pin(self.ask_anew(&links, asked, call, content, http1_only)).await
    }

    /// The same by a new connection. Where HTTP/2 is known to be spoken, requests that come
    /// meanwhile wait for it and share it.
    async fn ask_anew(
        self: &Rc<Self>,
        links: &Rc<Links>,
        asked: &Asked<'_>,
        call: &mut Call,
        content: &mut Content,
        http1_only: bool,
    ) -> Result<Response, Failure> {
        let (server, limit) = (asked.server, self.config().timeouts.connect);
        let is_shared =
            !http1_only && (server.scheme() == Scheme::H2c || links.http2.is_known.get());
        let mut connecting = None;
        if is_shared {
            let turn = tokio::time::timeout(limit, links.http2.connecting.lock()).await;
            connecting = Some(turn.map_err(|_| Failure::ConnectTimeout)?);
            if let Some(sender) = links.http2.take(self.deadlines.now()).await {
                drop(connecting);
                return self.ask_by_http2(links, sender, asked, call, content).await;
            }
        }
        let stream = match connect(server, &self.config().tls, http1_only, limit).await {
            Ok(stream) => stream,
            Err(failure) => {
                // One more was wanted because those that there are have no room: there is a place
                // to wait.
                let full = is_shared.then(|| links.http2.take_full(self.deadlines.now())).flatten();
                drop(connecting);
                return match full {
                    Some(sender) => self.ask_by_http2(links, sender, asked, call, content).await,
                    None => Err(failure),
                };
            }
        };
        if server.scheme() == Scheme::H2c || stream.has_chosen_http2() {
            let begun =
                tokio::time::timeout(limit, links.http2.begin(stream, self.deadlines.now())).await;
            let sender = begun.map_err(|_| Failure::ConnectTimeout)??;
            drop(connecting);
            return self.ask_by_http2(links, sender, asked, call, content).await;
        }
        drop(connecting);
        let records = (server.scheme() == Scheme::FastCgi)
            .then(|| Records::new(self.upstream.name(), server));
        let socket = Rc::new(Socket::new(stream, records));
        self.deadlines.add(&socket);
        let connection = Connection { socket, served: 0, born: self.deadlines.now() };
        exchange(self, asked.link(connection, links), call, content).await
    }

    async fn ask_by_http2(
        self: &Rc<Self>,
        links: &Links,
        sender: Sender,
        asked: &Asked<'_>,
        call: &Call,
        content: &mut Content,
    ) -> Result<Response, Failure> {
        let number = sender.number;
        let answered =
            http2_exchange::exchange(self, sender, asked.server, asked.sent(), call, content).await;
        // One that takes nothing or says nothing may have lost the way to the server.
        if let Err(Failure::NotSent(_) | Failure::SendTimeout | Failure::FirstByteTimeout) =
            &answered
        {
            links.http2.give_up(number);
        }
        answered
    }

    fn links(&self, server: &Server) -> Rc<Links> {
        Rc::clone(self.links.borrow_mut().entry(server.id).or_default())
    }

    fn refuse(&self, call: &Call, server: Option<&Server>, failure: &Failure) -> Response {
        self.log(call, server, failure, "request failed");
        let mut response = Response::error(failure.status());
        if matches!(failure, Failure::QueueFull | Failure::QueueTimeout) {
            response.fields.push("Retry-After", "1");
        }
        response
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
        let set = self.servers();
        set.known.queue().serve_all(Instant::now());
        let (now, limits) = (self.deadlines.now(), &self.config().pool);
        self.links.borrow_mut().retain(|id, links| {
            links.idle.sweep(now, limits);
            links.http2.sweep(
                now,
                limits.idle_time.as_secs(),
                limits.max_age.map(|age| age.as_secs()),
            );
            let is_there = set.servers.iter().any(|server| server.id == *id);
            if !is_there {
                links.idle.clear();
                links.http2.give_up_all();
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
        // A mistake in one round does not end the others.
        let _ = kirin_http::panics::catch(|| state.sweep());
    }
}
