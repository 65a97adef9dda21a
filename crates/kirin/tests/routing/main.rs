//! Which place answers which request, and who may ask: sites, routes, files, access.
//!
//! Each module is a topic. All start the built program and talk to it as its clients do.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod access;
mod ambiguous_paths;
mod auth_request;
mod explain;
mod files;
mod like_nginx;
mod media_types;
mod protected_pages;
mod request_limits;
mod route_patterns;
mod routes;
mod sites;
mod spa;
mod variables;
