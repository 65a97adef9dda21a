//! Where everything is in the shared memory.

/// The bytes `KIRINRNG`, the first word.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"KIRINRNG");

/// The version of the layout.
pub(crate) const VERSION: u64 = 1;

/// The offset of the head: the position of the first request that may still be in the queue.
pub(crate) const HEAD: usize = 256;

/// The offset of the word that is 1 while a worker that was woken has not looked yet.
pub(crate) const WAKING: usize = HEAD + LINE;

/// In the word of a slot about its request: the bit of one that comes over the worker's connection,
/// and the position of the number of its loop.
pub(crate) const OVER_CONNECTION: u64 = 1;
pub(crate) const LOOP_SHIFT: u32 = 8;

/// What the front says to a worker in a seat.
pub(crate) const WAIT: u64 = 0;
pub(crate) const LEAVE: u64 = 1;
pub(crate) const GO: u64 = 2;

/// What one side writes often has a cache line of its own.
const LINE: usize = 64;

/// The most event loops. A message carries at most 253 descriptors (unix(7)), and one is the memory
/// file.
pub const MAX_LOOPS: usize = 252;

const MAX_SLOTS: usize = 65_535;
const MAX_SEATS: usize = 65_533;

/// The numbers that a ring is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The requests that are in the ring at the same time, at most 65,535.
    pub slots: usize,
    /// The workers, at most 65,533.
    pub seats: usize,
    /// The event loops, at most [`MAX_LOOPS`].
    pub loops: usize,
    /// The longest request in bytes, a multiple of 64.
    pub request_bytes: usize,
    /// The longest answer in bytes, a multiple of 64.
    pub answer_bytes: usize,
}

/// The sizes cannot be those of a ring.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a ring cannot have {0:?}")]
pub struct BadSizes(pub Sizes);

/// The offsets of the parts in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) sizes: Sizes,
    /// The cells of the queue, a power of two.
    pub(crate) cells: usize,
    queue: usize,
    seats: usize,
    sleepers: usize,
    loops: usize,
    finished: usize,
    finished_stride: usize,
    slots: usize,
    rooms: usize,
    pub(crate) total: usize,
}

impl Layout {
    pub(crate) fn new(sizes: Sizes) -> Result<Self, BadSizes> {
        let Sizes { slots, seats, loops, request_bytes, answer_bytes } = sizes;
        let is_good = (1..=MAX_SLOTS).contains(&slots)
            && (1..=MAX_SEATS).contains(&seats)
            && (1..=MAX_LOOPS).contains(&loops)
            && [request_bytes, answer_bytes]
                .iter()
                .all(|bytes| (LINE..=1 << 30).contains(bytes) && bytes.is_multiple_of(LINE));
        if !is_good {
            return Err(BadSizes(sizes));
        }
        // A request that is withdrawn takes up its cell until the head has passed it.
        let cells = (2 * slots).next_power_of_two();
        let queue = 2 * HEAD;
        let seats_at = line_up(queue + 8 * cells);
        let sleepers = seats_at + LINE * seats;
        let loops_at = line_up(sleepers + 8 * seats.div_ceil(64));
        let finished = loops_at + LINE * loops;
        let finished_stride = line_up(8 * slots.div_ceil(64));
        let slots_at = finished + finished_stride * loops;
        // Rooms begin at a page, so that memory that nobody uses is never there.
        let rooms = (slots_at + LINE * slots).next_multiple_of(4096);
        let total = (rooms + slots * (request_bytes + answer_bytes)).next_multiple_of(4096);
        debug_assert!(cells.is_power_of_two() && cells > slots, "{cells} cells of {slots} slots");
        Ok(Self {
            sizes,
            cells,
            queue,
            seats: seats_at,
            sleepers,
            loops: loops_at,
            finished,
            finished_stride,
            slots: slots_at,
            rooms,
            total,
        })
    }

    /// Returns the first words of the file.
    pub(crate) fn header(&self) -> [u64; 17] {
        let Sizes { slots, seats, loops, request_bytes, answer_bytes } = self.sizes;
        let [_, _, numbers @ ..] = [
            0,
            0,
            self.total,
            self.cells,
            slots,
            seats,
            loops,
            request_bytes,
            answer_bytes,
            self.queue,
            self.seats,
            self.sleepers,
            self.loops,
            self.finished,
            self.finished_stride,
            self.slots,
            self.rooms,
        ]
        .map(|number| number as u64);
        let mut header = [MAGIC; 17];
        header[1] = VERSION;
        header[2..].copy_from_slice(&numbers);
        header
    }

    /// Returns the offset of the cell of a position.
    pub(crate) fn cell(&self, position: u64) -> usize {
        self.queue + 8 * (position as usize & (self.cells - 1))
    }

    /// Returns the offset of the futex on which a worker sleeps.
    pub(crate) fn futex(&self, seat: u16) -> usize {
        self.seats + LINE * usize::from(seat)
    }

    /// Returns the offset of the word that tells a worker to leave or to take requests.
    pub(crate) fn command(&self, seat: u16) -> usize {
        self.futex(seat) + 8
    }

    /// Returns the number of words with a bit for each seat.
    pub(crate) fn sleeper_words(&self) -> usize {
        self.sizes.seats.div_ceil(64)
    }

    /// Returns the offset of the bits of 64 seats.
    pub(crate) fn sleepers(&self, word: usize) -> usize {
        self.sleepers + 8 * word
    }

    /// Returns the offset of the word that is 1 while a loop sleeps.
    pub(crate) fn asleep(&self, event_loop: usize) -> usize {
        self.loops + LINE * event_loop
    }

    /// Returns the number of words with a bit for each slot.
    pub(crate) fn finished_words(&self) -> usize {
        self.sizes.slots.div_ceil(64)
    }

    /// Returns the offset of the bits of 64 slots that a loop waits for.
    pub(crate) fn finished(&self, event_loop: usize, word: usize) -> usize {
        self.finished + self.finished_stride * event_loop + 8 * word
    }

    /// Returns the offset of a word of a slot.
    pub(crate) fn slot(&self, slot: u16, word: SlotWord) -> usize {
        self.slots + LINE * usize::from(slot) + 8 * word as usize
    }

    /// Returns the offset of the room for a request.
    pub(crate) fn request(&self, slot: u16) -> usize {
        self.rooms + usize::from(slot) * (self.sizes.request_bytes + self.sizes.answer_bytes)
    }

    /// Returns the offset of the room for an answer.
    pub(crate) fn answer(&self, slot: u16) -> usize {
        self.request(slot) + self.sizes.request_bytes
    }
}

/// The words of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SlotWord {
    Claim = 0,
    Phase = 1,
    Request = 2,
    RequestBytes = 3,
    ClaimedAt = 4,
    AnswerBytes = 5,
}

fn line_up(offset: usize) -> usize {
    offset.next_multiple_of(LINE)
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_two_parts_overlap_and_all_lie_in_the_file(
            slots in 1usize..300,
            seats in 1usize..300,
            loops in 1usize..20,
            request in 1usize..20,
            answer in 1usize..20,
        ) {
            let (request_bytes, answer_bytes) = (64 * request, 64 * answer);
            let layout =
                Layout::new(Sizes { slots, seats, loops, request_bytes, answer_bytes }).unwrap();
            let mut parts = vec![(0, 8 * 17), (HEAD, 8), (WAKING, 8)];
            parts.extend((0..layout.cells as u64).map(|position| (layout.cell(position), 8)));
            parts.extend((0..seats as u16).map(|seat| (layout.futex(seat), LINE)));
            parts.extend((0..layout.sleeper_words()).map(|word| (layout.sleepers(word), 8)));
            for event_loop in 0..loops {
                parts.push((layout.asleep(event_loop), LINE));
                let words = 0..layout.finished_words();
                parts.extend(words.map(|word| (layout.finished(event_loop, word), 8)));
            }
            for slot in 0..slots as u16 {
                parts.push((layout.slot(slot, SlotWord::Claim), LINE));
                parts.push((layout.request(slot), request_bytes));
                parts.push((layout.answer(slot), answer_bytes));
            }
            parts.sort_unstable();
            for pair in parts.windows(2) {
                prop_assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
            }
            prop_assert!(parts.iter().all(|(offset, _)| offset % 8 == 0));
            prop_assert!(parts.last().is_some_and(|(offset, bytes)| offset + bytes <= layout.total));
        }
    }

    #[test]
    fn the_parts_of_small_and_large_rings_follow_each_other() {
        for slots in [1, 31, 32, 33, 64, 65, 1000, MAX_SLOTS] {
            for (seats, loops, bytes) in
                [(1, 1, 64), (64, 2, 64), (65, 3, 128), (MAX_SEATS, MAX_LOOPS, 1 << 30)]
            {
                let sizes =
                    Sizes { slots, seats, loops, request_bytes: bytes, answer_bytes: bytes };
                let layout = Layout::new(sizes).unwrap();
                let (last_slot, last_seat) = ((slots - 1) as u16, (seats - 1) as u16);
                let last_cell = layout.cells as u64 - 1;
                let (sleepers, finished) = (layout.sleeper_words(), layout.finished_words());
                let parts = [
                    (0, WAKING + 8),
                    (layout.cell(0), layout.cell(last_cell) + 8),
                    (layout.futex(0), layout.futex(last_seat) + LINE),
                    (layout.sleepers(0), layout.sleepers(sleepers - 1) + 8),
                    (layout.asleep(0), layout.asleep(loops - 1) + LINE),
                    (layout.finished(0, 0), layout.finished(loops - 1, finished - 1) + 8),
                    (
                        layout.slot(0, SlotWord::Claim),
                        layout.slot(last_slot, SlotWord::AnswerBytes) + 8,
                    ),
                    (layout.request(0), layout.answer(last_slot) + bytes),
                    (layout.total, layout.total),
                ];
                for (index, pair) in parts.windows(2).enumerate() {
                    assert!(pair[0].1 <= pair[1].0, "{sizes:?}: part {index} ends late: {parts:?}");
                    assert_eq!(pair[0].0 % LINE, 0, "{sizes:?}: part {index}");
                }
                assert!(layout.cells.is_power_of_two() && layout.cells >= 2 * slots, "{sizes:?}");
                assert_eq!((layout.total % 4096, layout.request(0) % 4096), (0, 0), "{sizes:?}");
                assert_eq!(layout.cell(last_cell + 1), layout.cell(0), "{sizes:?}");
            }
        }
    }

    #[test]
    fn the_header_says_where_the_parts_are() {
        let sizes = Sizes { slots: 70, seats: 65, loops: 3, request_bytes: 128, answer_bytes: 64 };
        let layout = Layout::new(sizes).unwrap();
        let numbers = layout.header().map(|number| number as usize);
        assert_eq!(layout.header()[..2], [0x474e_524e_4952_494b, 1]);
        assert_eq!(numbers[2..9], [layout.total, 256, 70, 65, 3, 128, 64]);
        let stride = layout.finished(1, 0) - layout.finished(0, 0);
        let parts = [
            layout.cell(0),
            layout.futex(0),
            layout.sleepers(0),
            layout.asleep(0),
            layout.finished(0, 0),
            stride,
            layout.slot(0, SlotWord::Claim),
            layout.request(0),
        ];
        assert_eq!(numbers[9..], parts);
    }

    #[test]
    fn sizes_that_are_none_are_refused() {
        let good = Sizes { slots: 1, seats: 1, loops: 1, request_bytes: 64, answer_bytes: 64 };
        assert!(Layout::new(good).is_ok());
        for bad in [
            Sizes { slots: 0, ..good },
            Sizes { slots: 65_536, ..good },
            Sizes { seats: 0, ..good },
            Sizes { seats: 65_534, ..good },
            Sizes { loops: 0, ..good },
            Sizes { loops: MAX_LOOPS + 1, ..good },
            Sizes { request_bytes: 100, ..good },
            Sizes { answer_bytes: 0, ..good },
        ] {
            assert!(Layout::new(bad).is_err(), "{bad:?}");
        }
    }
}
