//! `require`, which loads files only below the directory of the script, and the files of a state.

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use mlua::chunk::ChunkMode;
use mlua::{Error, Function, Lua, LuaString, Result, Table, Value};

use crate::look::Counter;

/// The largest source file, in bytes.
const MAX_SOURCE_BYTES: u64 = 4 << 20;

/// The most modules that wait for each other to load.
const MAX_NESTING: usize = 50;

/// The state of a file at its last check. A missing file has a state, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    path: PathBuf,
    state: Option<(SystemTime, u64)>,
}

impl FileStamp {
    pub fn of(path: &Path) -> Self {
        let state = fs::metadata(path)
            .ok()
            .and_then(|metadata| Some((metadata.modified().ok()?, metadata.len())));
        Self { path: path.to_owned(), state }
    }

    /// Returns whether the file has changed.
    pub fn is_outdated(&self) -> bool {
        Self::of(&self.path) != *self
    }
}

/// The modules and files that one state has loaded.
pub(crate) struct Modules {
    directory: PathBuf,
    counter: Counter,
    environment: RefCell<Option<Table>>,
    loaded: Table,
    nesting: Cell<usize>,
    stamps: RefCell<Vec<FileStamp>>,
}

impl Modules {
    pub fn new(lua: &Lua, directory: &Path, counter: Counter) -> Result<Rc<Self>> {
        Ok(Rc::new(Self {
            directory: directory.to_owned(),
            counter,
            environment: RefCell::default(),
            loaded: lua.create_table()?,
            nesting: Cell::new(0),
            stamps: RefCell::default(),
        }))
    }

    /// Sets the globals of the sources.
    pub fn set_environment(&self, environment: Table) {
        *self.environment.borrow_mut() = Some(environment);
    }

    /// Returns the files that were checked so far.
    pub fn stamps(&self) -> Vec<FileStamp> {
        self.stamps.borrow().clone()
    }

    /// Compiles a file. Its lines are named by its path below the directory.
    pub fn compile(&self, lua: &Lua, path: &Path) -> Result<Function> {
        self.stamps.borrow_mut().push(FileStamp::of(path));
        let source = read(path)
            .map_err(|problem| Error::runtime(format!("{}: {problem}", path.display())))?;
        let name = path.strip_prefix(&self.directory).unwrap_or(path);
        let environment =
            self.environment.borrow().clone().ok_or_else(|| Error::runtime("no environment"))?;
        let name = format!("@{}", name.display());
        // Only text is allowed, because bytecode can do anything. A message about the syntax is
        // about the source as its author knows it.
        lua.load(&source).set_name(&*name).set_mode(ChunkMode::Text).into_function()?;
        self.counter.compile(lua, &source, name, Some(environment))
    }

    /// Loads a module: `require`.
    pub fn require(&self, lua: &Lua, name: &LuaString) -> Result<Value> {
        let loaded: Value = self.loaded.raw_get(name)?;
        if loaded != Value::Nil {
            return Ok(loaded);
        }
        let name_text = name.to_str()?;
        let path = self.find(&name_text)?;
        if self.nesting.get() >= MAX_NESTING {
            return Err(Error::runtime(format!(
                "module `{}` requires itself, or too many others",
                &*name_text
            )));
        }
        let chunk = self.compile(lua, &path)?;
        self.nesting.set(self.nesting.get() + 1);
        let value = chunk.call::<Value>(name);
        self.nesting.set(self.nesting.get() - 1);
        let value = match value? {
            Value::Nil => Value::Boolean(true),
            value => value,
        };
        self.loaded.raw_set(name, &value)?;
        Ok(value)
    }

    /// Finds the file of a module. `a.b` is `a/b.lua` or `a/b/init.lua`.
    fn find(&self, name: &str) -> Result<PathBuf> {
        let is_part = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        };
        if !name.split('.').all(is_part) {
            return Err(Error::runtime(format!(
                "require: `{name}` is not the name of a module: parts of letters, digits, `_` and `-` with `.` between"
            )));
        }
        let below: PathBuf = name.split('.').collect();
        for candidate in [below.with_extension("lua"), below.join("init.lua")] {
            let path = self.directory.join(candidate);
            // A link may lead out of the directory.
            if let (Ok(real), Ok(directory)) = (path.canonicalize(), self.directory.canonicalize())
                && real.starts_with(&directory)
            {
                return Ok(path);
            }
            self.stamps.borrow_mut().push(FileStamp::of(&path));
        }
        Err(Error::runtime(format!(
            "require: there is no module `{name}` below {}",
            self.directory.display()
        )))
    }
}

fn read(path: &Path) -> std::result::Result<Vec<u8>, String> {
    let mut source = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_SOURCE_BYTES + 1).read_to_end(&mut source).map_err(|error| error.to_string())?;
    if source.len() as u64 > MAX_SOURCE_BYTES {
        return Err(format!("larger than {MAX_SOURCE_BYTES} bytes"));
    }
    Ok(source)
}
