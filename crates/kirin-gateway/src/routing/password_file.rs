//! Password files in the format of `htpasswd`: `NAME:HASH` lines.
//!
//! [`Accounts`] is pure; [`PasswordFile`] reads the file again when it has changed.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::routing::password_hash::PasswordHash;

/// The largest password file, in bytes.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The users of a file with their hashes.
#[derive(Debug)]
pub struct Accounts {
    by_name: HashMap<String, PasswordHash>,
    /// The hash that the password of an unknown user is checked against, so that it takes as long.
    decoy: PasswordHash,
    /// The names whose hashes are weak, in the order of the file.
    weak: Vec<String>,
}

/// The account of a name.
#[derive(Debug)]
pub struct Account {
    /// The hash to check the password against.
    pub hash: PasswordHash,
    /// Whether there is such a user. If not, no password is right.
    pub exists: bool,
}

impl Accounts {
    /// Parses the text of a file. The error names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut by_name = HashMap::new();
        let mut decoy = None;
        let mut weak = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((name, hash)) = line.split_once(':') else {
                return Err(format!("line {number} is not `NAME:HASH`"));
            };
            if name.is_empty() || name.chars().any(char::is_control) {
                return Err(format!("line {number} has no name that can be given"));
            }
            let hash = PasswordHash::parse(hash).map_err(|error| {
                format!("line {number}: the password of `{name}` is not accepted: {error}; make it with `htpasswd -B`")
            })?;
            // A weak hash is cheap, and would tell which names are not there.
            if decoy.is_none() || decoy.as_ref().is_some_and(PasswordHash::is_weak) {
                decoy = Some(hash.clone());
            }
            if hash.is_weak() {
                weak.push(name.to_owned());
            }
            if by_name.insert(name.to_owned(), hash).is_some() {
                return Err(format!("line {number}: `{name}` is there a second time"));
            }
        }
        let decoy = decoy.ok_or("nobody is in it; make an entry with `htpasswd -B`")?;
        Ok(Self { by_name, decoy, weak })
    }

    /// Returns what is wrong with the hashes of the file, if some are weak.
    fn weakness(&self) -> Option<String> {
        let of = match self.weak.as_slice() {
            [] => return None,
            [name] => format!("the password of `{name}` is"),
            [name, others @ ..] => {
                format!("the passwords of `{name}` and {} more are", others.len())
            }
        };
        Some(format!(
            "{of} hashed with MD5 (`$apr1$`), which is broken in seconds; make it again with \
             `htpasswd -B`"
        ))
    }

    /// Returns the account of `name`, or one that takes as long and is never right.
    pub fn account(&self, name: &str) -> Account {
        match self.by_name.get(name) {
            Some(hash) => Account { hash: hash.clone(), exists: true },
            None => Account { hash: self.decoy.clone(), exists: false },
        }
    }
}

/// A password file, shared by all loops.
#[derive(Debug)]
pub struct PasswordFile {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    accounts: Arc<Accounts>,
    stamp: Option<Stamp>,
    /// The second at which the file was last examined.
    looked: u64,
}

/// The state of a file, which changes when the file is written or replaced: device, inode, size,
/// and the time of the last change in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp(u64, u64, u64, i64, i64);

impl PasswordFile {
    /// Reads the file. The error is for the author of the configuration.
    pub fn open(path: &Path) -> Result<Self, String> {
        let stamp = stamp(path).ok();
        let accounts = Arc::new(read(path)?);
        Ok(Self { path: path.to_owned(), state: Mutex::new(State { accounts, stamp, looked: 0 }) })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a warning, with the path, if hashes of the file are weak.
    pub fn weakness(&self) -> Option<String> {
        let weakness = self.state.lock().accounts.weakness()?;
        Some(format!("{}: {weakness}", self.path.display()))
    }

    /// Returns the accounts as of this second. If the file has become unreadable, those before it
    /// stay.
    pub fn accounts(&self, now: u64) -> Arc<Accounts> {
        let mut state = self.state.lock();
        if state.looked != now {
            state.looked = now;
            // The state is taken before the file is read: a change in between is seen the next
            // time.
            let stamp = stamp(&self.path).ok();
            if stamp != state.stamp {
                state.stamp = stamp;
                match read(&self.path) {
                    Ok(accounts) => {
                        tracing::info!(file = %self.path.display(), "password file is read again");
                        if let Some(weakness) = accounts.weakness() {
                            tracing::warn!(file = %self.path.display(), "{weakness}");
                        }
                        state.accounts = Arc::new(accounts);
                    }
                    Err(error) => {
                        tracing::error!(
                            "password file is not taken, the accounts before stay: {error}"
                        )
                    }
                }
            }
        }
        Arc::clone(&state.accounts)
    }
}

fn stamp(path: &Path) -> io::Result<Stamp> {
    let metadata = std::fs::metadata(path)?;
    Ok(Stamp(
        metadata.dev(),
        metadata.ino(),
        metadata.size(),
        metadata.mtime(),
        metadata.mtime_nsec(),
    ))
}

fn read(path: &Path) -> Result<Accounts, String> {
    let named = |error: String| format!("{}: {error}", path.display());
    let cannot = |error: io::Error| named(format!("cannot be read: {error}"));
    let metadata = std::fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return Err(named("is not a file of a size that passwords need".into()));
    }
    let text = std::fs::read_to_string(path).map_err(cannot)?;
    Accounts::parse(&text).map_err(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BCRYPT: &str = "$2y$04$0jyXZg3qvyuaX8X1DyNLQeCKy0cAF3SeEdOcm0Cn4.CgkuhJ5KQ8K";
    const OTHER: &str = "$2y$04$abcdefghijklmnopqrstuuJ5KQ8KF3SeEdOcm0Cn4.CgkuhJ5KQ8K";

    #[test]
    fn names_have_hashes_and_unknown_ones_a_decoy() {
        let accounts =
            Accounts::parse(&format!("# staff\n\nzo\u{eb}:{BCRYPT}\r\nbob:{OTHER}\n")).unwrap();
        let bob = accounts.account("bob");
        assert!(bob.exists && bob.hash.as_bytes() == OTHER.as_bytes());
        assert!(accounts.account("zo\u{eb}").exists);
        let nobody = accounts.account("nobody");
        assert!(!nobody.exists && nobody.hash.as_bytes() == BCRYPT.as_bytes());
    }

    #[test]
    fn weak_hashes_are_reported_by_their_names() {
        const WEAK: &str = "$apr1$abcdefgh$hnz8AY7O7E7QvKAVjuw920";
        let weakness = |text: &str| Accounts::parse(text).unwrap().weakness().unwrap_or_default();
        assert_eq!(weakness(&format!("a:{BCRYPT}")), "");
        let one = weakness(&format!("a:{BCRYPT}\nb:{WEAK}"));
        assert!(one.starts_with("the password of `b` is hashed with MD5"), "{one}");
        let three = weakness(&format!("a:{WEAK}\nb:{WEAK}\nc:{WEAK}"));
        assert!(three.starts_with("the passwords of `a` and 2 more are"), "{three}");
        assert!(!three.contains("abcdefgh"), "{three}");
    }

    #[test]
    fn errors_name_the_line_and_the_user_but_no_hash() {
        for (text, expected) in [
            ("", "nobody is in it"),
            ("# only this\n", "nobody is in it"),
            ("bob\n", "line 1 is not `NAME:HASH`"),
            (":x\n", "line 1 has no name"),
            ("#\nbob:secret-hash\n", "line 2: the password of `bob` is not accepted"),
            (&format!("a:{BCRYPT}\na:{BCRYPT}"), "line 2: `a` is there a second time"),
            (&format!("a:{BCRYPT}:extra"), "line 1: the password of `a`"),
        ] {
            let error = Accounts::parse(text).unwrap_err();
            assert!(error.contains(expected) && !error.contains("secret"), "{text}: {error}");
        }
    }

    #[test]
    fn a_changed_file_is_read_again_unless_it_is_bad() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users");
        let replace = |text: &str| {
            std::fs::write(directory.path().join("new"), text).unwrap();
            std::fs::rename(directory.path().join("new"), &path).unwrap();
        };
        replace(&format!("a:{BCRYPT}"));
        let file = PasswordFile::open(&path).unwrap();
        assert!(file.accounts(1).account("a").exists);
        replace(&format!("b:{BCRYPT}"));
        assert!(file.accounts(1).account("a").exists, "looked at once a second");
        assert!(!file.accounts(2).account("a").exists);
        replace("b:plain");
        assert!(file.accounts(3).account("b").exists);
        std::fs::remove_file(&path).unwrap();
        assert!(file.accounts(4).account("b").exists);
        assert!(PasswordFile::open(&path).unwrap_err().contains("users: cannot be read"));
    }
}
