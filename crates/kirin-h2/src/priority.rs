//! Priorities (RFC 9218): which stream sends next.

/// The priority of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 is sent first, 7 last.
    pub urgency: u8,
    /// Whether it shares the connection with others of its urgency, and is not sent as a whole.
    pub incremental: bool,
}

impl Default for Priority {
    /// Returns the priority of a request that names none. By RFC 9218 it would not be incremental.
    /// Clients without priorities expect that the responses share the connection.
    fn default() -> Self {
        Self { urgency: 3, incremental: true }
    }
}

impl Priority {
    /// Parses the value of a `Priority` field: `u=0` to `u=7`, and `i`. What is not understood is
    /// left out (RFC 9218 section 4).
    pub fn parse(value: &[u8]) -> Self {
        let mut priority = Self { urgency: 3, incremental: false };
        for member in value.split(|byte| *byte == b',') {
            // Parameters are for the future.
            let member = member.split(|byte| *byte == b';').next().unwrap_or_default();
            match member.trim_ascii() {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_field_names_urgency_and_sharing() {
        for (value, urgency, incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=7, i", 7, true),
            ("i", 3, true),
            ("i=?1;x=2 , u=1;y", 1, true),
            ("i, i=?0", 3, false),
            ("u=8", 3, false),
            ("u=-1,u=5,u=x", 5, false),
            ("u=1,u=2", 2, false),
            ("U=1,I", 3, false),
        ] {
            let expected = Priority { urgency, incremental };
            assert_eq!(Priority::parse(value.as_bytes()), expected, "{value}");
        }
    }
}
