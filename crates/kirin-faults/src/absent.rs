//! Points without the feature `faults`.

use std::io;
use std::task::{Context, Poll};

use crate::Errno;

/// A point that nothing happens at.
#[derive(Debug)]
pub struct Point;

impl Point {
    /// Returns a point.
    pub const fn new(_name: &'static str, _errors: &'static [Errno]) -> Self {
        Self
    }

    /// Continues.
    #[inline(always)]
    pub fn pass(&'static self) -> io::Result<()> {
        Ok(())
    }

    /// Continues.
    #[inline(always)]
    pub fn poll(&'static self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Returns `length`.
    #[inline(always)]
    pub fn shorten(&'static self, length: usize) -> usize {
        length
    }

    /// Returns false.
    #[inline(always)]
    pub fn refuses(&'static self) -> bool {
        false
    }

    /// Returns 0.
    #[inline(always)]
    pub fn skew(&'static self) -> i64 {
        0
    }
}
