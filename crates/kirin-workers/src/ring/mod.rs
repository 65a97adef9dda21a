//! The ring of a generation: small requests and answers go through memory that Kirin and the
//! workers share. `docs/worker-protocol.md` ("The ring") describes it; `kirin-ring` has the memory.
//!
//! `attach` offers the ring to a worker. `place` says how many requests may be in the ring.
//! `exchange` puts a request into it and waits for the answer, which `answer` takes apart.
//! `collector` is the task of each event loop that learns which requests are finished. `entries`
//! has the state of each request, and `shared_ring` all of it together.

mod answer;
mod attach;
mod collector;
mod entries;
mod exchange;
mod hang_up;
mod lookahead;
mod place;
mod seats;
mod shared_ring;

pub(crate) use attach::offer;
pub(crate) use collector::Collectors;
pub(crate) use exchange::exchange;
pub(crate) use hang_up::watch_connection;
pub(crate) use place::{Capacity, RingPlace};
pub use shared_ring::RingStatus;
pub(crate) use shared_ring::{ANSWER_BYTES, REQUEST_BYTES, RingSeat, SharedRing};
