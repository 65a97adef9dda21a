//! The plan of a seed: which calls of a point fail, and how. It has no state.

/// One call in so many fails, at a point that the plan uses.
const RATES: [u64; 6] = [3, 10, 30, 100, 300, 1000];

/// What a plan does to one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PointPlan {
    key: u64,
    /// One call in so many fails; `None` for a point that the plan leaves alone.
    rate: Option<u64>,
}

/// A fault that the plan wants. What it means is for the point to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Draw(u64);

impl PointPlan {
    /// Returns what the plan of `seed` does to the point `name`.
    ///
    /// It leaves three points of five alone, so that the faults of the others meet a program whose
    /// other parts work.
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        let key = name.bytes().fold(mixed(seed), |key, byte| mixed(key ^ u64::from(byte)));
        let choice = mixed(key);
        let rate = (choice % 5 < 2).then(|| RATES[(choice >> 32) as usize % RATES.len()]);
        Self { key, rate }
    }

    /// Returns the fault of the call with this number, if it has one.
    pub(crate) fn draw(self, call: u64) -> Option<Draw> {
        let rate = self.rate?;
        let random = mixed(self.key ^ mixed(call));
        random.is_multiple_of(rate).then(|| Draw(mixed(random)))
    }
}

impl Draw {
    /// Returns a number below `end`, which must not be 0, and what is left for further choices.
    pub(crate) fn below(self, end: u64) -> (u64, Draw) {
        (self.0 % end, Draw(mixed(self.0)))
    }
}

/// Returns a number whose bits depend on all bits of `number` (splitmix64).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(seed: u64, name: &str) -> Vec<u64> {
        let plan = PointPlan::new(seed, name);
        (0..10_000).filter(|call| plan.draw(*call).is_some()).collect()
    }

    #[test]
    fn a_plan_depends_on_the_seed_and_the_name_only() {
        let seeds = 0..50;
        for seed in seeds.clone() {
            assert_eq!(faults(seed, "a.read"), faults(seed, "a.read"));
        }
        assert!(seeds.clone().any(|seed| faults(seed, "a.read") != faults(seed, "a.write")));
        assert!(seeds.clone().any(|seed| faults(seed, "a.read") != faults(seed + 1, "a.read")));
    }

    #[test]
    fn two_points_of_five_fail_and_each_at_one_of_the_rates() {
        let all: Vec<_> = (0..1000).map(|seed| faults(seed, "file.open").len() as u64).collect();
        let used = all.iter().filter(|count| **count > 0).count();
        assert!((350..450).contains(&used), "{used}");
        for count in all.into_iter().filter(|count| *count > 0) {
            let near = |rate: &u64| {
                (10_000 / rate * 3 / 5 - 4..10_000 / rate * 7 / 5 + 12).contains(&count)
            };
            assert!(RATES.iter().any(near), "{count} of 10,000");
        }
    }

    #[test]
    fn choices_of_one_fault_differ() {
        let (first, rest) = Draw(7).below(1 << 40);
        let (second, _) = rest.below(1 << 40);
        assert_ne!(first, second);
    }
}
