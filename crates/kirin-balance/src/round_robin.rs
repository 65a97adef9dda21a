//! Weighted round robin, as evenly in time as the weights allow. nginx uses the same method.

/// The state of one event loop.
#[derive(Debug)]
pub(crate) struct RoundRobin {
    credit: Vec<i64>,
    /// The sum of the weights of the last turn, which no credit exceeds.
    total: i64,
}

impl RoundRobin {
    pub(crate) fn new(servers: usize) -> Self {
        Self { credit: vec![0; servers], total: 0 }
    }

    /// Returns the next of `candidates`, which are indices with weights. Each candidate gains its
    /// weight as credit. The one with the most credit is chosen and pays the sum of the weights.
    ///
    /// Weights may have become smaller. What a server has gained by greater ones is forgotten, or
    /// it would get all requests for a while.
    pub(crate) fn next(&mut self, candidates: impl Iterator<Item = (usize, u64)>) -> Option<usize> {
        let mut total = 0;
        let mut best: Option<(usize, i64)> = None;
        for (index, weight) in candidates {
            debug_assert!(index < self.credit.len(), "server {index} never gets a turn");
            let Some(credit) = self.credit.get_mut(index) else { continue };
            let weight = i64::try_from(weight).unwrap_or(i64::MAX / 1024);
            *credit = (*credit).clamp(-self.total, self.total) + weight;
            total += weight;
            if best.is_none_or(|(_, most)| *credit > most) {
                best = Some((index, *credit));
            }
        }
        self.total = total;
        let (index, _) = best?;
        if let Some(credit) = self.credit.get_mut(index) {
            *credit -= total;
        }
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_follow_the_weights_and_are_spread() {
        let mut turns = RoundRobin::new(3);
        let order: Vec<usize> =
            (0..7).filter_map(|_| turns.next([(0, 5), (1, 1), (2, 1)].into_iter())).collect();
        assert_eq!(order, [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn a_server_that_had_a_small_weight_does_not_make_up_for_it() {
        let mut turns = RoundRobin::new(2);
        for _ in 0..500 {
            assert_eq!(turns.next([(0, 1000), (1, 1)].into_iter()), Some(0));
        }
        let of_second = (0..20)
            .filter_map(|_| turns.next([(0, 1), (1, 1)].into_iter()))
            .filter(|index| *index == 1);
        assert!((10..=13).contains(&of_second.count()));
    }

    #[test]
    fn a_server_does_not_make_up_for_turns_while_it_was_away() {
        let mut turns = RoundRobin::new(2);
        for _ in 0..1000 {
            assert_eq!(turns.next([(0, 1)].into_iter()), Some(0));
        }
        let order: Vec<usize> =
            (0..4).filter_map(|_| turns.next([(0, 1), (1, 1)].into_iter())).collect();
        assert_eq!(order, [0, 1, 0, 1]);
        assert_eq!(turns.next(std::iter::empty()), None);
    }
}
