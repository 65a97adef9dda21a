//! A queue that clients share fairly. The requests of one client neither delay nor displace those
//! of the others.
//!
//! Requests are served in rounds. Each round serves one request of each client: the n-th waiting
//! request of a client is served in the n-th round from now. So a single client, and clients with
//! one request each, are served in order of arrival. A client that floods the queue delays only
//! itself.
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

/// The position of a request in the order of service.
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
    entries: VecDeque<Entry<T>>,
    /// The clients with waiting requests.
    shares: HashMap<ClientKey, Share>,
    /// The round that is being served.
    round: u64,
    next_number: u64,
}

#[derive(Debug)]
struct Entry<T> {
    ticket: Ticket,
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

    /// Adds a request of `client`. Returns `value` as an error if the queue is full and the
    /// client's share is not smaller than that of the others.
    pub fn enter(&mut self, client: ClientKey, value: T) -> Result<FairPlace<T>, T> {
        // A new request never joins the present round. Otherwise new requests could delay the next
        // round for ever.
        let last_round = self.shares.get(&client).map_or(self.round, |share| share.last_round);
        let round = self.round.max(last_round) + 1;
        let mut displaced = None;
        if self.len() >= self.limit {
            if self.entries.back().is_none_or(|last| last.ticket.round <= round) {
                return Err(value);
            }
            displaced = self.remove(self.len() - 1);
        }
        self.next_number += 1;
        let ticket = Ticket { round, number: self.next_number };
        self.enter_again(ticket, client, value);
        Ok(FairPlace { ticket, displaced })
    }

    /// Adds a request that was here before at its old place, even if the queue is full.
    pub fn enter_again(&mut self, ticket: Ticket, client: ClientKey, value: T) {
        let share = self.shares.entry(client).or_default();
        share.waiting += 1;
        share.last_round = share.last_round.max(ticket.round);
        let index = self.entries.partition_point(|entry| entry.ticket < ticket);
        self.entries.insert(index, Entry { ticket, client, value });
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

    /// Removes the request at this position because it is served.
    pub fn serve(&mut self, index: usize) -> Option<T> {
        self.round = self.round.max(self.entries.get(index)?.ticket.round);
        self.remove(index)
    }

    /// Removes a request that leaves without being served.
    pub fn leave(&mut self, ticket: Ticket) -> Option<T> {
        let index = self.entries.binary_search_by_key(&ticket, |entry| entry.ticket).ok()?;
        self.remove(index)
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
        if let Some(share) = self.shares.get_mut(&entry.client) {
            share.waiting -= 1;
            if entry.ticket.round == share.last_round {
                // This was its newest request, so the round is free for another one.
                share.last_round = share.last_round.saturating_sub(1);
            }
            if share.waiting == 0 {
                self.shares.remove(&entry.client);
            }
        }
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

    proptest! {
        /// Checks that, while a client waits for its next turn, each other client has at most two:
        /// one in the same round and one in the round before. Clients that have gone leave nothing
        /// behind.
        #[test]
        fn clients_take_turns_whatever_comes(
            steps in prop::collection::vec(prop::option::of(0u64..4), 1..200)
        ) {
            let mut queue = FairQueue::new(50);
            let mut served = [0usize; 4];
            // How often each client had been served when the other began to wait.
            let mut since: [Option<[usize; 4]>; 4] = [None; 4];
            for step in steps {
                match step {
                    Some(client) => {
                        let index = client as usize;
                        let Ok(entered) = queue.enter(Some(client), client) else { continue };
                        since[index].get_or_insert(served);
                        if let Some(displaced) = entered.displaced
                            && queue.iter().all(|other| *other != displaced)
                        {
                            since[displaced as usize] = None;
                        }
                    }
                    None => if let Some(client) = queue.serve(0) {
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
