//! Random steps of a front and its workers, compared with a simple model of a ring.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kirin_ring::worker::{Taken, Turn, Worker};
use kirin_ring::{Claim, NoPlace, Phase, Queue, Ring, Sizes};
use proptest::prelude::*;

/// Few slots, so that positions go round the cells of the queue often.
const SIZES: Sizes = Sizes { slots: 3, seats: 3, loops: 2, request_bytes: 64, answer_bytes: 128 };

/// The cells of the queue for so many slots.
const CELLS: u64 = 8;

#[derive(Clone, Debug)]
enum Step {
    /// The front puts a request of these bytes, or one that goes over the connection.
    Put {
        event_loop: usize,
        bytes: Option<Vec<u8>>,
    },
    /// The front takes the request back that is the first, second, … of those in use.
    Withdraw(usize),
    /// The front looks at what is finished for a loop, and frees those slots.
    Collect(usize),
    /// The worker in a seat looks for a request, if it has none.
    Look(u16),
    /// The worker goes on with its request: to the application, to the answer, to the cleanup.
    Begin(u16),
    Answer {
        seat: u16,
        bytes: Vec<u8>,
        cleans_up: bool,
    },
    /// The worker goes on with its request over the connection.
    ChangeToConnection(u16),
    /// The front has read the answer from the connection.
    Admit(u16),
    Leave(u16),
    /// The worker ends. The front frees its slot, and another worker gets the seat.
    End(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = |most: usize| prop::collection::vec(any::<u8>(), 0..=most);
    let (event_loop, seat) = (0..SIZES.loops, 0..SIZES.seats as u16);
    let (put, answer) = (prop::option::of(bytes(80)), bytes(140));
    prop_oneof![
        6 => (event_loop.clone(), put).prop_map(|(event_loop, bytes)| Step::Put { event_loop, bytes }),
        2 => (0..SIZES.slots).prop_map(Step::Withdraw),
        3 => event_loop.prop_map(Step::Collect),
        6 => seat.clone().prop_map(Step::Look),
        2 => seat.clone().prop_map(Step::Begin),
        5 => (seat.clone(), answer, any::<bool>())
            .prop_map(|(seat, bytes, cleans_up)| Step::Answer { seat, bytes, cleans_up }),
        1 => seat.clone().prop_map(Step::ChangeToConnection),
        2 => seat.clone().prop_map(Step::Admit),
        1 => seat.clone().prop_map(Step::Leave),
        1 => seat.prop_map(Step::End),
    ]
}

/// A request in a slot.
#[derive(Debug)]
struct Request {
    position: u64,
    event_loop: usize,
    bytes: Option<Vec<u8>>,
    claim: Claim,
    phase: Phase,
    answer: Option<Vec<u8>>,
}

/// A worker: what the front has told it, and its request.
#[derive(Debug)]
struct Seat {
    command: Command,
    taken: Option<Taken>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Command {
    Wait,
    Leave,
    Go,
}

/// The model, beside the ring that it describes.
struct Model<'a> {
    ring: &'a Ring,
    queue: Queue,
    requests: BTreeMap<u16, Request>,
    /// The slots of the requests that no worker has claimed.
    waiting: VecDeque<u16>,
    finished: Vec<BTreeSet<u16>>,
    seats: Vec<Seat>,
    next: u64,
}

impl<'a> Model<'a> {
    fn new(ring: &'a Ring) -> Self {
        let seats = (0..SIZES.seats as u16).map(|seat| {
            ring.admit(seat);
            Seat { command: Command::Go, taken: None }
        });
        Self {
            ring,
            queue: Queue::new(ring),
            requests: BTreeMap::new(),
            waiting: VecDeque::new(),
            finished: vec![BTreeSet::new(); SIZES.loops],
            seats: seats.collect(),
            next: 1,
        }
    }

    fn worker(&self, seat: u16) -> Worker<'a> {
        Worker::new(self.ring, seat)
    }

    fn seat(&mut self, seat: u16) -> &mut Seat {
        &mut self.seats[usize::from(seat)]
    }

    /// Returns the position of the first request that waits, or of the next one.
    fn head(&self) -> u64 {
        self.waiting.front().map_or(self.next, |slot| self.requests[slot].position)
    }

    fn free(&mut self, slot: u16) {
        self.queue.free(slot);
        self.requests.remove(&slot).expect("the slot is in use");
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Put { event_loop, bytes } => self.put(event_loop, bytes),
            Step::Withdraw(number) => self.withdraw(number),
            Step::Collect(event_loop) => self.collect(event_loop),
            Step::Look(seat) => self.look(seat),
            Step::Begin(seat) => {
                if let Some(taken) = &self.seats[usize::from(seat)].taken
                    && self.requests[&taken.slot].phase == Phase::Queued
                {
                    self.worker(seat).set_phase(taken, Phase::Running);
                    self.requests.get_mut(&taken.slot).unwrap().phase = Phase::Running;
                }
            }
            Step::Answer { seat, bytes, cleans_up } => self.answer(seat, bytes, cleans_up),
            Step::ChangeToConnection(seat) => self.change_to_connection(seat),
            Step::Admit(seat) => {
                self.ring.admit(seat);
                self.seat(seat).command = Command::Go;
            }
            Step::Leave(seat) => {
                self.ring.leave(seat);
                self.seat(seat).command = Command::Leave;
            }
            Step::End(seat) => self.end(seat),
        }
    }

    fn put(&mut self, event_loop: usize, bytes: Option<Vec<u8>>) {
        let half = bytes.as_ref().map_or(0, |bytes| bytes.len() / 2);
        let parts = bytes.as_ref().map(|bytes| [&bytes[..half], &bytes[half..]]);
        let put = self.queue.put(self.ring, event_loop, parts);
        if self.requests.len() == SIZES.slots || self.next - self.head() >= CELLS {
            assert_eq!(put, Err(NoPlace));
            return;
        }
        let slot = put.unwrap();
        let bytes = bytes.map(|mut bytes| {
            bytes.truncate(SIZES.request_bytes);
            bytes
        });
        let (position, claim, phase) = (self.next, Claim::Nobody, Phase::Queued);
        let request = Request { position, event_loop, bytes, claim, phase, answer: None };
        assert!(self.requests.insert(slot, request).is_none(), "slot {slot} was in use");
        self.waiting.push_back(slot);
        self.next += 1;
    }

    fn withdraw(&mut self, number: usize) {
        let Some(slot) = self.requests.keys().nth(number).copied() else { return };
        let waits = self.requests[&slot].claim == Claim::Nobody;
        assert_eq!(self.queue.withdraw(self.ring, slot), waits, "slot {slot}");
        if waits {
            assert_eq!(self.queue.claim(self.ring, slot), Claim::Withdrawn);
            self.waiting.retain(|waiting| *waiting != slot);
            self.free(slot);
        }
    }

    fn collect(&mut self, event_loop: usize) {
        let wanted = std::mem::take(&mut self.finished[event_loop]);
        assert_eq!(self.ring.has_finished(event_loop), !wanted.is_empty());
        assert_eq!(self.ring.fall_asleep(event_loop), wanted.is_empty());
        self.ring.wake_up(event_loop);
        let mut found = BTreeSet::new();
        self.ring.finished(event_loop, |slot| assert!(found.insert(slot), "slot {slot} twice"));
        assert_eq!(found, wanted);
        for slot in found {
            // A slot may have been freed since, or its request may be another one.
            let request = self.requests.get(&slot).map(|request| request.phase);
            if let Some(Phase::Answered | Phase::CleanedUp | Phase::OverConnection) = request {
                self.free(slot);
            }
        }
    }

    fn look(&mut self, seat: u16) {
        if self.seat(seat).taken.is_some() {
            return;
        }
        let turn = self.worker(seat).look();
        let first = self.waiting.front().copied();
        match (self.seat(seat).command, first) {
            (Command::Wait, _) | (Command::Go, None) => assert_eq!(turn, Turn::Empty),
            (Command::Leave, _) => assert_eq!(turn, Turn::Leave),
            (Command::Go, Some(slot)) => {
                let Turn::Request(taken) = turn else { panic!("{turn:?}, not slot {slot}") };
                self.waiting.pop_front();
                let request = self.requests.get_mut(&slot).unwrap();
                request.claim = Claim::Seat(seat);
                assert_eq!(taken.slot, slot);
                assert_eq!(taken.over_connection, request.bytes.is_none());
                self.seat(seat).taken = Some(taken);
            }
        }
    }

    fn answer(&mut self, seat: u16, bytes: Vec<u8>, cleans_up: bool) {
        let Some(taken) = self.seat(seat).taken.take() else { return };
        let worker = self.worker(seat);
        let request = self.requests.get_mut(&taken.slot).unwrap();
        let was_answered = request.phase == Phase::AnsweredBeforeCleanup;
        request.phase = match (was_answered, cleans_up) {
            (true, _) => Phase::CleanedUp,
            (false, true) => Phase::AnsweredBeforeCleanup,
            (false, false) => Phase::Answered,
        };
        if !was_answered {
            worker.write_answer(&taken, &bytes);
            request.answer = Some(bytes[..bytes.len().min(SIZES.answer_bytes)].to_vec());
        }
        worker.set_phase(&taken, request.phase);
        assert!(!worker.report(&taken), "the loop is awake");
        let (phase, event_loop) = (request.phase, request.event_loop);
        self.finished[event_loop].insert(taken.slot);
        if phase == Phase::AnsweredBeforeCleanup {
            self.seat(seat).taken = Some(taken);
        }
    }

    fn change_to_connection(&mut self, seat: u16) {
        let Some(taken) = self.seat(seat).taken.take() else { return };
        if self.requests[&taken.slot].phase == Phase::AnsweredBeforeCleanup {
            self.seat(seat).taken = Some(taken);
            return;
        }
        assert!(!self.worker(seat).change_to_connection(&taken), "the loop is awake");
        let request = self.requests.get_mut(&taken.slot).unwrap();
        request.phase = Phase::OverConnection;
        let event_loop = request.event_loop;
        self.finished[event_loop].insert(taken.slot);
        let seat = self.seat(seat);
        if seat.command == Command::Go {
            seat.command = Command::Wait;
        }
    }

    fn end(&mut self, seat: u16) {
        self.ring.forget_sleeper(seat);
        if let Some(taken) = self.seat(seat).taken.take() {
            self.free(taken.slot);
        }
        self.ring.clear_seat(seat);
        self.seat(seat).command = Command::Wait;
    }

    /// Compares all that the front can see.
    fn compare(&self) {
        assert_eq!(self.queue.used(), self.requests.len());
        assert_eq!(self.ring.has_waiting(), !self.waiting.is_empty());
        for (slot, request) in &self.requests {
            assert_eq!(self.queue.claim(self.ring, *slot), request.claim, "slot {slot}");
            assert_eq!(self.ring.phase(*slot), request.phase, "slot {slot}");
            if let Some(bytes) = &request.bytes {
                assert_eq!(&self.ring.request(*slot), bytes, "slot {slot}");
            }
            let answer = self.ring.answer(*slot).unwrap();
            assert_eq!(&answer, request.answer.as_deref().unwrap_or_default(), "slot {slot}");
        }
    }
}

proptest! {
    #[test]
    fn a_ring_does_what_its_model_does(steps in prop::collection::vec(step(), 1..300)) {
        let ring = Ring::create("model", SIZES).unwrap();
        let mut model = Model::new(&ring);
        for step in steps {
            model.take(step);
            model.compare();
        }
    }
}
