//! The code of an application, as `load` of an `[[app]]` names it.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// The languages that have an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Perl, with PSGI.
    Perl,
    /// Python, with WSGI or ASGI.
    Python,
    /// Ruby, with Rack.
    Ruby,
    /// A language that only the adapter knows.
    Other,
}

/// The code of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppCode {
    /// A PSGI file.
    Psgi(PathBuf),
    /// A Python file, and the name of the application in it, if one is given: `app.py:NAME`.
    PythonFile {
        /// The file.
        file: PathBuf,
        /// The name, or a call without arguments, such as `create_app()`.
        object: Option<String>,
    },
    /// A Python module that the interpreter finds, with or without a name in it:
    /// `package.module:NAME`.
    PythonModule(String),
    /// A Rack file (`config.ru`), or a Ruby file that has a Rack application.
    RubyFile(PathBuf),
    /// A file for an adapter that the configuration names.
    OtherFile(PathBuf),
}

impl AppCode {
    /// Reads `text`. Relative paths are relative to `base`, and modules are in `directory`.
    ///
    /// A name with dots, such as `site.wsgi`, may be a file or a module. It is a module if there is
    /// no such file, and the module is in `directory`.
    pub fn parse(text: &str, base: &Path, directory: &Path) -> Self {
        let file = base.join(text);
        if has_extension(text, &["py"]) {
            return Self::PythonFile { file, object: None };
        }
        if has_extension(text, &["ru", "rb"]) {
            return Self::RubyFile(file);
        }
        if file.is_file() {
            return Self::Psgi(file);
        }
        match text.rsplit_once(':') {
            Some((path, object)) if has_extension(path, &["py"]) && is_object_name(object) => {
                let object = Some(object.to_owned());
                Self::PythonFile { file: base.join(path), object }
            }
            Some((module, object)) if is_module_name(module) && is_object_name(object) => {
                Self::PythonModule(text.to_owned())
            }
            None if is_module_name(text) && has_module(directory, text) => {
                Self::PythonModule(text.to_owned())
            }
            _ => Self::Psgi(file),
        }
    }

    /// Returns the code for an adapter that the configuration names. Only that adapter need know
    /// the language of a file if its name does not say it.
    #[must_use]
    pub fn with_named_adapter(self) -> Self {
        match self {
            Self::Psgi(file) if !has_extension(&file, &["psgi", "pl"]) => Self::OtherFile(file),
            known => known,
        }
    }

    /// Returns the language.
    pub fn language(&self) -> Language {
        match self {
            Self::Psgi(_) => Language::Perl,
            Self::PythonFile { .. } | Self::PythonModule(_) => Language::Python,
            Self::RubyFile(_) => Language::Ruby,
            Self::OtherFile(_) => Language::Other,
        }
    }

    /// Returns the file; `None` for a module.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::PythonModule(_) => None,
            Self::Psgi(file)
            | Self::PythonFile { file, .. }
            | Self::RubyFile(file)
            | Self::OtherFile(file) => Some(file),
        }
    }

    /// Returns the argument for the adapter. `file` is the absolute path of [`AppCode::file`].
    pub(crate) fn argument(&self, file: Option<PathBuf>) -> OsString {
        match self {
            Self::PythonModule(name) => name.into(),
            Self::Psgi(path) | Self::RubyFile(path) | Self::OtherFile(path) => {
                file.unwrap_or_else(|| path.clone()).into_os_string()
            }
            Self::PythonFile { file: path, object } => {
                let mut argument = file.unwrap_or_else(|| path.clone()).into_os_string();
                if let Some(object) = object {
                    argument.push(":");
                    argument.push(object);
                }
                argument
            }
        }
    }
}

impl fmt::Display for AppCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Psgi(file)
            | Self::PythonFile { file, object: None }
            | Self::RubyFile(file)
            | Self::OtherFile(file) => file.display().fmt(formatter),
            Self::PythonFile { file, object: Some(object) } => {
                write!(formatter, "{}:{object}", file.display())
            }
            Self::PythonModule(name) => formatter.write_str(name),
        }
    }
}

fn has_extension(path: impl AsRef<Path>, extensions: &[&str]) -> bool {
    let extension = path.as_ref().extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| extensions.contains(&extension))
}

/// Returns whether `text` is names with dots between them.
fn is_module_name(text: &str) -> bool {
    text.split('.').all(|name| {
        let is_in_name = |c: char| c.is_alphanumeric() || c == '_';
        name.starts_with(|first: char| first.is_alphabetic() || first == '_')
            && name.chars().all(is_in_name)
    })
}

/// Returns whether `text` is a name in a module, or a call without arguments.
fn is_object_name(text: &str) -> bool {
    is_module_name(text.strip_suffix("()").unwrap_or(text))
}

/// Returns whether `directory` has the file of a module.
fn has_module(directory: &Path, module: &str) -> bool {
    let path = directory.join(module.replace('.', "/"));
    path.with_extension("py").is_file() || path.join("__init__.py").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_names_files_and_modules() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir_all(at("shop/api")).unwrap();
        for name in ["app.psgi", "script:8", "shop/wsgi.py", "shop/api/__init__.py", "two.wsgi"] {
            std::fs::write(at(name), "").unwrap();
        }
        let psgi = |name: &str| AppCode::Psgi(at(name));
        let module = |name: &str| AppCode::PythonModule(name.into());
        let file = |name: &str, object: Option<&str>| AppCode::PythonFile {
            file: at(name),
            object: object.map(str::to_owned),
        };
        for (text, expected) in [
            ("app.psgi", psgi("app.psgi")),
            ("missing.psgi", psgi("missing.psgi")),
            ("script:8", psgi("script:8")),
            ("script:9", psgi("script:9")),
            ("localhost:3000", psgi("localhost:3000")),
            ("app.py:8", psgi("app.py:8")),
            ("main:shop.app", module("main:shop.app")),
            ("main:make()", module("main:make()")),
            ("bin/script:9", psgi("bin/script:9")),
            ("app.py", file("app.py", None)),
            ("app.py:create_app()", file("app.py", Some("create_app()"))),
            ("src/app.py:site", file("src/app.py", Some("site"))),
            ("shop.wsgi", module("shop.wsgi")),
            ("shop.wsgi:application", module("shop.wsgi:application")),
            ("shop.api", module("shop.api")),
            ("shop.missing", psgi("shop.missing")),
            ("installed.wsgi:app", module("installed.wsgi:app")),
            ("main:app", module("main:app")),
            // A file of this name comes first.
            ("two.wsgi", psgi("two.wsgi")),
            ("/srv/a.py", AppCode::PythonFile { file: "/srv/a.py".into(), object: None }),
            ("config.ru", AppCode::RubyFile(at("config.ru"))),
            ("web/other.ru", AppCode::RubyFile(at("web/other.ru"))),
            ("/srv/app.rb", AppCode::RubyFile("/srv/app.rb".into())),
            ("app.js", psgi("app.js")),
        ] {
            assert_eq!(
                AppCode::parse(text, directory.path(), directory.path()),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn a_named_adapter_knows_languages_that_kirin_does_not() {
        let named = |text: &str| {
            AppCode::parse(text, Path::new(""), Path::new("")).with_named_adapter().language()
        };
        for (text, language) in [
            ("app.js", Language::Other),
            ("web/app.php", Language::Other),
            ("server", Language::Other),
            ("app.psgi", Language::Perl),
            ("script.pl", Language::Perl),
            ("app.py", Language::Python),
            ("main:app", Language::Python),
            ("config.ru", Language::Ruby),
        ] {
            assert_eq!(named(text), language, "{text}");
        }
    }

    #[test]
    fn the_adapter_gets_absolute_files_and_plain_modules() {
        let argument = |text: &str| {
            let code = AppCode::parse(text, Path::new("site"), Path::new("site"));
            let file = code.file().map(|file| Path::new("/srv").join(file));
            code.argument(file).into_string().unwrap()
        };
        assert_eq!(argument("app.psgi"), "/srv/site/app.psgi");
        assert_eq!(argument("app.py"), "/srv/site/app.py");
        assert_eq!(argument("app.py:make()"), "/srv/site/app.py:make()");
        assert_eq!(argument("main:app"), "main:app");
        assert_eq!(argument("config.ru"), "/srv/site/config.ru");
    }
}
