//! Counts the bytes that a connection holds for its client, if they are many.

use kirin_client_bytes::{ClientShare, NoRoom, Reservation, Resource};

/// Bytes that a connection may hold without being counted while it waits. Most hold nothing but
/// their tables.
const UNCOUNTED_BYTES: u64 = 8 * 1024;

/// Has `held` count `bytes`, in steps. `share` is that of the client.
pub(crate) fn count(
    held: &mut Option<Reservation>,
    bytes: u64,
    share: impl FnOnce() -> ClientShare,
) -> Result<(), NoRoom> {
    let counted = bytes.next_multiple_of(UNCOUNTED_BYTES);
    match held {
        _ if bytes <= UNCOUNTED_BYTES => *held = None,
        Some(held) if held.bytes() == counted => {}
        Some(held) => held.resize(counted)?,
        None => *held = Some(share().reserve(Resource::Memory, counted)?),
    }
    Ok(())
}
