//! The slots of a shard: item metadata of fixed size, addressed by index.
//!
//! Slots are allocated in chunks. So growing copies nothing, and a chunk without items can be
//! freed. A store that held a million small items yesterday must be able to hold large ones today.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, AtomicU32};

use crate::memory::log::Address;
use crate::memory::size_class::allocated_bytes;

/// The index of no slot.
pub(crate) const NIL: u32 = u32::MAX;

/// The number of slots in a chunk.
const CHUNK_SLOTS: usize = 256;

/// Metadata of one item in 40 bytes. `docs/store.md` explains each field.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The address of key and value. A vacant slot has none.
    pub(crate) address: Address,
    pub(crate) cas: u64,
    /// The raw [`Expires`](crate::Expires).
    pub(crate) expires: u32,
    /// The raw [`Now`](crate::Now) of the last access. Readers write it.
    pub(crate) last_access: AtomicU32,
    /// The client flags.
    pub(crate) flags: u32,
    /// The next slot towards the head of its list (newer). In a vacant slot: the next vacant one of
    /// its chunk.
    pub(crate) newer: u32,
    /// The next slot towards the tail of its list (older).
    pub(crate) older: u32,
    /// The bits of [`mark`]. Readers set some of them.
    pub(crate) marks: AtomicU8,
    /// The bits of [`status`]. Only writers change them.
    pub(crate) status: u8,
    /// The tick of [`TurnoverClock`](crate::eviction::sized_fifo::TurnoverClock) at which the slot
    /// entered its list.
    pub(crate) entered: u16,
}

/// The bits of [`Slot::marks`].
pub(crate) mod mark {
    /// Hits that protect from eviction: a number of two bits.
    pub(crate) const HITS: u8 = 3;
    /// The item was fetched since it was stored (meta `h`).
    pub(crate) const FETCHED: u8 = 4;
    /// The item is invalidated but still served (meta `X`).
    pub(crate) const STALE: u8 = 8;
    /// A client has been told to recache the item (meta `Z`).
    pub(crate) const WON: u8 = 16;
}

/// The bits of [`Slot::status`]. The bits above them hold the number of the slot's list.
pub(crate) mod status {
    /// The shard has a `SideData` for the slot.
    pub(crate) const HAS_SIDE: u8 = 1;
    /// The slot is in the main queue and not in the small one.
    pub(crate) const MAIN: u8 = 2;
    /// All of these bits.
    pub(crate) const FLAGS: u8 = HAS_SIDE | MAIN;
}

impl Slot {
    /// Returns whether the slot holds no item.
    pub(crate) fn is_vacant(&self) -> bool {
        self.address == Address::NONE
    }

    /// Returns a slot without an item.
    fn vacant(next: u32) -> Slot {
        Slot {
            address: Address::NONE,
            cas: 0,
            expires: 0,
            last_access: AtomicU32::new(0),
            flags: 0,
            newer: next,
            older: NIL,
            marks: AtomicU8::new(0),
            status: 0,
            entered: 0,
        }
    }
}

#[derive(Debug)]
struct Chunk {
    slots: Box<[Slot]>,
    /// The first vacant slot, as an index in the chunk.
    vacant: u32,
    live: u32,
}

impl Chunk {
    fn new() -> Chunk {
        let slots = (1..=CHUNK_SLOTS as u32)
            .map(|next| Slot::vacant(if next < CHUNK_SLOTS as u32 { next } else { NIL }))
            .collect();
        Chunk { slots, vacant: 0, live: 0 }
    }
}

/// All slots of a shard.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    chunks: Vec<Option<Chunk>>,
    /// The chunks with a vacant slot. The first one is filled first, so that the last ones run
    /// empty.
    partial: BTreeSet<u32>,
    /// The indices in `chunks` whose chunk was freed.
    missing: BTreeSet<u32>,
    live: usize,
    bytes: usize,
}

/// The bytes of one chunk.
const CHUNK_BYTES: usize = CHUNK_SLOTS * size_of::<Slot>();

impl Slab {
    /// Returns the bytes by which [`Slab::take`] will grow the slab.
    pub(crate) fn growth_bytes(&self) -> usize {
        if self.partial.is_empty() { allocated_bytes(CHUNK_BYTES) } else { 0 }
    }

    /// Takes a vacant slot.
    pub(crate) fn take(&mut self) -> u32 {
        let chunk_index = match self.partial.first() {
            Some(&index) => index,
            None => self.grow(),
        };
        let Some(chunk) = &mut self.chunks[chunk_index as usize] else {
            unreachable!("a partial chunk exists")
        };
        let in_chunk = chunk.vacant;
        debug_assert!(in_chunk != NIL, "the partial chunk {chunk_index} has no vacant slot");
        debug_assert!(chunk.slots[in_chunk as usize].is_vacant(), "slot {in_chunk} has an item");
        chunk.vacant = chunk.slots[in_chunk as usize].newer;
        chunk.live += 1;
        debug_assert!(chunk.live as usize <= CHUNK_SLOTS, "{} of a chunk are taken", chunk.live);
        if chunk.vacant == NIL {
            debug_assert!(chunk.live as usize == CHUNK_SLOTS, "a full chunk has {}", chunk.live);
            self.partial.remove(&chunk_index);
        }
        self.live += 1;
        chunk_index * CHUNK_SLOTS as u32 + in_chunk
    }

    fn grow(&mut self) -> u32 {
        let index = match self.missing.pop_first() {
            Some(index) => index,
            None => {
                self.chunks.push(None);
                self.chunks.len() as u32 - 1
            }
        };
        self.chunks[index as usize] = Some(Chunk::new());
        self.partial.insert(index);
        self.bytes += allocated_bytes(CHUNK_BYTES);
        debug_assert!(self.bytes == self.chunk_bytes(), "{} bytes of slots", self.bytes);
        index
    }

    /// Returns the bytes of all chunks that exist.
    fn chunk_bytes(&self) -> usize {
        (self.chunks.len() - self.missing.len()) * allocated_bytes(CHUNK_BYTES)
    }

    /// Makes a slot vacant.
    pub(crate) fn release(&mut self, index: u32) {
        let chunk_index = index / CHUNK_SLOTS as u32;
        let Some(chunk) = &mut self.chunks[chunk_index as usize] else {
            unreachable!("a taken slot has a chunk")
        };
        let in_chunk = index % CHUNK_SLOTS as u32;
        debug_assert!(chunk.live > 0, "slot {index} is released, and its chunk has no item");
        debug_assert!(chunk.vacant != in_chunk, "slot {index} is released twice");
        chunk.slots[in_chunk as usize] = Slot::vacant(chunk.vacant);
        chunk.vacant = in_chunk;
        chunk.live -= 1;
        self.live -= 1;
        self.partial.insert(chunk_index);
        // One empty chunk stays. Otherwise an item that comes and goes would allocate each time.
        if chunk.live == 0 && self.partial.len() > 1 {
            self.chunks[chunk_index as usize] = None;
            self.partial.remove(&chunk_index);
            self.missing.insert(chunk_index);
            self.bytes -= allocated_bytes(CHUNK_BYTES);
            debug_assert!(self.bytes == self.chunk_bytes(), "{} bytes of slots", self.bytes);
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Slot {
        match self.find(index) {
            Some(slot) => slot,
            None => unreachable!("slot {index} has no chunk"),
        }
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Slot {
        let chunk = self.chunks[index as usize / CHUNK_SLOTS].as_mut();
        match chunk {
            Some(chunk) => &mut chunk.slots[index as usize % CHUNK_SLOTS],
            None => unreachable!("slot {index} has no chunk"),
        }
    }

    /// Returns the slot at `index`, vacant or not. `None` if there is no such slot.
    #[inline]
    pub(crate) fn find(&self, index: u32) -> Option<&Slot> {
        let chunk = self.chunks.get(index as usize / CHUNK_SLOTS)?.as_ref()?;
        chunk.slots.get(index as usize % CHUNK_SLOTS)
    }

    /// Returns one more than the highest index of a slot.
    pub(crate) fn end(&self) -> u32 {
        (self.chunks.len() * CHUNK_SLOTS) as u32
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_40_bytes() {
        assert_eq!(size_of::<Slot>(), 40);
    }

    #[test]
    fn chunks_that_run_empty_are_given_back() {
        let mut slab = Slab::default();
        let taken: Vec<u32> = (0..CHUNK_SLOTS as u32 * 4).map(|_| slab.take()).collect();
        let full = slab.bytes();
        for &index in &taken[CHUNK_SLOTS..] {
            slab.release(index);
        }
        assert_eq!(slab.len(), CHUNK_SLOTS);
        assert_eq!(slab.bytes(), full / 2, "one full chunk and one protected");
        let mut again: Vec<u32> = (0..CHUNK_SLOTS as u32 * 3).map(|_| slab.take()).collect();
        again.extend(&taken[..CHUNK_SLOTS]);
        again.sort_unstable();
        again.dedup();
        assert_eq!(again.len(), CHUNK_SLOTS * 4, "no index is handed out twice");
        assert_eq!(slab.bytes(), full);
    }
}
