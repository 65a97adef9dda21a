//! Ports that tests choose by their numbers.

use std::fs::{DirBuilder, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FlockOperation, flock};

/// The lowest port that is leased.
const FIRST: u16 = 20_000;

/// The end of the leased ports if the kernel gives clients even lower ones.
const USUAL_END: u16 = 32_768;

/// A port on 127.0.0.1 that no other test of this machine gets until this is dropped.
///
/// The kernel gives no client a port below its range, so no connection takes it either. No process
/// listens on it until the test starts one.
pub struct LeasedPort {
    number: u16,
    /// The locked file. The lock ends with it.
    _lock: File,
}

impl LeasedPort {
    /// Leases a port that is free for TCP and UDP.
    ///
    /// # Panics
    /// Panics if there is none.
    pub fn lease() -> Self {
        // Each process starts at another place, and goes on where its last lease was.
        static LEASES: AtomicU32 = AtomicU32::new(0);
        let directory = directory();
        let count = u32::from(end() - FIRST);
        let offset = std::process::id().wrapping_mul(7_919);
        (0..count)
            .find_map(|_| {
                let step = offset.wrapping_add(LEASES.fetch_add(1, Ordering::Relaxed)) % count;
                Self::try_lease(&directory, FIRST + u16::try_from(step).ok()?)
            })
            .expect("a port that is free")
    }

    fn try_lease(directory: &Path, number: u16) -> Option<Self> {
        let path = directory.join(number.to_string());
        let lock = File::options().create(true).append(true).open(&path);
        let lock = lock.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
        let address = (Ipv4Addr::LOCALHOST, number);
        // A process that is no test may have the port.
        TcpListener::bind(address).ok()?;
        UdpSocket::bind(address).ok()?;
        Some(Self { number, _lock: lock })
    }

    /// Returns the number of the port.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Returns the address of the port.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}

/// Returns the directory of the locks. All test processes of a user share it, whatever their
/// `TMPDIR` is.
fn directory() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    let path = PathBuf::from(format!("/tmp/ktest-ports-{user}"));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
    made.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}

/// Returns the first port that the kernel gives to clients.
fn end() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let range = range.unwrap_or_default();
    let lowest = range.split_whitespace().next().and_then(|lowest| lowest.parse().ok());
    lowest.filter(|lowest| *lowest > FIRST + 1_000).unwrap_or(USUAL_END)
}
