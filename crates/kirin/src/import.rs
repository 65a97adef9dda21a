//! `kirin import`: the configuration of another server as a `kirin.toml`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use kirin_config::matching_files;
use kirin_console::print;
use kirin_import::Files;

use crate::life::program_log;

/// The most bytes that are read of one file. A larger one is no configuration.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The arguments of `kirin import`.
#[derive(Args)]
pub struct ImportArguments {
    /// The file: nginx.conf, or one of sites-available
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Prints the configuration, and on standard error what became of each line. The error is for the
/// operator.
pub fn run(arguments: &ImportArguments) -> Result<(), String> {
    let name = arguments.file.to_str().ok_or("the path of the file is not UTF-8")?;
    let import = kirin_import::nginx::import(name, &Disk).map_err(|error| error.to_string())?;
    program_log::print_line(import.report().trim_end());
    print(&import.config())
}

/// The files of this machine.
struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> Result<String, String> {
        read(Path::new(path))
    }

    fn matching(&self, pattern: &str) -> Vec<String> {
        let directory = if pattern.starts_with('/') { "/" } else { "." };
        let found = matching_files(Path::new(directory), pattern).unwrap_or_default();
        let paths = found.files.iter().filter_map(|file| file.to_str());
        paths.map(|path| path.strip_prefix("./").unwrap_or(path).to_owned()).collect()
    }
}

/// Reads a configuration. Bytes that are not UTF-8 are replaced: they are in comments mostly.
fn read(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err("it is not a file".into());
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("it is larger than {} MB", MAX_FILE_BYTES >> 20));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
