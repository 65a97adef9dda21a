//! The shared memory as the front uses it.

use std::io;
use std::os::fd::BorrowedFd;

use crate::claim::Phase;
use crate::copy;
use crate::layout::{BadSizes, GO, HEAD, LEAVE, Layout, Sizes, SlotWord, WAIT};
use crate::mapping::Mapping;
use crate::protocol;
use crate::words::Ordering::{Acquire, Relaxed, SeqCst};
use crate::words::Words;

/// A ring: the memory, and where everything is in it.
pub struct Ring {
    mapping: Mapping,
    layout: Layout,
}

/// An answer that is longer than its room, from a worker that lies.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an answer of {0} bytes does not fit into a slot of the ring")]
pub struct BadAnswer(pub u64);

impl Ring {
    /// Creates the memory file. `name` is for `/proc/PID/maps`.
    pub fn create(name: &str, sizes: Sizes) -> io::Result<Self> {
        let invalid = |error: BadSizes| io::Error::new(io::ErrorKind::InvalidInput, error);
        let layout = Layout::new(sizes).map_err(invalid)?;
        let mapping = Mapping::create(name, layout.total)?;
        let ring = Self { mapping, layout };
        for (index, number) in ring.layout.header().into_iter().enumerate() {
            ring.words().word(8 * index).store(number, Relaxed);
        }
        ring.words().word(HEAD).store(1, SeqCst);
        Ok(ring)
    }

    /// Returns the memory file, to be sent to workers.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.mapping.file()
    }

    /// Returns the numbers that the ring was made for.
    pub fn sizes(&self) -> Sizes {
        self.layout.sizes
    }

    /// Returns the size of the memory file in bytes. Pages that were never used take no memory.
    pub fn bytes(&self) -> usize {
        self.layout.total
    }

    pub(crate) fn words(&self) -> &impl Words {
        &self.mapping
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Calls `each` with each slot that workers have reported to a loop as finished. A worker may
    /// report any slot.
    pub fn finished(&self, event_loop: usize, mut each: impl FnMut(u16)) {
        for index in 0..self.layout.finished_words() {
            let word = self.words().word(self.layout.finished(event_loop, index));
            if word.load(Relaxed) == 0 {
                continue;
            }
            let mut bits = word.swap(0, SeqCst);
            while bits != 0 {
                let slot = (64 * index) as u16 + bits.trailing_zeros() as u16;
                bits &= bits - 1;
                if protocol::is_slot(&self.layout, slot) {
                    each(slot);
                }
            }
        }
    }

    /// Returns whether workers have reported a slot to a loop.
    pub fn has_finished(&self, event_loop: usize) -> bool {
        (0..self.layout.finished_words()).any(|index| {
            self.words().word(self.layout.finished(event_loop, index)).load(SeqCst) != 0
        })
    }

    /// Notes that a loop falls asleep: from now on a worker that reports a slot wakes it by its
    /// eventfd. Returns false if a slot was reported before; then the loop must not sleep.
    pub fn fall_asleep(&self, event_loop: usize) -> bool {
        debug_assert!(event_loop < self.layout.sizes.loops, "loop {event_loop} does not exist");
        protocol::fall_asleep(self.words(), &self.layout, event_loop);
        if self.has_finished(event_loop) {
            self.wake_up(event_loop);
            return false;
        }
        true
    }

    /// Notes that a loop is awake. Returns whether it was asleep.
    pub fn wake_up(&self, event_loop: usize) -> bool {
        let asleep = self.words().word(self.layout.asleep(event_loop));
        asleep.load(Relaxed) != 0 && asleep.swap(0, SeqCst) != 0
    }

    /// Returns how far the request in a slot is.
    pub fn phase(&self, slot: u16) -> Phase {
        Phase::parse(self.words().word(self.layout.slot(slot, SlotWord::Phase)).load(Acquire))
    }

    /// Returns when a worker says that it has claimed the request: nanoseconds of CLOCK_MONOTONIC,
    /// 0 if it has not said so yet.
    pub fn claimed_at_ns(&self, slot: u16) -> u64 {
        self.words().word(self.layout.slot(slot, SlotWord::ClaimedAt)).load(Acquire)
    }

    /// Copies the answer in a slot.
    pub fn answer(&self, slot: u16) -> Result<Vec<u8>, BadAnswer> {
        let length = self.words().word(self.layout.slot(slot, SlotWord::AnswerBytes)).load(Acquire);
        if length > self.layout.sizes.answer_bytes as u64 {
            return Err(BadAnswer(length));
        }
        Ok(copy::read(self.words(), self.layout.answer(slot), length as usize))
    }

    /// Copies the request in a slot. Its worker may have changed it.
    pub fn request(&self, slot: u16) -> Vec<u8> {
        let length =
            self.words().word(self.layout.slot(slot, SlotWord::RequestBytes)).load(Acquire);
        let length = (length as usize).min(self.layout.sizes.request_bytes);
        copy::read(self.words(), self.layout.request(slot), length)
    }

    /// Writes a word anywhere in the memory, as a worker that lies could.
    pub fn scribble(&self, place: usize, value: u64) {
        self.words().word(place % (self.layout.total / 8) * 8).store(value, SeqCst);
    }

    /// Tells the worker in a seat to leave, and wakes it.
    pub fn leave(&self, seat: u16) {
        self.tell(seat, LEAVE);
    }

    /// Lets the worker in a seat take requests: it is new, or its answer has been read from the
    /// connection.
    pub fn admit(&self, seat: u16) {
        self.tell(seat, GO);
    }

    fn tell(&self, seat: u16, command: u64) {
        debug_assert!(usize::from(seat) < self.layout.sizes.seats, "seat {seat} does not exist");
        self.words().word(self.layout.command(seat)).store(command, SeqCst);
        protocol::wake_seat(self.words(), &self.layout, seat);
    }

    /// Prepares a seat for another worker, which takes no request before it is admitted. The last
    /// one must have ended.
    pub fn clear_seat(&self, seat: u16) {
        debug_assert!(usize::from(seat) < self.layout.sizes.seats, "seat {seat} does not exist");
        self.words().word(self.layout.command(seat)).store(WAIT, SeqCst);
        protocol::forget_sleeper(self.words(), &self.layout, seat);
    }

    /// Notes that the worker in a seat has ended. It must not be woken in place of another one, and
    /// another one that it was about to wake must not sleep on.
    pub fn forget_sleeper(&self, seat: u16) {
        protocol::forget_sleeper(self.words(), &self.layout, seat);
        protocol::make_up_for_end(self.words(), &self.layout);
    }

    /// Returns whether the worker in a seat says that it sleeps and can be woken.
    pub fn is_asleep(&self, seat: u16) -> bool {
        protocol::is_asleep(self.words(), &self.layout, seat)
    }

    /// Asks the worker in a seat to look at the queue. If it sleeps, [`Ring::is_asleep`] is false
    /// until it has looked.
    pub fn ask_to_look(&self, seat: u16) {
        debug_assert!(usize::from(seat) < self.layout.sizes.seats, "seat {seat} does not exist");
        protocol::forget_sleeper(self.words(), &self.layout, seat);
        protocol::wake_seat(self.words(), &self.layout, seat);
    }

    /// Wakes a worker for requests that were put into the queue, unless one has claimed them
    /// already, or one that was woken has not looked yet.
    pub fn wake_for_put(&self) {
        protocol::wake_for_waiting(self.words(), &self.layout);
    }

    /// Wakes a worker if there is a request that nobody has claimed. Workers do so by themselves.
    /// But the one that was woken may have been stopped or killed.
    pub fn wake_for_waiting(&self) {
        if protocol::first_in_queue(self.words(), &self.layout).is_some() {
            protocol::wake_sleeper(self.words(), &self.layout);
        }
    }

    /// Returns whether there is a request that nobody has claimed.
    pub fn has_waiting(&self) -> bool {
        self.first_waiting().is_some()
    }

    /// Returns the slot of the oldest request that nobody has claimed. A worker that lies may have
    /// written that of another one.
    pub fn first_waiting(&self) -> Option<u16> {
        protocol::first_in_queue(self.words(), &self.layout).map(|(_, slot)| slot)
    }

    /// Writes a request of two parts. Returns its length.
    pub(crate) fn write_request(&self, slot: u16, parts: [&[u8]; 2]) -> usize {
        let room = self.layout.sizes.request_bytes;
        copy::write(self.words(), self.layout.request(slot), parts, room)
    }
}
