//! The `advise` filter: for a while it observes what applications and upstreams answer, for `kirin
//! advise`. It is next to the place, so it sees responses as they were sent: before they are
//! stored, put together or compressed.
//!
//! While no run is on, it costs one relaxed load for each request. It keeps no content: only keyed
//! hashes, lengths and facts (`kirin-advice`).

pub mod observed_body;
pub mod request_facts;
pub mod response_facts;
pub mod sampled_backend;
pub mod sampling;
