//! Request bodies that are read to their end before they are passed on, into memory or into a file
//! without a name. So workers and upstreams do not wait for slow clients.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use kirin_client_bytes::{NoRoom, Reservation, Resource};
use kirin_faults::Point;
use kirin_http::{BodyError, BodyLength, RequestBody, Response};
use rustix::io::Errno;

static CREATE: Point = Point::new("spool.create", &[Errno::MFILE, Errno::NOSPC, Errno::IO]);
static WRITE: Point = Point::new("spool.write", &[Errno::NOSPC, Errno::DQUOT, Errno::IO]);
static OPEN: Point = Point::new("spool.open", &[Errno::MFILE, Errno::NFILE]);

/// Bodies of up to this size stay in memory.
const MEMORY_BYTES: u64 = 1024 * 1024;

/// A complete request body. It can be sent more than once.
pub enum SpooledBody {
    /// A body in memory.
    Memory {
        /// The bytes.
        bytes: Bytes,
        /// Counts the bytes for the client.
        reserved: Option<Reservation>,
    },
    /// A body in a file.
    File {
        /// A file that no other process can open.
        file: File,
        /// The length in bytes.
        length: u64,
        /// Counts the bytes for the client.
        reserved: Reservation,
    },
}

/// Why a body could not be spooled.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The client has not sent it completely, or it is too large.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The server holds too many bytes for this client, or for all clients.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// The disk is full, or the file cannot be written.
    #[error("spool file for a request body in {directory}: {error}")]
    Spool {
        /// The directory of the file.
        directory: String,
        /// The error of the kernel.
        error: io::Error,
    },
}

impl SpoolError {
    /// Returns the status to answer with.
    pub fn status(&self) -> StatusCode {
        match self {
            SpoolError::Body(error) => error.status(),
            SpoolError::NoRoom(_) => StatusCode::SERVICE_UNAVAILABLE,
            SpoolError::Spool { error, .. } if is_out_of_space(error) => {
                StatusCode::INSUFFICIENT_STORAGE
            }
            SpoolError::Spool { error, .. } if is_out_of_descriptors(error) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            SpoolError::Spool { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl SpoolError {
    /// Returns the response to the client.
    pub fn response(&self) -> Response {
        match self.status() {
            StatusCode::SERVICE_UNAVAILABLE => Response::no_room(),
            status => Response::error(status),
        }
    }
}

/// Returns whether an error means that a file cannot grow: the file system is full, or the user has
/// no more quota, or no file may be so large (`RLIMIT_FSIZE`).
fn is_out_of_space(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Returns whether an error means that no file descriptor is left, in the process or in the
/// machine. Such an error is temporary.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

impl SpooledBody {
    /// Returns an empty body.
    pub fn empty() -> Self {
        SpooledBody::Memory { bytes: Bytes::new(), reserved: None }
    }

    /// Reads a body to its end. A body without room in memory goes to a file. The page cache takes
    /// the writes, so that they block the loop only as long as a copy takes.
    pub async fn read(body: &mut RequestBody, directory: &Path) -> Result<Self, SpoolError> {
        if let BodyLength::Exact(length) = body.length()
            && length > MEMORY_BYTES
        {
            // The first piece also checks the limit before a file is made.
            let first = body.chunk().await?.unwrap_or_default();
            return Self::read_to_file(body, directory, &first).await;
        }
        let Some(first) = body.chunk().await? else { return Ok(Self::empty()) };
        let Some(second) = body.chunk().await? else {
            return Ok(SpooledBody::Memory { bytes: first, reserved: body.take_reservation() });
        };
        let mut reserved = body.share().reserve(Resource::Memory, 0)?;
        let mut memory = BytesMut::from(&first[..]);
        let mut next = second;
        loop {
            memory.extend_from_slice(&next);
            let length = memory.len() as u64;
            if length > MEMORY_BYTES || reserved.resize(length).is_err() {
                return Self::read_to_file(body, directory, &memory).await;
            }
            match body.chunk().await? {
                Some(bytes) => next = bytes,
                None => break,
            }
        }
        Ok(SpooledBody::Memory { bytes: memory.freeze(), reserved: Some(reserved) })
    }

    async fn read_to_file(
        body: &mut RequestBody,
        directory: &Path,
        first: &[u8],
    ) -> Result<Self, SpoolError> {
        let failed =
            |error| SpoolError::Spool { directory: directory.display().to_string(), error };
        let mut length = first.len() as u64;
        let mut reserved = body.share().reserve(Resource::Disk, length)?;
        CREATE.pass().map_err(failed)?;
        let mut file = tempfile::tempfile_in(directory).map_err(failed)?;
        file.write_all(first).map_err(failed)?;
        while let Some(bytes) = body.chunk().await? {
            length += bytes.len() as u64;
            reserved.resize(length)?;
            WRITE.pass().map_err(failed)?;
            file.write_all(&bytes).map_err(failed)?;
        }
        Ok(SpooledBody::File { file, length, reserved })
    }

    /// Opens the file once more, for another process: only to read, and with a position of its own.
    /// Fails for a body in memory, and if `/proc` is not there.
    pub fn reopen(&self) -> io::Result<File> {
        match self {
            SpooledBody::Memory { .. } => Err(io::ErrorKind::NotFound.into()),
            SpooledBody::File { file, .. } => {
                OPEN.pass()?;
                File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
            }
        }
    }

    /// Returns the length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            SpooledBody::Memory { bytes, .. } => bytes.len() as u64,
            SpooledBody::File { length, .. } => *length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_507_and_other_failures_of_the_file_are_not() {
        for (errno, status) in [
            (Errno::NOSPC, StatusCode::INSUFFICIENT_STORAGE),
            (Errno::DQUOT, StatusCode::INSUFFICIENT_STORAGE),
            (Errno::FBIG, StatusCode::INSUFFICIENT_STORAGE),
            (Errno::MFILE, StatusCode::SERVICE_UNAVAILABLE),
            (Errno::NFILE, StatusCode::SERVICE_UNAVAILABLE),
            (Errno::NOENT, StatusCode::INTERNAL_SERVER_ERROR),
            (Errno::ACCESS, StatusCode::INTERNAL_SERVER_ERROR),
        ] {
            let error = SpoolError::Spool { directory: "/tmp".into(), error: errno.into() };
            assert_eq!(error.status(), status, "{error}");
        }
    }
}
