//! The memory of another process.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use super::stack_error::StackError;

/// The memory of a process.
pub(crate) trait Memory {
    /// Fills `bytes` with what is at `address`. Returns false if that is not memory.
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool;

    /// Reads several parts of the memory, in their order and with as little time between them as
    /// can be.
    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> bool {
        parts.iter_mut().all(|(address, bytes)| self.read(*address, bytes))
    }

    /// Returns the word at `address`.
    fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes).then(|| u64::from_ne_bytes(bytes))
    }

    /// Returns the 32 bits at `address`.
    fn half_word(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes).then(|| u32::from_ne_bytes(bytes))
    }
}

/// The memory of a running process, by `/proc/PID/mem` (proc_pid_mem(5)), or by
/// process_vm_readv(2) to read several parts at once.
pub(crate) struct ProcessMemory {
    pid: Pid,
    file: File,
}

impl ProcessMemory {
    /// Opens the memory of a process, for which the kernel has the rules of ptrace(2).
    pub(crate) fn open(pid: u32) -> Result<Self, StackError> {
        match File::open(format!("/proc/{pid}/mem")) {
            Ok(file) => Ok(Self { pid: Pid::from_raw(pid.cast_signed()), file }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(StackError::NoStack),
            Err(error) => Err(StackError::Refused(error.to_string())),
        }
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.file.read_exact_at(bytes, address).is_ok()
    }

    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> bool {
        let remote: Vec<RemoteIoVec> = parts
            .iter()
            .map(|(address, bytes)| RemoteIoVec { base: *address as usize, len: bytes.len() })
            .collect();
        let mut local: Vec<IoSliceMut<'_>> =
            parts.iter_mut().map(|(_, bytes)| IoSliceMut::new(bytes)).collect();
        match process_vm_readv(self.pid, &mut local, &remote) {
            Ok(count) => count == remote.iter().map(|part| part.len).sum(),
            // A container may forbid the call.
            Err(Errno::EPERM | Errno::ENOSYS) => {
                parts.iter_mut().all(|(address, bytes)| self.read(*address, bytes))
            }
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_can_be_read() {
        let memory = ProcessMemory::open(std::process::id()).unwrap();
        let known = Box::new(0x1234_5678_9abc_def0_u64);
        let address = std::ptr::from_ref::<u64>(&known).addr() as u64;
        assert_eq!(memory.word(address), Some(*known));
        assert_eq!(memory.word(0), None);
        assert_eq!(memory.word(u64::MAX - 3), None);
    }

    #[test]
    fn a_process_that_has_ended_has_no_stack() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(matches!(ProcessMemory::open(child.id()), Err(StackError::NoStack)));
    }
}
