//! Finds out which FastCGI scripts exist on this machine.
//!
//! Disks and network file systems can be slow. So another thread looks for the file, never the
//! event loop. The result is used for one second, as with served files (`kirin-files`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time for which a result is used.
const VALIDITY: Duration = Duration::from_secs(1);

/// The most names that are remembered. Clients choose the names.
const MAX_NAMES: usize = 1000;

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptLookup {
    Script,
    Missing,
    /// The root does not exist here: the scripts are on another machine or in a container, and
    /// cannot be looked up.
    NoRoot,
}

/// The results for the scripts below the root of one upstream, on one event loop.
#[derive(Default)]
pub(crate) struct ScriptFiles {
    /// The results with the time of the lookup, by the name below the root.
    known: RefCell<HashMap<String, (ScriptLookup, Instant)>>,
}

impl ScriptFiles {
    /// Looks up the script `name`, which begins with a slash.
    pub(crate) async fn find(&self, root: &str, name: &str) -> ScriptLookup {
        if let Some(found) = self.known(name, Instant::now()) {
            return found;
        }
        let (path, directory) = ([root, name].concat(), root.to_owned());
        let found = tokio::task::spawn_blocking(move || look(&path, &directory)).await;
        // This fails only when the program ends.
        let found = found.unwrap_or(ScriptLookup::Missing);
        self.remember(name, found, Instant::now());
        found
    }

    fn known(&self, name: &str, now: Instant) -> Option<ScriptLookup> {
        let known = self.known.borrow();
        let (found, since) = known.get(name)?;
        (now.saturating_duration_since(*since) < VALIDITY).then_some(*found)
    }

    fn remember(&self, name: &str, found: ScriptLookup, now: Instant) {
        let mut known = self.known.borrow_mut();
        if known.len() >= MAX_NAMES {
            known.retain(|_, (_, since)| now.saturating_duration_since(*since) < VALIDITY);
        }
        if known.len() < MAX_NAMES {
            known.insert(name.to_owned(), (found, now));
        }
    }
}

fn look(path: &str, root: &str) -> ScriptLookup {
    match (Path::new(path).is_file(), Path::new(root).is_dir()) {
        (true, _) => ScriptLookup::Script,
        (false, true) => ScriptLookup::Missing,
        (false, false) => ScriptLookup::NoRoot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_finds_scripts_and_reports_a_missing_root() {
        let root = env!("CARGO_MANIFEST_DIR");
        for (root, name, found) in [
            (root, "/Cargo.toml", ScriptLookup::Script),
            (root, "/src", ScriptLookup::Missing),
            (root, "/none.php", ScriptLookup::Missing),
            ("/no/such/root", "/none.php", ScriptLookup::NoRoot),
        ] {
            assert_eq!(look(&[root, name].concat(), root), found, "{root}{name}");
        }
    }

    #[test]
    fn a_lookup_is_remembered_for_a_second() {
        let (files, now) = (ScriptFiles::default(), Instant::now());
        files.remember("/a.php", ScriptLookup::Script, now);
        assert_eq!(
            files.known("/a.php", now + Duration::from_millis(999)),
            Some(ScriptLookup::Script)
        );
        assert_eq!(files.known("/a.php", now + VALIDITY), None);
        assert_eq!(files.known("/b.php", now), None);
    }

    #[test]
    fn the_number_of_remembered_names_is_limited() {
        let (files, now) = (ScriptFiles::default(), Instant::now());
        for number in 0..2 * MAX_NAMES {
            files.remember(&format!("/{number}.php"), ScriptLookup::Missing, now);
        }
        assert_eq!(files.known.borrow().len(), MAX_NAMES);
        let later = now + VALIDITY;
        files.remember("/a.php", ScriptLookup::Script, later);
        assert_eq!(
            (files.known("/a.php", later), files.known.borrow().len()),
            (Some(ScriptLookup::Script), 1)
        );
    }
}
