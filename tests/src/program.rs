//! The program under test as a child process.

use std::fmt::from_fn;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Client, Reply, Site, wait_for};

/// The warning at the start that depends on the machine.
pub const LITTLE_SPACE: &str = "WARN less space than `limits.client_disk`";

/// The message about a panic in the log.
const PANICKED: &str = "a mistake in Kirin ended a task";

/// A running Kirin. It is killed when it is dropped.
pub struct Kirin {
    child: Child,
    log: Arc<Mutex<Vec<u8>>>,
    address: SocketAddr,
}

impl Kirin {
    /// Starts with `config` as kirin.toml in `site`, and waits until it serves. The first listener
    /// must be TCP.
    ///
    /// # Panics
    /// Panics if it does not serve in time. The message has its log.
    pub fn start(site: &Site, config: &str) -> Self {
        std::fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
        let file = site.path("kirin.toml");
        Self::start_with(site, &["serve", "--config", file.to_str().expect("UTF-8")])
    }

    /// Starts with a command line, in the directory of `site`.
    ///
    /// # Panics
    /// Panics as [`Kirin::start`] does.
    pub fn start_with(site: &Site, arguments: &[&str]) -> Self {
        Self::start_command(kirin_command(site).args(arguments))
    }

    /// Starts a prepared command.
    ///
    /// # Panics
    /// Panics as [`Kirin::start`] does.
    pub fn start_command(command: &mut Command) -> Self {
        let mut kirin = Self::spawn_command(command);
        kirin.address = wait_for("kirin to serve", || {
            let log = kirin.log();
            if let Some(status) = kirin.child.try_wait().expect("wait") {
                panic!("kirin ended with {status}:\n{}", kirin.log());
            }
            nth_address(&log, 0)
        });
        kirin
    }

    /// Starts with a command line and does not wait until it serves.
    ///
    /// # Panics
    /// Panics if there is no program.
    pub fn spawn(site: &Site, arguments: &[&str]) -> Self {
        Self::spawn_command(kirin_command(site).args(arguments))
    }

    /// Starts a prepared command and does not wait until it serves.
    ///
    /// # Panics
    /// Panics if there is no program.
    pub fn spawn_command(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("kirin starts");
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut stderr = child.stderr.take().expect("stderr");
        let lines = Arc::clone(&log);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut buffer) {
                lines.lock().expect("log").extend_from_slice(&buffer[..count]);
            }
        });
        Self { child, log, address: SocketAddr::from(([127, 0, 0, 1], 0)) }
    }

    /// Returns the address of the first listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the listener with this number, from 0 in the order of the
    /// configuration. All must be TCP.
    pub fn address_of(&self, listener: usize) -> SocketAddr {
        wait_for("a listener's address", || nth_address(&self.log(), listener))
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the process ids of its applications' workers, found by the titles of processes.
    ///
    /// # Panics
    /// Panics if there is no `ps`.
    pub fn worker_pids(&self) -> Vec<String> {
        let list = |arguments: &[&str]| {
            let output = Command::new("ps").args(arguments).output().expect("ps");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let mut workers = Vec::new();
        for parent in list(&["-o", "pid=", "--ppid", &self.pid().to_string()]).split_whitespace() {
            for line in list(&["-o", "pid=,stat=,args=", "--ppid", parent]).lines() {
                let mut fields = line.split_whitespace();
                if let (Some(pid), Some(state)) = (fields.next(), fields.next())
                    && !state.starts_with('Z')
                    && line.contains("worker")
                {
                    workers.push(pid.to_owned());
                }
            }
        }
        workers
    }

    /// Returns its log so far, without the warning that this machine has little space for temporary
    /// files.
    pub fn log(&self) -> String {
        let whole = self.whole_log();
        whole.split_inclusive('\n').filter(|line| !line.contains(LITTLE_SPACE)).collect()
    }

    /// Returns its log so far.
    pub fn whole_log(&self) -> String {
        String::from_utf8_lossy(&self.log.lock().expect("log")).into_owned()
    }

    /// Waits until the log has `text`.
    pub fn wait_for_log(&self, text: &str) {
        let missing = from_fn(|output| write!(output, "`{text}` in the log:\n{}", self.log()));
        wait_for(&missing, || self.log().contains(text).then_some(()));
    }

    /// Waits until no event loop accepts connections. The log says that the program stops before
    /// each loop knows it.
    pub fn wait_until_draining(&self) {
        wait_for("the listener to be closed", || {
            TcpStream::connect(self.address).is_err().then_some(())
        });
    }

    /// Opens a connection.
    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Sends one GET on its own connection.
    pub fn get(&self, target: &str) -> Reply {
        self.connect().get(target)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("kill");
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        wait_for("kirin to end", || self.child.try_wait().expect("wait"))
    }
}

impl Drop for Kirin {
    /// Ends the program.
    ///
    /// # Panics
    /// Panics if the program has panicked, as it does by an assertion that fails. That ends a task
    /// of the program only, and the test may have seen nothing of it.
    fn drop(&mut self) {
        self.end();
        let log = self.whole_log();
        assert!(std::thread::panicking() || !log.contains(PANICKED), "{log}");
    }
}

impl Kirin {
    fn end(&mut self) {
        // It gets a signal first, so that its workers end with it.
        if let Ok(None) = self.child.try_wait() {
            self.signal(Signal::INT);
            for _ in 0..300 {
                if let Ok(Some(_)) = self.child.try_wait() {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the address in the line `serving on http://ADDRESS/` with this number.
fn nth_address(log: &str, number: usize) -> Option<SocketAddr> {
    let (_, url) = log.split("serving on ").nth(number + 1)?.split_once("://")?;
    url.split_once('/')?.0.parse().ok()
}

/// Runs the program to its end.
///
/// # Panics
/// Panics if it cannot be started.
pub fn run_kirin(site: &Site, arguments: &[&str]) -> Output {
    kirin_command(site).args(arguments).output().expect("kirin runs")
}

/// Returns the command of the program in the directory of `site`.
pub fn kirin_command(site: &Site) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(site.root()).env_remove("KIRIN_LOG");
    command.env("KIRIN_ADMIN_DIRECTORY", site.admin_directory());
    command
}

/// Runs a Perl test in `directory` of the repository, with the built program.
///
/// # Panics
/// Panics if it fails, or is skipped.
pub fn prove(directory: &str, test: &str) {
    let output = Command::new("prove")
        .args(["-lv", test])
        .current_dir(repository().join(directory))
        .env("KIRIN_BINARY", binary())
        .output()
        .expect("prove is part of Perl");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("Result: PASS"), "the tests were skipped: {text}");
}

/// Returns the program under test: the value of `KIRIN_BINARY`, or the one that cargo has built for
/// the test that runs, or `target/debug/kirin`.
///
/// # Panics
/// Panics if it is not built.
pub fn binary() -> PathBuf {
    // Cargo sets the second one where it runs the tests of the package `kirin`.
    let named = ["KIRIN_BINARY", "CARGO_BIN_EXE_kirin"].into_iter().find_map(std::env::var_os);
    let binary = named.map_or_else(|| repository().join("target/debug/kirin"), PathBuf::from);
    assert!(
        binary.exists(),
        "{} is not built: run `make test`, or `cargo build -p kirin`",
        binary.display()
    );
    binary
}

/// Returns the root of the sources.
pub fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
