//! A script's file on one event loop: the loaded version, and the next one when the file changes.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use kirin_origin::NearStore;
use kirin_store::Now;

use crate::allowance::Limits;
use crate::error::LuaError;
use crate::host::Host;
use crate::modules::FileStamp;
use crate::request::Called;
use crate::script::{CallOutcome, Script};

/// A script that is called, and reloaded when its file changes.
pub struct ScriptFile {
    path: PathBuf,
    near: NearStore,
    program: Rc<dyn Host>,
    limits: Limits,
    script: RefCell<Rc<Script>>,
    /// The second of the last check of its files.
    looked: Cell<Now>,
    /// The files of the last version, whether it runs or did not load.
    seen: RefCell<Option<Vec<FileStamp>>>,
}

impl ScriptFile {
    /// Loads the script at `path`.
    pub fn open(
        path: PathBuf,
        near: NearStore,
        program: Rc<dyn Host>,
        limits: Limits,
    ) -> Result<Self, LuaError> {
        let (script, _) = Script::load(&path, &near, Rc::clone(&program), limits);
        let (script, looked) = (RefCell::new(script?), Cell::new(Now::from_unix_seconds(0)));
        Ok(Self { path, near, program, limits, script, looked, seen: RefCell::default() })
    }

    /// Calls the script for a request, in its newest version that loads. Checks its files once a
    /// second.
    pub fn call(&self, called: Called, now: Now) -> CallOutcome {
        if self.looked.get() != now {
            self.looked.set(now);
            self.look();
        }
        let script = Rc::clone(&self.script.borrow());
        let step = script.call(called, now);
        if script.is_spent() && Rc::ptr_eq(&script, &self.script.borrow()) {
            self.load();
        }
        step
    }

    fn look(&self) {
        let is_outdated = match &*self.seen.borrow() {
            Some(seen) => seen.iter().any(FileStamp::is_outdated),
            None => self.script.borrow().stamps().iter().any(FileStamp::is_outdated),
        };
        if is_outdated {
            self.load();
        }
    }

    /// Reloads the script. If the new version does not load, the old one stays.
    fn load(&self) {
        let (script, stamps) =
            Script::load(&self.path, &self.near, Rc::clone(&self.program), self.limits);
        match script {
            Ok(script) => {
                tracing::info!(script = %self.path.display(), "loaded");
                *self.script.borrow_mut() = script;
                *self.seen.borrow_mut() = None;
            }
            Err(error) => {
                tracing::error!(%error, "the version before goes on");
                *self.seen.borrow_mut() = Some(stamps);
            }
        }
    }
}
