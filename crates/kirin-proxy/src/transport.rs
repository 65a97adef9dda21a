//! The connection that carries a request to its server: an idle one, a stream of HTTP/2, or a new
//! one.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use kirin_http::Response;

use crate::address::ServerScheme;
use crate::cgi::Records;
use crate::connect::connect;
use crate::content::Content;
use crate::exchange::exchange;
use crate::failure::ProxyFailure;
use crate::http2_connection::StreamSender;
use crate::http2_exchange;
use crate::leased_connection::LeasedConnection;
use crate::local_upstream::{LocalUpstream, ServerConnections};
use crate::pool::ServerConnection;
use crate::server::ProxiedServer;
use crate::socket::Socket;
use crate::timed_attempt::TimedAttempt;
use crate::upstream_request::UpstreamRequest;

/// The server that has been chosen for a request.
pub(crate) struct ChosenServer<'a> {
    pub(crate) server: &'a Arc<ProxiedServer>,
    /// The request's slot there, held until the response is complete.
    pub(crate) attempt: &'a Rc<TimedAttempt>,
}

impl ChosenServer<'_> {
    fn lease(
        &self,
        connection: ServerConnection,
        connections: &Rc<ServerConnections>,
    ) -> LeasedConnection {
        LeasedConnection::new(connection, self.server, self.attempt, connections)
    }
}

impl LocalUpstream {
    /// Sends a request to a server and returns the response.
    ///
    /// A server may close an idle connection at the moment in which it is used. Then the request is
    /// sent again by a new connection, if that is safe.
    pub(crate) async fn send(
        self: &Rc<Self>,
        chosen: &ChosenServer<'_>,
        request: &mut UpstreamRequest,
        content: &mut Content,
    ) -> Result<Response, ProxyFailure> {
        let server = chosen.server;
        let connections = self.connections(server);
        let http1_only = request.head.upgrades() && server.scheme() != ServerScheme::H2c;
        if !http1_only && let Some(sender) = connections.http2.take(self.deadlines.now()).await {
            match Box::pin(self.send_by_http2(&connections, sender, chosen, request, content)).await
            {
                Err(ProxyFailure::NotSent(_)) if content.is_replayable() => {}
                answered => return answered,
            }
        }
        let limits = &self.config().pool;
        let idle =
            poll_fn(|context| Poll::Ready(connections.idle.take(&self.deadlines, limits, context)))
                .await;
        if let Some(connection) = idle {
            match exchange(self, chosen.lease(connection, &connections), request, content).await {
                Err(ProxyFailure::NotSent(_)) if content.is_replayable() => {}
                Err(ProxyFailure::Closed(_))
                    if content.is_replayable() && request.head.is_idempotent() => {}
                answered => return answered,
            }
        }
        Box::pin(self.send_by_new(&connections, chosen, request, content, http1_only)).await
    }

    /// Sends a request by a new connection. If the server is known to speak HTTP/2, requests that
    /// arrive in this time wait for the connection and share it.
    async fn send_by_new(
        self: &Rc<Self>,
        connections: &Rc<ServerConnections>,
        chosen: &ChosenServer<'_>,
        request: &mut UpstreamRequest,
        content: &mut Content,
        http1_only: bool,
    ) -> Result<Response, ProxyFailure> {
        let (server, limit) = (chosen.server, self.config().timeouts.connect);
        let http2 = &connections.http2;
        let is_shared =
            !http1_only && (server.scheme() == ServerScheme::H2c || http2.is_known.get());
        let mut connecting = None;
        if is_shared {
            let turn = tokio::time::timeout(limit, http2.connecting.lock()).await;
            connecting = Some(turn.map_err(|_| ProxyFailure::ConnectTimeout)?);
            if let Some(sender) = http2.take(self.deadlines.now()).await {
                drop(connecting);
                return self.send_by_http2(connections, sender, chosen, request, content).await;
            }
        }
        let stream = match connect(server, &self.config().tls, http1_only, limit).await {
            Ok(stream) => stream,
            Err(failure) => {
                // Another connection was wanted because the present ones are full. The request can
                // wait on one of them.
                let full = is_shared.then(|| http2.take_full(self.deadlines.now())).flatten();
                drop(connecting);
                return match full {
                    Some(sender) => {
                        self.send_by_http2(connections, sender, chosen, request, content).await
                    }
                    None => Err(failure),
                };
            }
        };
        if server.scheme() == ServerScheme::H2c || stream.has_chosen_http2() {
            let begun =
                tokio::time::timeout(limit, http2.begin(stream, self.deadlines.now())).await;
            let sender = begun.map_err(|_| ProxyFailure::ConnectTimeout)??;
            drop(connecting);
            return self.send_by_http2(connections, sender, chosen, request, content).await;
        }
        drop(connecting);
        let records = (server.scheme() == ServerScheme::FastCgi)
            .then(|| Records::new(self.upstream.name(), server));
        let socket = Rc::new(Socket::new(stream, records));
        self.deadlines.add(&socket);
        let connection = ServerConnection { socket, served: 0, created_at: self.deadlines.now() };
        exchange(self, chosen.lease(connection, connections), request, content).await
    }

    async fn send_by_http2(
        self: &Rc<Self>,
        connections: &ServerConnections,
        sender: StreamSender,
        chosen: &ChosenServer<'_>,
        request: &UpstreamRequest,
        content: &mut Content,
    ) -> Result<Response, ProxyFailure> {
        let number = sender.number;
        chosen.attempt.sent(Instant::now());
        let attempt = Rc::clone(chosen.attempt);
        let answered =
            http2_exchange::exchange(self, sender, chosen.server, attempt, request, content).await;
        // The connection takes or says nothing: the way to the server may be broken.
        if let Err(
            ProxyFailure::NotSent(_) | ProxyFailure::SendTimeout | ProxyFailure::FirstByteTimeout,
        ) = &answered
        {
            connections.http2.retire(number);
        }
        answered
    }
}
