//! The state that outlives the program: the account's key and the certificates, in a directory that
//! only its owner can read.
//!
//! `DIRECTORY/AUTHORITY/account.json` is the account. `DIRECTORY/AUTHORITY/NAME.pem` is a key,
//! followed by its certificates. `NAME.failures.json` counts failures while there are any. A file
//! is written beside its place and renamed, so that there is always a complete one. Several Kirins
//! may use one directory: the one that orders a certificate holds a lock on `lock`, and the others
//! wait and use the result.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use instant_acme::AccountCredentials;
use rustix::fs::{Mode, OFlags};

use crate::error::AcmeError;
use crate::schedule::Failures;

const ACCOUNT: &str = "account.json";
/// The file that is locked by the Kirin that orders certificates.
const LOCK: &str = "lock";

/// The state of one authority.
pub struct StateDirectory {
    directory: PathBuf,
}

impl StateDirectory {
    /// Makes the directory if it does not exist. `authority` is the URL of its ACME directory.
    pub fn open(root: &Path, authority: &str) -> Result<Self, AcmeError> {
        let directory = root.join(authority_name(authority));
        let made = || -> io::Result<()> {
            // The operator may have named a directory with other files in it. Its mode stays as it
            // is.
            fs::create_dir_all(root)?;
            match DirBuilder::new().mode(0o700).create(&directory) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            // No symbolic link is followed here. The owner of the directory may put one there
            // before root starts the program the next time.
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
            let directory = rustix::fs::open(&directory, flags, Mode::empty())?;
            Ok(rustix::fs::fchmod(directory, Mode::RWXU)?)
        };
        made().map_err(|error| AcmeError::State(directory.clone(), error))?;
        Ok(Self { directory })
    }

    /// Returns the directory and all files in it, if they belong to root.
    pub fn paths_of_root(&self) -> Vec<PathBuf> {
        // Root trusts no file of another user.
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

    /// Takes the lock for orders, until the file is dropped. Returns none while another Kirin has
    /// it.
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

    /// Returns the path of the certificate whose first name is `domain`.
    pub fn certificate(&self, domain: &str) -> PathBuf {
        self.directory.join(format!("{domain}.pem"))
    }

    /// Writes a certificate and its key.
    pub fn keep_certificate(&self, domain: &str, pem: &str) -> Result<(), AcmeError> {
        self.write(&self.certificate(domain), pem.as_bytes())
    }

    /// Returns the account, if there is one that can be read.
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

    /// Writes the account.
    pub fn keep_account(&self, account: &AccountCredentials) -> Result<(), AcmeError> {
        let path = self.directory.join(ACCOUNT);
        let text = serde_json::to_vec(account)
            .map_err(|error| AcmeError::State(path.clone(), error.into()))?;
        self.write(&path, &text)
    }

    /// Writes a copy of the account of all machines, unless it is there.
    pub fn copy_account(&self, account: &AccountCredentials) -> Result<(), AcmeError> {
        let text = serde_json::to_vec(account).unwrap_or_default();
        match fs::read(self.directory.join(ACCOUNT)).is_ok_and(|kept| kept == text) {
            true => Ok(()),
            false => self.keep_account(account),
        }
    }

    /// Removes the account.
    pub fn forget_account(&self) -> Result<(), AcmeError> {
        let path = self.directory.join(ACCOUNT);
        fs::remove_file(&path).map_err(|error| AcmeError::State(path, error))
    }

    /// Returns the failures in a row to get a certificate for `domain`.
    pub fn failures(&self, domain: &str) -> Failures {
        let text = fs::read(self.failures_file(domain)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Writes the failures, for the next start of the program. An error here is ignored: the
    /// certificate matters more.
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
            // The mode is 0600, because tempfile creates the file.
            let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
            file.write_all(content)?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            fs::File::open(&self.directory)?.sync_all()
        };
        written().map_err(|error| AcmeError::State(path.to_owned(), error))
    }
}

/// Returns the URL of an authority as a file name.
pub fn authority_name(address: &str) -> String {
    let address = address.split_once("://").map_or(address, |(_, rest)| rest);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    address.chars().map(plain).collect::<String>().trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn files_of_the_state_directory_are_private_to_their_owner() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("new/acme");
        let state = StateDirectory::open(&root, "https://ca.test:14000/dir").unwrap();
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
    fn an_existing_directory_keeps_its_mode_and_a_link_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let mode = || fs::metadata(directory.path()).unwrap().permissions().mode() & 0o777;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        StateDirectory::open(directory.path(), "https://ca.test/").unwrap();
        assert_eq!(mode(), 0o755);
        symlink("/", directory.path().join("other.test-")).unwrap();
        assert!(StateDirectory::open(directory.path(), "https://other.test/").is_err());
    }

    #[test]
    fn the_file_name_of_an_address_stays_in_the_directory() {
        assert_eq!(
            authority_name("https://acme-v02.api.letsencrypt.org/directory"),
            "acme-v02.api.letsencrypt.org-directory"
        );
        assert_eq!(authority_name("https://../../etc"), "-..-etc");
    }
}
