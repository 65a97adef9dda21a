//! A loaded script: one version of its file in one state of one event loop. Its calls run in
//! coroutines, so that one may wait while others run.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use kirin_http::Response;
use kirin_origin::NearStore;
use kirin_store::Now;
use mlua::thread::ThreadStatus;
use mlua::{Error, Function, IntoLuaMulti, MultiValue, Result, Table, Thread, UserDataRef, Value};

use crate::allowance::{LOAD_TIME, Limits};
use crate::error::{Fault, LuaError};
use crate::fetch::{Fetch, Fetched, MAX_AT_ONCE};
use crate::host::Host;
use crate::modules::{FileStamp, Modules};
use crate::problem;
use crate::request::Called;
use crate::response::response;
use crate::sandbox::Sandbox;
use crate::store_call::{StoreCall, StoreReply};

/// The most finished coroutines that are kept for later calls.
const MAX_IDLE: usize = 16;

/// The most calls of one script on one event loop that may wait at the same time.
const MAX_WAITING: usize = 4096;

/// The state of a call.
pub enum CallOutcome {
    /// The call has answered.
    Answered(Response),
    /// The next place must answer.
    Passed,
    /// The call failed.
    Failed(Fault),
    /// The call waits.
    Waiting(Suspended),
}

/// What a call waits for.
#[derive(Debug)]
pub enum AwaitedInput {
    /// The body of its request.
    Body,
    /// Responses to subrequests, in this order.
    Fetches(Vec<Fetch>),
    /// What the server behind the store has to say.
    Store(StoreCall),
}

/// The result that a waiting call is resumed with.
#[derive(Debug)]
pub enum Supply {
    /// The body.
    Body(Bytes),
    /// The responses, in the order of the requests.
    Fetched(Vec<Fetched>),
    /// What the server behind the store has said.
    Stored(StoreReply),
    /// No result, with the reason.
    Refused(String),
}

/// A loaded script.
pub(crate) struct Script {
    path: PathBuf,
    sandbox: Sandbox,
    program: Rc<dyn Host>,
    handler: Function,
    idle: RefCell<Vec<Thread>>,
    limits: Limits,
    waiting: Cell<usize>,
    /// Whether its memory has run out, so that another state must replace it.
    is_spent: Cell<bool>,
}

/// A waiting call.
pub struct Suspended {
    script: Rc<Script>,
    called: Rc<Called>,
    thread: Thread,
    left: Duration,
    wanted: Option<AwaitedInput>,
}

impl Drop for Suspended {
    fn drop(&mut self) {
        self.script.waiting.set(self.script.waiting.get() - 1);
    }
}

impl Script {
    /// Loads the script at `path`. Returns the files that were checked, even after a failure.
    pub fn load(
        path: &Path,
        near: &NearStore,
        program: Rc<dyn Host>,
        limits: Limits,
    ) -> (std::result::Result<Rc<Self>, LuaError>, Vec<FileStamp>) {
        let directory = path.parent().unwrap_or(Path::new("/"));
        let failed = |error: &Error| LuaError::Load {
            path: path.to_owned(),
            problem: problem::describe(error),
        };
        let sandbox = match Sandbox::new(directory, near, Rc::clone(&program), &limits) {
            Ok(sandbox) => sandbox,
            Err(error) => return (Err(failed(&error)), vec![FileStamp::of(path)]),
        };
        sandbox.allowance.begin(LOAD_TIME);
        let handler = load_handler(&sandbox, path);
        let stamps = sandbox.modules.stamps();
        let script = handler.map(|handler| {
            let path = path.to_owned();
            let (idle, waiting, is_spent) = (RefCell::default(), Cell::new(0), Cell::new(false));
            Rc::new(Self { path, sandbox, program, handler, idle, limits, waiting, is_spent })
        });
        (script.map_err(|error| failed(&error)), stamps)
    }

    /// Returns the files of the script so far.
    pub fn stamps(&self) -> Vec<FileStamp> {
        self.sandbox.modules.stamps()
    }

    pub fn is_spent(&self) -> bool {
        self.is_spent.get()
    }

    /// Calls the script for a request.
    pub fn call(self: &Rc<Self>, called: Called, now: Now) -> CallOutcome {
        let called = Rc::new(called);
        self.sandbox.allowance.begin(self.limits.time);
        self.sandbox.running.begin(now, called.namespace());
        let begun = self.thread().and_then(|thread| {
            let request = self.sandbox.requests.table(&self.sandbox.lua, &called)?;
            Ok((self.resume(&thread, (&self.handler, request)), thread))
        });
        match begun {
            Ok((yielded, thread)) => self.step(called, thread, yielded),
            Err(error) => CallOutcome::Failed(self.fault(&called, &error)),
        }
    }

    /// Returns a coroutine for a call.
    fn thread(&self) -> Result<Thread> {
        if let Some(thread) = self.idle.borrow_mut().pop() {
            thread.reset(self.sandbox.enter.clone())?;
            return Ok(thread);
        }
        self.sandbox.lua.create_thread(self.sandbox.enter.clone())
    }

    /// Resumes a coroutine. mlua panics if memory runs out where LuaJIT does not record where the
    /// stack ends (`memory.rs`). Such a panic ends the call and its state, not the event loop.
    fn resume(&self, thread: &Thread, arguments: impl IntoLuaMulti) -> Result<MultiValue> {
        catch_unwind(AssertUnwindSafe(|| thread.resume(arguments))).unwrap_or_else(|_| {
            self.is_spent.set(true);
            Err(Error::runtime(
                "the state of the script is broken: memory has run out, or a function panicked",
            ))
        })
    }

    /// Reads the state of a coroutine.
    fn step(
        self: &Rc<Self>,
        called: Rc<Called>,
        thread: Thread,
        yielded: Result<MultiValue>,
    ) -> CallOutcome {
        let step = self.outcome(called, thread, yielded);
        let ran = self.sandbox.allowance.ran();
        if !ran.is_zero() {
            self.program.ran(ran);
        }
        step
    }

    fn outcome(
        self: &Rc<Self>,
        called: Rc<Called>,
        thread: Thread,
        yielded: Result<MultiValue>,
    ) -> CallOutcome {
        let step = yielded.and_then(|values| {
            let mut values = values.into_iter();
            let first = values.next().unwrap_or(Value::Nil);
            if thread.status() == ThreadStatus::Resumable {
                let is_wait = matches!(&first, Value::Table(table) if *table == self.sandbox.wait);
                let wanted = if is_wait { wanted(values) } else { Err(Error::runtime(OUTSIDE)) }?;
                if self.waiting.get() >= MAX_WAITING {
                    return Err(Error::runtime(format!("{MAX_WAITING} calls wait already")));
                }
                return Ok(Err(wanted));
            }
            Ok(Ok(response(&first, &self.sandbox.allowance)?))
        });
        match step {
            Ok(Err(wanted)) => {
                self.waiting.set(self.waiting.get() + 1);
                let left = self.sandbox.allowance.left();
                CallOutcome::Waiting(Suspended {
                    script: Rc::clone(self),
                    called,
                    thread,
                    left,
                    wanted: Some(wanted),
                })
            }
            Ok(Ok(response)) => {
                self.tidy(thread);
                response.map_or(CallOutcome::Passed, CallOutcome::Answered)
            }
            Err(error) => CallOutcome::Failed(self.fault(&called, &error)),
        }
    }

    /// Cleans up after a successful call.
    fn tidy(&self, thread: Thread) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < MAX_IDLE {
            idle.push(thread);
        }
        // A full collection is needed before memory runs out, because LuaJIT makes none at that
        // point.
        let half = self.limits.memory_bytes / 2;
        if self.sandbox.lua.used_memory() > half {
            let collected = self.sandbox.lua.gc_collect();
            if collected.is_err() || self.sandbox.lua.used_memory() > half {
                tracing::warn!(script = %self.path.display(), "more than half of the script's memory is in use; it is loaded again");
                self.is_spent.set(true);
            }
            // The collection has taken time, too. The call has ended, so its remaining time does
            // not matter.
            let _ = self.sandbox.allowance.check();
        }
    }

    /// Logs why a call failed.
    fn fault(&self, called: &Called, error: &Error) -> Fault {
        let fault = match error {
            _ if self.sandbox.allowance.is_up() || problem::is_time(error) => Fault::Time,
            error if problem::is_memory(error) => Fault::Memory,
            _ => Fault::Error,
        };
        // If the collector had to free all of it at once, the next calls would wait.
        self.is_spent.set(self.is_spent.get() || fault == Fault::Memory);
        let path = String::from_utf8_lossy(called.path());
        // A function that a script called as its last act has no line of the script. Neither has a
        // lack of memory.
        let file = self.path.file_name().unwrap_or_default().display();
        let problem = problem::describe(error);
        let problem =
            if problem::has_place(&problem) { problem } else { format!("{file}: {problem}") };
        let problem = problem::loggable(problem.as_bytes());
        tracing::error!(script = %self.path.display(), method = %called.method(), ?path, "{problem}");
        fault
    }
}

const OUTSIDE: &str = "coroutine.yield outside of a coroutine";

/// Runs the file. Its return value is called for every request.
fn load_handler(sandbox: &Sandbox, path: &Path) -> Result<Function> {
    let chunk = Modules::compile(&sandbox.modules, &sandbox.lua, path)?;
    match chunk.call::<Value>(())? {
        Value::Function(handler) => Ok(handler),
        other => Err(Error::runtime(format!(
            "{}: it must return a function, as in `return function(request) … end`, and returns {}",
            path.file_name().unwrap_or_default().display(),
            other.type_name()
        ))),
    }
}

/// Reads the request of the prelude's `wait`.
fn wanted(mut values: impl Iterator<Item = Value>) -> Result<AwaitedInput> {
    match (values.next(), values.next()) {
        (Some(Value::String(kind)), None | Some(Value::Nil)) if *kind.as_bytes() == *b"body" => {
            Ok(AwaitedInput::Body)
        }
        (Some(Value::String(kind)), Some(Value::Table(list))) if *kind.as_bytes() == *b"fetch" => {
            if list.raw_len() > MAX_AT_ONCE {
                return Err(Error::runtime(format!("fetch_all: {MAX_AT_ONCE} requests at most")));
            }
            let fetches = list.sequence_values::<UserDataRef<Fetch>>();
            fetches
                .map(|fetch| Ok(fetch?.clone()))
                .collect::<Result<_>>()
                .map(AwaitedInput::Fetches)
        }
        (Some(Value::String(kind)), Some(Value::UserData(call)))
            if *kind.as_bytes() == *b"store" =>
        {
            Ok(AwaitedInput::Store(call.borrow::<StoreCall>()?.clone()))
        }
        _ => Err(Error::runtime(OUTSIDE)),
    }
}

impl Suspended {
    /// Returns what the call waits for. It may be taken once.
    pub fn wanted(&mut self) -> Option<AwaitedInput> {
        self.wanted.take()
    }

    /// Leaves the call no time. It is for tests, which must not measure time.
    #[doc(hidden)]
    pub fn spend_all(&mut self) {
        self.left = Duration::ZERO;
    }

    /// Resumes the call with the result that it waited for.
    pub fn resume(self, supply: Supply, now: Now) -> CallOutcome {
        let (script, called, thread) =
            (Rc::clone(&self.script), Rc::clone(&self.called), self.thread.clone());
        let left = self.left;
        drop(self);
        script.sandbox.allowance.begin(left);
        script.sandbox.running.begin(now, called.namespace());
        let yielded = match supplied(&script, supply, now) {
            Ok(arguments) => script.resume(&thread, arguments),
            Err(error) => Err(error),
        };
        script.step(called, thread, yielded)
    }
}

fn supplied(script: &Script, supply: Supply, now: Now) -> Result<(Value, Option<String>)> {
    let lua = &script.sandbox.lua;
    match supply {
        Supply::Body(body) => Ok((Value::String(lua.create_string(&body)?), None)),
        Supply::Refused(problem) => Ok((Value::Nil, Some(problem))),
        Supply::Fetched(fetched) => {
            let list: Table = lua.create_sequence_from(fetched)?;
            Ok((Value::Table(list), None))
        }
        Supply::Stored(reply) => {
            let values = reply.into_lua(lua, &*script.program, &script.sandbox.allowance, now)?;
            Ok((Value::Table(lua.create_sequence_from(values)?), None))
        }
    }
}
