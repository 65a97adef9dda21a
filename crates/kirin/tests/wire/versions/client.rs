//! One interface of clients that have several requests on a connection: over HTTP/2 by the crate
//! `h2`, over HTTP/3 by aioquic.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, HeaderName, HeaderValue};
use kirin_tests::{Http2Client, Http2Reply, Pending};
use serde_json::{Value, json};

use crate::http3::client::{Http3Client, Http3Reply};

/// A header field or a trailer.
pub type Field<'a> = (&'a str, &'a str);

/// A request. Its authority is `test`.
#[derive(Clone, Copy, Default)]
pub struct SentRequest<'a> {
    pub method: &'a str,
    pub target: &'a str,
    pub fields: &'a [Field<'a>],
    pub body: &'a [u8],
    pub trailers: &'a [Field<'a>],
}

/// A response that has come whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns the first value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The stream was reset before its response was whole.
#[derive(Debug, PartialEq, Eq)]
pub enum Reset {
    /// The request is malformed: PROTOCOL_ERROR of HTTP/2, H3_MESSAGE_ERROR of HTTP/3.
    Malformed,
    /// The response cannot be ended: INTERNAL_ERROR, H3_INTERNAL_ERROR.
    Internal,
    /// Another code, or none.
    Other(String),
}

/// An informational response: its status and its fields.
pub type Informational = (u16, Vec<(String, String)>);

/// The error codes of HTTP/3 (RFC 9114 section 8.1).
const H3_INTERNAL_ERROR: u64 = 0x102;
const H3_MESSAGE_ERROR: u64 = 0x10e;

/// A connection.
pub trait StreamsClient {
    /// Sends a request without a body. Returns its number.
    fn begin(&mut self, method: &str, target: &str) -> usize;

    /// Sends the head of a request and a part of its body, whose end does not follow.
    fn begin_open(&mut self, method: &str, target: &str, part: &[u8]) -> usize;

    /// Waits for the response to a request that was begun.
    fn finish(&mut self, number: usize) -> Result<Answer, Reset>;

    /// Sends a request and waits for its response.
    fn send(&mut self, request: SentRequest<'_>) -> Result<Answer, Reset>;

    /// Sends a request. Returns the informational responses, and the status of the last one.
    fn informational(&mut self, request: SentRequest<'_>) -> (Vec<Informational>, u16);

    /// Sends a GET, whose response must be whole.
    fn get(&mut self, target: &str) -> Answer {
        self.send(SentRequest { method: "GET", target, ..SentRequest::default() })
            .expect("a whole response")
    }
}

/// A client of HTTP/2 by prior knowledge.
pub struct OverHttp2 {
    client: Http2Client,
    pending: Vec<Option<Pending>>,
}

impl OverHttp2 {
    pub fn connect(address: SocketAddr) -> Self {
        Self { client: Http2Client::connect(address), pending: Vec::new() }
    }

    fn keep(&mut self, pending: Pending) -> usize {
        self.pending.push(Some(pending));
        self.pending.len() - 1
    }
}

fn fields_of_http2(fields: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    fields.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

fn answer_of_http2(reply: Result<Http2Reply, h2::Error>) -> Result<Answer, Reset> {
    match reply {
        Ok(reply) => {
            let fields = fields_of_http2(&reply.fields);
            Ok(Answer { status: reply.status, fields, body: reply.body })
        }
        Err(error) if error.is_reset() && error.is_remote() => Err(match error.reason() {
            Some(Reason::PROTOCOL_ERROR) => Reset::Malformed,
            Some(Reason::INTERNAL_ERROR) => Reset::Internal,
            _ => Reset::Other(error.to_string()),
        }),
        Err(error) => panic!("the connection: {error}"),
    }
}

impl StreamsClient for OverHttp2 {
    fn begin(&mut self, method: &str, target: &str) -> usize {
        let pending = self.client.begin(method, target, &[]);
        self.keep(pending)
    }

    fn begin_open(&mut self, method: &str, target: &str, part: &[u8]) -> usize {
        let mut pending = self.client.try_begin(method, target, &[], false).expect("a request");
        pending.stream.send_data(Bytes::copy_from_slice(part), false).expect("a part");
        self.keep(pending)
    }

    fn finish(&mut self, number: usize) -> Result<Answer, Reset> {
        let pending = self.pending[number].take().expect("a request that was begun");
        answer_of_http2(self.client.try_finish(pending))
    }

    fn send(&mut self, request: SentRequest<'_>) -> Result<Answer, Reset> {
        let SentRequest { method, target, fields, body, trailers } = request;
        let trailers = trailers.iter().map(|(name, value)| {
            let name: HeaderName = name.parse().expect("a name");
            (name, HeaderValue::from_str(value).expect("a value"))
        });
        let trailers = (!request.trailers.is_empty()).then(|| HeaderMap::from_iter(trailers));
        let reply = self.client.try_send_with_trailers(method, target, fields, body, trailers);
        answer_of_http2(reply)
    }

    fn informational(&mut self, request: SentRequest<'_>) -> (Vec<Informational>, u16) {
        let SentRequest { method, target, fields, body, .. } = request;
        let pending = self.client.try_begin(method, target, fields, body.is_empty());
        let mut pending = pending.expect("a request");
        if !body.is_empty() {
            // The server may have refused it already.
            let _ = pending.stream.send_data(Bytes::copy_from_slice(body), true);
        }
        let (informational, status) = self.client.informational_of(pending);
        let informational = informational
            .iter()
            .map(|response| (response.status().as_u16(), fields_of_http2(response.headers())));
        (informational.collect(), status)
    }
}

/// A client of HTTP/3.
pub struct OverHttp3(Http3Client);

impl OverHttp3 {
    pub fn connect(url: &str) -> Self {
        let mut client = Http3Client::start();
        client.ask(&json!({ "do": "connect", "url": url }));
        Self(client)
    }

    fn ask(&mut self, request: SentRequest<'_>) -> Http3Reply {
        let SentRequest { method, target, fields, body, trailers } = request;
        let mut command = json!({
            "do": "ask", "method": method, "path": target, "fields": fields, "whole": true,
            "pseudo": [[":authority", "test"]]
        });
        if !body.is_empty() {
            command["hex"] = hex(body).into();
        }
        if !trailers.is_empty() {
            command["trailers"] = json!(trailers);
        }
        Http3Reply(self.0.ask(&command))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn fields_of_http3(fields: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let fields = fields.as_array().expect("fields").iter();
    fields.map(|field| (text(&field[0]), text(&field[1]))).collect()
}

fn answer_of_http3(reply: &Http3Reply) -> Result<Answer, Reset> {
    if !reply.is_complete() {
        return Err(match reply.0["reset"].as_u64() {
            Some(H3_MESSAGE_ERROR) => Reset::Malformed,
            Some(H3_INTERNAL_ERROR) => Reset::Internal,
            _ => Reset::Other(format!("{reply:?}")),
        });
    }
    let digits = reply.0["body"].as_str().expect("a whole body").as_bytes();
    let byte = |two: &[u8]| {
        let two = std::str::from_utf8(two).expect("digits");
        u8::from_str_radix(two, 16).expect("two digits")
    };
    Ok(Answer {
        status: u16::try_from(reply.status()).expect("a status"),
        fields: fields_of_http3(&reply.0["fields"]),
        body: digits.chunks(2).map(byte).collect(),
    })
}

impl StreamsClient for OverHttp3 {
    fn begin(&mut self, method: &str, target: &str) -> usize {
        let stream = self.0.begin(target, json!({ "method": method, "whole": true }));
        usize::try_from(stream).expect("a stream")
    }

    fn begin_open(&mut self, method: &str, target: &str, part: &[u8]) -> usize {
        let members = json!({ "method": method, "whole": true, "hex": hex(part), "end": false });
        usize::try_from(self.0.begin(target, members)).expect("a stream")
    }

    fn finish(&mut self, number: usize) -> Result<Answer, Reset> {
        answer_of_http3(&self.0.finish(&[number as u64])[0])
    }

    fn send(&mut self, request: SentRequest<'_>) -> Result<Answer, Reset> {
        answer_of_http3(&self.ask(request))
    }

    fn informational(&mut self, request: SentRequest<'_>) -> (Vec<Informational>, u16) {
        let reply = self.ask(request);
        let status = |value: &Value| value.as_u64().and_then(|status| status.try_into().ok());
        let informational = reply.0["informational"].as_array().expect("a list").iter();
        let informational =
            informational.map(|one| (status(&one[0]).expect("a status"), fields_of_http3(&one[1])));
        (informational.collect(), u16::try_from(reply.status()).expect("a status"))
    }
}
