//! The result of the look at a project: a plan to serve it, and the evidence for it.

use crate::evidence::Evidence;

/// What was found in a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// How Kirin serves the project.
    pub plan: Plan,
    /// The files and lines that led to the plan. There is at least one.
    pub evidence: Vec<Evidence>,
    /// What was found too, and is not used.
    pub unused: Vec<Evidence>,
    /// Commands that the user must run before `kirin serve`, each with its purpose.
    pub steps: Vec<Step>,
}

/// A command that the user must run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The purpose: "build the site".
    pub purpose: &'static str,
    /// The command.
    pub command: String,
}

/// How Kirin serves a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Kirin starts workers of a PSGI application.
    Psgi(PsgiPlan),
    /// Kirin starts workers of a Python application.
    Python(PythonPlan),
    /// Kirin starts workers of a Ruby application.
    Ruby(RubyPlan),
    /// A PHP application: php-fpm runs its scripts.
    Php(PhpPlan),
    /// Another server that the user starts.
    Server(ServerPlan),
    /// Files only.
    Site(SitePlan),
}

/// A PSGI application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PsgiPlan {
    /// The file to load.
    pub load: String,
    /// The framework, if it is known.
    pub framework: Option<&'static str>,
    /// The directory whose files are at `/`.
    pub public: Option<&'static str>,
    /// The directory that has the files of `/static` in its own `static`.
    pub static_parent: Option<&'static str>,
    /// Directories of Perl modules.
    pub libraries: Vec<&'static str>,
}

/// A Python application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonPlan {
    /// The module and the name in it: `main:app`.
    pub load: String,
    /// The framework.
    pub framework: &'static str,
    /// The files that Kirin serves without a worker.
    pub static_files: Option<StaticFiles>,
}

/// A Ruby application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RubyPlan {
    /// The file to load.
    pub load: &'static str,
    /// The framework, if it is known.
    pub framework: Option<&'static str>,
    /// The directory whose files are at `/`.
    pub public: Option<&'static str>,
}

/// Files of an application, at a path of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticFiles {
    /// The path of the URLs, such as `/static`.
    pub path: String,
    /// The directory that has the files.
    pub directory: String,
}

/// A PHP application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhpPlan {
    /// The document root.
    pub root: &'static str,
    /// The unix socket of php-fpm.
    pub socket: String,
    /// Whether the socket is there now.
    pub has_socket: bool,
    /// Paths whose files are served, but never run.
    pub files_only: Vec<FilesOnly>,
    /// Paths below which nothing is served.
    pub denied: Vec<&'static str>,
}

/// A path whose files are served, but never run as scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilesOnly {
    /// The path, such as `/uploads`.
    pub path: &'static str,
    /// Whether the directory is a symbolic link, as Laravel makes it for `/storage`.
    pub is_link: bool,
    /// A path below it where the application makes missing files.
    pub made_below: Option<&'static str>,
}

/// Another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPlan {
    /// The port on 127.0.0.1.
    pub port: u16,
    /// Whether no file names the port.
    pub is_guess: bool,
    /// The directory whose files are at `/`.
    pub public: Option<&'static str>,
}

/// A static site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePlan {
    /// The directory of the files.
    pub directory: String,
    /// Whether `404.html` is the page for missing paths.
    pub has_not_found_page: bool,
    /// Whether `index.html` is the page for navigations to missing paths.
    pub is_single_page: bool,
    /// The path of files with fingerprints in their names.
    pub immutable: Option<&'static str>,
    /// Paths that are denied, because the directory also has files that are not for visitors.
    pub denied: Vec<&'static str>,
}

/// One way to serve a project, before it is chosen.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub plan: Plan,
    pub evidence: Vec<Evidence>,
    pub steps: Vec<Step>,
}

impl Found {
    /// Returns the name of the plan: "a PSGI application".
    pub fn name(&self) -> String {
        match &self.plan {
            Plan::Psgi(PsgiPlan { framework: Some(framework), .. }) => {
                format!("a PSGI application ({framework})")
            }
            Plan::Psgi(_) => "a PSGI application".into(),
            Plan::Python(plan) => format!("a Python application ({})", plan.framework),
            Plan::Ruby(RubyPlan { framework: Some(framework), .. }) => {
                format!("a Ruby application ({framework})")
            }
            Plan::Ruby(_) => "a Ruby application".into(),
            Plan::Php(_) => "a PHP application".into(),
            Plan::Server(server) => {
                format!("an application that listens on port {}", server.port)
            }
            Plan::Site(site) if site.is_single_page => "a single-page application".into(),
            Plan::Site(_) => "a static site".into(),
        }
    }

    /// Returns the address that the configuration listens on. It is another one than that of the
    /// server behind Kirin.
    pub fn address(&self) -> &'static str {
        match &self.plan {
            Plan::Server(server) if server.port == 8080 => "127.0.0.1:8081",
            _ => "127.0.0.1:8080",
        }
    }

    /// Returns the text for the terminal: what was found, why, and what to do next. `serve` is the
    /// command that serves with the new configuration.
    pub fn report(&self, serve: &str) -> String {
        let mut report = format!("Found {}:\n", self.name());
        for evidence in &self.evidence {
            report.push_str(&format!("  {evidence}\n"));
        }
        if !self.unused.is_empty() {
            report.push_str("Found too, and not used:\n");
            for evidence in &self.unused {
                report.push_str(&format!("  {evidence}\n"));
            }
        }
        report.push_str("Next:\n");
        for step in &self.steps {
            report.push_str(&format!("  {}    # {}\n", step.command, step.purpose));
        }
        let note = match &self.plan {
            Plan::Server(_) => "in another terminal; then open",
            _ => "then open",
        };
        report.push_str(&format!("  {serve}    # {note} http://{}/\n", self.address()));
        report
    }
}
