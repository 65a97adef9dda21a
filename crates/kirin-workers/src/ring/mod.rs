//! The ring of a generation: small requests and answers go through memory that Kirin and the
//! workers share. `docs/worker-protocol.md` ("The ring") describes it; `kirin-ring` has the memory.
//!
//! `attach` offers the ring to a worker, and `hang_up` sees the end of its connection. `place` is
//! the right to put a request into the ring; `places` counts them, and `lookahead` says how many
//! there should be. `late` takes requests back (`withdrawal`) that wait for longer than it
//! expected. `collector` is the task of each event loop that learns which requests are finished,
//! and `answer` parses what they got. `shared_ring` has the state: `entries` that of each request,
//! `seats` that of each worker. `requests` and `workers` change it, and `ring_status` shows it to
//! operators. `deadlines` finds requests that take too long, `watch` and `liveness` workers that
//! hang between two requests. `owner` is what the ring needs of the application.

mod answer;
mod attach;
mod collector;
mod deadlines;
mod entries;
mod hang_up;
mod late;
mod liveness;
mod lookahead;
mod owner;
mod place;
mod places;
mod requests;
mod ring_status;
mod room;
mod seats;
mod shared_ring;
mod watch;
mod withdrawal;
mod workers;

pub(crate) use answer::parse_answer;
pub(crate) use attach::offer;
pub(crate) use collector::Collectors;
pub(crate) use entries::Outcome;
pub(crate) use hang_up::watch_connection;
pub(crate) use owner::{Parked, RingOwner};
pub(crate) use place::RingPlace;
pub(crate) use requests::NotPut;
pub use ring_status::RingStatus;
pub(crate) use room::REQUEST_BYTES;
pub use room::SLOT_BYTES;
pub(crate) use shared_ring::SharedRing;
pub(crate) use workers::RingSeat;
