//! Configurations of Apache, Caddy, NGINX Unit, uWSGI and Varnish. No text panics, and the
//! kirin.toml is TOML. The first byte chooses the server.
#![no_main]

use kirin_import::{Files, Import, ImportError, apache, caddy, unit, uwsgi, vcl};
use libfuzzer_sys::fuzz_target;

/// A configuration of one file, which includes itself at most.
struct OneFile<'a>(&'a str);

impl Files for OneFile<'_> {
    fn read(&self, path: &str) -> Result<String, String> {
        match path {
            "file" => Ok(self.0.to_owned()),
            _ => Err("there is no such file".to_owned()),
        }
    }

    fn matching(&self, pattern: &str) -> Vec<String> {
        if pattern == "file" { vec![pattern.to_owned()] } else { Vec::new() }
    }
}

type Importer = fn(&str, &dyn Files) -> Result<Import, ImportError>;

const IMPORTERS: [Importer; 5] =
    [apache::import, caddy::import, unit::import, uwsgi::import, vcl::import];

fuzz_target!(|input: (u8, &str)| {
    let (first, text) = input;
    let import = IMPORTERS[usize::from(first) % IMPORTERS.len()];
    let Ok(import) = import("file", &OneFile(text)) else { return };
    let config = import.config();
    let read: Result<toml::Table, _> = config.parse();
    assert!(read.is_ok(), "not TOML: {config}");
    assert!(import.report().lines().count() > import.notes.len());
});
