//! A trial: new code gets a share of the visitors, and is compared with the old code
//! (`docs/trial.md`).
//!
//! `verdict` decides, without clock and I/O. `running` chooses the side of a visitor and counts
//! what happens on both; `response_times` has their times. `pools` keeps the workers of both apart.
//! `app` is the part of the application, `supervision` that of the supervisor. `report` shows a
//! trial to operators.

mod app;
mod pools;
mod report;
mod response_times;
mod running;
mod supervision;
mod verdict;

pub(crate) use app::Trials;
pub(crate) use pools::Pools;
pub use report::{TrialEnd, TrialReport, TrialSide};
pub(crate) use running::{Outcome, Visitor};
pub(crate) use supervision::GivenUp;
