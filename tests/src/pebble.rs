//! Pebble, Let's Encrypt's certificate authority for tests, with a DNS server in which every name
//! leads to this machine.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{Authority, LeasedPort, wait_for};

/// A running authority. It ends when it is dropped.
///
/// It sends its challenges to ports of this test: http-01 to one, tls-alpn-01 to another. That port
/// leads to Kirin once [`Pebble::look_at`] or [`Pebble::look_at_tls`] has given Kirin's address.
/// Until then it waits, for some seconds at most.
pub struct Pebble {
    directory: TempDir,
    children: Vec<Child>,
    address: SocketAddr,
    management: SocketAddr,
    look_at: Sender<SocketAddr>,
    look_at_tls: Sender<SocketAddr>,
    _leases: [LeasedPort; 4],
}

/// How an authority differs from [`Pebble::start`].
#[derive(Default)]
pub struct PebbleSetup<'a> {
    /// Whether tls-alpn-01 waits for [`Pebble::look_at_tls`]. If not, it fails at once.
    pub looks_at_tls: bool,
    /// The id and the key of its only customer. Without one, everybody gets an account.
    pub customer: Option<(&'a str, &'a str)>,
}

impl Pebble {
    /// Starts an authority that issues certificates for all names except `refused.test`.
    ///
    /// # Panics
    /// Panics if it does not start. Run `tests/install_pebble.sh`.
    pub fn start() -> Self {
        Self::start_with(&PebbleSetup::default())
    }

    /// Starts an authority with other settings.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub fn start_with(setup: &PebbleSetup<'_>) -> Self {
        let (look_at, http_port) = challenge_port();
        let (look_at_tls, tls_port) = challenge_port();
        // Nobody listens on port 1.
        let tls_port = if setup.looks_at_tls { tls_port } else { 1 };
        let customers = setup.customer.map(|(id, key)| {
            format!(
                r#""externalAccountBindingRequired": true, "externalAccountMACKeys": {{"{id}": "{key}"}},"#
            )
        });
        let customers = customers.unwrap_or_default();
        let directory = tempfile::tempdir().expect("a directory");
        let own = Authority::new("Pebble's own");
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).expect("a file")
        };
        let issued = own.issue(&["127.0.0.1"]);
        write("ca.pem", &own.pem());
        write("own.pem", &issued.chain);
        write("own.key", &issued.key);
        let leases = [(); 4].map(|()| LeasedPort::lease());
        let addresses = leases.each_ref().map(LeasedPort::address);
        let [address, management, dns, dns_management] = addresses;
        write(
            "pebble.json",
            &format!(
                r#"{{"pebble": {{"listenAddress": "{address}", "managementListenAddress": "{management}",
                "certificate": "own.pem", "privateKey": "own.key", "httpPort": {http_port}, "tlsPort": {tls_port}, {customers}
                "domainBlocklist": ["refused.test"], "retryAfter": {{"authz": 1, "order": 1}},
                "profiles": {{"default": {{"description": "", "validityPeriod": 7776000}}}}}}}}"#
            ),
        );
        let mut dns_server = Command::new(program("pebble-challtestsrv"));
        dns_server.args([
            "-dnsserver",
            &dns.to_string(),
            "-management",
            &dns_management.to_string(),
        ]);
        dns_server.args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""]);
        dns_server.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""]);
        let mut authority = Command::new(program("pebble"));
        authority.args(["-config", "pebble.json", "-dnsserver", &dns.to_string()]);
        authority.envs([
            ("PEBBLE_VA_NOSLEEP", "1"),
            ("PEBBLE_AUTHZREUSE", "0"),
            ("PEBBLE_WFE_NONCEREJECT", "1"),
        ]);
        let log = std::fs::File::create(directory.path().join("log")).expect("a file");
        let children = [dns_server, authority].map(|mut command| {
            let log = || log.try_clone().expect("a descriptor");
            command.current_dir(directory.path()).stdout(log()).stderr(log());
            command.spawn().expect("a program of pebble's")
        });
        let mut pebble = Self {
            directory,
            children: children.into(),
            address,
            management,
            look_at,
            look_at_tls,
            _leases: leases,
        };
        wait_for("pebble", || {
            let gone =
                pebble.children.iter_mut().any(|child| child.try_wait().expect("wait").is_some());
            assert!(!gone, "a program of pebble's has ended: {}", pebble.log());
            addresses.iter().all(|address| TcpStream::connect(address).is_ok()).then_some(())
        });
        pebble
    }

    /// Returns the address of its ACME directory.
    pub fn url(&self) -> String {
        format!("https://{}/dir", self.address)
    }

    /// Returns the path of the certificate of its directory, for `SSL_CERT_FILE`.
    pub fn own_authority(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// Returns the root of the certificates that it issues, in PEM.
    ///
    /// # Panics
    /// Panics if there is no curl.
    pub fn root(&self) -> String {
        let output = Command::new("curl")
            .args(["-sSf", "--cacert"])
            .arg(self.own_authority())
            .arg(format!("https://{}/roots/0", self.management))
            .output()
            .expect("curl");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Makes it suggest an immediate renewal (RFC 9773) of this certificate, the first of a PEM
    /// text.
    ///
    /// # Panics
    /// Panics if there is no curl.
    pub fn wants_renewal(&self, pem: &str) {
        let window = r#"{"suggestedWindow": {"start": "2020-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z"}}"#;
        let start = pem.find("-----BEGIN CERTIFICATE-----").expect("a certificate");
        let escaped = |text: &str| text.replace('"', "\\\"").replace('\n', "\\n");
        let body = format!(
            r#"{{"certificate": "{}", "ariResponse": "{}"}}"#,
            escaped(&pem[start..]),
            escaped(window)
        );
        let output = Command::new("curl")
            .args(["-sSf", "-d", &body, "--cacert"])
            .arg(self.own_authority())
            .arg(format!("https://{}/set-renewal-info/", self.management))
            .output()
            .expect("curl");
        assert!(
            output.status.success(),
            "{} {}",
            String::from_utf8_lossy(&output.stderr),
            self.log()
        );
    }

    /// Returns its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Returns how many orders it has had.
    pub fn orders(&self) -> usize {
        self.log().matches("orders in the db").count()
    }

    /// Returns how many accounts it has.
    pub fn accounts(&self) -> usize {
        self.log().matches("accounts in memory").count()
    }

    /// Waits until it is about to prove a name, and returns the token of the challenge.
    ///
    /// # Panics
    /// Panics if it is not.
    pub fn wait_for_challenge(&self) -> String {
        wait_for("a challenge", || {
            let log = self.log();
            let (_, path) = log.split_once("/.well-known/acme-challenge/")?;
            let (path, _) = path.split_once('\n')?;
            Some(path.trim().to_owned())
        })
    }

    /// Stops the process. The kernel still accepts connections and bytes, but no answer comes.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a paused authority go on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let authority = self.children.last().expect("the authority");
        kill_process(Pid::from_child(authority), signal).expect("it is there");
    }

    /// Sets the address to which it sends challenges by TLS from now on.
    pub fn look_at_tls(&self, address: SocketAddr) {
        let _ = self.look_at_tls.send(address);
    }

    /// Sets the address to which it sends challenges by HTTP from now on.
    pub fn look_at(&self, address: SocketAddr) {
        let _ = self.look_at.send(address);
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Opens a port for challenges. It leads to the address that is sent.
fn challenge_port() -> (Sender<SocketAddr>, u16) {
    let (look_at, target) = channel();
    let challenges = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = challenges.local_addr().expect("an address").port();
    thread::spawn(move || forward(&challenges, &target));
    (look_at, port)
}

/// Connects clients to the latest address of `target`. The first connections wait for one.
fn forward(listener: &TcpListener, target: &Receiver<SocketAddr>) {
    let mut address = None;
    for client in listener.incoming().flatten() {
        address = target.try_iter().last().or(address).or_else(|| target.recv().ok());
        let Some(server) = address.and_then(|address| TcpStream::connect(address).ok()) else {
            continue;
        };
        for (from, to) in [(&client, &server), (&server, &client)] {
            let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else { continue };
            thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Write);
            });
        }
    }
}

fn program(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/pebble").join(name);
    assert!(path.exists(), "{} is not there: run tests/install_pebble.sh", path.display());
    path.canonicalize().expect("a path")
}
