//! The `traceparent` field: which trace a request belongs to (W3C Trace Context).

use std::fmt;

use crate::request_id::RequestIds;

/// The length of a field value of version 00, in bytes.
const VALUE_BYTES: usize = 55;

/// The flag that says that the caller may have recorded the trace (section 3.2.2.5.1).
const SAMPLED: u8 = 1;

/// The trace of a request, and the request's own span in it. It is displayed as the value of
/// `traceparent` for those who are asked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The id of the trace, not 0.
    pub trace_id: u128,
    /// The id of the request's span, not 0.
    pub span_id: u64,
    /// The span of the caller.
    pub parent: Option<u64>,
    /// Whether the trace is recorded.
    pub is_sampled: bool,
}

/// The share of the traces that are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceSampling {
    /// Of 2^56 traces, so many are recorded.
    threshold: u64,
}

/// The value of a `traceparent` field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TraceParent {
    trace_id: u128,
    parent_id: u64,
    is_sampled: bool,
}

impl TraceSampling {
    /// The bits of a trace id that are random (W3C Trace Context Level 2 section 3.2.2.3.1).
    const RANDOM_BITS: u32 = 56;

    /// Returns the sampling of a share from 0 to 1.
    pub fn new(share: f64) -> Self {
        let all = 1_u64 << Self::RANDOM_BITS;
        Self { threshold: (share.clamp(0.0, 1.0) * all as f64) as u64 }
    }

    /// Returns whether a trace is recorded. `random` is the id of a trace that begins here, or a
    /// number of our own.
    fn takes(self, random: u128) -> bool {
        (random as u64) & ((1 << Self::RANDOM_BITS) - 1) < self.threshold
    }
}

impl TraceContext {
    /// Continues the trace in a `traceparent` field, or begins one if there is no valid field.
    ///
    /// A trusted proxy decides whether its trace is recorded. For strangers, `sampling` decides by
    /// a number of our own: by the trace id, which they choose, they could have each of their
    /// requests recorded.
    pub fn continued(
        field: Option<&[u8]>,
        is_trusted: bool,
        sampling: TraceSampling,
        ids: &RequestIds,
    ) -> Self {
        let span_id = ids.next_half().max(1);
        match field.and_then(parse) {
            Some(TraceParent { trace_id, parent_id, is_sampled }) => Self {
                trace_id,
                span_id,
                parent: Some(parent_id),
                is_sampled: match is_trusted {
                    true => is_sampled,
                    false => sampling.takes(ids.next_number()),
                },
            },
            None => {
                let trace_id = ids.next_number().max(1);
                Self { trace_id, span_id, parent: None, is_sampled: sampling.takes(trace_id) }
            }
        }
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace_id, span_id, is_sampled, .. } = self;
        write!(formatter, "00-{trace_id:032x}-{span_id:016x}-{:02x}", u8::from(*is_sampled))
    }
}

/// Parses a value (section 3.2). A later version is read as far as this one goes (section 4.3).
fn parse(value: &[u8]) -> Option<TraceParent> {
    let value = std::str::from_utf8(value).ok()?;
    let (known, rest) = value.split_at_checked(VALUE_BYTES)?;
    let mut parts = known.split('-');
    let mut number = |digits: usize| {
        let part = parts.next()?;
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_valid = part.len() == digits && part.bytes().all(is_hex);
        u128::from_str_radix(part, 16).ok().filter(|_| is_valid)
    };
    let (version, trace_id) = (number(2)?, number(32)?);
    let (parent_id, flags) = (u64::try_from(number(16)?).ok()?, u8::try_from(number(2)?).ok()?);
    let is_whole = match version {
        0 => rest.is_empty(),
        0xff => false,
        _ => rest.is_empty() || rest.starts_with('-'),
    };
    let is_sampled = flags & SAMPLED != 0;
    (is_whole && trace_id != 0 && parent_id != 0).then_some(TraceParent {
        trace_id,
        parent_id,
        is_sampled,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VALUE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_example_of_the_specification_is_read() {
        let parsed = parse(VALUE.as_bytes()).unwrap();
        assert_eq!(parsed.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((parsed.parent_id, parsed.is_sampled), (0x00f0_67aa_0ba9_02b7, true));
    }

    #[test]
    fn malformed_values_begin_a_new_trace() {
        for (value, is_valid) in [
            (VALUE.replace("-01", "-00"), true),
            (VALUE.replacen("00-", "01-", 1), true),
            (VALUE.replacen("00-", "01-", 1) + "-more", true),
            (VALUE.replacen("00-", "01-", 1) + "more", false),
            (VALUE.to_owned() + "-more", false),
            (VALUE.replacen("00-", "ff-", 1), false),
            (VALUE.to_uppercase(), false),
            (VALUE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)), false),
            (VALUE.replace("00f067aa0ba902b7", &"0".repeat(16)), false),
            (VALUE.replace("4bf9", "+bf9"), false),
            (VALUE.replace("-", "_"), false),
            (String::new(), false),
        ] {
            assert_eq!(parse(value.as_bytes()).is_some(), is_valid, "{value}");
        }
    }

    #[test]
    fn a_stranger_does_not_decide_what_is_recorded() {
        let (ids, never) = (RequestIds::default(), TraceSampling::new(0.0));
        let of = |is_trusted, sampling| {
            TraceContext::continued(Some(VALUE.as_bytes()), is_trusted, sampling, &ids)
        };
        assert!(of(true, never).is_sampled && !of(false, never).is_sampled);
        assert!(of(false, TraceSampling::new(1.0)).is_sampled);
        let next = of(true, never).to_string();
        assert!(next.starts_with(&VALUE[..36]) && next != VALUE, "{next}");
    }

    #[test]
    fn about_the_share_is_recorded() {
        let (ids, tenth) = (RequestIds::default(), TraceSampling::new(0.1));
        let sampled = (0..10_000)
            .filter(|_| TraceContext::continued(None, false, tenth, &ids).is_sampled)
            .count();
        assert!((900..1100).contains(&sampled), "{sampled} of 10,000");
    }

    #[test]
    fn a_chosen_trace_id_is_recorded_no_more_often_than_others() {
        let (ids, tenth) = (RequestIds::default(), TraceSampling::new(0.1));
        for trace_id in [1, u128::MAX] {
            let value = format!("00-{trace_id:032x}-00f067aa0ba902b7-01");
            let continued = || TraceContext::continued(Some(value.as_bytes()), false, tenth, &ids);
            let sampled = (0..10_000).filter(|_| continued().is_sampled).count();
            assert!((900..1100).contains(&sampled), "{sampled} of 10,000: {value}");
        }
    }

    proptest! {
        #[test]
        fn what_is_displayed_is_read_again(trace_id in 1_u128.., span_id in 1_u64.., is_sampled: bool) {
            let context = TraceContext { trace_id, span_id, parent: None, is_sampled };
            let parsed = parse(context.to_string().as_bytes());
            prop_assert_eq!(parsed, Some(TraceParent { trace_id, parent_id: span_id, is_sampled }));
        }

        #[test]
        fn no_value_panics(value in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(&value);
        }
    }
}
