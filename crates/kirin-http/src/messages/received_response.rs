//! Responses as a gateway receives them from an application worker or an upstream: any number of
//! informational heads, a final head, and the body. No I/O.

use http::StatusCode;

use crate::body::{Body, UnknownLength};
use crate::body_decoder::BodyDecoder;
use crate::field_lines::FieldLines;
use crate::informational::InformationalBudget;
use crate::response::Response;
use crate::response_head::{BadResponse, Framing};

/// One of the heads of a response. `F` is what the receiver makes of the final one.
#[derive(Debug)]
pub enum ReceivedHead<F> {
    /// The head of an informational response. Another head follows.
    Informational {
        /// A status from 100 to 199, except 101.
        status: StatusCode,
        /// The fields that go on to the client.
        fields: FieldLines,
    },
    /// The sender has switched to another protocol (101).
    Switched {
        /// The fields that go on to the client.
        fields: FieldLines,
    },
    /// The head of the final response. Its body follows.
    Final(F),
}

/// The body that follows a final head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedBody {
    /// No body, because of the request's method or the status. Holds the length in bytes that the
    /// body would have, if the sender has announced it.
    Withheld(Option<u64>),
    /// A body with this framing.
    Framed(Framing),
}

impl<F> ReceivedHead<F> {
    /// Checks that this head may come now. `bytes` is its length, `may_switch` says whether the
    /// request has asked for another protocol.
    pub fn check(
        &self,
        bytes: usize,
        may_switch: bool,
        budget: &mut InformationalBudget,
    ) -> Result<(), BadResponse> {
        match self {
            ReceivedHead::Informational { .. } if !budget.take(bytes) => {
                Err(BadResponse::TooManyInformational)
            }
            ReceivedHead::Switched { .. } if !may_switch => Err(BadResponse::UnaskedSwitch),
            _ => Ok(()),
        }
    }
}

impl ReceivedBody {
    /// Returns the body that follows a head with this framing and status. `is_head` says whether
    /// the request's method was HEAD.
    pub fn new(framing: Framing, status: StatusCode, is_head: bool) -> Self {
        match framing {
            Framing::Length(length) if is_head => ReceivedBody::Withheld(Some(length)),
            _ if is_head || Response::is_bodiless_status(status) => ReceivedBody::Withheld(None),
            framing => ReceivedBody::Framed(framing),
        }
    }

    /// Returns the decoder that takes the framing off.
    pub fn decoder(self) -> BodyDecoder {
        BodyDecoder::new(match self {
            ReceivedBody::Withheld(_) => Framing::Length(0),
            ReceivedBody::Framed(framing) => framing,
        })
    }

    /// Returns the length in bytes, if a body follows and its length is known.
    pub fn length(self) -> Option<u64> {
        match self {
            ReceivedBody::Framed(Framing::Length(length)) => Some(length),
            ReceivedBody::Framed(_) | ReceivedBody::Withheld(_) => None,
        }
    }

    /// Returns the body for the client if no body follows the head.
    pub fn withheld(self) -> Option<Body> {
        match self {
            ReceivedBody::Withheld(Some(length)) => Some(Body::Withheld(length)),
            // The client must not be told a length of 0, which could be wrong.
            ReceivedBody::Withheld(None) => Some(Body::Stream(Box::new(UnknownLength))),
            ReceivedBody::Framed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_follows_from_method_status_and_framing() {
        let (length, chunked) = (Framing::Length(5), Framing::Chunked);
        for (framing, status, is_head, expected) in [
            (length, 200, false, ReceivedBody::Framed(length)),
            (chunked, 200, false, ReceivedBody::Framed(chunked)),
            (length, 200, true, ReceivedBody::Withheld(Some(5))),
            (chunked, 200, true, ReceivedBody::Withheld(None)),
            (length, 304, false, ReceivedBody::Withheld(None)),
            (Framing::UntilClose, 204, false, ReceivedBody::Withheld(None)),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(ReceivedBody::new(framing, status, is_head), expected, "{status}");
        }
    }

    #[test]
    fn an_unasked_switch_and_a_flood_of_informational_heads_are_refused() {
        let budget = &mut InformationalBudget::default();
        let switched = ReceivedHead::<()>::Switched { fields: FieldLines::new() };
        assert!(switched.check(9, true, budget).is_ok());
        assert!(matches!(switched.check(9, false, budget), Err(BadResponse::UnaskedSwitch)));
        let early = ReceivedHead::<()>::Informational {
            status: StatusCode::EARLY_HINTS,
            fields: FieldLines::new(),
        };
        let taken = (0..1000).take_while(|_| early.check(9, false, budget).is_ok()).count();
        assert_eq!(taken, 64);
        let refused = early.check(9, false, budget);
        assert!(matches!(refused, Err(BadResponse::TooManyInformational)));
    }
}
