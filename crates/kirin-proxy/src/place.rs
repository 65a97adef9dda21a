//! An upstream as a place of routes on one event loop: its connections, and the answer to a
//! request.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use kirin_cgi::MetaVariables;
use kirin_http::{Answer, BodyLength, Origin, RequestBody, RequestHead, Response, Version};

use crate::address::Scheme;
use crate::cgi::CgiRequest;
use crate::choose::Choice;
use crate::config::{BodyBuffering, ServerConfig, UpstreamConfig};
use crate::content::Content;
use crate::failure::Failure;
use crate::local_upstream::LocalUpstream;
use crate::request_head::{HeadPolicy, encode};
use crate::server::Server;
use crate::transport::ChosenServer;
use crate::upstream::Upstream;
use crate::upstream_request::UpstreamRequest;

/// Servers at most that are tried for one request when they cannot be reached.
const MAX_SERVERS_TRIED: usize = 3;

/// The place on one event loop.
pub struct ProxyPlace(Rc<LocalUpstream>);

impl ProxyPlace {
    /// The place on this loop. Connections are made when they are needed.
    pub fn open(upstream: Arc<Upstream>) -> Self {
        Self(Rc::new(LocalUpstream::new(upstream)))
    }

    /// Answers one request, of which the servers get `target` as path and query. UpstreamRequest on an event
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
        let outgoing = UpstreamRequest { head, cgi, informational: None, client: None };
        let choice = Choice::of(request, target, origin, &config.balancing);
        let local = Rc::clone(&self.0);
        Answer::later(move |mut body| {
            if let Some(limit_bytes) = limit_bytes {
                body.limit(limit_bytes);
            }
            local.answer_later(outgoing, choice, body, buffered)
        })
    }
}

/// Whether a request is a outgoing of gRPC, which takes HTTP/2 on both sides.
fn is_grpc(request: &RequestHead<'_>, config: &UpstreamConfig) -> bool {
    let speaks_http2 =
        |server: &ServerConfig| matches!(server.address.scheme, Scheme::H2c | Scheme::Https);
    request.version == Version::Http2
        && request.field("content-type").is_some_and(|kind| kind.starts_with(b"application/grpc"))
        && config.servers.iter().all(speaks_http2)
}

impl LocalUpstream {
    async fn answer_later(
        self: Rc<Self>,
        mut outgoing: UpstreamRequest,
        mut choice: Choice,
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
            return response;
        }
        // CGI has to know the length.
        let buffered = buffered || (outgoing.cgi.is_some() && body.length() == BodyLength::Chunked);
        let spool = buffered.then_some(self.config().spool_directory.as_path());
        // What is boxed here and below is rare and large: a request without it is small enough for
        // the allocator's quick way.
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
        // Those of one time, so that numbers mean the same to the end.
        let mut set = self.servers();
        let mut attempt =
            match self.take_turn(&mut set, &mut choice, outgoing.client.as_ref()).await {
                Ok(attempt) => Rc::new(attempt),
                Err(failure) => return self.refuse(&outgoing, None, &failure),
            };
        let mut repeated = false;
        loop {
            let index = attempt.index();
            let Some(server) = set.servers.get(index).map(Arc::clone) else {
                return self.refuse(&outgoing, None, &Failure::NoServer);
            };
            let chosen = ChosenServer { server: &server, attempt: &attempt };
            let failure = match self.send(&chosen, &mut outgoing, &mut content).await {
                Ok(response) => return self.stick(response, &choice, set.known.id(index)),
                Err(failure) => failure,
            };
            // A server that has looked at nothing may do so at the second time: it was about to go,
            // or had too much to do.
            if matches!(failure, Failure::NotSent(_))
                && content.is_whole()
                && !std::mem::replace(&mut repeated, true)
            {
                self.log(&outgoing, Some(&server), &failure, "request is sent again");
                continue;
            }
            if failure.is_servers() && attempt.failed(Instant::now()) {
                tracing::warn!(upstream = self.upstream.name(), %server, "has failed too often and gets no requests for a while");
            }
            // Who waits for another server holds none.
            drop(attempt);
            choice.add_tried(index);
            let is_safe =
                failure.is_unsent() || (failure.is_unanswered() && outgoing.head.is_idempotent());
            let may_go_on = is_safe
                && content.is_whole()
                && choice.tried() < MAX_SERVERS_TRIED
                && set.known.has_candidate(choice.wish(), Instant::now())
                && self.upstream.may_retry(Instant::now());
            if !may_go_on {
                return self.refuse(&outgoing, Some(&server), &failure);
            }
            self.log(&outgoing, Some(&server), &failure, "request goes to another server");
            attempt = match self.take_turn(&mut set, &mut choice, outgoing.client.as_ref()).await {
                Ok(attempt) => Rc::new(attempt),
                // The last has gone meanwhile: what the one has said is what there is to say.
                Err(Failure::NoServer | Failure::AllUnhealthy) => {
                    return self.refuse(&outgoing, Some(&server), &failure);
                }
                Err(failure) => return self.refuse(&outgoing, None, &failure),
            };
        }
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

    fn refuse(
        &self,
        outgoing: &UpstreamRequest,
        server: Option<&Server>,
        failure: &Failure,
    ) -> Response {
        self.log(outgoing, server, failure, "request failed");
        let mut response = Response::error(failure.status());
        if matches!(failure, Failure::QueueFull | Failure::QueueTimeout) {
            response.fields.push("Retry-After", "1");
        }
        response
    }

    fn log(
        &self,
        outgoing: &UpstreamRequest,
        server: Option<&Server>,
        failure: &Failure,
        what: &str,
    ) {
        let (upstream, request) = (self.upstream.name(), outgoing.head.request_line());
        let server = server.map_or_else(|| "none".into(), ToString::to_string);
        if failure.is_worth_a_line() {
            tracing::warn!(upstream, server, request, %failure, "{what}");
        } else {
            tracing::debug!(upstream, server, request, %failure, "{what}");
        }
    }
}
