//! What a call of a script may take, and how that is held.
//!
//! LuaJIT calls a hook every [`HOOK_INTERVAL`] instructions, but only in its interpreter: compiled traces call none. So the
//! compiler is off in every state (`sandbox.rs`), and the hook looks at the clock. Functions written in Rust that may take long
//! look at it themselves, with [`Allowance::check`].

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Instructions between two looks at the clock. One instruction may take long (`..` of two large strings), which is bounded by
/// the memory limit; a small interval keeps what they take together near the limit.
pub(crate) const HOOK_INTERVAL: u32 = 100;

/// Steps of a Rust function between two looks at the clock.
const STEPS: u32 = 4096;

/// The message of the error by which a call ends whose time is up.
pub(crate) const TIME_IS_UP: &str = "the time limit is reached";

/// What scripts may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time that one call may run; waiting does not count.
    pub time: Duration,
    /// Memory of a script's state on one loop, in bytes; of a response, too.
    pub memory_bytes: usize,
    /// Largest request body, and body of a subrequest's answer, that is read.
    pub body_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_millis(100), memory_bytes: 64 << 20, body_bytes: 1 << 20 }
    }
}

/// Time of the call that runs. Shared by a state's functions.
#[derive(Clone)]
pub(crate) struct Allowance(Rc<Running>);

struct Running {
    deadline: Cell<Instant>,
    is_up: Cell<bool>,
    steps: Cell<u32>,
    limit_bytes: usize,
}

impl Allowance {
    pub fn new(limits: &Limits) -> Self {
        Self(Rc::new(Running {
            deadline: Cell::new(Instant::now() + limits.time),
            is_up: Cell::new(false),
            steps: Cell::new(0),
            limit_bytes: limits.memory_bytes,
        }))
    }

    /// Lets a call run for so long from now on.
    pub fn begin(&self, time: Duration) {
        self.0.deadline.set(Instant::now() + time);
        self.0.is_up.set(false);
    }

    /// What is left of it.
    pub fn left(&self) -> Duration {
        self.0.deadline.get().saturating_duration_since(Instant::now())
    }

    /// Whether the time has been found to be up.
    pub fn is_up(&self) -> bool {
        self.0.is_up.get()
    }

    /// Looks at the clock.
    pub fn check(&self) -> mlua::Result<()> {
        if self.0.is_up.get() || Instant::now() >= self.0.deadline.get() {
            self.0.is_up.set(true);
            return Err(mlua::Error::runtime(TIME_IS_UP));
        }
        Ok(())
    }

    /// Counts a step, and looks at the clock now and then.
    pub fn step(&self) -> mlua::Result<()> {
        let steps = self.0.steps.get().wrapping_add(1);
        self.0.steps.set(steps);
        if steps.is_multiple_of(STEPS) { self.check() } else { Ok(()) }
    }

    /// What is made outside of Lua's memory must not be larger than that may be.
    pub fn size(&self, bytes: usize) -> mlua::Result<()> {
        if bytes > self.0.limit_bytes {
            return Err(mlua::Error::MemoryError("not enough memory".into()));
        }
        Ok(())
    }
}
