//! Flow control (RFC 9113 section 5.2).

/// The largest window.
const MAX_WINDOW: i64 = 0x7fff_ffff;

/// Bytes that we may still send. A change of SETTINGS_INITIAL_WINDOW_SIZE can make it negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendWindow(i32);

/// A window became larger than 2^31-1 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

impl SendWindow {
    pub(crate) fn new(bytes: u32) -> Self {
        Self(i32::try_from(bytes).unwrap_or(i32::MAX))
    }

    /// Returns how many bytes may be sent.
    #[inline]
    pub(crate) fn room(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Notes that `bytes` were sent.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.room(), "{bytes} bytes for a window of {}", self.0);
        self.0 -= i32::try_from(bytes).unwrap_or(i32::MAX);
    }

    /// Changes the window by `bytes`, which may be negative.
    pub(crate) fn change(&mut self, bytes: i64) -> Result<(), Overflow> {
        let changed = i64::from(self.0) + bytes;
        if changed > MAX_WINDOW {
            return Err(Overflow);
        }
        // Both the old and the new initial window are below 2^31, so it fits.
        self.0 = i32::try_from(changed).unwrap_or(i32::MIN);
        Ok(())
    }
}

/// Bytes that the client may still send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveWindow {
    left: u32,
    /// Bytes that were consumed, and that the client was not told about yet.
    released: u32,
    most: u32,
}

impl ReceiveWindow {
    pub(crate) fn new(bytes: u32) -> Self {
        Self { left: bytes, released: 0, most: bytes }
    }

    /// Notes that `bytes` have come. Returns false if they are more than the client may send.
    #[must_use]
    pub(crate) fn receive(&mut self, bytes: usize) -> bool {
        let left = u32::try_from(bytes).ok().and_then(|bytes| self.left.checked_sub(bytes));
        self.left = left.unwrap_or(0);
        left.is_some()
    }

    /// Notes that `bytes` were consumed. Returns by how much the client may be told to enlarge its
    /// window: not for every few bytes.
    pub(crate) fn release(&mut self, bytes: usize) -> Option<u32> {
        self.released += u32::try_from(bytes).unwrap_or(u32::MAX);
        debug_assert!(self.left + self.released <= self.most, "{self:?}");
        if self.released < self.most / 2 {
            return None;
        }
        let released = std::mem::take(&mut self.released);
        self.left += released;
        Some(released)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_may_become_negative_and_not_too_large() {
        let mut window = SendWindow::new(10);
        window.take(10);
        assert_eq!(window.change(-5), Ok(()));
        assert_eq!(window.room(), 0);
        assert_eq!(window.change(8), Ok(()));
        assert_eq!(window.room(), 3);
        assert_eq!(window.change(MAX_WINDOW), Err(Overflow));
        assert_eq!(window.change(MAX_WINDOW - 3), Ok(()));
    }

    #[test]
    fn a_client_is_told_when_half_of_its_window_was_consumed() {
        let mut window = ReceiveWindow::new(100);
        assert!(window.receive(90));
        assert!(!window.receive(11));
        let mut window = ReceiveWindow::new(100);
        assert!(window.receive(60));
        assert_eq!((window.release(49), window.release(11)), (None, Some(60)));
        assert!(window.receive(100));
    }
}
