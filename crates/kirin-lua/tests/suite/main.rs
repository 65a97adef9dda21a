//! Scripts through the public interface of this crate.

mod allowance;
mod limits;
mod sandbox;
mod scripts;
mod support;
mod waiting;
