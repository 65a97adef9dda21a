//! Descriptors by their number, and variables taken out of the environment: the only unsafe code of
//! the project.
//!
//! Both are sound because of when it happens. [`Claims::begin`] succeeds once in a process, and
//! only while it has one thread:
//!
//! - Taking a variable out of the environment is a data race if another thread reads the
//!   environment (`std::env::remove_var`). There is no other thread.
//! - A descriptor must belong to nobody else (`std::os::fd`, "I/O safety"). Who has started this
//!   program says that the descriptor is ours, and each number is taken once. What was not given by
//!   him cannot pass for it: the standard streams, which `std` holds, are copied and not taken, and
//!   a listening socket nobody else can have opened: the program has run no other code yet.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{InheritError, check};

/// The first descriptor that is no standard stream.
const FIRST_OWN: RawFd = 3;

/// The right to take over what the process was started with. Not `Send`, for the reason above.
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

    /// Removes a variable.
    pub(crate) fn forget_variable(&self, name: &str) {
        // SAFETY: there is one thread; see above.
        unsafe { std::env::remove_var(name) };
    }

    /// The socket with this number, close-on-exec; a listening one non-blocking as well.
    pub(crate) fn claim(&self, number: RawFd, listening: bool) -> Result<OwnedFd, String> {
        if self.taken.borrow().contains(&number) {
            return Err("is named twice".into());
        }
        let failed = |error: rustix::io::Errno| std::io::Error::from(error).to_string();
        // SAFETY: a number that is not open makes the calls fail, which is checked; nobody closes
        // it meanwhile.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        rustix::io::fcntl_getfd(borrowed).map_err(|_| "is not open".to_owned())?;
        check(borrowed, listening)?;
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
        if listening {
            // Of the open file, so that it holds for others who have it; all of them wait before
            // they accept.
            rustix::io::ioctl_fionbio(socket.as_fd(), true).map_err(failed)?;
        }
        Ok(socket)
    }
}
