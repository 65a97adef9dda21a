//! What a server says about itself.

/// What a server says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// `redis` or `valkey`.
    pub name: String,
    /// The version.
    pub version: String,
    /// Whether the server may evict keys (`maxmemory-policy` other than `noeviction`), or does not
    /// say.
    pub evicts: bool,
    /// The run of the server (`run_id`), if it says.
    pub run: Option<String>,
}
