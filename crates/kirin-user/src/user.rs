//! The user that serves: Kirin opens its ports and logs as root, and then becomes a user with fewer
//! rights.
//!
//! The configuration looks the name up. The program becomes the user before it starts a thread.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{self, Gid, Uid};

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: CString,
    uid: Uid,
    /// The group of the entry in passwd(5).
    gid: Gid,
}

/// Why Kirin cannot become that user.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// The program was started neither by root nor by that user.
    #[error(
        "`user` is {wanted}, but only root can become another user, and Kirin was started by uid {current}"
    )]
    NotRoot {
        /// The user in the configuration.
        wanted: String,
        /// The user that runs the program.
        current: u32,
    },
    /// A file that the user needs cannot be given to it.
    #[error("cannot give {0} to the user {1}: {2}")]
    Give(PathBuf, String, #[source] io::Error),
    /// The kernel refused.
    #[error("cannot become the user {0}: {1}")]
    Refused(String, #[source] io::Error),
}

impl User {
    /// Returns the user `name`, if there is one.
    pub fn find(name: &str) -> io::Result<Option<Self>> {
        let found = unistd::User::from_name(name).map_err(io::Error::from)?;
        let Some(user) = found else { return Ok(None) };
        let name =
            CString::new(user.name).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(Some(Self { name, uid: user.uid, gid: user.gid }))
    }

    /// Returns the number of this user.
    pub fn uid(&self) -> u32 {
        self.uid.as_raw()
    }

    /// Gives a file or directory to this user, if the program is still root. Of a symbolic link it
    /// gives the link itself.
    pub fn give(&self, path: &Path) -> Result<(), UserError> {
        if !unistd::geteuid().is_root() {
            return Ok(());
        }
        unistd::fchownat(
            AT_FDCWD,
            path,
            Some(self.uid),
            Some(self.gid),
            AtFlags::AT_SYMLINK_NOFOLLOW,
        )
        .map_err(|error| UserError::Give(path.to_owned(), self.name(), error.into()))
    }

    /// Gives an open file to this user.
    pub fn give_file(&self, file: &File) -> io::Result<()> {
        unistd::fchown(file, Some(self.uid), Some(self.gid)).map_err(io::Error::from)
    }

    /// Returns the name of this user.
    pub fn name(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }

    /// Gives `paths` to this user, in their order, and then becomes this user with all its groups.
    /// There is no way back.
    ///
    /// A directory must come after the files in it: its owner can replace a file by a link to any
    /// other file.
    pub fn serve_as(&self, paths: &[PathBuf]) -> Result<(), UserError> {
        let current = unistd::geteuid();
        if current == self.uid {
            return Ok(());
        }
        if !current.is_root() {
            return Err(UserError::NotRoot { wanted: self.name(), current: current.as_raw() });
        }
        let become_user = || -> nix::Result<()> {
            for path in paths {
                let no_links = AtFlags::AT_SYMLINK_NOFOLLOW;
                unistd::fchownat(AT_FDCWD, path, Some(self.uid), Some(self.gid), no_links)?;
            }
            unistd::initgroups(&self.name, self.gid)?;
            unistd::setgid(self.gid)?;
            // As root this sets the real, the effective and the saved user id, so that there is no
            // way back (setuid(2)).
            unistd::setuid(self.uid)
        };
        become_user().map_err(|error| UserError::Refused(self.name(), error.into()))
    }
}

/// Returns whether the program has the rights of root.
pub fn is_root() -> bool {
    unistd::geteuid().is_root()
}

/// Returns a hint for the operator if this process may not write `path`, and an empty text for
/// other errors. A run as root leaves files that the user which serves cannot open.
pub fn permission_hint(path: &Path, error: &io::Error) -> String {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return String::new();
    }
    let me = user_name(unistd::geteuid().as_raw());
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_own = |metadata: &fs::Metadata| metadata.uid() == unistd::geteuid().as_raw();
    let (what, metadata) = match (fs::metadata(path), fs::metadata(directory)) {
        (Ok(file), _) if !is_own(&file) => (path, file),
        (Ok(_), _) => return format!("; run `chmod u+rw {}`", path.display()),
        (Err(_), Ok(parent)) if !is_own(&parent) => (directory, parent),
        _ => return String::new(),
    };
    let (what, owner) = (what.display(), user_name(metadata.uid()));
    format!("; {what} belongs to {owner}, and Kirin runs as {me}: run `chown {me}: {what}` as root")
}

/// Returns the name of a user, or the number if there is no name that a file could have.
pub fn user_name(uid: u32) -> String {
    let found = unistd::User::from_uid(Uid::from_raw(uid)).ok().flatten();
    let name = found.map(|user| user.name).filter(|name| !name.contains('/') && name != "..");
    name.unwrap_or_else(|| uid.to_string())
}
