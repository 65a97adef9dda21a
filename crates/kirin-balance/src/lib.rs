#![forbid(unsafe_code)]
//! Which of an upstream's servers gets a request.
//!
//! No I/O: the proxy says what it has seen of a server, this says which one to ask next.
//! [`Servers`] is what all event loops know together (who is ejected, unhealthy, how busy and how
//! fast); a [`Balancer`] is one loop's way to choose among them. A request is an [`Attempt`], which
//! counts as long as it lives; when all servers are at their limit it waits in the [`Queue`].
//! [`FairQueue`] says in which order requests wait, also those of applications.
//! [`RetryBudget`] says whether there may be another.

mod attempt;
mod balancer;
#[cfg(test)]
mod balancer_tests;
mod candidates;
mod ejection;
mod fair_queue;
mod health;
mod latency;
mod queue;
mod rendezvous;
mod retry_budget;
mod round_robin;
mod server;
mod slow_start;
mod tried;

pub use attempt::Attempt;
pub use balancer::{Balancer, Criteria, Method};
pub use candidates::Claim;
pub use fair_queue::{ClientKey, FairPlace, FairQueue, Ticket};
pub use queue::{Entered, Leaving, Queue, QueueStatus, Refused, Wait};
pub use rendezvous::key_of;
pub use retry_budget::RetryBudget;
pub use server::{Availability, ServerSettings, ServerStatus, Servers, Settings};
pub use tried::Tried;
