//! nginx configurations. No text panics, the kirin.toml is TOML, and each directive has a note.
#![no_main]

use kirin_import::{Files, nginx};
use libfuzzer_sys::fuzz_target;

/// A configuration of one file, which includes itself at most.
struct OneFile<'a>(&'a str);

impl Files for OneFile<'_> {
    fn read(&self, path: &str) -> Result<String, String> {
        match path {
            "nginx.conf" => Ok(self.0.to_owned()),
            _ => Err("there is no such file".to_owned()),
        }
    }

    fn matching(&self, pattern: &str) -> Vec<String> {
        if pattern == "nginx.conf" { vec![pattern.to_owned()] } else { Vec::new() }
    }
}

fuzz_target!(|text: &str| {
    let Ok(import) = nginx::import("nginx.conf", &OneFile(text)) else { return };
    let config = import.config();
    let read: Result<toml::Table, _> = config.parse();
    assert!(read.is_ok(), "not TOML: {config}");
    let lines = import.report().lines().count();
    assert!(lines > import.notes.len());
});
