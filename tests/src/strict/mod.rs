//! Strict HTTP/1 (RFC 9112): a table of inputs, and what becomes of them. `tests/strict` holds
//! Kirin to it, and `examples/strict_beside_others.rs` shows what other servers make of the same.

mod bodies;
mod fields;
mod request_lines;

/// Something that is sent, and what comes of it.
#[derive(Clone)]
pub struct Case {
    /// What is special about it. No other case has this name.
    pub name: &'static str,
    /// What is sent on a connection.
    pub input: Vec<u8>,
    /// In order: a status of Kirin's own, or the request as the application has seen it.
    pub outcomes: Vec<String>,
}

impl Case {
    /// The same for another target than `/`. Kirin answers there itself, so that the application
    /// does not see it.
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

/// Request lines and targets.
pub fn request_lines() -> Vec<Case> {
    request_lines::cases()
}

/// Field lines and hosts.
pub fn fields() -> Vec<Case> {
    fields::cases()
}

/// Bodies and where they end.
pub fn bodies() -> Vec<Case> {
    bodies::cases()
}

/// All of the table.
pub fn all() -> Vec<Case> {
    [request_lines(), fields(), bodies()].concat()
}
