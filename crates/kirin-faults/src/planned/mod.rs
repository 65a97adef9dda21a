//! Points that carry out a plan.

mod plan;
pub(crate) mod point;
mod run;
