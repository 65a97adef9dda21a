//! The scripts that run in the engine.

mod purge;
mod put;
mod put_tags;
mod touch;
mod tracking;
