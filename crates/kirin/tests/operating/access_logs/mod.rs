//! Formats, conditions and targets of access logs, through the built program.

mod conditions;
mod daemons;
mod keys;
mod parity;
mod refused;
mod terminal;
