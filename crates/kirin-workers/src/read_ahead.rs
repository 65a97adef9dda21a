//! Bytes of a response that have been read from a worker and not been taken by the client. They are
//! in memory, and for slow clients in a file without a name. `response_pump` fills and drains this.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::{Bytes, BytesMut};
use kirin_client_bytes::{ClientShare, NoRoom, Reservation, Resource};
use rustix::fs::FallocateFlags;

/// The most bytes in memory, not counting the last read.
const MEMORY_BYTES: usize = 1024 * 1024;

/// The same limit for a slow client, part of whose bytes are in a file already.
const SLOW_MEMORY_BYTES: usize = 64 * 1024;

/// The space of the file is given back in steps of this size.
const GIVE_BACK_BYTES: u64 = 4 * 1024 * 1024;

/// Bytes taken from the file at once.
const TAKE_BYTES: u64 = 256 * 1024;

/// Bytes in their order: first those in the file, then those in memory.
pub(crate) struct ReadAhead {
    memory: BytesMut,
    file: Option<SpillFile>,
    share: ClientShare,
    /// Counts `memory`.
    in_memory: Option<Reservation>,
    /// Counts the space that `file` takes.
    on_disk: Option<Reservation>,
}

/// A file with bytes of a response. Those from `taken` to `written` have not been taken yet. The
/// space before `given_back` has been given back.
struct SpillFile {
    file: File,
    taken: u64,
    written: u64,
    given_back: u64,
}

impl ReadAhead {
    /// Starts with bytes that have been read already. All bytes are counted in the client's
    /// `share`.
    pub(crate) fn new(memory: BytesMut, share: &ClientShare) -> Self {
        Self { memory, file: None, share: share.clone(), in_memory: None, on_disk: None }
    }

    /// Counts the bytes in memory. Returns false if there is no room for them.
    pub(crate) fn count(&mut self) -> bool {
        let bytes = self.memory.len() as u64;
        match &mut self.in_memory {
            Some(reserved) => reserved.resize(bytes).is_ok(),
            None => {
                self.in_memory = self.share.reserve(Resource::Memory, bytes).ok();
                self.in_memory.is_some()
            }
        }
    }

    /// Returns the memory, to append to it.
    pub(crate) fn memory(&mut self) -> &mut BytesMut {
        &mut self.memory
    }

    /// Returns whether memory holds as much as it may.
    pub(crate) fn is_full(&self) -> bool {
        let limit = if self.file.is_some() { SLOW_MEMORY_BYTES } else { MEMORY_BYTES };
        self.memory.len() >= limit
    }

    /// Returns how many bytes are in the file.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.written - file.taken)
    }

    /// Moves the bytes in memory to the file, which is created in `directory`. If that fails,
    /// nothing changes.
    ///
    /// Writing goes to the page cache. It blocks the event loop for as long as a copy takes.
    pub(crate) fn spill(&mut self, directory: &Path) -> Result<io::Result<()>, NoRoom> {
        if self.memory.is_empty() {
            return Ok(Ok(()));
        }
        let length = self.file_bytes() + self.memory.len() as u64;
        match &mut self.on_disk {
            Some(on_disk) => on_disk.resize(length)?,
            None => self.on_disk = Some(self.share.reserve(Resource::Disk, length)?),
        }
        if let Err(error) = self.write(directory) {
            self.count_file();
            return Ok(Err(error));
        }
        // Memory that is kept here would not be counted.
        self.memory = BytesMut::new();
        self.in_memory = None;
        Ok(Ok(()))
    }

    /// Returns the space that the file takes.
    fn file_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.written - file.given_back)
    }

    fn count_file(&mut self) {
        let bytes = self.file_bytes();
        if let Some(on_disk) = &mut self.on_disk {
            // Making a reservation smaller does not fail.
            let _ = on_disk.resize(bytes);
        }
    }

    fn write(&mut self, directory: &Path) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = tempfile::tempfile_in(directory)?;
                self.file.insert(SpillFile { file, taken: 0, written: 0, given_back: 0 })
            }
        };
        file.file.write_all_at(&self.memory, file.written)?;
        file.written += self.memory.len() as u64;
        Ok(())
    }

    /// Takes the oldest bytes. They are empty if there are none.
    pub(crate) fn take(&mut self) -> io::Result<Bytes> {
        // A file that could not be written may exist and be empty.
        let Some(file) = self.file.as_mut().filter(|file| file.taken < file.written) else {
            self.in_memory = None;
            return Ok(std::mem::take(&mut self.memory).freeze());
        };
        let mut data = vec![0; TAKE_BYTES.min(file.written - file.taken) as usize];
        file.file.read_exact_at(&mut data, file.taken)?;
        file.taken += data.len() as u64;
        if file.taken == file.written {
            // Closing the file gives its space back. If the client is slow again, it gets another
            // file.
            self.file = None;
            self.on_disk = None;
        } else if file.taken - file.given_back >= GIVE_BACK_BYTES {
            file.give_back();
            self.count_file();
        }
        Ok(Bytes::from(data))
    }
}

impl SpillFile {
    /// Gives back the space of the taken bytes, if the file system supports that.
    fn give_back(&mut self) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let length = self.taken - self.given_back;
        if rustix::fs::fallocate(&self.file, flags, self.given_back, length).is_ok() {
            self.given_back = self.taken;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MEMORY_BYTES, ReadAhead};
    use bytes::BytesMut;
    use kirin_client_bytes::ClientShare;
    use proptest::prelude::*;
    use std::path::Path;

    fn drain(ahead: &mut ReadAhead) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let data = ahead.take().expect("readable");
            if data.is_empty() {
                return all;
            }
            all.extend_from_slice(&data);
        }
    }

    #[test]
    fn spilled_bytes_come_before_bytes_that_were_read_later() {
        let mut ahead = ReadAhead::new(BytesMut::from(&b"first "[..]), &ClientShare::default());
        ahead.spill(&std::env::temp_dir()).expect("room").expect("a temporary file");
        ahead.memory().extend_from_slice(b"second ");
        ahead.spill(&std::env::temp_dir()).expect("room").expect("a temporary file");
        ahead.memory().extend_from_slice(b"third");
        assert_eq!(ahead.spilled_bytes(), 13);
        assert_eq!(drain(&mut ahead), b"first second third");
        assert_eq!(ahead.spilled_bytes(), 0);
    }

    #[test]
    fn a_directory_that_is_not_there_loses_nothing() {
        let mut ahead = ReadAhead::new(BytesMut::from(&b"kept"[..]), &ClientShare::default());
        assert!(ahead.spill(Path::new("/nowhere/at/all")).expect("room").is_err());
        assert_eq!(drain(&mut ahead), b"kept");
    }

    #[test]
    fn memory_is_full_at_its_share() {
        let mut ahead = ReadAhead::new(BytesMut::new(), &ClientShare::default());
        ahead.memory().resize(MEMORY_BYTES - 1, b'x');
        assert!(!ahead.is_full());
        ahead.memory().extend_from_slice(b"x");
        assert!(ahead.is_full());
    }

    proptest! {
        #[test]
        fn bytes_keep_their_order_however_they_are_spilled_and_taken(
            steps in prop::collection::vec((0..3_u8, prop::collection::vec(any::<u8>(), 0..2000)), 0..50)
        ) {
            let (mut ahead, mut sent, mut taken) = (ReadAhead::new(BytesMut::new(), &ClientShare::default()), Vec::new(), Vec::new());
            for (step, data) in steps {
                match step {
                    0 => ahead.spill(&std::env::temp_dir()).expect("room").expect("a temporary file"),
                    1 => taken.extend_from_slice(&ahead.take().expect("readable")),
                    _ => {
                        ahead.memory().extend_from_slice(&data);
                        sent.extend_from_slice(&data);
                    }
                }
            }
            taken.extend(drain(&mut ahead));
            prop_assert_eq!(taken, sent);
        }
    }
}
