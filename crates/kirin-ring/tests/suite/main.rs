//! The hand-over through the public interface of this crate.

mod hostile;
mod model;
mod ring;
