//! The directory of default admin sockets. It belongs to the user that serves, and no other user
//! can write it. So another user of the machine can neither read the status nor put a socket there.
//!
//! | who serves | directory |
//! |---|---|
//! | a user with a session | `$XDG_RUNTIME_DIR/kirin` |
//! | root, or the `user` of a configuration; a service of systemd with `RuntimeDirectory=kirin/NAME` | `/run/kirin/NAME` |
//! | others | `/tmp/kirin-UID` |
//!
//! `KIRIN_ADMIN_DIRECTORY` names a directory that takes the place of all of these: a user's sockets
//! are in `$KIRIN_ADMIN_DIRECTORY/NAME`, and commands look nowhere else.
//!
//! The server takes the first directory that it can have. A client looks into all of them, because
//! it may have another environment.

use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use kirin_user::{User, user_name};
use rustix::process::geteuid;

/// The directory of the directories of root and of services. Only root can write it.
const SYSTEM: &str = "/run/kirin";

/// The environment variable with the directory that takes the place of all others.
const ONLY: &str = "KIRIN_ADMIN_DIRECTORY";

/// The directory of sessions. It is removed when its user logs out.
const SESSIONS: &str = "/run/user";

/// The reason why a directory cannot have the socket.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// It cannot be made, for example on a file system that is read-only.
    #[error("{}: {}", .0.display(), .1)]
    Unavailable(PathBuf, #[source] io::Error),
    /// Others could read the socket, or could have put one there.
    #[error("{} {}", .0.display(), .1)]
    Unsafe(PathBuf, String),
}

/// A user, and where this user's sockets may be.
pub struct SocketDirectories {
    uid: u32,
    name: String,
    /// The directory of the session, if it belongs to this user alone.
    session: Option<PathBuf>,
    /// The directory of all users' sessions; `None` if [`ONLY`] is set.
    sessions: Option<PathBuf>,
    system: PathBuf,
    /// The directory of users that have no other one; `None` if [`ONLY`] is set.
    temporary: Option<PathBuf>,
}

impl SocketDirectories {
    /// Returns the directories of the user that runs this program.
    pub fn of_this_user() -> Self {
        let uid = geteuid().as_raw();
        let name = user_name(uid);
        let only = env::var_os(ONLY).and_then(|path| std::path::absolute(path).ok());
        if let Some(system) = only {
            return Self { uid, name, session: None, sessions: None, system, temporary: None };
        }
        let session = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let session = session.filter(|path| path.is_absolute() && check(path, uid).is_ok());
        // The directory of root's session ends with the session. Kirin does not.
        let session = session.filter(|path| uid != 0 || !path.starts_with(SESSIONS));
        Self {
            uid,
            name,
            session,
            sessions: Some(SESSIONS.into()),
            system: SYSTEM.into(),
            temporary: Some("/tmp".into()),
        }
    }

    /// Returns the directories of the user that will serve, if that is another than this program's.
    pub fn of_user(user: Option<&User>) -> Self {
        let this = Self::of_this_user();
        match user {
            Some(user) if user.uid() != this.uid => {
                Self { uid: user.uid(), name: user_name(user.uid()), session: None, ..this }
            }
            _ => this,
        }
    }

    fn of_service(&self) -> PathBuf {
        self.system.join(&self.name)
    }

    fn temporary(&self) -> Option<PathBuf> {
        Some(self.temporary.as_ref()?.join(format!("kirin-{}", self.uid)))
    }

    /// Creates the first directory that can be used, if it does not exist. As root it belongs to
    /// `user` then. Fails at a directory that is not safe. A path of a socket with a name of
    /// `name_bytes` must be short enough.
    pub fn make(&self, user: Option<&User>, name_bytes: usize) -> Result<PathBuf, DirectoryError> {
        let session = self.session.as_ref().map(|session| session.join("kirin"));
        let mut last = None;
        let places = [session, Some(self.of_service()), self.temporary()];
        for path in places.into_iter().flatten() {
            // The kernel's limit for the path of a socket is 107 bytes (unix(7)).
            if path.as_os_str().len() + 1 + name_bytes > 107 {
                continue;
            }
            if path.starts_with(&self.system) && geteuid().is_root() {
                // It may have been given to a service. Root does not put its own socket there.
                if let Err(error) = make_public(&self.system) {
                    last = Some(error);
                    continue;
                }
            }
            match make_private(&path, self.uid, user) {
                Err(error @ DirectoryError::Unavailable(..)) => last = Some(error),
                made => return made.map(|()| path),
            }
        }
        let too_long = || {
            let error = io::Error::other("the path is too long for a socket");
            DirectoryError::Unavailable(self.of_service(), error)
        };
        Err(last.unwrap_or_else(too_long))
    }

    /// Returns the directories that may have sockets of this user. Root gets those of all users for
    /// which it has started a Kirin, too.
    pub fn existing(&self) -> Vec<PathBuf> {
        let own = [
            self.session.as_ref().map(|session| session.join("kirin")),
            self.sessions.as_ref().map(|all| all.join(self.uid.to_string()).join("kirin")),
            Some(self.of_service()),
            self.temporary(),
        ];
        let mut found = Vec::new();
        for path in own.into_iter().flatten() {
            if !found.contains(&path) && check(&path, self.uid).is_ok() {
                found.push(path);
            }
        }
        // Only root, or a service to which root has given it, makes directories there.
        if self.uid == 0 {
            for entry in fs::read_dir(&self.system).into_iter().flatten().flatten() {
                let path = entry.path();
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                // Its own is checked above.
                if is_directory && path != self.of_service() && !found.contains(&path) {
                    found.push(path);
                }
            }
        }
        found
    }
}

/// Makes a directory that only root can write and all can read.
fn make_public(path: &Path) -> Result<(), DirectoryError> {
    let unavailable = |error| DirectoryError::Unavailable(path.to_owned(), error);
    match fs::create_dir(path) {
        // The umask may have taken away what the user that serves needs.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(unavailable)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(unavailable(error)),
    }
    check(path, 0)
}

/// Makes a directory that only the user `uid` can open. Root gives it to `user`.
fn make_private(path: &Path, uid: u32, user: Option<&User>) -> Result<(), DirectoryError> {
    let unavailable = |error| DirectoryError::Unavailable(path.to_owned(), error);
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {
            if let Some(user) = user {
                user.give(path).map_err(|error| unavailable(io::Error::other(error)))?;
            }
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(unavailable(error)),
    }
    check(path, uid)?;
    let mode = fs::symlink_metadata(path).map_err(unavailable)?.mode();
    if mode & 0o077 != 0 && geteuid().as_raw() == uid {
        fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(unavailable)?;
    }
    Ok(())
}

/// Checks that a directory belongs to `uid`, and that no other user can write it.
fn check(path: &Path, uid: u32) -> Result<(), DirectoryError> {
    let found = fs::symlink_metadata(path)
        .map_err(|error| DirectoryError::Unavailable(path.to_owned(), error))?;
    let problem = if found.is_symlink() {
        "is a symbolic link".to_owned()
    } else if !found.is_dir() {
        "is not a directory".to_owned()
    } else if found.uid() != uid {
        format!("belongs to {}, and not to {}", user_name(found.uid()), user_name(uid))
    } else if found.mode() & 0o022 != 0 {
        format!("can be written by others (its mode is {:o})", found.mode() & 0o7777)
    } else {
        return Ok(());
    };
    Err(DirectoryError::Unsafe(path.to_owned(), problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Returns the directories of this user in a directory of the test.
    fn directories(root: &Path) -> SocketDirectories {
        let uid = geteuid().as_raw();
        SocketDirectories {
            uid,
            name: user_name(uid),
            session: None,
            sessions: None,
            system: root.join("absent/run"),
            temporary: Some(root.to_owned()),
        }
    }

    #[test]
    fn the_directory_of_the_session_comes_before_that_of_the_service() {
        let root = tempfile::tempdir().unwrap();
        let mut directories = directories(root.path());
        let temporary = directories.make(None, 50).unwrap();
        assert_eq!(temporary, root.path().join(format!("kirin-{}", directories.uid)));
        assert_eq!(fs::metadata(&temporary).unwrap().mode() & 0o777, 0o700);
        directories.system = root.path().join("run");
        fs::create_dir_all(directories.of_service()).unwrap();
        let service = directories.make(None, 50).unwrap();
        assert_eq!(service, directories.of_service());
        assert_eq!(fs::metadata(&service).unwrap().mode() & 0o777, 0o700, "it was 0755");
        directories.session = Some(root.path().to_owned());
        let session = directories.make(None, 50).unwrap();
        assert_eq!(session, root.path().join("kirin"));
        for path in [session, service, temporary] {
            assert!(directories.existing().contains(&path), "{}", path.display());
        }
        directories.session = Some(root.path().join("gone"));
        let made = directories.make(None, 50).unwrap();
        assert_eq!(made, directories.of_service(), "the session has ended");
        // This path is too long for a socket.
        let long = root.path().join("x".repeat(90));
        fs::create_dir(&long).unwrap();
        directories.session = Some(long);
        assert_eq!(directories.make(None, 50).unwrap(), directories.of_service());
    }

    #[test]
    fn without_any_parent_directory_there_is_no_socket_directory() {
        let root = tempfile::tempdir().unwrap();
        let error = directories(&root.path().join("gone")).make(None, 50).unwrap_err();
        assert!(matches!(error, DirectoryError::Unavailable(..)), "{error}");
    }

    #[test]
    fn a_directory_that_others_could_have_made_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let mut directories = directories(root.path());
        let path = directories.temporary().unwrap();
        let refused = |directories: &SocketDirectories, why: &str| {
            let error = directories.make(None, 50).unwrap_err();
            assert!(matches!(error, DirectoryError::Unsafe(..)), "{error}");
            assert!(error.to_string().contains(why), "{error}");
            assert!(directories.existing().is_empty(), "{:?}", directories.existing());
        };
        fs::create_dir(root.path().join("other")).unwrap();
        symlink(root.path().join("other"), &path).unwrap();
        refused(&directories, "is a symbolic link");
        fs::remove_file(&path).unwrap();
        symlink(root.path().join("gone"), &path).unwrap();
        refused(&directories, "is a symbolic link");
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        refused(&directories, "is not a directory");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        refused(&directories, "can be written by others (its mode is 777)");
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        assert!(directories.make(None, 50).is_ok());
        // Now it belongs to another user.
        let other = root.path().join(format!("kirin-{}", directories.uid + 1));
        fs::rename(&path, &other).unwrap();
        directories.uid += 1;
        refused(&directories, "belongs to");
    }
}
