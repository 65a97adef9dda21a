//! Debian's redis-server, as the engine behind the stores of several Kirins, or as a Sentinel.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{LeasedPort, wait_for, wait_limit};

/// What all servers are started with.
const SERVER_ARGUMENTS: [&str; 6] =
    ["--save", "", "--appendonly", "no", "--enable-debug-command", "local"];

/// The configuration of a Sentinel, which it writes again itself.
const SENTINEL_FILE: &str = "sentinel.conf";

/// A redis-server that keeps nothing on disk, or a Sentinel. It is killed when it is dropped.
pub struct RedisServer {
    child: Child,
    program: RedisProgram,
    arguments: Vec<String>,
    directory: TempDir,
    lease: LeasedPort,
}

#[derive(Clone, Copy)]
enum RedisProgram {
    Server,
    Sentinel,
}

impl RedisServer {
    /// Starts a server on a free port of 127.0.0.1, and waits until it answers.
    ///
    /// # Panics
    /// Panics if it does not. The message has its log.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with more arguments, such as `["--maxmemory", "8mb"]`.
    ///
    /// # Panics
    /// Panics as [`RedisServer::start`] does.
    pub fn start_with(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self::start_program(RedisProgram::Server, arguments, directory)
    }

    /// Starts a Sentinel with these lines of its configuration, such as
    /// `sentinel monitor main 127.0.0.1 6379 2`. Restarted, it goes on with what it has learned.
    ///
    /// # Panics
    /// Panics as [`RedisServer::start`] does.
    pub fn start_sentinel(configuration: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join(SENTINEL_FILE);
        std::fs::write(file, configuration).expect("a file");
        Self::start_program(RedisProgram::Sentinel, &[], directory)
    }

    fn start_program(program: RedisProgram, arguments: &[&str], directory: TempDir) -> Self {
        let lease = LeasedPort::lease();
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let child = spawn(program, &directory, &lease, &arguments);
        let mut server = Self { child, program, arguments, directory, lease };
        server.wait_until_it_answers();
        server
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.lease.address()
    }

    /// Returns the port of the server.
    pub fn port(&self) -> u16 {
        self.lease.number()
    }

    /// Kills the server. Its connections end, and nobody listens on its port.
    pub fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Starts the server again on the same port, without any key. Kills it first if it runs.
    ///
    /// # Panics
    /// Panics as [`RedisServer::start`] does.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.program, &self.directory, &self.lease, &self.arguments);
        self.wait_until_it_answers();
    }

    /// Stops the process. The kernel still accepts connections and bytes, but no answer comes.
    ///
    /// # Panics
    /// Panics if the server has been killed.
    pub fn pause(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).expect("it is there");
    }

    /// Lets a paused server go on.
    ///
    /// # Panics
    /// Panics if the server has been killed.
    pub fn resume(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).expect("it is there");
    }

    /// Sends a command over a new connection, and returns the reply as text.
    ///
    /// An error begins with `-`. A null is `(nil)`. The elements of an array are lines.
    ///
    /// # Panics
    /// Panics if no reply comes.
    pub fn command(&self, words: &[&str]) -> String {
        let reply = self.try_command(words);
        reply.unwrap_or_else(|error| panic!("{words:?}: {error}; log:\n{}", self.log()))
    }

    /// Returns the log of the server.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    fn wait_until_it_answers(&mut self) {
        wait_for("redis-server to answer", || {
            if let Some(status) = self.child.try_wait().expect("wait") {
                panic!("redis-server ended with {status}:\n{}", self.log());
            }
            // With a password the answer is an error, but it serves.
            self.try_command(&["PING"]).ok().filter(|reply| !reply.starts_with("-LOADING"))
        });
    }

    /// Does the same as [`RedisServer::command`] with a server that may not answer.
    ///
    /// # Errors
    /// Fails if no reply comes.
    pub fn try_command(&self, words: &[&str]) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.address())?;
        stream.set_read_timeout(Some(wait_limit()))?;
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        stream.write_all(request.as_bytes())?;
        read_reply(&mut BufReader::new(stream))
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts the program. A server reads no configuration file, so all that counts is here.
fn spawn(
    program: RedisProgram,
    directory: &TempDir,
    lease: &LeasedPort,
    arguments: &[String],
) -> Child {
    let log = File::options().create(true).append(true).open(directory.path().join("log"));
    let log = log.expect("a file");
    let (name, own): (_, &[&str]) = match program {
        RedisProgram::Server => ("redis-server", &SERVER_ARGUMENTS),
        RedisProgram::Sentinel => ("redis-sentinel", &[SENTINEL_FILE]),
    };
    Command::new(name)
        .args(own)
        .args(["--bind", "127.0.0.1", "--port", &lease.number().to_string()])
        .args(arguments)
        .current_dir(directory.path())
        .stdout(log.try_clone().expect("a descriptor"))
        .stderr(log)
        .spawn()
        .unwrap_or_else(|error| panic!("{name} (the package of this name): {error}"))
}

/// Reads one reply in the second version of the protocol.
fn read_reply(input: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let line = line.trim_end();
    let Some((kind, text)) = line.split_at_checked(1) else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    match (kind, text) {
        ("+" | ":", _) => Ok(text.to_owned()),
        ("-", _) => Ok(line.to_owned()),
        ("$" | "*", "-1") => Ok("(nil)".to_owned()),
        ("$", _) => {
            let mut value = vec![0; length(text)? + 2];
            input.read_exact(&mut value)?;
            value.truncate(value.len() - 2);
            Ok(String::from_utf8_lossy(&value).into_owned())
        }
        ("*", _) => {
            let parts: io::Result<Vec<_>> =
                (0..length(text)?).map(|_| read_reply(&mut *input)).collect();
            Ok(parts?.join("\n"))
        }
        _ => Err(io::Error::other(format!("an unknown reply: {line}"))),
    }
}

/// Returns the length of a string or an array.
fn length(text: &str) -> io::Result<usize> {
    text.parse().map_err(|_| io::Error::other(format!("no length: {text}")))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::Duration;

    use super::*;

    #[test]
    fn commands_return_each_kind_of_reply() {
        let server = RedisServer::start();
        assert_eq!(server.command(&["PING"]), "PONG");
        assert_eq!(server.command(&["GET", "a"]), "(nil)");
        assert_eq!(server.command(&["SET", "a", "one\r\ntwo"]), "OK");
        assert_eq!(server.command(&["GET", "a"]), "one\r\ntwo");
        assert_eq!(server.command(&["DBSIZE"]), "1");
        assert_eq!(server.command(&["MGET", "a", "b"]), "one\r\ntwo\n(nil)");
        assert_eq!(server.command(&["DEBUG", "SLEEP", "0"]), "OK");
        let reply = server.command(&["NONE"]);
        assert!(reply.starts_with("-ERR unknown command"), "{reply}");
    }

    #[test]
    fn a_restarted_server_is_empty_on_the_same_port() {
        let mut server = RedisServer::start_with(&["--maxmemory", "8mb"]);
        let address = server.address();
        server.command(&["SET", "a", "1"]);
        server.kill();
        assert!(TcpStream::connect(address).is_err(), "somebody listens on {address}");
        server.restart();
        assert_eq!(server.address(), address);
        assert_eq!(server.command(&["DBSIZE"]), "0");
        assert_eq!(server.command(&["CONFIG", "GET", "maxmemory"]), "maxmemory\n8388608");
    }

    #[test]
    fn a_paused_server_accepts_but_answers_only_when_resumed() {
        let server = RedisServer::start();
        server.pause();
        let mut stream = TcpStream::connect(server.address()).expect("the kernel accepts");
        stream.write_all(b"PING\r\n").expect("the kernel takes it");
        stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
        let mut reply = [0; 7];
        assert!(stream.read(&mut reply).is_err(), "{}", reply.escape_ascii());
        server.resume();
        stream.set_read_timeout(Some(wait_limit())).expect("a timeout");
        stream.read_exact(&mut reply).expect("a reply");
        assert_eq!(&reply, b"+PONG\r\n");
    }
}
