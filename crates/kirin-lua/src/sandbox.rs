//! A Lua state for scripts: LuaJIT with limits on time and memory, and a standard library that
//! reaches nothing outside.
//!
//! The sandbox protects against accidents in the site's own scripts, and against input from unknown
//! clients. It does not protect against an author with bad intentions.

use std::borrow::Cow;
use std::path::Path;
use std::rc::Rc;
use std::sync::LazyLock;

use kirin_origin::NearStore;
use memmap2::MmapMut;
use mlua::{Error, Function, Lua, LuaOptions, LuaString, Result, StdLib, Table, Value};

use crate::allowance::{Allowance, Limits};
use crate::host::{Host, RunningCall};
use crate::json::Json;
use crate::look::Counter;
use crate::memory;
use crate::modules::Modules;
use crate::request::{self, Requests};
use crate::{fetch, problem, store_library, string_library, text_library};

/// A state without a script.
pub(crate) struct Sandbox {
    pub lua: Lua,
    pub allowance: Allowance,
    pub running: RunningCall,
    pub modules: Rc<Modules>,
    pub requests: Requests,
    /// Calls a function as a request's call.
    pub enter: Function,
    /// The first value that a waiting call yields.
    pub wait: Table,
}

impl Sandbox {
    /// Creates a state for scripts in `directory`.
    pub fn new(
        directory: &Path,
        near: &NearStore,
        program: Rc<dyn Host>,
        limits: &Limits,
    ) -> Result<Self> {
        let libraries =
            StdLib::TABLE | StdLib::OS | StdLib::STRING | StdLib::BIT | StdLib::MATH | StdLib::JIT;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        if !may_compile() {
            lua.load("jit.off()").exec()?;
        }
        let (allowance, running) = (Allowance::new(limits), RunningCall::default());
        memory::limit(&lua, &allowance)?;
        let counter = Counter::new(&lua, &allowance)?;
        let modules = Modules::new(&lua, directory, counter.clone())?;
        let host = lua.create_table()?;
        let json = Json::new(&lua)?;
        string_library::add(&lua, &host, &allowance)?;
        request::add(&lua, &host, &json, &running, program, &allowance)?;
        fetch::add(&lua, &host, &allowance)?;
        let up = allowance.clone();
        host.set("is_up", lua.create_function(move |_, ()| Ok(up.check().is_err()))?)?;
        let clock = allowance.clone();
        let check = move |lua: &Lua, bytes: Option<usize>| {
            clock.check()?;
            memory::check(lua, &clock, bytes.unwrap_or(0))
        };
        host.set("check", lua.create_function(check)?)?;
        let message = |_: &Lua, error: Value| match error {
            Value::Error(error) => Ok(problem::describe(&error)),
            other => other.to_string(),
        };
        host.set("message", lua.create_function(message)?)?;
        let required = Rc::downgrade(&modules);
        let require = move |lua: &Lua, name: LuaString| match required.upgrade() {
            Some(modules) => modules.require(lua, &name),
            None => Err(Error::runtime("the script is gone")),
        };
        let mut seed = [0; 4];
        getrandom::fill(&mut seed).map_err(Error::external)?;
        host.set("seed", u32::from_ne_bytes(seed))?;
        host.set("require", lua.create_function(require)?)?;
        let kirin = lua.create_table()?;
        let unknown = lua.create_table()?;
        host.set("has_origin", near.origin().is_some())?;
        let store = store_library::library(&lua, near, &running, &allowance, &unknown)?;
        host.set("unknown", unknown)?;
        kirin.set("store", store)?;
        kirin.set("json", json.library(&lua, &allowance)?)?;
        kirin.set("log", log(&lua)?)?;
        text_library::add(&lua, &kirin, &allowance)?;
        let time = |_: &Lua, ()| Ok(kirin_clock::wall().as_secs_f64());
        kirin.set("time", lua.create_function(time)?)?;
        kirin.set("pass", lua.create_function(|_, ()| Ok(Value::Nil))?)?;
        host.set("print", kirin.get::<Table>("log")?.get::<Function>("info")?)?;
        host.set("kirin", kirin)?;
        let prelude = include_str!("prelude.lua").as_bytes();
        let prelude = counter.compile(&lua, prelude, "=kirin".into(), None)?;
        let (environment, enter, wait): (Table, Function, Table) = prelude.call(&host)?;
        modules.set_environment(environment);
        let requests = Requests::new(&host)?;
        Ok(Self { lua, allowance, running, modules, requests, enter, wait })
    }
}

/// Returns whether the system lets a program run code that it has written into its memory.
/// `MemoryDenyWriteExecute` of systemd and some rules of SELinux do not. LuaJIT's compiler would
/// end the process then.
fn may_compile() -> bool {
    static MAY: LazyLock<bool> = LazyLock::new(|| {
        let page = MmapMut::map_anon(1);
        page.and_then(MmapMut::make_exec).is_ok()
    });
    *MAY
}

/// Returns `kirin.log`, which writes a line to the program's log.
fn log(lua: &Lua) -> Result<Table> {
    let log = lua.create_table()?;
    macro_rules! level {
        ($level:ident) => {
            log.set(
                stringify!($level),
                lua.create_function(|lua, values: mlua::Variadic<Value>| {
                    let place = lua.inspect_stack(1, place_of).unwrap_or_default();
                    tracing::$level!("{place}: {}", line(&values)?);
                    Ok(())
                })?,
            )?;
        };
    }
    level!(debug);
    level!(info);
    level!(warn);
    level!(error);
    Ok(log)
}

/// Returns the place in a script where a frame is.
pub(crate) fn place_of(frame: &mlua::debug::Debug<'_>) -> String {
    let source = frame.source().short_src.map(Cow::into_owned).unwrap_or_default();
    format!("{source}:{}", frame.current_line().unwrap_or(0))
}

/// Joins the values with spaces for one line of the log.
fn line(values: &[Value]) -> Result<String> {
    let mut line = String::new();
    for value in values {
        let separator = if line.is_empty() { "" } else { " " };
        line.push_str(separator);
        match value {
            Value::String(text) => line.push_str(&problem::loggable(&text.as_bytes())),
            other => line.push_str(&problem::loggable(other.to_string()?.as_bytes())),
        }
        if line.len() > problem::MAX_LINE_BYTES {
            return Ok(problem::loggable(line.as_bytes()));
        }
    }
    Ok(line)
}
