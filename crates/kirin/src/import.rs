//! `kirin import`: the configuration of another server as a `kirin.toml`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use kirin_config::{DEFAULT_FILE, matching_files, read_regular};
use kirin_console::print;
use kirin_import::{Files, Import};

use crate::life::program_log;
use crate::new_file;

/// The arguments of `kirin import`.
#[derive(Args)]
pub struct ImportArguments {
    /// The file: nginx.conf, apache2.conf, Caddyfile, unit.json, uwsgi.ini or default.vcl; or the
    /// name of a server, such as nginx, for the file of Debian's package
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The server whose configuration the file is [default: found out by the name and the text]
    #[arg(long, value_name = "SERVER")]
    from: Option<OtherServer>,
    /// Write kirin.toml, and the files that it needs, into this directory [default: print it]
    #[arg(long, value_name = "DIRECTORY")]
    into: Option<PathBuf>,
}

/// A server whose configurations can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OtherServer {
    /// nginx
    Nginx,
    /// Apache httpd
    Apache,
    /// Caddy
    Caddy,
    /// NGINX Unit
    Unit,
    /// uWSGI
    Uwsgi,
    /// Varnish
    Varnish,
}

/// Prints or writes the configuration, and prints on standard error what became of each line. The
/// error is for the operator.
pub fn run(arguments: &ImportArguments) -> Result<(), String> {
    let (file, server) = match OtherServer::named(&arguments.file) {
        Some((server, file)) => (PathBuf::from(file), Some(server)),
        None => (arguments.file.clone(), None),
    };
    let text = read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let server = arguments.from.or(server).unwrap_or_else(|| OtherServer::of(&file, &text));
    let name = file.to_str().ok_or("the path of the file is not UTF-8")?;
    let import = server.import(name)?;
    program_log::print_line(import.report().trim_end());
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

impl OtherServer {
    /// Returns the server that an argument names, if there is no such file, and the file of
    /// Debian's package.
    fn named(argument: &Path) -> Option<(Self, &'static str)> {
        if argument.exists() {
            return None;
        }
        Some(match argument.to_str()? {
            "nginx" => (Self::Nginx, "/etc/nginx/nginx.conf"),
            "apache" | "apache2" | "httpd" => (Self::Apache, "/etc/apache2/apache2.conf"),
            "caddy" => (Self::Caddy, "/etc/caddy/Caddyfile"),
            "unit" => (Self::Unit, "/var/lib/unit/conf.json"),
            "varnish" => (Self::Varnish, "/etc/varnish/default.vcl"),
            _ => return None,
        })
    }

    /// Finds out which server has a file.
    fn of(file: &Path, text: &str) -> Self {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let extension = file.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        match &*extension {
            "json" => return Self::Unit,
            "ini" => return Self::Uwsgi,
            "vcl" => return Self::Varnish,
            _ => {}
        }
        if name.contains("caddyfile") || extension == "caddy" {
            return Self::Caddy;
        }
        let line_begins = |word: &str| {
            let mut lines = text.lines().map(str::trim_start);
            lines.any(|line| line.get(..word.len()).is_some_and(|s| s.eq_ignore_ascii_case(word)))
        };
        let is_apache =
            ["<VirtualHost", "<Directory", "DocumentRoot ", "ServerRoot ", "LoadModule "];
        if is_apache.into_iter().any(line_begins) {
            return Self::Apache;
        }
        match text.trim_start().as_bytes().first() {
            Some(b'{') if is_json(text) => Self::Unit,
            _ if text.trim_start().starts_with("vcl ") => Self::Varnish,
            _ if line_begins("[uwsgi]") => Self::Uwsgi,
            _ => Self::Nginx,
        }
    }

    fn import(self, file: &str) -> Result<Import, String> {
        let imported = match self {
            Self::Nginx => {
                return kirin_import::nginx::import(file, &Disk).map_err(|error| error.to_string());
            }
            Self::Apache => kirin_import::apache::import(file, &Disk),
            Self::Caddy => kirin_import::caddy::import(file, &Disk),
            Self::Unit => kirin_import::unit::import(file, &Disk),
            Self::Uwsgi => kirin_import::uwsgi::import(file, &Disk),
            Self::Varnish => kirin_import::vcl::import(file, &Disk),
        };
        imported.map_err(|error| error.to_string())
    }
}

/// Returns whether a text that begins with `{` is JSON and no Caddyfile.
fn is_json(text: &str) -> bool {
    text.trim_start_matches(|c: char| c == '{' || c.is_whitespace()).starts_with('"')
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
    const ADVICE: &str = "name another directory";
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let config = import.config();
    let files = import.files.iter().map(|file| (file.name.as_str(), file.text.as_str()));
    let files = files.chain([(DEFAULT_FILE, config.as_str())]);
    let files: Vec<_> = files.map(|(name, text)| (directory.join(name), text)).collect();
    if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        return Err(new_file::is_there(path, ADVICE));
    }
    for (path, text) in &files {
        new_file::write(path, text, ADVICE)?;
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
    let bytes = read_regular(path).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
