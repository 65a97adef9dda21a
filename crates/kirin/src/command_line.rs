//! The command line.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use kirin_config::target::{self, Entrances};
use kirin_config::{Config, ConfigErrors, Source};
use kirin_observe::served::Served;
use kirin_workers::{MAX_PROFILE_HZ, MAX_PROFILE_TIME};

use crate::admin::client::Target;
use crate::admin::running;
use crate::log_sum::LogCommand;

/// The address on which `kirin serve TARGET` listens by default.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";
/// The configuration file of commands that are not told another one.
const DEFAULT_CONFIG: &str = "kirin.toml";
/// The number of workers of `kirin serve app.psgi` by default.
const DEFAULT_WORKERS: usize = 5;
/// The default address with `--domain`.
const DEFAULT_HTTPS_ADDRESS: &str = "*:443";

/// One program in front of your application: it keeps every connection, serves what is in memory,
/// and hands only the requests that need code to the application's workers.
#[derive(Parser)]
#[command(
    name = "kirin",
    version,
    after_help = "Examples:
  kirin serve app.psgi               a PSGI application, and ./public beside it
  kirin serve ./public               a directory
  kirin serve http://127.0.0.1:3000  another HTTP server
  kirin serve --domain example.org app.psgi    to the world: https, with a certificate of Let's Encrypt
  kirin serve --config kirin.toml    whatever the file says
  kirin serve --print-config app.psgi > kirin.toml    a file to begin with"
)]
pub struct CommandLine {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// A command.
#[derive(Subcommand)]
pub enum Command {
    /// Serve an application, a directory, or what a configuration file says
    Serve(Serve),
    /// Check a configuration file and say what is wrong with it
    Check {
        /// The file
        #[arg(long, short, default_value = "kirin.toml")]
        config: PathBuf,
    },
    /// Say which site, route, rules and places a request meets, and why not others
    #[command(after_help = "Examples:
  kirin explain https://example.org/x?y
  kirin explain POST http://localhost:8080/login -H 'Cookie: sid=1' --client 10.1.2.3")]
    Explain(Explain),
    /// Serve an application that was loaded by the program that became Kirin; see
    /// Plack::Handler::Kirin
    #[command(hide = true)]
    ServeLoaded {
        /// A directory made for this Kirin, with a configuration and the socket of the workers;
        /// Kirin removes it at the end
        #[arg(long)]
        directory: PathBuf,
        /// The child process that has loaded the application; its control channel is standard input
        #[arg(long, value_parser = clap::value_parser!(u32).range(2..))]
        app_parent: u32,
        /// Write the process id to this file, and remove the file at the end
        #[arg(long)]
        pid_file: Option<PathBuf>,
    },
    /// Purge pages and other items of a running Kirin, by its admin listener or its memcached port
    #[command(after_help = "Examples:
  kirin purge --key / --prefix /recent/
  kirin purge --tag memo-7 --tag user-3 --config /etc/kirin/kirin.toml
  kirin purge --prefix /blog/ --soft")]
    Purge {
        /// Purge the item with this key; the key of a page is its path and query. Can be repeated,
        /// as the next two options
        #[arg(long = "key", short, required_unless_present_any = ["prefixes", "tags"], value_name = "KEY")]
        keys: Vec<String>,
        /// Purge all items whose keys start with this prefix
        #[arg(long = "prefix", short, value_name = "PREFIX")]
        prefixes: Vec<String>,
        /// Purge all items with this tag
        #[arg(long = "tag", short, value_name = "TAG")]
        tags: Vec<String>,
        /// Purge items of this site only: its name, or one of its hosts
        #[arg(long, value_name = "NAME")]
        site: Option<String>,
        /// Only mark the items stale; Kirin serves them until they are renewed
        #[arg(long)]
        soft: bool,
        #[command(flatten)]
        at: RunningKirin,
    },
    /// Print the state and the counters of a running Kirin
    #[command(after_help = "Examples:
  kirin status                      the Kirin of ./kirin.toml, of this directory, or the only one
  kirin status --target app.psgi    that of `kirin serve app.psgi`
  kirin status --json | jq .store   for programs")]
    Status {
        /// Print JSON, with all counters
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        at: RunningKirin,
    },
    /// Find the slow line: sample the Perl stacks of an application's workers for some seconds
    #[command(after_help = "Examples:
  kirin profile --app web --seconds 10
  kirin profile --app web --output slow.svg    a flame graph, for a browser")]
    Profile(Profile),
    /// Show what a running Kirin does now: workers, URLs, applications, upstreams, cache, store
    #[command(after_help = "Examples:
  kirin top
  kirin top --once > now.txt
  kirin top --ssh www.example.org --config /etc/kirin/kirin.toml")]
    Top(Top),
    /// Observe what applications answer for a while, and say which pages could be in memory
    #[command(after_help = "Examples:
  kirin advise --seconds 60
  kirin advise --seconds 600 --app web --session sid --json
Ctrl-C ends the run early; the report is about the time so far.")]
    Advise(Advise),
    /// Start only the store, with memcached's own options (`kirin memcached -h` lists them)
    #[command(disable_help_flag = true)]
    Memcached {
        /// memcached's options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Read access logs
    Log {
        #[command(subcommand)]
        command: LogCommand,
    },
    /// Print the configuration reference as Markdown
    #[command(hide = true)]
    ConfigReference,
}

/// The arguments of `kirin explain`.
#[derive(Args)]
#[command(allow_missing_positional = true)]
pub struct Explain {
    /// The method
    #[arg(default_value = "GET")]
    pub method: String,
    /// The URL: http://HOST/PATH or https://HOST/PATH
    pub url: String,
    /// A field of the request. Can be repeated
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// The client: an address, or unix: for a client on a unix socket
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub client: String,
    /// The configuration file [default: kirin.toml, or what the running Kirin serves]
    #[arg(long, short, value_name = "FILE", conflicts_with = "target")]
    pub config: Option<PathBuf>,
    /// Instead of a configuration file: the target of `kirin serve TARGET`
    #[arg(long)]
    pub target: Option<String>,
    /// The admin listener of the running Kirin, unix:PATH or HOST:PORT [default: that of the
    /// configuration]
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<String>,
}

/// The arguments of `kirin profile`.
#[derive(Args)]
pub struct Profile {
    /// The application [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub app: Option<String>,
    /// How long
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=MAX_PROFILE_TIME.as_secs()))]
    pub seconds: u64,
    /// How often in a second
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PROFILE_HZ)))]
    pub hz: u32,
    /// Where to write the stacks: a flame graph if the name ends in .svg, or else folded stacks
    /// [default: folded stacks to standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The running Kirin.
    #[command(flatten)]
    pub at: RunningKirin,
}

/// The arguments of `kirin advise`.
#[derive(Args)]
pub struct Advise {
    /// How long to observe
    #[arg(long, short, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Observe this application only. Can be repeated
    #[arg(long = "app", value_name = "NAME")]
    pub apps: Vec<String>,
    /// Observe this upstream only. Can be repeated
    #[arg(long = "upstream", value_name = "NAME")]
    pub upstreams: Vec<String>,
    /// Observe this site of the configuration only; - means the routes at the top level. Can be
    /// repeated
    #[arg(long = "site", value_name = "NAME")]
    pub sites: Vec<String>,
    /// A cookie that names sessions. Can be repeated [default: `session_cookie` of the
    /// configuration, or those that differ for nearly each visitor]
    #[arg(long = "session", value_name = "COOKIE")]
    pub sessions: Vec<String>,
    /// The fewest different visitors that an advice needs, 3 to 8
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub visitors: usize,
    /// The fewest client addresses that an advice needs. Use 1 only if all visitors come through a
    /// proxy that is not in `trusted`
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub addresses: usize,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// The running Kirin.
    #[command(flatten)]
    pub at: RunningKirin,
}

/// The arguments of `kirin top`.
#[derive(Args)]
pub struct Top {
    /// Print all tables once, as plain text. This is the default if the output is not a terminal
    #[arg(long)]
    pub once: bool,
    /// Show a Kirin on another machine: a destination of ssh, such as user@host. The other options
    /// then mean files and sockets of that machine, on which `kirin` must be installed
    #[arg(long, value_name = "HOST")]
    pub ssh: Option<String>,
    /// Show only the URLs of this site of the configuration; - means the routes at the top level
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    /// The time between two snapshots in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = parse_interval)]
    pub interval: f64,
    /// Print snapshots as lines of JSON, for the `kirin top` of another machine
    #[arg(long, hide = true)]
    pub stream: bool,
    #[command(flatten)]
    pub at: RunningKirin,
}

fn parse_interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "allowed are 0.1 to 3600 seconds".to_owned())
}

/// A running Kirin. Without an option it is that of ./kirin.toml; without this file, the one that
/// serves something in the working directory; else the only one of this user.
#[derive(Args)]
pub struct RunningKirin {
    /// The configuration file that it was started with [default: kirin.toml, if there is one, or
    /// else the Kirin of this directory, or the only one of this user]
    #[arg(long, short, value_name = "FILE", conflicts_with = "target")]
    config: Option<PathBuf>,
    /// The target that it was started with, as in `kirin serve app.psgi`
    #[arg(long)]
    target: Option<String>,
    /// Its admin listener: unix:PATH or HOST:PORT
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["config", "target"])]
    admin: Option<String>,
}

impl RunningKirin {
    /// Returns the configuration file that was named, or else `./kirin.toml`, if that may be the
    /// file of the running Kirin.
    pub fn config_file(&self) -> Option<&Path> {
        let is_other = self.admin.is_some() || self.target.is_some();
        (!is_other).then(|| self.config.as_deref().unwrap_or(Path::new("kirin.toml")))
    }

    /// Returns these arguments for a command line on another machine.
    pub fn arguments(&self) -> Vec<String> {
        let config = self.config.as_ref().map(|path| path.display().to_string());
        let options = [
            ("--config", config.as_ref()),
            ("--target", self.target.as_ref()),
            ("--admin", self.admin.as_ref()),
        ];
        let given = options.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.flat_map(|(name, value)| [name.to_owned(), value.clone()]).collect()
    }

    /// Returns the running Kirin. An error says what to do if there is none, or several.
    pub fn find(&self) -> Result<Target, String> {
        let default = Path::new(DEFAULT_CONFIG);
        match (&self.admin, &self.target, &self.config) {
            (Some(address), ..) => Target::at(address),
            (None, Some(target), _) => Ok(Target::of_served(&Served::from_target(target))),
            (None, None, Some(path)) => Target::of_config(path),
            (None, None, None) if default.exists() => Target::of_config(default),
            (None, None, None) => {
                running::only_one().map(|running| Target::at_listener(running.address))
            }
        }
    }
}

impl Explain {
    /// Returns what Kirin serves, from the options, ./kirin.toml, or a running Kirin.
    pub fn served(&self) -> Result<Served, String> {
        let default = Path::new(DEFAULT_CONFIG);
        match (&self.target, &self.config) {
            (Some(target), _) => Ok(Served::from_target(target)),
            (None, Some(path)) => Ok(Served::from_config(path)),
            (None, None) if default.exists() || self.admin.is_some() => {
                Ok(Served::from_config(default))
            }
            (None, None) => running::only_one()?.served().ok_or_else(|| {
                "the running Kirin has its configuration from Plack::Handler::Kirin: name one with --config or --target"
                    .into()
            }),
        }
    }

    /// Returns the text of the configuration that is explained.
    pub fn source(&self, served: &Served) -> Result<Source, String> {
        match (&self.config, served) {
            (Some(path), _) => Source::read(path).map_err(|error| error.to_string()),
            (None, Served::Config(path)) => {
                let here = std::path::absolute(DEFAULT_CONFIG).is_ok_and(|here| here == *path);
                let path = if here { Path::new(DEFAULT_CONFIG) } else { path };
                Source::read(path).map_err(|error| error.to_string())
            }
            (None, Served::Target(path)) => target_source(
                &path.to_string_lossy(),
                &Entrances::Plain(DEFAULT_ADDRESS),
                DEFAULT_WORKERS,
                false,
            ),
            (None, Served::Server(url)) => {
                target_source(url, &Entrances::Plain(DEFAULT_ADDRESS), DEFAULT_WORKERS, false)
            }
            (None, Served::Program { command, .. }) => {
                Err(format!("{command} is no configuration"))
            }
        }
    }
}

/// Returns the configuration that `kirin serve TARGET` stands for.
fn target_source(
    target: &str,
    entrances: &Entrances<'_>,
    workers: usize,
    is_on_terminal: bool,
) -> Result<Source, String> {
    let kind = target::classify(target)?;
    let path = Path::new(target);
    let directory = match kind {
        target::Target::Directory => path,
        target::Target::Server => Path::new("."),
        target::Target::Psgi { .. } => {
            path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
        }
    };
    Ok(Source {
        name: "command line".into(),
        directory: directory.to_owned(),
        text: target::configuration(path, &kind, entrances, workers, is_on_terminal),
    })
}

/// The arguments of `kirin serve`.
#[derive(Args)]
pub struct Serve {
    /// A PSGI file, a directory or the address of a server, such as http://127.0.0.1:3000; default:
    /// the configuration file kirin.toml
    target: Option<String>,
    /// A configuration file
    #[arg(long, short, conflicts_with = "target")]
    config: Option<PathBuf>,
    /// Where to listen: HOST:PORT, PORT (on 127.0.0.1), *:PORT (all addresses) or unix:PATH
    /// [default: the sockets that start_server or systemd hands over, or else 127.0.0.1:8080; with
    /// --domain *:443]
    #[arg(long, short, requires = "target")]
    listen: Option<String>,
    /// Serve https with a certificate of Let's Encrypt for this name; you agree to its terms of
    /// service. Repeat the option for more names. Listens on *:443 for https and on *:80 for http
    #[arg(long, requires = "target")]
    domain: Vec<String>,
    /// With --domain: where to listen for HTTP. Port 80 of the names must lead there
    #[arg(long, requires = "domain", default_value = "*:80")]
    listen_http: String,
    /// With --domain: the e-mail address to which the authority may write
    #[arg(long, requires = "domain")]
    email: Option<String>,
    /// With --domain: another authority, by the https address of its ACME directory
    #[arg(long, requires = "domain")]
    acme_directory: Option<String>,
    /// Worker processes of the application
    #[arg(long, short, default_value_t = DEFAULT_WORKERS, requires = "target")]
    workers: usize,
    /// Write the process id to this file, and remove the file at the end
    #[arg(long)]
    pid_file: Option<PathBuf>,
    /// Print the configuration that the command line stands for, and end
    #[arg(long)]
    print_config: bool,
}

impl Serve {
    /// Returns the text of the configuration, and the directory of its relative paths.
    pub fn source(&self) -> Result<Source, String> {
        let Some(target) = &self.target else {
            let path = self.config.as_deref().unwrap_or(Path::new(DEFAULT_CONFIG));
            if self.config.is_none() && !path.exists() {
                return Err("nothing to serve: name a PSGI file, a directory, an http:// address or --config FILE (there is no ./kirin.toml)".into());
            }
            return Source::read(path).map_err(|error| error.to_string());
        };
        // A configuration that is printed is for a file, and for a Kirin in the background.
        let is_on_terminal = std::io::stderr().is_terminal() && !self.print_config;
        target_source(target, &self.entrances(), self.workers, is_on_terminal)
    }

    /// Returns what is served, for those who look for this Kirin later.
    pub fn served(&self) -> Served {
        let config = self.config.as_deref().unwrap_or(Path::new(DEFAULT_CONFIG));
        self.target.as_deref().map_or_else(|| Served::from_config(config), Served::from_target)
    }

    fn entrances(&self) -> Entrances<'_> {
        let listen = self.listen.as_deref();
        if self.domain.is_empty() {
            return Entrances::Plain(listen.unwrap_or(DEFAULT_ADDRESS));
        }
        Entrances::Https {
            https: listen.unwrap_or(DEFAULT_HTTPS_ADDRESS),
            http: &self.listen_http,
            domains: &self.domain,
            email: self.email.as_deref(),
            directory: self.acme_directory.as_deref(),
        }
    }

    /// Returns whether the command line names no address. The inherited sockets decide then.
    pub fn listens_where_told(&self) -> bool {
        self.target.is_some() && self.listen.is_none() && self.domain.is_empty()
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

/// Parses and checks a configuration.
pub fn read_config(source: &Source) -> Result<Config, ConfigErrors> {
    kirin_config::read(source)
}
