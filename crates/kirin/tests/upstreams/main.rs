//! Other servers behind Kirin: HTTP, FastCGI, SCGI, uwsgi, gRPC.
//!
//! Each module is a topic. All start the built program and talk to it as its clients do.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod balancing;
mod fastcgi;
mod grpc;
mod mirror;
mod named_files;
mod operating;
mod proxy;
mod proxy_failure_counts;
mod proxy_failures;
mod proxy_http2;
mod proxy_killed;
mod proxy_names;
mod proxy_splice;
mod scgi;
mod upstream_queue;
mod uwsgi;
