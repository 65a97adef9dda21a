//! `kirin init`: writes a `kirin.toml` for what a project has.

use std::path::{Path, PathBuf};

use clap::Args;
use kirin_config::DEFAULT_FILE;
use kirin_console::print;

use crate::life::program_log;
use crate::new_file;

/// The arguments of `kirin init`.
#[derive(Args)]
pub struct Init {
    /// The directory of the project
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// Print the configuration instead of writing it
    #[arg(long)]
    print: bool,
}

/// Writes the configuration, and says what was found. The error is for the operator.
pub fn run(arguments: &Init) -> Result<(), String> {
    let Init { directory, print: is_printed } = arguments;
    let found = kirin_init::find(directory).map_err(|error| error.to_string())?;
    let config = kirin_init::config(&found);
    let file = directory.join(DEFAULT_FILE);
    let serve = match directory.as_path() == Path::new(".") {
        true => "kirin serve".to_owned(),
        false => format!("kirin serve --config {}", file.display()),
    };
    if *is_printed {
        program_log::print_line(found.report(&serve).trim_end());
        return print(&config);
    }
    new_file::write(&file, &config, "`kirin init --print` prints what it would be")?;
    print(&format!("{} is written\n{}", file.display(), found.report(&serve)))
}
