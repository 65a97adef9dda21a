//! What has to outlive the program: the account's key and the certificates, in a directory that
//! only its owner can read.
//!
//! `DIRECTORY/AUTHORITY/account.json` and `DIRECTORY/AUTHORITY/NAME.pem`, the key and then the
//! certificates, and `NAME.failures.json` while there are some. Files are written beside and
//! renamed, so that there is always a whole one. Several Kirins may use one directory: whoever
//! talks with the authority has a lock on `lock`, and the others wait and use what it gets.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use instant_acme::AccountCredentials;
use rustix::fs::{Mode, OFlags};

use crate::error::AcmeError;
use crate::schedule::Failures;

const ACCOUNT: &str = "account.json";
/// Locked by the Kirin that talks with the authority.
const LOCK: &str = "lock";

/// The directory of one authority.
pub struct State {
    directory: PathBuf,
}

impl State {
    /// Makes the directory if it is not there. `authority` is the address of its directory.
    pub fn open(root: &Path, authority: &str) -> Result<Self, AcmeError> {
        let directory = root.join(file_name(authority));
        let made = || -> io::Result<()> {
            // Somebody may have named a directory for it that has other things in it: it stays as
            // it is.
            fs::create_dir_all(root)?;
            match DirBuilder::new().mode(0o700).create(&directory) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            // Not through a symbolic link, since whom it will belong to may put one there for the
            // next start by root.
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
            let directory = rustix::fs::open(&directory, flags, Mode::empty())?;
            Ok(rustix::fs::fchmod(directory, Mode::RWXU)?)
        };
        made().map_err(|error| AcmeError::State(directory.clone(), error))?;
        Ok(Self { directory })
    }

    /// The directory and all that is in it, if it is root's.
    pub fn paths_of_root(&self) -> Vec<PathBuf> {
        // Root trusts nothing that somebody else has put there.
        if !fs::symlink_metadata(&self.directory)
            .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == 0)
        {
            return Vec::new();
        }
        let mut paths = vec![self.directory.clone()];
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        paths.extend(entries.map(|entry| entry.path()));
        paths
    }

    /// Takes the right to talk with the authority, until the file is dropped. `None` while another
    /// Kirin has it.
    pub fn try_lock(&self) -> Result<Option<fs::File>, AcmeError> {
        let path = self.directory.join(LOCK);
        let failed = |error| AcmeError::State(path.clone(), error);
        let mut options = fs::OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Where the certificate for `domain`, and maybe others, is.
    pub fn certificate(&self, domain: &str) -> PathBuf {
        self.directory.join(format!("{domain}.pem"))
    }

    /// Keeps a certificate and its key.
    pub fn keep_certificate(&self, domain: &str, pem: &str) -> Result<(), AcmeError> {
        self.write(&self.certificate(domain), pem.as_bytes())
    }

    /// The account, if there is one that can be read.
    pub fn account(&self) -> Option<AccountCredentials> {
        let path = self.directory.join(ACCOUNT);
        let text = fs::read(&path).ok()?;
        match serde_json::from_slice(&text) {
            Ok(account) => Some(account),
            Err(error) => {
                tracing::warn!(%error, "{} is not an account; a new one is made", path.display());
                None
            }
        }
    }

    /// Keeps the account.
    pub fn keep_account(&self, account: &AccountCredentials) -> Result<(), AcmeError> {
        let path = self.directory.join(ACCOUNT);
        let text = serde_json::to_vec(account)
            .map_err(|error| AcmeError::State(path.clone(), error.into()))?;
        self.write(&path, &text)
    }

    /// Forgets the account.
    pub fn forget_account(&self) -> Result<(), AcmeError> {
        let path = self.directory.join(ACCOUNT);
        fs::remove_file(&path).map_err(|error| AcmeError::State(path, error))
    }

    /// Failures in a row to get a certificate for `domain`.
    pub fn failures(&self, domain: &str) -> Failures {
        let text = fs::read(self.failures_file(domain)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Remembers them beyond the end of the program. It is no failure more if that cannot be.
    pub fn keep_failures(&self, domain: &str, failures: Failures) {
        let path = self.failures_file(domain);
        if failures.count == 0 {
            let _ = fs::remove_file(path);
        } else if let Ok(text) = serde_json::to_vec(&failures) {
            let _ = self.write(&path, &text);
        }
    }

    fn failures_file(&self, domain: &str) -> PathBuf {
        self.directory.join(format!("{domain}.failures.json"))
    }

    fn write(&self, path: &Path, content: &[u8]) -> Result<(), AcmeError> {
        let written = || -> io::Result<()> {
            // Mode 0600, as tempfile makes them.
            let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
            file.write_all(content)?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            fs::File::open(&self.directory)?.sync_all()
        };
        written().map_err(|error| AcmeError::State(path.to_owned(), error))
    }
}

/// The address of an authority as the name of a file.
fn file_name(address: &str) -> String {
    let address = address.split_once("://").map_or(address, |(_, rest)| rest);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    address.chars().map(plain).collect::<String>().trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_is_kept_is_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("new/acme");
        let state = State::open(&root, "https://ca.test:14000/dir").unwrap();
        state.keep_certificate("a.test", "one").unwrap();
        state.keep_certificate("a.test", "two").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let path = root.join("ca.test-14000-dir/a.test.pem");
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
        assert_eq!(
            fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "nothing is left over"
        );
    }

    #[test]
    fn a_directory_that_was_there_stays_as_it_is_and_a_link_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let mode = || fs::metadata(directory.path()).unwrap().permissions().mode() & 0o777;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        State::open(directory.path(), "https://ca.test/").unwrap();
        assert_eq!(mode(), 0o755);
        symlink("/", directory.path().join("other.test-")).unwrap();
        assert!(State::open(directory.path(), "https://other.test/").is_err());
    }

    #[test]
    fn an_address_is_no_way_out_of_the_directory() {
        assert_eq!(
            file_name("https://acme-v02.api.letsencrypt.org/directory"),
            "acme-v02.api.letsencrypt.org-directory"
        );
        assert_eq!(file_name("https://../../etc"), "-..-etc");
    }
}
