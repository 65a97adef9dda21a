//! The certificate of a Redis with TLS, and two authorities. Only one of them has issued it.

use std::path::PathBuf;

use kirin_tests::{Authority, RedisServer};

/// Files that are deleted at the end.
pub struct Certificates(tempfile::TempDir);

impl Certificates {
    /// Issues a certificate for hosts.
    pub fn issue(hosts: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (authority, other) = (Authority::new("Kirin test"), Authority::new("somebody else"));
        let issued = authority.issue(hosts);
        for (name, text) in [
            ("ca.pem", authority.pem()),
            ("other.pem", other.pem()),
            ("chain.pem", issued.chain),
            ("key.pem", issued.key),
        ] {
            std::fs::write(directory.path().join(name), text).expect("a file");
        }
        Self(directory)
    }

    /// Returns the authority that has issued the certificate.
    pub fn authority(&self) -> PathBuf {
        self.0.path().join("ca.pem")
    }

    /// Returns the authority that has issued nothing.
    pub fn other_authority(&self) -> PathBuf {
        self.0.path().join("other.pem")
    }

    /// Returns the settings of a Redis or a Sentinel that speaks TLS on a port.
    pub fn settings(&self, port: u16) -> [(&'static str, String); 6] {
        let path = |name: &str| self.0.path().join(name).display().to_string();
        [
            ("tls-port", port.to_string()),
            ("tls-cert-file", path("chain.pem")),
            ("tls-key-file", path("key.pem")),
            ("tls-ca-cert-file", path("ca.pem")),
            ("tls-auth-clients", "no".into()),
            ("tls-replication", "yes".into()),
        ]
    }

    /// Starts a Redis that speaks TLS on a port too.
    pub fn start_redis(&self, port: u16) -> RedisServer {
        let arguments = self.settings(port).map(|(name, value)| [format!("--{name}"), value]);
        let arguments: Vec<&str> = arguments.iter().flatten().map(String::as_str).collect();
        RedisServer::start_with(&arguments)
    }
}
