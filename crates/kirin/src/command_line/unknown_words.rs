//! What the command line says to somebody who brings the words of another program.

use std::path::Path;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use super::CommandLine;

/// Commands of other programs, and what Kirin has for them.
const COMMANDS: [(&[&str], &str); 4] = [
    (&["start", "run", "server", "up"], "`kirin serve` starts a server"),
    (
        &["stop", "quit", "down", "shutdown"],
        "a signal ends a server: `kill PID`, or `systemctl stop kirin`; `kirin status` has the PID",
    ),
    (
        &["restart", "graceful"],
        "`kirin reload --apps` reads the configuration again and loads the applications again, \
         without losing a request",
    ),
    (&["test", "configtest", "validate", "lint"], "`kirin check` checks a configuration"),
];

/// Options of other programs, and what Kirin has for them.
const OPTIONS: [(&[&str], &str); 7] = [
    (
        &["--bind", "-b", "--address", "--addr"],
        "`--listen` says where: `kirin serve --listen 8080 app.psgi`",
    ),
    (
        &["-I", "--include"],
        "perl looks for modules in PERL5LIB, too: `PERL5LIB=lib kirin serve app.psgi`; in a file it \
         is `env` of the [[app]]",
    ),
    (
        &["-E", "--env"],
        "`PLACK_ENV=deployment kirin serve app.psgi`, `RACK_ENV=development kirin serve config.ru`; in a \
         file it is `env` of the [[app]]",
    ),
    (&["-r", "-R", "--reload"], "`kirin reload --apps` loads a changed application again"),
    (&["-s", "--server"], "Kirin is the server: `kirin serve app.psgi`"),
    (
        &["--daemonize", "--daemon", "--background", "-D", "-d"],
        "a server stays in the foreground, under systemd or the like; `--pid-file` names it",
    ),
    (&["--app", "-a"], "the application has no option: `kirin serve app.psgi`"),
];

/// Options of `kirin serve`, which some write without the command.
const OF_SERVE: [&str; 10] =
    ["--port", "-p", "--listen", "-l", "--host", "-o", "--workers", "-w", "--config", "-c"];

/// Adds what Kirin has for an unknown command or option.
pub fn explain(mut error: clap::Error) -> clap::Error {
    suggest_no_hidden_command(&mut error);
    let (kind, known) = match error.kind() {
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, &COMMANDS[..]),
        ErrorKind::UnknownArgument if is_about_serving(&error) => {
            (ContextKind::InvalidArg, &OPTIONS[..])
        }
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, &[][..]),
        _ => return error,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return error };
    let is_without_command = usage_of(&error).contains("kirin <COMMAND>");
    let tip = match is_without_command && OF_SERVE.contains(&word.as_str()) {
        true => Some(format!("`{word}` is an option of `kirin serve`, and comes after that")),
        false => tip(word, known),
    };
    if let Some(tip) = tip {
        let tips = vec![StyledStr::from(tip)];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        // These would be shown instead.
        for other in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg] {
            error.remove(other);
        }
    }
    error
}

/// Takes away suggestions of commands that are not for people.
fn suggest_no_hidden_command(error: &mut clap::Error) {
    let suggested = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::String(name)) => vec![name.clone()],
        Some(ContextValue::Strings(names)) => names.clone(),
        _ => return,
    };
    let all = CommandLine::command();
    let is_hidden = |name: &str| all.find_subcommand(name).is_some_and(Command::is_hide_set);
    let known: Vec<_> = suggested.into_iter().filter(|name| !is_hidden(name)).collect();
    error.remove(ContextKind::SuggestedSubcommand);
    match known.is_empty() {
        true => {
            let tip = StyledStr::from("`kirin help` lists the commands");
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        }
        false => {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(known));
        }
    }
}

/// Returns whether the command is `serve`, or missing.
fn is_about_serving(error: &clap::Error) -> bool {
    let usage = usage_of(error);
    ["kirin serve", "kirin <COMMAND>"].iter().any(|command| usage.contains(command))
}

fn usage_of(error: &clap::Error) -> String {
    error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default()
}

fn tip(word: &str, known: &[(&[&str], &str)]) -> Option<String> {
    if let Some((_, tip)) = known.iter().find(|(words, _)| words.contains(&word)) {
        return Some((*tip).to_owned());
    }
    if word.ends_with(".toml") && !word.starts_with('-') {
        return Some(format!("a configuration file is named by an option: `--config {word}`"));
    }
    if known.is_empty() || word.starts_with('-') {
        return None;
    }
    let is_target = word.contains("://")
        || word.ends_with(".psgi")
        || word.ends_with(".ru")
        || Path::new(word).exists();
    is_target.then(|| format!("to serve it: `kirin serve {word}`"))
}
