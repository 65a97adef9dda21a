//! `kirin import`: the configuration of another server as a `kirin.toml`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use kirin_config::{DEFAULT_FILE, matching_files};
use kirin_console::{print, units};
use kirin_import::{Files, Import};

use crate::life::program_log;

/// The most bytes that are read of one file. A larger one is no configuration.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The arguments of `kirin import`.
#[derive(Args)]
pub struct ImportArguments {
    /// The file: nginx.conf, or one of sites-available
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write kirin.toml, and the files that it needs, into this directory [default: print it]
    #[arg(long, value_name = "DIRECTORY")]
    into: Option<PathBuf>,
}

/// Prints or writes the configuration, and prints on standard error what became of each line. The
/// error is for the operator.
pub fn run(arguments: &ImportArguments) -> Result<(), String> {
    let name = arguments.file.to_str().ok_or("the path of the file is not UTF-8")?;
    let import = kirin_import::nginx::import(name, &Disk).map_err(|error| error.to_string())?;
    program_log::print_line(plain(&import.report()).trim_end());
    match &arguments.into {
        Some(directory) => write_into(directory, &import),
        None => {
            if !import.files.is_empty() {
                program_log::print_line(&missing_files(&import));
            }
            print(&import.config())
        }
    }
}

/// Returns the text without characters that control a terminal. Those of the other server's file
/// are in it.
fn plain(text: &str) -> String {
    text.split_inclusive('\n')
        .flat_map(|line| {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            [units::plain(line), end.to_owned()]
        })
        .collect()
}

/// Says which files the configuration needs.
fn missing_files(import: &Import) -> String {
    let names: Vec<_> = import.files.iter().map(|file| file.name.as_str()).collect();
    format!(
        "the kirin.toml needs files beside it: {}; `--into DIRECTORY` writes all of them",
        names.join(", ")
    )
}

/// Writes the configuration and its files. Nothing is overwritten: if one is there, nothing is
/// written.
fn write_into(directory: &Path, import: &Import) -> Result<(), String> {
    let failed = |path: &Path, error: &io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
    let config = (DEFAULT_FILE, import.config());
    let files = import.files.iter().map(|file| (file.name.as_str(), file.text.clone()));
    let files: Vec<_> =
        files.chain([config]).map(|(name, text)| (directory.join(name), text)).collect();
    if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        return Err(format!(
            "{} is there already, and stays as it is: name another directory",
            path.display()
        ));
    }
    for (path, text) in &files {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| failed(path, &error))?;
        print(&format!("{} is written\n", path.display()))?;
    }
    Ok(())
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
