//! The engine with the client of the `h2` crate: what one side sends, the other one gets.

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Request};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::peer::Echo;

/// Serves one connection until its client ends it.
async fn serve(mut socket: DuplexStream, piece: usize) -> Vec<String> {
    let mut echo = Echo::new();
    let mut buffer = vec![0; piece];
    loop {
        echo.take_output();
        let output = std::mem::take(&mut echo.output);
        if socket.write_all(&output).await.is_err() {
            return echo.log;
        }
        match socket.read(&mut buffer).await {
            Ok(0) | Err(_) => return echo.log,
            Ok(count) => {
                if let Err(failure) = echo.take(&buffer[..count]) {
                    panic!("{failure}: {:?}", echo.log);
                }
            }
        }
    }
}

async fn send_all(mut stream: SendStream<Bytes>, body: &[u8], trailers: bool) {
    let mut rest = Bytes::copy_from_slice(body);
    while !rest.is_empty() {
        stream.reserve_capacity(rest.len());
        let room = std::future::poll_fn(|context| stream.poll_capacity(context));
        let room = room.await.expect("a stream").expect("room");
        stream.send_data(rest.split_to(room.min(rest.len())), false).expect("data");
    }
    if trailers {
        let fields = [(http::HeaderName::from_static("x-sum"), HeaderValue::from_static("7"))];
        stream.send_trailers(HeaderMap::from_iter(fields)).expect("trailers");
    } else {
        stream.send_data(Bytes::new(), true).expect("the end");
    }
}

async fn read_all(mut body: RecvStream) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.expect("data");
        body.flow_control().release_capacity(data.len()).expect("room");
        all.extend_from_slice(&data);
    }
    all
}

async fn exchange(
    client: &mut SendRequest<Bytes>,
    value: &str,
    body: &[u8],
    trailers: bool,
) -> (u16, Vec<u8>, HeaderMap) {
    let request = Request::post("http://test/a?b").header("x-value", value).body(());
    let (response, stream) = client
        .send_request(request.expect("a request"), body.is_empty() && !trailers)
        .expect("sent");
    if !body.is_empty() || trailers {
        send_all(stream, body, trailers).await;
    }
    let (head, received) = response.await.expect("a response").into_parts();
    (head.status.as_u16(), read_all(received).await, head.headers)
}

/// Sends these requests at the same time, and compares what comes back.
fn check(requests: &[(String, usize, bool)], window: u32, piece: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let (ours, theirs) = tokio::io::duplex(piece.max(64));
        let server = tokio::spawn(serve(ours, piece));
        let (client, connection) = Builder::new()
            .initial_window_size(window)
            .handshake::<_, Bytes>(theirs)
            .await
            .expect("a handshake");
        let connection = tokio::spawn(connection);
        let exchanges = requests.iter().map(|(value, length, trailers)| {
            let mut client = client.clone();
            async move {
                let body: Vec<u8> = (0..*length).map(|at| (at / 3 % 251) as u8).collect();
                let (status, echoed, fields) = exchange(&mut client, value, &body, *trailers).await;
                assert_eq!(status, 200);
                assert!(echoed == body, "{} of {length} bytes", echoed.len());
                assert_eq!(fields["content-length"], length.to_string());
                assert_eq!(fields["content-type"], "text/plain");
            }
        });
        futures_of(exchanges.collect()).await;
        drop(client);
        connection.await.expect("no panic").expect("a good end");
        let log = server.await.expect("no panic");
        for (value, ..) in requests {
            let field = format!("x-value: {value}");
            assert!(log.iter().any(|line| line.contains(&field)), "{field} {log:?}");
        }
        let with_trailers = requests.iter().filter(|(_, _, trailers)| *trailers).count();
        let trailers = log.iter().filter(|line| line.ends_with("x-sum: 7")).count();
        assert_eq!(trailers, with_trailers, "{log:?}");
    });
}

/// Waits for all futures, which make progress side by side.
async fn futures_of(futures: Vec<impl Future<Output = ()>>) {
    let mut futures: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    std::future::poll_fn(|context| {
        let mut waits = false;
        for slot in &mut futures {
            if let Some(future) = slot {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(()) => *slot = None,
                    std::task::Poll::Pending => waits = true,
                }
            }
        }
        if waits { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_client_of_h2_gets_what_it_sends(
        requests in proptest::collection::vec(
            ("[!-~]{1,30}", prop_oneof![Just(0), 1..100_usize, 1..300_000_usize], any::<bool>()),
            1..8,
        ),
        window in prop_oneof![Just(65_535_u32), 1..1000_u32, Just(1 << 20)],
        piece in prop_oneof![Just(16_384_usize), 1..3000_usize],
    ) {
        // A tiny window or tiny pieces make large bodies slow.
        let most = if window < 1000 || piece < 64 { 5000 } else { usize::MAX };
        let requests: Vec<_> = requests
            .into_iter()
            .map(|(value, length, trailers)| (value, length.min(most), trailers))
            .collect();
        check(&requests, window, piece);
    }
}
