//! `kirin reload`: another configuration comes into force while the program serves.

mod backends;
pub mod chaos;
mod configuration;
mod counts;
mod listeners;
mod refused;

use std::process::Output;

use kirin_tests::{Kirin, Site, run_kirin};

/// A running Kirin, whose configuration tests change.
pub struct Served {
    pub kirin: Kirin,
    pub site: Site,
}

impl Served {
    /// Starts with a configuration.
    pub fn start(site: Site, config: &str) -> Self {
        let kirin = Kirin::start(&site, config);
        Self { kirin, site }
    }

    /// Writes another configuration.
    pub fn write(&self, config: &str) {
        std::fs::write(self.site.path("kirin.toml"), config).expect("kirin.toml");
    }

    /// Runs a command, such as `reload --dry-run`.
    pub fn command(&self, words: &[&str]) -> Output {
        run_kirin(&self.site, words)
    }

    /// Writes another configuration and reloads. Returns what the command has printed.
    pub fn reload(&self, config: &str) -> String {
        self.write(config);
        printed(&self.command(&["reload"]))
    }

    /// Writes a configuration that is refused. Returns what the command says.
    pub fn refused(&self, config: &str) -> String {
        self.write(config);
        let output = self.command(&["reload"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{said}");
        said
    }

    /// Returns the text at a target.
    pub fn text(&self, target: &str) -> String {
        self.kirin.get(target).text()
    }
}

/// Returns what a successful command has printed.
pub fn printed(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
