//! The plan that the process carries out, and the thread that begins and ends it.

use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::planned::point::Point;

/// The variable of the environment with the seed.
const SEED: &str = "KIRIN_FAULTS";

/// The variable with the path of a file: faults happen only while it is there. Without the variable
/// they happen from its start to its end.
const WHILE: &str = "KIRIN_FAULTS_WHILE";

/// How often the thread looks at the file and for tasks to wake.
const TURN: Duration = Duration::from_millis(1);

/// The run of a plan.
#[derive(Debug)]
pub(crate) struct Run {
    seed: u64,
    switch: Option<PathBuf>,
    is_on: AtomicBool,
    points: Mutex<Vec<&'static Point>>,
    sleepers: Mutex<Vec<(Instant, Waker)>>,
}

impl Run {
    /// Returns the run, if the environment has a seed. The first caller starts its thread.
    pub(crate) fn of_process() -> Option<&'static Run> {
        static RUN: OnceLock<Option<Run>> = OnceLock::new();
        static THREAD: OnceLock<()> = OnceLock::new();
        let run = RUN.get_or_init(Run::from_environment).as_ref()?;
        THREAD.get_or_init(|| {
            let thread = std::thread::Builder::new().name("faults".into());
            if let Err(error) = thread.spawn(|| run.keep()) {
                print(&format!("no thread: {error}"));
            }
        });
        Some(run)
    }

    fn from_environment() -> Option<Run> {
        let seed = std::env::var(SEED).ok()?;
        let Ok(seed) = seed.parse() else {
            print(&format!("{SEED} is {seed:?}, and should be a whole number"));
            return None;
        };
        let switch = std::env::var_os(WHILE).map(PathBuf::from);
        let is_on = AtomicBool::new(switch.is_none());
        Some(Run { seed, switch, is_on, points: Mutex::default(), sleepers: Mutex::default() })
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns whether faults happen now.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Adds a point that is passed for the first time.
    pub(crate) fn add(&self, point: &'static Point) {
        locked(&self.points).push(point);
    }

    /// Wakes a task after some time.
    pub(crate) fn wake_after(&self, time: Duration, waker: Waker) {
        locked(&self.sleepers).push((Instant::now() + time, waker));
    }

    /// Prints a fault.
    pub(crate) fn say(&self, point: &str, call: u64, what: &dyn Display) {
        print(&format!("{point} {call} {what}"));
    }

    /// Follows the file and wakes tasks, until the process ends.
    fn keep(&self) {
        loop {
            if let Some(switch) = &self.switch {
                self.turn(switch.exists());
            }
            let now = Instant::now();
            let is_over = |(end, _): &mut (Instant, Waker)| *end <= now;
            let woken: Vec<_> = locked(&self.sleepers).extract_if(.., is_over).collect();
            for (_, waker) in woken {
                waker.wake();
            }
            std::thread::sleep(TURN);
        }
    }

    /// Begins or ends the faults. At the end it prints how often each point was passed.
    fn turn(&self, is_on: bool) {
        if self.is_on.swap(is_on, Relaxed) && !is_on {
            for point in &*locked(&self.points) {
                print(&format!("point {point}"));
            }
            print("over");
        }
    }
}

/// Prints a line to standard error at once. The log of the program is a thread of its own, and may
/// be what fails.
fn print(text: &str) {
    let line = format!("faults: {text}\n");
    // There is nobody else to tell.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
