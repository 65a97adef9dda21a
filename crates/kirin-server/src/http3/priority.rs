//! Priorities (RFC 9218) as QUIC's library has them.

use kirin_h2::priority::Priority;

/// Returns the priority that QUIC has for one of HTTP. QUIC sends the higher one first, and shares
/// the connection among equals.
pub(super) fn quic_priority(priority: Priority) -> i32 {
    7 - i32::from(priority.urgency)
}
