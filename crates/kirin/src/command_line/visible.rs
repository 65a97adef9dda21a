//! The commands that people use: their completions in a shell, and their manual pages.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use super::CommandLine;

/// Returns the command line without the commands that only Kirin itself uses.
fn visible() -> Command {
    let all = CommandLine::command();
    let commands: Vec<_> =
        all.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let about = all.get_about().cloned().unwrap_or_default();
    let after_help = all.get_after_help().cloned().unwrap_or_default();
    Command::new("kirin")
        .version(env!("CARGO_PKG_VERSION"))
        .about(about)
        .after_help(after_help)
        .subcommand_required(true)
        .subcommands(commands)
}

/// Returns the script that completes command lines in a shell.
pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(), "kirin", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Writes a manual page for each command into a directory.
pub fn write_manual(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(visible(), directory)
}
