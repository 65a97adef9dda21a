//! The configurations behind `kirin serve app.psgi`, `kirin serve main:app`, `kirin serve DIR` and
//! `kirin serve http://…`.

use std::path::Path;

use kirin_workers::AppCode;

use crate::app_target::AppTarget;
use crate::source::ConfigSource;
use crate::store::StoreSection;
use crate::variables::literal;

/// The address on which `kirin serve TARGET` listens by default.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";

/// The number of workers of `kirin serve app.psgi` by default.
pub const DEFAULT_WORKERS: usize = 5;

/// The target of `kirin serve TARGET`.
#[derive(Debug, PartialEq, Eq)]
pub enum ServeTarget {
    /// An application.
    App(AppTarget),
    /// A directory of files.
    Directory,
    /// Another HTTP server.
    Server,
}

/// Finds the application of the project in a directory: `None` if the directory has files only, and
/// an error for an application that Kirin cannot run. Its source must not be served as files.
pub type FindProject = fn(&Path) -> Result<Option<AppTarget>, String>;

/// Says what `target` is.
pub fn classify(target: &str, find_project: FindProject) -> Result<ServeTarget, String> {
    if target.contains("://") {
        return target
            .parse::<kirin_proxy::ServerAddress>()
            .map(|_| ServeTarget::Server)
            .map_err(|error| error.to_string());
    }
    let path = Path::new(target);
    if path.is_dir() {
        let project = find_project(path)?;
        return Ok(project.map_or(ServeTarget::Directory, ServeTarget::App));
    }
    if let Some(app) = AppTarget::of_module(target) {
        return Ok(ServeTarget::App(app));
    }
    let code = AppCode::parse(target, Path::new(""), Path::new(""));
    let file = code.file().unwrap_or(path);
    if !file.is_file() {
        let is_port = target.parse::<u16>().is_ok();
        let has_port = target.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        if is_port || has_port {
            let host = if is_port { "127.0.0.1:" } else { "" };
            return Err(format!(
                "`{target}` is no file; `kirin serve http://{host}{target}` serves another server"
            ));
        }
        if path.exists() {
            return Err(format!("`{target}` is neither a file nor a directory"));
        }
        return Err(format!(
            "`{target}`: no such file or directory; give a PSGI file, a Python file or module \
             (app.py, main:app), a Rack file (config.ru), a directory or an http:// address"
        ));
    }
    let is_configuration = path.extension().is_some_and(|extension| extension == "toml");
    if is_configuration {
        return Err(format!(
            "`{target}` is a configuration file: use `kirin serve --config {target}`"
        ));
    }
    Ok(ServeTarget::App(AppTarget::of_file(target, file)))
}

/// Returns the configuration that `kirin serve TARGET` stands for. `is_on_terminal` says whether
/// somebody reads standard error.
pub fn source(
    target: &str,
    entrances: &Entrances<'_>,
    workers: usize,
    is_on_terminal: bool,
    find_project: FindProject,
) -> Result<ConfigSource, String> {
    let kind = classify(target, find_project)?;
    let text = configuration(target, &kind, entrances, workers, is_on_terminal);
    Ok(ConfigSource::from_text("command line", Path::new("."), text))
}

/// Returns the configuration that `kirin serve TARGET` stands for, as a user could write it. Paths
/// in it are relative to the working directory, so that it can be saved there. `is_on_terminal`
/// says whether somebody reads standard error.
pub fn configuration(
    target: &str,
    kind: &ServeTarget,
    entrances: &Entrances,
    workers: usize,
    is_on_terminal: bool,
) -> String {
    let access_log = match is_on_terminal {
        true => "{ path = \"stderr\", format = \"terminal\" }",
        false => "\"stderr\"",
    };
    let listener = format!(
        "{}\n[store]\nmemory = \"{}\"\n",
        entrances.listeners(access_log),
        StoreSection::default().memory
    );
    match kind {
        ServeTarget::Directory => {
            let files = quoted(&format!("files:{target}"));
            format!("{listener}\n[[route]]\npath = \"/\"\ntry = [{files}]\n")
        }
        ServeTarget::Server => format!(
            "{listener}\n[[upstream]]\nname = \"web\"\nservers = [{}]\n\n[[route]]\npath = \"/\"\n\
             try = [\"store\", \"proxy:web\"]\n",
            quoted(target)
        ),
        ServeTarget::App(app) => format!("{listener}\n{}", app.sections(workers)),
    }
}

/// Where `kirin serve TARGET` listens.
#[derive(Debug)]
pub enum Entrances<'a> {
    /// At one address, without TLS.
    Plain(&'a str),
    /// At an address for https, with a certificate from an authority, and at one for HTTP, which
    /// redirects to https.
    Https {
        /// The address of https.
        https: &'a str,
        /// The address of HTTP.
        http: &'a str,
        /// The names of the certificate.
        domains: &'a [String],
        /// The address of the account.
        email: Option<&'a str>,
        /// The authority, if not the default.
        directory: Option<&'a str>,
    },
}

impl Entrances<'_> {
    fn listeners(&self, access_log: &str) -> String {
        let listener = |address: &str| {
            format!("[[listener]]\naddress = {}\naccess_log = {access_log}\n", quoted(address))
        };
        match self {
            Self::Plain(address) => listener(address),
            Self::Https { https, http, domains, email, directory } => {
                let domains: Vec<_> = domains.iter().map(|domain| quoted(domain)).collect();
                let mut acme = format!("domains = [{}]", domains.join(", "));
                for (key, value) in [("email", email), ("directory", directory)] {
                    if let Some(value) = value {
                        acme.push_str(&format!(", {key} = {}", quoted(value)));
                    }
                }
                let port = https
                    .rsplit(':')
                    .next()
                    .and_then(|port| port.parse().ok())
                    .filter(|port| *port != 0);
                let port: u16 = port.unwrap_or(443);
                format!(
                    "{}\n[listener.tls]\nacme = {{ {acme} }}\n\n{}redirect_to_https = {port}\n",
                    listener(https),
                    listener(http)
                )
            }
        }
    }
}

/// Returns `text` as a TOML basic string without variables.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::String(literal(text)).to_string()
}
