//! An upstream as a place in routes, on one event loop.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use kirin_balance::Attempt;
use kirin_cgi::MetaVariables;
use kirin_http::{
    Answer, BodyLength, Origin, RequestBody, RequestHead, Response, StepKind, StepPeer, Version,
};

use crate::address::ServerScheme;
use crate::cgi::CgiRequest;
use crate::config::{BodyBuffering, NamedFilesConfig, ServerConfig, UpstreamConfig};
use crate::content::Content;
use crate::failure::ProxyFailure;
use crate::local_upstream::LocalUpstream;
use crate::request_head::{HeadPolicy, encode};
use crate::selection::{Selection, ServerSet};
use crate::server::ProxiedServer;
use crate::timed_attempt::TimedAttempt;
use crate::transport::ChosenServer;
use crate::upstream::Upstream;
use crate::upstream_request::{RequestWarnings, UpstreamRequest};

/// The most servers that are tried for one request when servers cannot be reached.
const MAX_SERVERS_TRIED: usize = 3;

/// The place on one event loop.
pub struct ProxyPlace {
    local: Rc<LocalUpstream>,
    warnings: RequestWarnings,
}

impl ProxyPlace {
    /// Returns the place on this event loop. Connections are opened when they are needed.
    pub fn open(upstream: Arc<Upstream>) -> Self {
        let (local, warnings) = (Rc::new(LocalUpstream::new(upstream)), RequestWarnings::default());
        Self { local, warnings }
    }

    /// Returns the same place for copies of requests. No client waits for their answers, so one
    /// failure of a kind in ten seconds is logged.
    pub fn for_copies(&self) -> Self {
        Self { local: Rc::clone(&self.local), warnings: RequestWarnings::of_copies() }
    }

    /// Returns the name of the upstream.
    pub fn name(&self) -> &str {
        &self.local.config().name
    }

    /// Returns the files that the servers may name in their responses.
    pub fn named_files(&self) -> &NamedFilesConfig {
        &self.local.config().named_files
    }

    /// Answers one request. A response may name a file of [`ProxyPlace::named_files`]. The servers
    /// get `target` as path and query. Call this on an event loop.
    ///
    /// `meta` is for servers that speak FastCGI, SCGI or uwsgi. `buffering` says whether the
    /// request's body is read completely before it is sent to a server.
    pub fn answer(
        &self,
        request: &RequestHead<'_>,
        target: &str,
        origin: Origin<'_>,
        meta: &MetaVariables<'_>,
        buffering: BodyBuffering,
    ) -> Answer {
        let config = self.local.config();
        let (buffered, limit_bytes) = match buffering {
            BodyBuffering::Off => (false, None),
            BodyBuffering::On => (true, None),
            BodyBuffering::UnlessGrpc { .. } if is_grpc(request, config) => (false, None),
            BodyBuffering::UnlessGrpc { limit_bytes } => (true, Some(limit_bytes)),
        };
        let cgi = match CgiRequest::from_request(request, target, origin, meta, config) {
            Ok(cgi) => cgi,
            Err(response) => return Answer::Now(*response),
        };
        let policy = HeadPolicy {
            host: &config.host,
            forwarded: config.forwarded,
            via: config.via.as_deref(),
            given: meta.given,
        };
        let mut head = encode(request, target, origin, policy);
        head.expects_continue &= !buffered && cgi.is_none();
        let steps = Rc::clone(origin.notes.steps());
        // Boxed, because it moves from one future into the next.
        let (informational, client, warnings) = (None, None, self.warnings.clone());
        let outgoing =
            Box::new(UpstreamRequest { head, cgi, informational, client, steps, warnings });
        let selection = Selection::from_request(request, target, origin, &config.balancing);
        let local = Rc::clone(&self.local);
        Answer::later(move |mut body| {
            if let Some(limit_bytes) = limit_bytes {
                body.limit(limit_bytes);
            }
            local.answer_later(outgoing, selection, body, buffered)
        })
    }
}

/// Returns whether a request is a gRPC call that can use HTTP/2 on both sides.
fn is_grpc(request: &RequestHead<'_>, config: &UpstreamConfig) -> bool {
    let speaks_http2 = |server: &ServerConfig| {
        matches!(server.address.scheme, ServerScheme::H2c | ServerScheme::Https)
    };
    request.version == Version::Http2
        && request.field("content-type").is_some_and(|kind| kind.starts_with(b"application/grpc"))
        && config.servers.iter().all(speaks_http2)
}

impl LocalUpstream {
    async fn answer_later(
        self: Rc<Self>,
        mut outgoing: Box<UpstreamRequest>,
        mut selection: Selection,
        mut body: RequestBody,
        buffered: bool,
    ) -> Response {
        self.start_sweeping();
        body.leave_out_of_trailers(std::mem::take(&mut outgoing.head.no_trailers));
        outgoing.informational = body.informational();
        outgoing.client = body.client();
        if let Some(cgi) = &mut outgoing.cgi
            && let Err(response) = cgi.find_script(self.config(), &self.scripts).await
        {
            return *response;
        }
        // CGI needs the length before the body.
        let buffered = buffered || (outgoing.cgi.is_some() && body.length() == BodyLength::Chunked);
        let spool = buffered.then_some(self.config().spool_directory.as_path());
        // This future and some below are rare and large. Boxing them keeps the common future small
        // enough for the fast path of the allocator.
        let content = match body.length() {
            BodyLength::None => Ok(Content::Nothing),
            _ => Box::pin(Content::prepare(body, spool, outgoing.head.expects_continue)).await,
        };
        let mut content = match content {
            Ok(content) => content,
            Err(failure) => return self.refuse(&outgoing, None, &failure),
        };
        if outgoing.cgi.is_some() {
            content.drop_trailers();
        }
        self.upstream.retries.count_request();
        // All attempts use one set of servers, so that an index always means the same server.
        let mut set = self.servers();
        let mut attempt = match self.take_turn(&mut set, &mut selection, &outgoing).await {
            Ok(attempt) => self.timed(attempt, &set, &outgoing),
            Err(failure) => return self.refuse(&outgoing, None, &failure),
        };
        let mut repeated = false;
        loop {
            let index = attempt.index();
            let Some(server) = set.servers.get(index).map(Arc::clone) else {
                return self.refuse(&outgoing, None, &ProxyFailure::NoServer);
            };
            let chosen = ChosenServer { server: &server, attempt: &attempt };
            let failure = match self.send(&chosen, &mut outgoing, &mut content).await {
                Ok(response) => {
                    return self.add_sticky_cookie(response, &selection, set.known.id(index));
                }
                Err(failure) => failure,
            };
            // The server has not looked at the request, because it was about to close or had too
            // much to do. A second try at the same server may succeed.
            if matches!(failure, ProxyFailure::NotSent(_))
                && content.is_replayable()
                && !std::mem::replace(&mut repeated, true)
            {
                self.log(&outgoing, Some(&server), &failure, "request is sent again");
                continue;
            }
            if failure.is_server_fault() && attempt.failed(Instant::now()) {
                tracing::warn!(upstream = self.upstream.name(), %server, "has failed too often and gets no requests for a while");
            }
            // A request that waits for another server must not hold a slot of this one.
            drop(attempt);
            selection.add_tried(index);
            let is_safe =
                failure.is_unsent() || (failure.is_unanswered() && outgoing.head.is_idempotent());
            let may_go_on = is_safe
                && content.is_replayable()
                && selection.tried() < MAX_SERVERS_TRIED
                && set.known.has_candidate(selection.criteria(), Instant::now())
                && self.upstream.may_retry(Instant::now());
            if !may_go_on {
                return self.refuse(&outgoing, Some(&server), &failure);
            }
            self.log(&outgoing, Some(&server), &failure, "request goes to another server");
            attempt = match self.take_turn(&mut set, &mut selection, &outgoing).await {
                Ok(attempt) => self.timed(attempt, &set, &outgoing),
                // The last server has been removed in the meantime. The failure of this server is
                // the one to report.
                Err(ProxyFailure::NoServer | ProxyFailure::AllUnhealthy) => {
                    return self.refuse(&outgoing, Some(&server), &failure);
                }
                Err(failure) => return self.refuse(&outgoing, None, &failure),
            };
        }
    }

    /// Begins the step of an attempt.
    fn timed(
        &self,
        attempt: Attempt,
        set: &ServerSet,
        outgoing: &UpstreamRequest,
    ) -> Rc<TimedAttempt> {
        let step = outgoing.steps.begin(StepKind::Upstream, &self.label);
        if let Some(server) = set.servers.get(attempt.index()) {
            step.set_peer(StepPeer::Server(Arc::clone(&server.label)));
        }
        Rc::new(TimedAttempt::new(attempt, step, outgoing.warnings.clone()))
    }

    /// Adds the cookie that leads the visitor back to the same server, if the upstream is sticky.
    fn add_sticky_cookie(
        &self,
        mut response: Response,
        selection: &Selection,
        server: Option<u64>,
    ) -> Response {
        if let (Some(name), Some(server)) = (&self.config().balancing.sticky, server)
            && let Some(cookie) = selection.new_cookie(name, server)
        {
            response.fields.push("Set-Cookie", cookie);
        }
        response
    }

    fn refuse(
        &self,
        outgoing: &UpstreamRequest,
        server: Option<&ProxiedServer>,
        failure: &ProxyFailure,
    ) -> Response {
        self.log(outgoing, server, failure, "request failed");
        failure.response()
    }

    fn log(
        &self,
        outgoing: &UpstreamRequest,
        server: Option<&ProxiedServer>,
        failure: &ProxyFailure,
        what: &'static str,
    ) {
        let (upstream, request) = (self.upstream.name(), outgoing.head.request_line());
        let server = server.map_or_else(|| "none".into(), ToString::to_string);
        if failure.is_warning() {
            outgoing.warnings.warn(what, || {
                tracing::warn!(upstream, server, request, %failure, "{what}");
            });
        } else {
            tracing::debug!(upstream, server, request, %failure, "{what}");
        }
    }
}
