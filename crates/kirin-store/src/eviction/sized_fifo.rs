//! A queue of items of all sizes. It finds the one of its oldest items that is worth least.
//!
//! Items compete for bytes: an item of 10 KB takes the room of ten items of 1 KB. If every request
//! counts the same, a large item should leave earlier than a small one. This is the size-adjusted
//! LRU of Aggarwal, Wolf and Yu, IEEE TKDE 1999. They keep one list for each doubling of size, as
//! this queue does.
//!
//! The next item to leave is the oldest of the list in which age × size is largest. Size counts
//! with an exponent of three quarters. With an exponent of 1 the fewest requests miss, and with 0
//! the fewest bytes do. Three quarters has most of both gains (`docs/store.md` has the numbers).
//!
//! Age is counted in ticks of [`TurnoverClock`], which 16 bits of the slot hold.

use crate::eviction::list::List;
use crate::memory::slab::{Slab, Slot, status};

/// The number of lists. The last one takes all items that are too large for the others.
const CLASSES: usize = 24;

/// The first list takes all items smaller than twice this power of two.
const FIRST_CLASS_LOG2: u32 = 6;

/// The position of the class in [`Slot::status`]: the bits below it are flags.
const CLASS_SHIFT: u32 = 2;

const _: () =
    assert!(CLASSES << CLASS_SHIFT <= u8::MAX as usize && status::FLAGS < 1 << CLASS_SHIFT);

/// The number of ticks in which as many items enter as there are in the shard.
const TICKS_PER_TURNOVER: usize = 64;

/// The clock of a queue. It advances when items enter.
#[derive(Debug, Default)]
pub(crate) struct TurnoverClock {
    tick: u16,
    /// Items that have entered since the last tick.
    entered: usize,
}

impl TurnoverClock {
    /// Counts an item that enters a shard with `items` items.
    pub(crate) fn count(&mut self, items: usize) {
        self.entered += 1;
        if self.entered * TICKS_PER_TURNOVER >= items {
            self.entered = 0;
            self.tick = self.tick.wrapping_add(1);
        }
    }
}

/// A queue of a shard.
#[derive(Debug, Default)]
pub(crate) struct SizedFifo {
    lists: [List; CLASSES],
    /// The lists that are not empty, one bit each.
    occupied: u32,
}

impl SizedFifo {
    /// Adds a slot that is in no list. `bytes` is the size of its item.
    pub(crate) fn push(
        &mut self,
        slab: &mut Slab,
        index: u32,
        bytes: usize,
        clock: &TurnoverClock,
    ) {
        slab.get_mut(index).entered = clock.tick;
        self.enter(slab, index, bytes);
    }

    fn enter(&mut self, slab: &mut Slab, index: u32, bytes: usize) {
        let class = class_of(bytes);
        slab.get_mut(index).set_class(class);
        debug_assert!(self.is_marked(class), "the mark of list {class} is wrong");
        self.lists[class].push(slab, index);
        self.occupied |= 1 << class;
    }

    /// Returns whether the bit of a list says whether it has an item.
    fn is_marked(&self, class: usize) -> bool {
        (self.occupied & 1 << class != 0) == self.lists[class].tail().is_some()
    }

    /// Takes out a slot that is in this queue.
    pub(crate) fn unlink(&mut self, slab: &mut Slab, index: u32) {
        let class = slab.get(index).class();
        debug_assert!(self.lists[class].tail().is_some(), "slot {index} is in an empty list");
        let list = &mut self.lists[class];
        list.unlink(slab, index);
        if list.tail().is_none() {
            self.occupied &= !(1 << class);
        }
        debug_assert!(self.is_marked(class), "the mark of list {class} is wrong");
    }

    /// Notes that the item in a slot has changed its size. It keeps its age.
    pub(crate) fn resize(&mut self, slab: &mut Slab, index: u32, bytes: usize) {
        if slab.get(index).class() != class_of(bytes) {
            self.unlink(slab, index);
            self.enter(slab, index, bytes);
        }
    }

    /// Returns the slot that should leave next, but never `protected`.
    pub(crate) fn last(
        &self,
        slab: &Slab,
        clock: &TurnoverClock,
        protected: Option<u32>,
    ) -> Option<u32> {
        let mut occupied = self.occupied;
        let mut last = None;
        while occupied != 0 {
            let class = occupied.trailing_zeros() as usize;
            occupied &= occupied - 1;
            let list = &self.lists[class];
            let Some(index) = list
                .tail()
                .filter(|&tail| Some(tail) != protected)
                .or_else(|| list.iter(slab).nth(1))
            else {
                continue;
            };
            let costs = slab.get(index).cost(class, clock);
            if last.is_none_or(|(most, _)| costs > most) {
                last = Some((costs, index));
            }
        }
        last.map(|(_, index)| index)
    }

    /// Lists all slots, from about those that would leave first to the newest.
    pub(crate) fn in_order(&self, slab: &Slab, clock: &TurnoverClock) -> Vec<u32> {
        let mut costs: Vec<(u64, u32)> = Vec::new();
        for (class, list) in self.lists.iter().enumerate() {
            let mut before = u64::MAX;
            for index in list.iter(slab) {
                // However old an item is, the items before it in its list leave first.
                before = before.min(slab.get(index).cost(class, clock));
                costs.push((before, index));
            }
        }
        // The sort is stable, so the items of one list stay in order.
        costs.sort_by_key(|&(costs, _)| std::cmp::Reverse(costs));
        costs.into_iter().map(|(_, index)| index).collect()
    }
}

/// Returns the list for an item of this size. `bytes` does not include the slot.
fn class_of(bytes: usize) -> usize {
    let log2 = (bytes + size_of::<Slot>()).ilog2();
    (log2.saturating_sub(FIRST_CLASS_LOG2) as usize).min(CLASSES - 1)
}

/// Returns the size to the power of three quarters, times 64.
const fn weight(class: usize) -> u64 {
    // 64 × 2 to the power of 0, ¼, ½ and ¾.
    const QUARTERS: [u64; 4] = [64, 76, 91, 108];
    QUARTERS[class * 3 % 4] << (class * 3 / 4)
}

impl Slot {
    fn class(&self) -> usize {
        (self.status >> CLASS_SHIFT) as usize
    }

    fn set_class(&mut self, class: usize) {
        self.status = self.status & status::FLAGS | (class << CLASS_SHIFT) as u8;
    }

    /// Returns what it has cost to keep the item since it entered its list.
    fn cost(&self, class: usize, clock: &TurnoverClock) -> u64 {
        // An item that has seen no tick counts as half a tick old. Otherwise sizes would not matter
        // among the newest.
        let half_ticks = u64::from(clock.tick.wrapping_sub(self.entered)) * 2 + 1;
        half_ticks * weight(class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// A queue with its slots, and the sizes of the items in it, oldest first.
    #[derive(Default)]
    struct Tested {
        slab: Slab,
        clock: TurnoverClock,
        queue: SizedFifo,
        there: Vec<(u32, usize, u16)>,
    }

    impl Tested {
        fn push(&mut self, bytes: usize) -> u32 {
            let index = self.slab.take();
            self.queue.push(&mut self.slab, index, bytes, &self.clock);
            self.there.push((index, bytes, self.clock.tick));
            index
        }

        fn pass(&mut self, ticks: u16) {
            self.clock.tick = self.clock.tick.wrapping_add(ticks);
        }

        fn last(&self) -> Option<u32> {
            self.queue.last(&self.slab, &self.clock, None)
        }
    }

    #[test]
    fn the_larger_of_two_old_items_leaves_first_unless_the_small_one_is_much_older() {
        let mut tested = Tested::default();
        let small = tested.push(600);
        let large = tested.push(600 * 16);
        assert_eq!(tested.last(), Some(large));
        assert_eq!(tested.queue.last(&tested.slab, &tested.clock, Some(large)), Some(small));
        // 16 to the power of three quarters is 8.
        for (ticks, last) in [(6, large), (4, small)] {
            tested.queue.unlink(&mut tested.slab, large);
            tested.pass(ticks);
            tested.queue.push(&mut tested.slab, large, 600 * 16, &tested.clock);
            tested.pass(1);
            assert_eq!(tested.last(), Some(last), "{ticks}");
        }
    }

    #[test]
    fn an_item_that_grows_has_its_new_size_and_its_old_age() {
        let mut tested = Tested::default();
        let grown = tested.push(100);
        tested.pass(5);
        let other = tested.push(10_000);
        tested.pass(5);
        assert_eq!(tested.last(), Some(other));
        tested.queue.resize(&mut tested.slab, grown, 10_000);
        assert_eq!(
            tested.queue.in_order(&tested.slab, &tested.clock),
            [other, grown],
            "behind it in its list"
        );
        tested.queue.unlink(&mut tested.slab, other);
        assert_eq!(tested.last(), Some(grown));
        assert_eq!(tested.slab.get(grown).entered, 0);
    }

    #[test]
    fn weights_grow_with_size_by_the_power_of_three_quarters() {
        for class in 0..CLASSES {
            let exact = 64.0 * 2f64.powf(class as f64 * 0.75);
            assert!((weight(class) as f64 / exact - 1.0).abs() < 0.01, "{class}");
        }
        assert_eq!(
            (class_of(0), class_of(87), class_of(88), class_of(usize::MAX / 2)),
            (0, 0, 1, CLASSES - 1)
        );
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        Unlink(usize),
        Resize(usize, usize),
        Evict,
        Pass(u16),
    }

    fn step() -> impl Strategy<Value = Step> {
        let bytes = || prop_oneof![0usize..300, 0usize..20_000, 0usize..(64 << 20)];
        prop_oneof![
            4 => bytes().prop_map(Step::Push),
            1 => any::<usize>().prop_map(Step::Unlink),
            1 => (any::<usize>(), bytes()).prop_map(|(at, bytes)| Step::Resize(at, bytes)),
            2 => Just(Step::Evict),
            2 => (0u16..500).prop_map(Step::Pass),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn the_costliest_of_the_oldest_items_of_each_size_leaves(steps in vec(step(), 1..200)) {
            let mut tested = Tested::default();
            for step in steps {
                let count = tested.there.len().max(1);
                match step {
                    Step::Push(bytes) => {
                        tested.push(bytes);
                    }
                    Step::Pass(ticks) => tested.pass(ticks),
                    Step::Unlink(at) if !tested.there.is_empty() => {
                        let (index, ..) = tested.there.remove(at % count);
                        tested.queue.unlink(&mut tested.slab, index);
                        tested.slab.release(index);
                    }
                    Step::Resize(at, bytes) if !tested.there.is_empty() => {
                        let (index, old_bytes, tick) = tested.there[at % count];
                        tested.queue.resize(&mut tested.slab, index, bytes);
                        if class_of(old_bytes) != class_of(bytes) {
                            tested.there.remove(at % count);
                            tested.there.push((index, bytes, tick));
                        } else {
                            tested.there[at % count].1 = bytes;
                        }
                    }
                    Step::Evict => {
                        let mut oldest = std::collections::BTreeMap::new();
                        for &(index, bytes, tick) in &tested.there {
                            oldest.entry(class_of(bytes)).or_insert((index, tick));
                        }
                        let cost = |class: usize, tick: u16| {
                            let age = f64::from(tested.clock.tick.wrapping_sub(tick)) + 0.5;
                            age * 2f64.powf(class as f64 * 0.75)
                        };
                        let costs = oldest.iter().map(|(&class, &(_, tick))| cost(class, tick));
                        let most = costs.fold(0.0, f64::max);
                        let last = tested.last();
                        prop_assert_eq!(last.is_some(), !tested.there.is_empty());
                        let Some(last) = last else { continue };
                        let found = oldest.iter().find(|(_, (index, _))| *index == last);
                        let Some((&class, &(_, tick))) = found else {
                            return Err(TestCaseError::fail("not the oldest of its size"));
                        };
                        let cost = cost(class, tick);
                        prop_assert!(cost >= most * 0.97, "{cost} of {most}");
                        tested.queue.unlink(&mut tested.slab, last);
                        tested.slab.release(last);
                        tested.there.retain(|&(index, ..)| index != last);
                    }
                    Step::Unlink(_) | Step::Resize(..) => {}
                }
                let mut order = tested.queue.in_order(&tested.slab, &tested.clock);
                prop_assert_eq!(order.first().copied(), tested.last());
                order.sort_unstable();
                let mut there: Vec<u32> = tested.there.iter().map(|&(index, ..)| index).collect();
                there.sort_unstable();
                prop_assert_eq!(order, there);
            }
        }
    }
}
