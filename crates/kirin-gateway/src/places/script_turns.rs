//! The turns of the scripts of one event loop, so that long scripts do not delay its other clients.
//!
//! A script blocks the loop while it runs. Without turns, the loop would run every script whose
//! request is there before it reads its sockets again: sixty requests of 100 ms each take six
//! seconds. So when scripts have run for [`LONG`], the next one waits until the loop has served its
//! other work. Scripts take turns then, and requests of one script wait in their order.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::oneshot;

/// How long scripts run until the loop does its other work.
const LONG: Duration = Duration::from_millis(2);

/// The scripts that wait on one loop.
#[derive(Default)]
pub struct ScriptTurns {
    /// Whether scripts wait for their turn.
    is_taken: Cell<bool>,
    /// How long scripts have run since the loop did its other work.
    ran: Cell<Duration>,
    /// The calls that wait, by script, in the order of the scripts' turns.
    waiting: RefCell<VecDeque<(usize, VecDeque<oneshot::Sender<ScriptTurn>>)>>,
}

/// The right to run. Dropping it passes it on.
pub struct ScriptTurn(Rc<ScriptTurns>);

impl Drop for ScriptTurn {
    fn drop(&mut self) {
        self.0.pass_on();
    }
}

impl ScriptTurns {
    /// Returns whether a script may run without waiting for its turn.
    pub fn is_free(&self) -> bool {
        !self.is_taken.get()
    }

    /// Notes that a script ran for `time`.
    pub fn ran(self: &Rc<Self>, time: Duration) {
        self.ran.set(self.ran.get() + time);
        if self.is_free() && self.ran.get() >= LONG {
            self.is_taken.set(true);
            self.pass_on();
        }
    }

    /// Waits until a call of the script may run. `script` is a number that identifies it.
    pub async fn turn(self: &Rc<Self>, script: usize) -> Option<ScriptTurn> {
        if self.is_free() {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        self.queue(script, sender);
        receiver.await.ok()
    }

    fn queue(&self, script: usize, call: oneshot::Sender<ScriptTurn>) {
        let mut waiting = self.waiting.borrow_mut();
        match waiting.iter_mut().find(|(other, _)| *other == script) {
            Some((_, calls)) => calls.push_back(call),
            None => waiting.push_back((script, VecDeque::from([call]))),
        }
    }

    /// Lets the next script run: at once, or after the loop has done its other work.
    fn pass_on(self: &Rc<Self>) {
        if self.ran.get() < LONG {
            return self.next();
        }
        let turns = Rc::clone(self);
        tokio::task::spawn_local(async move {
            tokio::task::yield_now().await;
            turns.ran.set(Duration::ZERO);
            turns.next();
        });
    }

    fn next(self: &Rc<Self>) {
        loop {
            let Some((script, mut calls)) = self.waiting.borrow_mut().pop_front() else {
                self.is_taken.set(false);
                return;
            };
            let call = calls.pop_front();
            if !calls.is_empty() {
                self.waiting.borrow_mut().push_back((script, calls));
            }
            let Some(call) = call else { continue };
            // A call does not wait any more when its client has disconnected.
            if call.is_closed() {
                continue;
            }
            // A turn that is not received is dropped, and passed to the next call.
            let _ = call.send(ScriptTurn(Rc::clone(self)));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::{JoinHandle, LocalSet, spawn_local};

    /// The events, in their order.
    type Events = Rc<RefCell<Vec<String>>>;

    /// Starts a call that runs for `ran` when it has its turn.
    fn call(
        turns: &Rc<ScriptTurns>,
        events: &Events,
        script: usize,
        name: &str,
        ran: Duration,
    ) -> JoinHandle<()> {
        let (turns, events, name) = (Rc::clone(turns), Rc::clone(events), name.to_owned());
        spawn_local(async move {
            let turn = turns.turn(script).await;
            events.borrow_mut().push(name);
            turns.ran(ran);
            drop(turn);
        })
    }

    fn run(work: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        LocalSet::new().block_on(&runtime, work);
    }

    #[test]
    fn long_calls_let_the_loop_serve_others() {
        run(async {
            let (turns, events) = (Rc::<ScriptTurns>::default(), Events::default());
            turns.ran(LONG);
            assert!(!turns.is_free());
            let calls: Vec<_> =
                ["a", "b", "c"].map(|name| call(&turns, &events, 1, name, LONG)).into();
            let others = Rc::clone(&events);
            let other = spawn_local(async move {
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                    others.borrow_mut().push("-".into());
                }
            });
            for call in calls {
                call.await.unwrap();
            }
            other.await.unwrap();
            let events = events.borrow().concat();
            assert_eq!(events.replace('-', ""), "abc");
            assert!(!events.contains("ab") && !events.contains("bc"), "{events}");
            while !turns.is_free() {
                tokio::task::yield_now().await;
            }
        });
    }

    #[test]
    fn scripts_take_turns_and_calls_whose_clients_left_take_none() {
        run(async {
            let (turns, events) = (Rc::<ScriptTurns>::default(), Events::default());
            turns.ran(LONG);
            let calls: Vec<_> = [(1, "a"), (1, "b"), (1, "c"), (2, "x")]
                .map(|(script, name)| call(&turns, &events, script, name, LONG))
                .into();
            while turns.waiting.borrow().len() < 2 {
                tokio::task::yield_now().await;
            }
            calls[1].abort();
            for call in calls {
                let _ = call.await;
            }
            assert_eq!(events.borrow().concat(), "axc");
        });
    }

    #[test]
    fn short_calls_run_at_once() {
        run(async {
            let turns = Rc::<ScriptTurns>::default();
            turns.ran(LONG / 4);
            assert!(turns.is_free() && turns.turn(1).await.is_none());
        });
    }
}
