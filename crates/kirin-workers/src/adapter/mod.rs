//! Finds the adapter of an application's language, which is Kirin's other half in the worker
//! processes, and the interpreter to run it with.

mod python;
mod ruby;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::app_code::Language;
use crate::config::AppConfig;
use crate::error::AppError;

/// The program of an adapter, in its directory.
const SCRIPT: &str = "bin/kirin-worker";

/// The command that starts an app parent, without its own options.
#[derive(Debug)]
pub(crate) struct Adapter {
    /// The interpreter, or the adapter itself.
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
}

impl Adapter {
    /// Returns the adapter that `config` names. Otherwise, returns the first one found: beside the
    /// program, in its source tree, or where the interpreter finds its modules.
    pub(crate) fn find(config: &AppConfig) -> Result<Self, AppError> {
        let language = config.code.language();
        if let Some(directory) = &config.adapter {
            let has_script = directory.join(SCRIPT).is_file();
            return has_script.then(|| Self::at(config, directory)).ok_or_else(|| {
                AppError::NotAnAdapter { app: config.name.clone(), directory: directory.clone() }
            });
        }
        let candidates =
            std::env::current_exe().map(|program| beside(&program, language)).unwrap_or_default();
        if let Some(directory) =
            candidates.iter().find(|directory| directory.join(SCRIPT).is_file())
        {
            return Ok(Self::at(config, directory));
        }
        if let Some((probe, command)) = installed(language) {
            let program = interpreter(config).unwrap_or_default();
            if is_installed(config, &program, probe)? {
                let arguments = command.iter().map(OsString::from).collect();
                return Ok(Self { program, arguments });
            }
        }
        let searched: Vec<String> =
            candidates.iter().map(|path| path.display().to_string()).collect();
        Err(AppError::NoAdapter {
            app: config.name.clone(),
            language,
            searched: searched.join(", "),
        })
    }

    /// Returns the adapter in a directory.
    fn at(config: &AppConfig, directory: &Path) -> Self {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let script = directory.join(SCRIPT).into_os_string();
        let Some(program) = interpreter(config) else {
            return Self { program: script, arguments: Vec::new() };
        };
        let arguments = match config.code.language() {
            Language::Perl => {
                let mut include = OsString::from("-I");
                include.push(directory.join("lib"));
                vec![include, script]
            }
            Language::Python | Language::Ruby | Language::Other => vec![script],
        };
        Self { program, arguments }
    }
}

/// Returns the program that runs the adapter: the one that `config` names, or else that of the
/// language. Returns `None` if the adapter is a program itself.
fn interpreter(config: &AppConfig) -> Option<OsString> {
    let of_language = || match config.code.language() {
        Language::Perl => Some("perl".into()),
        Language::Python => Some(python::interpreter(config)),
        Language::Ruby => Some("ruby".into()),
        Language::Other => None,
    };
    config.interpreter.clone().or_else(of_language).map(PathBuf::into_os_string)
}

/// Arguments of an interpreter.
type Arguments = &'static [&'static str];

/// Returns the arguments with which the interpreter shows whether it finds the adapter by itself,
/// and those that start an app parent then.
fn installed(language: Language) -> Option<(Arguments, Arguments)> {
    match language {
        Language::Perl => Some((
            &["-MKirin::AppParent", "-e1"],
            &["-MKirin::AppParent", "-e", "exit Kirin::AppParent->main(@ARGV)", "--"],
        )),
        Language::Python => Some((
            &[
                "-c",
                "import sys; sys.path[:1] == [''] and sys.path.pop(0); import kirin.app_parent",
            ],
            &["-c", START_PYTHON],
        )),
        Language::Ruby => Some((ruby::PROBE, ruby::START)),
        Language::Other => None,
    }
}

/// Starts an app parent. The working directory, which `-c` puts into `sys.path`, may have another
/// module of this name.
const START_PYTHON: &str = "import sys; sys.path[:1] == [''] and sys.path.pop(0); \
                            from kirin.app_parent import main; sys.exit(main(sys.argv[1:]))";

/// Returns the directories to search: `adapters/LANGUAGE` in `PREFIX/share/kirin` and in
/// `PREFIX/lib/kirin` for `PREFIX/bin/kirin`, and in a directory above the program. The last finds
/// the source tree from `target/release/kirin`, and from tests, which are one directory deeper.
fn beside(program: &Path, language: Language) -> Vec<PathBuf> {
    let place = Path::new("adapters").join(match language {
        Language::Perl => "perl",
        Language::Python => "python",
        Language::Ruby => "ruby",
        Language::Other => return Vec::new(),
    });
    let mut candidates = Vec::new();
    if let Some(prefix) = program.ancestors().nth(2) {
        candidates.extend(["share/kirin", "lib/kirin"].map(|of| prefix.join(of).join(&place)));
    }
    candidates.extend(program.ancestors().skip(1).take(4).map(|directory| directory.join(&place)));
    candidates
}

fn is_installed(config: &AppConfig, program: &OsStr, probe: &[&str]) -> Result<bool, AppError> {
    let mut command = Command::new(program);
    // Variables such as GEM_HOME, PERL5LIB and PYTHONPATH say where modules are.
    command.envs(config.env.iter().map(|(name, value)| (name, value)));
    command.args(probe).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) => Ok(status.success()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(AppError::no_interpreter(config, program))
        }
        Err(error) => {
            let what = format!("cannot run {}", program.display());
            Err(AppError::system(&config.name, what, &error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app_code::AppCode;

    fn config(load: &str, adapter: Option<&Path>, interpreter: Option<&str>) -> AppConfig {
        let code = AppCode::parse(load, Path::new(""), Path::new(""));
        let code = if adapter.is_some() { code.with_named_adapter() } else { code };
        AppConfig {
            adapter: adapter.map(Path::to_owned),
            interpreter: interpreter.map(PathBuf::from),
            ..AppConfig::new("web", code)
        }
    }

    #[test]
    fn a_named_adapter_is_a_program_or_what_an_interpreter_runs() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        std::fs::create_dir(directory.join("bin")).unwrap();
        std::fs::write(directory.join(SCRIPT), "").unwrap();
        let script = directory.join(SCRIPT).into_os_string();
        for (load, interpreter, program) in [
            ("app.js", None, None),
            ("app.php", Some("php"), Some("php")),
            ("config.ru", None, Some("ruby")),
            ("config.ru", Some("/opt/ruby"), Some("/opt/ruby")),
        ] {
            let found = Adapter::find(&config(load, Some(&directory), interpreter)).unwrap();
            let command: Vec<_> = program.map(OsString::from).into_iter().collect();
            let command = [command, vec![script.clone()]].concat();
            assert_eq!([vec![found.program], found.arguments].concat(), command, "{load}");
        }
    }

    #[test]
    fn a_directory_without_the_program_is_no_adapter() {
        let directory = tempfile::tempdir().unwrap();
        let error = Adapter::find(&config("app.js", Some(directory.path()), None)).unwrap_err();
        let expected = format!(
            "app `web`: {} is no adapter of Kirin: it has no file bin/kirin-worker",
            directory.path().display()
        );
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn adapters_are_looked_for_beside_the_program() {
        let places = beside(Path::new("/usr/bin/kirin"), Language::Ruby);
        for place in ["/usr/share/kirin/adapters/ruby", "/usr/bin/adapters/ruby"] {
            assert!(places.iter().any(|found| found == Path::new(place)), "{place}");
        }
        assert_eq!(
            beside(Path::new("/usr/bin/kirin"), Language::Other),
            [""; 0].map(PathBuf::from)
        );
    }
}
