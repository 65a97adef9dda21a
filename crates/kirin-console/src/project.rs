//! The application in the directory of a project, which `kirin serve DIRECTORY` runs.

use std::path::Path;

use kirin_config::app_target::{AppTarget, StaticFiles};
use kirin_init::Plan;

/// Files that the source of an application has, and no directory of files for visitors.
const SOURCES: [&str; 7] = [
    "manage.py",
    "pyproject.toml",
    "requirements.txt",
    "__init__.py",
    "cpanfile",
    "config.ru",
    "composer.json",
];

/// Returns the application of a project, if Kirin can run it itself. Returns `None` for a directory
/// of files: one with an `index.html`, or one in which no application was found.
pub fn find_app(directory: &Path) -> Result<Option<AppTarget>, String> {
    let has_index = directory.join("index.html").is_file();
    let found = match kirin_init::find(directory) {
        Ok(found) => found,
        Err(_) if has_index => return Ok(None),
        Err(_) => {
            let source = SOURCES.iter().find(|name| directory.join(name).is_file());
            return source.map_or(Ok(None), |name| Err(not_served(directory, name)));
        }
    };
    let evidence = found.evidence.first().map(ToString::to_string).unwrap_or_default();
    let described = format!("{}: {evidence}", found.name());
    let (shown, here) = (directory, Path::new("."));
    let directory = if directory == here { Path::new("") } else { directory };
    let app = match found.plan {
        Plan::Psgi(plan) => {
            let load = directory.join(plan.load).to_string_lossy().into_owned();
            let mut app = AppTarget::new(load, directory.to_owned());
            if !plan.libraries.is_empty() {
                let libraries = plan.libraries.join(":");
                app.env.push(("PERL5LIB", format!("{libraries}:${{PERL5LIB:-}}")));
            }
            app
        }
        Plan::Ruby(plan) => {
            let load = directory.join(plan.load).to_string_lossy().into_owned();
            AppTarget::new(load, directory.to_owned())
        }
        Plan::Python(plan) => {
            let mut app = AppTarget::new(plan.load, directory.to_owned());
            let files = plan.static_files.map(|files| StaticFiles {
                path: files.path,
                directory: directory.join(files.directory),
            });
            // The files may have to be collected first.
            app.static_files = files.filter(|files| files.directory.is_dir());
            app
        }
        Plan::Php(_) | Plan::Server(_) if !has_index => {
            return Err(format!(
                "`{}` has {described}; `kirin init` writes a configuration for it. Kirin does not \
                 serve its source as files",
                shown.display()
            ));
        }
        Plan::Php(_) | Plan::Server(_) | Plan::Site(_) => return Ok(None),
    };
    Ok(Some(AppTarget { found: Some(described), ..app }))
}

/// Returns the error for a directory with the source of an application that was not found.
fn not_served(directory: &Path, name: &str) -> String {
    format!(
        "`{}` has {name}, so it looks like the source of an application, but none was found that \
         Kirin can run: name it, as in `kirin serve main:app`. To serve the files, name their \
         directory, or write a kirin.toml with a route to `files:`",
        directory.display()
    )
}
