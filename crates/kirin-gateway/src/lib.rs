#![forbid(unsafe_code)]
//! The gateway: everything between the connection and the crate that answers a request.
//!
//! The router finds the route of a request (`routing`) and asks the places of the route one after
//! the other (`places`). The response passes the filters of the route (`filters`). `pages` reads
//! pages of the store, `purge` removes them. `request` has the context of a request, and its
//! subrequests. `explanation` describes these steps for a request without sending it.

#[cfg(test)]
mod doubling_tests;
pub mod explanation;
pub mod filters;
#[cfg(feature = "loom")]
#[cfg(test)]
mod loom_tests;
pub mod pages;
pub mod places;
pub mod purge;
pub mod request;
pub mod routing;
