//! All orders in which requests and reloads meet in what the event loops share.
//!
//! `cargo test -p kirin-gateway --features loom --lib loom_tests` runs them. `scripts/planted-bugs`
//! shows that they find bugs.

mod filling_body;
mod operator_maintenance;
mod pending_fetches;
