//! The memory file and its mapping. This is the only file of the crate with `unsafe`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, AtomicU64};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::thread::futex;

use crate::words::Words;

/// A file in memory whose size cannot change, mapped for this process.
pub(crate) struct Mapping {
    file: File,
    memory: MmapRaw,
}

impl Mapping {
    /// Creates a file of `bytes` zeros. Other processes that map it cannot make it smaller, so that
    /// no access here can fail.
    pub(crate) fn create(name: &str, bytes: usize) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create(name, flags)?);
        ftruncate(&file, bytes as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let memory = MmapOptions::new().len(bytes).map_raw(&file)?;
        Ok(Self { file, memory })
    }

    /// Returns the descriptor of the file.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns the address of eight bytes. Panics if they are not within the memory: all offsets
    /// come from the layout, and none from the memory.
    fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset.is_multiple_of(8) && offset < self.memory.len(), "offset {offset}");
        self.memory.as_mut_ptr().wrapping_add(offset)
    }
}

impl Words for Mapping {
    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: `at` returns the address of eight bytes of the mapping, since the size is a
        // multiple of 8. It is aligned, since a mapping begins at a page. The mapping lives as long
        // as `self`, and the seals keep the file as long as it is. Other threads and processes may
        // write the bytes at any time, which is what atomic operations allow. Nobody has a
        // reference to these bytes that is not atomic.
        unsafe { AtomicU64::from_ptr(self.at(offset).cast()) }
    }

    fn futex(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: as for `word`. The bytes of futexes are used for nothing else, so no operation of
        // 64 bits meets these of 32.
        unsafe { AtomicU32::from_ptr(self.at(offset).cast()) }
    }

    fn wake(&self, offset: usize) {
        // The only failure would be an address that is not mapped.
        let _ = futex::wake(self.futex(offset), futex::Flags::empty(), 1);
    }

    fn wait(&self, offset: usize, value: u32) {
        // The futex has changed already, or a signal has come: the caller looks again.
        let _ = futex::wait(self.futex(offset), futex::Flags::empty(), value, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_the_file_cannot_change_its_size() {
        let mapping = Mapping::create("kirin-test", 4096).unwrap();
        for bytes in [0, 4095, 8192] {
            assert_eq!(ftruncate(mapping.file(), bytes), Err(rustix::io::Errno::PERM), "{bytes}");
        }
    }
}
