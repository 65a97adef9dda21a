//! The scripts that run in the engine.

mod purge;
mod purge_numbers;
mod put;
mod put_tags;
mod touch;
mod tracking;
