//! Why an application does not run.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::app_code::Language;
use crate::config::AppConfig;

/// Why an application does not run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AppError {
    /// The file to load cannot be read.
    #[error("app `{app}`: {} cannot be read: {reason}", path.display())]
    NoSuchFile {
        /// The application's name.
        app: String,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// The interpreter is not installed, or not where the environment says.
    #[error("app `{app}`: {}", missing_interpreter(*language, program))]
    NoInterpreter {
        /// The application's name.
        app: String,
        /// The language of the application.
        language: Language,
        /// The program that was looked for.
        program: String,
    },
    /// The directory that the configuration names as the adapter has none.
    #[error(
        "app `{app}`: {} is no adapter of Kirin: it has no file bin/kirin-worker", directory.display()
    )]
    NotAnAdapter {
        /// The application's name.
        app: String,
        /// The directory.
        directory: PathBuf,
    },
    /// The adapter was not found.
    #[error("app `{app}`: {}", missing_adapter(*language, searched))]
    NoAdapter {
        /// The application's name.
        app: String,
        /// The language of the application.
        language: Language,
        /// The directories that were searched.
        searched: String,
    },
    /// A system call failed while the application was started.
    #[error("app `{app}`: {what}: {reason}")]
    System {
        /// The application's name.
        app: String,
        /// The action that failed.
        what: String,
        /// The error of the system.
        reason: String,
    },
    /// The application died while it was loaded.
    #[error("app `{app}` cannot be loaded: {message}")]
    Load {
        /// The application's name.
        app: String,
        /// The message with which it died.
        message: String,
    },
    /// The parent ended before the application was loaded, or cannot be started again.
    #[error("app `{app}`: its parent process ended: {status}")]
    Ended {
        /// The application's name.
        app: String,
        /// The exit status of the parent.
        status: ExitStatus,
    },
    /// The application was not loaded in time.
    #[error("app `{app}` was not ready within {limit:?}")]
    TooSlow {
        /// The application's name.
        app: String,
        /// The limit.
        limit: Duration,
    },
    /// The application was loaded before Kirin started, and cannot be loaded again.
    #[error(
        "app `{app}` was loaded before Kirin started, by a process that was forked or has changed its name; it cannot be loaded again: restart the server"
    )]
    LoadedBefore {
        /// The application's name.
        app: String,
    },
    /// The application has been stopped.
    #[error("app `{app}` has been stopped")]
    Stopped {
        /// The application's name.
        app: String,
    },
}

impl AppError {
    pub(crate) fn no_interpreter(config: &AppConfig, program: &OsStr) -> Self {
        AppError::NoInterpreter {
            app: config.name.clone(),
            language: config.code.language(),
            program: program.to_string_lossy().into_owned(),
        }
    }

    pub(crate) fn system(app: &str, what: impl Into<String>, error: &io::Error) -> Self {
        AppError::System { app: app.to_owned(), what: what.into(), reason: error.to_string() }
    }
}

fn missing_interpreter(language: Language, program: &str) -> String {
    let is_path = program.contains('/');
    match language {
        Language::Ruby if program == "ruby" => {
            "there is no `ruby` in PATH; install it (`apt-get install ruby`)".into()
        }
        _ if !is_path => format!("there is no `{program}` in PATH; install it"),
        Language::Perl | Language::Ruby => format!("there is no {program}"),
        Language::Other => format!(
            "{program} cannot be run: there is no such program, or the first line of this one \
             names one that is not there"
        ),
        Language::Python => format!(
            "there is no {program}; make the virtual environment again, or name another one in \
             VIRTUAL_ENV"
        ),
    }
}

fn missing_adapter(language: Language, searched: &str) -> String {
    let (name, module) = match language {
        Language::Other => return "no adapter is named that can load it".into(),
        Language::Perl => ("Perl", "Kirin::AppParent in Perl's @INC"),
        Language::Python => ("Python", "`kirin` among the modules of this Python"),
        Language::Ruby => ("Ruby", "`kirin` among the gems of this Ruby"),
    };
    format!(
        "the {name} adapter was not found in {searched}, nor is {module}; install the package of \
         Kirin whole"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_ruby_is_named_with_what_to_do() {
        for (language, program, message) in [
            (Language::Perl, "perl", "there is no `perl` in PATH; install it"),
            (
                Language::Ruby,
                "ruby",
                "there is no `ruby` in PATH; install it (`apt-get install ruby`)",
            ),
            (Language::Ruby, "ruby3.4", "there is no `ruby3.4` in PATH; install it"),
            (Language::Ruby, "/opt/ruby", "there is no /opt/ruby"),
            (Language::Other, "node", "there is no `node` in PATH; install it"),
        ] {
            assert_eq!(missing_interpreter(language, program), message);
        }
    }
}
