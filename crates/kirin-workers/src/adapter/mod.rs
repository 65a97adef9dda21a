//! Finds the adapter of an application's language, which is Kirin's other half in the worker
//! processes, and the interpreter to run it with.

mod python;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::app_code::Language;
use crate::config::AppConfig;
use crate::error::AppError;

/// The command that starts an app parent, without its own options.
#[derive(Debug)]
pub(crate) struct Adapter {
    /// The interpreter.
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
}

impl Adapter {
    /// Returns the adapter that `config` names. Otherwise, returns the first one found: beside the
    /// program, in its source tree, or where the interpreter finds its modules.
    pub(crate) fn find(config: &AppConfig) -> Result<Self, AppError> {
        let language = config.code.language();
        let program = config.interpreter.clone().unwrap_or_else(|| match language {
            Language::Perl => "perl".into(),
            Language::Python => python::interpreter(config),
        });
        let program = program.into_os_string();
        let candidates = match &config.adapter {
            Some(directory) => vec![directory.clone()],
            None => std::env::current_exe()
                .map(|program| beside(&program, language))
                .unwrap_or_default(),
        };
        if let Some(directory) =
            candidates.iter().find(|directory| directory.join("bin/kirin-worker").is_file())
        {
            let directory = directory.canonicalize().unwrap_or_else(|_| directory.clone());
            let script = directory.join("bin/kirin-worker").into_os_string();
            let arguments = match language {
                Language::Perl => {
                    let mut include = OsString::from("-I");
                    include.push(directory.join("lib"));
                    vec![include, script]
                }
                Language::Python => vec![script],
            };
            return Ok(Self { program, arguments });
        }
        let (probe, command) = installed(language);
        if config.adapter.is_none() && is_installed(config, &program, probe)? {
            let arguments = command.iter().map(OsString::from).collect();
            return Ok(Self { program, arguments });
        }
        let searched: Vec<String> =
            candidates.iter().map(|path| path.display().to_string()).collect();
        Err(AppError::NoAdapter {
            app: config.name.clone(),
            language,
            searched: searched.join(", "),
        })
    }
}

/// Returns the arguments with which the interpreter shows whether it finds the adapter by itself,
/// and those that start an app parent then.
fn installed(language: Language) -> (&'static [&'static str], &'static [&'static str]) {
    match language {
        Language::Perl => (
            &["-MKirin::AppParent", "-e1"],
            &["-MKirin::AppParent", "-e", "exit Kirin::AppParent->main(@ARGV)", "--"],
        ),
        Language::Python => (
            &[
                "-c",
                "import sys; sys.path[:1] == [''] and sys.path.pop(0); import kirin.app_parent",
            ],
            &["-c", START_PYTHON],
        ),
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
