//! Which header lists are a request, and which are trailers (RFC 9113 section 8).

use crate::hpack::{Field, FieldBuffer, Known, is_valid_method};
use crate::priority::Priority;

/// A request or its trailers break a rule of RFC 9113 section 8. Its stream is reset. It says which
/// rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// What the engine needs to know of a header list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFacts {
    /// The length of the body, if the client has announced it.
    pub content_length: Option<u64>,
    /// The priority of the response, if the client has named one.
    pub priority: Option<Priority>,
}

/// The pseudo-fields that have come, each as a bit.
#[derive(Clone, Copy, Default)]
struct Pseudo(u8);

impl Pseudo {
    const METHOD: u8 = 1;
    const SCHEME: u8 = 2;
    const PATH: u8 = 4;
    const AUTHORITY: u8 = 8;
    const PROTOCOL: u8 = 16;

    fn add(&mut self, bit: u8) -> Result<(), Malformed> {
        if self.0 & bit != 0 {
            return Err(Malformed("a pseudo-field comes twice"));
        }
        self.0 |= bit;
        Ok(())
    }

    fn has(self, bits: u8) -> bool {
        self.0 & bits == bits
    }
}

/// Checks the header list of a request of HTTP/2, or of HTTP/3, whose rules are the same (RFC 9114
/// section 4.3). `ended`: no body follows. `extended_connect`: `:protocol` is allowed (RFC 8441
/// section 4).
///
/// # Errors
/// Returns the rule that is broken.
pub fn check_request(
    fields: &FieldBuffer,
    ended: bool,
    extended_connect: bool,
) -> Result<RequestFacts, Malformed> {
    let mut facts = RequestFacts::default();
    let mut pseudo = Pseudo::default();
    let mut is_connect = false;
    let mut has_regular = false;
    for field in fields.iter() {
        if !field.is_valid {
            return Err(Malformed("a field has a character that is not allowed"));
        }
        let bit = match field.known {
            Known::Method => {
                is_connect = field.value == b"CONNECT";
                if !is_valid_method(field.value) {
                    return Err(Malformed(":method is not a token"));
                }
                Pseudo::METHOD
            }
            Known::Scheme => Pseudo::SCHEME,
            Known::Path if field.value.is_empty() => return Err(Malformed(":path is empty")),
            Known::Path => Pseudo::PATH,
            Known::Authority => Pseudo::AUTHORITY,
            Known::Protocol if extended_connect => Pseudo::PROTOCOL,
            Known::Protocol | Known::Status | Known::UnknownPseudo => {
                return Err(Malformed("a pseudo-field that no request has"));
            }
            _ => {
                has_regular = true;
                check_regular(field, &mut facts)?;
                continue;
            }
        };
        if has_regular {
            return Err(Malformed("a pseudo-field behind other fields"));
        }
        pseudo.add(bit)?;
    }
    let is_complete = match (is_connect, pseudo.has(Pseudo::PROTOCOL)) {
        (false, false) => pseudo.has(Pseudo::METHOD | Pseudo::SCHEME | Pseudo::PATH),
        (true, false) => {
            pseudo.has(Pseudo::AUTHORITY) && pseudo.0 & (Pseudo::SCHEME | Pseudo::PATH) == 0
        }
        (true, true) => pseudo.has(Pseudo::SCHEME | Pseudo::PATH | Pseudo::AUTHORITY),
        (false, true) => false,
    };
    if !is_complete {
        return Err(Malformed("pseudo-fields are missing, or are not for this method"));
    }
    if ended && facts.content_length.is_some_and(|length| length > 0) {
        return Err(Malformed("the stream ends before its content-length"));
    }
    Ok(facts)
}

/// Checks the trailers of a request.
///
/// # Errors
/// Returns the rule that is broken.
pub fn check_trailers(fields: &FieldBuffer) -> Result<(), Malformed> {
    for field in fields.iter() {
        if !field.is_valid {
            return Err(Malformed("a trailer has a character that is not allowed"));
        }
        if field.name.first() == Some(&b':') {
            return Err(Malformed("a pseudo-field in the trailers"));
        }
        if field.known == Known::ConnectionSpecific {
            return Err(Malformed("a connection-specific field in the trailers"));
        }
    }
    Ok(())
}

#[inline]
fn check_regular(field: Field<'_>, facts: &mut RequestFacts) -> Result<(), Malformed> {
    match field.known {
        Known::ConnectionSpecific => Err(Malformed("a connection-specific field")),
        Known::Te if !field.value.eq_ignore_ascii_case(b"trailers") => {
            Err(Malformed("te has another value than trailers"))
        }
        Known::ContentLength => {
            let length = parse_length(field.value);
            if length.is_none() || facts.content_length.is_some_and(|other| Some(other) != length) {
                return Err(Malformed("content-length is not one number"));
            }
            facts.content_length = length;
            Ok(())
        }
        Known::Priority => {
            facts.priority = Some(Priority::parse(field.value));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Parses a length, which has digits only (RFC 9110 section 8.6).
fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0_u64, |length, byte| match byte {
        b'0'..=b'9' => length.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}
