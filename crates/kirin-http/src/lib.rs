#![forbid(unsafe_code)]
//! The rules of HTTP: messages, fields, targets, ranges, conditions, chunks, and bodies as types.
//!
//! The crate knows no sockets and no TLS. [`request`], [`response_head`] and [`chunked`] take bytes
//! and return typed values. [`Handler`] is the interface between the connection engine
//! (`kirin-server`) and the program: it answers a [`RequestHead`] at once or later. Where a body or
//! a watch needs the connection, there is a trait that the engine implements. The folders say what
//! is where; to other crates all modules are at the root.

mod clients;
mod content;
#[cfg(test)]
mod doubling_tests;
mod fields;
pub mod handler;
pub mod html;
mod messages;
mod notes;
pub mod panics;
mod urls;

pub use basic_credentials::BasicCredentials;
pub use body::{Body, BodyStream, FileRange, StreamError, Tunnel, UnknownLength};
pub use body_copy::BodyCopy;
pub use body_decoder::BodyDecoder;
pub use body_with_trailers::BodyWithTrailers;
pub use client_certificate::ClientCertificate;
pub use client_watch::{ClientWatch, client_gone};
use clients::client_certificate;
pub use clients::{client_watch, listen_address, pace, peer, peer_set};
pub use content::{byte_range, entity_tag, partial_content, preconditions};
pub use cookies::cookie;
pub use field_lines::FieldLines;
use fields::forwarded_element;
pub use fields::{
    basic_credentials, cookies, date, field_list, forwarded, media_type, proxy_fields, token,
};
pub use forwarded::{ForwardedFields, Forwarding};
pub use handler::{Answer, Client, Handler, Later, Origin, TrustedProxy};
pub use http::{Method, StatusCode};
pub use informational::{Informational, InformationalBudget};
pub use listen_address::{InvalidListenAddress, ListenAddress};
pub use messages::{
    body, chunked, field_lines, informational, observed_stream, request, request_body,
    request_fields, response, response_head, trailers,
};
use messages::{
    body_copy, body_decoder, body_with_trailers, read_buffer, received_response, request_target,
};
pub use notes::{
    request_id, request_notes, request_scope, request_steps, seldom_warnings, trace_context,
};
pub use observed_stream::{ObservedStream, StreamObserver};
pub use peer::{Peer, address_key, write_ip};
pub use peer_set::PeerSet;
pub use proxy_fields::{ProxyField, proxy_field};
pub use read_buffer::ReadBuffer;
pub use received_response::{ReceivedBody, ReceivedHead};
pub use request::{BodyLength, RequestHead, Version};
pub use request_body::{BodyError, RequestBody};
pub use request_fields::RequestFields;
pub use request_id::{RequestId, RequestIds};
pub use request_notes::{CacheResult, RequestNotes, ResponseLog, RouteNote, is_written_by_kirin};
pub use request_path::RequestPath;
pub use request_scope::{InRequest, RequestScope};
pub use request_steps::{OpenStep, RequestSteps, StepKind, StepPeer};
pub use response::{AnsweredBy, Response};
pub use seldom_warnings::SeldomWarnings;
pub use trace_context::{TraceContext, TraceSampling};
pub use trailers::Trailers;
pub use urls::{form, host, percent, request_path};
