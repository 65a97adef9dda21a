#![forbid(unsafe_code)]
//! The connection engine: everything between a client's socket and the answer to its request.
//!
//! [`listening`] binds and accepts, [`tls`] encrypts, `http1`, `http2` and `http3` read requests
//! and write responses, [`limits`] says what a client may use, [`observation`] follows requests,
//! [`logging`] writes the access log. [`Server`] is what the connections of a listener share on one
//! event loop. The program gives it a [`Handler`](kirin_http::Handler), which answers a request at
//! once or later.

mod clock;
mod connection;
mod ended_request;
mod file_pieces;
mod http1;
mod http2;
mod http3;
pub mod limits;
pub mod listening;
pub mod logging;
pub mod observation;
mod server;
mod streams;
pub mod tls;

pub use connection::counters::ConnectionCounters;
pub use connection::idle_connection::IdleConnection;
pub use limits::Limits;
pub use limits::admission::{ConnectionAdmission, ConnectionCount};
pub use limits::blocked::{Block, BlockedAddresses, MAX_BLOCKS, TooManyBlocks, network_name};
pub use listening::datagrams::{self, DatagramListener, EndpointEnd, OpenedDatagrams};
pub use listening::inherited::InheritedSocket;
pub use listening::listener::{self, BindOptions, ListenError, Listener};
pub use logging::access_log::{AccessLog, OpenLog};
pub use logging::access_logs::AccessLogs;
pub use logging::conditions::{ExceptedPaths, LogConditions};
pub use logging::log_format::LogFormat;
pub use logging::log_sink::LogSink;
pub use logging::syslog::SyslogServer;
pub use observation::{EndedRequest, Observers, PlaceName, RequestObserver};
pub use server::{InForce, Server};
pub use tls::certificates::ServedCertificate;
pub use tls::challenge::{ChallengeCertificate, ChallengeCertificates, FoundCertificate};
pub use tls::tickets::TicketSecret;
pub use tls::{CertificateFiles, ClientAuthorities, Tls, TlsError, TlsSettings};
