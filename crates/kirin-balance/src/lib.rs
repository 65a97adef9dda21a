#![forbid(unsafe_code)]
//! Decides which server of an upstream gets a request. No I/O: the proxy reports what it has seen
//! of a server, and asks here for the next one.
//!
//! - [`Servers`] is what all event loops know together: which servers are ejected or unhealthy, how
//!   busy and how fast they are.
//! - A [`Balancer`] chooses among them for one event loop.
//! - An [`Attempt`] is a request that holds a slot of a server.
//! - The [`RequestQueue`] holds requests while all servers are at their limit.
//! - [`FairQueue`] is the order in which requests wait, also for applications.
//! - The [`RetryBudget`] limits how many requests are retried.

mod attempt;
mod balancer;
#[cfg(test)]
mod balancer_tests;
mod candidates;
mod ejection;
mod fair_queue;
mod health;
mod latency;
#[cfg(feature = "loom")]
#[cfg(test)]
mod loom_tests;
mod operator;
mod queue;
mod rendezvous;
mod retry_budget;
mod round_robin;
mod server;
mod slow_start;
#[cfg(test)]
mod test_servers;
mod tried;

pub use attempt::Attempt;
pub use balancer::{Balancer, Criteria, Method};
pub use candidates::SlotClaim;
pub use fair_queue::{ClientKey, FairPlace, FairQueue, Ticket};
pub use operator::{OperatorState, ServerChange};
pub use queue::{Entered, Leaving, QueuePlace, QueueRefusal, QueueStatus, RequestQueue};
pub use rendezvous::key_of;
pub use retry_budget::RetryBudget;
pub use server::{Availability, ServerSettings, ServerStatus, Servers, Settings};
pub use tried::TriedServers;
