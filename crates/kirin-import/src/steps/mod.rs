//! What a site does, as a list of which the first entry that matches a request counts.
//!
//! Unit and Caddy work so, and rules of Apache in part. In Kirin the most specific path counts.
//! [`routes`] gives the routes that answer the same.

pub(crate) mod effects;
mod expression;
mod host_name;
mod host_steps;
mod network;
mod path_pattern;
mod path_read;
pub(crate) mod routes;
mod scope;
pub(crate) mod step;

pub(crate) use expression::ExpressionPaths;
pub(crate) use host_name::is_host;
pub(crate) use host_steps::{HostStep, sites};
pub(crate) use network::network;
pub(crate) use path_pattern::PathPattern;
pub(crate) use path_read::PathRead;
pub(crate) use scope::Scope;
pub(crate) use step::Step;
