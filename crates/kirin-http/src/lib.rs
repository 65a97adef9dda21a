#![forbid(unsafe_code)]
//! The rules of HTTP: messages, fields, targets, ranges, conditions, chunks, and bodies as types.
//!
//! The crate knows no sockets and no TLS. [`request`], [`response_head`] and [`chunked`] take bytes
//! and return typed values. [`Handler`] is the interface between the connection engine
//! (`kirin-server`) and the program: it answers a [`RequestHead`] at once or later. Where a body or
//! a watch needs the connection, there is a trait that the engine implements.

pub mod basic_credentials;
pub mod body;
mod body_decoder;
pub mod byte_range;
pub mod chunked;
pub mod client_bytes;
mod client_certificate;
pub mod client_watch;
pub mod cookies;
pub mod date;
#[cfg(test)]
mod doubling_tests;
pub mod entity_tag;
pub mod field_lines;
pub mod field_list;
pub mod form;
pub mod forwarded;
mod forwarded_element;
pub mod handler;
pub mod host;
pub mod html;
pub mod informational;
pub mod listen_address;
pub mod media_type;
pub mod pace;
pub mod panics;
pub mod partial_content;
pub mod peer;
pub mod peer_set;
pub mod percent;
pub mod preconditions;
pub mod proxy_fields;
mod read_buffer;
mod received_response;
pub mod request;
pub mod request_body;
pub mod request_fields;
pub mod request_id;
pub mod request_notes;
pub mod request_path;
pub mod request_scope;
pub mod request_steps;
mod request_target;
pub mod response;
pub mod response_head;
mod spooled_body;
pub mod token;
pub mod trace_context;
pub mod trailers;

pub use basic_credentials::BasicCredentials;
pub use body::{Body, BodyStream, FileRange, StreamError, Tunnel, UnknownLength};
pub use body_decoder::BodyDecoder;
pub use client_bytes::{ClientBytes, ClientShare, ListenerBytes, NoRoom, Reservation, Resource};
pub use client_certificate::ClientCertificate;
pub use client_watch::ClientWatch;
pub use cookies::cookie;
pub use field_lines::FieldLines;
pub use forwarded::{ForwardedFields, Forwarding};
pub use handler::{Answer, Client, Handler, Later, Origin, TrustedProxy};
pub use http::{Method, StatusCode};
pub use informational::{Informational, InformationalBudget};
pub use listen_address::{InvalidListenAddress, ListenAddress};
pub use peer::{Peer, address_key};
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
pub use spooled_body::{SpoolError, SpooledBody, is_out_of_descriptors};
pub use trace_context::{TraceContext, TraceSampling};
pub use trailers::Trailers;
