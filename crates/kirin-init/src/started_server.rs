//! A server that a command starts, and the port on which it serves.

use crate::command_port::{NamedPort, default_port, named_port, with_port};

/// The port for a command that takes any port from `PORT`.
const CHOSEN_PORT: u16 = 3000;

/// A server as its command starts it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StartedServer {
    pub port: u16,
    /// Whether neither the command nor its program says the port.
    pub is_guess: bool,
    /// The command for a shell.
    pub command: String,
    /// How the port follows from the command, if the command does not name it.
    pub remark: Option<String>,
}

impl StartedServer {
    /// Finds the port on which a command serves. If the command takes the port from the variable
    /// `PORT`, the result sets it.
    pub(crate) fn from_command(command: &str) -> Self {
        match named_port(command) {
            NamedPort::Number(port) => {
                Self { port, is_guess: false, command: command.into(), remark: None }
            }
            NamedPort::Variable => Self {
                port: CHOSEN_PORT,
                is_guess: false,
                command: format!("PORT={CHOSEN_PORT} {}", with_port(command, CHOSEN_PORT)),
                remark: Some(format!("takes any port from PORT: {CHOSEN_PORT} is used")),
            },
            NamedPort::None => Self::without_port(command),
        }
    }

    fn without_port(command: &str) -> Self {
        match default_port(command) {
            Some(port) => Self {
                port,
                is_guess: false,
                command: command.into(),
                remark: Some(format!("names no port: {port} is the default of the program")),
            },
            None => Self {
                port: CHOSEN_PORT,
                is_guess: true,
                command: format!("PORT={CHOSEN_PORT} {command}"),
                remark: Some(format!("names no port: {CHOSEN_PORT} is a guess")),
            },
        }
    }
}
