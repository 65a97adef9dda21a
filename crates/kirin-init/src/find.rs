//! Finds how to serve a project: all candidates, in the order of their precedence.

use std::io;
use std::path::{Path, PathBuf};

use crate::evidence::{Evidence, printable};
use crate::found::{Candidate, Found, Plan};
use crate::package_json::Package;
use crate::project::Project;
use crate::{container, generators, package_json, php, procfile, psgi, python, ruby, static_site};

/// The directory in which Debian's php-fpm makes its sockets.
const PHP_SOCKETS: &str = "/run/php";

/// Why there is nothing to configure.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The directory cannot be opened.
    #[error("`{}` cannot be opened as a directory: {error}", shown(.directory))]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// Nothing in the directory can be served.
    #[error("{}", nothing(.directory, .problems))]
    Nothing {
        /// The directory.
        directory: PathBuf,
        /// Files that are there and could not be used.
        problems: Vec<Evidence>,
    },
}

/// Looks at the directory of a project.
pub fn find(directory: &Path) -> Result<Found, InitError> {
    find_with_sockets(directory, Path::new(PHP_SOCKETS))
}

/// Looks at the directory of a project. `sockets` is the directory of the sockets of php-fpm.
pub fn find_with_sockets(directory: &Path, sockets: &Path) -> Result<Found, InitError> {
    let project = Project::open(directory)
        .map_err(|error| InitError::Directory { directory: directory.into(), error })?;
    let mut candidates = candidates(&project, sockets).into_iter();
    let chosen = candidates.next();
    let problems = project.into_problems();
    let Some(chosen) = chosen else {
        return Err(InitError::Nothing { directory: directory.into(), problems });
    };
    let mut unused: Vec<Evidence> = candidates
        .filter(|other| !shares_directory(&chosen.plan, &other.plan))
        .filter_map(|other| unused_evidence(&chosen.plan, other))
        .collect();
    unused.extend(problems);
    Ok(Found { plan: chosen.plan, evidence: chosen.evidence, unused, steps: chosen.steps })
}

/// Returns all ways to serve the project. The first is the best. `docs/init.md` has the order, and
/// the reasons for it.
fn candidates(project: &Project, sockets: &Path) -> Vec<Candidate> {
    let package = Package::read(project);
    let package = package.as_ref();
    let export = package.and_then(|package| generators::next_export(project, package));
    let is_static = export.is_some()
        || package.is_some_and(|package| package.needs("@sveltejs/adapter-static"));
    let generated = export
        .or_else(|| generators::by_configuration(project))
        .or_else(|| package.and_then(|package| generators::by_package(project, package)));
    let server = package
        .filter(|_| !is_static)
        .and_then(|package| package_json::find_server(project, package));
    let is_node = generated.is_some() || server.is_some();
    let plain = match generated {
        // An index.html beside a generator is a source.
        Some(_) => None,
        None => static_site::find(project, package.is_some()),
    };
    let psgi = psgi::find(project);
    let catalyst = psgi.is_none().then(|| psgi::find_catalyst_script(project)).flatten();
    [
        psgi,
        python::find(project),
        ruby::find(project),
        php::find(project, sockets),
        procfile::find(project),
        catalyst,
        server,
        generated.map(|site| static_site::of_generator(project, site)),
        container::find_compose(project),
        container::find_dockerfile(project, false),
        plain,
        package
            .filter(|_| !is_node)
            .and_then(|package| package_json::find_script(project, package)),
        container::find_dockerfile(project, true),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Says whether the other candidate is a static site whose files the chosen plan already serves.
fn shares_directory(chosen: &Plan, other: &Plan) -> bool {
    let Plan::Site(other) = other else { return false };
    let directory = match chosen {
        Plan::Psgi(plan) => plan.public,
        Plan::Python(plan) => plan.static_files.as_ref().map(|files| files.directory.as_str()),
        Plan::Ruby(plan) => plan.public,
        Plan::Php(plan) => Some(plan.root),
        Plan::Server(plan) => plan.public,
        Plan::Site(plan) => Some(plan.directory.as_str()),
    };
    directory == Some(other.directory.as_str())
}

/// Returns the evidence of a candidate that was not chosen.
fn unused_evidence(chosen: &Plan, other: Candidate) -> Option<Evidence> {
    let mut evidence = other.evidence.into_iter().next()?;
    if let (Plan::Server(chosen), Plan::Server(other)) = (chosen, &other.plan) {
        match other.port == chosen.port {
            true => evidence.fact.push_str(", too"),
            false if !evidence.fact.contains(&other.port.to_string()) => {
                evidence.fact.push_str(&format!(" (port {})", other.port));
            }
            false => {}
        }
    }
    Some(evidence)
}

fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

/// Returns the message for a project in which nothing was found.
fn nothing(directory: &Path, problems: &[Evidence]) -> String {
    let mut message = format!(
        "nothing to serve was found in `{}`\n\
         kirin init looks for:\n  \
         a PSGI file (app.psgi, bin/app.psgi, script/…) or a script of Mojolicious\n  \
         Django (manage.py), or Flask, Bottle and others in app.py, main.py, wsgi.py\n  \
         config.ru of a Ruby application (Rails, Sinatra and others)\n  \
         a front controller in PHP (public/index.php, index.php)\n  \
         a Procfile, main.py or package.json that starts a server\n  \
         a static site: index.html at the top or in public, dist, build, out, _site, www, site, \
         htdocs\n  \
         a Dockerfile or a Compose file that names a port\n",
        shown(directory)
    );
    for problem in problems {
        message.push_str(&format!("{problem}\n"));
    }
    message.push_str(
        "Without a file, `kirin serve DIRECTORY` serves files, `kirin serve FILE.psgi` an \
         application, and\n`kirin serve http://127.0.0.1:PORT` another server. With \
         `--print-config` it prints the\nkirin.toml to begin with.",
    );
    message
}
