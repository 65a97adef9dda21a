//! Finds the Perl adapter, which is Kirin's other half in the worker process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::config::AppConfig;
use crate::error::AppError;

/// The command that starts an app parent, without its own options.
#[derive(Debug)]
pub(crate) struct Adapter {
    pub(crate) perl: OsString,
    pub(crate) arguments: Vec<OsString>,
}

impl Adapter {
    /// Returns the adapter that `config` names. Otherwise, returns the first one found: beside the
    /// program, in its source tree, or in Perl's `@INC`.
    pub(crate) fn find(config: &AppConfig) -> Result<Self, AppError> {
        let perl =
            config.perl.clone().map_or_else(|| OsString::from("perl"), PathBuf::into_os_string);
        let candidates = match &config.adapter {
            Some(directory) => vec![directory.clone()],
            None => std::env::current_exe().map(|program| beside(&program)).unwrap_or_default(),
        };
        if let Some(directory) =
            candidates.iter().find(|directory| directory.join("bin/kirin-worker").is_file())
        {
            let directory = directory.canonicalize().unwrap_or_else(|_| directory.clone());
            let mut include = OsString::from("-I");
            include.push(directory.join("lib"));
            let arguments = vec![include, directory.join("bin/kirin-worker").into_os_string()];
            return Ok(Self { perl, arguments });
        }
        if config.adapter.is_none() && is_installed(config, &perl)? {
            let arguments =
                ["-MKirin::AppParent", "-e", "exit Kirin::AppParent->main(@ARGV)", "--"];
            return Ok(Self { perl, arguments: arguments.map(OsString::from).to_vec() });
        }
        let searched: Vec<String> =
            candidates.iter().map(|path| path.display().to_string()).collect();
        Err(AppError::NoAdapter { app: config.name.clone(), searched: searched.join(", ") })
    }
}

/// Returns the directories to search: `PREFIX/share/kirin/adapters/perl` for `PREFIX/bin/kirin`,
/// and `adapters/perl` in a directory above the program. The second finds the source tree from
/// `target/release/kirin`, and from tests, which are one directory deeper.
fn beside(program: &Path) -> Vec<PathBuf> {
    let mut candidates = Vec::new();
    if let Some(prefix) = program.ancestors().nth(2) {
        candidates.push(prefix.join("share/kirin/adapters/perl"));
    }
    candidates.extend(
        program.ancestors().skip(1).take(4).map(|directory| directory.join("adapters/perl")),
    );
    candidates
}

fn is_installed(config: &AppConfig, perl: &OsString) -> Result<bool, AppError> {
    let mut command = Command::new(perl);
    command
        .args(["-MKirin::AppParent", "-e1"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match command.status() {
        Ok(status) => Ok(status.success()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(AppError::NoPerl {
            app: config.name.clone(),
            perl: perl.to_string_lossy().into_owned(),
        }),
        Err(error) => Err(AppError::system(&config.name, "cannot run perl", &error)),
    }
}
