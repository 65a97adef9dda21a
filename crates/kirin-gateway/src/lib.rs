#![forbid(unsafe_code)]
//! The gateway: what a request meets between the connection and the crate that answers it.
//!
//! A request finds its route (`routing`), asks the places of that route one after the other
//! (`places`), and the response passes the filters of the route (`filters`). Pages of the store are
//! in `pages`, their removal in `purge`. Requests that come of requests are in `request`.

#[cfg(test)]
mod doubling_tests;
pub mod filters;
pub mod pages;
pub mod places;
pub mod purge;
pub mod request;
pub mod routing;
