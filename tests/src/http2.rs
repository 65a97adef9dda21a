//! An HTTP/2 client, by prior knowledge.

use std::future::Future;
use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::wait_limit;

/// A connection. It handles frames while one of its functions runs.
pub struct Http2Client {
    runtime: Runtime,
    requests: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

/// A response that has not arrived yet.
pub struct Pending {
    /// The future of the response.
    pub response: ResponseFuture,
    /// The handle that resets the request or sends its body.
    pub stream: SendStream<Bytes>,
}

/// A response.
#[derive(Debug)]
pub struct Http2Reply {
    /// The status code.
    pub status: u16,
    /// The fields.
    pub fields: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
    /// The trailers.
    pub trailers: Option<HeaderMap>,
}

impl Http2Reply {
    /// Returns the first value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Http2Client {
    /// Connects.
    ///
    /// # Panics
    /// Panics if no process listens, or does not speak HTTP/2.
    pub fn connect(address: SocketAddr) -> Self {
        Self::connect_with(
            address,
            // How many frames arrive for a stream that was reset depends on the load.
            Builder::new()
                .max_local_error_reset_streams(None)
                .initial_window_size(1 << 20)
                .initial_connection_window_size(1 << 24),
        )
    }

    /// Connects with other settings.
    ///
    /// # Panics
    /// Panics as [`Http2Client::connect`] does.
    pub fn connect_with(address: SocketAddr, settings: &Builder) -> Self {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (requests, connection) = runtime.block_on(async {
            let socket = tokio::net::TcpStream::connect(address).await.expect("connect");
            socket.set_nodelay(true).expect("nodelay");
            settings.handshake(socket).await.expect("HTTP/2")
        });
        let connection = runtime.spawn(connection);
        Self { runtime, requests, connection }
    }

    /// Starts a request with fields, which ends with its head.
    ///
    /// # Panics
    /// Panics if the connection has ended.
    pub fn begin(&mut self, method: &str, target: &str, fields: &[(&str, &str)]) -> Pending {
        self.try_begin(method, target, fields, true).expect("a request")
    }

    /// Starts a request. Its body follows unless `ended`. A target that is a URL has the authority;
    /// that of others is `test`.
    pub fn try_begin(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        ended: bool,
    ) -> Result<Pending, h2::Error> {
        let uri = match target.starts_with("http://") {
            true => target.to_owned(),
            false => format!("http://test{target}"),
        };
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a request");
        let Self { runtime, requests, .. } = self;
        runtime.block_on(within(async {
            *requests = requests.clone().ready().await?;
            let (response, stream) = requests.send_request(request, ended)?;
            // The head must be sent before the next step.
            tokio::task::yield_now().await;
            Ok(Pending { response, stream })
        }))
    }

    /// Waits for a response with its body.
    ///
    /// # Panics
    /// Panics if it is not complete.
    pub fn finish(&mut self, pending: Pending) -> Http2Reply {
        self.try_finish(pending).expect("a whole response")
    }

    /// Waits for a response with its body.
    pub fn try_finish(&mut self, pending: Pending) -> Result<Http2Reply, h2::Error> {
        self.runtime.block_on(within(async {
            let (head, mut body) = pending.response.await?.into_parts();
            let (body, trailers) = (read_body(&mut body).await?, body.trailers().await?);
            Ok(Http2Reply { status: head.status.as_u16(), fields: head.headers, body, trailers })
        }))
    }

    /// Sends a request without a body and returns the response.
    pub fn request(&mut self, method: &str, target: &str, fields: &[(&str, &str)]) -> Http2Reply {
        let pending = self.begin(method, target, fields);
        self.finish(pending)
    }

    /// Sends GET and returns the response.
    pub fn get(&mut self, target: &str) -> Http2Reply {
        self.request("GET", target, &[])
    }

    /// Sends POST with `body`, with a length or without, and returns the response.
    pub fn post(
        &mut self,
        target: &str,
        media_type: &str,
        body: &[u8],
        has_length: bool,
    ) -> Http2Reply {
        let length = body.len().to_string();
        let mut fields = vec![("content-type", media_type)];
        if has_length {
            fields.push(("content-length", &length));
        }
        self.send("POST", target, &fields, body)
    }

    /// Sends a request, with a body if that is not empty, and returns the response. Sends no more
    /// of the body than the server accepts.
    ///
    /// # Panics
    /// Panics if the response is not complete.
    pub fn send(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Http2Reply {
        self.send_with_trailers(method, target, fields, body, None)
    }

    /// Sends the same request, with trailers behind the body.
    ///
    /// # Panics
    /// Panics as [`Http2Client::send`] does.
    pub fn send_with_trailers(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
        trailers: Option<HeaderMap>,
    ) -> Http2Reply {
        let reply = self.try_send_with_trailers(method, target, fields, body, trailers);
        reply.expect("a whole response")
    }

    /// Sends the same request, and returns the error if the response is not complete.
    pub fn try_send_with_trailers(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
        trailers: Option<HeaderMap>,
    ) -> Result<Http2Reply, h2::Error> {
        let is_ended = body.is_empty() && trailers.is_none();
        let mut pending = self.try_begin(method, target, fields, is_ended)?;
        let mut body = Bytes::copy_from_slice(body);
        self.runtime.block_on(within(async {
            while !body.is_empty() {
                pending.stream.reserve_capacity(body.len());
                let Some(Ok(room)) =
                    std::future::poll_fn(|context| pending.stream.poll_capacity(context)).await
                else {
                    return;
                };
                let piece = body.split_to(room.min(body.len()));
                let is_last = body.is_empty() && trailers.is_none();
                if pending.stream.send_data(piece, is_last).is_err() {
                    return;
                }
            }
            if let Some(trailers) = trailers {
                let _ = pending.stream.send_trailers(trailers);
            }
        }));
        self.try_finish(pending)
    }

    /// Waits only for the head of a response.
    ///
    /// # Panics
    /// Panics if it does not arrive.
    pub fn head_of(&mut self, pending: Pending) -> (u16, RecvStream) {
        let response = self.runtime.block_on(within(pending.response)).expect("a head");
        (response.status().as_u16(), response.into_body())
    }

    /// Runs `work` on the connection.
    pub fn run<T>(&mut self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(within(work))
    }

    /// Handles the frames that have arrived.
    pub fn pause(&mut self) {
        self.runtime
            .block_on(async { tokio::time::sleep(std::time::Duration::from_millis(10)).await });
    }

    /// Reads a complete body.
    pub fn body_of(&mut self, mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
        self.runtime.block_on(within(read_body(&mut body)))
    }

    /// Waits for informational responses and the final status.
    ///
    /// # Panics
    /// Panics if the response does not arrive.
    pub fn informational_of(&mut self, mut pending: Pending) -> (Vec<http::Response<()>>, u16) {
        self.runtime.block_on(within(async {
            let mut informational = Vec::new();
            let status = std::future::poll_fn(|context| {
                while let std::task::Poll::Ready(Some(Ok(response))) =
                    pending.response.poll_informational(context)
                {
                    informational.push(response);
                }
                std::pin::Pin::new(&mut pending.response).poll(context)
            })
            .await
            .expect("a response")
            .status();
            (informational, status.as_u16())
        }))
    }

    /// Resets a request.
    pub fn reset(&mut self, mut pending: Pending) {
        pending.stream.send_reset(Reason::CANCEL);
        drop(pending);
        // The frame must be sent.
        self.runtime.block_on(tokio::task::yield_now());
    }

    /// Waits until the connection has ended, and returns the reason.
    ///
    /// # Panics
    /// Panics if it does not end.
    pub fn wait_for_end(self) -> Result<(), h2::Error> {
        let Self { runtime, requests, connection } = self;
        drop(requests);
        runtime.block_on(within(connection)).expect("no panic")
    }
}

async fn read_body(body: &mut RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut received = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        received.extend_from_slice(&data);
    }
    Ok(received)
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    let limit = wait_limit();
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| panic!("waited {limit:?}"))
}
