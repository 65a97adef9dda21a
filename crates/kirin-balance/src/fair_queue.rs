//! A queue that clients share fairly. The requests of one client neither delay nor displace those
//! of the others.
//!
//! Requests are served in rounds. Each round serves one request of each client: the n-th waiting
//! request of a client is served in the n-th round from now. So a single client, and clients with
//! one request each, are served in order of arrival. A client that floods the queue delays only
//! itself.
//!
//! The rounds belong to clients. Which of its requests a client has served in a round of its own is
//! no other client's business. So a request that is served early takes the turn of its client's
//! first one, and one that comes back takes the turn that its age gives it.
//!
//! In a full queue, a new request displaces the request that would be served last, if that belongs
//! to a later round. So a flood fills the queue only while no other client needs the places.
//!
//! No I/O; the caller decides what waits. The queues of upstreams and applications use it, and so
//! do the password checks.

use std::collections::{HashMap, VecDeque};

/// The client of a request, as a number for its address. All requests without a known address
/// belong to one client.
pub type ClientKey = Option<u64>;

/// The position that a request got in the order of service. It may have that of another request of
/// its client by now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    round: u64,
    /// The number of the request.
    number: u64,
}

/// Waiting requests, in the order of their tickets.
#[derive(Debug)]
pub struct FairQueue<T> {
    limit: usize,
    entries: VecDeque<WaitingEntry<T>>,
    /// The clients with waiting requests.
    shares: HashMap<ClientKey, Share>,
    /// The round that is being served.
    round: u64,
    next_number: u64,
}

#[derive(Debug)]
struct WaitingEntry<T> {
    /// The position.
    ticket: Ticket,
    /// The number of the request that has it.
    number: u64,
    client: ClientKey,
    value: T,
}

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    waiting: usize,
    /// The round of its newest request.
    last_round: u64,
}

/// A place in the queue.
#[derive(Debug)]
pub struct FairPlace<T> {
    /// The ticket with which the request leaves the queue.
    pub ticket: Ticket,
    /// The request that this one has displaced.
    pub displaced: Option<T>,
}

impl<T> FairQueue<T> {
    /// Returns a queue in which at most `limit` requests wait.
    pub fn new(limit: usize) -> Self {
        Self { limit, entries: VecDeque::new(), shares: HashMap::new(), round: 0, next_number: 0 }
    }

    /// Returns how many requests may wait.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Lets at most `limit` requests wait from now on. Those that wait already stay.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Returns how many requests wait.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns whether a new request waits only if it displaces another.
    pub fn is_full(&self) -> bool {
        self.len() >= self.limit
    }

    /// Adds a request of `client`. Returns `value` as an error if the queue is full and the
    /// client's share is not smaller than that of the others.
    pub fn enter(&mut self, client: ClientKey, value: T) -> Result<FairPlace<T>, T> {
        let round = self.next_round(client);
        let mut displaced = None;
        if self.is_full() {
            if self.entries.back().is_none_or(|last| last.ticket.round <= round) {
                return Err(value);
            }
            displaced = self.remove(self.len() - 1);
        }
        let ticket = self.new_ticket(round);
        self.insert(ticket, client, value);
        Ok(FairPlace { ticket, displaced })
    }

    /// Adds a request that was here before at its old place, even if the queue is full.
    pub fn enter_again(&mut self, ticket: Ticket, client: ClientKey, value: T) {
        self.insert(ticket, client, value);
    }

    /// Adds a request that was here before and has lost its place, even if the queue is full. It
    /// comes before those requests of its client for which `is_later` is true, and delays no
    /// request of other clients more than a new one would.
    pub fn enter_before(
        &mut self,
        client: ClientKey,
        value: T,
        is_later: impl Fn(&T) -> bool,
    ) -> Ticket {
        let ticket = self.new_ticket(self.next_round(client));
        let index = self.insert(ticket, client, value);
        self.move_forward(index, is_later);
        ticket
    }

    /// Returns the round of a new request.
    fn next_round(&self, client: ClientKey) -> u64 {
        // A new request never joins the present round. Otherwise new requests could delay the next
        // round for ever.
        let last_round = self.shares.get(&client).map_or(self.round, |share| share.last_round);
        self.round.max(last_round) + 1
    }

    fn new_ticket(&mut self, round: u64) -> Ticket {
        debug_assert!(round > self.round, "a new request joins round {round} of {}", self.round);
        self.next_number += 1;
        Ticket { round, number: self.next_number }
    }

    /// Returns the index of the request.
    fn insert(&mut self, ticket: Ticket, client: ClientKey, value: T) -> usize {
        let share = self.shares.entry(client).or_default();
        share.waiting += 1;
        share.last_round = share.last_round.max(ticket.round);
        let index = self.entries.partition_point(|entry| entry.ticket < ticket);
        self.entries.insert(index, WaitingEntry { ticket, number: ticket.number, client, value });
        debug_assert!(self.is_in_order(index), "position {index} is not in the order of tickets");
        debug_assert!(self.shares.len() <= self.len(), "a client without a request has a share");
        index
    }

    /// Returns whether the tickets of the requests before and after this one are in order.
    fn is_in_order(&self, index: usize) -> bool {
        let ticket = |at: usize| self.entries.get(at).map(|entry| entry.ticket);
        let is_before = |one, two| ticket(one).zip(ticket(two)).is_none_or(|(a, b)| a <= b);
        is_before(index.saturating_sub(1), index) && is_before(index, index + 1)
    }

    /// Lets a request overtake the requests of its client that are right before it, as long as
    /// `is_later` is true for them. Each of them gets the next position of the client. Returns the
    /// new index.
    fn move_forward(&mut self, from: usize, is_later: impl Fn(&T) -> bool) -> usize {
        let mut at = from;
        for index in (0..from).rev() {
            let entry = &self.entries[index];
            if entry.client != self.entries[at].client {
                continue;
            }
            if !is_later(&entry.value) {
                break;
            }
            self.entries.swap(index, at);
            // The positions stay.
            let ticket = self.entries[index].ticket;
            self.entries[index].ticket = std::mem::replace(&mut self.entries[at].ticket, ticket);
            debug_assert!(self.is_in_order(at), "position {at} is not in the order of tickets");
            debug_assert!(self.is_in_order(index), "position {index} is not in the order");
            at = index;
        }
        at
    }

    /// Returns the request at this position.
    pub fn get(&self, index: usize) -> Option<&T> {
        self.entries.get(index).map(|entry| &entry.value)
    }

    /// Returns the request at this position, to change it.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.entries.get_mut(index).map(|entry| &mut entry.value)
    }

    /// Returns all requests in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|entry| &entry.value)
    }

    /// Returns the tickets of all requests in order.
    pub fn tickets(&self) -> impl Iterator<Item = Ticket> {
        self.entries.iter().map(|entry| entry.ticket)
    }

    /// Removes the request at this position because it is served. That is the turn of the first
    /// request of its client.
    pub fn serve(&mut self, index: usize) -> Option<T> {
        self.entries.get(index)?;
        let index = self.move_forward(index, |_| true);
        self.round = self.round.max(self.entries[index].ticket.round);
        self.remove(index)
    }

    /// Returns whether the client of the request at this position has its turn in the round of the
    /// first request. If so, serving it now keeps the order of rounds.
    pub fn has_turn(&self, index: usize) -> bool {
        let (Some(first), Some(entry)) = (self.entries.front(), self.entries.get(index)) else {
            return false;
        };
        let is_in_round = |other: &&WaitingEntry<T>| other.ticket.round == first.ticket.round;
        let mut in_round = self.entries.iter().take(index + 1).take_while(is_in_round);
        in_round.any(|other| other.client == entry.client)
    }

    /// Removes a request that leaves without being served.
    pub fn leave(&mut self, ticket: Ticket) -> Option<T> {
        let index = self.index_of(ticket)?;
        self.remove(index)
    }

    /// Returns the position of a request that still waits.
    pub fn index_of(&self, ticket: Ticket) -> Option<usize> {
        let is_it = |entry: &WaitingEntry<T>| entry.number == ticket.number;
        let known = self.entries.binary_search_by_key(&ticket, |entry| entry.ticket).ok();
        known
            .filter(|index| is_it(&self.entries[*index]))
            // Another request of its client has the position.
            .or_else(|| self.entries.iter().position(is_it))
    }

    /// Removes the requests for which `leaves` is true, without serving them.
    pub fn leave_if(&mut self, leaves: impl Fn(&T) -> bool) -> Vec<T> {
        let mut left = Vec::new();
        let mut index = 0;
        while let Some(entry) = self.entries.get(index) {
            if leaves(&entry.value) {
                left.extend(self.remove(index));
            } else {
                index += 1;
            }
        }
        left
    }

    /// Removes all requests. Those that come back with their tickets are placed before all new
    /// requests.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.shares.clear();
        self.round =
            self.entries.back().map_or(self.round, |last| self.round.max(last.ticket.round));
        self.entries.drain(..).map(|entry| entry.value)
    }

    fn remove(&mut self, index: usize) -> Option<T> {
        let entry = self.entries.remove(index)?;
        debug_assert!(self.shares.contains_key(&entry.client), "{:?} has no share", entry.client);
        if let Some(share) = self.shares.get_mut(&entry.client) {
            debug_assert!(share.waiting > 0, "{:?} has no request that waits", entry.client);
            share.waiting -= 1;
            if entry.ticket.round == share.last_round {
                // This was its newest request, so the round is free for another one.
                share.last_round = share.last_round.saturating_sub(1);
            }
            if share.waiting == 0 {
                self.shares.remove(&entry.client);
            }
        }
        debug_assert!(self.shares.len() <= self.len(), "a client without a request has a share");
        Some(entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Adds requests of these clients in this order. Each value is the client and the request's
    /// number.
    fn queue(limit: usize, clients: &[u64]) -> FairQueue<(u64, usize)> {
        let mut queue = FairQueue::new(limit);
        for (number, client) in clients.iter().enumerate() {
            queue.enter(Some(*client), (*client, number)).expect("room");
        }
        queue
    }

    fn serve_all(queue: &mut FairQueue<(u64, usize)>) -> Vec<usize> {
        std::iter::from_fn(|| queue.serve(0)).map(|(_, number)| number).collect()
    }

    #[test]
    fn one_client_and_clients_with_one_request_each_are_served_in_order() {
        assert_eq!(serve_all(&mut queue(9, &[7, 7, 7, 7])), [0, 1, 2, 3]);
        assert_eq!(serve_all(&mut queue(9, &[7, 3, 9, 1])), [0, 1, 2, 3]);
    }

    #[test]
    fn a_newcomer_waits_for_one_request_of_each_client_and_not_for_a_flood() {
        let mut queue = queue(9, &[1, 1, 1, 1, 2]);
        assert_eq!(queue.serve(0), Some((1, 0)));
        queue.enter(Some(3), (3, 5)).expect("room");
        assert_eq!(serve_all(&mut queue), [4, 1, 5, 2, 3]);
    }

    #[test]
    fn a_client_that_comes_again_does_not_overtake_those_that_have_waited() {
        let mut queue = queue(9, &[1, 1, 2, 2]);
        assert_eq!(queue.serve(0), Some((1, 0)));
        assert_eq!(queue.serve(0), Some((2, 2)));
        queue.enter(Some(1), (1, 4)).expect("room");
        queue.enter(Some(3), (3, 5)).expect("room");
        assert_eq!(serve_all(&mut queue), [1, 3, 5, 4]);
    }

    #[test]
    fn in_a_full_queue_a_newcomer_takes_the_place_of_the_flood() {
        let mut queue = queue(4, &[1, 1, 1, 1]);
        assert_eq!(
            queue.enter(Some(1), (1, 4)).err(),
            Some((1, 4)),
            "the flood has no more places"
        );
        for (client, displaced) in [(2, 3), (3, 2), (4, 1)] {
            let entered = queue.enter(Some(client), (client, 10)).expect("a place");
            assert_eq!(entered.displaced, Some((1, displaced)));
        }
        assert_eq!(queue.enter(Some(5), (5, 9)).err(), Some((5, 9)), "all have as much");
        assert_eq!(queue.len(), 4);
    }

    #[test]
    fn a_request_that_returns_with_its_ticket_keeps_its_position() {
        let mut queue = queue(3, &[1, 1]);
        let entered = queue.enter(Some(2), (2, 2)).expect("room");
        assert_eq!(queue.leave(entered.ticket), Some((2, 2)));
        assert_eq!(queue.leave(entered.ticket), None);
        queue.enter_again(entered.ticket, Some(2), (2, 2));
        assert_eq!(serve_all(&mut queue), [0, 2, 1]);
    }

    #[test]
    fn a_request_that_is_served_early_takes_the_turn_of_its_clients_first() {
        let mut queue = queue(9, &[1, 1, 1, 1]);
        assert_eq!(queue.serve(2), Some((1, 2)));
        queue.enter(Some(2), (2, 4)).expect("room");
        assert_eq!(serve_all(&mut queue), [0, 4, 1, 3]);
    }

    #[test]
    fn the_clients_of_the_first_round_have_the_turn_with_all_their_requests() {
        let mut queue = queue(9, &[1, 1, 2, 1, 2]);
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(|index| queue.has_turn(index)),
            [true, true, true, true, true, false]
        );
        assert_eq!(queue.serve(4), Some((1, 3)));
        assert_eq!(queue.iter().map(|(client, _)| *client).collect::<Vec<_>>(), [2, 1, 2, 1]);
        assert_eq!([0, 1, 2, 3].map(|index| queue.has_turn(index)), [true, false, true, false]);
    }

    #[test]
    fn a_request_whose_position_has_changed_still_leaves() {
        let mut queue = queue(9, &[1]);
        let second = queue.enter(Some(1), (1, 1)).expect("room").ticket;
        let third = queue.enter(Some(1), (1, 2)).expect("room").ticket;
        assert_eq!(queue.serve(2), Some((1, 2)));
        assert_eq!(queue.leave(third), None);
        assert_eq!(queue.leave(second), Some((1, 1)));
        assert_eq!(serve_all(&mut queue), [0]);
    }

    #[test]
    fn a_returning_request_precedes_only_later_ones_of_its_client() {
        let mut queue = FairQueue::new(3);
        for (client, age) in [(1, 5), (1, 6), (2, 7)] {
            queue.enter(Some(client), (client, age)).expect("room");
        }
        for age in [3, 1, 4] {
            queue.enter_before(Some(1), (1, age), |other| other.1 > age);
        }
        assert_eq!(serve_all(&mut queue), [1, 7, 3, 4, 5, 6]);
    }

    /// An event in a queue. The number of a service chooses among the requests.
    #[derive(Clone, Debug)]
    enum Step {
        Enter(u64),
        ComeBack(u64),
        Serve(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u64..4).prop_map(Step::Enter),
            1 => (0u64..4).prop_map(Step::ComeBack),
            2 => (0usize..20).prop_map(Step::Serve),
        ]
    }

    proptest! {
        /// Checks that, while a client waits for its next turn, each other client has at most two:
        /// one in the same round and one in the round before. Some requests are served early, and
        /// some come back. Clients that have gone leave nothing behind.
        #[test]
        fn clients_take_turns_after_any_sequence_of_operations(steps in prop::collection::vec(step(), 1..200)) {
            let mut queue = FairQueue::new(50);
            let mut served = [0usize; 4];
            // How often each client had been served when the other began to wait.
            let mut since: [Option<[usize; 4]>; 4] = [None; 4];
            for step in steps {
                match step {
                    Step::ComeBack(client) => {
                        queue.enter_before(Some(client), client, |_| true);
                        since[client as usize].get_or_insert(served);
                    }
                    Step::Enter(client) => {
                        let index = client as usize;
                        let Ok(entered) = queue.enter(Some(client), client) else { continue };
                        since[index].get_or_insert(served);
                        if let Some(displaced) = entered.displaced
                            && queue.iter().all(|other| *other != displaced)
                        {
                            since[displaced as usize] = None;
                        }
                    }
                    Step::Serve(choice) => {
                        let choice = if queue.has_turn(choice) { choice } else { 0 };
                        let Some(client) = queue.serve(choice) else { continue };
                        let index = client as usize;
                        served[index] += 1;
                        for waiting in (0..4).filter(|other| *other != index) {
                            if let Some(before) = since[waiting] {
                                prop_assert!(served[index] - before[index] <= 2);
                            }
                        }
                        let waits_on = queue.iter().any(|other| *other == client);
                        since[index] = waits_on.then_some(served);
                    }
                }
            }
            for _ in 0..queue.len() {
                queue.serve(0);
            }
            prop_assert!(queue.shares.is_empty());
        }
    }
}
