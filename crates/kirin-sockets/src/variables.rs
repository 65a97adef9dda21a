//! The variables in which starters name descriptors.
//!
//! | variable | of | form |
//! |---|---|---|
//! | `KIRIN_LISTENERS` | a Kirin that upgrades itself, `Plack::Handler::Kirin` | as the next |
//! | `SERVER_STARTER_PORT` | Server::Starter, `start_server` | `host:port=fd`, `port=fd` or `/path=fd`, with `;` between |
//! | `LISTEN_FDS`, `LISTEN_PID`, `LISTEN_FDNAMES` | systemd, sd_listen_fds(3) | how many from 3 on; for whom; names with `:` between |
//! | `KIRIN_PREDECESSOR` | a Kirin that upgrades itself | the numbers of three sockets with `:` between: the channel, the store, connections |
//! | `KIRIN_DATAGRAMS` | a Kirin that upgrades itself | for each UDP address, with `;` between: the numbers of a link to that Kirin and of the UDP sockets, with `:` between |
//! | `NOTIFY_SOCKET` | systemd, sd_notify(3) | path, or `@` and an abstract name |

use std::ffi::OsString;
use std::os::fd::RawFd;

use crate::{InheritError, NotifySocket};

/// The variable with the sockets of a Kirin that upgrades itself, or of `Plack::Handler::Kirin`.
/// The names in it are addresses of the configuration.
pub const LISTENERS_VARIABLE: &str = "KIRIN_LISTENERS";
/// The variable with the channel to the Kirin that is to be replaced.
pub const PREDECESSOR_VARIABLE: &str = "KIRIN_PREDECESSOR";
/// The variable with the UDP sockets of a Kirin that upgrades itself.
pub const DATAGRAMS_VARIABLE: &str = "KIRIN_DATAGRAMS";
const STARTER: &str = "SERVER_STARTER_PORT";
const COUNT: &str = "LISTEN_FDS";
const PID: &str = "LISTEN_PID";
const NAMES: &str = "LISTEN_FDNAMES";
const NOTIFY: &str = "NOTIFY_SOCKET";

/// The variables that no child process may see.
pub(crate) const ALL: [&str; 8] = [
    LISTENERS_VARIABLE,
    PREDECESSOR_VARIABLE,
    DATAGRAMS_VARIABLE,
    STARTER,
    COUNT,
    PID,
    NAMES,
    NOTIFY,
];

/// The first descriptor of systemd (SD_LISTEN_FDS_START).
const FIRST: RawFd = 3;

/// The most sockets that a starter may hand over.
const MOST: RawFd = 1024;

/// A program that hands sockets over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starter {
    /// A Kirin, or a program that has become this one.
    Kirin,
    /// `start_server`.
    ServerStarter,
    /// systemd.
    Systemd,
}

impl Starter {
    /// Returns the name of the variable with the descriptors.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::Kirin => LISTENERS_VARIABLE,
            Self::ServerStarter => STARTER,
            Self::Systemd => COUNT,
        }
    }
}

impl std::fmt::Display for Starter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Kirin => "kirin",
            Self::ServerStarter => "start_server",
            Self::Systemd => "systemd",
        })
    }
}

/// Descriptors with their names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) starter: Starter,
    pub(crate) descriptors: Vec<(RawFd, String)>,
}

/// The values of all variables.
#[derive(Debug)]
pub(crate) struct Variables {
    pub(crate) given: Option<Given>,
    /// The channel, and the sockets of the store and of connections.
    pub(crate) predecessor: Option<[RawFd; 3]>,
    /// For each UDP address, the link and the sockets.
    pub(crate) datagrams: Vec<(RawFd, Vec<RawFd>)>,
    pub(crate) notify: Option<NotifySocket>,
}

impl Variables {
    /// Parses the variables. `pid` is the id of this process.
    pub(crate) fn read(
        get: impl Fn(&str) -> Option<OsString>,
        pid: u32,
    ) -> Result<Self, InheritError> {
        let text = |name| {
            get(name)
                .filter(|value| !value.is_empty())
                .map(|value| value.to_string_lossy().into_owned())
        };
        let given = if let Some(value) = text(LISTENERS_VARIABLE) {
            Some(Given { starter: Starter::Kirin, descriptors: list(LISTENERS_VARIABLE, &value)? })
        } else if let Some(value) = text(STARTER) {
            Some(Given { starter: Starter::ServerStarter, descriptors: list(STARTER, &value)? })
        } else {
            systemd(text(COUNT), text(PID), text(NAMES), pid)?
        };
        let predecessor = match text(PREDECESSOR_VARIABLE) {
            None => None,
            Some(value) => Some(three(&value).ok_or(InheritError::Variable {
                name: PREDECESSOR_VARIABLE,
                value,
                expected: "the numbers of three descriptors, with `:` between",
            })?),
        };
        let datagrams = match text(DATAGRAMS_VARIABLE) {
            None => Vec::new(),
            Some(value) => datagram_sockets(&value).ok_or(InheritError::Variable {
                name: DATAGRAMS_VARIABLE,
                value,
                expected: "LINK:SOCKET with `:` between several sockets and `;` between addresses",
            })?,
        };
        Ok(Self { given, predecessor, datagrams, notify: get(NOTIFY).and_then(NotifySocket::new) })
    }
}

/// Parses `NAME=FD;NAME=FD`. A path may contain `=`.
fn list(name: &'static str, value: &str) -> Result<Vec<(RawFd, String)>, InheritError> {
    let descriptors: Option<Vec<_>> = value
        .split(';')
        .map(|entry| {
            let (address, descriptor) = entry.rsplit_once('=')?;
            Some((number(descriptor)?, address.to_owned()))
        })
        .collect();
    descriptors.ok_or_else(|| InheritError::Variable {
        name,
        value: value.to_owned(),
        expected: "ADDRESS=DESCRIPTOR, with `;` between several",
    })
}

/// Parses systemd's variables. They are ignored if they are for another process: a process in
/// between has not removed them.
fn systemd(
    count: Option<String>,
    for_pid: Option<String>,
    names: Option<String>,
    pid: u32,
) -> Result<Option<Given>, InheritError> {
    let (Some(count), Some(for_pid)) = (count, for_pid) else { return Ok(None) };
    if for_pid.parse() != Ok(pid) {
        return Ok(None);
    }
    let wrong = |value: String| InheritError::Variable {
        name: COUNT,
        value,
        expected: "a number of descriptors",
    };
    let Some(number @ 1..) = number(&count).filter(|number| *number <= MOST) else {
        return Err(wrong(count));
    };
    let mut names = names.as_deref().unwrap_or_default().split(':');
    let descriptors = (FIRST..FIRST + number).map(|descriptor| {
        let name = names.next().filter(|name| !name.is_empty()).unwrap_or("unknown");
        (descriptor, name.to_owned())
    });
    Ok(Some(Given { starter: Starter::Systemd, descriptors: descriptors.collect() }))
}

fn three(text: &str) -> Option<[RawFd; 3]> {
    let numbers: Option<Vec<RawFd>> = text.split(':').map(number).collect();
    numbers?.try_into().ok()
}

fn datagram_sockets(text: &str) -> Option<Vec<(RawFd, Vec<RawFd>)>> {
    let address = |entry: &str| {
        let numbers: Option<Vec<RawFd>> = entry.split(':').map(number).collect();
        let (link, sockets) = numbers.as_deref()?.split_first()?;
        (!sockets.is_empty()).then(|| (*link, sockets.to_vec()))
    };
    text.split(';').map(address).collect()
}

fn number(text: &str) -> Option<RawFd> {
    text.parse().ok().filter(|number| *number >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Variables, String> {
        let get = |wanted: &str| {
            variables
                .iter()
                .find(|(name, _)| *name == wanted)
                .map(|(_, value)| OsString::from(value))
        };
        Variables::read(get, 77).map_err(|error| error.to_string())
    }

    fn given(variables: &[(&str, &str)]) -> Option<Given> {
        read(variables).unwrap().given
    }

    fn descriptors(starter: Starter, list: &[(RawFd, &str)]) -> Option<Given> {
        let descriptors = list.iter().map(|(number, name)| (*number, (*name).to_owned())).collect();
        Some(Given { starter, descriptors })
    }

    #[test]
    fn every_form_that_start_server_writes_is_read() {
        for (value, expected) in [
            ("8080=4", vec![(4, "8080")]),
            ("127.0.0.1:8080=4", vec![(4, "127.0.0.1:8080")]),
            ("[::1]:8080=5;/tmp/a b=c.sock=6", vec![(5, "[::1]:8080"), (6, "/tmp/a b=c.sock")]),
        ] {
            assert_eq!(
                given(&[(STARTER, value)]),
                descriptors(Starter::ServerStarter, &expected),
                "{value}"
            );
        }
    }

    #[test]
    fn systemd_s_descriptors_are_counted_from_3_and_have_names() {
        let variables = [(COUNT, "3"), (PID, "77"), (NAMES, "web::admin")];
        let expected = [(3, "web"), (4, "unknown"), (5, "admin")];
        assert_eq!(given(&variables), descriptors(Starter::Systemd, &expected));
        assert_eq!(given(&variables[..2]).unwrap().descriptors.len(), 3);
    }

    #[test]
    fn sockets_for_another_process_are_not_taken() {
        assert_eq!(given(&[(COUNT, "1"), (PID, "78")]), None);
        assert_eq!(given(&[(COUNT, "1")]), None);
        assert_eq!(given(&[(STARTER, "")]), None);
    }

    #[test]
    fn kirin_s_own_variable_goes_before_those_it_was_started_with() {
        let variables =
            [(STARTER, "80=4"), (LISTENERS_VARIABLE, "127.0.0.1:0=9"), (COUNT, "1"), (PID, "77")];
        assert_eq!(given(&variables), descriptors(Starter::Kirin, &[(9, "127.0.0.1:0")]));
    }

    #[test]
    fn the_udp_sockets_of_an_address_come_with_their_link() {
        let datagrams = read(&[(DATAGRAMS_VARIABLE, "7:8:9;10:11")]).unwrap().datagrams;
        assert_eq!(datagrams, [(7, vec![8, 9]), (10, vec![11])]);
        assert!(read(&[]).unwrap().datagrams.is_empty());
    }

    #[test]
    fn an_error_names_the_malformed_variable() {
        for variables in [
            vec![(STARTER, "8080")],
            vec![(STARTER, "8080=x")],
            vec![(STARTER, "8080=-1")],
            vec![(STARTER, "8080=4;")],
            vec![(COUNT, "0"), (PID, "77")],
            vec![(COUNT, "99999999999"), (PID, "77")],
            vec![(COUNT, "1025"), (PID, "77")],
            vec![(PREDECESSOR_VARIABLE, "?")],
            vec![(DATAGRAMS_VARIABLE, "7")],
            vec![(DATAGRAMS_VARIABLE, "7:8;")],
            vec![(DATAGRAMS_VARIABLE, "7:x")],
        ] {
            let (name, value) = variables[0];
            let error = read(&variables).expect_err(value);
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }
}
