//! Strict HTTP/1 (RFC 9112): a table of inputs and their results. `tests/strict` checks Kirin with
//! it, and `examples/strict_beside_others.rs` shows the results of other servers.

mod bodies;
mod fields;
mod request_lines;

/// An input and its result.
#[derive(Clone)]
pub struct Case {
    /// The name of the case, which describes its special part. No other case has this name.
    pub name: &'static str,
    /// The bytes that are sent on a connection.
    pub input: Vec<u8>,
    /// The results in order: a status of Kirin's own, or the request as the application has seen
    /// it.
    pub outcomes: Vec<String>,
}

impl Case {
    /// Makes the same case for another target than `/`. Kirin answers there itself, so the
    /// application does not see the request.
    fn to(mut self, target: &str) -> Self {
        let input = String::from_utf8(self.input).expect("UTF-8");
        self.input = input.replacen(" / ", &format!(" {target} "), 1).into_bytes();
        if self.outcomes[0].contains(' ') {
            self.outcomes[0] = "404".into();
        }
        self
    }
}

fn case(name: &'static str, input: impl AsRef<[u8]>, outcomes: &[&str]) -> Case {
    let outcomes = outcomes.iter().map(|outcome| (*outcome).to_owned()).collect();
    Case { name, input: input.as_ref().to_vec(), outcomes }
}

/// Returns the cases about request lines and targets.
pub fn request_lines() -> Vec<Case> {
    request_lines::cases()
}

/// Returns the cases about field lines and hosts.
pub fn fields() -> Vec<Case> {
    fields::cases()
}

/// Returns the cases about bodies and their ends.
pub fn bodies() -> Vec<Case> {
    bodies::cases()
}

/// Returns all cases.
pub fn all() -> Vec<Case> {
    [request_lines(), fields(), bodies()].concat()
}
