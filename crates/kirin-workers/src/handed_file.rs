//! Files that a worker hands back in its response head, for Kirin to send as the body. No I/O.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use kirin_files::SeenFile;

/// A file to send.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HandedFile {
    /// `X-Sendfile`: the application has written the path. It must be below a root that the
    /// configuration allows.
    Named(PathBuf),
    /// `Kirin-File`: the adapter has found that the application's open handle is this file. The
    /// adapter can also send the content.
    Opened { path: PathBuf, seen: SeenFile },
}

/// A malformed value of `Kirin-File`.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("Kirin-File is not DEVICE INODE SIZE MODIFIED CHANGED /PATH: {0:?}")]
pub(crate) struct BadHandedFile(String);

impl HandedFile {
    /// Returns the file of an `X-Sendfile` value.
    pub(crate) fn named(value: &[u8]) -> Self {
        Self::Named(path(value))
    }

    /// Parses a `Kirin-File` value: five decimal numbers and an absolute path, which may contain
    /// spaces.
    pub(crate) fn parse(value: &[u8]) -> Result<Self, BadHandedFile> {
        let bad = || BadHandedFile(String::from_utf8_lossy(value).into_owned());
        let mut parts = value.splitn(6, |byte| *byte == b' ');
        let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse::<i128>().ok();
        let mut unsigned =
            || number().and_then(|number| u64::try_from(number).ok()).ok_or_else(bad);
        let (device, inode, size) = (unsigned()?, unsigned()?, unsigned()?);
        let mut signed = || number().and_then(|number| i64::try_from(number).ok()).ok_or_else(bad);
        let (modified, changed) = (signed()?, signed()?);
        let name = parts.next().filter(|name| name.starts_with(b"/")).ok_or_else(bad)?;
        let seen = SeenFile { device, inode, size, modified, changed };
        Ok(Self::Opened { path: path(name), seen })
    }
}

fn path(value: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_five_numbers_and_an_absolute_path() {
        let seen = SeenFile { device: 64, inode: u64::MAX, size: 0, modified: -1, changed: 7 };
        for name in ["/a", "/a b  c", "/\u{e9}"] {
            let value = format!("64 18446744073709551615 0 -1 7 {name}");
            let expected = HandedFile::Opened { path: name.into(), seen };
            assert_eq!(HandedFile::parse(value.as_bytes()), Ok(expected), "{value}");
        }
        for value in [
            "",
            "/a",
            "1 2 3 4 5",
            "1 2 3 4 5 a",
            "1 2 3 4 /a",
            "1 -2 3 4 5 /a",
            "1 2 x 4 5 /a",
            "1 18446744073709551616 3 4 5 /a",
            "1 2 3 9223372036854775808 5 /a",
            "1  2 3 4 5 /a",
        ] {
            assert_eq!(HandedFile::parse(value.as_bytes()), Err(BadHandedFile(value.into())));
        }
    }
}
