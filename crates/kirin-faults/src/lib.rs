#![forbid(unsafe_code)]
//! Named points at which a file, a socket, the start of a process, a reservation of memory or a
//! clock can be made to fail or to wait.
//!
//! A crate declares a [`Point`] as a static, and passes it just before the operation that can fail:
//!
//! ```
//! use kirin_faults::{Errno, Point};
//!
//! static WRITE: Point = Point::new("spool.write", &[Errno::NOSPC, Errno::IO]);
//!
//! fn write_all(mut file: &std::fs::File, bytes: &[u8]) -> std::io::Result<()> {
//!     WRITE.pass()?;
//!     std::io::Write::write_all(&mut file, bytes)
//! }
//! ```
//!
//! Without the feature `faults` a point is nothing, and the compiler removes it. With it, the
//! variable `KIRIN_FAULTS` of the environment has the seed of a plan. The plan decides for each
//! name which of its calls fail, and how. It depends on the seed, the name and the number of the
//! call only, so the same seed is the same plan again. `tests/faults` starts the program with one
//! seed after the other (CONTRIBUTING.md).

pub use rustix::io::Errno;

#[cfg(not(feature = "faults"))]
mod absent;
#[cfg(feature = "faults")]
mod planned;

#[cfg(not(feature = "faults"))]
pub use absent::Point;
#[cfg(feature = "faults")]
pub use planned::point::Point;
