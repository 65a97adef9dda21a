//! The starts of processes that several threads make.
//!
//! A started process inherits each descriptor without close-on-exec, whichever thread has made it.
//! Some descriptors must be inherited: those that an upgrade gives to the new program, and those of
//! an application that its own command starts. They are without close-on-exec for the moment of one
//! start. A process that another thread starts in this moment would inherit them as well. So both
//! kinds of starts hold a [`ProcessStart`].
//!
//! Setting the flag takes the descriptors by their numbers, which needs unsafe code.
#![allow(unsafe_code)]

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

static STARTS: Mutex<()> = Mutex::new(());

/// The right to start a process, or to have descriptors without close-on-exec for one. One thread
/// has it at a time, for about a millisecond.
#[must_use]
pub struct ProcessStart(#[expect(dead_code, reason = "It is held.")] MutexGuard<'static, ()>);

impl ProcessStart {
    /// Waits for the right.
    pub fn begin() -> Self {
        // The lock protects no data, so a panic has left nothing in disorder.
        Self(STARTS.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the descriptors close-on-exec that this process has inherited and does not know, such
    /// as an open file of the shell that started it. Nothing else lacks the flag while no other
    /// thread starts a process. Only the first call does something.
    pub fn close_unknown_on_exec(&self) {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
            let numbers =
                entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
            numbers.filter(|number| *number > 2).for_each(close_on_exec);
        });
    }
}

fn close_on_exec(number: RawFd) {
    // SAFETY: the number is used for these two calls only. If another thread closes the descriptor
    // meanwhile, the calls fail. If the number then names another descriptor, that one has the flag
    // already, because all descriptors of this program do.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    if let Ok(flags) = fcntl_getfd(descriptor)
        && !flags.contains(FdFlags::CLOEXEC)
    {
        // It fails only if the descriptor is not open any more.
        let _ = fcntl_setfd(descriptor, flags | FdFlags::CLOEXEC);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_does_not_inherit_what_this_process_does_not_know() {
        let (inherited, _) = rustix::pipe::pipe().unwrap();
        assert!(!fcntl_getfd(&inherited).unwrap().contains(FdFlags::CLOEXEC));
        let start = ProcessStart::begin();
        start.close_unknown_on_exec();
        let path = format!("/proc/self/fd/{}", inherited.as_raw_fd());
        let found = Command::new("test").args(["-e", &path]).status().unwrap();
        assert_eq!(found.code(), Some(1), "{path}");
    }
}
