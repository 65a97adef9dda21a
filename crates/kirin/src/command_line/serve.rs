//! The arguments of `kirin serve`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use kirin_config::target::{self, DEFAULT_ADDRESS, DEFAULT_WORKERS, Entrances, ServeTarget};
use kirin_config::{ConfigSource, DEFAULT_FILE, acme_directory, acme_domain, acme_email};
use kirin_console::number::within;
use kirin_console::project::find_app;
use kirin_http::ListenAddress;
use kirin_observe::served::Served;
use kirin_workers::MAX_WORKERS;

/// The default address with `--domain`.
const DEFAULT_HTTPS_ADDRESS: &str = "*:443";

/// The arguments of `kirin serve`.
#[derive(Args)]
pub struct Serve {
    /// A PSGI file, a Python file or module (app.py, main:app), a Rack file (config.ru), a
    /// directory or the address of a server, such as http://127.0.0.1:3000; default: the
    /// configuration file kirin.toml
    target: Option<String>,
    /// A configuration file
    #[arg(long, short, value_name = "FILE", conflicts_with = "target")]
    config: Option<PathBuf>,
    /// Where to listen: PORT (on 127.0.0.1), IP:PORT, :PORT (all addresses) or unix:PATH
    /// [default: the sockets that start_server or systemd hands over, or else 127.0.0.1:8080; with
    /// --domain :443]
    #[arg(long, short, value_name = "ADDRESS", value_parser = address)]
    listen: Option<String>,
    /// The port on which to listen
    #[arg(
        long, short, value_name = "PORT", value_parser = within(0, u16::MAX),
        conflicts_with = "listen"
    )]
    port: Option<u16>,
    /// The IP address on which to listen; 0.0.0.0 is all addresses [default: 127.0.0.1; with
    /// --domain all addresses]
    #[arg(long, short = 'o', value_name = "IP", value_parser = host, conflicts_with = "listen")]
    host: Option<String>,
    /// Serve https with a certificate of Let's Encrypt for this name; you agree to its terms of
    /// service. Repeat the option for more names. Listens on :443 for https and on :80 for http
    #[arg(long, value_name = "NAME", value_parser = acme_domain)]
    domain: Vec<String>,
    /// With --domain: where to listen for HTTP. Port 80 of the names must lead there
    #[arg(
        long, value_name = "ADDRESS", requires = "domain", default_value = "*:80",
        value_parser = address
    )]
    listen_http: String,
    /// With --domain: the e-mail address to which the authority may write
    #[arg(long, value_name = "ADDRESS", requires = "domain", value_parser = acme_email)]
    email: Option<String>,
    /// With --domain: another authority, by the https address of its ACME directory
    #[arg(long, value_name = "URL", requires = "domain", value_parser = acme_directory)]
    acme_directory: Option<String>,
    /// Worker processes of the application [default: 5]
    #[arg(long, short, value_name = "NUMBER", value_parser = within(1, MAX_WORKERS))]
    workers: Option<usize>,
    /// Write the process id to this file, and remove the file at the end
    #[arg(long, value_name = "FILE", conflicts_with = "print_config")]
    pid_file: Option<PathBuf>,
    /// Print the configuration that the command line stands for, and end
    #[arg(long)]
    print_config: bool,
}

/// Checks an address to listen on.
fn address(text: &str) -> Result<String, String> {
    let address: Result<ListenAddress, _> = text.parse();
    address.map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Checks an address to listen on, without its port. Returns it as it is written before one.
fn host(text: &str) -> Result<String, String> {
    let host = if text.contains(':') { format!("[{text}]") } else { text.to_owned() };
    match address(&format!("{host}:0")) {
        Ok(_) => Ok(host),
        Err(_) => Err("allowed are an IP address, `localhost` and `*` (all addresses)".into()),
    }
}

impl Serve {
    /// Says which argument would be ignored, and what to do instead.
    pub fn check(&self) -> Result<(), String> {
        match &self.target {
            Some(target) => self.check_for_target(target),
            None => self.check_for_file(),
        }
    }

    fn check_for_target(&self, target: &str) -> Result<(), String> {
        if self.workers.is_none() {
            return Ok(());
        }
        let what = match target::classify(target, find_app) {
            Ok(ServeTarget::Directory) => "a directory",
            Ok(ServeTarget::Server) => "another server",
            Ok(ServeTarget::App { .. }) | Err(_) => return Ok(()),
        };
        Err(format!("--workers is for applications, and `{target}` is {what}: leave it out"))
    }

    fn check_for_file(&self) -> Result<(), String> {
        let of_listener = "`address` of a [[listener]]";
        let given = [
            ("--listen", self.listen.is_some(), of_listener),
            ("--port", self.port.is_some(), of_listener),
            ("--host", self.host.is_some(), of_listener),
            ("--domain", !self.domain.is_empty(), "`acme` of [listener.tls]"),
            ("--workers", self.workers.is_some(), "`workers` of an [[app]]"),
        ];
        let Some((flag, _, key)) = given.into_iter().find(|(_, is_given, _)| *is_given) else {
            return Ok(());
        };
        match &self.config {
            Some(path) => Err(format!(
                "{flag} cannot be used with --config: in {} it is {key}",
                path.display()
            )),
            None if Path::new(DEFAULT_FILE).exists() => Err(format!(
                "{flag} needs a target, such as `kirin serve {flag} … app.psgi`. Without one, \
                 {DEFAULT_FILE} is served, and in it this is {key}"
            )),
            None => Err(nothing_to_serve()),
        }
    }

    /// Returns the text of the configuration, and the directory of its relative paths.
    pub fn source(&self) -> Result<ConfigSource, String> {
        let Some(target) = &self.target else {
            let path = self.file();
            if self.config.is_none() && !path.exists() {
                return Err(nothing_to_serve());
            }
            if self.print_config && is_standard_output(path) {
                return Err(format!(
                    "standard output is {}, which the shell has emptied: name a target, such as \
                     app.psgi, or print into another file",
                    path.display()
                ));
            }
            return ConfigSource::read(path).map_err(|error| error.to_string());
        };
        // A configuration that is printed is for a file, and for a Kirin in the background.
        let is_on_terminal = std::io::stderr().is_terminal() && !self.print_config;
        let address = self.address();
        let workers = self.workers.unwrap_or(DEFAULT_WORKERS);
        target::source(target, &self.entrances(&address), workers, is_on_terminal, find_app)
    }

    /// Says which application was found in the directory that is served.
    pub fn found(&self) -> Option<String> {
        match target::classify(self.target.as_deref()?, find_app) {
            Ok(ServeTarget::App(app)) => app.found,
            _ => None,
        }
    }

    /// Returns what is served, for those who look for this Kirin later.
    pub fn served(&self) -> Served {
        let target = self.target.as_deref();
        target.map_or_else(|| Served::from_config(self.file()), Served::from_target)
    }

    /// Returns the configuration file, if it is one that is served.
    pub fn config_file(&self) -> Option<&Path> {
        self.target.is_none().then(|| self.file())
    }

    fn file(&self) -> &Path {
        self.config.as_deref().unwrap_or(Path::new(DEFAULT_FILE))
    }

    /// Returns the address on which a target is served.
    fn address(&self) -> String {
        if let Some(address) = &self.listen {
            return address.clone();
        }
        let default = if self.domain.is_empty() { DEFAULT_ADDRESS } else { DEFAULT_HTTPS_ADDRESS };
        let (host, port) = default.rsplit_once(':').unwrap_or((default, ""));
        let host = self.host.as_deref().unwrap_or(host);
        let port = self.port.map_or_else(|| port.to_owned(), |port| port.to_string());
        format!("{host}:{port}")
    }

    fn entrances<'a>(&'a self, address: &'a str) -> Entrances<'a> {
        if self.domain.is_empty() {
            return Entrances::Plain(address);
        }
        Entrances::Https {
            https: address,
            http: &self.listen_http,
            domains: &self.domain,
            email: self.email.as_deref(),
            directory: self.acme_directory.as_deref(),
        }
    }

    /// Returns whether the command line names no address. The inherited sockets decide then.
    pub fn listens_where_told(&self) -> bool {
        let is_named = self.listen.is_some() || self.port.is_some() || self.host.is_some();
        self.target.is_some() && !is_named && self.domain.is_empty()
    }

    /// Returns the file for the process id.
    pub fn pid_file(&self) -> Option<&Path> {
        self.pid_file.as_deref()
    }

    /// Returns whether the configuration is only printed.
    pub fn print_config(&self) -> bool {
        self.print_config
    }
}

fn nothing_to_serve() -> String {
    format!(
        "nothing to serve: name a PSGI, Python or Rack file, a directory, an http:// address or --config FILE \
         (there is no ./{DEFAULT_FILE}; `kirin init` writes one for a project)"
    )
}

/// Returns whether standard output goes into this file.
fn is_standard_output(path: &Path) -> bool {
    let output = rustix::fs::fstat(std::io::stdout());
    let file = rustix::fs::stat(path);
    matches!((output, file), (Ok(output), Ok(file))
        if (output.st_dev, output.st_ino) == (file.st_dev, file.st_ino))
}
