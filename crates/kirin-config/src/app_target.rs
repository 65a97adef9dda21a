//! The application of `kirin serve TARGET`: a file, a module, or what a project has.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use kirin_workers::AppCode;

use crate::target::quoted;

/// An application, and the files beside it. Paths are relative to the working directory.
#[derive(Debug, PartialEq, Eq)]
pub struct AppTarget {
    /// The value of `load`.
    pub load: String,
    /// The directory in which it runs; empty for the working directory.
    pub directory: PathBuf,
    /// The directory whose files are at `/`.
    pub public: Option<PathBuf>,
    /// Files at a path of their own.
    pub static_files: Option<StaticFiles>,
    /// Environment variables. The values may have variables of the configuration.
    pub env: Vec<(&'static str, String)>,
    /// What was found in the directory of a project, and why it was chosen.
    pub found: Option<String>,
}

/// Files at a path of their own.
#[derive(Debug, PartialEq, Eq)]
pub struct StaticFiles {
    /// The path of the URLs, such as `/static`.
    pub path: String,
    /// The directory that has the files.
    pub directory: PathBuf,
}

impl AppTarget {
    /// Returns the application in a PSGI, Python or Ruby file. `target` may also name the object in
    /// it.
    pub(crate) fn of_file(target: &str, file: &Path) -> Self {
        Self::new(target.to_owned(), file.parent().unwrap_or(Path::new("")).to_owned())
    }

    /// Returns the application in a Python module: `main:app`, or `DIRECTORY/main:app`.
    pub(crate) fn of_module(target: &str) -> Option<Self> {
        let (directory, module) =
            target.rsplit_once('/').map_or(("", target), |(directory, rest)| {
                (if directory.is_empty() { "/" } else { directory }, rest)
            });
        let directory = PathBuf::from(directory);
        let code = AppCode::parse(module, &directory, &directory);
        code.file().is_none().then(|| Self::new(module.to_owned(), directory))
    }

    /// Returns an application without files of its own but those in `public`, if that is there.
    pub fn new(load: String, directory: PathBuf) -> Self {
        let public = directory.join("public");
        let public = public.is_dir().then_some(public);
        Self { load, directory, public, static_files: None, env: Vec::new(), found: None }
    }

    /// Returns the sections of the application and of its routes.
    pub(crate) fn sections(&self, workers: usize) -> String {
        let mut text = format!("[[app]]\nname = \"web\"\nload = {}\n", quoted(&self.load));
        if !self.directory.as_os_str().is_empty() {
            let directory = quoted(&self.directory.to_string_lossy());
            let _ = writeln!(text, "directory = {directory}");
        }
        for (name, value) in &self.env {
            // The value may have variables.
            let _ = writeln!(text, "env = {{ {name} = {} }}", toml::Value::from(value.as_str()));
        }
        let _ = writeln!(text, "workers = {workers}\n");
        let files = |directory: &Path| quoted(&format!("files:{}", directory.display()));
        let public = self.public.as_deref().map_or_else(String::new, |public| files(public) + ", ");
        let _ = write!(text, "[[route]]\npath = \"/\"\ntry = [\"store\", {public}\"app:web\"]\n");
        if let Some(StaticFiles { path, directory }) = &self.static_files {
            let (path, files) = (quoted(path), files(directory));
            let _ = write!(text, "\n[[route]]\npath = {path}\ntry = [{files}]\nrewrite = \"/\"\n");
        }
        text
    }
}
