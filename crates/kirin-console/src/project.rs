//! The application in the directory of a project, which `kirin serve DIRECTORY` runs.

use std::path::Path;

use kirin_config::app_target::{AppTarget, StaticFiles};
use kirin_init::Plan;

/// Returns the application of a project, if Kirin can run it itself.
pub fn find_app(directory: &Path) -> Option<AppTarget> {
    let found = kirin_init::find(directory).ok()?;
    let evidence = found.evidence.first().map(ToString::to_string).unwrap_or_default();
    let described = format!("{}: {evidence}", found.name());
    let here = Path::new(".");
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
        Plan::Php(_) | Plan::Server(_) | Plan::Site(_) => return None,
    };
    Some(AppTarget { found: Some(described), ..app })
}
