//! Priorities (RFC 9218) as QUIC's library has them: it sends the stream with the highest number
//! first, and shares the connection among streams with the same number.

use kirin_h2::priority::Priority;

/// The numbers of one urgency.
const URGENCY_STEP: i32 = 1 << 28;

/// Returns the number of a response. Of one urgency, those that are not incremental go first, one
/// after the other in the order of their streams (RFC 9218 section 10). The others share the
/// connection. The default priority has the number 0, which every stream has at first.
pub(super) fn quic_priority(priority: Priority, stream_index: u64) -> i32 {
    let of_urgency = (3 - i32::from(priority.urgency)) * URGENCY_STEP;
    if priority.incremental {
        return of_urgency;
    }
    let last = URGENCY_STEP - 1;
    let index = i32::try_from(stream_index).unwrap_or(last).min(last - 1);
    of_urgency + last - index
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(urgency: u8, incremental: bool, stream: u64) -> i32 {
        quic_priority(Priority { urgency, incremental }, stream)
    }

    #[test]
    fn urgent_responses_go_first_and_whole_ones_in_their_order() {
        let in_order = [
            number(0, false, u64::MAX),
            number(0, true, 0),
            number(1, false, 7),
            number(3, false, 0),
            number(3, false, 1),
            number(3, false, u64::MAX - 1),
            number(3, true, 0),
            number(7, false, 0),
            number(7, true, 0),
        ];
        assert!(in_order.is_sorted_by(|one, next| one > next), "{in_order:?}");
        assert_eq!(number(3, true, 1), number(3, true, 9), "they share");
        assert_eq!(quic_priority(Priority::default(), 5), 0);
        assert!(number(0, false, 0) < i32::MAX, "the control stream goes before all");
    }
}
