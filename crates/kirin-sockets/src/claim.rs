//! Takes over descriptors by their number, and removes variables from the environment.
//!
//! Both are sound because of when they happen. [`Claims::begin`] succeeds once in a process, and
//! only while the process has one thread:
//!
//! - Removing a variable is a data race if another thread reads the environment
//!   (`std::env::remove_var`). There is no other thread.
//! - A descriptor must have no other owner (`std::os::fd`, "I/O safety"). The process that started
//!   this program says that the descriptor is ours, and each number is taken once. A wrong number
//!   cannot name a descriptor of another owner: the standard streams, which `std` owns, are copied
//!   and not taken. No other code of the program has run that could have opened a listening socket.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::net::{AddressFamily, SocketType};

use crate::InheritError;

/// The first descriptor that is no standard stream.
const FIRST_OWN: RawFd = 3;

/// The right to take over descriptors and variables. It is not `Send`, for the reason above.
pub(crate) struct Claims {
    taken: RefCell<Vec<RawFd>>,
}

impl Claims {
    pub(crate) fn begin() -> Result<Self, InheritError> {
        static BEGUN: AtomicBool = AtomicBool::new(false);
        let threads = std::fs::read_dir("/proc/self/task").map_or(usize::MAX, Iterator::count);
        if threads != 1 || BEGUN.swap(true, Ordering::Relaxed) {
            return Err(InheritError::TooLate);
        }
        Ok(Self { taken: RefCell::default() })
    }

    /// Removes a variable from the environment.
    pub(crate) fn forget_variable(&self, name: &str) {
        // SAFETY: there is one thread; see above.
        unsafe { std::env::remove_var(name) };
    }

    /// Takes the socket with this number, and makes it close-on-exec. Other kinds than a stream
    /// become non-blocking as well.
    pub(crate) fn claim(&self, number: RawFd, kind: Kind) -> Result<OwnedFd, String> {
        if self.taken.borrow().contains(&number) {
            return Err("is named twice".into());
        }
        let failed = |error: rustix::io::Errno| std::io::Error::from(error).to_string();
        // SAFETY: a number that is not open makes the calls fail, which is checked. Nothing closes
        // it meanwhile.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        rustix::io::fcntl_getfd(borrowed).map_err(|_| "is not open".to_owned())?;
        kind.check(borrowed)?;
        let socket = if number < FIRST_OWN {
            rustix::io::fcntl_dupfd_cloexec(borrowed, FIRST_OWN).map_err(failed)?
        } else {
            // SAFETY: it is open, it is ours, and it is taken once; see above.
            unsafe { OwnedFd::from_raw_fd(number) }
        };
        self.taken.borrow_mut().push(number);
        let flags = rustix::io::fcntl_getfd(socket.as_fd()).map_err(failed)?;
        rustix::io::fcntl_setfd(socket.as_fd(), flags | rustix::io::FdFlags::CLOEXEC)
            .map_err(failed)?;
        if kind != Kind::Stream {
            // This is a flag of the open file, so it holds for other processes with the socket,
            // too. All of them wait before they accept or receive.
            rustix::io::ioctl_fionbio(socket.as_fd(), true).map_err(failed)?;
        }
        Ok(socket)
    }
}

/// What a descriptor must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A stream socket that listens.
    Listener,
    /// A unix stream socket that does not listen.
    Stream,
    /// A UDP socket.
    Datagrams,
    /// A unix socket that keeps messages apart.
    Messages,
}

impl Kind {
    /// Returns what is wrong with a descriptor.
    fn check(self, socket: BorrowedFd<'_>) -> Result<(), String> {
        let failed =
            |error: rustix::io::Errno| format!("is not a socket: {}", std::io::Error::from(error));
        let unix: &[_] = &[AddressFamily::UNIX];
        let internet: &[_] = &[AddressFamily::INET, AddressFamily::INET6];
        let any: &[_] = &[AddressFamily::INET, AddressFamily::INET6, AddressFamily::UNIX];
        let (wanted, families) = match self {
            Self::Listener => (SocketType::STREAM, any),
            Self::Stream => (SocketType::STREAM, unix),
            Self::Datagrams => (SocketType::DGRAM, internet),
            Self::Messages => (SocketType::SEQPACKET, unix),
        };
        let found = rustix::net::sockopt::socket_type(socket).map_err(failed)?;
        if found != wanted {
            return Err(match wanted {
                SocketType::STREAM => {
                    "is a socket that has no connections (UDP?): Kirin serves none".into()
                }
                _ => format!("is a socket of another type: {found:?}"),
            });
        }
        let family = rustix::net::getsockname(socket).map_err(failed)?.address_family();
        let listens = rustix::net::sockopt::socket_acceptconn(socket).map_err(failed)?;
        match (self, listens) {
            (Self::Listener, false) => return Err("does not listen (listen(2))".into()),
            (Self::Stream, true) => return Err("is a listening socket (listen(2))".into()),
            _ => {}
        }
        if families.contains(&family) {
            Ok(())
        } else {
            Err(format!("is of another address family: {family:?}"))
        }
    }
}
