//! Which scripts of FastCGI servers there are, as far as they are on this machine.
//!
//! Disks may be slow, and file systems on a network slower. So an event loop never looks itself:
//! another thread does, and what it has found is known for a second, as with the files that are
//! served (`kirin-files`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// For how long what has been found is believed.
const VALIDITY: Duration = Duration::from_secs(1);

/// Names at most that are known at a time; strangers choose them.
const MAX_NAMES: usize = 1000;

/// What there is by the name of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Script,
    Nothing,
    /// There is no such root: scripts are on another machine or in a container of their own, and
    /// cannot be looked for.
    NoRoot,
}

/// What is known of the scripts below the root of one upstream, on one event loop.
#[derive(Default)]
pub(crate) struct ScriptFiles {
    /// By the name below the root, with when it was looked for.
    known: RefCell<HashMap<String, (Found, Instant)>>,
}

impl ScriptFiles {
    /// What there is by `name`, which begins with a slash.
    pub(crate) async fn find(&self, root: &str, name: &str) -> Found {
        if let Some(found) = self.known(name, Instant::now()) {
            return found;
        }
        let (path, directory) = ([root, name].concat(), root.to_owned());
        let found = tokio::task::spawn_blocking(move || look(&path, &directory)).await;
        // It only fails when the program ends.
        let found = found.unwrap_or(Found::Nothing);
        self.remember(name, found, Instant::now());
        found
    }

    fn known(&self, name: &str, now: Instant) -> Option<Found> {
        let known = self.known.borrow();
        let (found, since) = known.get(name)?;
        (now.saturating_duration_since(*since) < VALIDITY).then_some(*found)
    }

    fn remember(&self, name: &str, found: Found, now: Instant) {
        let mut known = self.known.borrow_mut();
        if known.len() >= MAX_NAMES {
            known.retain(|_, (_, since)| now.saturating_duration_since(*since) < VALIDITY);
        }
        if known.len() < MAX_NAMES {
            known.insert(name.to_owned(), (found, now));
        }
    }
}

fn look(path: &str, root: &str) -> Found {
    match (Path::new(path).is_file(), Path::new(root).is_dir()) {
        (true, _) => Found::Script,
        (false, true) => Found::Nothing,
        (false, false) => Found::NoRoot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_depends_on_file_and_root() {
        let root = env!("CARGO_MANIFEST_DIR");
        for (root, name, found) in [
            (root, "/Cargo.toml", Found::Script),
            (root, "/src", Found::Nothing),
            (root, "/none.php", Found::Nothing),
            ("/no/such/root", "/none.php", Found::NoRoot),
        ] {
            assert_eq!(look(&[root, name].concat(), root), found, "{root}{name}");
        }
    }

    #[test]
    fn what_was_found_is_known_for_a_second() {
        let (files, now) = (ScriptFiles::default(), Instant::now());
        files.remember("/a.php", Found::Script, now);
        assert_eq!(files.known("/a.php", now + Duration::from_millis(999)), Some(Found::Script));
        assert_eq!(files.known("/a.php", now + VALIDITY), None);
        assert_eq!(files.known("/b.php", now), None);
    }

    #[test]
    fn strangers_names_are_no_more_than_may_be_and_make_room_after_a_second() {
        let (files, now) = (ScriptFiles::default(), Instant::now());
        for number in 0..2 * MAX_NAMES {
            files.remember(&format!("/{number}.php"), Found::Nothing, now);
        }
        assert_eq!(files.known.borrow().len(), MAX_NAMES);
        let later = now + VALIDITY;
        files.remember("/a.php", Found::Script, later);
        assert_eq!(
            (files.known("/a.php", later), files.known.borrow().len()),
            (Some(Found::Script), 1)
        );
    }
}
